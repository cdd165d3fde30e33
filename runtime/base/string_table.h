/* runtime/base/string_table.h: a hash table from byte strings to numbers. */
#ifndef LT_BASE_STRING_TABLE_H
#define LT_BASE_STRING_TABLE_H

#include "base/ctx.h"

/* A word of the table; its bytes stand in the table's text. */
typedef struct lt_string_entry {
  uint64_t hash;
  size_t at, n;
  int64_t value;
} lt_string_entry;

/* Start from {0}. */
typedef struct lt_string_table {
  lt_string_entry *word; /* by the order in which they came */
  int64_t count, capacity;
  int32_t *slot; /* number of the word + 1; 0: empty */
  size_t n_slots;
  char *text;
  size_t n_text, text_capacity;
} lt_string_table;

uint64_t lt_string_hash(const char *text, size_t n);

/* The word's entry, NULL: there is none. Valid until the next one is added. */
lt_string_entry *lt_string_table_find(const lt_string_table *w, const char *text, size_t n,
                                      uint64_t hash);

/* Add a word that is not there; NULL on failure. */
lt_string_entry *lt_string_table_add(lt_ctx *c, lt_string_table *w, const char *text, size_t n,
                                     uint64_t hash, int64_t value);

/* Forget all words, keep the memory. */
void lt_string_table_clear(lt_string_table *w);
void lt_string_table_free(lt_ctx *c, lt_string_table *w);

static inline const char *lt_string_text(const lt_string_table *w, const lt_string_entry *word) {
  return w->text + word->at;
}

#endif
