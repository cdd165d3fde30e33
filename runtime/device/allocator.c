/* runtime/device/allocator.c: the caching allocator of a ctx: its pools, its limit, its streams.

   As PyTorch's: freed blocks stay in lists by size, as a device's own allocator takes
   microseconds to milliseconds and may wait for all work. A block may be used again by work that
   is issued after its last use on the same stream, without a wait. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/ctx_devices.h"
#include "device/wait.h"

typedef lt_device_state state;

enum {
  NOTED = 1 << 20, /* bytes of storages that note their script line and shape */
  FRESH = offsetof(lt_storage, bytes), LASTING = offsetof(lt_storage, write)
};

/* The last reference may go in another ctx, or after its own has ended: such blocks go to the
   pool's list of returned ones, which any thread may push to. */
static void block_drop(lt_ctx *c, lt_storage *s) {
  lt_block *b = (lt_block *)s;
  lt_pool *p = s->owner;
  const state *st = c->slot[LT_SLOT_DEVICE];
  if (st != NULL && st->pools[s->device.kind][s->device.index] == p) {
    p->stats.live_bytes -= (int64_t)b->capacity;
    lt_pool_unlist(p, b);
    lt_pool_give(c, p, b);
  } else {
    lt_pool_return(p, b);
  }
  lt_pool_leave(c, p);
}

/* Streams go back with all their work done: what they read and write is about to go. */
static void streams_return(state *st, lt_device d) {
  lt_device_streams *own = &st->streams[d.kind][d.index];
  for (int role = 0; role < LT_STREAM_ROLES; role++)
    if (own->role[role] != NULL) lt_stream_return(d, (lt_stream_role)role, own->role[role]);
  for (int k = 0; k < LT_STREAMS; k++)
    if (own->scripts[k] != NULL) lt_stream_return(d, LT_STREAM_COMPUTE, own->scripts[k]);
}

static void state_drop(lt_ctx *c, void *slot) {
  state *st = slot;
  lt_device_synchronize_all(c);
  for (int k = 0; k < st->n_open; k++) {
    streams_return(st, st->open[k]->device);
    lt_pool_leave(c, st->open[k]);
  }
  c->slot[LT_SLOT_DEVICE] = NULL;
  lt_budget_release(st->budget);
  lt_free(c, st, sizeof *st);
}

static void settle(lt_ctx *c) { lt_device_synchronize_all(c); }

static bool is_on(const char *setting) {
  const char *text = getenv(setting);
  return text != NULL && text[0] != 0 && strcmp(text, "0") != 0;
}

/* The ctx's state, made with `budget` (NULL: one of its own). */
static state *state_with(lt_ctx *c, lt_budget *budget) {
  if (c->slot[LT_SLOT_DEVICE] != NULL) return c->slot[LT_SLOT_DEVICE];
  state *st = lt_alloc(c, sizeof *st);
  if (st == NULL) return NULL;
  st->budget = budget != NULL ? lt_budget_retain(budget) : lt_budget_new(&c->memory.allocator);
  if (st->budget == NULL) {
    lt_free(c, st, sizeof *st);
    lt_fail(c, LT_EMEMORY, "out of memory: cannot create an allocator");
    return NULL;
  }
  st->waits = is_on("LTRAIN_CUDA_SYNC");
  c->slot[LT_SLOT_DEVICE] = st;
  c->slot_drop[LT_SLOT_DEVICE] = state_drop;
  c->settle = settle;
  return st;
}

static state *state_of(lt_ctx *c) { return state_with(c, NULL); }
lt_device_state *lt_device_state_of(lt_ctx *c) { return state_of(c); }

/* What a helper thread's ctx allocates counts in the budget of its root: the limit is one for
   all. */
bool lt_device_share_limit(lt_ctx *child) {
  const state *of_root = state_of(child->root);
  return of_root != NULL && state_with(child, of_root->budget) != NULL;
}

/* Kinds that this process has used; that a parent had used, so that it cannot. */
static atomic_bool used[LT_DEVICE_KINDS], lost[LT_DEVICE_KINDS];

