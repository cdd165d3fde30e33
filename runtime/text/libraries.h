/* runtime/text/libraries.h: PCRE2 and utf8proc, opened when first asked for.

   Both have had these functions and numbers for years: nothing of theirs is needed to build, and a
   script that has no text does not load them. */
#ifndef LT_TEXT_LIBRARIES_H
#define LT_TEXT_LIBRARIES_H

#include "base/ctx.h"

/* Of pcre2.h, with 8-bit code units. */
enum {
  LT_PCRE2_UTF = 0x00080000,
  LT_PCRE2_UCP = 0x00020000,
  LT_PCRE2_NO_UTF_CHECK = 0x40000000,
  LT_PCRE2_JIT_COMPLETE = 1,
  LT_PCRE2_NOMATCH = -1,
};

typedef struct lt_pcre2 {
  void *(*compile)(const uint8_t *pattern, size_t n, uint32_t options, int *error, size_t *where,
                   void *context);
  int (*jit_compile)(void *code, uint32_t options);
  int (*match)(const void *code, const uint8_t *text, size_t n, size_t from, uint32_t options,
               void *data, void *context);
  void *(*match_data_create_from_pattern)(const void *code, void *context);
  size_t *(*get_ovector_pointer)(void *data);
  void *(*match_context_create)(void *context);
  int (*set_match_limit)(void *context, uint32_t limit);
  int (*get_error_message)(int error, uint8_t *out, size_t size);
  void (*code_free)(void *code);
  void (*match_data_free)(void *data);
  void (*match_context_free)(void *context);
} lt_pcre2;

/* Of utf8proc.h. */
enum {
  LT_UTF8PROC_STABLE = 1 << 1,
  LT_UTF8PROC_COMPAT = 1 << 2,
  LT_UTF8PROC_COMPOSE = 1 << 3,
  LT_UTF8PROC_DECOMPOSE = 1 << 4,
};
enum { LT_CATEGORY_MN = 6, LT_CATEGORY_ME = 8, LT_CATEGORY_CC = 26 }; /* from CC on: others */

typedef struct lt_utf8proc {
  int (*category)(int32_t code_point);
  int32_t (*to_lower)(int32_t code_point); /* `tolower` */
  ptrdiff_t (*map)(const uint8_t *text, ptrdiff_t n, uint8_t **out, int options); /* free() it */
} lt_utf8proc;

/* NULL, and a failure that names the package, where the library is not installed. */
const lt_pcre2 *lt_pcre2_open(lt_ctx *c);
const lt_utf8proc *lt_utf8proc_open(lt_ctx *c);

#endif
