/* runtime/comm/shm.h: collectives over shared memory.

   The memory holds, for each rank, a bell (where it sleeps) and SEATS seats. A seat is what a rank
   has in one group: counters that only its owner writes, two notices for comparing, slots for
   pieces of data, a channel to each other rank for messages, and a barrier where many ranks meet.
   Seat 0 is that in the group of all ranks; split groups take others, each member one of its own,
   and publish which one in the round in which the split is compared. Everything is numbered and
   grows, nothing is ever reset while others may look: a slow rank cannot mistake old words for new
   ones. */
#ifndef LT_COMM_SHM_H
#define LT_COMM_SHM_H

#include <stdatomic.h>

#include "comm/comm.h"

enum {
  SHM_LINE = 64,
  SHM_SLOTS = 4,      /* pieces of a rank that others may not have read yet */
  SHM_PAIR_SLOTS = 4, /* likewise for each receiver of messages */
  SHM_SMALL = 4096,   /* bytes up to which one rank adds all: each by itself, or the last to come */
  SHM_FEW = 8         /* ranks up to which each looks at each, and is woken by each */
};

/* What a rank says in one round. Two of them alternate: a rank that writes number n has seen all
   others arrive at n - 1, so all of them have read n - 2, which is overwritten. */
typedef struct shm_notice {
  _Alignas(SHM_LINE) _Atomic uint64_t round; /* written last; not where many meet at a barrier */
  int64_t extent;
  int32_t seat; /* in rounds of a split: the seat that this rank would give, -1: none left */
  lt_mark mark;
} shm_notice;

/* Messages between the owner of a seat and one other rank, in one direction. */
typedef struct shm_channel {
  shm_notice notice[2];
  _Alignas(SHM_LINE) _Atomic uint64_t moved; /* pieces: put by a sender, taken by a receiver */
} shm_channel;

/* Where more than SHM_FEW ranks meet: each counts itself in, and the last to come does for all what
   takes a look at every rank, and wakes them. That of the group's rank 0 is used. */
typedef struct shm_barrier {
  _Alignas(SHM_LINE) _Atomic uint64_t published; /* notices, of all rounds */
  _Atomic uint64_t put;                          /* operands of small sums, of all pieces */
  /* Written by the last: the round, times two, plus one if notices differ; the piece's end. */
  _Alignas(SHM_LINE) _Atomic uint64_t judged;
  _Atomic uint64_t summed;
} shm_barrier;

typedef struct shm_seat {
  /* Pieces of all collectives of this group so far: those whose data this rank has put into its
     slot, whose share it has reduced, and that it no longer needs from others. */
  _Alignas(SHM_LINE) _Atomic uint64_t put;
  _Atomic uint64_t reduced, got;
  _Alignas(SHM_LINE) _Atomic uint32_t left; /* other members that have left the group */
  shm_notice notice[2];
  shm_barrier barrier;
} shm_seat;

typedef struct shm_bell {
  _Alignas(SHM_LINE) _Atomic uint32_t rings; /* futex */
  _Atomic uint32_t asleep;                   /* or about to be */
} shm_bell;

/* The start of the memory; the rest is found from these numbers. */
typedef struct shm_head {
  uint64_t magic;
  int32_t ranks, seats;      /* seats a rank */
  int64_t piece, pair_piece; /* bytes of a slot */
  int64_t bell_at, seat_at;  /* offsets of the first bell, the first seat */
  int64_t channel_at, pair_data_at, data_at, seat_bytes; /* in a seat; the last: its size */
} shm_head;

/* What a rank knows of its own seats, shared by its links. */
typedef struct shm_home {
  shm_head *head;
  const lt_comm_host *host;
  int rank;            /* in the world */
  int links;           /* that use this */
  bool drowsy;         /* its bell says asleep */
  uint32_t rings_seen; /* rings before it looked last */
  struct {
    bool taken, leaving;
    uint32_t others; /* members besides this rank */
  } * seat;          /* [seats] */
} shm_home;

struct lt_comm_link {
  shm_home *home;
  int rank, size;
  int own_seat;
  uint64_t round;   /* comparisons done */
  uint64_t piece;   /* pieces of collectives done */
  int checked;      /* ranks whose notice of this round has been seen */
  shm_seat **seat;  /* [size] */
  int *world;       /* [size] */
  int *offers;      /* [size] seats published in the last split */
  uint64_t *rounds; /* [2 * size] comparisons done with a peer: sending, receiving */
  uint64_t *pieces; /* [2 * size] likewise pieces */
  /* The least counter of the others that was seen; exact values are read when it is too small. */
  uint64_t least_put, least_reduced, least_got;
};

static inline shm_seat *shm_seat_of(shm_head *h, int world, int number) {
  return (shm_seat *)((char *)h + h->seat_at +
                      ((int64_t)world * h->seats + number) * h->seat_bytes);
}
static inline shm_seat *shm_own(const lt_comm_link *link) { return link->seat[link->rank]; }
static inline shm_barrier *shm_barrier_of(const lt_comm_link *link) {
  return &link->seat[0]->barrier;
}

/* The channels of the owner of `seat`: to world rank r, and from it. */
static inline shm_channel *shm_channel_of(const shm_head *h, shm_seat *seat, int world,
                                          bool sending) {
  return (shm_channel *)((char *)seat + h->channel_at) + 2 * world + (sending ? 0 : 1);
}
static inline char *shm_pair_slot(const shm_head *h, shm_seat *sender, int to_world, uint64_t k) {
  return (char *)sender + h->pair_data_at +
         (to_world * SHM_PAIR_SLOTS + (int64_t)(k % SHM_PAIR_SLOTS)) * h->pair_piece;
}
static inline char *shm_slot(const shm_head *h, shm_seat *seat, uint64_t k) {
  return (char *)seat + h->data_at + (int64_t)(k % SHM_SLOTS) * h->piece;
}

/* Write a word that others wait for, then wake those that sleep. With the sleeper's order (asleep,
   then look, then sleep) no change is missed. */
void lt_shm_publish(lt_comm_link *link, _Atomic uint64_t *word, uint64_t value);
/* The same for a word of this rank's seat that others wait for all to have come to. */
void lt_shm_publish_all(lt_comm_link *link, _Atomic uint64_t *word, uint64_t value);
/* Count this rank in at a word of the barrier, after what it brings: true for the round's last. */
bool lt_shm_come(lt_comm_link *link, _Atomic uint64_t *word);
void lt_shm_publish_to(lt_comm_link *link, int peer, _Atomic uint64_t *word, uint64_t value);

static inline uint64_t shm_read(const _Atomic uint64_t *word) {
  return atomic_load_explicit(word, memory_order_seq_cst);
}

/* Sleep until a word is published, or some time. */
void lt_shm_relax(lt_comm_link *link, int64_t ns);

lt_progress lt_shm_compare(lt_comm_link *link, lt_comm_compare *round);
lt_progress lt_shm_compare_pair(lt_comm_link *link, int peer, lt_comm_compare *round);
lt_progress lt_shm_move(lt_comm_link *link, lt_comm_move *move);
lt_progress lt_shm_move_message(lt_comm_link *link, lt_comm_move *move);
lt_progress lt_shm_move_small(lt_comm_link *link, lt_comm_move *move);

/* Add elements from..from+n-1 of what all ranks gave, in the tree, into `out`: operand[r] points to
   rank r's element 0. `out` overlaps no operand, or only the first and there are two. */
void lt_shm_reduce(const lt_comm_link *link, const void *const *operand, int64_t from, int64_t n,
                lt_dtype dtype, lt_comm_reduce reduce, char *out);

#endif