bool lt_device_used(lt_device d) { return atomic_load(&used[d.kind]); }

const char *lt_device_used_without_forks(void) {
  for (int k = 0; k < lt_device_kind_count(); k++)
    if (atomic_load(&used[k]) && !lt_device_kinds[k]->forks) return lt_device_kinds[k]->name;
  return NULL;
}

/* Pools and streams of the parent are left as they are: a driver that does not survive a fork could
   not free them here. */
static bool forget(state *st, int kind) {
  int n = 0;
  for (int k = 0; k < st->n_open; k++)
    if (st->open[k]->device.kind != kind) st->open[n++] = st->open[k];
  st->n_open = n;
  memset(st->pools[kind], 0, sizeof st->pools[kind]);
  memset(st->streams[kind], 0, sizeof st->streams[kind]);
  return true;
}

void lt_device_forked(lt_ctx *c) {
  state *st = c->slot[LT_SLOT_DEVICE];
  for (int k = 0; k < lt_device_kind_count(); k++)
    if (atomic_load(&used[k]) && !lt_device_kinds[k]->forks)
      atomic_store(&lost[k], st == NULL || forget(st, k));
}

static lt_pool *pool_new(lt_ctx *c, state *st, lt_device d) {
  const lt_device_ops *ops = lt_device_table(c, d);
  if (atomic_load(&lost[d.kind])) {
    lt_fail(c, LT_EDEVICE, "%s%s%s cannot be used here: the process that this one was forked from "
            "had used it", lt_op_name(c), lt_op_colon(c), ops->name);
    return NULL;
  }
  atomic_store(&used[d.kind], true);
  if (ops->open != NULL && !ops->open(c, d.index)) return NULL;
  /* What has no data counts towards no limit. */
  lt_budget *own = ops->no_data ? lt_budget_new(&c->memory.allocator) : NULL;
  lt_pool *p = ops->no_data && own == NULL ? NULL
               : lt_pool_new(&c->memory.allocator, ops, d, own != NULL ? own : st->budget);
  lt_budget_release(own);
  if (p == NULL) {
    lt_fail(c, LT_EMEMORY, "%s%sout of memory: cannot create a pool on %s", lt_op_name(c),
            lt_op_colon(c), ops->name);
    return NULL;
  }
  st->open[st->n_open++] = p;
  return st->pools[d.kind][d.index] = p;
}

static lt_pool *pool_of(lt_ctx *c, lt_device d) {
  state *st = state_of(c);
  if (st == NULL) return NULL;
  lt_pool *p = st->pools[d.kind][d.index];
  return p != NULL ? p : pool_new(c, st, d);
}

lt_device lt_device_default(const lt_ctx *c) {
  const state *st = c->slot[LT_SLOT_DEVICE];
  if (c->modes.on_device) return c->modes.device;
  return st != NULL ? st->usual : LT_CPU_DEVICE;
}

bool lt_device_set_default(lt_ctx *c, lt_device d) {
  state *st = state_of(c);
  if (st != NULL) st->usual = d;
  return st != NULL;
}

bool lt_device_set_current(lt_ctx *c, lt_device d) {
  state *st = state_of(c);
  if (st != NULL) st->current[d.kind] = d.index;
  return st != NULL;
}

bool lt_device_open(lt_ctx *c, lt_device d) { return pool_of(c, d) != NULL; }

void lt_device_empty_caches(lt_ctx *c) {
  const state *st = c->slot[LT_SLOT_DEVICE];
  if (st == NULL || st->captures != NULL) return; /* it would wait for the device */
  for (int k = 0; k < st->n_open; k++) lt_pool_trim(c, st->open[k]);
}

/* Finalizers may run operations, which are launches of their own: where memory ran out within one
   (scratch), it goes on afterwards as it was. */
static void collect_garbage(lt_ctx *c, state *st) {
  lt_launch outer = st->launch;
  if (st->exhausted == NULL) return;
  st->launch.is_open = false;
  st->exhausted(c, st->exhausted_ud);
  st->launch = outer;
}

/* What the pool has cached, in all sizes, goes back to the device before anything is refused; what
   a collection of the script's garbage lets go as well. */
