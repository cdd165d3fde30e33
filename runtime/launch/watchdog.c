/* runtime/launch/watchdog.c: the watchdog: the thread that exchanges heartbeats and failures with
   other ranks, whatever the main thread does.

   One a rank, all signals blocked. It does no Lua, OpenMP or allocation: poll, write, futex wake,
   _exit. Time is counted in ticks of at most a second: what it slept through (Ctrl-Z, a suspended
   machine) counts for nobody. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/round.h"
#include "launch/world.h"

enum { UNWIND_S = 2, ORPHAN_MS = 800, DONE_S = 5, STACK = 1 << 19 };
enum { SEEN_MS = 2500 };
enum { MOVED_MS = 90, MOVED_RANKS = 64 };

static bool is_coordinator(const lt_watchdog *d) { return d->info->rank == 0; }

static void report_failure(lt_watchdog *d, const lt_message *m) {
  lt_watchdog_send(d, 0, m);
  if (is_coordinator(d)) return;
  d->failure = *m;
  /* Whether rank 0 saves is received once a second. */
  d->fallback_ns = d->now_ns + (m->class == LT_INTERRUPTED ? 2ll : 1ll) * LT_SECOND;
}

/* The main thread may be anywhere, in C too: it is not asked. */
static void handle_interrupt(lt_watchdog *d) {
  char text[LT_OUTCOME_TEXT] = "interrupted: ";
  size_t used = strlen(text);
  lt_world_activity_text(d->world, text + used, sizeof text - used);
  int status = LT_STATUS_OF_SIGNAL + atomic_load(&d->mail->interrupt);
  lt_message_failure(&d->out, LT_MESSAGE_REPORT, LT_INTERRUPTED, d->info->rank, status, text);
  report_failure(d, &d->out);
}

static void handle_requests(lt_watchdog *d) {
  uint32_t requests = atomic_load(&d->mail->requests), fresh = requests & ~d->requests_done;
  d->requests_done = requests;
  if ((fresh & LT_REQUEST_REPORT) != 0) report_failure(d, &d->mail->report);
  if ((fresh & LT_REQUEST_INTERRUPT) != 0) handle_interrupt(d);
  if ((fresh & LT_REQUEST_LEFT) != 0) lt_watchdog_send(d, 0, &d->mail->left);
  if ((fresh & LT_REQUEST_DONE) != 0) lt_watchdog_send_kind(d, 0, LT_MESSAGE_DONE);
}

/* Where the main thread is: its activity and its line. */
static uint64_t place_of(const lt_heartbeat *h) {
  return (uint64_t)atomic_load(&h->activity_version) << 32 | atomic_load(&h->line);
}

/* Rank 0 knows of a joined rank that is killed what its last heartbeat says: one that has moved
   sends the next at once, unless many ranks would do so, or its link is not open yet. */
static bool has_news(const lt_watchdog *d) {
  if (d->connections == NULL || is_coordinator(d) || d->info->size > MOVED_RANKS) return false;
  if (d->heartbeat_ns - d->now_ns > LT_SECOND - (int64_t)MOVED_MS * LT_MS) return false;
  return lt_channel_is_open(&d->peers[0].link) && place_of(d->heartbeat) != d->sent_place;
}

static void send_heartbeats(lt_watchdog *d) {
  if (d->now_ns < d->heartbeat_ns && !has_news(d)) return;
  d->heartbeat_ns = d->now_ns + LT_SECOND;
  d->sent_place = place_of(d->heartbeat);
  d->out = (lt_message){.kind = LT_MESSAGE_HEARTBEAT, .rank = d->info->rank};
  lt_watchdog_state(d, &d->out.state);
  lt_issued_list list = {0};
  if (!is_coordinator(d) &&
      !lt_heartbeat_issued(d->heartbeat, d->out.state.waiting_since_ns, &list))
    list.n = 0;
  lt_message_set_issued(&d->out, &list);
  for (int r = 0; r < d->n_peers; r++)
    if (!lt_channel_is_full(&d->peers[r].link)) lt_channel_send(&d->peers[r].link, &d->out);
}

