/* runtime/device/pool.c: the caching allocator: one pool a device and ctx.

   Size classes are eighths of powers of two from 512 bytes up. Blocks under 1 MiB are cut from
   arenas of 2 MiB; larger ones are asked of the device one by one. A pool outlives its ctx while
   storages of it live elsewhere. */
#include <stdatomic.h>
#include <string.h>

#include "device/device.h"

enum { CLASSES = 8 * 40, MIN_SHIFT = 9 };
static const size_t LARGE = (size_t)1 << 20, ARENA = (size_t)2 << 20;

typedef struct pool pool;

typedef struct block {
  lt_storage storage;   /* first: a storage is its block */
  size_t capacity;
  int class;
  bool large;
  uint64_t event;       /* last use on another stream than home, 0: none */
  int event_stream;
  struct block *next;   /* in a free list or the return list */
} block;

typedef struct arena {
  struct arena *next;
  char *data;
  size_t used;
} arena;

struct pool {
  lt_device device;
  const lt_device_ops *ops;
  atomic_long users;             /* the ctx, plus live storages */
  _Atomic(block *) returned;     /* freed by other threads */
  block *free_list[CLASSES];
  block *pending;                /* free, but an event of another stream is not done */
  arena *arenas;
  lt_memory_stats stats;
  lt_allocator allocator;        /* outlives the ctx */
};

typedef struct state {
  pool *pools[LT_DEVICE_KINDS][LT_MAX_DEVICES];
  int stream[LT_DEVICE_KINDS][LT_MAX_DEVICES];
  int64_t limit, held;
  void (*exhausted)(lt_ctx *c, void *ud);
  void *exhausted_ud;
} state;

static int class_of(size_t bytes, size_t *capacity) {
  if (bytes < ((size_t)1 << MIN_SHIFT)) bytes = (size_t)1 << MIN_SHIFT;
  int shift = 63 - __builtin_clzll(bytes);
  size_t step = (size_t)1 << (shift - 3);
  size_t eighths = (bytes - ((size_t)1 << shift) + step - 1) / step;
  *capacity = ((size_t)1 << shift) + eighths * step;
  return 8 * (shift - MIN_SHIFT) + (int)eighths;
}

static void *raw(pool *p, void *ptr, size_t old_size, size_t new_size) {
  return p->allocator.fn(p->allocator.ud, ptr, old_size, new_size);
}

static void block_destroy(pool *p, block *b) {
  if (b->large) p->ops->free(p->device.index, b->storage.data, b->capacity);
  raw(p, b, sizeof *b, 0);
}

static void list_destroy(pool *p, block *b) {
  while (b != NULL) {
    block *next = b->next;
    block_destroy(p, b);
    b = next;
  }
}

static void pool_destroy(pool *p) {
  for (int k = 0; k < CLASSES; k++) list_destroy(p, p->free_list[k]);
  list_destroy(p, p->pending);
  list_destroy(p, atomic_exchange(&p->returned, NULL));
  while (p->arenas != NULL) {
    arena *next = p->arenas->next;
    p->ops->free(p->device.index, p->arenas->data, ARENA);
    raw(p, p->arenas, sizeof *p->arenas, 0);
    p->arenas = next;
  }
  raw(p, p, sizeof *p, 0);
}

static void pool_leave(pool *p) {
  if (atomic_fetch_sub_explicit(&p->users, 1, memory_order_acq_rel) == 1) pool_destroy(p);
}

/* Blocks from other threads, and pending ones whose event is done, become free. */
static void pool_drain(pool *p) {
  block *b = atomic_exchange_explicit(&p->returned, NULL, memory_order_acquire);
  block *still = NULL;
  for (int pass = 0; pass < 2; pass++) {
    while (b != NULL) {
      block *next = b->next;
      bool waits = b->event != 0 && p->ops->event_done != NULL &&
                   !p->ops->event_done(p->device.index, b->event_stream, b->event);
      if (pass == 0) p->stats.live_bytes -= (int64_t)b->capacity;
      if (pass == 0) p->stats.cached_bytes += (int64_t)b->capacity;
      block **list = waits ? &still : &p->free_list[b->class];
      b->next = *list;
      *list = b;
      b = next;
    }
    b = pass == 0 ? p->pending : NULL;
  }
  p->pending = still;
}

