/* runtime/launch/watchdog.c: the thread that looks on while the main thread does anything at all.

   One a rank, all signals blocked. It does no Lua, OpenMP or allocation: poll, write, futex wake,
   _exit. Time is counted in ticks of at most a second: what it slept through (Ctrl-Z, a suspended
   machine) counts for nobody. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/world.h"

enum { UNWIND_S = 2, ORPHAN_MS = 800, SAVE_S = 30, ALERT_MS = 100, STACK = 1 << 19 };

static bool is_hub(const lt_world *w) { return w->info.rank == 0; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The parts are read one by one: a wait that ended meanwhile is none. */
void lt_pulse_state(const lt_pulse *p, lt_state *s) {
  memset(s, 0, sizeof *s);
  s->lowest = -1;
  int64_t since = atomic_load(&p->waiting_since_ns);
  for (int i = 0; i < LT_COMM_MAX_RANKS / 64; i++)
    s->waiting_for[i] = atomic_load(&p->waiting_for[i]);
  s->mark = lt_pulse_doing(p);
  s->progress = atomic_load(&p->progress);
  s->declared = atomic_load(&p->declared);
  if (atomic_load(&p->waiting_since_ns) == since) s->waiting_since_ns = since;
}

void lt_watchdog_state(lt_world *w, lt_state *s) {
  lt_pulse_state(w->pulse, s);
  s->saving = atomic_load(&w->saving);
  for (int r = w->n_peers - 1; r > 0; r--)
    if (!w->peers[r].gone && w->peers[r].silent_ns < 3ll * LT_SECOND) s->lowest = r;
}

void lt_watchdog_speak(lt_world *w) {
  if (w->err_fd < 0 || !lt_world_may_speak(w)) return;
  lt_watchdog_print(w, w->pulse->verdict.text);
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
  if (lt_pulse_over(w->pulse)) return;
  lt_verdict_set(&w->pulse->verdict, class, rank, status, text);
  w->unwinding_ns = 0;
  w->fallback_ns = 0;
  w->signalled_ns = w->now_ns;
  lt_world_signal(w);
  lt_news_tell(w, LT_NEWS_VERDICT);
  lt_files_write(w);
}

/* ---- ranks other than 0: their part of the star ---- */

/* Judge alone: rank 0 is not there to do it. */
static void judge(lt_world *w, lt_verdict_class class, int status, const char *text) {
  if (lt_pulse_over(w->pulse)) return;
  w->out =
      (lt_message){.kind = LT_SAY_VERDICT, .class = (uint8_t) class, .rank = 0, .status = status};
  lt_message_text(&w->out, text);
  lt_channel_send(&w->peers[0].link, &w->out);
  lt_watchdog_verdict(w, class, 0, status, text);
  if (w->info.forked) lt_watchdog_speak(w); /* the parent, which would raise it, is not there */
}

static void judge_hub(lt_world *w, lt_verdict_class class, const char *what) {
  char text[LT_VERDICT_TEXT], doing[512];
  lt_mark mark = lt_pulse_doing(w->pulse);
  lt_mark_text(&mark, w->info.rank, doing, sizeof doing);
  snprintf(text, sizeof text, "rank 0 %s; %s", what, doing);
  judge(w, class, 1, text);
}

static void hear(lt_world *w, const lt_message *m) {
  lt_peer *hub = &w->peers[0];
  hub->silent_ns = 0;
  switch ((lt_message_kind)m->kind) {
    case LT_SAY_BEAT: hub->state = m->state; break;
    case LT_SAY_READY: lt_news_tell(w, LT_NEWS_READY); break;
    case LT_SAY_ALERT:
      w->alert = true;
      w->beat_ns = w->now_ns;
      break;
    case LT_SAY_ALL_LEFT: lt_news_tell(w, LT_NEWS_ALL_LEFT); break;
    case LT_SAY_WARN:
      if (w->err_fd >= 0) lt_watchdog_print(w, m->text);
      break;
    case LT_SAY_VERDICT:
      lt_watchdog_verdict(w, (lt_verdict_class)m->class, m->rank, m->status, m->text);
      break;
    case LT_SAY_ALL_ACK: lt_news_tell(w, LT_NEWS_ALL_ACK); break;
    default: break;
  }
}

static void hub_ended(lt_world *w) {
  lt_peer *hub = &w->peers[0];
  if (hub->ended_ns == 0) hub->ended_ns = w->now_ns;
  if (w->star != NULL) return; /* dials again, see control_tcp.c */
  hub->gone = true;
  if ((atomic_load(&w->news) & LT_NEWS_ALL_LEFT) != 0) return;
  judge_hub(w, LT_EXITED, "ended without a word");
}

