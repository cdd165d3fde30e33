/* runtime/launch/deadlock.c: deadlock detection on rank 0: ranks that wait for each other, over
   groups and messages.

   Rank a waits for rank b when b belongs to what a waits in and has not issued it. A rank that
   waits issues nothing, so a circle of such ranks never resolves: no clock is needed, and a
   rank that is slow, or stopped by a debugger, is in no circle. States are checked one after the
   other, which makes no false circle: the first rank to leave it would need what the next one had
   not issued when that was checked, and cannot have issued since, waiting. */
#include <stdio.h>
#include <string.h>

#include "launch/world.h"

bool lt_peer_is_waiting(const lt_peer *p) {
  return !p->exited && !p->left && p->state.waiting_since_ns != 0 &&
         p->state.mark.kind == LT_MARK_CALL;
}

/* Of the group of all ranks no members are set. */
static bool has_bit(const lt_state *s, int rank) {
  return (s->waiting_for[rank / 64] >> (rank % 64) & 1) != 0;
}

bool lt_peer_waits_for(const lt_peer *waiter, int rank) {
  const lt_mark *call = &waiter->state.mark;
  if (call->op == LT_COMM_SEND || call->op == LT_COMM_RECV) return call->root == rank;
  return call->group == 0 || has_bit(&waiter->state, rank);
}

lt_come lt_peer_come(const lt_watchdog *d, int waiter, int rank) {
  const lt_mark *call = &d->peers[waiter].state.mark;
  const lt_peer *p = &d->peers[rank];
  int op = call->op == LT_COMM_SEND   ? LT_COMM_RECV
           : call->op == LT_COMM_RECV ? LT_COMM_SEND
                                      : LT_COMM_BARRIER;
  int peer = op == LT_COMM_BARRIER ? -1 : waiter;
  bool known = false;
  for (int i = 0; i < p->n_issued; i++) {
    const lt_issued *e = &p->issued[i];
    if (e->group != call->group) continue;
    known = true;
    if (e->op == op && e->peer == peer) return e->seq >= call->seq ? LT_COME : LT_COME_NOT;
  }
  return known ? LT_COME_NOT : LT_COME_UNKNOWN; /* it may have released the group */
}

/* The first of n ranks that `waiter` waits for and that has not come; -1: none. */
static int find_next(const lt_watchdog *d, int waiter, const int *ranks, int n) {
  for (int i = 0; i < n; i++) {
    if (ranks[i] == waiter || !lt_peer_waits_for(&d->peers[waiter], ranks[i])) continue;
    if (lt_peer_come(d, waiter, ranks[i]) == LT_COME_NOT) return ranks[i];
  }
  return -1;
}

/* Into d->ranks: those that wait and whose issued works are known, then of these, again and again,
   those that wait for another of them. The greatest set in which each waits for another of the set:
   what is left when nothing more can be taken away. */
static int find_stuck(lt_watchdog *d) {
  int n = 0, before;
  for (int r = 0; r < d->n_peers; r++)
    if (lt_peer_is_waiting(&d->peers[r]) && d->peers[r].n_issued > 0) d->ranks[n++] = r;
  do {
    before = n;
    n = 0;
    for (int i = 0; i < before; i++)
      if (find_next(d, d->ranks[i], d->ranks, before) >= 0) d->kept[n++] = d->ranks[i];
    memcpy(d->ranks, d->kept, (size_t)n * sizeof *d->ranks);
  } while (n < before);
  return n;
}

/* A circle among n ranks that each wait for another one, from its lowest rank on, into d->kept. n
   steps from anywhere lead into a circle, as there are only n ranks; once more around it finds its
   lowest rank, so that the report is the same however it was entered. */
static int find_circle(lt_watchdog *d, int n) {
  int r = d->ranks[0], m = 0;
  for (int i = 0; i < n; i++) r = find_next(d, r, d->ranks, n);
  int first = r;
  for (int i = 0; i < n; i++) {
    r = find_next(d, r, d->ranks, n);
    if (r < first) first = r;
  }
  for (r = first; m == 0 || r != first; r = find_next(d, r, d->ranks, n)) d->kept[m++] = r;
  return m;
}

static bool are_members_equal(const lt_peer *a, const lt_peer *b) {
  return memcmp(a->state.waiting_for, b->state.waiting_for, sizeof a->state.waiting_for) == 0;
}

static void report(lt_watchdog *d, int n) {
  char text[LT_OUTCOME_TEXT] = "deadlock: ";
  for (int i = 0; i < n; i++)
    lt_text_add(text, sizeof text, "%srank %d %sfor rank %d", i > 0 ? ", " : "", d->kept[i],
                i > 0 ? "" : "waits ", d->kept[(i + 1) % n]);
  for (int i = 0; i < n; i++) {
    lt_text_add(text, sizeof text, i > 0 ? "; " : ": ");
    size_t used = strlen(text);
    lt_mark_text(&d->peers[d->kept[i]].state.mark, d->kept[i], text + used, sizeof text - used);
    lt_peer_add_group(d, d->kept[i], i > 0 ? d->kept[i - 1] : -1, text, sizeof text);
  }
  lt_coordinator_report(d, -1, LT_RAISED, 1, text);
}

void lt_deadlock_look(lt_watchdog *d) {
  int n = find_stuck(d);
  if (n > 0) report(d, find_circle(d, n));
}

void lt_peer_add_group(const lt_watchdog *d, int rank, int before, char *text, size_t size) {
  const lt_peer *p = &d->peers[rank], *other = before >= 0 ? &d->peers[before] : NULL;
  int members[LT_COMM_MAX_RANKS], n = 0;
  for (int r = 0; r < d->n_peers; r++)
    if (has_bit(&p->state, r)) members[n++] = r;
  if (p->state.mark.group == 0 || n == 0) return;
  bool twice = other != NULL && other->state.mark.group != p->state.mark.group &&
               are_members_equal(p, other);
  lt_text_add(text, size, twice ? " in another group of " : " in the group of ");
  size_t used = strlen(text);
  lt_ranks_text(members, n, text + used, size - used);
}
