/* runtime/launch/worker_fork.c: forking the workers of a DataLoader.

   Unlike ranks, workers are forked from processes with threads: of devices' libraries, of a rank's
   watchdog, of loaders that gather. Whatever these held is lost in the child, which therefore uses
   nothing of theirs: no device that was used before, no OpenMP beyond its own thread, no helper, no
   collective. malloc and stdio are made whole by fork itself. */
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/threads.h"
#include "comm/comm.h"
#include "device/device.h"
#include "launch/worker_pool_state.h"
#include "launch/world.h"

static bool in_worker;
static int life = -1; /* of the worker: at its end when the parent is gone */

bool lt_worker_here(void) { return in_worker; }

_Noreturn void lt_worker_exit(void) {
  fflush(NULL);
  _exit(0);
}

/* SIGIO: something has happened to the pipe that only the parent could write into. */
static void on_life(int number) {
  (void)number;
  int before = errno;
  char none;
  if (read(life, &none, 1) == 0) _exit(1);
  errno = before;
}

/* The kernel ends a worker with the thread that forked it, also one that is stopped and handles no
   signal. Of a thread that may end before its process the pipe alone is watched. */
static void die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* Asked after prctl: a parent that ended before it would send no signal. */
  if (getppid() != parent) _exit(1); /* it is gone already */
}

static void watch_parent(int end) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", end);
  life = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* signals are for one process an opening */
  close(end);
  struct sigaction action = {.sa_handler = on_life, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGIO, &action, NULL);
  if (life < 0 || fcntl(life, F_SETOWN, getpid()) != 0 ||
      fcntl(life, F_SETFL, O_NONBLOCK | O_ASYNC) != 0)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (life >= 0) on_life(SIGIO); /* it may be gone already */
}

/* The parent decides what a terminal's or a launcher's signals mean. */
static void set_signals(void) {
  static const int ignored[] = {SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
  for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++) signal(ignored[k], SIG_IGN);
  signal(SIGTERM, SIG_DFL);
}

/* From here on this process is worker `id`. `end`: the pipe's; `own`: its socket; `by_main`: the
   main thread of its parent forked it. */
static void become(lt_ctx *c, lt_worker_pool *p, int id, int end, int own, bool by_main) {
  in_worker = true;
  lt_worker_pool_close_descriptors(p);
  lt_worker_pools_forked();
  p->id = id;
  p->fd = own;
  p->n = 0;
  prctl(PR_SET_NAME, "ltrain worker");
  set_signals();
  watch_parent(end);
  if (by_main) die_with_parent(p->owner);
  lt_threads_forked(c);
  lt_device_forked(c);
  lt_world_forked_worker();
  c->threads = c->root->threads = 1;
  omp_set_num_threads(1);
  lt_comm_refusal = "a worker of a DataLoader is not a rank: call it outside of the data set and "
    "the collate function";
  lt_child_silence(STDIN_FILENO);
  __fpurge(stdin);
  lt_child_reopen(c);
}

/* Returns in each of them; in the parent false with a failure. */
static bool fork_one(lt_ctx *c, lt_worker_pool *p, int id, int end) {
  int ends[2];
  lt_worker *w = &p->workers[id];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return lt_fail(c, LT_EIO, "DataLoader: cannot open a channel for worker %d: %s", id,
                   strerror(errno));
  bool by_main = gettid() == getpid();
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    become(c, p, id, end, ends[1], by_main);
    return true;
  }
  int error = errno;
  close(ends[1]);
  w->fd = ends[0];
  if (pid < 0)
    return lt_fail(c, LT_EIO, "DataLoader: cannot fork worker %d: %s", id, strerror(error));
  w->pid = pid;
  w->pidfd = lt_process_open(pid);
  return true;
}

static lt_worker_pool *new_pool(lt_ctx *c, int n, int slots) {
  lt_worker_pool *p = lt_alloc(c, sizeof *p);
  if (p == NULL) return NULL;
  p->owner = getpid();
  p->id = p->life = p->fd = -1;
  p->n = n;
  for (int k = 0; k < n; k++) p->workers[k].fd = p->workers[k].pidfd = -1;
  for (; p->n_slots < slots && lt_ok(c); p->n_slots += lt_ok(c))
    p->slots[p->n_slots] = lt_worker_slot_new(c);
  return p;
}

static void fork_all(lt_ctx *c, lt_worker_pool *p, int end) {
  sigset_t all, before;
  int n = p->n;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* handlers of the parent must not run in a worker */
  for (int k = 0; k < n && p->id < 0 && lt_ok(c); k++) fork_one(c, p, k, end);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

lt_worker_pool *lt_worker_pool_new(lt_ctx *c, int n, int slots) {
  if (!lt_ok(c) || !lt_assert(c, n >= 1 && n <= LT_WORKERS_MAX) ||
      !lt_assert(c, slots >= 1 && slots <= LT_WORKER_SLOTS_MAX))
    return NULL;
  if (!c->root->policy.fork) {
    lt_fail(c, LT_EARG, "DataLoader: num_workers = %d: this state may not fork (LTRAIN_FORK)", n);
    return NULL;
  }
  lt_worker_pool *p = new_pool(c, n, slots);
  int ends[2] = {-1, -1};
  if (p == NULL) return NULL;
  if (lt_ok(c) && pipe2(ends, O_CLOEXEC) != 0)
    lt_fail(c, LT_EIO, "DataLoader: cannot make a pipe: %s", strerror(errno));
  p->life = ends[1];
  lt_fork_end_team(); /* a child hangs in its first loop otherwise */
  lt_fork_flush();
  if (lt_ok(c)) fork_all(c, p, ends[0]);
  if (p->id >= 0) return p;
  if (ends[0] >= 0) close(ends[0]);
  if (lt_ok(c)) {
    lt_worker_pool_list(p);
    return p;
  }
  lt_worker_pool_close(c, p);
  return NULL;
}
