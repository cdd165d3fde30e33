/* runtime/launch/end.c: how a rank ends: a child, the parent of children, a joined process.

   A child is a copy of its parent: nothing of it may be closed or collected there (files would be
   removed, connections ended, twice). It flushes and is gone. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch/world.h"

enum { UNWIND_MS = 2500, SAVE_MS = 30500, FLUSH_MS = 10000 };

/* The child whose exit() is a failure. */
static lt_world *guarded;

static _Noreturn void child_end(lt_world *w) {
  guarded = NULL;
  fflush(NULL);
  lt_ask_of(w, LT_ASK_BYE);
  lt_watchdog_stop(w);
  const lt_verdict *v = lt_world_verdict(w);
  _exit(v != NULL ? v->status : 0);
}

/* exit() in a child would run what the parent registered, and end one rank alone. */
static void exit_of_child(lt_world *w, int status) {
  char text[LT_VERDICT_TEXT], doing[512];
  lt_mark mark = lt_pulse_doing(w->pulse);
  lt_mark_text(&mark, w->info.rank, doing, sizeof doing);
  snprintf(text, sizeof text, "rank %d called exit(%d) before it had left %s; last known: %s",
           w->info.rank, status, w->what, doing);
  lt_world_report(w, LT_EXITED, w->info.rank, status > 0 ? status : 1, text);
  child_end(w);
}

static void on_exit_guard(int status, void *unused) {
  (void)unused;
  if (guarded != NULL) exit_of_child(guarded, status);
}

void lt_world_guard(lt_world *w) {
  guarded = w;
  on_exit(on_exit_guard, NULL);
}

static void free_world(lt_ctx *c, lt_world *w) {
  if (w->group != NULL) {
    lt_group_close(c, w->group);
    lt_group_release(c, w->group);
  }
  lt_tags_release(c, w->tags);
  if (w->threads_before > 0) c->root->threads = w->threads_before;
  lt_world_free(c, w);
}

static void parent_end(lt_ctx *c, lt_world *w) {
  lt_ask_of(w, LT_ASK_BYE);
  bool failed = lt_pulse_over(w->pulse);
  int64_t patience = failed ? UNWIND_MS : FLUSH_MS;
  if (failed && atomic_load(&w->shared->saving) > 0) patience = SAVE_MS;
  lt_children_wait(w, patience * LT_MS);
  lt_watchdog_stop(w);
  lt_children_reap(w);
  free_world(c, w);
}

void lt_world_end(lt_ctx *c, lt_world *w) {
  if (w == NULL) return;
  bool over = lt_pulse_over(w->pulse) || (atomic_load(&w->news) & LT_NEWS_ALL_LEFT) != 0;
  if (!over) lt_world_leave(c, w, NULL, 0);
  if (w->info.in_child) child_end(w);
  parent_end(c, w);
}

void lt_world_drop(lt_ctx *c, void *world) {
  lt_world *w = world;
  if (w->info.in_child) exit_of_child(w, 0);
  for (int r = 1; r < w->n_peers; r++) lt_children_kill(w, r);
  lt_children_wait(w, 0);
  lt_watchdog_stop(w);
  lt_children_reap(w);
  free_world(c, w);
}
