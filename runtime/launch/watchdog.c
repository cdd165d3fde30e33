/* runtime/launch/watchdog.c: the thread that looks on while the main thread does anything at all.

   One a rank, all signals blocked. It does no Lua, OpenMP or allocation: poll, write, futex wake,
   _exit. Time is counted in ticks of at most a second: what it slept through (Ctrl-Z, a suspended
   machine) counts for nobody. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lines.h"
#include "launch/world.h"

enum { UNWIND_S = 2, ORPHAN_MS = 800, ACK_S = 5, ALERT_MS = 100, STACK = 1 << 19 };
enum { SEEN_MS = 2500 };

static bool is_coordinator(const lt_world *w) { return w->info.rank == 0; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The parts are read one by one: a wait that ended meanwhile is none. */
void lt_heartbeat_state(const lt_heartbeat *p, lt_state *s) {
  memset(s, 0, sizeof *s);
  s->lowest = -1;
  int64_t since = atomic_load(&p->waiting_since_ns);
  for (int i = 0; i < LT_COMM_MAX_RANKS / 64; i++)
    s->waiting_for[i] = atomic_load(&p->waiting_for[i]);
  s->mark = lt_heartbeat_activity(p);
  s->progress = atomic_load(&p->progress);
  s->declared = atomic_load(&p->declared);
  if (atomic_load(&p->waiting_since_ns) == since) s->waiting_since_ns = since;
}

/* "file.lua:12" into a mark. */
static void set_place(lt_mark *m, char *place) {
  char *colon = strrchr(place, ':');
  if (colon == NULL) return;
  m->line = atoi(colon + 1);
  m->status = LT_LINE_PASSED;
  *colon = 0;
  lt_mark_set_file(m, place);
}

/* The line of the script that its last operation noted. */
lt_mark lt_watchdog_activity(const lt_world *w) {
  lt_mark m = lt_heartbeat_activity(w->heartbeat);
  uint32_t line = __atomic_load_n(&w->c->line, __ATOMIC_RELAXED);
  char place[160];
  if (m.kind != LT_MARK_RUNNING || line == 0) return m;
  lt_line_text(w->c, line, place, sizeof place);
  set_place(&m, place);
  return m;
}

void lt_peer_refresh(lt_peer *p, const lt_heartbeat *heartbeat) {
  lt_mark told = p->state.mark, *now = &p->state.mark;
  lt_heartbeat_state(heartbeat, &p->state);
  bool same = now->kind == LT_MARK_RUNNING && told.kind == LT_MARK_RUNNING;
  if (same && told.status == LT_LINE_PASSED && strcmp(told.hook, now->hook) == 0) *now = told;
}

void lt_watchdog_state(lt_world *w, lt_state *s) {
  lt_heartbeat_state(w->heartbeat, s);
  if (s->mark.kind == LT_MARK_RUNNING) s->mark = lt_watchdog_activity(w);
  s->saving = atomic_load(&w->saving);
  for (int r = w->n_peers - 1; r > 0; r--)
    if (!w->peers[r].exited && lt_peer_is_heard(&w->peers[r])) s->lowest = r;
}

int64_t lt_watchdog_lost_ns(const lt_world *w) {
  int64_t timeout = atomic_load(&w->timeout_ns), heard = (int64_t)LT_SILENT_S * LT_SECOND;
  return timeout > heard ? timeout : heard;
}

void lt_watchdog_print_verdict(lt_world *w) {
  if (w->err_fd < 0 || !lt_world_may_print(w)) return;
  lt_watchdog_print(w, w->heartbeat->verdict.text);
}

/* One write, so that lines of others do not cut it. */
void lt_watchdog_print(lt_world *w, const char *text) {
  static const char name[] = "ltrain: ";
  char line[LT_VERDICT_TEXT + sizeof name + 1];
  int n = snprintf(line, sizeof line, "%s%s\n", name, text);
  if (n >= (int)sizeof line) n = (int)sizeof line - 1;
  ssize_t done = write(w->err_fd, line, (size_t)n);
  (void)done;
}

void lt_watchdog_verdict(lt_world *w, lt_verdict_class class, int rank, int status,
                         const char *text) {
  if (lt_heartbeat_is_over(w->heartbeat)) return;
  lt_verdict_set(&w->heartbeat->verdict, class, rank, status, text);
  w->unwinding_ns = 0;
  w->fallback_ns = 0;
  w->signalled_ns = w->now_ns;
  lt_world_signal(w);
  lt_world_notify(w, LT_EVENT_VERDICT);
  lt_files_write(w);
}

void lt_watchdog_send(lt_world *w, lt_message_kind kind) {
  w->out = (lt_message){.kind = (uint8_t)kind, .rank = w->info.rank};
  lt_message_size(&w->out, 0);
  lt_channel_send(&w->peers[0].link, &w->out);
}

