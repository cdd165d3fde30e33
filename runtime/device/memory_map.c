/* runtime/device/memory_map.c: lists segments and blocks of a pool.

   Blocks in use are listed by the pool only if they note their script line; neighbours of a large
   block lead to the ends of its segment. */
#include "device/memory_map.h"

#include "device/ctx_devices.h"

typedef struct map {
  lt_memory_row *out;
  int64_t n, count;
} map;

static void add(map *m, lt_memory_row row) {
  if (m->count < m->n) m->out[m->count] = row;
  m->count++;
}

static lt_memory_row row_of(const lt_block *b, lt_memory_use use) {
  lt_memory_row r = {.data = b->storage.data,
                     .bytes = b->capacity,
                     .use = use,
                     .stream = b->storage.write.stream,
                     .is_arena = b->arena != NULL};
  if (b->arena != NULL) {
    r.segment = b->arena->data;
    r.segment_bytes = LT_POOL_ARENA;
    return r;
  }
  const lt_block *first = b;
  while (first->left != NULL) first = first->left;
  r.segment = first->storage.data;
  for (; first != NULL; first = first->right) r.segment_bytes += first->capacity;
  return r;
}

static void add_list(map *m, const lt_block *b, lt_memory_use use) {
  for (; b != NULL; b = b->next) add(m, row_of(b, use));
}

/* Arenas, and what was not cut from them yet. */
static void add_arenas(map *m, const lt_pool *p) {
  for (const lt_arena *a = p->arenas; a != NULL; a = a->next) {
    lt_memory_row r = {.segment = a->data, .segment_bytes = LT_POOL_ARENA, .is_arena = true};
    add(m, r);
    r.data = a->data + a->used;
    r.bytes = LT_POOL_ARENA - a->used;
    r.use = LT_MEMORY_FREE;
    if (r.bytes > 0) add(m, r);
  }
}

/* A storage that was emptied is listed without memory. */
static void add_used(map *m, const lt_pool *p) {
  for (const lt_block *b = p->in_use; b != NULL; b = b->older) {
    if (b->storage.data == NULL) continue;
    lt_memory_row r = row_of(b, LT_MEMORY_USED);
    r.tensor = lt_live_of(b);
    add(m, r);
  }
}

int64_t lt_device_memory_map(lt_ctx *c, lt_device d, lt_memory_row *out, int64_t n) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  lt_pool *p = st != NULL ? st->pools[d.kind][d.index] : NULL;
  map m = {.out = out, .n = n};
  if (p == NULL) return 0;
  lt_pool_drain(c, p);
  add_arenas(&m, p);
  add_used(&m, p);
  add_list(&m, p->pending, LT_MEMORY_PENDING);
  for (int k = 0; k < LT_POOL_CLASSES; k++) add_list(&m, p->free_list[k], LT_MEMORY_FREE);
  for (int beside = 0; beside < 2; beside++)
    for (int k = 0; k < LT_LARGE_CLASSES; k++)
      add_list(&m, p->large.free_list[beside][k], LT_MEMORY_FREE);
  return m.count;
}
