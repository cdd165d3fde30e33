/* runtime/launch/coordinator.c: rank 0's watchdog: failures come together here and
   become one verdict. */
#include <stdio.h>
#include <string.h>

#include "launch/world.h"

/* Consequences arrive soon after their cause, sometimes before it: what counts is the gravest. */
enum { COLLECT_MS = 200, REDIAL_MS = 500 };

void lt_coordinator_broadcast(lt_world *w, const lt_message *m) {
  for (int r = 1; r < w->n_peers; r++) lt_channel_send(&w->peers[r].link, m);
}

static void announce(lt_world *w, lt_message_kind kind) {
  w->out = (lt_message){.kind = (uint8_t)kind};
  lt_message_size(&w->out, 0);
  lt_coordinator_broadcast(w, &w->out);
}

/* Within a class the first to arrive stays; of ranks that ended together, rank 0's. */
static bool is_graver(const lt_message *best, int rank, lt_verdict_class class) {
  if (class == LT_INTERRUPTED && best->class == LT_INTERRUPTED) return rank == 0;
  return class < (lt_verdict_class)best->class;
}

void lt_coordinator_report(lt_world *w, int rank, lt_verdict_class class, int status,
                           const char *text) {
  if (lt_heartbeat_is_over(w->heartbeat)) return;
  if (!w->collecting) w->collect_ns = w->now_ns;
  if (!w->collecting) w->decide_ns = w->now_ns + (int64_t)COLLECT_MS * LT_MS;
  if (class == LT_INTERRUPTED && w->collecting && w->best.class == class) {
    /* Not every rank knows which signal it was. */
    if (status <= 1) status = w->best.status;
    if (w->best.status <= 1) w->best.status = status;
  }
  if (w->collecting && !is_graver(&w->best, rank, class)) return;
  w->collecting = true;
  w->best = (lt_message){
      .kind = LT_MESSAGE_VERDICT, .class = (uint8_t) class, .rank = rank, .status = status};
  lt_message_text(&w->best, text);
}

static void decide(lt_world *w) {
  const lt_message *m = &w->best;
  w->collecting = false;
  lt_coordinator_broadcast(w, m);
  if (m->class == LT_LOST && m->rank > 0) lt_children_kill(w, m->rank); /* stopped */
  lt_watchdog_verdict(w, (lt_verdict_class)m->class, m->rank, m->status, m->text);
}

static bool all_left(lt_world *w) {
  for (int r = 0; r < w->n_peers; r++)
    if (!w->peers[r].left) return false;
  return true;
}

/* From now on a wait for this rank is in vain: states are wanted soon. */
void lt_coordinator_left(lt_world *w, int rank, const lt_message *m) {
  lt_peer *p = &w->peers[rank];
  if (p->left) return;
  p->left = true;
  p->state.mark = m->state.mark;
  p->n_issued = lt_message_get_issued(m, p->issued);
  if (all_left(w)) {
    announce(w, LT_MESSAGE_ALL_LEFT);
    lt_world_notify(w, LT_EVENT_ALL_LEFT);
  } else if (!w->alert) {
    w->alert = true;
    w->heartbeat_ns = w->now_ns;
    announce(w, LT_MESSAGE_ALERT);
  }
}

void lt_coordinator_acked(lt_world *w, int rank) {
  w->peers[rank].acked = true;
  for (int r = 0; r < w->n_peers; r++) {
    const lt_peer *p = &w->peers[r];
    if (!p->acked && !p->exited && lt_peer_is_heard(p)) return;
  }
  announce(w, LT_MESSAGE_ALL_ACK);
  lt_world_notify(w, LT_EVENT_ALL_ACK);
}

static void receive_heartbeat(lt_world *w, lt_peer *p, const lt_message *m) {
  bool same = p->n_issued > 0 && p->state.waiting_since_ns == m->state.waiting_since_ns;
  p->state = m->state;
  if (p->left) return;
  p->n_issued = lt_message_get_issued(m, p->issued);
  if (p->n_issued > 0 && !same) w->look = true;
}

void lt_coordinator_receive(lt_world *w, int rank, const lt_message *m) {
  lt_peer *p = &w->peers[rank];
  p->silent_ns = 0;
  switch ((lt_message_kind)m->kind) {
    case LT_MESSAGE_HEARTBEAT: receive_heartbeat(w, p, m); break;
    case LT_MESSAGE_REPORT:
    case LT_MESSAGE_VERDICT:
      p->reported = true;
      lt_coordinator_report(w, m->rank, (lt_verdict_class)m->class, m->status, m->text);
      break;
    case LT_MESSAGE_LEFT: lt_coordinator_left(w, rank, m); break;
    case LT_MESSAGE_BYE: p->bye = true; break;
    case LT_MESSAGE_ACK: lt_coordinator_acked(w, rank); break;
    default: break;
  }
}

/* A rank's process has ended, or seems to. `how` continues "rank 1 ...". */
void lt_coordinator_exited(lt_world *w, int rank, int status, const char *how) {
  lt_peer *p = &w->peers[rank];
  if (p->exited) return;
  p->exited = true;
  if (lt_heartbeat_is_over(w->heartbeat)) lt_coordinator_acked(w, rank);
  if (p->bye || p->reported || (atomic_load(&w->events) & LT_EVENT_ALL_LEFT) != 0) return;
  char text[LT_VERDICT_TEXT], activity[512];
  if (w->heartbeats != NULL) lt_peer_refresh(p, &w->heartbeats[rank]);
  lt_mark_text(&p->state.mark, rank, activity, sizeof activity);
  snprintf(text, sizeof text, "rank %d %s; last known: %s", rank, how, activity);
  lt_coordinator_report(w, rank, LT_EXITED, status, text);
}

/* A rank over TCP whose connection ended and that does not dial again has ended itself. */
static void watch_ends(lt_world *w) {
  for (int r = 1; r < w->n_peers; r++) {
    lt_peer *p = &w->peers[r];
    if (p->exited || p->ended_ns == 0 || p->link.fd >= 0) continue;
    if (w->now_ns - p->ended_ns < (int64_t)REDIAL_MS * LT_MS) continue;
    char how[160];
    snprintf(how, sizeof how, "(pid %d on %s) ended without a word", w->info.pids[r],
             w->info.hosts[r]);
    lt_coordinator_exited(w, r, 1, how);
  }
}

/* An interrupted run is being saved here: what is told is where. */
static bool saves(const lt_world *w) {
  return w->best.class == LT_INTERRUPTED && atomic_load(&w->saving) > 0 &&
         w->now_ns < w->collect_ns + (int64_t)LT_SAVE_S * LT_SECOND;
}

void lt_coordinator_turn(lt_world *w) {
  if (w->connections != NULL) watch_ends(w);
  if (w->collecting && saves(w)) w->decide_ns = w->now_ns + (int64_t)COLLECT_MS * LT_MS;
  if (w->collecting && w->now_ns >= w->decide_ns) decide(w);
}