static void leaf_turn(lt_world *w, int64_t tick) {
  lt_peer *hub = &w->peers[0];
  if (!hub->gone) hub->silent_ns += tick;
  bool left = (atomic_load(&w->news) & LT_NEWS_ALL_LEFT) != 0;
  if (!hub->gone && !left && hub->silent_ns >= atomic_load(&w->timeout_ns)) {
    char what[96];
    snprintf(what, sizeof what, "is lost: not heard for %.0f s (stopped, or cut off)",
             (double)hub->silent_ns / LT_SECOND);
    judge_hub(w, LT_LOST, what);
  }
  if (w->fallback_ns != 0 && w->now_ns >= w->fallback_ns) {
    const lt_message *m = &w->report;
    lt_watchdog_verdict(w, (lt_verdict_class)m->class, m->rank, m->status, m->text);
  }
}

/* ---- both ---- */

static void say(lt_world *w, lt_message_kind kind) {
  w->out = (lt_message){.kind = (uint8_t)kind, .rank = w->info.rank};
  lt_message_size(&w->out, 0);
  lt_channel_send(&w->peers[0].link, &w->out);
}

static void answer_report(lt_world *w) {
  const lt_message *m = &w->report;
  if (is_hub(w)) {
    lt_hub_report(w, m->rank, (lt_verdict_class)m->class, m->status, m->text);
    return;
  }
  lt_channel_send(&w->peers[0].link, m);
  w->fallback_ns = w->now_ns + LT_SECOND;
}

static void answer_left(lt_world *w) {
  if (is_hub(w))
    lt_hub_left(w, 0, &w->left);
  else
    lt_channel_send(&w->peers[0].link, &w->left);
}

static void answer(lt_world *w) {
  uint32_t asks = atomic_load(&w->asks), fresh = asks & ~w->asks_done;
  w->asks_done = asks;
  if ((fresh & LT_ASK_REPORT) != 0) answer_report(w);
  if ((fresh & LT_ASK_LEFT) != 0) answer_left(w);
  if ((fresh & LT_ASK_BYE) != 0 && !is_hub(w)) say(w, LT_SAY_BYE);
  if ((fresh & LT_ASK_ACK) == 0) return;
  if (is_hub(w))
    lt_hub_acked(w, 0);
  else
    say(w, LT_SAY_ACK);
}

/* A fresh connection knows nothing of what the old one may have swallowed. */
void lt_watchdog_say_again(lt_world *w) {
  uint32_t asks = w->asks_done;
  if ((asks & LT_ASK_REPORT) != 0) lt_channel_send(&w->peers[0].link, &w->report);
  if ((asks & LT_ASK_LEFT) != 0) lt_channel_send(&w->peers[0].link, &w->left);
  if ((asks & LT_ASK_BYE) != 0) say(w, LT_SAY_BYE);
  if ((asks & LT_ASK_ACK) != 0) say(w, LT_SAY_ACK);
}

static void beat(lt_world *w) {
  if (w->now_ns < w->beat_ns) return;
  w->beat_ns = w->now_ns + (w->alert ? (int64_t)ALERT_MS * LT_MS : LT_SECOND);
  w->out = (lt_message){.kind = LT_SAY_BEAT, .rank = w->info.rank};
  lt_watchdog_state(w, &w->out.state);
  lt_message_size(&w->out, 0);
  for (int r = 0; r < w->n_peers; r++)
    if (!lt_channel_is_full(&w->peers[r].link)) lt_channel_send(&w->peers[r].link, &w->out);
}

void lt_watchdog_receive(lt_world *w, int peer) {
  lt_received got;
  lt_peer *p = &w->peers[peer];
  lt_channel_flush(&p->link);
  while ((got = lt_channel_receive(&p->link, &w->in)) == LT_GOT_MESSAGE) {
    if (is_hub(w))
      lt_hub_hear(w, peer, &w->in);
    else
      hear(w, &w->in);
  }
  if (got != LT_GOT_END) return;
  if (is_hub(w))
    p->ended_ns = w->now_ns;
  else
    hub_ended(w);
}

/* After a verdict: a main thread that does not come back in time ends with its process, where that
   is ours. Saves may take longer. */
