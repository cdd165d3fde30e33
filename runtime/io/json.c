/* runtime/io/json.c: parsing JSON within limits, and writing it.

   RFC 8259; the parser is jansson's. A limit on depth and values comes before it, as it recurses
   and takes memory for each value. */
#include "io/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"

/* How deep and how many, without a parser: good for texts that are JSON, an upper bound for all
   that jansson would accept. A scan of the bytes, no recursion: a text of brackets would otherwise
   take jansson's C stack. */
bool lt_json_within_limits(lt_ctx *c, const char *what, const char *text, size_t n,
                           int max_depth) {
  int depth = 0;
  int64_t values = 1;
  bool quoted = false;
  for (size_t i = 0; i < n; i++) {
    char ch = text[i];
    if (quoted) {
      if (ch == '\\') i++;
      if (ch == '"') quoted = false;
      continue;
    }
    if (ch == '"') quoted = true;
    if (ch == '{' || ch == '[') depth++;
    if (ch == '}' || ch == ']') depth--;
    if (ch == ',' || ch == '{' || ch == '[' || ch == ':') values++;
    if (depth > max_depth)
      return lt_fail(c, LT_EIO, "%s: nested deeper than %d levels (byte %zu)", what, max_depth, i);
  }
  return values <= LT_JSON_VALUES ||
         lt_fail(c, LT_EIO, "%s: more than %d values", what, LT_JSON_VALUES);
}

json_t *lt_json_parse(lt_ctx *c, const char *what, const char *text, size_t n, int depth,
                      bool nul) {
  if (!lt_ok(c) || !lt_json_within_limits(c, what, text, n, depth)) return NULL;
  json_error_t error;
  json_t *root = json_loadb(
      text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | (nul ? JSON_ALLOW_NUL : 0), &error);
  if (root == NULL && json_error_code(&error) == json_error_out_of_memory)
    lt_fail(c, LT_EMEMORY, "%s: out of memory for %zu bytes of JSON", what, n);
  else if (root == NULL)
    lt_fail(c, LT_EIO, "%s: not JSON: %s (line %d, column %d)", what, error.text, error.line,
            error.column);
  return root;
}

/* Doubling, so that a text of n bytes is copied less than twice; a failure is the ctx's, and later
   writes do nothing. */
void lt_json_raw(lt_json *w, const char *text, size_t n) {
  if (!lt_ok(w->c) || n == 0) return;
  if (n > w->capacity - w->size) {
    size_t capacity = w->capacity == 0 ? 256 : w->capacity;
    while (capacity - w->size < n) capacity *= 2;
    char *data = lt_realloc(w->c, w->data, w->capacity, capacity);
    if (data == NULL) return;
    w->data = data;
    w->capacity = capacity;
  }
  memcpy(w->data + w->size, text, n);
  w->size += n;
}

void lt_json_free(lt_json *w) {
  lt_free(w->c, w->data, w->capacity);
  w->data = NULL;
  w->size = w->capacity = 0;
}

void lt_json_integer(lt_json *w, int64_t value) {
  char text[24];
  int n = snprintf(text, sizeof text, "%" PRId64, value);
  lt_json_raw(w, text, (size_t)n);
}

/* Decimal with at most max_digits that reads back as x; 0 when there is none. 15 digits survive a
   round trip from text to double and back, 17 tell any two doubles apart (D. Goldberg, What Every
   Computer Scientist Should Know About Floating-Point Arithmetic, 1991); the fewest that read back
   are the shortest text. Three attempts at most, where Grisu or Ryu would be tables. */
static int decimal(double x, int max_digits, char *text, size_t size) {
  for (int digits = 15; digits <= max_digits; digits++) {
    int n = lt_format(text, size, "%.*g", digits, x);
    if (lt_parse_double(text, NULL) != x) continue;
    if (strpbrk(text, ".e") == NULL) {
      memcpy(text + n, ".0", 3);
      n += 2;
    }
    return n;
  }
  return 0;
}

/* As printf's %a, in whatever locale: "0x1.8p+1". Exact by construction, as it is the bits;
   subnormals begin 0x0 with exponent -1022. */
static int hex_float(double x, char *text, size_t size) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t fraction = bits & 0xfffffffffffffu;
  int exponent = (int)(bits >> 52 & 0x7ff);
  char digits[16];
  snprintf(digits, sizeof digits, "%013" PRIx64, fraction);
  int n = 13;
  while (n > 0 && digits[n - 1] == '0') n--;
  return snprintf(text, size, "%s0x%d%s%.*sp%+d", bits >> 63 ? "-" : "", exponent != 0,
                  n > 0 ? "." : "", n, digits, exponent != 0 ? exponent - 1023 : -1022);
}

/* JSON has no NaN and no infinities: they are strings. `exact` writes a hexadecimal float where 15
   digits do not read back: no parser has to round it. */
void lt_json_double(lt_json *w, double value, bool exact) {
  char text[40];
  if (!isfinite(value)) {
    const char *name = isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    lt_json_raw(w, name, strlen(name));
    return;
  }
  int n = decimal(value, exact ? 15 : 17, text, sizeof text);
  if (n == 0) {
    text[0] = '"';
    n = 1 + hex_float(value, text + 1, sizeof text - 1);
    text[n++] = '"';
  }
  lt_json_raw(w, text, (size_t)n);
}

/* Bytes of the UTF-8 character at text; 0 when it is none: RFC 3629, overlong forms, surrogates and
   what is above U+10FFFF refused. */
