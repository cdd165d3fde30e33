/* runtime/launch/worker_pool.h: workers of a DataLoader: forked processes that read samples, and
   shared memory in which their batches arrive.

   The parent writes an order into a slot (a memfd that both have mapped) and sends the slot's
   number to a worker; the worker writes its answer into the same slot. Answers of a worker come in
   the order of its orders. Tensors of an answer lie in the slot: it is free again when the last of
   them is gone. A worker has one thread. It ends when the parent closes the pool, and at once when
   the parent is gone. */
#ifndef LT_LAUNCH_WORKER_POOL_H
#define LT_LAUNCH_WORKER_POOL_H

#include "tensor/tensor.h"

enum { LT_WORKERS_MAX = 256, LT_WORKER_SLOTS_MAX = 512, LT_WORKER_TEXT = 512 };

typedef struct lt_worker_pool lt_worker_pool;

/* Fork n workers that share `slots` slots; returns in the parent and in each of them. NULL with a
   failure, and no worker. A worker whose setup failed returns with the failure in the ctx. */
lt_worker_pool *lt_worker_pool_new(lt_ctx *c, int n, int slots);

/* From 0; -1 in the parent. */
int lt_worker_id(const lt_worker_pool *p);

/* Whether this process is a worker. */
bool lt_worker_here(void);

/* The parent's side. Only the process that made a pool may use it. */

bool lt_worker_pool_is_own(const lt_worker_pool *p);

/* Send n bytes to a worker; false without a failure when no slot is free. */
bool lt_worker_order(lt_ctx *c, lt_worker_pool *p, int worker, const void *order, size_t n);

typedef enum lt_worker_event {
  LT_WORKER_NOTHING, /* within the time, or a signal came */
  LT_WORKER_ANSWER,
  LT_WORKER_ENDED /* one of them, whichever: see lt_worker_end_text */
} lt_worker_event;

typedef struct lt_worker_answer {
  int slot;
  const char *data;    /* `text` bytes, then the rest */
  size_t text, bytes;  /* bytes: with the rest */
  bool failed;
} lt_worker_answer;

/* Wait for the worker's next answer, which is valid until the next order. */
lt_worker_event lt_worker_wait(lt_ctx *c, lt_worker_pool *p, int worker, int ms,
                               lt_worker_answer *answer);

/* Continue a worker that somebody has stopped. */
void lt_worker_continue(const lt_worker_pool *p, int worker);

/* Whether there is a free slot besides that of the answer. */
bool lt_worker_has_spare(const lt_worker_pool *p, const lt_worker_answer *answer);

/* A tensor in the slot of an answer, `offset` bytes from its beginning; the open frame's. */
lt_tensor *lt_worker_tensor(lt_ctx *c, lt_worker_pool *p, const lt_worker_answer *answer,
                            int64_t offset, lt_dtype dtype, int ndim, const int64_t *size);

/* Answers to what has been ordered so far are dropped when they come. */
void lt_worker_pool_forget(lt_worker_pool *p);

/* "worker 1 of 2 (pid 4711) was ended by SIGKILL (Killed)" of the one that wait found. */
void lt_worker_end_text(const lt_worker_pool *p, char *text, size_t size);

/* Ask the workers to end, each behind the sample that it reads; kill those that have not ended
   after 2 s, in a rank that unwinds after half a second; free the pool. In another process than its
   own: only free it. NULL does nothing. */
void lt_worker_pool_close(lt_ctx *c, lt_worker_pool *p);

/* In a child that has been forked for something else: close all pools' descriptors. */
void lt_worker_pools_forked(void);

/* The worker's side. */

/* Wait for an order, which is valid until the answer; false at the end. */
bool lt_worker_listen(lt_ctx *c, lt_worker_pool *p, int *slot, const void **order, size_t *n);

/* Whether the parent has asked it to end. */
bool lt_worker_is_over(const lt_worker_pool *p);

/* Memory of a slot, of at least `bytes`; its former contents are lost; NULL with a failure. */
char *lt_worker_pool_reserve(lt_ctx *c, lt_worker_pool *p, int slot, size_t bytes);

/* The answer is in the slot, its text first. */
void lt_worker_give(lt_worker_pool *p, int slot, size_t text, size_t bytes, bool failed);

_Noreturn void lt_worker_exit(void);

#endif
