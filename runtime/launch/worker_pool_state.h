/* runtime/launch/worker_pool_state.h: the structs that the files of worker pools share. */
#ifndef LT_LAUNCH_WORKER_POOL_STATE_H
#define LT_LAUNCH_WORKER_POOL_STATE_H

#include <sys/types.h>

#include "launch/worker_pool.h"
#include "launch/worker_slot.h"

typedef struct lt_worker {
  pid_t pid;
  int fd, pidfd;     /* -1: none */
  int64_t pending;   /* orders without an answer */
  int64_t unwanted;  /* those before them, whose answers are dropped */
} lt_worker;

struct lt_worker_pool {
  pid_t owner;
  int id;        /* of this worker; -1 in the parent */
  int n, ended;  /* ended: the worker of which wait found that */
  int life;      /* the parent's end of a pipe; in a worker the other end */
  int fd;        /* a worker's socket */
  lt_worker workers[LT_WORKERS_MAX];
  int n_slots;
  lt_worker_slot *slots[LT_WORKER_SLOTS_MAX];
  bool ordered[LT_WORKER_SLOTS_MAX]; /* a worker has it */
  lt_worker_pool *next;              /* of this process */
};

/* worker_pools.c: the list of pools, and their descriptors. */
void lt_worker_pool_list(lt_worker_pool *p);
void lt_worker_pool_unlist(lt_worker_pool *p);
void lt_worker_pool_close_descriptors(
    lt_worker_pool *p); /* close its descriptors but those of slots */

#endif
