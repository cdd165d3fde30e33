/* runtime/comm/p2p/broadcast.c: broadcasts, and what other steps share with them.

   Few bytes go down a binomial tree, in log2(ranks) steps. Of many each rank gets an equal share
   from the root and hands it to all others, at the same time: each byte leaves a rank twice at
   most, whatever the number of ranks (E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn,
   Collective Communication: Theory, Practice, and Experience, 2007). */
#include "comm/p2p/steps.h"

enum { SMALL_BYTES = 32768 };

bool lt_p2p_is_small(const lt_comm_move *m, size_t item) {
  int64_t bytes = m->count * (int64_t)item;
  return bytes <= SMALL_BYTES && bytes <= m->chunk_bytes;
}

static lt_p2p_tag tag_of(const lt_comm_move *m) {
  return m->op == LT_COMM_SEND || m->op == LT_COMM_RECV ? LT_P2P_PAIR_DATA : LT_P2P_DATA;
}

bool lt_p2p_send(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, const void *from, int64_t n,
                 int peer) {
  int64_t bytes = n * (int64_t)s->item;
  s->under_way += bytes;
  return n == 0 || l->ops->send(l, s->pending, from, bytes, peer, tag_of(m), m->text);
}

bool lt_p2p_recv(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, void *to, int64_t n, int peer) {
  int64_t bytes = n * (int64_t)s->item;
  s->under_way += bytes;
  return n == 0 || l->ops->recv(l, s->pending, to, bytes, peer, tag_of(m), m->text);
}

int64_t lt_p2p_share(const lt_p2p *l, const lt_comm_move *m, int r) {
  if (m->op == LT_COMM_REDUCE_SCATTER) return m->counts[r];
  return m->count / l->size + (r < m->count % l->size);
}

/* The place of this rank in the binomial tree below the root, and its distance to the one above it
   there; at the root, the first power of two that no rank is at. */
static int place_of(const lt_p2p *l, int root, int *distance) {
  int place = (l->rank - root + l->size) % l->size;
  for (*distance = 1; *distance < l->size && (place & *distance) == 0;) *distance *= 2;
  return place;
}

bool lt_p2p_hand_down(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, const void *data, int64_t n,
                      int root) {
  int distance, place = place_of(l, root, &distance);
  bool ok = true;
  for (distance /= 2; distance > 0; distance /= 2)
    if (place + distance < l->size)
      ok = ok && lt_p2p_send(l, m, s, data, n, (root + place + distance) % l->size);
  return ok;
}

/* Stage 1 of a piece: it has come. */
static lt_p2p_step down(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  int64_t n = lt_p2p_piece(m->count, s->at, s->chunk), at = s->at;
  if (n == 0) return LT_STEP_FINISHED;
  bool root = l->rank == m->root;
  if (!root && s->stage == 0) {
    int distance, place = place_of(l, m->root, &distance);
    s->stage = 1;
    return lt_p2p_started(lt_p2p_recv(l, m, s, lt_p2p_out(m, s, at), n,
                                      (m->root + place - distance) % l->size));
  }
  s->stage = 0;
  s->at += n;
  return lt_p2p_started(lt_p2p_hand_down(
      l, m, s, root ? lt_p2p_in(m, s, at) : lt_p2p_out(m, s, at), n, m->root));
}

/* The root's shares to all others; this rank's is put in its place in `out`. */
static lt_p2p_step deal(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  int64_t before = 0;
  bool ok = true;
  if (s->at >= lt_p2p_share(l, m, 0)) return LT_STEP_FINISHED;
  for (int r = 0; r < l->size; before += lt_p2p_share(l, m, r++)) {
    int64_t n = lt_p2p_piece(lt_p2p_share(l, m, r), s->at, s->chunk);
    if (l->rank == m->root && r != m->root)
      ok = ok && lt_p2p_send(l, m, s, lt_p2p_in(m, s, before + s->at), n, r);
    if (l->rank != m->root && r == l->rank)
      ok = ok && lt_p2p_recv(l, m, s, lt_p2p_out(m, s, before + s->at), n, m->root);
  }
  s->at += s->chunk;
  return lt_p2p_started(ok);
}

/* Each rank's share in `out` to all others, but the root, which has it. */
static lt_p2p_step spread(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, int root) {
  if (s->at >= lt_p2p_share(l, m, 0)) return LT_STEP_FINISHED; /* the largest */
  int64_t before = 0, begin = 0;
  int64_t mine = lt_p2p_piece(lt_p2p_share(l, m, l->rank), s->at, s->chunk);
  const char *all = l->rank == root ? m->in : m->out;
  bool ok = true;
  for (int r = 0; r < l->rank; r++) begin += lt_p2p_share(l, m, r);
  for (int r = 0; r < l->size; before += lt_p2p_share(l, m, r++)) {
    int64_t n = lt_p2p_piece(lt_p2p_share(l, m, r), s->at, s->chunk);
    if (r == l->rank) continue;
    if (l->rank != root) ok = ok && lt_p2p_recv(l, m, s, lt_p2p_out(m, s, before + s->at), n, r);
    if (r != root)
      ok = ok && lt_p2p_send(l, m, s, all + (size_t)(begin + s->at) * s->item, mine, r);
  }
  s->at += s->chunk;
  return lt_p2p_started(ok);
}

/* Stages of a large one: 0 dealing, 2 spreading. */
lt_p2p_step lt_p2p_broadcast(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  if (l->size <= 2 || lt_p2p_is_small(m, s->item)) return down(l, m, s);
  if (s->stage == 0) {
    lt_p2p_step step = deal(l, m, s);
    if (step != LT_STEP_FINISHED) return step;
    s->stage = 2;
    s->at = 0;
  }
  return spread(l, m, s, m->root);
}
