/* runtime/launch/fork.c: ranks by fork: the parent is rank 0, and children have all that it has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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

static bool open_stderr(lt_ctx *c, lt_world *w) {
  w->err_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (w->info.size > 1 && w->err_fd >= 0)
    w->child_stderr = lt_stderr_new(c, w->info.size, w->err_fd);
  return lt_ok(c);
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
  w->group = lt_group_new(c, ops, link, w->heartbeat,
                          n > lt_core_count() || lt_waits_passively());
  return w->group != NULL;
}

/* From here on in each rank: its thread, its group. */
static bool begin(lt_ctx *c, lt_world *w) {
  w->heartbeat = &w->heartbeats[w->info.rank];
  if (w->info.stays) snprintf(w->what, sizeof w->what, "the script"); /* that ranks leave */
  if (!lt_world_wake(c, w)) return false;
  lt_world_open(w);
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
static void begin_child(lt_ctx *c, lt_world *w, const lt_launch_options *o) {
  lt_device_forked(c);
  w->shared->pids[w->info.rank] = (int)getpid(); /* the parent may not have come to it */
  if (begin(c, w) && lt_child_set_up(c, w, o)) {
    lt_world_guard(w);
    if (o->in_child != NULL) o->in_child(o->child_ud, w->info.rank);
    return;
  }
  if (w->watched) lt_world_raise(w, c->failure.text, NULL, 0);
  if (w->watched) lt_watchdog_stop(w);
  _exit(1);
}

/* In a child only its own end of a channel stays open: the end of one says that a rank has. */
static void become_child(lt_world *w, int rank, int own_end) {
  lt_watchdog *d = &w->watchdog;
  for (int r = 1; r <= rank; r++) lt_peer_close(&d->peers[r]);
  d->n_peers = 1;
  lt_channel_open(&d->peers[0].link, own_end, false);
  w->info.rank = w->info.local_rank = rank;
  w->info.in_child = true;
}

/* Returns in each rank; in the parent false with a failure, when not all could be forked.
   SEQPACKET keeps messages whole, and its end is seen when the rank's last descriptor goes,
   however it ended. */
static bool fork_all(lt_ctx *c, lt_world *w) {
  int n = w->info.size, ends[2];
  for (int r = 1; r < n; r++) {
    lt_peer *p = &w->watchdog.peers[r];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      return lt_fail(c, LT_EIO, "%s: cannot open a control channel for rank %d of %d: %s", w->what,
                     r, n, strerror(errno));
    lt_channel_open(&p->link, ends[0], false);
    pid_t pid = fork();
    if (pid == 0) {
      become_child(w, r, ends[1]);
      return true;
    }
    if (pid < 0)
      lt_fail(c, LT_EIO, "%s: cannot fork rank %d of %d: %s", w->what, r, n, strerror(errno));
    close(ends[1]);
    if (pid < 0) return false;
    w->shared->pids[r] = pid;
    p->pidfd = lt_process_open(pid);
  }
  return true;
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
  bool good =
      lt_world_size(c, w, 0, o->ranks) && map_memory(c, w) && open_stderr(c, w) && fork_all(c, w);
  if (w->info.in_child)
    begin_child(c, w, o);
  else
    good = good && begin(c, w);
  if (!good) {
    lt_world_drop(c, w);
    w = NULL;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return w;
}
