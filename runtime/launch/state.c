/* runtime/launch/state.c: what a rank does, as its watchdog sends it and rank 0's keeps it. */
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
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
lt_mark lt_world_activity(const lt_world *w) {
  lt_mark m = lt_heartbeat_activity(w->heartbeat);
  uint32_t line = atomic_load_explicit(&w->heartbeat->line, memory_order_relaxed);
  char place[160];
  if (m.kind != LT_MARK_RUNNING || line == 0) return m;
  lt_line_text(w->c, line, place, sizeof place);
  set_place(&m, place);
  return m;
}

void lt_peer_refresh(lt_peer *p, const lt_heartbeat *heartbeat) {
  lt_mark before = p->state.mark, *now = &p->state.mark;
  read_heartbeat(heartbeat, &p->state);
  bool same = now->kind == LT_MARK_RUNNING && before.kind == LT_MARK_RUNNING;
  if (same && before.status == LT_LINE_PASSED && strcmp(before.hook, now->hook) == 0) *now = before;
}

void lt_watchdog_state(lt_watchdog *d, lt_state *s) {
  read_heartbeat(d->heartbeat, s);
  if (s->mark.kind == LT_MARK_RUNNING) s->mark = lt_world_activity(d->world);
  s->saving = atomic_load(&d->mail->saving);
  for (int r = d->n_peers - 1; r > 0; r--)
    if (!d->peers[r].exited && lt_peer_is_heard(&d->peers[r])) s->lowest = r;
}
