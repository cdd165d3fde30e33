/* runtime/base/printable.h: text from files and names made safe to print: a terminal acts on none
   of it.

   Control characters, those of one byte and U+0080 to U+009F, the marks that change the direction
   of the text after them, and bytes that are not UTF-8 are written as Lua writes them: \27,
   \u{202E}. */
#ifndef LT_BASE_PRINTABLE_H
#define LT_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* What stays as it is: the ends of lines and tabs; colours too ("\27[1;31m"). */
typedef enum lt_printable_keep {
  LT_KEEP_NOTHING, LT_KEEP_LINES, LT_KEEP_COLOURS
} lt_printable_keep;

/* Whether n bytes of text have such characters. */
bool lt_is_printable(const char *text, size_t n, lt_printable_keep keep);

/* Writes the text, as much of it as fits, with a NUL after it, into `capacity` bytes; returns how
   many bytes all of it takes, without the NUL. */
size_t lt_make_printable(char *out, size_t capacity, const char *text, size_t n,
                         lt_printable_keep keep);

#endif
