/* runtime/io/csv_words.h: different texts and their ids. */
#ifndef LT_IO_CSV_WORDS_H
#define LT_IO_CSV_WORDS_H

#include "io/csv.h"

typedef struct lt_csv_list {
  lt_csv_text *word; /* by id; their bytes are ours */
  int64_t count, room;
  int64_t *slot; /* by hash: id + 1, 0 where it is free */
  size_t n_slots; /* a power of two */
} lt_csv_list;

/* The id of a text, which is a new one where it was not there; -1 without memory. */
int64_t lt_csv_id(lt_ctx *c, lt_csv_list *l, const char *text, size_t n);
void lt_csv_list_free(lt_ctx *c, lt_csv_list *l);

#endif
