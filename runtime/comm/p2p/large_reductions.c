/* runtime/comm/p2p/large_reductions.c: reductions of many bytes: rank r gets everybody's values of
   its share of the elements, adds them in the tree's order and gives the sums to all.

   2 n (R - 1) / R of n bytes are sent by each of R ranks, in 2 rounds, as in Rabenseifner's
   algorithm (R. Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004); a ring
   sends as much in 2 (R - 1). Between two machines, and of few bytes between a few ranks, every
   rank's share is all: there is one round then, of (R - 1) n bytes, and each rank adds everything.

   Shares go in pieces, several of them at a time: while the values of one are on their way, the
   sums of the one before are too, in both directions. A link with a long round trip is then never
   idle, as long as the pieces under way are more than what it holds. What is begun is bounded by
   SCRATCH_BYTES, whatever n is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/p2p/steps.h"

enum {
  SCRATCH_BYTES = 8 << 20,
  LEAST_PIECE_BYTES = 16384, /* below, messages would be latency alone */
  MOST_PIECES = 16,          /* under way */
  LEAST_PIECES = 2           /* on one machine: large ones are faster there */
};

/* One piece of every rank's share. */
typedef struct piece {
  lt_p2p_pending *pending;
  char *values;  /* everybody's of this rank's piece: those of rank r at r * bytes of a piece */
  int64_t bytes; /* under way */
} piece;

/* Pieces are numbered; piece k is in slot k % slots. Each is begun, then added up, then ended, and
   each of these in the order of numbers: so are the messages, with either tag. */
struct lt_p2p_trade {
  int64_t n;      /* elements of a piece */
  int64_t pieces; /* of the largest share */
  bool spreads;   /* the sums go to all */
  int64_t begun, added, ended;
  int slots;
  piece slot[MOST_PIECES];
  char *values;     /* the slots', in one block */
  struct { int64_t begin, n; } share[]; /* [size] */
};

static piece *slot_of(lt_p2p_trade *t, int64_t k) { return &t->slot[k % t->slots]; }

/* Elements of piece k in rank r's share. */
static int64_t count_of(const lt_p2p_trade *t, int r, int64_t k) {
  return lt_p2p_piece(t->share[r].n, k * t->n, t->n);
}

static void set_shares(const lt_p2p *l, const lt_comm_move *m, size_t item, lt_p2p_trade *t) {
  bool scatters = m->op == LT_COMM_REDUCE_SCATTER;
  bool whole = !scatters && ((l->size == 2 && !l->near) || lt_p2p_is_small(m, item));
  t->spreads = !scatters && !whole;
  for (int r = 0; r < l->size; r++) {
    t->share[r].n = whole ? m->count : lt_p2p_share(l, m, r);
    if (r > 0 && !whole) t->share[r].begin = t->share[r - 1].begin + t->share[r - 1].n;
  }
}

static void set_pieces(const lt_p2p *l, const lt_p2p_moving *s, lt_p2p_trade *t) {
  int64_t slots = l->near ? LEAST_PIECES : MOST_PIECES, bytes = SCRATCH_BYTES / slots / l->size;
  int64_t most = 0;
  for (int r = 0; r < l->size; r++)
    if (t->share[r].n > most) most = t->share[r].n;
  if (bytes < LEAST_PIECE_BYTES) {
    bytes = LEAST_PIECE_BYTES;
    slots = SCRATCH_BYTES / bytes / l->size;
  }
  t->n = lt_p2p_piece(bytes / (int64_t)s->item, 0, s->chunk);
  if (most < t->n) t->n = most > 0 ? most : 1;
  t->pieces = (most + t->n - 1) / t->n;
  t->slots = slots < LEAST_PIECES ? LEAST_PIECES : (int)slots;
  if (t->slots > t->pieces) t->slots = t->pieces > 0 ? (int)t->pieces : 1;
}

/* What failed may still be the library's: that memory stays. */
static void trade_free(const lt_p2p *l, lt_p2p_trade *t) {
  for (int k = 0; k < t->slots; k++)
    if (t->slot[k].pending != NULL) l->ops->pending_free(t->slot[k].pending);
  free(t->values);
  free(t);
}

static lt_p2p_trade *trade_new(const lt_p2p *l, lt_comm_move *m, const lt_p2p_moving *s) {
  lt_p2p_trade *t = calloc(1, sizeof *t + (size_t)l->size * sizeof *t->share);
  size_t bytes = 0;
  bool ok = t != NULL;
  if (ok) {
    set_shares(l, m, s->item, t);
    set_pieces(l, s, t);
    bytes = (size_t)l->size * (size_t)t->n * s->item;
    t->values = malloc(bytes * (size_t)t->slots);
    ok = t->values != NULL;
  }
  for (int k = 0; ok && k < t->slots; k++) {
    t->slot[k].values = t->values + (size_t)k * bytes;
    t->slot[k].pending = l->ops->pending_new(2 * l->size);
    ok = t->slot[k].pending != NULL;
  }
  if (ok) return t;
  if (t != NULL) trade_free(l, t);
  snprintf(m->text, sizeof m->text, "out of memory: %zu bytes for a reduction",
           bytes * MOST_PIECES);
  return NULL;
}

