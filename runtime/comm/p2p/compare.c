/* runtime/comm/p2p/compare.c: comparison of fingerprints, before any data moves.

   16 bytes a rank decide: the largest h and the largest ~h are complements only where all h are
   equal. All ranks see the same two numbers, so all continue in the same way: to the sizes where
   they agree and want them, to each other's marks where they do not.

   A maximum of 16 bytes rather than gathering all hashes: the cost is log2(ranks) messages and
   constant memory, and every rank can tell by itself that all agree. Marks, some hundred bytes a
   rank, are gathered only for the error's text.

   The maximum is found by dissemination (D. Hensgen, R. Finkel, U. Manber, Two Algorithms for
   Barrier Synchronization, IJPP 1988), which suits what may be counted twice: in round k each rank
   sends what it knows to the one 2^k behind it. The gathers are J. Bruck's (Efficient Algorithms
   for All-to-All Communications in Multiport Message-Passing Systems, IEEE TPDS 1997). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/p2p/p2p.h"

typedef enum phase { HASHES, EXTENTS, MARKS } phase;

typedef struct round_state {
  phase phase;
  int distance; /* of this round's peers; from 1 on, until it is the number of ranks */
  uint64_t hashes[2], came[2];
  char *items; /* of a gather: entry k is that of the rank k behind this one */
  size_t bytes; /* of an item */
  lt_p2p_pending *pending;
} round_state;

/* What failed may still be the library's: that memory stays. */
static lt_progress finish(const lt_p2p *l, lt_comm_compare *c, lt_progress how) {
  round_state *s = c->state;
  c->state = NULL;
  if (how == LT_BROKEN) return how;
  l->ops->pending_free(s->pending);
  free(s->items);
  free(s);
  return how;
}

static round_state *state_new(const lt_p2p *l, lt_comm_compare *c) {
  round_state *s = calloc(1, sizeof *s);
  lt_p2p_pending *pending = l->ops->pending_new(2);
  if (s == NULL || pending == NULL) {
    if (pending != NULL) l->ops->pending_free(pending);
    free(s);
    snprintf(c->text, sizeof c->text, "out of memory");
    return NULL;
  }
  s->hashes[0] = c->mark->hash;
  s->hashes[1] = ~c->mark->hash;
  s->distance = 1;
  s->pending = pending;
  return s;
}

/* Receiving is posted first, so that a message never waits in the library's buffers for unexpected
   ones. */
static bool trade(lt_p2p *l, lt_comm_compare *c, round_state *s, const void *from, int to_rank,
                  void *to, int from_rank, size_t bytes) {
  return l->ops->recv(l, s->pending, to, (int64_t)bytes, from_rank, LT_P2P_MARKS, c->text) &&
         l->ops->send(l, s->pending, from, (int64_t)bytes, to_rank, LT_P2P_MARKS, c->text);
}

/* The rank that is so far behind this one, in a ring. */
static int behind(const lt_p2p *l, int distance) { return (l->rank + distance) % l->size; }
static int before(const lt_p2p *l, int distance) { return behind(l, l->size - distance); }

static bool start_gather(const lt_p2p *l, lt_comm_compare *c, round_state *s) {
  const void *own = s->phase == EXTENTS ? (const void *)&c->extent : c->mark;
  s->bytes = s->phase == EXTENTS ? sizeof c->extent : sizeof *c->mark;
  s->distance = 1;
  s->items = calloc((size_t)l->size, s->bytes);
  if (s->items != NULL) memcpy(s->items, own, s->bytes);
  if (s->items == NULL) snprintf(c->text, sizeof c->text, "out of memory");
  return s->items != NULL;
}

/* Send what this rank has, `distance` items, to the one before it by so much. */
static bool start_round(lt_p2p *l, lt_comm_compare *c, round_state *s) {
  int d = s->distance, n = l->size - d < d ? l->size - d : d;
  if (s->phase == HASHES)
    return trade(l, c, s, s->hashes, behind(l, d), s->came, before(l, d), sizeof s->came);
  return trade(l, c, s, s->items, before(l, d), s->items + (size_t)d * s->bytes, behind(l, d),
               (size_t)n * s->bytes);
}

static void end_round(round_state *s) {
  s->distance *= 2;
  if (s->phase != HASHES) return;
  for (int k = 0; k < 2; k++)
    if (s->came[k] > s->hashes[k]) s->hashes[k] = s->came[k];
}

