/* runtime/comm/p2p/compare.c: comparison of fingerprints, before any data moves.

   16 bytes a rank decide: the largest h and the largest ~h are complements only where all h are
   equal. All ranks see the same two numbers, so all continue in the same way: to the sizes where
   they agree and want them, to each other's marks where they do not.

   A maximum of 16 bytes rather than gathering all hashes: the cost is log2(ranks) messages and
   constant memory, and every rank can tell by itself that all agree. Marks, some hundred bytes a
   rank, are gathered only for the error's text.

   Over a link with a long round trip each further message costs more than its bytes. Where ranks
   are few, the messages therefore carry what every rank says beside its hash: its size, and the
   data of a movement that are few bytes. They are used only when all ranks agree.

   The maximum is found by dissemination (D. Hensgen, R. Finkel, U. Manber, Two Algorithms for
   Barrier Synchronization, IJPP 1988), which suits what may be counted twice: in round k each rank
   sends what it knows to the one 2^k before it. The gathers are J. Bruck's (Efficient Algorithms
   for All-to-All Communications in Multiport Message-Passing Systems, IEEE TPDS 1997). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/p2p/comparison.h"

typedef enum phase { HASHES, EXTENTS, MARKS } phase;

typedef struct round_state {
  lt_p2p_pending *pending;
  phase phase;
  int distance; /* of this round's peers; from 1 on, until it is the number of ranks */
  lt_p2p_said *said, *came; /* what is known so far, and what arrives in this round */
  char *items;  /* of a gather: entry k is that of the rank k behind this one; of a pair: its two */
  size_t bytes; /* of an item */
} round_state;

/* What failed may still be the library's: that memory stays. */
static lt_progress finish(const lt_p2p *l, lt_comm_compare *c, lt_progress how) {
  round_state *s = c->state;
  c->state = NULL;
  if (how == LT_BROKEN) return how;
  l->ops->pending_free(s->pending);
  free(s->said);
  free(s->came);
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
  s->distance = 1;
  s->pending = pending;
  c->state = s;
  return s;
}

static bool begin(const lt_p2p *l, lt_comm_compare *c) {
  round_state *s = state_new(l, c);
  if (s == NULL) return false;
  s->said = lt_p2p_said_new(l->size);
  s->came = lt_p2p_said_new(l->size);
  if (s->said != NULL && s->came != NULL) {
    lt_p2p_said_begin(s->said, l->size, c);
    return true;
  }
  snprintf(c->text, sizeof c->text, "out of memory");
  finish(l, c, LT_DONE);
  return false;
}

/* Receiving is posted first, so that a message never waits in the library's buffers for unexpected
   ones. */
static bool trade(lt_p2p *l, lt_comm_compare *c, round_state *s, const void *from, size_t bytes,
                  void *to, size_t most) {
  int d = s->distance;
  return l->ops->recv(l, s->pending, to, (int64_t)most, (l->rank + d) % l->size, LT_P2P_MARKS,
                      c->text) &&
         l->ops->send(l, s->pending, from, (int64_t)bytes, (l->rank + l->size - d) % l->size,
                      LT_P2P_MARKS, c->text);
}

/* Ranks whose part is sent in this round. */
static int sent_ranks(const lt_p2p *l, const round_state *s) {
  return l->size - s->distance < s->distance ? l->size - s->distance : s->distance;
}

static bool start_gather(const lt_p2p *l, lt_comm_compare *c, round_state *s) {
  const void *own = s->phase == EXTENTS ? (const void *)&c->extent : c->mark;
  s->bytes = s->phase == EXTENTS ? sizeof c->extent : sizeof *c->mark;
  s->distance = 1;
  s->items = calloc((size_t)l->size, s->bytes);
  if (s->items != NULL) memcpy(s->items, own, s->bytes);
  if (s->items == NULL) snprintf(c->text, sizeof c->text, "out of memory");
  return s->items != NULL;
}

/* Send what this rank has, the parts of `distance` ranks, to the one before it by so much. */
static bool start_round(lt_p2p *l, lt_comm_compare *c, round_state *s) {
  int n = sent_ranks(l, s);
  size_t bytes = (size_t)n * s->bytes;
  if (s->phase == HASHES)
    return trade(l, c, s, s->said->message, lt_p2p_said_bytes(s->said, l->size, n),
                 s->came->message, lt_p2p_said_most(l->size, n));
  return trade(l, c, s, s->items, bytes, s->items + (size_t)s->distance * s->bytes, bytes);
}