/* Put a block that nobody holds into its free list. */
static void give(pool *p, block *b) {
  b->next = p->free_list[b->class];
  p->free_list[b->class] = b;
  p->stats.cached_bytes += (int64_t)b->capacity;
}

static void block_drop(lt_ctx *c, lt_storage *s) {
  block *b = (block *)s;
  pool *p = s->owner;
  state *st = c->slot[LT_SLOT_DEVICE];
  bool ours = st != NULL && st->pools[s->device.kind][s->device.index] == p;
  if (ours && b->event == 0) {
    p->stats.live_bytes -= (int64_t)b->capacity;
    give(p, b);
  } else {
    block *head = atomic_load(&p->returned);
    do b->next = head;
    while (!atomic_compare_exchange_weak(&p->returned, &head, b));
  }
  pool_leave(p);
}

static char *arena_cut(state *st, pool *p, size_t bytes) {
  if (p->arenas == NULL || p->arenas->used + bytes > ARENA) {
    if (st->limit > 0 && st->held + (int64_t)ARENA > st->limit) return NULL;
    arena *a = raw(p, NULL, 0, sizeof *a);
    if (a == NULL) return NULL;
    *a = (arena){.data = p->ops->alloc(p->device.index, ARENA), .next = p->arenas};
    if (a->data == NULL) {
      raw(p, a, sizeof *a, 0);
      return NULL;
    }
    p->stats.system_calls++;
    st->held += (int64_t)ARENA;
    p->arenas = a;
  }
  char *data = p->arenas->data + p->arenas->used;
  p->arenas->used += bytes;
  return data;
}

static block *block_new(state *st, pool *p, size_t capacity, int class) {
  bool large = capacity >= LARGE;
  if (large && st->limit > 0 && st->held + (int64_t)capacity > st->limit) return NULL;
  block *b = raw(p, NULL, 0, sizeof *b);
  if (b == NULL) return NULL;
  void *data = large ? p->ops->alloc(p->device.index, capacity) : arena_cut(st, p, capacity);
  if (data == NULL) {
    raw(p, b, sizeof *b, 0);
    return NULL;
  }
  if (large) p->stats.system_calls++, st->held += (int64_t)capacity;
  memset(b, 0, sizeof *b);
  *b = (block){.capacity = capacity, .class = class, .large = large};
  b->storage.data = data;
  return b;
}

/* A cached block of the class, or of the next two for large ones, else a new one. */
static block *block_take(state *st, pool *p, size_t capacity, int class) {
  pool_drain(p);
  int last = capacity >= LARGE && class + 2 < CLASSES ? class + 2 : class;
  for (int k = class; k <= last; k++) {
    block *b = p->free_list[k];
    if (b == NULL) continue;
    p->free_list[k] = b->next;
    p->stats.cached_bytes -= (int64_t)b->capacity;
    return b;
  }
  return block_new(st, p, capacity, class);
}

static void state_drop(lt_ctx *c, void *slot) {
  state *st = slot;
  for (int k = 0; k < LT_DEVICE_KINDS; k++)
    for (int i = 0; i < LT_MAX_DEVICES; i++)
      if (st->pools[k][i] != NULL) {
        lt_device_synchronize(c, (lt_device){(int16_t)k, (int16_t)i});
        pool_leave(st->pools[k][i]);
      }
  c->slot[LT_SLOT_DEVICE] = NULL;
  lt_free(c, st, sizeof *st);
}

static state *state_of(lt_ctx *c) {
  if (c->slot[LT_SLOT_DEVICE] == NULL) {
    c->slot[LT_SLOT_DEVICE] = lt_alloc(c, sizeof(state));
    c->slot_drop[LT_SLOT_DEVICE] = state_drop;
  }
  return c->slot[LT_SLOT_DEVICE];
}

static pool *pool_of(lt_ctx *c, lt_device d) {
  state *st = state_of(c);
  if (st == NULL || st->pools[d.kind][d.index] != NULL)
    return st != NULL ? st->pools[d.kind][d.index] : NULL;
  const lt_device_ops *ops = lt_device_table(c, d);
  if (ops->open != NULL && !ops->open(c)) return NULL;
  pool *p = c->memory.allocator.fn(c->memory.allocator.ud, NULL, 0, sizeof *p);
  if (p == NULL) {
    lt_fail(c, LT_EMEMORY, "%s%sout of memory: no room for a pool on %s", lt_op_name(c),
            lt_op_colon(c), ops->name);
    return NULL;
  }
  memset(p, 0, sizeof *p);
  p->device = d;
  p->ops = ops;
  p->allocator = c->memory.allocator;
  atomic_init(&p->users, 1);
  return st->pools[d.kind][d.index] = p;
}

