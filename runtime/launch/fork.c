/* runtime/launch/fork.c: ranks by fork: the parent is rank 0, and all that it has is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cores.h"
#include "device/device.h"
#include "launch/world.h"

static bool map_memory(lt_ctx *c, lt_world *w) {
  int n = w->info.size;
  if (!lt_world_map(c, w, n, lt_shm_bytes(n))) return false;
  w->heartbeats = w->heartbeat;
  lt_shm_init(w->segment, w->segment_bytes, n);
  w->shared->pids[0] = (int)getpid();
  return true;
}

static bool make_pairs(lt_ctx *c, lt_world *w) {
  int n = w->info.size;
  w->pairs = lt_alloc(c, 2 * (size_t)n * sizeof *w->pairs);
  if (w->pairs == NULL) return false;
  for (int i = 0; i < 2 * n; i++) w->pairs[i] = -1;
  for (int r = 1; r < n; r++)
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, w->pairs + 2 * r) !=
        0)
      return lt_fail(c, LT_EIO, "%s: cannot open a control channel for rank %d of %d: %s", w->what,
                     r, n, strerror(errno));
  w->err_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (n > 1 && w->err_fd >= 0) w->child_stderr = lt_stderr_new(c, n);
  return lt_ok(c);
}

static void close_pairs(lt_ctx *c, lt_world *w) {
  if (w->pairs == NULL) return;
  for (int i = 0; i < 2 * w->info.size; i++)
    if (w->pairs[i] >= 0) close(w->pairs[i]);
  lt_free(c, w->pairs, 2 * (size_t)w->info.size * sizeof *w->pairs);
  w->pairs = NULL;
}

static int take(int *fd) {
  int taken = *fd;
  *fd = -1;
  return taken;
}

static bool make_group(lt_ctx *c, lt_world *w) {
  int rank = w->info.rank, n = w->info.size;
  w->info.backend = n > 1 ? "shm" : "self";
  if (n == 1) return (w->group = lt_group_self(c, w->heartbeat)) != NULL;
  char text[256] = "no reason given";
  const lt_comm_ops *ops = lt_shm_ops();
  lt_comm_place place = {.rank = rank,
                         .size = n,
                         .local_rank = rank,
                         .local_size = n,
                         .memory = w->segment,
                         .memory_bytes = w->segment_bytes};
  lt_comm_link *link = ops->open(lt_comm_host_here(), &place, text, sizeof text);
  if (link == NULL) return lt_fail(c, LT_EIO, "%s: %s", w->what, text);
  w->group = lt_group_new(c, ops, link, w->heartbeat, n > lt_core_count());
  return w->group != NULL;
}

/* From here on in each rank: its own end of the channels, its thread, its group. */
static bool begin(lt_ctx *c, lt_world *w) {
  w->heartbeat = &w->heartbeats[w->info.rank];
  if (w->info.stays) snprintf(w->what, sizeof w->what, "the script"); /* that ranks leave */
  if (!lt_world_wake(c, w) || !lt_world_open(c, w)) return false;
  if (w->info.rank == 0) {
    for (int r = 1; r < w->info.size; r++) {
      lt_channel_open(&w->watchdog.peers[r].link, take(&w->pairs[2 * r]), false);
      w->watchdog.peers[r].pidfd = (int)syscall(SYS_pidfd_open, w->info.pids[r], 0);
    }
  } else {
    lt_channel_open(&w->watchdog.peers[0].link, take(&w->pairs[2 * w->info.rank + 1]), false);
  }
  close_pairs(c, w);
  lt_world_install(c, w);
  if (!lt_watchdog_start(c, w)) return false;
  if (w->info.rank == 0 && w->child_stderr != NULL && !lt_stderr_start(c, w->child_stderr))
    return false;
  /* libgomp reads how its threads wait when it is loaded, and cannot be changed later. With a share
     each, teams never outnumber the cores; where ranks do, a rank has no team that could spin. */
  int share = lt_core_count() / w->info.size;
  if (c->root->threads > share) c->root->threads = share > 0 ? share : 1;
  return make_group(c, w);
}

/* Returns in the child when it is a rank; otherwise reports why not, and ends. */
static void begin_child(lt_ctx *c, lt_world *w, int rank, const lt_launch_options *o) {
  w->info.rank = w->info.local_rank = rank;
  w->info.in_child = true;
  lt_device_forked(c);
  w->shared->pids[rank] = (int)getpid(); /* the parent may not have come to it */
  bool good = begin(c, w) && lt_child_set_up(c, w);
  if (good) {
    lt_world_guard(w);
    if (o->in_child != NULL) o->in_child(o->child_ud, rank);
    return;
  }
  if (w->watched) lt_world_raise(w, c->failure.text, NULL, 0);
  if (w->watched) lt_watchdog_stop(w);
  _exit(1);
}

/* In the parent false with a failure, when not all could be forked; 0 or the rank in *rank. */
static bool fork_all(lt_ctx *c, lt_world *w, int *rank) {
  *rank = 0;
  for (int r = 1; r < w->info.size; r++) {
    pid_t pid = fork();
    if (pid < 0)
      return lt_fail(c, LT_EIO, "%s: cannot fork rank %d of %d: %s", w->what, r, w->info.size,
                     strerror(errno));
    if (pid == 0) {
      *rank = r;
      return true;
    }
    w->shared->pids[r] = pid;
  }
  return true;
}

/* Release what was made in the parent before the failure. */
static void undo(lt_ctx *c, lt_world *w) {
  if (w->watched) { /* all are forked, and its watchdog knows them */
    lt_world_drop(c, w);
    return;
  }
  close_pairs(c, w);
  lt_children_kill_all(w);
  lt_children_reap(w);
  lt_stderr_release(c, w->child_stderr);
  lt_world_free(c, w);
}

lt_world *lt_world_fork(lt_ctx *c, const lt_launch_options *o) {
  if (!lt_ok(c) || !lt_fork_prepare(c, o)) return NULL;
  lt_world *w = lt_world_new(c, o);
  if (w == NULL) return NULL;
  w->info.forked = true;
  w->info.stays = o->stays;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* handlers of the parent must not run in between */
  int rank = 0;
  bool good = lt_world_size(c, w, 0, o->ranks) && map_memory(c, w) && make_pairs(c, w);
  good = good && fork_all(c, w, &rank);
  if (rank > 0)
    begin_child(c, w, rank, o);
  else
    good = good && begin(c, w);
  if (!good) {
    undo(c, w);
    w = NULL;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return w;
}