static void unwinding(lt_world *w, int64_t tick) {
  if (!lt_pulse_over(w->pulse)) return;
  if ((w->asks_done & (LT_ASK_BYE | LT_ASK_ACK)) != 0) return;
  w->unwinding_ns += tick;
  bool orphan = w->info.in_child && w->peers[0].gone;
  int64_t limit = orphan ? (int64_t)ORPHAN_MS * LT_MS : (int64_t)UNWIND_S * LT_SECOND;
  if (atomic_load(&w->saving) > 0) limit = (int64_t)SAVE_S * LT_SECOND;
  if (w->unwinding_ns >= limit && (w->info.in_child || w->owns_process)) lt_watchdog_exit(w);
  if (w->unwinding_ns < limit && w->now_ns - w->signalled_ns >= 100 * LT_MS) {
    w->signalled_ns = w->now_ns; /* again: a sleep may have begun just behind the first one */
    lt_world_signal(w);
  }
}

void lt_watchdog_exit(lt_world *w) {
  bool parent = w->info.forked && !w->info.in_child;
  bool first = is_hub(w) || w->peers[0].gone || w->pulse->verdict.rank == 0;
  if (first) lt_watchdog_speak(w);
  for (int r = 1; parent && r < w->n_peers; r++) lt_children_kill(w, r);
  _exit(w->pulse->verdict.status);
}

/* Coming together has a limit of its own, before there is anybody to talk to. */
static void launching(lt_world *w) {
  int64_t deadline = atomic_load(&w->launch_deadline_ns);
  if (deadline == 0 || w->now_ns < deadline || !w->owns_process) return;
  char text[256];
  snprintf(text, sizeof text,
           "%s: rank %d: the ranks did not come together in time "
           "(launch_timeout): is every rank started, and the network up?",
           w->what, w->info.rank);
  lt_watchdog_print(w, text);
  _exit(1);
}

static int fill_polls(lt_world *w) {
  int n = 0;
  w->polls[n++] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
  for (int r = 0; r < w->n_peers; r++) {
    const lt_peer *p = &w->peers[r];
    short out = lt_channel_is_full(&p->link) ? POLLOUT : 0;
    if (p->link.fd >= 0)
      w->polls[n++] = (struct pollfd){.fd = p->link.fd, .events = (short)(POLLIN | out)};
    if (p->pidfd >= 0 && !p->gone)
      w->polls[n++] = (struct pollfd){.fd = p->pidfd, .events = POLLIN};
  }
  return n;
}

/* Until the next thing that time alone brings. */
static int patience_ms(const lt_world *w) {
  int64_t until = w->beat_ns;
  if (w->collecting) until = least(until, w->decide_ns);
  if (w->fallback_ns != 0) until = least(until, w->fallback_ns);
  if (lt_pulse_over(w->pulse) || w->star != NULL) until = least(until, w->now_ns + 100 * LT_MS);
  int64_t ms = (until - w->now_ns + LT_MS - 1) / LT_MS;
  return ms < 0 ? 0 : ms > 1000 ? 1000 : (int)ms;
}

static void turn(lt_world *w, int64_t tick) {
  answer(w);
  for (int r = 0; r < w->n_peers; r++) lt_watchdog_receive(w, r);
  if (is_hub(w)) {
    lt_children_turn(w);
    lt_clocks_hub(w, tick);
    lt_hub_turn(w);
  } else {
    leaf_turn(w, tick);
  }
  beat(w);
  unwinding(w, tick);
  launching(w);
}

static void *watch(void *ud) {
  lt_world *w = ud;
  w->now_ns = lt_now_ns();
  while ((atomic_load(&w->asks) & LT_ASK_STOP) == 0) {
    poll(w->polls, (nfds_t)fill_polls(w), patience_ms(w));
    uint64_t count;
    ssize_t n = read(w->wake_fd, &count, sizeof count);
    (void)n;
    int64_t now = lt_now_ns(), tick = least(now - w->now_ns, LT_SECOND);
    w->now_ns = now;
    turn(w, tick);
  }
  answer(w); /* what was asked just before the end */
  return NULL;
}

bool lt_watchdog_start(lt_ctx *c, lt_world *w) {
  sigset_t all, before;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int status = pthread_create(&w->thread, &attributes, watch, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  w->watched = status == 0;
  if (w->watched) return true;
  return lt_fail(c, LT_EMEMORY, "%s: no watchdog thread: %s", w->what, strerror(status));
}

void lt_watchdog_stop(lt_world *w) {
  if (!w->watched) return;
  lt_ask_of(w, LT_ASK_STOP);
  pthread_join(w->thread, NULL);
  w->watched = false;
}
