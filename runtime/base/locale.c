/* runtime/base/locale.c: the "C" locale for a thread, or for one number. */
#include "base/locale.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* The C library's own object: nothing is allocated. */
static locale_t plain(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

void *lt_locale_enter(void) { return (void *)uselocale(plain()); }

void lt_locale_leave(void *before) { uselocale((locale_t)before); }

int lt_format_list(char *text, size_t size, const char *format, va_list values) {
  void *before = lt_locale_enter();
  int n = vsnprintf(text, size, format, values);
  lt_locale_leave(before);
  return n;
}

int lt_format(char *text, size_t size, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int n = lt_format_list(text, size, format, values);
  va_end(values);
  return n;
}

double lt_parse_double(const char *text, char **end) { return strtod_l(text, end, plain()); }
