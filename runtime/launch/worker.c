/* runtime/launch/worker.c: the watchdog of a rank other than 0, which follows rank 0's. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/world.h"

static void judge_coordinator(lt_watchdog *d, lt_outcome_class class, const char *what) {
  char text[LT_OUTCOME_TEXT], activity[512];
  if (lt_heartbeat_is_over(d->heartbeat)) return;
  lt_world_activity_text(d->world, activity, sizeof activity);
  snprintf(text, sizeof text, "rank 0 %s; %s", what, activity);
  lt_watchdog_judge(d, class, 0, 1, text);
  if (d->info->forked)
    lt_watchdog_print_outcome(d); /* the parent, which would raise it, is not there */
}

void lt_worker_receive(lt_watchdog *d, const lt_message *m) {
  lt_peer *coordinator = &d->peers[0];
  coordinator->silent_ns = 0;
  coordinator->doubted = false;
  switch ((lt_message_kind)m->kind) {
    case LT_MESSAGE_HEARTBEAT:
      coordinator->state = m->state;
      atomic_store(&d->mail->lowest_rank, m->state.lowest);
      atomic_store(&d->mail->rank_0_saves, m->state.saving > 0);
      break;
    case LT_MESSAGE_READY: lt_mailbox_notify(d->mail, LT_NOTICE_READY); break;
    case LT_MESSAGE_ALL_LEFT: lt_mailbox_notify(d->mail, LT_NOTICE_ALL_LEFT); break;
    case LT_MESSAGE_LOCATE: lt_watchdog_locate(d); break;
    case LT_MESSAGE_WARN:
      if (d->world->err_fd >= 0) lt_watchdog_print(d, m->text);
      break;
    case LT_MESSAGE_OUTCOME: lt_watchdog_outcome(d, m); break;
    case LT_MESSAGE_ALL_DONE: lt_mailbox_notify(d->mail, LT_NOTICE_ALL_DONE); break;
    case LT_MESSAGE_HELLO: /* what a worker sends, or a coordinator while it connects */
    case LT_MESSAGE_CHALLENGE:
    case LT_MESSAGE_PROOF:
    case LT_MESSAGE_REPORT:
    case LT_MESSAGE_LEFT:
    case LT_MESSAGE_DONE: break;
  }
}

static void lose_coordinator(lt_watchdog *d) {
  d->peers[0].exited = true;
  if (!lt_mailbox_has(d->mail, LT_NOTICE_ALL_LEFT))
    judge_coordinator(d, LT_EXITED, "ended without an error message");
}

void lt_worker_disconnected(lt_watchdog *d) {
  lt_peer *coordinator = &d->peers[0];
  if (coordinator->ended_ns == 0) coordinator->ended_ns = d->now_ns;
  if (d->connections == NULL)
    lose_coordinator(d); /* otherwise it is dialled again, see connections.c */
}

/* Rank 0 saves what the interrupted run was, and reports it then. */
static bool interrupted(const lt_watchdog *d) {
  return d->failure.class == LT_INTERRUPTED && atomic_load(&d->mail->rank_0_saves);
}

/* A stopped process takes no other signal, and nobody else would end it. In a host, or at the
   prompt, it stays, and raises when it is continued; so does one whose children have all ended
   meanwhile: who stopped it has it in hand, and one more process to watch it could be left over. */
static void end_parent(const lt_watchdog *d) {
  pid_t parent = getppid();
  if (d->info->in_child && d->world->owns_process && parent == d->info->pids[0])
    kill(parent, SIGKILL);
}

/* One of the ranks that wait prints it: the lowest that rank 0 had heard. */
static void doubt_coordinator(lt_watchdog *d) {
  lt_peer *coordinator = &d->peers[0];
  int lowest = atomic_load(&d->mail->lowest_rank);
  bool prints = d->world->err_fd >= 0 && d->info->rank == (lowest > 0 ? lowest : 1);
  if (!prints || atomic_load(&d->heartbeat->waiting_since_ns) == 0) return;
  if (lt_heartbeat_is_over(d->heartbeat) || !lt_peer_falls_silent(d, coordinator)) return;
  char text[LT_OUTCOME_TEXT];
  lt_peer_silent_text(d, 0, coordinator, text, sizeof text);
  lt_watchdog_print(d, text);
}

void lt_worker_turn(lt_watchdog *d, int64_t tick) {
  lt_peer *coordinator = &d->peers[0];
  if (!coordinator->exited && atomic_load(&d->mail->deadline_ns) == 0)
    coordinator->silent_ns += tick;
  bool left = lt_mailbox_has(d->mail, LT_NOTICE_ALL_LEFT);
  if (!coordinator->exited && !left && coordinator->silent_ns >= lt_watchdog_lost_ns(d)) {
    char what[128];
    lt_peer_lost_text(d, coordinator, what, sizeof what);
    judge_coordinator(d, LT_LOST, what);
    end_parent(d);
  }
  if (!coordinator->exited && !left) doubt_coordinator(d);
  if (!coordinator->exited && coordinator->ended_ns != 0 &&
      d->now_ns - coordinator->ended_ns >= LT_SECOND)
    lose_coordinator(d);
  bool saves = interrupted(d) && d->now_ns < d->fallback_ns + (int64_t)LT_SAVE_S * LT_SECOND;
  if (d->fallback_ns != 0 && d->now_ns >= d->fallback_ns && !saves)
    lt_watchdog_outcome(d, &d->failure);
}

void lt_worker_resend(lt_watchdog *d) {
  uint32_t requests = d->requests_done;
  if (d->failure.bytes > 0) lt_watchdog_send(d, 0, &d->failure);
  if ((requests & LT_REQUEST_LEFT) != 0) lt_watchdog_send(d, 0, &d->mail->left);
  if ((requests & LT_REQUEST_DONE) != 0) lt_watchdog_send_kind(d, 0, LT_MESSAGE_DONE);
}
