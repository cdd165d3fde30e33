/* runtime/launch/worker_pool.c: requests to and answers of a DataLoader's workers, and how workers
   end. */
#include "launch/worker_pool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/worker_pool_state.h"
#include "launch/world.h"

enum { GRACE_MS = 2000, FAILED_MS = 500, LOOK_MS = 50 };

/* An order, or its answer. */
typedef struct message {
  int32_t slot;
  int32_t failed;
  int64_t text, bytes;
} message;

int lt_worker_id(const lt_worker_pool *p) { return p->id; }
bool lt_worker_pool_is_own(const lt_worker_pool *p) { return p->owner == getpid(); }

/* Orders and answers. */

static bool is_free(const lt_worker_pool *p, int slot) {
  return !p->ordered[slot] && !lt_worker_slot_is_used(p->slots[slot]);
}

static int free_slot(const lt_worker_pool *p, int besides) {
  for (int k = 0; k < p->n_slots; k++)
    if (k != besides && is_free(p, k)) return k;
  return -1;
}

/* What a worker has sent, without waiting; answers that nobody wants are dropped. SOCK_SEQPACKET
   keeps messages whole: one recv is one answer, or none. `unwanted` counts orders of an iteration
   that was abandoned: their answers still come. */
static bool receive(lt_worker_pool *p, int worker, message *m) {
  lt_worker *w = &p->workers[worker];
  while (recv(w->fd, m, sizeof *m, MSG_DONTWAIT) == (ssize_t)sizeof *m) {
    p->ordered[m->slot] = false;
    if (w->unwanted == 0) {
      w->pending--;
      return true;
    }
    w->unwanted--;
  }
  return false;
}

/* Slots of unwanted orders come back with their answers, which are received here, but only from
   workers of which nothing is awaited: what is awaited would be lost with them. */
static int find_slot(lt_worker_pool *p) {
  int slot = free_slot(p, -1);
  message m;
  for (int k = 0; k < p->n && slot < 0; k++)
    if (p->workers[k].unwanted > 0 && p->workers[k].pending == 0) receive(p, k, &m);
  return slot >= 0 ? slot : free_slot(p, -1);
}

/* The order itself is in the shared memory of a slot, where its answer will be, too: the socket
   carries four numbers, and never blocks on large ones. */
bool lt_worker_order(lt_ctx *c, lt_worker_pool *p, int worker, const void *order, size_t n) {
  if (!lt_ok(c) || !lt_assert(c, worker >= 0 && worker < p->n)) return false;
  int slot = find_slot(p);
  char *memory = slot >= 0 ? lt_worker_slot_reserve(c, p->slots[slot], n) : NULL;
  if (memory == NULL) return false;
  memcpy(memory, order, n);
  message m = {.slot = slot, .text = (int64_t)n, .bytes = (int64_t)n};
  p->ordered[slot] = true;
  p->workers[worker].pending++;
  if (send(p->workers[worker].fd, &m, sizeof m, MSG_NOSIGNAL) == (ssize_t)sizeof m) return true;
  if (errno == EPIPE || errno == ECONNRESET) return true; /* it has ended: the wait will say so */
  p->ordered[slot] = false;
  p->workers[worker].pending--;
  return lt_fail(c, LT_EIO, "DataLoader: cannot send an order to worker %d: %s", worker,
                 strerror(errno));
}

/* Whether one of the processes has ended; then `ended` says which. */
static bool has_ended(lt_worker_pool *p, const struct pollfd *look) {
  for (int k = 0; k < p->n; k++) {
    if (look[k].revents == 0) continue;
    p->ended = k;
    return true;
  }
  return false;
}

lt_worker_event lt_worker_wait(lt_ctx *c, lt_worker_pool *p, int worker, int ms,
                               lt_worker_answer *answer) {
  struct pollfd look[LT_WORKERS_MAX + 1];
  if (!lt_assert(c, worker >= 0 && worker < p->n)) return LT_WORKER_NOTHING;
  /* Descriptors of processes (pidfd): an end wakes poll without a signal handler, and the number
     cannot have become another process's. */
  for (int k = 0; k < p->n; k++) look[k] = (struct pollfd){p->workers[k].pidfd, POLLIN, 0};
  look[p->n] = (struct pollfd){p->workers[worker].fd, POLLIN, 0};
  int ready = poll(look, (nfds_t)p->n + 1, ms);
  if (ready <= 0) return LT_WORKER_NOTHING;
  if (has_ended(p, look)) return LT_WORKER_ENDED;
  message m;
  if (!receive(p, worker, &m)) {
    p->ended = worker;
    return (look[p->n].revents & POLLHUP) != 0 ? LT_WORKER_ENDED : LT_WORKER_NOTHING;
  }
  *answer = (lt_worker_answer){.slot = m.slot, .text = (size_t)m.text, .bytes = (size_t)m.bytes,
                               .failed = m.failed != 0};
  answer->data = lt_worker_slot_map(c, p->slots[m.slot], answer->bytes);
  return LT_WORKER_ANSWER;
}

