/* runtime/io/csv_words.c: a hash table with open addresses, at most half full. */
#include "io/csv_words.h"

#include <string.h>

enum { FIRST_ROOM = 16 };

/* FNV-1a of 64 bits, its high bits mixed into the low ones. */
static uint64_t hash_of(const char *text, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t k = 0; k < n; k++) h = (h ^ (unsigned char)text[k]) * 0x100000001b3u;
  return h ^ h >> 32;
}

static size_t place_of(const lt_csv_list *l, const char *text, size_t n) {
  size_t at = hash_of(text, n) & (l->n_slots - 1);
  for (; l->slot[at] != 0; at = (at + 1) & (l->n_slots - 1)) {
    const lt_csv_text *w = &l->word[l->slot[at] - 1];
    if (w->n == n && memcmp(w->text, text, n) == 0) break;
  }
  return at;
}

static bool grow(lt_ctx *c, lt_csv_list *l) {
  int64_t room = l->room == 0 ? FIRST_ROOM : 2 * l->room;
  size_t n_slots = 2 * (size_t)room;
  lt_csv_text *word = lt_realloc(c, l->word, (size_t)l->room * sizeof *word,
                                 (size_t)room * sizeof *word);
  if (word == NULL) return false;
  l->word = word;
  l->room = room;
  int64_t *slot = lt_alloc(c, n_slots * sizeof *slot);
  if (slot == NULL) return false;
  lt_free(c, l->slot, l->n_slots * sizeof *slot);
  memset(slot, 0, n_slots * sizeof *slot);
  l->slot = slot;
  l->n_slots = n_slots;
  for (int64_t id = 0; id < l->count; id++)
    slot[place_of(l, word[id].text, word[id].n)] = id + 1;
  return true;
}

int64_t lt_csv_id(lt_ctx *c, lt_csv_list *l, const char *text, size_t n) {
  if ((size_t)l->count >= l->n_slots / 2 && !grow(c, l)) return -1;
  size_t at = place_of(l, text, n);
  if (l->slot[at] != 0) return l->slot[at] - 1;
  char *own = lt_alloc(c, n + 1);
  if (own == NULL) return -1;
  memcpy(own, text, n);
  own[n] = 0;
  l->word[l->count] = (lt_csv_text){own, n};
  l->slot[at] = ++l->count;
  return l->count - 1;
}

void lt_csv_list_free(lt_ctx *c, lt_csv_list *l) {
  for (int64_t id = 0; id < l->count; id++)
    lt_free(c, (void *)(uintptr_t)l->word[id].text, l->word[id].n + 1);
  lt_free(c, l->word, (size_t)l->room * sizeof *l->word);
  lt_free(c, l->slot, l->n_slots * sizeof *l->slot);
  *l = (lt_csv_list){0};
}
