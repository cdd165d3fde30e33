/* runtime/comm/mpi/collectives.h: nonblocking collectives as state machines.

   A step starts requests and returns; it is called again when all of them are complete, until it
   says that nothing is left. So no step waits, and a message is never larger than a chunk. */
#ifndef LT_COMM_MPI_COLLECTIVES_H
#define LT_COMM_MPI_COLLECTIVES_H

#include "comm/mpi/link.h"

typedef enum lt_mpi_step { LT_STEP_STARTED, LT_STEP_FINISHED, LT_STEP_FAILED } lt_mpi_step;

typedef struct lt_mpi_moving {
  lt_mpi_step (*step)(lt_comm_link *link, lt_comm_move *m, struct lt_mpi_moving *s);
  lt_mpi_requests requests; /* capacity: 2 a rank, and 1 */
  size_t item;              /* bytes of an element */
  int64_t chunk;            /* elements of a message at most */
  int64_t at;               /* elements done, of each part where there are parts */
  int64_t under_way;        /* bytes of the requests */
  int stage;                /* the step's own */
  char *scratch;            /* the step's own, freed at the end */
} lt_mpi_moving;

/* Elements [at, at + n) of a part that has `count`, at most `chunk`: n. */
static inline int64_t lt_mpi_piece(int64_t count, int64_t at, int64_t chunk) {
  return count <= at ? 0 : count - at < chunk ? count - at : chunk;
}

static inline const char *lt_mpi_in(const lt_comm_move *m, const lt_mpi_moving *s, int64_t at) {
  return (const char *)m->in + (size_t)at * s->item;
}
static inline char *lt_mpi_out(const lt_comm_move *m, const lt_mpi_moving *s, int64_t at) {
  return (char *)m->out + (size_t)at * s->item;
}

/* Start sending n elements to a peer, receiving them from it; nothing for n = 0. */
bool lt_mpi_send(lt_comm_link *link, lt_comm_move *m, lt_mpi_moving *s, const void *from, int64_t n,
                 int peer);
bool lt_mpi_recv(lt_comm_link *link, lt_comm_move *m, lt_mpi_moving *s, void *to, int64_t n,
                 int peer);

/* Steps of exchange.c: reductions that we add ourselves, in the tree's order. */
lt_mpi_step lt_mpi_tree_all_reduce(lt_comm_link *link, lt_comm_move *m, lt_mpi_moving *s);
lt_mpi_step lt_mpi_traded_all_reduce(lt_comm_link *link, lt_comm_move *m, lt_mpi_moving *s);
lt_mpi_step lt_mpi_reduce_scatter(lt_comm_link *link, lt_comm_move *m, lt_mpi_moving *s);

#endif