static void report_failure(lt_world *w, const lt_message *m) {
  if (is_coordinator(w)) {
    lt_coordinator_report(w, m->rank, (lt_verdict_class)m->class, m->status, m->text);
    return;
  }
  lt_channel_send(&w->peers[0].link, m);
  w->failed = m;
  /* Whether rank 0 saves is heard once a second. */
  w->fallback_ns = w->now_ns + (m->class == LT_INTERRUPTED ? 2ll : 1ll) * LT_SECOND;
}

/* The main thread may be anywhere, in C too: it is not asked. */
static void handle_interrupt(lt_world *w) {
  char text[LT_VERDICT_TEXT], activity[512];
  int number = atomic_load(&w->interrupt);
  lt_mark mark = lt_watchdog_activity(w);
  lt_mark_text(&mark, w->info.rank, activity, sizeof activity);
  snprintf(text, sizeof text, "interrupted: %s", activity);
  w->notice = (lt_message){.kind = LT_MESSAGE_REPORT,
                           .class = LT_INTERRUPTED,
                           .rank = w->info.rank,
                           .status = LT_STATUS_OF_SIGNAL + number};
  lt_message_text(&w->notice, text);
  report_failure(w, &w->notice);
}

static void handle_left(lt_world *w) {
  if (is_coordinator(w))
    lt_coordinator_left(w, 0, &w->left);
  else
    lt_channel_send(&w->peers[0].link, &w->left);
}

static void handle_requests(lt_world *w) {
  uint32_t requests = atomic_load(&w->requests), fresh = requests & ~w->requests_done;
  w->requests_done = requests;
  if ((fresh & LT_REQUEST_REPORT) != 0) report_failure(w, &w->report);
  if ((fresh & LT_REQUEST_INTERRUPT) != 0) handle_interrupt(w);
  if ((fresh & LT_REQUEST_LEFT) != 0) handle_left(w);
  if ((fresh & LT_REQUEST_BYE) != 0 && !is_coordinator(w)) lt_watchdog_send(w, LT_MESSAGE_BYE);
  if ((fresh & LT_REQUEST_ACK) == 0) return;
  if (is_coordinator(w))
    lt_coordinator_acked(w, 0);
  else
    lt_watchdog_send(w, LT_MESSAGE_ACK);
}

static void send_heartbeats(lt_world *w) {
  if (w->now_ns < w->heartbeat_ns) return;
  w->heartbeat_ns = w->now_ns + (w->alert ? (int64_t)ALERT_MS * LT_MS : LT_SECOND);
  w->out = (lt_message){.kind = LT_MESSAGE_HEARTBEAT, .rank = w->info.rank};
  lt_watchdog_state(w, &w->out.state);
  lt_issued_list list = {0};
  if (!is_coordinator(w) &&
      !lt_heartbeat_issued(w->heartbeat, w->out.state.waiting_since_ns, &list))
    list.n = 0;
  lt_message_set_issued(&w->out, &list);
  for (int r = 0; r < w->n_peers; r++)
    if (!lt_channel_is_full(&w->peers[r].link)) lt_channel_send(&w->peers[r].link, &w->out);
}

void lt_watchdog_receive(lt_world *w, int peer) {
  lt_received got;
  lt_peer *p = &w->peers[peer];
  lt_channel_flush(&p->link);
  while ((got = lt_channel_receive(&p->link, &w->in)) == LT_GOT_MESSAGE) {
    if (is_coordinator(w))
      lt_coordinator_receive(w, peer, &w->in);
    else
      lt_worker_receive(w, &w->in);
  }
  if (got != LT_GOT_END) return;
  if (is_coordinator(w))
    p->ended_ns = w->now_ns;
  else
    lt_worker_disconnected(w);
}

/* mpirun ends the others a second after the first that ends: a rank that is stuck counts as
   unwound, and waits like those that are. */
static void wait_stuck(lt_world *w) {
  int64_t limit = atomic_load(&w->rank_0_saves) ? (int64_t)LT_SAVE_S : (int64_t)ACK_S;
  bool all = (atomic_load(&w->events) & LT_EVENT_ALL_ACK) != 0;
  if (!w->stuck) atomic_fetch_or(&w->requests, LT_REQUEST_ACK);
  w->stuck = true;
  if (all || w->peers[0].exited || w->unwinding_ns >= limit * LT_SECOND) lt_watchdog_exit(w);
}

/* After a verdict: a main thread that does not come back in time ends with its process, where that
   is ours. Saves may take longer. */
static void unwinding(lt_world *w, int64_t tick) {
  if (!lt_heartbeat_is_over(w->heartbeat)) return;
  if ((w->requests_done & (LT_REQUEST_BYE | LT_REQUEST_ACK)) != 0 && !w->stuck) return;
  w->unwinding_ns += tick;
  bool orphan = w->info.in_child && w->peers[0].exited;
  int64_t limit = orphan ? (int64_t)ORPHAN_MS * LT_MS : (int64_t)UNWIND_S * LT_SECOND;
  if (atomic_load(&w->saving) > 0) limit = (int64_t)LT_SAVE_S * LT_SECOND;
  if (w->unwinding_ns >= limit) {
    if (!w->info.in_child && !w->owns_process) return;
    if (w->connections != NULL) wait_stuck(w);
    if (w->connections == NULL) lt_watchdog_exit(w);
  } else if (w->now_ns - w->signalled_ns >= 100 * LT_MS) {
    w->signalled_ns = w->now_ns; /* again: a sleep may have begun just behind the first one */
    lt_world_signal(w);
  }
}

