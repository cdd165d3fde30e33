/* runtime/text/regex.h: patterns of tokenizer files, by PCRE2 and its compiler. */
#ifndef LT_TEXT_REGEX_H
#define LT_TEXT_REGEX_H

#include "base/ctx.h"

/* What GPT-2 and Llama 3 cut texts into. */
extern const char lt_pattern_gpt2[], lt_pattern_llama3[];

typedef struct lt_regex lt_regex;

/* In the dialect of Oniguruma, as far as PCRE2's is the same; \s, \w, \S and \W mean Unicode's
   properties. `what` begins the failure: "text.tokenizer: a.json: pre_tokenizer.pattern". */
lt_regex *lt_regex_new(lt_ctx *c, const char *what, const char *pattern, size_t n);
void lt_regex_free(lt_ctx *c, lt_regex *r);

/* The next match in valid UTF-8 from `from` on: 1; 0: there is none; -1: it takes too long, a
   failure. */
int lt_regex_find(lt_ctx *c, lt_regex *r, const char *text, size_t n, size_t from, size_t *begin,
                  size_t *end);

#endif