static void end_round(const lt_p2p *l, round_state *s) {
  if (s->phase == HASHES) lt_p2p_said_join(s->said, s->came, l->size, sent_ranks(l, s));
  s->distance *= 2;
}

static void end_gather(const lt_p2p *l, lt_comm_compare *c, const round_state *s) {
  char *to = s->phase == EXTENTS ? (char *)c->extents : (char *)c->marks;
  for (int k = 0; k < l->size; k++)
    memcpy(to + (size_t)((l->rank + k) % l->size) * s->bytes, s->items + (size_t)k * s->bytes,
           s->bytes);
}

/* All agree: what else they said is complete. */
static bool take_said(lt_p2p *l, lt_comm_compare *c, round_state *s) {
  if (!lt_p2p_said_carries(l->size)) return c->extents == NULL;
  free(l->said);
  l->said = s->said;
  s->said = NULL;
  if (c->extents != NULL) lt_p2p_said_extents(l, c->extents);
  return true;
}

/* All ranks take the same branches, for they have the same two numbers. */
static lt_progress end_phase(lt_p2p *l, lt_comm_compare *c, round_state *s) {
  if (s->phase != HASHES) end_gather(l, c, s);
  if (s->phase == MARKS) return LT_DIFFERENT;
  if (s->phase == EXTENTS) return LT_DONE;
  bool equal = lt_p2p_said_agrees(s->said);
  if (equal && take_said(l, c, s)) return LT_DONE;
  s->phase = equal ? EXTENTS : MARKS;
  return start_gather(l, c, s) ? LT_PENDING : LT_BROKEN;
}

/* Called until it is not pending: no thread of ours drives the library, so that each test is what
   moves it on. */
lt_progress lt_p2p_compare(lt_comm_link *link, lt_comm_compare *c) {
  lt_p2p *l = (lt_p2p *)link;
  bool begins = c->state == NULL;
  if (begins && !begin(l, c)) return LT_BROKEN;
  round_state *s = c->state;
  for (;; begins = false) {
    lt_progress at = begins ? LT_DONE : l->ops->test(l, s->pending, c->text);
    if (at == LT_PENDING) return at;
    if (at == LT_BROKEN) return finish(l, c, at);
    if (!begins) end_round(l, s);
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

/* Both are nonblocking, hence two ranks that send to each other do not deadlock. */
static bool begin_pair(lt_p2p *l, int peer, lt_comm_compare *c) {
  bool sends = c->mark->op == LT_COMM_SEND;
  lt_p2p_tag out_tag = sends ? LT_P2P_OF_SENDER : LT_P2P_OF_RECEIVER;
  lt_p2p_tag in_tag = sends ? LT_P2P_OF_RECEIVER : LT_P2P_OF_SENDER;
  round_state *s = state_new(l, c);
  if (s == NULL) return false;
  pair_message *out = calloc(2, sizeof *out), *in = out + 1;
  s->items = (char *)out;
  if (out == NULL) {
    snprintf(c->text, sizeof c->text, "out of memory");
    finish(l, c, LT_DONE);
    return false;
  }
  *out = (pair_message){.mark = *c->mark, .extent = c->extent};
  if (l->ops->recv(l, s->pending, in, sizeof *in, peer, in_tag, c->text) &&
      l->ops->send(l, s->pending, out, sizeof *out, peer, out_tag, c->text))
    return true;
  finish(l, c, LT_BROKEN);
  return false;
}

lt_progress lt_p2p_compare_pair(lt_comm_link *link, int peer, lt_comm_compare *c) {
  lt_p2p *l = (lt_p2p *)link;
  if (c->state == NULL && !begin_pair(l, peer, c)) return LT_BROKEN;
  round_state *s = c->state;
  const pair_message *out = (const pair_message *)(const void *)s->items, *in = out + 1;
  lt_progress at = l->ops->test(l, s->pending, c->text);
  if (at == LT_PENDING) return at;
  if (at == LT_BROKEN) return finish(l, c, at);
  if (in->mark.hash != out->mark.hash) {
    c->marks[l->rank] = out->mark;
    c->marks[peer] = in->mark;
    return finish(l, c, LT_DIFFERENT);
  }
  if (c->extents != NULL) {
    c->extents[l->rank] = out->extent;
    c->extents[peer] = in->extent;
  }
  return finish(l, c, LT_DONE);
}
