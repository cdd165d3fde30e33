/* runtime/launch/coordinator.c: rank 0's watchdog, which collects failures into one report. */
#include <stdio.h>
#include <string.h>

#include "launch/world.h"

/* Consequences arrive soon after their cause, sometimes before it: what counts is the gravest. */
enum { COLLECT_MS = 200, REDIAL_MS = 500 };

void lt_coordinator_broadcast(lt_watchdog *d, lt_message_kind kind) {
  for (int r = 1; r < d->n_peers; r++) lt_watchdog_send_kind(d, r, kind);
}

/* Within a class the first to arrive stays; of ranks that ended together, rank 0's. */
static bool is_graver(const lt_message *before, int rank, lt_outcome_class class) {
  if (class == LT_INTERRUPTED && before->class == LT_INTERRUPTED) return rank == 0;
  return class < (lt_outcome_class)before->class;
}

void lt_coordinator_report(lt_watchdog *d, int rank, lt_outcome_class class, int status,
                           const char *text) {
  if (lt_heartbeat_is_over(d->heartbeat)) return;
  if (!d->collecting) d->collect_ns = d->now_ns;
  if (!d->collecting) d->decide_ns = d->now_ns + (int64_t)COLLECT_MS * LT_MS;
  if (class == LT_INTERRUPTED && d->collecting && d->failure.class == class) {
    /* Not every rank knows which signal it was. */
    if (status <= 1) status = d->failure.status;
    if (d->failure.status <= 1) d->failure.status = status;
  }
  if (d->collecting && !is_graver(&d->failure, rank, class)) return;
  d->collecting = true;
  lt_message_failure(&d->failure, LT_MESSAGE_OUTCOME, class, rank, status, text);
}

static void decide(lt_watchdog *d) {
  const lt_message *m = &d->failure;
  d->collecting = false;
  for (int r = 1; r < d->n_peers; r++) lt_watchdog_send(d, r, m);
  if (m->class == LT_LOST && m->rank > 0) lt_children_kill(d->world, m->rank); /* stopped */
  lt_watchdog_outcome(d, m);
}

static bool all_left(lt_watchdog *d) {
  for (int r = 0; r < d->n_peers; r++)
    if (!d->peers[r].left) return false;
  return true;
}

/* From now on a wait for this rank is in vain. Who waits long reports it. */
static void has_left(lt_watchdog *d, int rank, const lt_message *m) {
  lt_peer *p = &d->peers[rank];
  if (p->left) return;
  p->left = true;
  p->state.mark = m->state.mark;
  p->n_issued = lt_message_get_issued(m, p->issued);
  if (all_left(d)) {
    lt_coordinator_broadcast(d, LT_MESSAGE_ALL_LEFT);
    lt_mailbox_notify(d->mail, LT_NOTICE_ALL_LEFT);
  }
  d->alert = true;
}

/* Ranks that have ended, or are not heard any more, will say nothing: nobody waits for them. */
static void is_done(lt_watchdog *d, int rank) {
  d->peers[rank].done = true;
  for (int r = 0; r < d->n_peers; r++) {
    const lt_peer *p = &d->peers[r];
    if (!p->done && !p->exited && lt_peer_is_heard(p)) return;
  }
  lt_coordinator_broadcast(d, LT_MESSAGE_ALL_DONE);
  lt_mailbox_notify(d->mail, LT_NOTICE_ALL_DONE);
}

static void receive_heartbeat(lt_watchdog *d, lt_peer *p, const lt_message *m) {
  bool same = p->n_issued > 0 && p->state.waiting_since_ns == m->state.waiting_since_ns;
  p->state = m->state;
  if (p->left) return;
  p->n_issued = lt_message_get_issued(m, p->issued);
  if (p->n_issued > 0 && !same) d->look = true;
}

void lt_coordinator_receive(lt_watchdog *d, int rank, const lt_message *m) {
  lt_peer *p = &d->peers[rank];
  p->silent_ns = 0;
  p->doubted = false;
  switch ((lt_message_kind)m->kind) {
    case LT_MESSAGE_HEARTBEAT: receive_heartbeat(d, p, m); break;
    case LT_MESSAGE_REPORT:
    case LT_MESSAGE_OUTCOME:
      p->reported = true;
      lt_coordinator_report(d, m->rank, (lt_outcome_class)m->class, m->status, m->text);
      break;
    case LT_MESSAGE_LEFT: has_left(d, rank, m); break;
    case LT_MESSAGE_DONE: is_done(d, rank); break;
    case LT_MESSAGE_LOCATE: lt_watchdog_locate(d); break;
    case LT_MESSAGE_HELLO: /* what a coordinator sends, or a worker while it connects */
    case LT_MESSAGE_CHALLENGE:
    case LT_MESSAGE_PROOF:
    case LT_MESSAGE_READY:
    case LT_MESSAGE_ALL_LEFT:
    case LT_MESSAGE_WARN:
    case LT_MESSAGE_ALL_DONE: break;
  }
}

void lt_coordinator_report_rank(lt_watchdog *d, int rank, lt_outcome_class class, int status,
                                const char *what) {
  char text[LT_OUTCOME_TEXT], activity[512];
  lt_mark_text(&d->peers[rank].state.mark, rank, activity, sizeof activity);
  snprintf(text, sizeof text, "rank %d (pid %d on %s) %s; last known: %s", rank,
           d->info->pids[rank], d->info->hosts[rank], what, activity);
  lt_coordinator_report(d, rank, class, status, text);
}

/* A rank's process has ended, or seems to. It is a failure unless the rank was done, had reported
   one itself, or all had left. The last state of a forked rank is in its heartbeat, in shared
   memory, which outlives it. */
void lt_coordinator_exited(lt_watchdog *d, int rank, int status, const char *how) {
  lt_peer *p = &d->peers[rank];
  if (p->exited) return;
  p->exited = true;
  if (lt_heartbeat_is_over(d->heartbeat)) is_done(d, rank);
  if (p->done || p->reported || lt_mailbox_has(d->mail, LT_NOTICE_ALL_LEFT)) return;
  if (d->world->heartbeats != NULL) lt_peer_refresh(p, &d->world->heartbeats[rank]);
  lt_coordinator_report_rank(d, rank, LT_EXITED, status, how);
}

/* A rank over TCP whose connection ended and that does not dial again has ended itself. */
static void watch_ends(lt_watchdog *d) {
  for (int r = 1; r < d->n_peers; r++) {
    const lt_peer *p = &d->peers[r];
    if (p->exited || p->ended_ns == 0 || p->link.fd >= 0) continue;
    if (d->now_ns - p->ended_ns < (int64_t)REDIAL_MS * LT_MS) continue;
    lt_coordinator_exited(d, r, 1, "ended without an error message");
  }
}

/* An interrupted run is being saved here: the report is where. */
static bool saves(const lt_watchdog *d) {
  return d->failure.class == LT_INTERRUPTED && atomic_load(&d->mail->saving) > 0 &&
         d->now_ns < d->collect_ns + (int64_t)LT_SAVE_S * LT_SECOND;
}

void lt_coordinator_turn(lt_watchdog *d) {
  if (d->connections != NULL) watch_ends(d);
  if (d->collecting && saves(d)) d->decide_ns = d->now_ns + (int64_t)COLLECT_MS * LT_MS;
  if (d->collecting && d->now_ns >= d->decide_ns) decide(d);
}