static void end_gather(const lt_p2p *l, lt_comm_compare *c, const round_state *s) {
  char *to = s->phase == EXTENTS ? (char *)c->extents : (char *)c->marks;
  for (int k = 0; k < l->size; k++)
    memcpy(to + (size_t)behind(l, k) * s->bytes, s->items + (size_t)k * s->bytes, s->bytes);
}

/* All ranks take the same branches, for they have the same two numbers. */
static lt_progress end_phase(lt_p2p *l, lt_comm_compare *c, round_state *s) {
  bool equal = s->hashes[0] == ~s->hashes[1];
  if (s->phase != HASHES) end_gather(l, c, s);
  if (s->phase == MARKS) return LT_DIFFERENT;
  if (s->phase == EXTENTS || (equal && c->extents == NULL)) return LT_DONE;
  s->phase = equal ? EXTENTS : MARKS;
  return start_gather(l, c, s) ? LT_PENDING : LT_BROKEN;
}

/* Called until it is not pending: no thread of ours drives the library, so that each test is what
   moves it on. */
lt_progress lt_p2p_compare(lt_p2p *l, lt_comm_compare *c) {
  bool begins = c->state == NULL;
  if (begins && (c->state = state_new(l, c)) == NULL) return LT_BROKEN;
  round_state *s = c->state;
  for (;; begins = false) {
    lt_progress at = begins ? LT_DONE : l->ops->test(l, s->pending, c->text);
    if (at == LT_PENDING) return at;
    if (at == LT_BROKEN) return finish(l, c, at);
    if (!begins) end_round(s);
    while (s->distance >= l->size) {
      at = end_phase(l, c, s);
      if (at != LT_PENDING) return finish(l, c, at);
    }
    if (!start_round(l, c, s)) return finish(l, c, LT_BROKEN);
  }
}

/* Two ranks simply send each other everything. What the sender says has another tag than what the
   receiver says, so messages to a peer and messages from it never mix. */
typedef struct pair_message {
  lt_mark mark;
  int64_t extent;
} pair_message;

typedef struct pair_state {
  pair_message out, in;
  lt_p2p_pending *pending;
} pair_state;

static lt_progress finish_pair(const lt_p2p *l, lt_comm_compare *c, lt_progress how) {
  pair_state *s = c->state;
  c->state = NULL;
  if (how == LT_BROKEN) return how;
  l->ops->pending_free(s->pending);
  free(s);
  return how;
}

/* Both are nonblocking, hence two ranks that send to each other do not deadlock. */
static bool start_pair(lt_p2p *l, int peer, lt_comm_compare *c, pair_state *s) {
  bool sends = c->mark->op == LT_COMM_SEND;
  lt_p2p_tag out = sends ? LT_P2P_OF_SENDER : LT_P2P_OF_RECEIVER;
  lt_p2p_tag in = sends ? LT_P2P_OF_RECEIVER : LT_P2P_OF_SENDER;
  s->out = (pair_message){.mark = *c->mark, .extent = c->extent};
  return l->ops->recv(l, s->pending, &s->in, sizeof s->in, peer, in, c->text) &&
         l->ops->send(l, s->pending, &s->out, sizeof s->out, peer, out, c->text);
}

lt_progress lt_p2p_compare_pair(lt_p2p *l, int peer, lt_comm_compare *c) {
  pair_state *s = c->state;
  if (s == NULL) {
    c->state = s = calloc(1, sizeof *s);
    if (s != NULL) s->pending = l->ops->pending_new(2);
    if (s == NULL || s->pending == NULL) {
      free(s);
      c->state = NULL;
      snprintf(c->text, sizeof c->text, "out of memory");
      return LT_BROKEN;
    }
    if (!start_pair(l, peer, c, s)) return finish_pair(l, c, LT_BROKEN);
  }
  lt_progress at = l->ops->test(l, s->pending, c->text);
  if (at == LT_PENDING) return at;
  if (at == LT_BROKEN) return finish_pair(l, c, at);
  if (s->in.mark.hash != s->out.mark.hash) {
    c->marks[l->rank] = s->out.mark;
    c->marks[peer] = s->in.mark;
    return finish_pair(l, c, LT_DIFFERENT);
  }
  if (c->extents != NULL) {
    c->extents[l->rank] = s->out.extent;
    c->extents[peer] = s->in.extent;
  }
  return finish_pair(l, c, LT_DONE);
}
