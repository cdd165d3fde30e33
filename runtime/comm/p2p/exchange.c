/* runtime/comm/p2p/exchange.c: reductions in an order of additions that is fixed by the number of
   ranks, over point-to-point messages.

   They add in the tree T(lo, hi) = T(lo, m) + T(m, hi), on every number of hosts and with every
   transport. Few bytes climb the tree: neighbours at distance 1 first, then 2, then 4, and the sum
   comes down by a broadcast. Many bytes are traded: rank r gets everybody's values of its share of
   the elements, adds them in the tree's order and gives the sums to all; each byte then crosses a
   wire twice, whatever the number of ranks.

   A library's own reduction (lt_p2p_ops.whole) is used where the order need not be fixed: its order
   of additions depends on the library, the ranks a host and the message's size, and sums of floats
   with it. Here the tree is fixed by the number of ranks alone, so that a run gives the same bits
   with every transport.

   Cost for n bytes and R ranks: the tree 2 log2(R) steps of n bytes, best where latency rules;
   trading 2 n (R - 1) / R bytes sent a rank in 2 rounds, as a ring or Rabenseifner's algorithm (R.
   Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004), best where bandwidth
   rules. Scratch is bounded by SCRATCH_BYTES whatever n is: shares are traded piece by piece. */
#include "comm/p2p/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_BYTES = 8 << 20, LEAST_PIECE_BYTES = 16384 };

/* Once a movement; freed with its state. malloc and not the ctx's allocator: this runs below a
   backend that has no ctx. */
static bool need_scratch(lt_comm_move *m, lt_p2p_moving *s, size_t bytes) {
  if (s->scratch == NULL) s->scratch = malloc(bytes > 0 ? bytes : 1);
  if (s->scratch != NULL) return true;
  snprintf(m->text, sizeof m->text, "out of memory: %zu bytes for a reduction", bytes);
  return false;
}

/* Few bytes. `stage` is the distance of the neighbour whose values are on their way to us, 0 at
   first, -1 while the sum of all is on its way to us or from us. Scratch: our sum, then the values
   that come. */
lt_p2p_step lt_p2p_tree_all_reduce(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  size_t bytes = (size_t)m->count * s->item;
  if (s->at == m->count) return LT_STEP_FINISHED;
  if (!need_scratch(m, s, 2 * bytes)) return LT_STEP_FAILED;
  char *sum = s->scratch, *came = s->scratch + bytes;
  int distance = s->stage * 2;
  if (s->stage == 0) {
    memcpy(sum, m->in, bytes);
    distance = 1;
  } else if (s->stage > 0) {
    l->host->combine(sum, sum, came, m->count, (lt_dtype)m->dtype, (lt_comm_reduce)m->reduce);
  }
  for (; s->stage >= 0 && distance < l->size; distance *= 2) {
    if (l->rank & distance) {
      s->stage = -1;
      /* The answer may come while the question is still on its way out: another buffer. */
      return lt_p2p_started(lt_p2p_recv(l, m, s, m->out, m->count, l->rank - distance) &&
                            lt_p2p_send(l, m, s, sum, m->count, l->rank - distance));
    }
    if (l->rank + distance < l->size) {
      s->stage = distance;
      return lt_p2p_started(lt_p2p_recv(l, m, s, came, m->count, l->rank + distance));
    }
  }
  if (l->rank == 0) memcpy(m->out, sum, bytes);
  s->at = m->count;
  return lt_p2p_started(lt_p2p_hand_down(l, m, s, m->out, m->count, 0));
}

static int64_t share_begin(const lt_p2p *l, const lt_comm_move *m, int r) {
  int64_t begin = 0;
  for (int k = 0; k < r; k++) begin += lt_p2p_share(l, m, k);
  return begin;
}

/* Elements of a share that are traded at once: all ranks' pieces are in scratch together, hence the
   division by the number of ranks. Below LEAST_PIECE_BYTES messages would be latency alone, so that
   very many ranks take more scratch. */
static int64_t piece_of(const lt_p2p *l, const lt_p2p_moving *s) {
  int64_t bytes = SCRATCH_BYTES / l->size;
  if (bytes < LEAST_PIECE_BYTES) bytes = LEAST_PIECE_BYTES;
  int64_t n = bytes / (int64_t)s->item;
  return n < s->chunk ? n : s->chunk;
}

/* Ask all for their values of the next piece of our share; send them ours of theirs. */
static bool trade(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, int64_t piece) {
  int64_t before = 0, mine = lt_p2p_piece(lt_p2p_share(l, m, l->rank), s->at, piece);
  for (int r = 0; r < l->size; before += lt_p2p_share(l, m, r++)) {
    int64_t n = lt_p2p_piece(lt_p2p_share(l, m, r), s->at, piece);
    if (r == l->rank) continue;
    if (!lt_p2p_recv(l, m, s, s->scratch + (size_t)(r * piece) * s->item, mine, r) ||
        !lt_p2p_send(l, m, s, lt_p2p_in(m, s, before + s->at), n, r))
      return false;
  }
  return true;
}

/* Add what came, in the tree's order, into `out`. */
static void add(const lt_p2p *l, const lt_comm_move *m, const lt_p2p_moving *s,
                const char *own, char *out, int64_t piece, int64_t n) {
  const char *from[LT_COMM_MAX_RANKS];
  size_t slot = (size_t)piece * s->item;
  for (int r = 0; r < l->size; r++) from[r] = r == l->rank ? own : s->scratch + (size_t)r * slot;
  for (int distance = 1; distance < l->size; distance *= 2) {
    for (int r = 0; r + distance < l->size; r += 2 * distance) {
      char *to = 2 * distance >= l->size ? out : s->scratch + (size_t)r * slot;
      l->host->combine(to, from[r], from[r + distance], n, (lt_dtype)m->dtype,
                       (lt_comm_reduce)m->reduce);
      from[r] = to;
    }
  }
  if (l->size == 1) memmove(out, own, (size_t)n * s->item);
}

/* One piece after the other: stage 1 while one is on its way. `out` is where our share goes. */
static lt_p2p_step reduce_share(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, char *out) {
  int64_t piece = piece_of(l, s);
  if (s->stage == 1) {
    int64_t n = lt_p2p_piece(lt_p2p_share(l, m, l->rank), s->at, piece);
    const char *own = lt_p2p_in(m, s, share_begin(l, m, l->rank) + s->at);
    if (n > 0) add(l, m, s, own, out + (size_t)s->at * s->item, piece, n);
    s->at += piece;
  }
  int64_t most = 0;
  for (int r = 0; r < l->size; r++)
    if (lt_p2p_share(l, m, r) > most) most = lt_p2p_share(l, m, r);
  if (s->at >= most) return LT_STEP_FINISHED;
  if (!need_scratch(m, s, (size_t)l->size * (size_t)piece * s->item)) return LT_STEP_FAILED;
  s->stage = 1;
  return lt_p2p_started(trade(l, m, s, piece));
}

lt_p2p_step lt_p2p_reduce_scatter(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  return reduce_share(l, m, s, m->out);
}

/* Many bytes: each rank its share (stages 0, 1), then everybody's sums to all (stage 2). */
lt_p2p_step lt_p2p_traded_all_reduce(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  if (s->stage < 2) {
    lt_p2p_step step = reduce_share(l, m, s, lt_p2p_out(m, s, share_begin(l, m, l->rank)));
    if (step != LT_STEP_FINISHED) return step;
    s->stage = 2;
    s->at = 0;
  }
  return lt_p2p_spread(l, m, s, -1);
}
