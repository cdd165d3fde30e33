/* runtime/base/threads.h: helper threads on one list, and parallel loops whose chunks do not
   depend on the number of threads. */
#ifndef LT_BASE_THREADS_H
#define LT_BASE_THREADS_H

#include <pthread.h>
#include <signal.h>

#include "base/ctx.h"

/* Run fn(ud, chunk) for each chunk in 0..n_chunks-1 on at most c->threads OpenMP threads.
   Chunks must be independent; their number must not depend on the thread count. What is cancelled
   (lt_is_cancelled) leaves out those that have not begun, and fails. */
void lt_parallel(lt_ctx *c, int64_t n_chunks, void (*fn)(void *ud, int64_t chunk), void *ud);

/* The same for `work` elements of cheap work in all: on the calling thread alone below
   LT_PARALLEL_WORK, where waking the others costs more than they save. */
enum { LT_PARALLEL_WORK = 32768 };
static inline void lt_parallel_work(lt_ctx *c, int64_t work, int64_t n_chunks,
                                    void (*fn)(void *ud, int64_t chunk), void *ud) {
  if (work >= LT_PARALLEL_WORK || lt_is_cancelled(c))
    lt_parallel(c, n_chunks, fn, ud);
  else
    for (int64_t i = 0; i < n_chunks; i++) fn(ud, i);
}

/* A helper thread. lt_thread_start puts it on the process-wide list of this root ctx;
   lt_thread_join takes it off. lt_quiesce asks every thread on the list to pause (its `stop`
   callback must make `fn` return soon) and joins it: called before a fork. */
typedef struct lt_thread lt_thread;
struct lt_thread {
  pthread_t handle;
  const char *name;
  void (*fn)(void *ud);
  void (*stop)(void *ud);
  void *ud;
  bool running;
  bool lost; /* it ran when this process was forked: what it waited for may not be destroyed */
  lt_thread *next;
};
bool lt_thread_start(lt_ctx *c, lt_thread *t); /* fields name, fn, stop, ud set by the caller */
void lt_thread_join(lt_ctx *c, lt_thread *t);
void lt_quiesce(lt_ctx *c);

/* In a child that was forked while threads on the list ran: they are not there. */
void lt_threads_forked(lt_ctx *c);

/* Block signals in the calling thread, but for those of a fault; *before is for
   lt_signals_restore. */
void lt_signals_block(sigset_t *before);
void lt_signals_restore(const sigset_t *before);

enum { LT_MAX_THREADS = 1024 }; /* of one operation, at most */

/* The list itself, made and freed with the root ctx. */
lt_helpers *lt_helpers_new(lt_ctx *c);
void lt_helpers_free(lt_ctx *c, lt_helpers *h);

#endif
