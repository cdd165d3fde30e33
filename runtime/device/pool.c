/* runtime/device/pool.c: blocks and arenas, their reuse and their return to the device.

   Sizes of small blocks are rounded up to eighths of a power of two, so that a block serves the
   next request of about its size and an eighth is wasted at most; they are cut from arenas, which
   are asked of the device 2 MiB at a time. Large ones: segments.c. */
#include "device/pool.h"

#include <stdatomic.h>
#include <string.h>

#include "device/fake.h"
#include "device/segments.h"
#include "device/stream.h"

enum { MIN_SHIFT = 9 };
static const size_t LARGE = (size_t)1 << 20;

/* Making and ending. */

lt_pool *lt_pool_new(const lt_allocator *allocator, const lt_device_ops *ops, lt_device d,
                     lt_budget *g) {
  lt_pool *p = allocator->fn(allocator->ud, NULL, 0, sizeof *p);
  if (p == NULL) return NULL;
  memset(p, 0, sizeof *p);
  p->device = d;
  p->ops = ops;
  p->allocator = *allocator;
  p->budget = lt_budget_retain(g);
  atomic_init(&p->users, 1);
  return p;
}

static bool is_large(const lt_block *b) { return b->arena == NULL; }

/* Small ones: their memory is the arena's. */
static void list_destroy(lt_pool *p, lt_block *b) {
  while (b != NULL) {
    lt_block *next = b->next;
    if (is_large(b))
      lt_segments_give(p, b);
    else
      lt_pool_raw(p, b, sizeof *b, 0);
    b = next;
  }
}

static void arena_destroy(lt_pool *p, lt_arena *a) {
  lt_pool_give_back(p, a->data, LT_POOL_ARENA);
  lt_pool_raw(p, a, sizeof *a, 0);
}

static void pool_destroy(lt_pool *p) {
  for (int k = 0; k < LT_POOL_CLASSES; k++) list_destroy(p, p->free_list[k]);
  list_destroy(p, p->pending);
  lt_segments_trim(p);
  while (p->arenas != NULL) {
    lt_arena *next = p->arenas->next;
    arena_destroy(p, p->arenas);
    p->arenas = next;
  }
  lt_budget_release(p->budget);
  lt_pool_raw(p, p, sizeof *p, 0);
}

/* What was issued on free blocks runs before they go: streams of other devices read them, too. */
static void wait_for_list(lt_ctx *c, lt_block *b) {
  for (; b != NULL; b = b->next) lt_order_host(c, &b->storage, true);
}

static void wait_for_free(lt_ctx *c, lt_pool *p) {
  if (p->ops->launch == NULL) return;
  p->ops->synchronize(c, p->device.index);
  for (int k = 0; k < LT_POOL_CLASSES; k++) wait_for_list(c, p->free_list[k]);
  for (int k = 0; k < LT_LARGE_CLASSES; k++) {
    wait_for_list(c, p->large.free_list[0][k]);
    wait_for_list(c, p->large.free_list[1][k]);
  }
  wait_for_list(c, p->pending);
}

void lt_pool_leave(lt_ctx *c, lt_pool *p) {
  if (atomic_fetch_sub_explicit(&p->users, 1, memory_order_acq_rel) != 1) return;
  lt_pool_drain(c, p);
  wait_for_free(c, p);
  pool_destroy(p);
}

/* Giving. */

static void set_free(lt_ctx *c, lt_pool *p, lt_block *b) {
  if (p->ops->for_specs) lt_fake_freed(c, &b->storage, b->capacity);
  if (is_large(b)) {
    lt_segments_give(p, b);
    return;
  }
  b->next = p->free_list[b->class];
  p->free_list[b->class] = b;
}

/* Whoever writes first into a free block waits for all work on it. So that this seldom means
   another stream, one that several streams have used is pending till it is done on all. */
void lt_pool_give(lt_ctx *c, lt_pool *p, lt_block *b) {
  lt_object *made = b->storage.made;
  b->storage.made = NULL;
  lt_release(c, made);
  if (p->ops->whole_storages && b->storage.away == NULL) {
    if (b->storage.data != NULL) lt_pool_give_back(p, b->storage.data, b->capacity);
    lt_pool_raw(p, b, sizeof *b, 0);
    return;
  }
  if (b->storage.away != NULL) {
    lt_free(c, b->storage.away, strlen(b->storage.away) + 1);
    lt_pool_raw(p, b, sizeof *b, 0);
    return;
  }
  p->stats.cached_bytes += (int64_t)b->capacity;
  if (p->ops->launch == NULL || lt_order_single(&b->storage)) {
    set_free(c, p, b);
    return;
  }
  b->next = p->pending;
  p->pending = b;
}

/* Memory goes along with the record of the work that still uses it (write, reads): whoever has it
   next waits for that. */
