/* runtime/device/pool.h: blocks of device memory, kept for reuse: one pool a device and ctx.

   Blocks under 1 MiB have sizes of classes, eighths of powers of two from 512 bytes up, and are cut
   from arenas of 2 MiB; larger ones are cut from segments, and joined again (segments.h). A pool
   outlives its ctx while storages of it live elsewhere. Of devices with whole storages (backend.h)
   nothing is rounded or kept. */
#ifndef LT_DEVICE_POOL_H
#define LT_DEVICE_POOL_H

#include "device/device.h"

enum { LT_POOL_CLASSES = 8 * 48, LT_LARGE_CLASSES = 8 * 32, LT_POOL_ARENA = 2 << 20 };

/* What a ctx and its children hold, and may hold (0: no limit): of all devices, and of each. */
typedef struct lt_allowance {
  atomic_llong reserved, limit;
} lt_allowance;

typedef struct lt_budget {
  atomic_long users; /* ctxs and pools */
  lt_allowance all, device[LT_DEVICE_KINDS][LT_MAX_DEVICES];
  lt_allocator allocator;
} lt_budget;

lt_budget *lt_budget_new(const lt_allocator *allocator);
lt_budget *lt_budget_retain(lt_budget *g);
void lt_budget_release(lt_budget *g);

typedef struct lt_arena {
  struct lt_arena *next;
  char *data;
  size_t used;
  int blocks, free; /* cut from it; of these, without a user (as of the last trim) */
} lt_arena;

typedef struct lt_block {
  lt_storage storage; /* first: a storage is its block */
  size_t capacity;
  int class;             /* of small ones */
  lt_arena *arena;       /* that it was cut from; NULL: a large one, of a segment */
  struct lt_block *next; /* in a free list or the return list */
  struct lt_block *previous;     /* large: in a free list, */
  struct lt_block *left, *right; /* and its neighbours in its segment */
  bool is_free;                  /* large: in a free list */
  bool is_beside;                /* large: its segment is for copies beside the computation */
  struct lt_block *older, *newer; /* among the large ones in use */
  lt_shape shape;                 /* of these that of the first tensor; ndim -1: of none */
  lt_dtype dtype;
  bool was_emptied;               /* since it is in use (lt_storage_empty) */
} lt_block;

/* Large blocks that are free, by size rounded down; of segments for copies beside the computation
   in lists of their own. Bytes: of all segments, of free blocks, of those that are whole segments,
   and the most in use so far. */
typedef struct lt_large {
  lt_block *free_list[2][LT_LARGE_CLASSES];
  size_t total, unused, whole, most;
  size_t most_then; /* in use when segments were last given back, */
  size_t releases;  /* and how often they were since that last grew */
  bool is_scattered; /* no block was large enough: there is one segment more */
} lt_large;

typedef struct lt_pool {
  lt_device device;
  const lt_device_ops *ops;
  atomic_long users;            /* the ctx, plus live storages */
  _Atomic(lt_block *) returned; /* freed by other threads */
  lt_block *free_list[LT_POOL_CLASSES];
  lt_large large;
  lt_block *pending; /* free, but used on several streams, and not done on one of them */
  lt_arena *arenas;
  lt_block *in_use; /* the newest of those that note their script line */
  lt_memory_stats stats;
  lt_budget *budget;
  lt_allocator allocator; /* outlives the ctx */
} lt_pool;

/* The limit that a pool is under, the one of its device if there are both; 0: none. */
int64_t lt_budget_limit(const lt_pool *p);

/* budget.c: memory of the device within the budget, NULL: there is none; the ctx's own memory. */
void *lt_pool_ask(lt_pool *p, size_t bytes);
void lt_pool_give_back(lt_pool *p, void *data, size_t bytes);
void *lt_pool_raw(lt_pool *p, void *ptr, size_t old_size, size_t new_size);

/* A pool with one user, NULL without memory; the last user to leave frees it. */
lt_pool *lt_pool_new(const lt_allocator *allocator, const lt_device_ops *ops, lt_device d,
                     lt_budget *g);
void lt_pool_leave(lt_ctx *c, lt_pool *p);

/* A block for `bytes`: a cached one, else a new one; NULL when there is no memory. Its storage
   keeps the order of the work on it: its next writer waits. */
typedef enum lt_take {
  LT_TAKE_FIT,
  LT_TAKE_ANY, /* one that is far too large will do as well */
  LT_TAKE_IDLE /* only one on which nothing is left to run: its writer waits for nothing */
} lt_take;
lt_block *lt_pool_take(lt_ctx *c, lt_pool *p, size_t bytes, lt_take how);

/* A block that notes its script line is listed while it is in use. */
void lt_pool_list(lt_pool *p, lt_block *b);
void lt_pool_unlist(lt_pool *p, lt_block *b);

/* Nobody holds the block any more: to its owner's thread, and to any other's. */
void lt_pool_give(lt_ctx *c, lt_pool *p, lt_block *b);
void lt_pool_return(lt_pool *p, lt_block *b);

/* The memory of a block that is in use, and the order of the work on it, goes back to the pool: the
   block is in use without any. The reverse: `from`, just taken, ends. */
bool lt_pool_give_memory(lt_ctx *c, lt_pool *p, lt_block *b);
void lt_pool_take_memory(lt_pool *p, lt_block *b, lt_block *from);

/* Blocks that other threads gave become free, or pending. */
void lt_pool_drain(lt_ctx *c, lt_pool *p);

/* Give the device back what no storage uses: large blocks, and arenas of free blocks alone. */
void lt_pool_trim(lt_ctx *c, lt_pool *p);

#endif