static bool send(lt_p2p *l, lt_comm_move *m, piece *p, const void *from, size_t bytes, int peer,
                 lt_p2p_tag tag) {
  p->bytes += (int64_t)bytes;
  return bytes == 0 || l->ops->send(l, p->pending, from, (int64_t)bytes, peer, tag, m->text);
}

static bool recv(lt_p2p *l, lt_comm_move *m, piece *p, void *to, size_t bytes, int peer,
                 lt_p2p_tag tag) {
  p->bytes += (int64_t)bytes;
  return bytes == 0 || l->ops->recv(l, p->pending, to, (int64_t)bytes, peer, tag, m->text);
}

/* Asks all for their values of piece k of our share; sends them ours of theirs. Each begins with
   the rank after it, so that not all send to one. */
static bool begin(lt_p2p *l, lt_comm_move *m, const lt_p2p_moving *s, int64_t k) {
  lt_p2p_trade *t = s->trade;
  piece *p = slot_of(t, k);
  size_t mine = (size_t)count_of(t, l->rank, k) * s->item, slot = (size_t)t->n * s->item;
  for (int d = 1; d < l->size; d++) {
    int to = (l->rank + d) % l->size, from = (l->rank + l->size - d) % l->size;
    if (!recv(l, m, p, p->values + (size_t)from * slot, mine, from, LT_P2P_DATA) ||
        !send(l, m, p, lt_p2p_in(m, s, t->share[to].begin + k * t->n),
              (size_t)count_of(t, to, k) * s->item, to, LT_P2P_DATA))
      return false;
  }
  return true;
}

/* The sums of piece k of our share to all, those of the other shares to their places. */
static bool spread(lt_p2p *l, lt_comm_move *m, const lt_p2p_moving *s, int64_t k) {
  lt_p2p_trade *t = s->trade;
  piece *p = slot_of(t, k);
  size_t mine = (size_t)count_of(t, l->rank, k) * s->item;
  for (int d = 1; d < l->size; d++) {
    int to = (l->rank + d) % l->size, from = (l->rank + l->size - d) % l->size;
    if (!recv(l, m, p, lt_p2p_out(m, s, t->share[from].begin + k * t->n),
              (size_t)count_of(t, from, k) * s->item, from, LT_P2P_SUMS) ||
        !send(l, m, p, lt_p2p_out(m, s, t->share[l->rank].begin + k * t->n), mine, to, LT_P2P_SUMS))
      return false;
  }
  return true;
}

/* Adds what came of piece k, in the tree's order. */
static void add(const lt_p2p *l, const lt_comm_move *m, const lt_p2p_moving *s, int64_t k) {
  lt_p2p_trade *t = s->trade;
  const char *from[LT_COMM_MAX_RANKS];
  char *sums[LT_COMM_MAX_RANKS];
  int64_t n = count_of(t, l->rank, k), own = t->share[l->rank].begin, at = k * t->n;
  if (n == 0) return;
  for (int r = 0; r < l->size; r++) {
    sums[r] = slot_of(t, k)->values + (size_t)(r * t->n) * s->item;
    from[r] = r == l->rank ? lt_p2p_in(m, s, own + at) : sums[r];
  }
  bool scatters = m->op == LT_COMM_REDUCE_SCATTER; /* `out` is our share alone */
  lt_p2p_add(l, m, from, sums, lt_p2p_out(m, s, scatters ? at : own + at), n);
}

/* Whether all messages of piece k have come. */
static lt_progress test(lt_p2p *l, lt_comm_move *m, lt_p2p_trade *t, int64_t k) {
  piece *p = slot_of(t, k);
  lt_progress at = l->ops->test(l, p->pending, m->text);
  if (at != LT_DONE) return at;
  m->moved += p->bytes;
  p->bytes = 0;
  return at;
}

/* One thing that can be done now. LT_DONE: something was. */
static lt_progress turn(lt_p2p *l, lt_comm_move *m, const lt_p2p_moving *s) {
  lt_p2p_trade *t = s->trade;
  lt_progress at = LT_PENDING;
  if (t->begun < t->pieces && t->begun - t->ended < t->slots)
    return begin(l, m, s, t->begun++) ? LT_DONE : LT_BROKEN;
  if (t->added < t->begun && (at = test(l, m, t, t->added)) == LT_BROKEN) return at;
  if (at == LT_DONE) {
    add(l, m, s, t->added);
    bool ok = !t->spreads || spread(l, m, s, t->added);
    t->added++;
    return ok ? LT_DONE : LT_BROKEN;
  }
  if (t->ended < t->added && (at = test(l, m, t, t->ended)) == LT_DONE) t->ended++;
  return at;
}

lt_progress lt_p2p_traded(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s) {
  lt_progress at = LT_DONE;
  if (s->trade == NULL && (s->trade = trade_new(l, m, s)) == NULL) return LT_BROKEN;
  while (s->trade->ended < s->trade->pieces)
    if ((at = turn(l, m, s)) != LT_DONE) return at;
  trade_free(l, s->trade);
  return LT_DONE;
}