static size_t utf8_length(const unsigned char *text, size_t n) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = text[0];
  size_t length = first < 0x80       ? 1
                  : first >> 5 == 6  ? 2
                  : first >> 4 == 14 ? 3
                  : first >> 3 == 30 ? 4
                                     : 0;
  if (length <= 1 || length > n) return length > n ? 0 : length;
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if (text[i] >> 6 != 2) return 0;
    code = code << 6 | (text[i] & 0x3fu);
  }
  bool fits = code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return fits ? length : 0;
}

static void control(lt_json *w, unsigned char ch) {
  static const char names[] = "\"\"\\\\\nn\rr\tt\bb\ff";
  char text[8] = {'\\', 0};
  for (const char *p = names; *p != 0; p += 2)
    if ((unsigned char)p[0] == ch) {
      text[1] = p[1];
      lt_json_raw(w, text, 2);
      return;
    }
  int n = snprintf(text, sizeof text, "\\u%04x", ch);
  lt_json_raw(w, text, (size_t)n);
}

/* The characters of a string, escaped, between no quotes. */
static void characters(lt_json *w, const char *text, size_t n) {
  const unsigned char *s = (const unsigned char *)text;
  size_t start = 0, i = 0;
  while (i < n) {
    size_t length = utf8_length(s + i, n - i);
    if (length == 0) {
      lt_fail(w->c, LT_EVALUE, "json: a string is not UTF-8 (byte %zu of %zu is 0x%02x)", i + 1, n,
              s[i]);
      return;
    }
    if (s[i] < 0x20 || s[i] == '"' || s[i] == '\\' || s[i] == 0x7f) {
      lt_json_raw(w, text + start, i - start);
      control(w, s[i]);
      start = i + 1;
    }
    i += length;
  }
  lt_json_raw(w, text + start, n - start);
}

void lt_json_string(lt_json *w, const char *text, size_t n) {
  lt_json_char(w, '"');
  characters(w, text, n);
  lt_json_char(w, '"');
}

static bool is_text(const char *text, size_t n) {
  const unsigned char *s = (const unsigned char *)text;
  for (size_t i = 0; i < n;) {
    size_t length = utf8_length(s + i, n - i);
    if (length == 0 || s[i] == 0) return false;
    i += length;
  }
  return true;
}

/* Lua's strings are bytes; JSON's are text. A string of valid UTF-8 without zeros is written as it
   is, unless it begins like one of the forms below, then after "=". Others are "~" and each byte as
   the character of its number (U+0000 to U+00FF), which no tool on the way can break. */
void lt_json_exact_string(lt_json *w, const char *text, size_t n) {
  lt_json_char(w, '"');
  if (is_text(text, n)) {
    size_t skip;
    double value;
    lt_json_meaning meaning = lt_json_read_string(text, n, &skip, &value);
    if (meaning != LT_JSON_TEXT || skip > 0) lt_json_char(w, '=');
    characters(w, text, n);
  } else {
    lt_json_char(w, '~');
    for (size_t i = 0; i < n; i++) {
      unsigned char ch = (unsigned char)text[i];
      char pair[2] = {(char)(0xc0 | ch >> 6), (char)(0x80 | (ch & 0x3f))};
      characters(w, ch < 0x80 ? text + i : pair, ch < 0x80 ? 1 : 2);
    }
  }
  lt_json_char(w, '"');
}

static int hex_digit(char ch) {
  if (ch >= '0' && ch <= '9') return ch - '0';
  return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* Exactly what hex_float writes: 0x, 0 or 1, at most 13 digits, p, sign, exponent. */
static bool read_hex(const char *s, const char *end, double *value) {
  if (end - s < 6 || s[0] != '0' || s[1] != 'x' || (s[2] != '0' && s[2] != '1')) return false;
  double mantissa = s[2] - '0', unit = 1;
  s += 3;
  if (*s == '.') {
    int digits = 0;
    for (s++; s < end && hex_digit(*s) >= 0 && digits < 13; s++, digits++)
      mantissa += (unit /= 16) * hex_digit(*s);
    if (digits == 0) return false;
  }
  if (end - s < 3 || *s++ != 'p' || (*s != '+' && *s != '-')) return false;
  bool negative = *s++ == '-';
  int exponent = 0;
  for (; s < end && *s >= '0' && *s <= '9' && exponent < 10000; s++)
    exponent = 10 * exponent + (*s - '0');
  if (s != end || exponent > 1023) return false;
  *value = ldexp(mantissa, negative ? -exponent : exponent);
  return true;
}

static bool read_number(const char *s, const char *end, double *value) {
  bool negative = s < end && *s == '-';
  if (negative) s++;
  if (end - s == 3 && memcmp(s, "inf", 3) == 0)
    *value = HUGE_VAL;
  else if (end - s == 3 && memcmp(s, "nan", 3) == 0 && !negative)
    *value = (double)NAN;
  else if (!read_hex(s, end, value))
    return false;
  if (negative) *value = -*value;
  return true;
}

lt_json_meaning lt_json_read_string(const char *text, size_t n, size_t *skip, double *value) {
  *skip = 0;
  if (n > 0 && text[0] == '~') return LT_JSON_BYTES;
  if (n > 0 && text[0] == '=') {
    *skip = 1;
    return LT_JSON_TEXT;
  }
  return read_number(text, text + n, value) ? LT_JSON_DOUBLE : LT_JSON_TEXT;
}

/* The inverse of "~": characters up to U+00FF as bytes; -1 for any other. In place is possible: the
   result is never longer. */
int64_t lt_json_bytes(const char *text, size_t n, char *out) {
  const unsigned char *s = (const unsigned char *)text;
  int64_t count = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] < 0x80) {
      out[count++] = text[i];
    } else {
      if (i + 1 >= n || (s[i] & 0xfc) != 0xc0) return -1;
      out[count++] = (char)((s[i] & 3) << 6 | (s[i + 1] & 0x3f));
      i++;
    }
  }
  return count;
}
