/* runtime/launch/worker_pools.c: the open pools of workers of this process. */
#include <pthread.h>
#include <unistd.h>

#include "launch/worker_pool_state.h"

/* A child must not keep the ends by which their workers see that the
   parent is gone. */
static lt_worker_pool *pools;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void lt_worker_pool_list(lt_worker_pool *p) {
  pthread_mutex_lock(&lock);
  p->next = pools;
  pools = p;
  pthread_mutex_unlock(&lock);
}

void lt_worker_pool_unlist(lt_worker_pool *p) {
  pthread_mutex_lock(&lock);
  lt_worker_pool **link = &pools;
  while (*link != NULL && *link != p) link = &(*link)->next;
  if (*link == p) *link = p->next;
  pthread_mutex_unlock(&lock);
}

static void let_go(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void lt_worker_pool_close_descriptors(lt_worker_pool *p) {
  for (int k = 0; k < p->n; k++) {
    let_go(&p->workers[k].fd);
    let_go(&p->workers[k].pidfd);
  }
  let_go(&p->life);
  let_go(&p->fd);
}

void lt_worker_pools_forked(void) {
  pthread_mutex_init(&lock, NULL); /* another thread may have held it */
  for (lt_worker_pool *p = pools; p != NULL; p = p->next) lt_worker_pool_close_descriptors(p);
  pools = NULL;
}
