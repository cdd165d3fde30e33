/* runtime/launch/timeouts.c: timeouts on rank 0: which ranks are lost, late or stalled.

   Lost: nothing received for `timeout`, and for three heartbeats at least; named before, when
   others wait for it. Late: alive, but not
   where others wait, for `timeout`, unless it declared a span. Stalled: all are there, and nothing
   moves for twice that. The clocks of waits run only while the same wait is seen again and again
   and its rank is received, so time in which a process was stopped or a link was cut never
   counts. */
#include <stdio.h>
#include <string.h>

#include "launch/world.h"

enum { WARN_S = 10, DOUBT_MS = 500, LOCATE_S = 2 };

static bool is_message(const lt_mark *m) { return m->op == LT_COMM_SEND || m->op == LT_COMM_RECV; }

/* Whether a rank that is still at work has come to where `waiter` waits. */
static bool is_there(const lt_peer *p, const lt_peer *waiter) {
  const lt_mark *mine = &p->state.mark, *theirs = &waiter->state.mark;
  if (!lt_peer_is_waiting(p) || mine->group != theirs->group) return false;
  return is_message(mine) || is_message(theirs) || mine->seq >= theirs->seq;
}

/* What the ranks of a wait do, for the table: those waited for and the waiter itself. */
static int collect_marks(lt_watchdog *d, int waiter) {
  int n = 0;
  for (int r = 0; r < d->n_peers; r++) {
    if (r != waiter && !lt_peer_waits_for(&d->peers[waiter], r)) continue;
    d->ranks[n] = r;
    d->marks[n++] = d->peers[r].state.mark;
  }
  return n;
}

/* The waiter waits for a rank that left without it: that is known at once, except in a group that
   the other has released: there the wait must last. */
static void look_for_left(lt_watchdog *d, int waiter, int64_t elapsed) {
  lt_peer *p = &d->peers[waiter];
  int64_t before = p->left_ns;
  for (int r = 0; r < d->n_peers; r++) {
    if (r == waiter || !d->peers[r].left || !lt_peer_waits_for(p, r)) continue;
    p->left_ns = before + elapsed;
    lt_come come = lt_peer_come(d, waiter, r);
    if (come == LT_COME) continue;
    if (come == LT_COME_UNKNOWN && p->left_ns < (int64_t)DOUBT_MS * LT_MS) continue;
    char text[LT_OUTCOME_TEXT];
    lt_disagreement_text(d->marks, d->ranks, collect_marks(d, waiter), text, sizeof text);
    lt_coordinator_report(d, -1, LT_RAISED, 1, text);
    return;
  }
}

/* Ranks that the waiter misses, into d->ranks; those that wait elsewhere themselves only when there
   is no other. -1 when one of them is in a declared span: then none is late. Whoever waits
   elsewhere waits for somebody itself: the one at work is the cause. */
static int find_missing(lt_watchdog *d, int waiter) {
  int n = 0;
  bool excused = false, elsewhere = true;
  for (int r = 0; r < d->n_peers; r++) {
    const lt_peer *p = &d->peers[r];
    if (r == waiter || p->exited || p->left) continue;
    if (!lt_peer_is_heard(p) || p->state.declared > 0) excused = true;
    if (!lt_peer_waits_for(&d->peers[waiter], r) || is_there(p, &d->peers[waiter])) continue;
    if (lt_peer_is_waiting(p) && !elsewhere) continue;
    if (!lt_peer_is_waiting(p) && elsewhere) n = 0, elsewhere = false;
    d->ranks[n++] = r;
  }
  return excused ? -1 : n;
}

/* " in the group of ranks 0, 1: rank 0: all_reduce ...": the wait. */
static void add_wait(lt_watchdog *d, int waiter, char *text, size_t size) {
  lt_peer_add_group(d, waiter, -1, text, size);
  lt_text_add(text, size, ": ");
  size_t used = strlen(text);
  lt_marks_text(d->marks, d->ranks, collect_marks(d, waiter), text + used, size - used);
}

static void late_text(lt_watchdog *d, int waiter, int n, char *text, size_t size) {
  char named[256];
  lt_ranks_text(d->ranks, n, named, sizeof named);
  snprintf(text, size, "%s %s late: rank %d has waited %.0f s", named, n == 1 ? "is" : "are",
           waiter, (double)d->peers[waiter].blamed_ns / LT_SECOND);
  add_wait(d, waiter, text, size);
}

/* Where this process is not ours to print in, a child does it. */
static void warn(lt_watchdog *d, const char *text) {
  if (d->world->owns_process) {
    lt_watchdog_print(d, text);
    return;
  }
  d->out = (lt_message){.kind = LT_MESSAGE_WARN};
  lt_message_text(&d->out, text);
  for (int r = 1; r < d->n_peers && d->info->forked; r++)
    if (lt_peer_is_heard(&d->peers[r]) && lt_channel_send(&d->peers[r].link, &d->out)) return;
}

/* Soon before the ranks in d->ranks are reported they are asked for the lines of their scripts. */
static void ask_lines(lt_watchdog *d, int n, int64_t left_ns) {
  if (left_ns < 0 || left_ns > (int64_t)LOCATE_S * LT_SECOND) return;
  for (int k = 0; k < n; k++)
    if (!lt_peer_is_waiting(&d->peers[d->ranks[k]]))
      lt_watchdog_send_kind(d, d->ranks[k], LT_MESSAGE_LOCATE);
}

