/* runtime/comm/p2p/collectives.c: the collectives of comm.h by nonblocking messages, or by the
   library's own call where it prefers that.

   Gathers are messages between each two ranks. Counts are cut to pieces of `chunk` elements, so
   that the int counts of a library suffice and the watchdog sees progress within a large
   transfer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/p2p/comparison.h"
#include "comm/p2p/steps.h"

/* The library's own collective, piece by piece. */
static lt_p2p_step whole(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  int64_t n = lt_p2p_piece(m->count, s->at, s->chunk), at = s->at;
  if (n == 0) return LT_STEP_FINISHED;
  s->at += n;
  s->under_way += n * (int64_t)s->item;
  return lt_p2p_started(l->ops->whole(l, s->pending, m, s->item, at, n));
}

static lt_p2p_step pair(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  int64_t n = lt_p2p_piece(m->count, s->at, s->chunk), at = s->at;
  if (n == 0) return LT_STEP_FINISHED;
  s->at += n;
  return lt_p2p_started(m->op == LT_COMM_SEND
                            ? lt_p2p_send(l, m, s, lt_p2p_in(m, s, at), n, m->root)
                            : lt_p2p_recv(l, m, s, lt_p2p_out(m, s, at), n, m->root));
}

/* All ranks must take part in as many rounds as the largest part needs: those with less send empty
   pieces, which lt_p2p_send leaves out on both sides alike. */
static int64_t largest(const lt_p2p *l, const int64_t *counts) {
  int64_t most = 0;
  for (int r = 0; r < l->size; r++)
    if (counts[r] > most) most = counts[r];
  return most;
}

/* all_gather, gather: this rank's part to those that want it, theirs to their places. */
static lt_p2p_step gather(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  bool all = m->op == LT_COMM_ALL_GATHER, wants = all || l->rank == m->root;
  if (s->at >= largest(l, m->counts)) return LT_STEP_FINISHED;
  int64_t mine = lt_p2p_piece(m->counts[l->rank], s->at, s->chunk), before = 0;
  bool ok = true;
  for (int r = 0; r < l->size; before += m->counts[r++]) {
    int64_t n = lt_p2p_piece(m->counts[r], s->at, s->chunk);
    if (r == l->rank) {
      if (wants && n > 0)
        memmove(lt_p2p_out(m, s, before + s->at), lt_p2p_in(m, s, s->at), (size_t)n * s->item);
      continue;
    }
    if (wants) ok = ok && lt_p2p_recv(l, m, s, lt_p2p_out(m, s, before + s->at), n, r);
    if (all || r == m->root) ok = ok && lt_p2p_send(l, m, s, lt_p2p_in(m, s, s->at), mine, r);
  }
  s->at += s->chunk;
  return lt_p2p_started(ok);
}

static lt_p2p_step scatter(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  int64_t before = 0, mine = lt_p2p_piece(m->counts[l->rank], s->at, s->chunk);
  bool ok = true;
  if (s->at >= largest(l, m->counts)) return LT_STEP_FINISHED;
  if (l->rank != m->root) {
    ok = lt_p2p_recv(l, m, s, lt_p2p_out(m, s, s->at), mine, m->root);
  } else {
    for (int r = 0; r < l->size; before += m->counts[r++]) {
      int64_t n = lt_p2p_piece(m->counts[r], s->at, s->chunk);
      if (r != l->rank)
        ok = ok && lt_p2p_send(l, m, s, lt_p2p_in(m, s, before + s->at), n, r);
      else if (n > 0)
        memmove(lt_p2p_out(m, s, s->at), lt_p2p_in(m, s, before + s->at), (size_t)n * s->item);
    }
  }
  s->at += s->chunk;
  return lt_p2p_started(ok);
}

/* all_to_all: between each two ranks what the one has for the other. */
static lt_p2p_step all_to_all(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  int64_t before_in = 0, before_out = 0;
  bool ok = true;
  if (s->at >= m->count) return LT_STEP_FINISHED;
  for (int r = 0; r < l->size; before_in += m->in_counts[r], before_out += m->counts[r++]) {
    int64_t to = lt_p2p_piece(m->in_counts[r], s->at, s->chunk);
    int64_t from = lt_p2p_piece(m->counts[r], s->at, s->chunk);
    const char *in = lt_p2p_in(m, s, before_in + s->at);
    char *out = lt_p2p_out(m, s, before_out + s->at);
    if (r == l->rank && to > 0) memmove(out, in, (size_t)to * s->item);
    if (r != l->rank)
      ok = ok && lt_p2p_recv(l, m, s, out, from, r) && lt_p2p_send(l, m, s, in, to, r);
  }
  s->at += s->chunk;
  return lt_p2p_started(ok);
}