static void receive(lt_watchdog *d, int peer) {
  lt_received got;
  lt_peer *p = &d->peers[peer];
  lt_channel_flush(&p->link);
  while ((got = lt_channel_receive(&p->link, &d->in)) == LT_GOT_MESSAGE) {
    if (is_coordinator(d))
      lt_coordinator_receive(d, peer, &d->in);
    else
      lt_worker_receive(d, &d->in);
  }
  if (got != LT_GOT_END) return;
  if (is_coordinator(d))
    p->ended_ns = d->now_ns;
  else
    lt_worker_disconnected(d);
}

static void receive_all(lt_watchdog *d) {
  for (int r = 0; r < d->n_peers; r++) receive(d, r);
}

/* Report children that have ended. */
static void watch_children(lt_watchdog *d) {
  if (!d->info->forked) return;
  for (int r = 1; r < d->n_peers; r++) {
    lt_peer *p = &d->peers[r];
    if (p->exited) continue;
    siginfo_t info = {.si_pid = 0};
    /* WNOWAIT: the child stays a zombie, so that its number cannot be given to another process
       before we have signalled the last time. */
    int status = waitid(P_PID, (id_t)d->info->pids[r], &info, WEXITED | WNOHANG | WNOWAIT);
    if (status == 0 && info.si_pid == 0) continue; /* alive */
    if (status != 0 && (errno != ECHILD || p->ended_ns == 0)) continue;
    char how[512];
    receive(d, r); /* what it sent last */
    int code = lt_end_text(d->world, &info, how, sizeof how);
    lt_coordinator_exited(d, r, code, how);
  }
}

/* mpirun ends the others a second after the first that ends: a rank that is stuck counts as
   unwound, and waits like those that are. */
static void wait_stuck(lt_watchdog *d) {
  int64_t limit = atomic_load(&d->mail->rank_0_saves) ? (int64_t)LT_SAVE_S : (int64_t)DONE_S;
  bool all = lt_mailbox_has(d->mail, LT_NOTICE_ALL_DONE);
  if (!d->stuck) atomic_fetch_or(&d->mail->requests, LT_REQUEST_DONE);
  d->stuck = true;
  if (all || d->peers[0].exited || d->unwinding_ns >= limit * LT_SECOND) lt_watchdog_exit(d);
}

/* After an outcome: a main thread that does not come back in time ends with its process, where that
   is ours. Saves may take longer. */
static void unwinding(lt_watchdog *d, int64_t tick) {
  if (!lt_heartbeat_is_over(d->heartbeat)) return;
  if ((d->requests_done & LT_REQUEST_DONE) != 0 && !d->stuck) return;
  d->unwinding_ns += tick;
  bool orphan = d->info->in_child && d->peers[0].exited;
  int64_t limit = orphan ? (int64_t)ORPHAN_MS * LT_MS : (int64_t)UNWIND_S * LT_SECOND;
  if (atomic_load(&d->mail->saving) > 0) limit = (int64_t)LT_SAVE_S * LT_SECOND;
  if (d->unwinding_ns >= limit) {
    if (!d->info->in_child && !d->world->owns_process) return;
    if (d->connections != NULL) wait_stuck(d);
    if (d->connections == NULL) lt_watchdog_exit(d);
  } else if (d->now_ns - d->signalled_ns >= 100 * LT_MS) {
    d->signalled_ns = d->now_ns; /* again: a sleep may have begun just behind the first one */
    lt_world_signal(d->world);
  }
}

/* Rank 0 prints, unless it cannot. */
void lt_watchdog_exit(lt_watchdog *d) {
  const lt_outcome *v = &d->heartbeat->outcome;
  bool lost = v->rank == 0 && v->class == LT_LOST;
  if (is_coordinator(d) || d->peers[0].exited || lost) lt_watchdog_print_outcome(d);
  lt_children_kill_all(d->world);
  lt_launcher_end(d->world);
  _exit(d->heartbeat->outcome.status);
}

/* Coming together, and closing in order, have limits of their own, without anybody to talk to. */
static void limits(lt_watchdog *d) {
  int64_t deadline = atomic_load(&d->mail->deadline_ns);
  if (deadline == 0 || d->now_ns < deadline) return;
  char text[256];
  if (atomic_load(&d->mail->closing)) {
    if (d->world->owns_process)
      _exit(0); /* all have left: what is lost is only the order of the end */
    return;
  }
  char who[32] = "";
  if (d->world->first_rank >= 0) snprintf(who, sizeof who, "rank %d: ", d->world->first_rank);
  snprintf(text, sizeof text,
           "%s: %snot all ranks connected in time (launch_timeout): is every rank started, "
           "and can they reach each other?",
           d->world->what, who);
  if (d->world->owns_process) {
    if (lt_join_may_print(d->world)) {
      lt_watchdog_print(d, text);
      usleep(SEEN_MS * 1000); /* the others look once a second, and see that it is printed */
    }
    _exit(1);
  }
  lt_message_failure(&d->out, LT_MESSAGE_OUTCOME, LT_LATE, -1, 1, text);
  lt_watchdog_outcome(d, &d->out);
}

