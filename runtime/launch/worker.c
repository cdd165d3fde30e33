/* runtime/launch/worker.c: the watchdog of a rank other than 0, which listens to rank 0's. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/world.h"

/* Judge alone: rank 0 is not there to do it. */
static void judge(lt_world *w, lt_verdict_class class, int status, const char *text) {
  if (lt_heartbeat_is_over(w->heartbeat)) return;
  w->out = (lt_message){
      .kind = LT_MESSAGE_VERDICT, .class = (uint8_t) class, .rank = 0, .status = status};
  lt_message_text(&w->out, text);
  lt_channel_send(&w->peers[0].link, &w->out);
  lt_watchdog_verdict(w, class, 0, status, text);
  if (w->info.forked)
    lt_watchdog_print_verdict(w); /* the parent, which would raise it, is not there */
}

static void judge_coordinator(lt_world *w, lt_verdict_class class, const char *what) {
  char text[LT_VERDICT_TEXT], activity[512];
  lt_mark mark = lt_watchdog_activity(w);
  lt_mark_text(&mark, w->info.rank, activity, sizeof activity);
  snprintf(text, sizeof text, "rank 0 %s; %s", what, activity);
  judge(w, class, 1, text);
}

void lt_worker_receive(lt_world *w, const lt_message *m) {
  lt_peer *coordinator = &w->peers[0];
  coordinator->silent_ns = 0;
  switch ((lt_message_kind)m->kind) {
    case LT_MESSAGE_HEARTBEAT:
      coordinator->state = m->state;
      atomic_store(&w->rank_0_saves, m->state.saving > 0);
      break;
    case LT_MESSAGE_READY: lt_world_notify(w, LT_EVENT_READY); break;
    case LT_MESSAGE_ALERT:
      w->alert = true;
      w->heartbeat_ns = w->now_ns;
      break;
    case LT_MESSAGE_ALL_LEFT: lt_world_notify(w, LT_EVENT_ALL_LEFT); break;
    case LT_MESSAGE_WARN:
      if (w->err_fd >= 0) lt_watchdog_print(w, m->text);
      break;
    case LT_MESSAGE_VERDICT:
      lt_watchdog_verdict(w, (lt_verdict_class)m->class, m->rank, m->status, m->text);
      break;
    case LT_MESSAGE_ALL_ACK: lt_world_notify(w, LT_EVENT_ALL_ACK); break;
    default: break;
  }
}

static void lose_coordinator(lt_world *w) {
  w->peers[0].exited = true;
  if ((atomic_load(&w->events) & LT_EVENT_ALL_LEFT) == 0)
    judge_coordinator(w, LT_EXITED, "ended without a word");
}

void lt_worker_disconnected(lt_world *w) {
  lt_peer *coordinator = &w->peers[0];
  if (coordinator->ended_ns == 0) coordinator->ended_ns = w->now_ns;
  if (w->connections == NULL)
    lose_coordinator(w); /* otherwise it is dialled again, see connections.c */
}

/* Rank 0 saves what the interrupted run was, and tells it then. */
static bool interrupted(const lt_world *w) {
  return w->failed != NULL && w->failed->class == LT_INTERRUPTED && atomic_load(&w->rank_0_saves);
}

/* A stopped process takes no other signal, and nobody else would end it. In a host, or at the
   prompt, it stays, and raises when it is continued. */
static void end_parent(const lt_world *w) {
  pid_t parent = getppid();
  if (w->info.in_child && w->owns_process && parent == w->info.pids[0]) kill(parent, SIGKILL);
}

void lt_worker_turn(lt_world *w, int64_t tick) {
  lt_peer *coordinator = &w->peers[0];
  if (!coordinator->exited && atomic_load(&w->launch_deadline_ns) == 0)
    coordinator->silent_ns += tick;
  bool left = (atomic_load(&w->events) & LT_EVENT_ALL_LEFT) != 0;
  if (!coordinator->exited && !left && coordinator->silent_ns >= lt_watchdog_lost_ns(w)) {
    char what[96];
    snprintf(what, sizeof what, "is lost: not heard for %.0f s (%s)",
             (double)coordinator->silent_ns / LT_SECOND,
             lt_connections_lost(w, &coordinator->link));
    judge_coordinator(w, LT_LOST, what);
    end_parent(w);
  }
  if (!coordinator->exited && coordinator->ended_ns != 0 &&
      w->now_ns - coordinator->ended_ns >= LT_SECOND)
    lose_coordinator(w);
  bool saves = interrupted(w) && w->now_ns < w->fallback_ns + (int64_t)LT_SAVE_S * LT_SECOND;
  if (w->fallback_ns != 0 && w->now_ns >= w->fallback_ns && !saves) {
    const lt_message *m = w->failed;
    lt_watchdog_verdict(w, (lt_verdict_class)m->class, m->rank, m->status, m->text);
  }
}

/* A fresh connection knows nothing of what the old one may have swallowed. */
void lt_worker_resend(lt_world *w) {
  uint32_t requests = w->requests_done;
  if (w->failed != NULL) lt_channel_send(&w->peers[0].link, w->failed);
  if ((requests & LT_REQUEST_LEFT) != 0) lt_channel_send(&w->peers[0].link, &w->left);
  if ((requests & LT_REQUEST_BYE) != 0) lt_watchdog_send(w, LT_MESSAGE_BYE);
  if ((requests & LT_REQUEST_ACK) != 0) lt_watchdog_send(w, LT_MESSAGE_ACK);
}