static void move_memory(lt_block *to, lt_block *from) {
  to->storage.data = from->storage.data;
  to->storage.write = from->storage.write;
  memcpy(to->storage.reads, from->storage.reads, sizeof to->storage.reads);
  to->capacity = from->capacity;
  to->class = from->class;
  to->arena = from->arena;
  to->is_beside = from->is_beside;
  to->left = from->left;
  to->right = from->right;
  if (to->left != NULL) to->left->right = to;
  if (to->right != NULL) to->right->left = to;
}

/* A storage without memory: its bytes go to the pool in a block of their own, and the storage keeps
   its identity, so that tensors and views of it are valid again after lt_storage_fill. This is how
   sharded parameters release what was gathered. */
bool lt_pool_give_memory(lt_ctx *c, lt_pool *p, lt_block *b) {
  lt_block none = {0}, *given = lt_pool_raw(p, NULL, 0, sizeof *given);
  if (given == NULL) return lt_fail(c, LT_EMEMORY, "out of memory: cannot empty a storage");
  memset(given, 0, sizeof *given);
  given->storage.device = p->device;
  move_memory(given, b);
  move_memory(b, &none);
  p->stats.live_bytes -= (int64_t)given->capacity;
  lt_pool_give(c, p, given);
  return true;
}

void lt_pool_take_memory(lt_pool *p, lt_block *b, lt_block *from) {
  move_memory(b, from);
  lt_pool_raw(p, from, sizeof *from, 0);
  p->stats.live_bytes += (int64_t)b->capacity;
  if (p->stats.live_bytes > p->stats.peak_bytes) p->stats.peak_bytes = p->stats.live_bytes;
}

void lt_pool_list(lt_pool *p, lt_block *b) {
  b->newer = NULL;
  b->older = p->in_use;
  if (b->older != NULL) b->older->newer = b;
  p->in_use = b;
}

void lt_pool_unlist(lt_pool *p, lt_block *b) {
  if (p->in_use == b) p->in_use = b->older;
  if (b->older != NULL) b->older->newer = b->newer;
  if (b->newer != NULL) b->newer->older = b->older;
  b->older = b->newer = NULL;
}

void lt_pool_return(lt_pool *p, lt_block *b) {
  /* The device learns at once that a whole storage ends; what remains is the block. */
  if (p->ops->whole_storages && b->storage.data != NULL) {
    lt_pool_give_back(p, b->storage.data, b->capacity);
    b->storage.data = NULL;
  }
  /* A stack that only grows until its owner takes all of it by one exchange: nobody pops a single
     node, so that the ABA problem cannot come up (R. Treiber, 1986). */
  lt_block *head = atomic_load(&p->returned);
  do b->next = head;
  while (!atomic_compare_exchange_weak(&p->returned, &head, b));
}

static void drain_pending(lt_ctx *c, lt_pool *p) {
  for (lt_block **link = &p->pending; *link != NULL;) {
    lt_block *b = *link;
    if (!lt_order_done(&b->storage)) {
      link = &b->next;
      continue;
    }
    *link = b->next;
    set_free(c, p, b);
  }
}

void lt_pool_drain(lt_ctx *c, lt_pool *p) {
  /* The usual case, without a locked instruction; a push that is missed is found the next time. */
  if (atomic_load_explicit(&p->returned, memory_order_relaxed) == NULL) return;
  /* Acquire, with the pushes' release: what the other thread wrote to the block is seen here. */
  lt_block *b = atomic_exchange_explicit(&p->returned, NULL, memory_order_acquire);
  while (b != NULL) {
    lt_block *next = b->next;
    p->stats.live_bytes -= (int64_t)b->capacity;
    lt_pool_unlist(p, b);
    lt_pool_give(c, p, b);
    b = next;
  }
}

/* Destroy the free blocks whose arena has no other. */
static void trim_list(lt_pool *p, lt_block **link) {
  while (*link != NULL) {
    lt_block *b = *link;
    if (b->arena->free < b->arena->blocks) {
      link = &b->next;
      continue;
    }
    *link = b->next;
    p->stats.cached_bytes -= (int64_t)b->capacity;
    lt_pool_raw(p, b, sizeof *b, 0);
  }
}

/* Returns to the device what is cached, as torch.cuda.empty_cache does: the segments and the arenas
   of which all blocks are free, which it counts first. */
