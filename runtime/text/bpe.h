/* runtime/text/bpe.h: byte pair encoding: merging the symbols of a word by rank.

   Sennrich, Haddow, Birch: Neural machine translation of rare words with subword units, 2016. */
#ifndef LT_TEXT_BPE_H
#define LT_TEXT_BPE_H

#include "base/ctx.h"

/* Two symbols, which become `made`; the lowest rank first. */
typedef struct lt_merge {
  int32_t left, right; /* left < 0: empty */
  int32_t rank, made;
} lt_merge;

/* Start from {0}; an open hash table. */
typedef struct lt_merges {
  lt_merge *slot;
  size_t n_slots, count;
} lt_merges;

/* Add a merge; of two of the same symbols the last one counts. */
bool lt_merges_add(lt_ctx *c, lt_merges *m, lt_merge merge);
const lt_merge *lt_merges_find(const lt_merges *m, int32_t left, int32_t right);
void lt_merges_free(lt_ctx *c, lt_merges *m);

/* Merge the symbols word[0..n-1] in place; returns how many remain, -1 on failure. Of equal ranks
   the leftmost first. */
int64_t lt_bpe_merge(lt_ctx *c, const lt_merges *m, int32_t *word, int64_t n);

#endif
