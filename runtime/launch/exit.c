/* runtime/launch/exit.c: how a rank exits: a child, the parent of children, a joined process.

   A child is a copy of its parent: nothing of it may be closed or collected there (files would be
   removed, connections ended, twice). It flushes and exits. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch/world.h"

enum { UNWIND_MS = 2500, SAVE_MS = 30500, FLUSH_MS = 10000, DONE_MS = 5000 };

/* The world whose exit() is a failure, or is reported: that of a child or of a joined rank. */
static lt_world *guarded;

/* A child that ends before its parent continues; others end where the script does. */
static bool is_short_lived(const lt_world *w) { return w->info.in_child && !w->info.stays; }

static int status_of(const lt_world *w, int otherwise) {
  const lt_outcome *v = lt_world_outcome(w);
  return v != NULL ? v->status : otherwise;
}

static bool all_left(lt_world *w) { return lt_mailbox_has(&w->mail, LT_NOTICE_ALL_LEFT); }

static _Noreturn void child_end(lt_world *w) {
  guarded = NULL;
  fflush(NULL);
  lt_mailbox_request(&w->mail, LT_REQUEST_DONE);
  lt_watchdog_stop(w);
  _exit(status_of(w, 0));
}

/* Under mpirun the first exit makes it end the others after a second: wait until all are unwound,
   and rank 0 has saved. The transport is never closed in order here: that could wait forever. */
static _Noreturn void joined_end(lt_world *w, int status) {
  guarded = NULL;
  fflush(NULL);
  lt_mailbox_request(&w->mail, LT_REQUEST_DONE);
  int64_t start = lt_now_ns();
  while (!lt_mailbox_wait(&w->mail, LT_NOTICE_ALL_DONE, 100 * LT_MS, NULL)) {
    bool saves = atomic_load(&w->mail.rank_0_saves);
    if (lt_now_ns() - start > (saves ? SAVE_MS : DONE_MS) * (int64_t)LT_MS) break;
  }
  lt_watchdog_stop(w);
  lt_launcher_end(w);
  _exit(status_of(w, status));
}

static void free_world(lt_ctx *c, lt_world *w) {
  if (guarded == w) guarded = NULL;
  if (w->group != NULL) {
    lt_group_close(c, w->group);
    lt_group_release(c, w->group);
  }
  lt_stderr_release(c, w->child_stderr);
  c->root->threads = w->threads_before;
  lt_world_free(c, w);
}

/* The watchdog is stopped in between: it asks after children, and might signal one whose number
   another process has by then. */
static void end_children(lt_world *w, int64_t grace_ns) {
  lt_children_await(w, grace_ns);
  lt_watchdog_stop(w);
  lt_children_reap(w);
}

/* Reap the children, whether their parent continues or ends with them. */
static void parent_end(lt_ctx *c, lt_world *w) {
  lt_mailbox_request(&w->mail, LT_REQUEST_DONE);
  bool failed = lt_heartbeat_is_over(w->heartbeat);
  int64_t grace = failed ? UNWIND_MS : FLUSH_MS;
  if (failed && atomic_load(&w->shared->saving) > 0) grace = SAVE_MS;
  end_children(w, grace * LT_MS);
  free_world(c, w);
}

/* The process ends with its rank. */
static _Noreturn void end_now(lt_world *w, int status) {
  if (w->info.in_child) child_end(w);
  if (!w->info.forked) joined_end(w, status);
  guarded = NULL;
  fflush(NULL);
  status = status_of(w, status);
  parent_end(w->c, w);
  _exit(status);
}

/* exit() ends one rank alone; in a child it would run what the parent registered, too. */
static void exit_early(lt_world *w, int status) {
  char text[LT_OUTCOME_TEXT], activity[512];
  lt_world_activity_text(w, activity, sizeof activity);
  snprintf(text, sizeof text, "rank %d called exit(%d) before it had left %s; last known: %s",
           w->info.rank, status, w->what, activity);
  lt_world_report(w, LT_EXITED, w->info.rank, status > 0 ? status : 1, text);
  end_now(w, status);
}

/* A script of joined ranks may end by exit(0), as long as all do. */
static void on_exit_guard(int status, void *unused) {
  (void)unused;
  lt_world *w = guarded;
  if (w == NULL) return;
  guarded = NULL;
  bool over = lt_heartbeat_is_over(w->heartbeat);
  if (!is_short_lived(w) && status == 0 && !over && lt_world_leave(w->c, w, NULL, 0)) {
    lt_world_exit(w->c, w, 0);
    return;
  }
  if (!is_short_lived(w) && lt_heartbeat_is_over(w->heartbeat)) end_now(w, status);
  exit_early(w, status);
}

void lt_world_guard(lt_world *w) {
  static bool registered;
  guarded = w;
  if (!registered) on_exit(on_exit_guard, NULL);
  registered = true;
}

void lt_world_forked_worker(void) { guarded = NULL; }

void lt_world_stay(lt_world *w) {
  lt_world_guard(w);
  if (!w->info.in_child) return;
  fflush(stdout);
  lt_child_silence(STDOUT_FILENO);
}

/* All ranks have left, or there is an outcome. */
static void settle(lt_ctx *c, lt_world *w) {
  if (!lt_heartbeat_is_over(w->heartbeat) && !all_left(w)) lt_world_leave(c, w, NULL, 0);
}

void lt_world_end(lt_ctx *c, lt_world *w) {
  if (w == NULL) return;
  settle(c, w);
  if (!w->info.forked) {
    lt_mailbox_request(&w->mail, LT_REQUEST_DONE); /* the process continues to lt_world_exit */
    return;
  }
  if (w->info.in_child) child_end(w);
  parent_end(c, w);
}

int lt_world_exit(lt_ctx *c, lt_world *w, int status) {
  if (w == NULL) return status;
  settle(c, w);
  status = status_of(w, status);
  bool forked = w->info.forked; /* then lt_world_end frees it */
  lt_world_end(c, w);
  if (forked) return status;
  if (lt_heartbeat_is_over(w->heartbeat) || !all_left(w)) {
    if (!w->owns_process) return status_of(w, status);
    joined_end(w, status);
  }
  atomic_store(&w->mail.closing, true);
  atomic_store(&w->mail.deadline_ns, lt_now_ns() + (int64_t)FLUSH_MS * LT_MS);
  guarded = NULL;
  lt_group_close(c, w->group);
  lt_watchdog_stop(w);
  free_world(c, w);
  return status;
}

void lt_world_drop(lt_ctx *c, void *world) {
  lt_world *w = world;
  if (w->info.in_child) exit_early(w, 0);
  end_children(w, 0);
  /* The transport is abandoned, not closed: others may not have come to their end. */
  if (!w->info.forked && w->heartbeat != NULL)
    lt_outcome_set(&w->heartbeat->outcome, LT_RAISED, -1, 1, "the world was left");
  free_world(c, w);
}

void lt_world_install(lt_ctx *c, lt_world *w) {
  c->root->slot[LT_SLOT_LAUNCH] = w;
  c->root->slot_drop[LT_SLOT_LAUNCH] = lt_world_drop;
  lt_world_handle_signals(w);
}
