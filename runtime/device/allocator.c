/* runtime/device/allocator.c: the caching allocator of a ctx: its pools, its limit, its streams. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device/pool.h"

enum { NOTED = 1 << 20 }; /* bytes of storages that note their script line */

typedef struct state {
  lt_pool *pools[LT_DEVICE_KINDS][LT_MAX_DEVICES];
  int stream[LT_DEVICE_KINDS][LT_MAX_DEVICES];
  lt_budget *budget;
  void (*exhausted)(lt_ctx *c, void *ud);
  void *exhausted_ud;
} state;

static void block_drop(lt_ctx *c, lt_storage *s) {
  lt_block *b = (lt_block *)s;
  lt_pool *p = s->owner;
  state *st = c->slot[LT_SLOT_DEVICE];
  bool ours = st != NULL && st->pools[s->device.kind][s->device.index] == p;
  if (ours && b->event == 0) {
    p->stats.live_bytes -= (int64_t)b->capacity;
    lt_pool_give(p, b);
  } else {
    lt_pool_return(p, b);
  }
  lt_pool_leave(p);
}

static void state_drop(lt_ctx *c, void *slot) {
  state *st = slot;
  for (int k = 0; k < LT_DEVICE_KINDS; k++)
    for (int i = 0; i < LT_MAX_DEVICES; i++)
      if (st->pools[k][i] != NULL) {
        lt_device_synchronize(c, (lt_device){(int16_t)k, (int16_t)i});
        lt_pool_leave(st->pools[k][i]);
      }
  c->slot[LT_SLOT_DEVICE] = NULL;
  lt_budget_release(st->budget);
  lt_free(c, st, sizeof *st);
}

/* The ctx's state, made with `budget` (NULL: one of its own). */
static state *state_with(lt_ctx *c, lt_budget *budget) {
  if (c->slot[LT_SLOT_DEVICE] != NULL) return c->slot[LT_SLOT_DEVICE];
  state *st = lt_alloc(c, sizeof *st);
  if (st == NULL) return NULL;
  st->budget = budget != NULL ? lt_budget_retain(budget) : lt_budget_new(&c->memory.allocator);
  if (st->budget == NULL) {
    lt_free(c, st, sizeof *st);
    lt_fail(c, LT_EMEMORY, "out of memory: no room for an allocator");
    return NULL;
  }
  c->slot[LT_SLOT_DEVICE] = st;
  c->slot_drop[LT_SLOT_DEVICE] = state_drop;
  return st;
}

static state *state_of(lt_ctx *c) { return state_with(c, NULL); }

bool lt_device_share_limit(lt_ctx *child) {
  const state *of_root = state_of(child->root);
  return of_root != NULL && state_with(child, of_root->budget) != NULL;
}

static lt_pool *pool_of(lt_ctx *c, lt_device d) {
  state *st = state_of(c);
  if (st == NULL || st->pools[d.kind][d.index] != NULL)
    return st != NULL ? st->pools[d.kind][d.index] : NULL;
  const lt_device_ops *ops = lt_device_table(c, d);
  if (ops->open != NULL && !ops->open(c)) return NULL;
  lt_pool *p = lt_pool_new(&c->memory.allocator, ops, d, st->budget);
  if (p == NULL) {
    lt_fail(c, LT_EMEMORY, "%s%sout of memory: no room for a pool on %s", lt_op_name(c),
            lt_op_colon(c), ops->name);
    return NULL;
  }
  return st->pools[d.kind][d.index] = p;
}

static void trim_all(lt_ctx *c) {
  const state *st = state_of(c);
  for (int k = 0; k < LT_DEVICE_KINDS; k++)
    for (int i = 0; i < LT_MAX_DEVICES; i++)
      if (st->pools[k][i] != NULL) lt_device_empty_cache(c, (lt_device){(int16_t)k, (int16_t)i});
}

/* What the pool has cached, in all sizes, goes back to the device before anything is refused; what
   a collection of the script's garbage lets go as well. */
static lt_block *exhausted(lt_ctx *c, lt_pool *p, size_t bytes) {
  const state *st = state_of(c);
  trim_all(c);
  lt_block *b = lt_pool_take(p, bytes, false);
  if (b != NULL) return b;
  if (st->exhausted != NULL) st->exhausted(c, st->exhausted_ud);
  trim_all(c);
  b = lt_pool_take(p, bytes, true);
  if (b != NULL) return b;
  char limit[48] = "";
  int64_t most = atomic_load(&st->budget->limit);
  if (most > 0) snprintf(limit, sizeof limit, ", the limit is %lld", (long long)most);
  lt_fail(c, LT_EMEMORY,
          "%s%sout of memory on %s: %zu bytes asked, %lld bytes in use, %lld bytes cached%s",
          lt_op_name(c), lt_op_colon(c), p->ops->name, bytes, (long long)p->stats.live_bytes,
          (long long)p->stats.cached_bytes, limit);
  return NULL;
}