static block *exhausted(lt_ctx *c, pool *p, size_t bytes, size_t capacity, int class) {
  state *st = state_of(c);
  lt_device_empty_cache(c, p->device);
  if (st->exhausted != NULL) st->exhausted(c, st->exhausted_ud);
  block *b = block_take(st, p, capacity, class);
  if (b == NULL)
    lt_fail(c, LT_EMEMORY,
            "%s%sout of memory on %s: %zu bytes asked, %lld bytes in use, %lld bytes cached",
            lt_op_name(c), lt_op_colon(c), p->ops->name, bytes, (long long)p->stats.live_bytes,
            (long long)p->stats.cached_bytes);
  return b;
}

/* A block that served another stream may still be read there: the current one waits for that. */
static bool change_stream(lt_ctx *c, pool *p, block *b) {
  int from = b->storage.stream, to = lt_stream_current(c, p->device), index = p->device.index;
  b->storage.stream = (int16_t)to;
  return p->ops->launch == NULL || from == to ||
         p->ops->stream_wait(c, index, to, from, p->ops->event_record(c, index, from));
}

lt_storage *lt_storage_new(lt_ctx *c, lt_device d, size_t bytes) {
  pool *p = pool_of(c, d);
  if (p == NULL) return NULL;
  size_t capacity;
  int class = class_of(bytes, &capacity);
  block *b = class < CLASSES ? block_take(state_of(c), p, capacity, class) : NULL;
  if (b == NULL) b = exhausted(c, p, bytes, capacity, class < CLASSES ? class : CLASSES - 1);
  if (b == NULL) return NULL;
  if (!change_stream(c, p, b)) {
    give(p, b);
    return NULL;
  }
  b->storage = (lt_storage){.data = b->storage.data, .bytes = bytes, .device = d,
                            .stream = b->storage.stream, .drop = block_drop, .owner = p,
                            .line = bytes > LARGE ? lt_ctx_line(c) : 0};
  b->event = 0;
  b->next = NULL;
  lt_storage_init(c, &b->storage);
  atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
  p->stats.live_bytes += (int64_t)b->capacity;
  if (p->stats.live_bytes > p->stats.peak_bytes) p->stats.peak_bytes = p->stats.live_bytes;
  return &b->storage;
}

lt_memory_stats lt_device_memory(lt_ctx *c, lt_device d) {
  pool *p = pool_of(c, d);
  if (p == NULL) return (lt_memory_stats){0};
  pool_drain(p);
  return p->stats;
}

void lt_device_reset_peak(lt_ctx *c, lt_device d) {
  pool *p = pool_of(c, d);
  if (p != NULL) p->stats.peak_bytes = p->stats.live_bytes;
}

void lt_device_empty_cache(lt_ctx *c, lt_device d) {
  pool *p = pool_of(c, d);
  if (p == NULL) return;
  lt_device_synchronize(c, d);
  pool_drain(p);
  for (int k = 0; k < CLASSES; k++) {
    block **link = &p->free_list[k];
    while (*link != NULL) {
      block *b = *link;
      if (!b->large) { /* arenas stay */
        link = &b->next;
        continue;
      }
      *link = b->next;
      p->stats.cached_bytes -= (int64_t)b->capacity;
      state_of(c)->held -= (int64_t)b->capacity;
      block_destroy(p, b);
    }
  }
}

void lt_device_set_limit(lt_ctx *c, int64_t bytes) {
  state *st = state_of(c);
  if (st != NULL) st->limit = bytes;
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
  const block *b = (const block *)s;
  return b->event == 0 || b->event_stream == current ||
         ops->stream_wait(c, index, current, b->event_stream, b->event);
}

void lt_stream_used(lt_ctx *c, lt_tensor *t) {
  lt_storage *s = t->storage;
  const lt_device_ops *ops = lt_device_table(c, s->device);
  int current = lt_stream_current(c, s->device);
  if (ops->launch == NULL || s->drop != block_drop || current == s->stream) return;
  block *b = (block *)s;
  b->event = ops->event_record(c, s->device.index, current);
  b->event_stream = current;
}