static int fill_polls(lt_watchdog *d) {
  int n = 0;
  d->polls[n++] = (struct pollfd){.fd = d->mail->wake_fd, .events = POLLIN};
  for (int r = 0; r < d->n_peers; r++) {
    const lt_peer *p = &d->peers[r];
    d->polls[n++] = lt_channel_poll(&p->link);
    if (p->pidfd >= 0 && !p->exited)
      d->polls[n++] = (struct pollfd){.fd = p->pidfd, .events = POLLIN};
  }
  if (d->connections == NULL) return n;
  d->polls[n++] = (struct pollfd){.fd = d->launcher_fd, .events = POLLIN};
  return lt_connections_polls(d, n);
}

/* Time until the next deadline of this thread. */
static int poll_timeout_ms(const lt_watchdog *d) {
  int64_t until = d->heartbeat_ns;
  if (d->collecting) until = lt_least(until, d->decide_ns);
  if (d->fallback_ns != 0) until = lt_least(until, d->fallback_ns);
  if (lt_heartbeat_is_over(d->heartbeat) || d->connections != NULL || d->alert)
    until = lt_least(until, d->now_ns + 100 * LT_MS);
  int64_t ms = (until - d->now_ns + LT_MS - 1) / LT_MS;
  return ms < 0 ? 0 : ms > 1000 ? 1000 : (int)ms;
}

static void turn(lt_watchdog *d, int64_t tick) {
  handle_requests(d);
  if (atomic_exchange(&d->mail->waits_long, false)) {
    d->look = true;
    if (!is_coordinator(d)) d->heartbeat_ns = d->now_ns;
  }
  receive_all(d);
  if (d->connections != NULL) {
    lt_connections_turn(d);
    receive_all(d); /* what came behind the proof of a new connection: poll does not see it again */
    lt_launcher_turn(d);
  }
  if (is_coordinator(d)) {
    watch_children(d);
    lt_timeouts_turn(d, tick);
    lt_coordinator_turn(d);
  } else {
    lt_worker_turn(d, tick);
  }
  send_heartbeats(d);
  unwinding(d, tick);
  limits(d);
}

static void *watch(void *ud) {
  lt_watchdog *d = ud;
  d->now_ns = lt_now_ns();
  /* poll sleeps on every descriptor at once: no lock is shared with the main thread, which may be
     stopped anywhere. */
  while ((atomic_load(&d->mail->requests) & LT_REQUEST_STOP) == 0) {
    poll(d->polls, (nfds_t)fill_polls(d), poll_timeout_ms(d));
    uint64_t count;
    ssize_t n = read(d->mail->wake_fd, &count, sizeof count);
    (void)n;
    int64_t now = lt_now_ns(), tick = lt_least(now - d->now_ns, LT_SECOND);
    d->now_ns = now;
    turn(d, tick);
  }
  handle_requests(d); /* what was asked just before the end */
  return NULL;
}

bool lt_watchdog_start(lt_ctx *c, lt_world *w) {
  atomic_fetch_and(&w->mail.requests, ~(uint32_t)LT_REQUEST_STOP); /* of an earlier one */
  w->watchdog.receive = lt_coordinator_receive;
  int status = lt_launch_thread(&w->thread, STACK, watch, &w->watchdog);
  w->watched = status == 0;
  if (w->watched) c->line_watch = &w->heartbeat->line;
  if (w->watched) return true;
  return lt_fail(c, LT_EMEMORY, "%s: cannot start the watchdog thread: %s", w->what,
                 strerror(status));
}

void lt_watchdog_stop(lt_world *w) {
  if (!w->watched) return;
  lt_mailbox_request(&w->mail, LT_REQUEST_STOP);
  pthread_join(w->thread, NULL);
  w->c->line_watch = NULL;
  w->watched = false;
}