/* A block that served another stream may still be read there: the current one waits for that. */
static bool change_stream(lt_ctx *c, lt_pool *p, lt_block *b) {
  int from = b->storage.stream, to = lt_stream_current(c, p->device), index = p->device.index;
  b->storage.stream = (int16_t)to;
  return p->ops->launch == NULL || from == to ||
         p->ops->stream_wait(c, index, to, from, p->ops->event_record(c, index, from));
}

lt_storage *lt_storage_new(lt_ctx *c, lt_device d, size_t bytes) {
  lt_pool *p = pool_of(c, d);
  if (p == NULL) return NULL;
  lt_block *b = lt_pool_take(p, bytes, false);
  if (b == NULL) b = exhausted(c, p, bytes);
  if (b == NULL) return NULL;
  if (!change_stream(c, p, b)) {
    lt_pool_give(p, b);
    return NULL;
  }
  b->storage = (lt_storage){.data = b->storage.data, .bytes = bytes, .device = d,
                            .stream = b->storage.stream, .drop = block_drop, .owner = p,
                            .line = bytes > NOTED ? lt_ctx_line(c) : 0};
  b->event = 0;
  b->next = NULL;
  lt_storage_init(c, &b->storage);
  atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
  p->stats.live_bytes += (int64_t)b->capacity;
  if (p->stats.live_bytes > p->stats.peak_bytes) p->stats.peak_bytes = p->stats.live_bytes;
  return &b->storage;
}

lt_memory_stats lt_device_memory(lt_ctx *c, lt_device d) {
  lt_pool *p = pool_of(c, d);
  if (p == NULL) return (lt_memory_stats){0};
  lt_pool_drain(p);
  return p->stats;
}

void lt_device_reset_peak(lt_ctx *c, lt_device d) {
  lt_pool *p = pool_of(c, d);
  if (p != NULL) p->stats.peak_bytes = p->stats.live_bytes;
}

void lt_device_empty_cache(lt_ctx *c, lt_device d) {
  lt_pool *p = pool_of(c, d);
  if (p == NULL) return;
  lt_device_synchronize(c, d);
  lt_pool_trim(p);
}

void lt_device_set_limit(lt_ctx *c, int64_t bytes) {
  state *st = state_of(c);
  if (st != NULL) atomic_store(&st->budget->limit, bytes);
}

void lt_device_on_exhausted(lt_ctx *c, void (*fn)(lt_ctx *c, void *ud), void *ud) {
  state *st = state_of(c);
  if (st == NULL) return;
  st->exhausted = fn;
  st->exhausted_ud = ud;
}

int lt_stream_current(lt_ctx *c, lt_device d) {
  state *st = c->slot[LT_SLOT_DEVICE];
  return st != NULL ? st->stream[d.kind][d.index] : 0;
}

bool lt_stream_set(lt_ctx *c, lt_device d, int stream) {
  state *st = state_of(c);
  if (st == NULL) return false;
  st->stream[d.kind][d.index] = stream;
  return true;
}

bool lt_stream_use(lt_ctx *c, lt_tensor *t) {
  lt_storage *s = t->storage;
  const lt_device_ops *ops = lt_device_table(c, s->device);
  if (ops->launch == NULL || s->drop != block_drop) return true;
  int current = lt_stream_current(c, s->device);
  if (current == s->stream) return true;
  int index = s->device.index;
  uint64_t made = ops->event_record(c, index, s->stream);
  if (!ops->stream_wait(c, index, current, s->stream, made)) return false;
  /* One event is kept: this stream's will stand for that of the stream before it, too. */
  const lt_block *b = (const lt_block *)s;
  return b->event == 0 || b->event_stream == current ||
         ops->stream_wait(c, index, current, b->event_stream, b->event);
}

void lt_stream_used(lt_ctx *c, lt_tensor *t) {
  lt_storage *s = t->storage;
  const lt_device_ops *ops = lt_device_table(c, s->device);
  int current = lt_stream_current(c, s->device);
  if (ops->launch == NULL || s->drop != block_drop || current == s->stream) return;
  lt_block *b = (lt_block *)s;
  b->event = ops->event_record(c, s->device.index, current);
  b->event_stream = current;
}
