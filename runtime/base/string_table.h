/* runtime/base/string_table.h: a hash table from byte strings to numbers. */
#ifndef LT_BASE_STRING_TABLE_H
#define LT_BASE_STRING_TABLE_H

#include "base/ctx.h"

/* A word of the table; its bytes stand in the table's text. */
typedef struct lt_word {
  uint64_t hash;
  size_t at, n;
  int64_t value;
} lt_word;

/* Start from {0}. */
typedef struct lt_words {
  lt_word *word; /* by the order in which they came */
  int64_t count, room;
  int32_t *slot; /* number of the word + 1; 0: empty */
  size_t n_slots;
  char *text;
  size_t n_text, text_room;
} lt_words;

uint64_t lt_word_hash(const char *text, size_t n);

/* The word's entry, NULL: there is none. Valid until the next one is added. */
lt_word *lt_words_find(const lt_words *w, const char *text, size_t n, uint64_t hash);

/* Add a word that is not there; NULL on failure. */
lt_word *lt_words_add(lt_ctx *c, lt_words *w, const char *text, size_t n, uint64_t hash,
                      int64_t value);

/* Forget all words, keep the memory. */
void lt_words_clear(lt_words *w);
void lt_words_free(lt_ctx *c, lt_words *w);

static inline const char *lt_word_text(const lt_words *w, const lt_word *word) {
  return w->text + word->at;
}

#endif
