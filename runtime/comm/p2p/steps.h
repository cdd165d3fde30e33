/* runtime/comm/p2p/steps.h: what the steps of collectives share. */
#ifndef LT_COMM_P2P_STEPS_H
#define LT_COMM_P2P_STEPS_H

#include "comm/p2p/p2p.h"

typedef enum lt_p2p_step { LT_STEP_STARTED, LT_STEP_FINISHED, LT_STEP_FAILED } lt_p2p_step;

typedef struct lt_p2p_trade lt_p2p_trade; /* large_reductions.c */

typedef struct lt_p2p_moving {
  /* NULL: a reduction that is traded. */
  lt_p2p_step (*step)(lt_p2p *l, lt_comm_move *m, struct lt_p2p_moving *s);
  lt_p2p_pending *pending; /* capacity: 2 a rank, and 1 */
  size_t item;             /* bytes of an element */
  int64_t chunk;           /* elements of a message at most */
  int64_t at;              /* elements done, of each part where there are parts */
  int64_t under_way;       /* bytes of the requests */
  int stage;               /* the step's own */
  char *scratch;           /* the step's own, freed at the end */
  lt_p2p_trade *trade;
} lt_p2p_moving;

/* Elements [at, at + n) of a part that has `count`, at most `chunk`: n. */
static inline int64_t lt_p2p_piece(int64_t count, int64_t at, int64_t chunk) {
  return count <= at ? 0 : count - at < chunk ? count - at : chunk;
}

static inline const char *lt_p2p_in(const lt_comm_move *m, const lt_p2p_moving *s, int64_t at) {
  return (const char *)m->in + (size_t)at * s->item;
}
static inline char *lt_p2p_out(const lt_comm_move *m, const lt_p2p_moving *s, int64_t at) {
  return (char *)m->out + (size_t)at * s->item;
}

static inline lt_p2p_step lt_p2p_started(bool ok) { return ok ? LT_STEP_STARTED : LT_STEP_FAILED; }

/* Start sending n elements to a peer, receiving them from it; nothing for n = 0. */
bool lt_p2p_send(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, const void *from, int64_t n,
                 int peer);
bool lt_p2p_recv(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, void *to, int64_t n, int peer);

/* Elements of rank r's share of a movement: those it is to get, or an equal part of all. */
int64_t lt_p2p_share(const lt_p2p *l, const lt_comm_move *m, int r);
/* n elements to those below this rank in the binomial tree of `root`. */
bool lt_p2p_hand_down(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s, const void *data, int64_t n,
                      int root);
/* A step of broadcast.c. */
lt_p2p_step lt_p2p_broadcast(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s);

/* exchange.c: adds from[r] of all ranks r, n elements each, in the tree's order into `out`. Sums on
   the way go to sums[r], which may be from[r]; `from` is changed. */
void lt_p2p_add(const lt_p2p *l, const lt_comm_move *m, const char **from, char *const *sums,
                char *out, int64_t n);
/* A step: an all_reduce of few bytes among many ranks. */
lt_p2p_step lt_p2p_tree_all_reduce(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s);
/* large_reductions.c: every other all_reduce, reduce_scatter; not made of steps. */
lt_progress lt_p2p_traded(lt_p2p *l, lt_comm_move *m, lt_p2p_moving *s);

#endif
