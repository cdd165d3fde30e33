/* runtime/text/pre_tokenizer.h: pre-tokenizers: texts cut into pieces, one step after the other. */
#ifndef LT_TEXT_PRE_TOKENIZER_H
#define LT_TEXT_PRE_TOKENIZER_H

#include "text/regex.h"

/* What becomes of a match: Hugging Face's names. */
typedef enum lt_behavior {
  LT_REMOVED, LT_ISOLATED, LT_MERGED_WITH_PREVIOUS, LT_MERGED_WITH_NEXT, LT_CONTIGUOUS
} lt_behavior;

typedef struct lt_split {
  lt_regex *pattern; /* NULL: all in one piece */
  lt_behavior behavior;
  bool invert;       /* what is between matches is the match */
  bool prefix_space; /* a piece gets a space before it, if it has none */
} lt_split;

/* Called with each piece, which is not empty; false ends it. */
typedef struct lt_pieces {
  bool (*each)(lt_ctx *c, void *ud, const char *text, size_t n);
  void *ud;
} lt_pieces;

/* Cut valid UTF-8 by the steps s[0..n_steps-1]. False: a failure, or `each` has ended it. */
bool lt_split_text(lt_ctx *c, const lt_split *s, int n_steps, const char *text, size_t n,
                   lt_pieces to);

#endif
