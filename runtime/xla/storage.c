/* runtime/xla/storage.c: addresses of storages, from one range that is reserved and has no memory.

   A class of sizes is a part of the range, cut into pieces of one power of two: so the record of an
   address is found by shifts, also where the address is in the middle of a storage. */
#include "xla/storage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "xla/plugin.h"

enum { LEAST = 8, CLASSES = 32, PART = 40, CHUNK = 1024 };

static char *range;
typedef struct class {
  lt_slot **chunks; /* CHUNK records each, which never move */
  int64_t n, n_chunks;
  int64_t free; /* number of the first, from 1; 0: none */
} class;
static class classes[CLASSES];

static bool reserve(void) {
  if (range != NULL) return true;
  void *p = mmap(NULL, (size_t)CLASSES << PART, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  range = p != MAP_FAILED ? p : NULL;
  return range != NULL;
}

static lt_slot *record(const class *k, int64_t number) {
  return &k->chunks[number / CHUNK][number % CHUNK];
}

/* The number of a record that is not in use; -1: out of memory. */
static int64_t take(class *k, int shift) {
  if (k->free > 0) {
    int64_t number = k->free - 1;
    k->free = record(k, number)->next;
    return number;
  }
  if ((k->n + 1) << shift > (int64_t)1 << PART) return -1;
  if (k->n == k->n_chunks * CHUNK) {
    lt_slot **more = realloc(k->chunks, (size_t)(k->n_chunks + 1) * sizeof *more);
    if (more == NULL) return -1;
    k->chunks = more;
    if ((more[k->n_chunks] = calloc(CHUNK, sizeof(lt_slot))) == NULL) return -1;
    k->n_chunks++;
  }
  return k->n++;
}

void *lt_slot_alloc(size_t bytes) {
  int shift = LEAST;
  while (shift < LEAST + CLASSES - 1 && (size_t)1 << shift < bytes) shift++;
  if ((size_t)1 << shift < bytes || !reserve()) return NULL;
  class *k = &classes[shift - LEAST];
  int64_t number = take(k, shift);
  if (number < 0) return NULL;
  lt_slot *s = record(k, number);
  bool listed = s->listed;
  *s = (lt_slot){.value = -1, .type = -1, .bytes = bytes > 0 ? bytes : 1, .listed = listed};
  return range + ((size_t)(shift - LEAST) << PART) + ((size_t)number << shift);
}

lt_slot *lt_slot_at(const void *address, size_t *offset) {
  size_t at = (size_t)((const char *)address - range);
  if (range == NULL || at >= (size_t)CLASSES << PART) return NULL;
  const class *k = &classes[at >> PART];
  int shift = LEAST + (int)(at >> PART);
  at &= ((size_t)1 << PART) - 1;
  int64_t number = (int64_t)(at >> shift);
  if (number >= k->n || record(k, number)->bytes == 0) return NULL;
  *offset = at & (((size_t)1 << shift) - 1);
  return record(k, number);
}

void lt_slot_free(void *address) {
  size_t offset, at = (size_t)((char *)address - range);
  lt_slot *s = lt_slot_at(address, &offset);
  if (s == NULL) return;
  class *k = &classes[at >> PART];
  lt_leaf_release(s->leaf);
  s->leaf = NULL;
  s->value = -1;
  s->bytes = 0;
  s->next = k->free;
  k->free = 1 + (int64_t)((at & (((size_t)1 << PART) - 1)) >> (LEAST + (at >> PART)));
}

bool lt_slots_spread(lt_ctx *c) {
  bool ok = true;
  for (int k = 0; k < CLASSES; k++) {
    for (int64_t number = 0; number < classes[k].n; number++) {
      const lt_slot *s = record(&classes[k], number);
      if (s->bytes == 0 || s->leaf == NULL) continue;
      int64_t n = (int64_t)(s->bytes / lt_hlo_bytes(s->type));
      ok = lt_leaf_spread(c, s->leaf, s->type, n) && ok;
    }
  }
  return ok;
}