void lt_pool_trim(lt_ctx *c, lt_pool *p) {
  lt_pool_drain(c, p);
  wait_for_free(c, p);
  drain_pending(c, p);
  for (lt_arena *a = p->arenas; a != NULL; a = a->next) a->free = 0;
  for (int k = 0; k < LT_POOL_CLASSES; k++)
    for (lt_block *b = p->free_list[k]; b != NULL; b = b->next) b->arena->free++;
  for (int k = 0; k < LT_POOL_CLASSES; k++) trim_list(p, &p->free_list[k]);
  lt_segments_trim(p);
  for (lt_arena **link = &p->arenas; *link != NULL;) {
    lt_arena *a = *link;
    if (a->free < a->blocks) {
      link = &a->next;
      continue;
    }
    *link = a->next;
    arena_destroy(p, a);
  }
}

/* Taking. */

/* Number of the list of sizes, and its size. 8 classes for each power of two, the first for up to
   512 bytes: kernels read vectors, so blocks are aligned, and rounding costs an eighth at most,
   where powers of two alone would waste up to a half. */
static int class_of(size_t bytes, size_t *capacity) {
  if (bytes < ((size_t)1 << MIN_SHIFT)) bytes = (size_t)1 << MIN_SHIFT;
  int shift = 63 - __builtin_clzll(bytes);
  size_t step = (size_t)1 << (shift - 3);
  size_t eighths = (bytes - ((size_t)1 << shift) + step - 1) / step;
  *capacity = ((size_t)1 << shift) + eighths * step;
  return 8 * (shift - MIN_SHIFT) + (int)eighths;
}

static bool arena_new(lt_pool *p) {
  lt_arena *a = lt_pool_raw(p, NULL, 0, sizeof *a);
  if (a == NULL) return false;
  *a = (lt_arena){.data = lt_pool_ask(p, LT_POOL_ARENA), .next = p->arenas};
  if (a->data == NULL) {
    lt_pool_raw(p, a, sizeof *a, 0);
    return false;
  }
  p->arenas = a;
  return true;
}

/* By moving a pointer: blocks of an arena are never joined again, they go back through the lists.
   The arena itself is returned once all of its blocks are free (lt_pool_trim). */
static char *arena_cut(lt_pool *p, size_t bytes) {
  if ((p->arenas == NULL || p->arenas->used + bytes > LT_POOL_ARENA) && !arena_new(p)) return NULL;
  char *data = p->arenas->data + p->arenas->used;
  p->arenas->used += bytes;
  p->arenas->blocks++;
  return data;
}

static lt_block *block_new(lt_pool *p, size_t capacity, int class) {
  bool whole = p->ops->whole_storages;
  lt_block *b = lt_pool_raw(p, NULL, 0, sizeof *b);
  if (b == NULL) return NULL;
  void *data = whole ? lt_pool_ask(p, capacity) : arena_cut(p, capacity);
  if (data == NULL) {
    lt_pool_raw(p, b, sizeof *b, 0);
    return NULL;
  }
  memset(b, 0, sizeof *b);
  *b = (lt_block){.capacity = capacity, .class = class, .arena = whole ? NULL : p->arenas};
  b->storage.data = data;
  return b;
}

static lt_block *take_cached(lt_pool *p, int first, int last, lt_take how) {
  /* The last freed first: it is the likeliest to be in the cache still. */
  for (int k = first; k <= last && k < LT_POOL_CLASSES; k++)
    for (lt_block **link = &p->free_list[k]; *link != NULL; link = &(*link)->next) {
      lt_block *b = *link;
      if (how == LT_TAKE_IDLE && !lt_order_done(&b->storage)) continue;
      *link = b->next;
      p->stats.cached_bytes -= (int64_t)b->capacity;
      return b;
    }
  return NULL;
}

static lt_block *take_large(lt_ctx *c, lt_pool *p, size_t bytes, lt_take how) {
  lt_block *b = lt_segments_find(c, p, bytes, how);
  if (b == NULL && p->pending != NULL) {
    drain_pending(c, p);
    b = lt_segments_find(c, p, bytes, how);
  }
  return b != NULL ? b : lt_segments_new(c, p, bytes, how);
}

lt_block *lt_pool_take(lt_ctx *c, lt_pool *p, size_t bytes, lt_take how) {
  size_t capacity;
  int class = class_of(bytes, &capacity);
  if (class >= LT_POOL_CLASSES) return NULL;
  lt_pool_drain(c, p);
  if (p->ops->whole_storages) return block_new(p, bytes, class);
  if (capacity >= LARGE) return take_large(c, p, bytes, how);
  int last = how == LT_TAKE_ANY ? LT_POOL_CLASSES - 1 : class;
  lt_block *b = take_cached(p, class, last, how);
  /* Only when nothing is free: asking the device about each of them takes time. */
  if (b == NULL && p->pending != NULL) {
    drain_pending(c, p);
    b = take_cached(p, class, last, how);
  }
  if (b == NULL && how == LT_TAKE_ANY) b = lt_segments_find(c, p, bytes, how);
  return b != NULL ? b : block_new(p, capacity, class);
}
