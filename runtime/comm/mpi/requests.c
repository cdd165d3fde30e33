/* runtime/comm/mpi/requests.c: pending MPI requests, and MPI's error codes as texts. */
#include <stdio.h>

#include "comm/mpi/collectives.h"

enum { TAG_GROUP = 1, TAG_PAIR = 2 };

bool lt_mpi_ok(int status, const char *call, char *text) {
  if (status == MPI_SUCCESS) return true;
  char why[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(status, why, &n);
  snprintf(text, LT_COMM_TEXT, "%.48s: %.200s", call, why);
  return false;
}

lt_progress lt_mpi_test(lt_mpi_requests *r, char *text) {
  int done = 1;
  if (r->n > 0 &&
      !lt_mpi_ok(MPI_Testall(r->n, r->list, &done, MPI_STATUSES_IGNORE), "MPI_Testall", text))
    return LT_BROKEN;
  if (!done) return LT_PENDING;
  r->n = 0;
  return LT_DONE;
}

static int tag_of(const lt_comm_move *m) {
  return m->op == LT_COMM_SEND || m->op == LT_COMM_RECV ? TAG_PAIR : TAG_GROUP;
}

bool lt_mpi_send(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s, const void *from, int64_t n,
                 int peer) {
  if (n == 0) return true;
  s->under_way += n * (int64_t)s->item;
  return lt_mpi_ok(MPI_Isend(from, (int)(n * (int64_t)s->item), MPI_BYTE, peer, tag_of(m), l->data,
                             &s->requests.list[s->requests.n++]),
                   "MPI_Isend", m->text);
}

bool lt_mpi_recv(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s, void *to, int64_t n,
                 int peer) {
  if (n == 0) return true;
  s->under_way += n * (int64_t)s->item;
  return lt_mpi_ok(MPI_Irecv(to, (int)(n * (int64_t)s->item), MPI_BYTE, peer, tag_of(m), l->data,
                             &s->requests.list[s->requests.n++]),
                   "MPI_Irecv", m->text);
}