static lt_block *exhausted(lt_ctx *c, lt_pool *p, size_t bytes) {
  state *st = state_of(c);
  lt_device_empty_caches(c);
  lt_block *b = lt_pool_take(c, p, bytes, LT_TAKE_FIT);
  if (b != NULL) return b;
  /* In this order: collecting the script's garbage takes the longest, and mostly the caches are
     enough. */
  collect_garbage(c, st);
  lt_device_empty_caches(c);
  /* Now also a block that is far too large: wasting memory is better than an error. */
  b = lt_pool_take(c, p, bytes, LT_TAKE_ANY);
  if (b != NULL) return b;
  lt_fail_exhausted(c, p, bytes);
  return NULL;
}

/* Blocks were last used by the compute stream mostly, for which a copy that is to run beside it
   would wait. */
static lt_take take_for(const lt_ctx *c, lt_device d) {
  const state *st = c->slot[LT_SLOT_DEVICE];
  const lt_device_streams *own = &st->streams[d.kind][d.index];
  bool beside = own->current != NULL && own->current == own->role[LT_STREAM_COPY];
  return beside ? LT_TAKE_IDLE : LT_TAKE_FIT;
}

/* Whether a new storage notes its script line and is listed. Small ones come by the
   thousand in a step; the largest are what a message about memory lists. */
static bool is_noted(const lt_ctx *c, size_t bytes) {
  return bytes > NOTED || ((const state *)c->slot[LT_SLOT_DEVICE])->notes_all;
}

void lt_device_note_all(lt_ctx *c, bool on) {
  state *st = state_of(c);
  if (st != NULL) st->notes_all = on;
}

/* A free block, or new memory; where there is none left `exhausted` collects garbage, returns
   cached blocks and tries again. */
static lt_block *take_block(lt_ctx *c, lt_pool *p, size_t bytes) {
  lt_block *b = lt_pool_take(c, p, bytes, take_for(c, p->device));
  return b != NULL ? b : exhausted(c, p, bytes);
}

lt_storage *lt_storage_new(lt_ctx *c, lt_device d, size_t bytes) {
  lt_pool *p = pool_of(c, d);
  if (p == NULL) return NULL;
  lt_block *b = take_block(c, p, bytes);
  if (b == NULL) return NULL;
  lt_storage *s = &b->storage;
  memset((char *)s + FRESH, 0, LASTING - FRESH); /* what orders work on the memory stays */
  s->bytes = bytes;
  s->device = d;
  s->drop = block_drop;
  s->owner = p;
  bool noted = is_noted(c, bytes);
  s->line = noted ? lt_ctx_line(c) : 0;
  s->writer = c->op;
  b->shape.ndim = -1;
  b->was_emptied = false;
  if (noted) lt_pool_list(p, b);
  b->next = NULL;
  lt_storage_init(c, s);
  /* Relaxed: the caller has the pool, so it cannot go meanwhile; only the last decrement orders. */
  atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
  p->stats.live_bytes += (int64_t)b->capacity;
  if (p->stats.live_bytes > p->stats.peak_bytes) p->stats.peak_bytes = p->stats.live_bytes;
  return s;
}

lt_host_source lt_device_set_host_source(lt_ctx *c, lt_host_source source) {
  state *st = state_of(c);
  if (st == NULL) return (lt_host_source){0};
  lt_host_source before = st->host_source;
  st->host_source = source;
  return before;
}

/* The memory of a tensor. */
static lt_storage *new_memory(lt_ctx *c, lt_device d, size_t bytes) {
  const state *st = c->slot[LT_SLOT_DEVICE];
  if (st == NULL || st->host_source.make == NULL || !lt_device_equal(d, LT_CPU_DEVICE) ||
      bytes < st->host_source.least)
    return lt_storage_new(c, d, bytes);
  return st->host_source.make(c, st->host_source.ud, bytes);
}

