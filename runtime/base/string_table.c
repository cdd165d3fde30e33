/* runtime/base/string_table.c: a hash table with open addressing, at most half full.

   Linear probing (D. Knuth, The Art of Computer Programming, volume 3, algorithm 6.4L). Slots
   have numbers, words lie in a list in the order in which they came, texts in one piece of
   memory: growing moves numbers only, and numbers never change. */
#include "base/string_table.h"

#include <string.h>

enum { FIRST_CAPACITY = 16 };

static inline uint64_t mixed(uint64_t h, uint64_t part) {
  h = (h ^ part) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

/* Eight bytes at a time. The multiplier is 2^64 over the golden ratio (Knuth, section 6.4); the
   upper half, which depends on all bits, is folded into the lower one, which is what places are
   made of. */
uint64_t lt_string_hash(const char *text, size_t n) {
  uint64_t h = n, part;
  for (; n >= sizeof part; n -= sizeof part, text += sizeof part) {
    memcpy(&part, text, sizeof part);
    h = mixed(h, part);
  }
  part = 0;
  memcpy(&part, text, n);
  return mixed(h, part);
}

lt_string_entry *lt_string_table_find(const lt_string_table *w, const char *text, size_t n,
                                      uint64_t hash) {
  if (w->n_slots == 0) return NULL;
  for (size_t at = hash & (w->n_slots - 1); w->slot[at] != 0; at = (at + 1) & (w->n_slots - 1)) {
    lt_string_entry *word = &w->word[w->slot[at] - 1];
    if (word->hash == hash && word->n == n && memcmp(w->text + word->at, text, n) == 0) return word;
  }
  return NULL;
}

static void put(lt_string_table *w, int64_t k) {
  size_t at = w->word[k].hash & (w->n_slots - 1);
  while (w->slot[at] != 0) at = (at + 1) & (w->n_slots - 1);
  w->slot[at] = (int32_t)k + 1;
}

static bool grow(lt_ctx *c, lt_string_table *w) {
  int64_t capacity = w->capacity == 0 ? FIRST_CAPACITY : 2 * w->capacity;
  if (capacity > INT32_MAX) return lt_fail(c, LT_EMEMORY, "more than 2^30 different words");
  lt_string_entry *word =
      lt_realloc(c, w->word, (size_t)w->capacity * sizeof *word, (size_t)capacity * sizeof *word);
  if (word == NULL) return false;
  w->word = word;
  w->capacity = capacity;
  size_t n_slots = 2 * (size_t)capacity;
  int32_t *slot = lt_alloc(c, n_slots * sizeof *slot);
  if (slot == NULL) return false;
  lt_free(c, w->slot, w->n_slots * sizeof *slot);
  w->slot = slot;
  w->n_slots = n_slots;
  for (int64_t k = 0; k < w->count; k++) put(w, k);
  return true;
}

static bool grow_text(lt_ctx *c, lt_string_table *w, size_t n) {
  size_t capacity = w->text_capacity == 0 ? 8 * FIRST_CAPACITY : w->text_capacity;
  while (capacity - w->n_text < n) capacity *= 2;
  char *text = lt_realloc(c, w->text, w->text_capacity, capacity);
  if (text == NULL) return false;
  w->text = text;
  w->text_capacity = capacity;
  return true;
}

lt_string_entry *lt_string_table_add(lt_ctx *c, lt_string_table *w, const char *text, size_t n,
                                     uint64_t hash, int64_t value) {
  if ((size_t)w->count >= w->n_slots / 2 && !grow(c, w)) return NULL;
  if (w->text_capacity - w->n_text < n + 1 && !grow_text(c, w, n + 1)) return NULL;
  lt_string_entry *word = &w->word[w->count];
  *word = (lt_string_entry){hash, w->n_text, n, value};
  memcpy(w->text + w->n_text, text, n);
  w->text[w->n_text + n] = 0;
  w->n_text += n + 1;
  put(w, w->count++);
  return word;
}

void lt_string_table_clear(lt_string_table *w) {
  if (w->n_slots > 0) memset(w->slot, 0, w->n_slots * sizeof *w->slot);
  w->count = 0;
  w->n_text = 0;
}

void lt_string_table_free(lt_ctx *c, lt_string_table *w) {
  lt_free(c, w->word, (size_t)w->capacity * sizeof *w->word);
  lt_free(c, w->slot, w->n_slots * sizeof *w->slot);
  lt_free(c, w->text, w->text_capacity);
  *w = (lt_string_table){0};
}
