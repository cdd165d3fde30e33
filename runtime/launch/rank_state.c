/* runtime/launch/rank_state.c: the activity of a rank, as its watchdog sends it and rank 0's keeps
   it. */
#include <string.h>

#include "base/script_lines.h"
#include "launch/world.h"

/* The parts are read one by one: a wait that ended meanwhile is none. */
static void read_heartbeat(const lt_heartbeat *h, lt_state *s) {
  memset(s, 0, sizeof *s);
  s->lowest = -1;
  int64_t since = atomic_load(&h->waiting_since_ns);
  for (int i = 0; i < LT_COMM_MAX_RANKS / 64; i++)
    s->waiting_for[i] = atomic_load(&h->waiting_for[i]);
  s->mark = lt_heartbeat_activity(h);
  s->progress = atomic_load(&h->progress);
  s->declared = atomic_load(&h->declared);
  if (atomic_load(&h->waiting_since_ns) == since) s->waiting_since_ns = since;
}

/* With the line of the script that its last operation noted. */
static lt_mark activity_of(const lt_world *w) {
  lt_mark m = lt_heartbeat_activity(w->heartbeat);
  uint32_t id = atomic_load_explicit(&w->heartbeat->line, memory_order_relaxed);
  char source[128];
  int line;
  if (m.kind != LT_MARK_RUNNING || !lt_line_place(w->c, id, source, sizeof source, &line)) return m;
  m.line = line;
  m.status = LT_LINE_PASSED;
  lt_mark_set_file(&m, source);
  return m;
}

void lt_world_activity_text(const lt_world *w, char *text, size_t size) {
  lt_mark mark = activity_of(w);
  lt_mark_text(&mark, w->info.rank, text, size);
}

void lt_peer_refresh(lt_peer *p, const lt_heartbeat *heartbeat) {
  lt_mark before = p->state.mark, *now = &p->state.mark;
  read_heartbeat(heartbeat, &p->state);
  bool same = now->kind == LT_MARK_RUNNING && before.kind == LT_MARK_RUNNING;
  if (same && before.status == LT_LINE_PASSED && strcmp(before.hook, now->hook) == 0) *now = before;
}

void lt_watchdog_state(lt_watchdog *d, lt_state *s) {
  read_heartbeat(d->heartbeat, s);
  if (s->mark.kind == LT_MARK_RUNNING) s->mark = activity_of(d->world);
  s->saving = atomic_load(&d->mail->saving);
  for (int r = d->n_peers - 1; r > 0; r--)
    if (!d->peers[r].exited && lt_peer_is_heard(&d->peers[r])) s->lowest = r;
}
