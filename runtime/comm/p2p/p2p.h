/* runtime/comm/p2p/p2p.h: comparisons and collectives made of point-to-point messages, for the
   backends of libraries that have these (MPI, UCX).

   The files of this folder are part of each such backend's shared object. A library gives a table
   of its calls, lt_p2p_ops; what it does better by itself it may do, too.

   A collective is a state machine: a step starts requests and returns; it is called again when all
   of them are complete, until it says that nothing is left. So no step waits, and a message is
   never larger than a chunk. */
#ifndef LT_COMM_P2P_P2P_H
#define LT_COMM_P2P_P2P_H

#include "ltrain/backend.h"

/* Messages from one rank to another with one tag arrive in their order; those of different tags,
   which may be under way at the same time, never mix. */
typedef enum lt_p2p_tag {
  LT_P2P_DATA,         /* of a collective */
  LT_P2P_SUMS,         /* of a reduction: what has been added */
  LT_P2P_PAIR_DATA,    /* of send and recv */
  LT_P2P_MARKS,        /* the comparison before a collective */
  LT_P2P_OF_SENDER,    /* before send and recv: what the sender says, */
  LT_P2P_OF_RECEIVER   /* and the receiver */
} lt_p2p_tag;

typedef struct lt_p2p lt_p2p;
typedef struct lt_p2p_pending lt_p2p_pending; /* requests under way: the library's own */

/* Failures: false, and `text` (of LT_COMM_TEXT bytes) says which call failed and how. */
typedef struct lt_p2p_ops {
  lt_p2p_pending *(*pending_new)(int capacity); /* requests at most; NULL: out of memory */
  void (*pending_free)(lt_p2p_pending *pending);
  bool (*send)(lt_p2p *l, lt_p2p_pending *pending, const void *from, int64_t bytes, int peer,
               lt_p2p_tag tag, char *text);
  /* A message of `bytes` at most. */
  bool (*recv)(lt_p2p *l, lt_p2p_pending *pending, void *to, int64_t bytes, int peer,
               lt_p2p_tag tag, char *text);
  /* LT_DONE when all are complete: there are none under way then. */
  lt_progress (*test)(lt_p2p *l, lt_p2p_pending *pending, char *text);

  /* Whether the library's own collective is the better one for this movement of items of so many
     bytes; then one request for n elements of it from `at` on. (optional) */
  bool (*prefers)(const lt_p2p *l, const lt_comm_move *m, size_t item);
  bool (*whole)(lt_p2p *l, lt_p2p_pending *pending, lt_comm_move *m, size_t item, int64_t at,
                int64_t n);
} lt_p2p_ops;

typedef struct lt_p2p_said lt_p2p_said; /* what all ranks said in the last comparison: compare.c */

/* The first member of the backend's lt_comm_link. */
struct lt_p2p {
  const lt_p2p_ops *ops;
  const lt_comm_host *host;
  int rank, size;
  bool near; /* all ranks are on one machine */
  lt_p2p_said *said; /* NULL at first; for the movement that follows */
};

/* What lt_comm_ops has. */
int lt_p2p_rank(const lt_comm_link *link);
int lt_p2p_ranks(const lt_comm_link *link);
lt_progress lt_p2p_compare(lt_comm_link *link, lt_comm_compare *round);
lt_progress lt_p2p_compare_pair(lt_comm_link *link, int peer, lt_comm_compare *round);
lt_progress lt_p2p_move(lt_comm_link *link, lt_comm_move *m);
/* Frees what the link has of this folder, before the link itself. */
void lt_p2p_end(lt_comm_link *link);

/* Up to here whole messages beat trading parts. */
bool lt_p2p_is_small(const lt_comm_move *m, size_t item);
/* Of so few ranks each may send whole messages to all others. */
enum { LT_P2P_FEW = 4 };

#endif