void lt_worker_continue(const lt_worker_pool *p, int worker) {
  const lt_worker *w = worker >= 0 && worker < p->n ? &p->workers[worker] : NULL;
  if (w != NULL && w->pid > 0) lt_process_signal(w->pidfd, w->pid, SIGCONT);
}

bool lt_worker_has_spare(const lt_worker_pool *p, const lt_worker_answer *answer) {
  return free_slot(p, answer->slot) >= 0;
}

lt_tensor *lt_worker_tensor(lt_ctx *c, lt_worker_pool *p, const lt_worker_answer *answer,
                            int64_t offset, lt_dtype dtype, int ndim, const int64_t *size) {
  return lt_worker_slot_tensor(c, p->slots[answer->slot], offset, dtype, ndim, size);
}

/* An order cannot be called back from a worker: its answer is counted, and dropped when it
   comes. */
void lt_worker_pool_forget(lt_worker_pool *p) {
  for (int k = 0; k < p->n; k++) {
    p->workers[k].unwanted += p->workers[k].pending;
    p->workers[k].pending = 0;
  }
}

bool lt_worker_listen(lt_ctx *c, lt_worker_pool *p, int *slot, const void **order, size_t *n) {
  message m;
  ssize_t got;
  while ((got = recv(p->fd, &m, sizeof m, 0)) < 0 && errno == EINTR) continue;
  if (got != (ssize_t)sizeof m) return false;
  *slot = m.slot;
  *n = (size_t)m.text;
  *order = lt_worker_slot_map(c, p->slots[m.slot], *n);
  return *order != NULL;
}

bool lt_worker_is_over(const lt_worker_pool *p) {
  struct pollfd look = {.fd = p->fd, .events = POLLRDHUP};
  return poll(&look, 1, 0) > 0;
}

char *lt_worker_pool_reserve(lt_ctx *c, lt_worker_pool *p, int slot, size_t bytes) {
  return lt_worker_slot_reserve(c, p->slots[slot], bytes);
}

void lt_worker_give(lt_worker_pool *p, int slot, size_t text, size_t bytes, bool failed) {
  message m = {
      .slot = slot, .failed = failed, .text = (int64_t)text, .bytes = (int64_t)bytes};
  while (send(p->fd, &m, sizeof m, MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}

/* Ends. */

void lt_worker_end_text(const lt_worker_pool *p, char *text, size_t size) {
  const lt_worker *w = &p->workers[p->ended];
  siginfo_t info = {.si_pid = 0};
  char how[256];
  waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOWAIT);
  if (info.si_pid == 0)
    snprintf(how, sizeof how, "ended without an error message");
  else if (info.si_code == CLD_EXITED)
    snprintf(how, sizeof how, "exited with status %d", info.si_status);
  else
    lt_signal_text(&info, how, sizeof how);
  snprintf(text, size, "worker %d of %d (pid %d) %s", p->ended, p->n, (int)w->pid, how);
}

/* Wait for a worker that was asked to end. */
static void reap(const lt_worker *w, int64_t until) {
  while (waitpid(w->pid, NULL, WNOHANG) == 0) {
    if (lt_now_ns() >= until) lt_process_signal(w->pidfd, w->pid, SIGKILL);
    struct pollfd end = {.fd = w->pidfd, .events = POLLIN};
    poll(&end, 1, w->pidfd >= 0 ? LOOK_MS : 2);
  }
}

/* Of a rank that must unwind in time, less. */
static int64_t grace_of(const lt_ctx *c) {
  bool failed = lt_world_outcome(lt_world_current(c)) != NULL;
  return (failed ? FAILED_MS : GRACE_MS) * (int64_t)LT_MS;
}

void lt_worker_pool_close(lt_ctx *c, lt_worker_pool *p) {
  if (p == NULL) return;
  lt_worker_pool_unlist(p);
  if (lt_worker_pool_is_own(p)) {
    int64_t until = lt_now_ns() + grace_of(c);
    for (int k = 0; k < p->n; k++) {
      /* A worker that reads orders sees the end of them and leaves by itself; one that is stopped
         is first let go on. */
      if (p->workers[k].fd >= 0) shutdown(p->workers[k].fd, SHUT_WR);
      lt_worker_continue(p, k);
    }
    for (int k = 0; k < p->n; k++)
      if (p->workers[k].pid > 0) reap(&p->workers[k], until);
  }
  lt_worker_pool_close_descriptors(p);
  for (int k = 0; k < p->n_slots; k++) lt_worker_slot_release(c, p->slots[k]);
  lt_free(c, p, sizeof *p);
}