bool lt_storage_empty(lt_ctx *c, lt_storage *s, const char *why) {
  const state *st = c->slot[LT_SLOT_DEVICE];
  lt_pool *p = st != NULL ? st->pools[s->device.kind][s->device.index] : NULL;
  if (p == NULL || s->drop != block_drop || s->owner != p)
    return lt_fail(c, LT_EARG, "storage: cannot be emptied: its memory is not of this pool");
  if (s->away != NULL) return true;
  size_t size = strlen(why) + 1;
  char *text = lt_alloc(c, size);
  if (text == NULL || !lt_pool_give_memory(c, p, (lt_block *)s)) {
    lt_free(c, text, size);
    return false;
  }
  s->away = memcpy(text, why, size);
  ((lt_block *)s)->was_emptied = true;
  return true;
}

bool lt_storage_was_emptied(const lt_storage *s) {
  return s->drop == block_drop && ((const lt_block *)s)->was_emptied;
}

bool lt_storage_fill(lt_ctx *c, lt_storage *s) {
  if (s->away == NULL) return lt_ok(c);
  lt_block *b = take_block(c, s->owner, s->bytes);
  if (b == NULL) return false;
  lt_pool_take_memory(s->owner, (lt_block *)s, b);
  lt_free(c, s->away, strlen(s->away) + 1);
  s->away = NULL;
  return true;
}

static void note_shape(lt_block *b, lt_dtype dtype, int ndim, const int64_t *size) {
  b->dtype = dtype;
  b->shape.ndim = ndim;
  for (int i = 0; i < ndim; i++) b->shape.size[i] = size[i];
}

lt_tensor *lt_tensor_empty(lt_ctx *c, lt_device d, lt_dtype dtype, int ndim, const int64_t *size) {
  if (!lt_ok(c) || !lt_shape_check(c, ndim, size)) return NULL;
  int64_t n = 1;
  for (int i = 0; i < ndim; i++) n *= size[i];
  lt_storage *s = new_memory(c, d, (size_t)n * lt_dtype_size(dtype));
  if (s == NULL) return NULL;
  if (s->drop == block_drop && is_noted(c, s->bytes)) note_shape((lt_block *)s, dtype, ndim, size);
  lt_tensor *t = lt_tensor_make(c, s, dtype, ndim, size, NULL, 0);
  lt_storage_release(c, s);
  return t;
}

lt_memory_stats lt_device_memory(lt_ctx *c, lt_device d) {
  lt_pool *p = pool_of(c, d);
  if (p == NULL) return (lt_memory_stats){0};
  lt_pool_drain(c, p);
  return p->stats;
}

int64_t lt_device_live_bytes(lt_ctx *c) {
  const state *st = c->slot[LT_SLOT_DEVICE];
  int64_t live = 0;
  for (int k = 0; st != NULL && k < st->n_open; k++) {
    if (st->open[k]->ops->no_data) continue;
    lt_pool_drain(c, st->open[k]);
    live += st->open[k]->stats.live_bytes;
  }
  return live;
}

void lt_device_reset_peaks(lt_ctx *c) {
  state *st = c->slot[LT_SLOT_DEVICE];
  for (int k = 0; st != NULL && k < st->n_open; k++)
    st->open[k]->stats.peak_bytes = st->open[k]->stats.live_bytes;
}

void lt_device_set_limit(lt_ctx *c, int64_t bytes) {
  state *st = state_of(c);
  if (st != NULL) atomic_store(&st->budget->all.limit, bytes);
}

void lt_device_limit_one(lt_ctx *c, lt_device d, int64_t bytes) {
  state *st = state_of(c);
  if (st != NULL) atomic_store(&st->budget->device[d.kind][d.index].limit, bytes);
}

void lt_device_on_exhausted(lt_ctx *c, void (*fn)(lt_ctx *c, void *ud), void *ud) {
  state *st = state_of(c);
  if (st == NULL) return;
  st->exhausted = fn;
  st->exhausted_ud = ud;
}

void lt_wait_set_watch(lt_ctx *c, lt_wait_watch watch) {
  lt_device_state *st =
      watch.look != NULL ? lt_device_state_of(c) : (lt_device_state *)c->slot[LT_SLOT_DEVICE];
  if (st != NULL) st->watch = watch;
}
