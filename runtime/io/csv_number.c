/* runtime/io/csv_number.c: the number that a field of a CSV file is, rounded correctly.

   A mantissa of at most 2^53 and a power of ten of at most 10^22 are both exact doubles: their
   product or quotient is the number rounded once (W. Clinger, How to Read Floating Point Numbers
   Accurately, 1990, the fast path). Nearly all numbers that occur are so; strtod, several times
   slower, reads the others. No locale: the point is a point. */
#include "io/csv_number.h"

#include <math.h>
#include <string.h>

#include "base/locale.h"

enum { MAX_TEXT = 800, MAX_DIGITS = 19, MAX_POWER = 22, MAX_EXPONENT = 9999 };

static const double powers[MAX_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(char ch) { return ch >= '0' && ch <= '9'; }
static bool is_blank(char ch) { return ch == ' ' || ch == '\t'; }

/* The parts of a decimal. 19 digits always fit into 64 bits; with more the value goes to strtod. */
typedef struct decimal {
  uint64_t mantissa;
  int digits; /* of the mantissa, from the first that is not 0; beyond MAX_DIGITS they are lost */
  int power;  /* of ten */
  bool negative, point;
} decimal;

/* Leading zeros are not digits of the mantissa, but move the point. */
static void add_digit(decimal *d, char ch, bool behind_point) {
  if (d->digits > 0 || ch != '0') d->digits++;
  if (d->digits <= MAX_DIGITS) d->mantissa = 10 * d->mantissa + (uint64_t)(ch - '0');
  if (behind_point) d->power--;
}

/* The grammar, without inf and nan. Digits, a point, digits, an exponent; one digit at least. The
   exponent stops growing at MAX_EXPONENT, beyond which everything is 0 or infinite anyway. */
static bool scan(const char *p, const char *end, decimal *d) {
  const char *first = p;
  while (p < end && is_digit(*p)) add_digit(d, *p++, false);
  int64_t seen = p - first;
  if (p < end && *p == '.') {
    d->point = true;
    for (p++; p < end && is_digit(*p); seen++) add_digit(d, *p++, true);
  }
  if (seen == 0) return false;
  if (p == end) return true;
  if (*p != 'e' && *p != 'E') return false;
  d->point = true;
  if (++p == end) return false;
  bool down = *p == '-';
  if (*p == '-' || *p == '+') p++;
  if (p == end) return false;
  int exponent = 0;
  for (; p < end && is_digit(*p); p++)
    if (exponent < MAX_EXPONENT) exponent = 10 * exponent + (*p - '0');
  d->power += down ? -exponent : exponent;
  return p == end;
}

/* A word of three letters, in any case. */
static bool is_word(const char *p, const char *end, const char *word) {
  if (end - p != 3) return false;
  for (int k = 0; k < 3; k++)
    if ((p[k] | 0x20) != word[k]) return false;
  return true;
}

/* A copy that ends with a zero byte. Texts of more than 800 digits are refused: 767 significant
   ones decide every double. */
static bool by_strtod(const char *p, size_t n, double *value) {
  char text[MAX_TEXT + 1];
  if (n > MAX_TEXT) return false;
  memcpy(text, p, n);
  text[n] = 0;
  *value = lt_parse_double(text, NULL);
  return true;
}

/* A whole number has neither point nor exponent, and fits into i64: "1e3" and "1.0" make a column
   of floats, as in pandas. INT64_MIN is one too small for this scan and becomes a float. */
bool lt_csv_number(const char *text, size_t n, double *value, int64_t *integer, bool *is_integer) {
  const char *p = text, *end = text + n;
  while (p < end && is_blank(*p)) p++;
  while (end > p && is_blank(end[-1])) end--;
  const char *start = p;
  decimal d = {.negative = p < end && *p == '-'};
  *is_integer = false;
  if (p < end && (*p == '-' || *p == '+')) p++;
  if (is_word(p, end, "inf") || is_word(p, end, "nan")) {
    *value = (p[0] | 0x20) == 'n' ? (double)NAN : d.negative ? -(double)INFINITY : (double)INFINITY;
    return true;
  }
  if (!scan(p, end, &d)) return false;
  *is_integer = !d.point && d.digits <= MAX_DIGITS && d.mantissa <= INT64_MAX;
  if (*is_integer) *integer = d.negative ? -(int64_t)d.mantissa : (int64_t)d.mantissa;
  bool small = d.digits <= MAX_DIGITS && d.mantissa <= (uint64_t)1 << 53;
  if (!small || d.power > MAX_POWER || d.power < -MAX_POWER)
    return by_strtod(start, (size_t)(end - start), value);
  double x = (double)d.mantissa;
  x = d.power < 0 ? x / powers[-d.power] : x * powers[d.power];
  *value = d.negative ? -x : x;
  return true;
}
