/* runtime/io/json.h: JSON in (jansson, with limits) and out (a growing text).

   Doubles have two spellings. Plain: the shortest decimal that reads back as the same double; not
   finite ones as the strings "inf", "-inf", "nan". Exact, for checkpoints: a decimal when 15 digits
   say it all (0.001), else a C hex-float string ("0x1.8p+1") that every reader takes bit for bit.
   In exact texts a string that could be taken for such a number, or that begins with '=' or '~',
   is written with '=' before it; one that is not UTF-8, or holds a NUL, as '~' and its bytes as
   the code points U+0000 to U+00FF. */
#ifndef LT_IO_JSON_H
#define LT_IO_JSON_H

#include <jansson.h>

#include "base/ctx.h"

enum { LT_JSON_DEPTH = 128, LT_JSON_VALUES = 1 << 23 };

/* Parse n bytes; `what` begins the error text, which has line and column. Duplicate keys, texts
   deeper than `depth` and ones of more than LT_JSON_VALUES values are refused, the last two before
   anything is allocated. NUL in strings only with `nul`. Release with json_decref. */
json_t *lt_json_parse(lt_ctx *c, const char *what, const char *text, size_t n, int depth, bool nul);

/* Whether a text is within those limits; a failure in the ctx. */
bool lt_json_within_limits(lt_ctx *c, const char *what, const char *text, size_t n, int depth);

/* A text being written. Start from {.c = c}; a failure sticks in the ctx, and writes do nothing. */
typedef struct lt_json {
  lt_ctx *c;
  char *data;
  size_t size, capacity;
} lt_json;

void lt_json_raw(lt_json *w, const char *text, size_t n);
static inline void lt_json_char(lt_json *w, char ch) { lt_json_raw(w, &ch, 1); }
void lt_json_integer(lt_json *w, int64_t value);
void lt_json_double(lt_json *w, double value, bool exact);

/* Plain: fails when it is not UTF-8. */
void lt_json_string(lt_json *w, const char *text, size_t n);
void lt_json_exact_string(lt_json *w, const char *text, size_t n);

/* Give the buffer back. */
void lt_json_free(lt_json *w);

/* What a string of an exact text stands for. */
typedef enum lt_json_meaning { LT_JSON_TEXT, LT_JSON_DOUBLE, LT_JSON_BYTES } lt_json_meaning;

/* TEXT: the string is text[*skip..]. DOUBLE: *value. BYTES: decode text[1..] with lt_json_bytes. */
lt_json_meaning lt_json_read_string(const char *text, size_t n, size_t *skip, double *value);

/* Code points U+0000..U+00FF to bytes; returns how many, or -1 when another one is met. `out` is
   of n bytes. */
int64_t lt_json_bytes(const char *text, size_t n, char *out);

#endif
