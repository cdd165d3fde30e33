/* runtime/io/csv_number.h: numbers in text, exact and in any locale. */
#ifndef LT_IO_CSV_NUMBER_H
#define LT_IO_CSV_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A decimal number, "inf" or "nan" with an optional sign (blanks around it do not count) as the
   nearest double; false when the text is anything else. *whole: it is digits alone and fits
   *integer. */
bool lt_csv_number(const char *text, size_t n, double *value, int64_t *integer, bool *is_integer);

#endif
