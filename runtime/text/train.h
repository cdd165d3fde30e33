/* runtime/text/train.h: training of byte-level BPE tokenizers: counts words, and chooses merges.

   Words are counted first, all texts one after the other; then the most frequent pair of
   neighbouring symbols is merged, and again: of pairs that are as frequent the one with the
   smaller symbols. Hugging Face's trainer gives the same. */
#ifndef LT_TEXT_TRAIN_H
#define LT_TEXT_TRAIN_H

#include "base/string_table.h"
#include "io/json.h"
#include "text/id_list.h"
#include "text/pre_tokenizer.h"

typedef struct lt_trainer {
  lt_split split;
  bool lowercase;
  lt_string_table words; /* value: how often */
} lt_trainer;

/* NULL: a failure. `pattern` cuts texts into words, small letters alone where `lowercase`. */
lt_trainer *lt_trainer_new(lt_ctx *c, const char *pattern, size_t n, bool lowercase);
void lt_trainer_free(lt_ctx *c, lt_trainer *t);

/* Count the words of a text. */
bool lt_trainer_add(lt_ctx *c, lt_trainer *t, const char *text, size_t n);

/* What training gives: start from {0}. The first 256 tokens are the bytes, in the order of their
   characters (lt_byte_to_char); `merges` has two numbers of tokens a merge. */
typedef struct lt_trained {
  lt_string_table tokens;
  lt_ids merges;
} lt_trained;

/* Merge until there are n_tokens, or no pair occurs min_frequency times. */
bool lt_trainer_merge(lt_ctx *c, lt_trainer *t, int64_t n_tokens, int64_t min_frequency,
                      lt_trained *out);
void lt_trained_free(lt_ctx *c, lt_trained *d);

/* As a tokenizer.json has them: the members of `vocab`, whose ids begin at `first`, and those of
   `merges`. */
void lt_trained_write(const lt_trained *d, int64_t first, lt_json *vocab, lt_json *merges);

#endif
