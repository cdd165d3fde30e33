/* runtime/ops/formula_text.h: signs and numbers in the texts of rows, for those that read them at
   run time: autograd/formula.c makes operations of them, xla/formula.c programs. */
#ifndef LT_OPS_FORMULA_TEXT_H
#define LT_OPS_FORMULA_TEXT_H

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Reads `text`, and space before it; false: something else is there. */
static inline bool lt_formula_next(const char **at, const char *text) {
  while (isspace((unsigned char)**at)) ++*at;
  size_t n = strlen(text);
  if (strncmp(*at, text, n) != 0) return false;
  *at += n;
  return true;
}

/* Decimal digits, perhaps with an exponent, whatever the locale. strtod would stop at the point
   where the locale writes a comma. */
static inline double lt_formula_digits(const char **at) {
  long double value = 0, unit = 1;
  int power = 0;
  for (; isdigit((unsigned char)**at); ++*at) value = value * 10 + (**at - '0');
  if (**at == '.')
    for (++*at; isdigit((unsigned char)**at); ++*at, unit *= 10) value = value * 10 + (**at - '0');
  if (**at != 'e') return (double)(value / unit);
  bool minus = (*at)[1] == '-';
  for (*at += 1 + minus; isdigit((unsigned char)**at); ++*at) power = power * 10 + (**at - '0');
  for (; power > 0; power--) value = minus ? value / 10 : value * 10;
  return (double)(value / unit);
}

#endif