static void look_for_late(lt_watchdog *d, int waiter, int n) {
  lt_peer *p = &d->peers[waiter];
  int64_t timeout = atomic_load(&d->mail->timeout_ns), warning = (int64_t)WARN_S * LT_SECOND;
  if (warning > timeout / 2) warning = timeout / 2;
  ask_lines(d, n, warning - p->blamed_ns);
  ask_lines(d, n, timeout - p->blamed_ns);
  char text[LT_OUTCOME_TEXT];
  int named = d->ranks[0];
  if (p->blamed_ns >= timeout) {
    late_text(d, waiter, n, text, sizeof text);
    lt_coordinator_report(d, named, LT_LATE, 1, text);
  } else if (p->blamed_ns >= warning && !p->warned && !d->peers[named].warned) {
    p->warned = d->peers[named].warned = true; /* once a rank that is late, not once a waiter */
    late_text(d, waiter, n, text, sizeof text);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, " (an error at %.0f s)", (double)timeout / LT_SECOND);
    warn(d, text);
  }
}

static void look_for_stall(lt_watchdog *d, int waiter) {
  const lt_peer *p = &d->peers[waiter];
  if (p->still_ns < 2 * atomic_load(&d->mail->timeout_ns)) return;
  char text[LT_OUTCOME_TEXT];
  snprintf(text, sizeof text, "stalled: all ranks have arrived and no data has moved for %.0f s",
           (double)p->still_ns / LT_SECOND);
  add_wait(d, waiter, text, sizeof text);
  lt_coordinator_report(d, -1, LT_STALLED, 1, text);
}

/* A wait is the same as long as its rank gets on with nothing: both numbers only grow. */
static uint64_t key_of(const lt_peer *p) {
  return (uint64_t)p->state.waiting_since_ns + p->state.progress;
}

static void look_at(lt_watchdog *d, int waiter, int64_t elapsed) {
  lt_peer *p = &d->peers[waiter];
  uint64_t key = lt_peer_is_waiting(p) ? key_of(p) : 0;
  if (key != p->wait_key) {
    p->wait_key = key;
    p->blamed_ns = p->still_ns = p->left_ns = 0;
    p->warned = false;
    return;
  }
  if (key == 0 || !lt_peer_is_heard(p)) return;
  look_for_left(d, waiter, elapsed);
  int n = find_missing(d, waiter);
  p->blamed_ns = n > 0 ? p->blamed_ns + elapsed : 0;
  p->still_ns = n == 0 ? p->still_ns + elapsed : 0;
  if (n > 0) look_for_late(d, waiter, n);
  if (n == 0) look_for_stall(d, waiter);
}

static void refresh_issued(lt_peer *p, const lt_heartbeat *heartbeat) {
  lt_issued_list list;
  if (p->left) return;
  p->n_issued = 0;
  if (!lt_heartbeat_issued(heartbeat, p->state.waiting_since_ns, &list)) return;
  p->n_issued = (int)list.n;
  memcpy(p->issued, list.entries, (size_t)list.n * sizeof *list.entries);
}

/* What ranks do now: forked ones lie open, joined ones sent it with their last heartbeat. */
static void refresh(lt_watchdog *d) {
  lt_watchdog_state(d, &d->peers[0].state);
  refresh_issued(&d->peers[0], d->heartbeat);
  for (int r = 1; r < d->n_peers && d->world->heartbeats != NULL; r++) {
    lt_peer *p = &d->peers[r];
    if (p->exited || p->left) continue;
    lt_peer_refresh(p, &d->world->heartbeats[r]);
    refresh_issued(p, &d->world->heartbeats[r]);
  }
}

static void look_for_lost(lt_watchdog *d) {
  int64_t timeout = lt_watchdog_lost_ns(d);
  for (int r = 1; r < d->n_peers; r++) {
    const lt_peer *p = &d->peers[r];
    if (p->exited || p->done || p->reported || p->silent_ns < timeout) continue;
    char what[128];
    lt_peer_lost_text(d, p, what, sizeof what);
    lt_coordinator_report_rank(d, r, LT_LOST, 1, what);
  }
}

static bool is_awaited(const lt_watchdog *d, int rank) {
  for (int r = 0; r < d->n_peers; r++)
    if (r != rank && lt_peer_is_heard(&d->peers[r]) && lt_peer_is_waiting(&d->peers[r]) &&
        lt_peer_waits_for(&d->peers[r], rank))
      return true;
  return false;
}

static void look_for_silent(lt_watchdog *d) {
  for (int r = 1; r < d->n_peers; r++) {
    lt_peer *p = &d->peers[r];
    if (p->exited || p->done || p->reported || !is_awaited(d, r) || !lt_peer_falls_silent(d, p))
      continue;
    char text[LT_OUTCOME_TEXT];
    lt_peer_silent_text(d, r, p, text, sizeof text);
    warn(d, text);
  }
}

/* All clocks, which look as often as heartbeats come. */
static void look(lt_watchdog *d) {
  int64_t elapsed = d->timeouts_ns < LT_SECOND ? d->timeouts_ns : LT_SECOND;
  d->timeouts_ns = 0;
  look_for_lost(d);
  if (!d->collecting) look_for_silent(d);
  for (int r = 0; r < d->n_peers && !d->collecting; r++) look_at(d, r, elapsed);
}

void lt_timeouts_turn(lt_watchdog *d, int64_t tick) {
  if (lt_heartbeat_is_over(d->heartbeat) || lt_mailbox_has(d->mail, LT_NOTICE_ALL_LEFT)) return;
  for (int r = 1; r < d->n_peers; r++) d->peers[r].silent_ns += tick;
  if (atomic_load(&d->mail->deadline_ns) != 0) return;
  d->timeouts_ns += tick;
  bool due = d->timeouts_ns >= (d->alert ? 100ll * LT_MS : LT_SECOND);
  if (!due && !d->look) return;
  refresh(d);
  if (!d->collecting) lt_deadlock_look(d);
  d->look = false;
  if (due) look(d);
}