void lt_watchdog_exit(lt_world *w) {
  bool parent = w->info.forked && !w->info.in_child;
  bool first = is_coordinator(w) || w->peers[0].exited || w->heartbeat->verdict.rank == 0;
  if (first) lt_watchdog_print_verdict(w);
  for (int r = 1; parent && r < w->n_peers; r++) lt_children_kill(w, r);
  lt_daemons_end(w);
  _exit(w->heartbeat->verdict.status);
}

/* Coming together, and closing in order, have limits of their own, without anybody to talk to. */
static void limits(lt_world *w) {
  int64_t deadline = atomic_load(&w->launch_deadline_ns);
  if (deadline == 0 || w->now_ns < deadline) return;
  char text[256];
  if (atomic_load(&w->closing)) {
    if (w->owns_process) _exit(0); /* all have left: what is lost is only the order of the end */
    return;
  }
  char who[32] = "";
  if (w->first_rank >= 0) snprintf(who, sizeof who, "rank %d: ", w->first_rank);
  snprintf(text, sizeof text,
           "%s: %sthe ranks did not come together in time (launch_timeout): is every rank started, "
           "and can they reach each other?",
           w->what, who);
  if (w->owns_process) {
    if (lt_join_may_print(w)) {
      lt_watchdog_print(w, text);
      usleep(SEEN_MS * 1000); /* the others look once a second, and see that it is told */
    }
    _exit(1);
  }
  lt_watchdog_verdict(w, LT_LATE, -1, 1, text);
}

static int fill_polls(lt_world *w) {
  int n = 0;
  w->polls[n++] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
  for (int r = 0; r < w->n_peers; r++) {
    const lt_peer *p = &w->peers[r];
    short out = lt_channel_is_full(&p->link) ? POLLOUT : 0;
    if (p->link.fd >= 0)
      w->polls[n++] = (struct pollfd){.fd = p->link.fd, .events = (short)(POLLIN | out)};
    if (p->pidfd >= 0 && !p->exited)
      w->polls[n++] = (struct pollfd){.fd = p->pidfd, .events = POLLIN};
  }
  return w->connections != NULL ? lt_connections_polls(w, n) : n;
}

/* Until the next thing that time alone brings. */
static int patience_ms(const lt_world *w) {
  int64_t until = w->heartbeat_ns;
  if (w->collecting) until = least(until, w->decide_ns);
  if (w->fallback_ns != 0) until = least(until, w->fallback_ns);
  if (lt_heartbeat_is_over(w->heartbeat) || w->connections != NULL)
    until = least(until, w->now_ns + 100 * LT_MS);
  int64_t ms = (until - w->now_ns + LT_MS - 1) / LT_MS;
  return ms < 0 ? 0 : ms > 1000 ? 1000 : (int)ms;
}

static void turn(lt_world *w, int64_t tick) {
  handle_requests(w);
  if (atomic_exchange(&w->waits_long, false)) {
    w->look = true;
    if (!is_coordinator(w)) w->heartbeat_ns = w->now_ns;
  }
  for (int r = 0; r < w->n_peers; r++) lt_watchdog_receive(w, r);
  if (w->connections != NULL) lt_connections_turn(w);
  if (is_coordinator(w)) {
    lt_children_turn(w);
    lt_timeouts_turn(w, tick);
    lt_coordinator_turn(w);
  } else {
    lt_worker_turn(w, tick);
  }
  send_heartbeats(w);
  unwinding(w, tick);
  limits(w);
}

static void *watch(void *ud) {
  lt_world *w = ud;
  w->now_ns = lt_now_ns();
  while ((atomic_load(&w->requests) & LT_REQUEST_STOP) == 0) {
    poll(w->polls, (nfds_t)fill_polls(w), patience_ms(w));
    uint64_t count;
    ssize_t n = read(w->wake_fd, &count, sizeof count);
    (void)n;
    int64_t now = lt_now_ns(), tick = least(now - w->now_ns, LT_SECOND);
    w->now_ns = now;
    turn(w, tick);
  }
  handle_requests(w); /* what was asked just before the end */
  return NULL;
}

bool lt_watchdog_start(lt_ctx *c, lt_world *w) {
  atomic_fetch_and(&w->requests, ~(uint32_t)LT_REQUEST_STOP); /* of an earlier one */
  int status = lt_launch_thread(&w->thread, STACK, watch, w);
  w->watched = c->line_watched = status == 0;
  if (w->watched) return true;
  return lt_fail(c, LT_EMEMORY, "%s: no watchdog thread: %s", w->what, strerror(status));
}

void lt_watchdog_stop(lt_world *w) {
  if (!w->watched) return;
  lt_world_request(w, LT_REQUEST_STOP);
  pthread_join(w->thread, NULL);
  w->watched = w->c->line_watched = false;
}