typedef lt_p2p_step (*stepper)(lt_p2p *, lt_comm_move *, lt_p2p_moving *);

/* NULL: none, or it is traded (large_reductions.c). */
static stepper step_of(const lt_p2p *l, const lt_comm_move *m, size_t item) {
  if (l->ops->prefers != NULL && l->ops->prefers(l, m, item)) return whole;
  switch ((lt_comm_op)m->op) {
    case LT_COMM_BROADCAST: return lt_p2p_broadcast;
    case LT_COMM_SEND:
    case LT_COMM_RECV: return pair;
    case LT_COMM_ALL_GATHER:
    case LT_COMM_GATHER: return gather;
    case LT_COMM_SCATTER: return scatter;
    case LT_COMM_ALL_TO_ALL: return all_to_all;
    case LT_COMM_ALL_REDUCE:
      return l->size > LT_P2P_FEW && lt_p2p_is_small(m, item) ? lt_p2p_tree_all_reduce : NULL;
    case LT_COMM_REDUCE_SCATTER:
    case LT_COMM_BARRIER: /* the comparison was one */
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return NULL;
}

/* Two requests for each other rank, a send and a receipt, and one for a collective: no step has
   more under way. */
static lt_p2p_moving *moving_new(const lt_p2p *l, lt_comm_move *m) {
  lt_p2p_moving *s = calloc(1, sizeof *s);
  lt_p2p_pending *pending = l->ops->pending_new(l->size * 2 + 1);
  if (s == NULL || pending == NULL) {
    free(s);
    if (pending != NULL) l->ops->pending_free(pending);
    snprintf(m->text, sizeof m->text, "out of memory: %d requests", l->size * 2 + 1);
    return NULL;
  }
  s->item = l->host->item_size((lt_dtype)m->dtype);
  s->chunk = m->chunk_bytes / (int64_t)s->item;
  if (s->chunk < 1) s->chunk = 1;
  s->pending = pending;
  s->step = step_of(l, m, s->item);
  return s;
}

/* What failed may still be the library's: that memory stays. */
static lt_progress finish(const lt_p2p *l, lt_comm_move *m, lt_progress how) {
  lt_p2p_moving *s = m->state;
  m->state = NULL;
  if (how == LT_BROKEN) return how;
  l->ops->pending_free(s->pending);
  free(s->scratch);
  free(s);
  return how;
}

/* A loop, not recursion: several steps may finish without waiting (empty pieces). */
static lt_progress take_steps(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  for (;;) {
    lt_progress at = l->ops->test(l, s->pending, m->text);
    if (at != LT_DONE) return at;
    m->moved += s->under_way;
    s->under_way = 0;
    lt_p2p_step step = s->step(l, m, s);
    if (step != LT_STEP_STARTED) return step == LT_STEP_FINISHED ? LT_DONE : LT_BROKEN;
  }
}

static bool is_reduction(const lt_comm_move *m) {
  return m->op == LT_COMM_ALL_REDUCE || m->op == LT_COMM_REDUCE_SCATTER;
}

lt_progress lt_p2p_move(lt_comm_link *link, lt_comm_move *m) {
  lt_p2p *l = (lt_p2p *)link;
  if (m->op == LT_COMM_BARRIER) return LT_DONE;
  if (m->state == NULL && lt_p2p_said_move(l, m)) return LT_DONE;
  if (m->state == NULL && (m->state = moving_new(l, m)) == NULL) return LT_BROKEN;
  lt_p2p_moving *s = m->state;
  if (s->step == NULL && !is_reduction(m)) {
    snprintf(m->text, sizeof m->text, "invalid operation: %d", m->op);
    finish(l, m, LT_DONE);
    return LT_BROKEN;
  }
  lt_progress at = (s->step != NULL ? take_steps : lt_p2p_traded)(l, m, s);
  return at == LT_PENDING ? at : finish(l, m, at);
}

int lt_p2p_rank(const lt_comm_link *link) { return ((const lt_p2p *)(const void *)link)->rank; }
int lt_p2p_ranks(const lt_comm_link *link) { return ((const lt_p2p *)(const void *)link)->size; }

void lt_p2p_end(lt_comm_link *link) {
  lt_p2p *l = (lt_p2p *)link;
  free(l->said);
  l->said = NULL;
}
