/* runtime/comm/mpi/compare.c: comparison of fingerprints over MPI, before any data moves.

   16 bytes a rank decide: the largest h and the largest ~h are complements only where all h are
   equal. All ranks see the same two numbers, so all continue in the same way: to the sizes where
   they agree and want them, to each other's marks where they do not.

   Two reductions by MPI_MAX of 8 bytes rather than gathering all hashes: the cost is O(log ranks)
   messages and constant memory, and every rank can tell by itself that all agree. Marks, some
   hundred bytes a rank, are gathered only for the error's text. */
#include "comm/mpi/link.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum phase { HASHES, EXTENTS, MARKS } phase;

typedef struct round_state {
  phase phase;
  uint64_t hashes[2];
  MPI_Request request;
} round_state;

/* What failed may still be MPI's: that memory stays. */
static lt_progress finish(lt_comm_compare *c, lt_progress how) {
  if (how != LT_BROKEN) free(c->state);
  c->state = NULL;
  return how;
}

static bool start_hashes(lt_comm_link *l, lt_comm_compare *c, round_state *s) {
  s->hashes[0] = c->mark->hash;
  s->hashes[1] = ~c->mark->hash;
  return lt_mpi_ok(
      MPI_Iallreduce(MPI_IN_PLACE, s->hashes, 2, MPI_UINT64_T, MPI_MAX, l->marks, &s->request),
      "MPI_Iallreduce", c->text);
}

static bool start_extents(lt_comm_link *l, lt_comm_compare *c, round_state *s) {
  s->phase = EXTENTS;
  return lt_mpi_ok(
      MPI_Iallgather(&c->extent, 1, MPI_INT64_T, c->extents, 1, MPI_INT64_T, l->marks, &s->request),
      "MPI_Iallgather", c->text);
}

static bool start_marks(lt_comm_link *l, lt_comm_compare *c, round_state *s) {
  enum { BYTES = sizeof(lt_mark) };
  s->phase = MARKS;
  return lt_mpi_ok(
      MPI_Iallgather(c->mark, BYTES, MPI_BYTE, c->marks, BYTES, MPI_BYTE, l->marks, &s->request),
      "MPI_Iallgather", c->text);
}

/* Called until it is not pending: MPI has no thread of ours to progress it (MPI_THREAD_FUNNELED),
   so that each call of MPI_Test is what moves it on. All ranks take the same branches, for they
   have the same two numbers. */
lt_progress lt_mpi_compare(lt_comm_link *l, lt_comm_compare *c) {
  round_state *s = c->state;
  if (s == NULL) {
    c->state = s = calloc(1, sizeof *s);
    if (s == NULL) {
      snprintf(c->text, sizeof c->text, "no memory");
      return LT_BROKEN;
    }
    if (!start_hashes(l, c, s)) return finish(c, LT_BROKEN);
  }
  for (;;) {
    int done = 0;
    if (!lt_mpi_ok(MPI_Test(&s->request, &done, MPI_STATUS_IGNORE), "MPI_Test", c->text))
      return finish(c, LT_BROKEN);
    if (!done) return LT_PENDING;
    if (s->phase == MARKS) return finish(c, LT_DIFFERENT);
    bool equal = s->hashes[0] == ~s->hashes[1];
    if (s->phase == EXTENTS || (equal && c->extents == NULL)) return finish(c, LT_DONE);
    if (!(equal ? start_extents : start_marks)(l, c, s)) return finish(c, LT_BROKEN);
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
  MPI_Request request[2];
  lt_mpi_requests requests;
} pair_state;

/* Receiving is posted before sending, so that a message never waits in MPI's buffers for unexpected
   ones; both are nonblocking, hence two ranks that send to each other do not deadlock. */
static bool start_pair(lt_comm_link *l, int peer, lt_comm_compare *c, pair_state *s) {
  enum { FROM_SENDER = 1, FROM_RECEIVER = 2, BYTES = sizeof(pair_message) };
  bool sends = c->mark->op == LT_COMM_SEND;
  int out_tag = sends ? FROM_SENDER : FROM_RECEIVER, in_tag = sends ? FROM_RECEIVER : FROM_SENDER;
  s->out = (pair_message){.mark = *c->mark, .extent = c->extent};
  s->requests = (lt_mpi_requests){.list = s->request, .n = 2};
  s->request[0] = s->request[1] = MPI_REQUEST_NULL;
  return lt_mpi_ok(MPI_Irecv(&s->in, BYTES, MPI_BYTE, peer, in_tag, l->marks, &s->request[0]),
                   "MPI_Irecv", c->text) &&
         lt_mpi_ok(MPI_Isend(&s->out, BYTES, MPI_BYTE, peer, out_tag, l->marks, &s->request[1]),
                   "MPI_Isend", c->text);
}

lt_progress lt_mpi_compare_pair(lt_comm_link *l, int peer, lt_comm_compare *c) {
  pair_state *s = c->state;
  if (s == NULL) {
    c->state = s = calloc(1, sizeof *s);
    if (s == NULL) {
      snprintf(c->text, sizeof c->text, "no memory");
      return LT_BROKEN;
    }
    if (!start_pair(l, peer, c, s)) return finish(c, LT_BROKEN);
  }
  lt_progress at = lt_mpi_test(&s->requests, c->text);
  if (at == LT_PENDING) return at;
  if (at == LT_BROKEN) return finish(c, at);
  if (s->in.mark.hash != s->out.mark.hash) {
    c->marks[l->rank] = s->out.mark;
    c->marks[peer] = s->in.mark;
    return finish(c, LT_DIFFERENT);
  }
  if (c->extents != NULL) {
    c->extents[l->rank] = s->out.extent;
    c->extents[peer] = s->in.extent;
  }
  return finish(c, LT_DONE);
}
