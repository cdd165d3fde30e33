/* runtime/base/locale.h: numbers and text that do not depend on the locale.

   A host, or a script by os.setlocale, may choose a locale with decimal commas, which printf,
   strtod, strcoll and Lua follow. No file, message or order of ours does: where scripts run, the
   thread has the "C" locale, which the process's does not touch; the host's is there again when
   they have run. What a host may call at any time formats by the functions below. */
#ifndef LT_BASE_LOCALE_H
#define LT_BASE_LOCALE_H

#include <stdarg.h>
#include <stddef.h>

/* This thread goes by the "C" locale. Returns what it went by, for lt_locale_leave. */
void *lt_locale_enter(void);
void lt_locale_leave(void *before);

/* snprintf and strtod in the "C" locale. */
int lt_format(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int lt_format_list(char *text, size_t size, const char *format, va_list values)
    __attribute__((format(printf, 3, 0)));
double lt_parse_double(const char *text, char **end);

#endif
