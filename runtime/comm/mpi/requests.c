/* runtime/comm/mpi/requests.c: pending MPI requests. */
#include <stdlib.h>

#include "comm/mpi/link.h"

struct lt_p2p_pending {
  int n;
  MPI_Request list[];
};

static lt_p2p_pending *pending_new(int capacity) {
  return calloc(1, sizeof(lt_p2p_pending) + (size_t)capacity * sizeof(MPI_Request));
}

static void pending_free(lt_p2p_pending *p) { free(p); }

static lt_progress test(lt_p2p *l, lt_p2p_pending *p, char *text) {
  int done = 1;
  (void)l;
  if (p->n > 0 &&
      !lt_mpi_ok(MPI_Testall(p->n, p->list, &done, MPI_STATUSES_IGNORE), "MPI_Testall", text))
    return LT_BROKEN;
  if (!done) return LT_PENDING;
  p->n = 0;
  return LT_DONE;
}

static MPI_Comm comm_of(lt_p2p *l) { return ((lt_comm_link *)l)->comm; }

static bool send(lt_p2p *l, lt_p2p_pending *p, const void *from, int64_t bytes, int peer,
                 lt_p2p_tag tag, char *text) {
  return lt_mpi_ok(
      MPI_Isend(from, (int)bytes, MPI_BYTE, peer, (int)tag, comm_of(l), &p->list[p->n++]),
      "MPI_Isend", text);
}

static bool recv(lt_p2p *l, lt_p2p_pending *p, void *to, int64_t bytes, int peer, lt_p2p_tag tag,
                 char *text) {
  return lt_mpi_ok(
      MPI_Irecv(to, (int)bytes, MPI_BYTE, peer, (int)tag, comm_of(l), &p->list[p->n++]),
      "MPI_Irecv", text);
}

static bool whole(lt_p2p *l, lt_p2p_pending *p, lt_comm_move *m, size_t item, int64_t at,
                  int64_t n) {
  return lt_mpi_whole(l, m, item, at, n, &p->list[p->n++]);
}

const lt_p2p_ops lt_mpi_messages = {
    .pending_new = pending_new,
    .pending_free = pending_free,
    .send = send,
    .recv = recv,
    .test = test,
    .prefers = lt_mpi_prefers,
    .whole = whole,
};
