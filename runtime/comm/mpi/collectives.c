/* runtime/comm/mpi/collectives.c: the collectives of comm.h by MPI's nonblocking calls, or by
   point-to-point messages.

   Gathers are messages between each two ranks instead of MPI's calls: those count in int, and the
   nonblocking ones of Open MPI 4 are the same messages.

   Each step issues nonblocking calls and returns; lt_mpi_move tests them and calls the step again,
   until it says that it is finished. Counts are cut to pieces of `chunk` elements, so that MPI's
   int counts suffice and the watchdog sees progress within a large transfer. */
#include "comm/mpi/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 32768 }; /* up to here a tree of whole messages beats trading parts */

static lt_mpi_step started(bool ok) { return ok ? LT_STEP_STARTED : LT_STEP_FAILED; }

static lt_mpi_step barrier(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s) {
  if (s->stage++ > 0) return LT_STEP_FINISHED;
  return started(lt_mpi_ok(MPI_Ibarrier(l->data, &s->requests.list[s->requests.n++]),
                           "MPI_Ibarrier", m->text));
}

static lt_mpi_step broadcast(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s) {
  int64_t n = lt_mpi_piece(m->count, s->at, s->chunk);
  if (n == 0) return LT_STEP_FINISHED;
  char *bytes =
      l->rank == m->root ? (char *)(uintptr_t)lt_mpi_in(m, s, s->at) : lt_mpi_out(m, s, s->at);
  s->at += n;
  s->under_way += n * (int64_t)s->item;
  return started(lt_mpi_ok(MPI_Ibcast(bytes, (int)(n * (int64_t)s->item), MPI_BYTE, m->root,
                                      l->data, &s->requests.list[s->requests.n++]),
                           "MPI_Ibcast", m->text));
}

static lt_mpi_step pair(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s) {
  int64_t n = lt_mpi_piece(m->count, s->at, s->chunk), at = s->at;
  if (n == 0) return LT_STEP_FINISHED;
  s->at += n;
  return started(m->op == LT_COMM_SEND ? lt_mpi_send(l, m, s, lt_mpi_in(m, s, at), n, m->root)
                                       : lt_mpi_recv(l, m, s, lt_mpi_out(m, s, at), n, m->root));
}

/* All ranks must take part in as many rounds as the largest part needs: those with less send empty
   pieces, which lt_mpi_send leaves out on both sides alike. */
static int64_t largest(const lt_comm_link *l, const int64_t *counts) {
  int64_t most = 0;
  for (int r = 0; r < l->size; r++)
    if (counts[r] > most) most = counts[r];
  return most;
}

/* all_gather, gather: this rank's part to those that want it, theirs to their places. */
static lt_mpi_step gather(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s) {
  bool all = m->op == LT_COMM_ALL_GATHER, wants = all || l->rank == m->root;
  if (s->at >= largest(l, m->counts)) return LT_STEP_FINISHED;
  int64_t mine = lt_mpi_piece(m->counts[l->rank], s->at, s->chunk), before = 0;
  bool ok = true;
  for (int r = 0; r < l->size; before += m->counts[r++]) {
    int64_t n = lt_mpi_piece(m->counts[r], s->at, s->chunk);
    if (r == l->rank) {
      if (wants && n > 0)
        memmove(lt_mpi_out(m, s, before + s->at), lt_mpi_in(m, s, s->at), (size_t)n * s->item);
      continue;
    }
    if (wants) ok = ok && lt_mpi_recv(l, m, s, lt_mpi_out(m, s, before + s->at), n, r);
    if (all || r == m->root) ok = ok && lt_mpi_send(l, m, s, lt_mpi_in(m, s, s->at), mine, r);
  }
  s->at += s->chunk;
  return started(ok);
}

static lt_mpi_step scatter(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s) {
  int64_t before = 0, mine = lt_mpi_piece(m->counts[l->rank], s->at, s->chunk);
  bool ok = true;
  if (s->at >= largest(l, m->counts)) return LT_STEP_FINISHED;
  if (l->rank != m->root) {
    ok = lt_mpi_recv(l, m, s, lt_mpi_out(m, s, s->at), mine, m->root);
  } else {
    for (int r = 0; r < l->size; before += m->counts[r++]) {
      int64_t n = lt_mpi_piece(m->counts[r], s->at, s->chunk);
      if (r != l->rank)
        ok = ok && lt_mpi_send(l, m, s, lt_mpi_in(m, s, before + s->at), n, r);
      else if (n > 0)
        memmove(lt_mpi_out(m, s, s->at), lt_mpi_in(m, s, before + s->at), (size_t)n * s->item);
    }
  }
  s->at += s->chunk;
  return started(ok);
}

/* all_to_all: between each two ranks what the one has for the other. */
static lt_mpi_step all_to_all(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s) {
  int64_t before_in = 0, before_out = 0;
  bool ok = true;
  if (s->at >= m->count) return LT_STEP_FINISHED;
  for (int r = 0; r < l->size; before_in += m->in_counts[r], before_out += m->counts[r++]) {
    int64_t to = lt_mpi_piece(m->in_counts[r], s->at, s->chunk);
    int64_t from = lt_mpi_piece(m->counts[r], s->at, s->chunk);
    const char *in = lt_mpi_in(m, s, before_in + s->at);
    char *out = lt_mpi_out(m, s, before_out + s->at);
    if (r == l->rank && to > 0) memmove(out, in, (size_t)to * s->item);
    if (r != l->rank)
      ok = ok && lt_mpi_recv(l, m, s, out, from, r) && lt_mpi_send(l, m, s, in, to, r);
  }
  s->at += s->chunk;
  return started(ok);
}

/* What MPI reduces as we would: f16, bf16 and bool it does not know, and what min and max make of
   NaN is open there. */
static bool known(const lt_comm_move *m, MPI_Datatype *type, MPI_Op *op) {
  bool is_integer = true;
  switch ((lt_dtype)m->dtype) {
    case LT_F32:
      *type = MPI_FLOAT;
      is_integer = false;
      break;
    case LT_F64:
      *type = MPI_DOUBLE;
      is_integer = false;
      break;
    case LT_I64: *type = MPI_INT64_T; break;
    case LT_I32: *type = MPI_INT32_T; break;
    case LT_U8: *type = MPI_UINT8_T; break;
    case LT_I16: *type = MPI_INT16_T; break;
    case LT_U16: *type = MPI_UINT16_T; break;
    case LT_I8: *type = MPI_INT8_T; break;
    case LT_F16:
    case LT_BF16:
    case LT_BOOL:
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: return false;
  }
  switch ((lt_comm_reduce)m->reduce) {
    case LT_COMM_SUM: *op = MPI_SUM; return true;
    case LT_COMM_PROD: *op = MPI_PROD; return true;
    case LT_COMM_MIN: *op = MPI_MIN; return is_integer;
    case LT_COMM_MAX: *op = MPI_MAX; return is_integer;
    case LT_COMM_MEAN:
    case LT_COMM_REDUCE_COUNT:
    case LT_COMM_NO_REDUCE: break;
  }
  return false;
}

static lt_mpi_step all_reduce(lt_comm_link *l, lt_comm_move *m, lt_mpi_moving *s) {
  MPI_Datatype type = MPI_BYTE;
  MPI_Op op = MPI_OP_NULL;
  int64_t n = lt_mpi_piece(m->count, s->at, s->chunk), at = s->at;
  if (n == 0) return LT_STEP_FINISHED;
  known(m, &type, &op);
  s->at += n;
  s->under_way += n * (int64_t)s->item;
  return started(lt_mpi_ok(MPI_Iallreduce(m->in == m->out ? MPI_IN_PLACE : lt_mpi_in(m, s, at),
                                          lt_mpi_out(m, s, at), (int)n, type, op, l->data,
                                          &s->requests.list[s->requests.n++]),
                           "MPI_Iallreduce", m->text));
}

static bool few(const lt_comm_move *m, size_t item) {
  int64_t bytes = m->count * (int64_t)item;
  return bytes <= SMALL_BYTES && bytes <= m->chunk_bytes;
}

/* MPI's own reductions are better where they are known and either the bytes are few, or must cross
   between hosts: its ring goes over each wire twice, trading once for each two ranks. On one host
   trading is faster (64 MB, two busy cores: 2 ranks 90 against 116 ms, 4 ranks 220 against 397). */
static bool best_by_mpi(const lt_comm_link *l, const lt_comm_move *m, size_t item) {
  MPI_Datatype type;
  MPI_Op op;
  if (m->fixed_order || !known(m, &type, &op)) return false;
  return few(m, item) || l->local_size < l->size;
}

typedef lt_mpi_step (*stepper)(lt_comm_link *, lt_comm_move *, lt_mpi_moving *);

static stepper step_of(const lt_comm_link *l, const lt_comm_move *m, size_t item) {
  switch ((lt_comm_op)m->op) {
    case LT_COMM_BARRIER: return barrier;
    case LT_COMM_BROADCAST: return broadcast;
    case LT_COMM_SEND:
    case LT_COMM_RECV: return pair;
    case LT_COMM_ALL_GATHER:
    case LT_COMM_GATHER: return gather;
    case LT_COMM_SCATTER: return scatter;
    case LT_COMM_ALL_TO_ALL: return all_to_all;
    case LT_COMM_REDUCE_SCATTER: return lt_mpi_reduce_scatter;
    case LT_COMM_ALL_REDUCE:
      if (best_by_mpi(l, m, item)) return all_reduce;
      return few(m, item) ? lt_mpi_tree_all_reduce : lt_mpi_traded_all_reduce;
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return NULL;
}

/* Two requests for each other rank, a send and a receipt, and one for a collective: no step has
   more under way. */
static lt_mpi_moving *moving_new(const lt_comm_link *l, lt_comm_move *m) {
  lt_mpi_moving *s = calloc(1, sizeof *s);
  MPI_Request *list = calloc((size_t)l->size * 2 + 1, sizeof *list);
  if (s == NULL || list == NULL) {
    free(s);
    free(list);
    snprintf(m->text, sizeof m->text, "out of memory: %d requests", l->size * 2 + 1);
    return NULL;
  }
  s->item = m->op == LT_COMM_BARRIER ? 1 : l->host->item_size((lt_dtype)m->dtype);
  s->chunk = m->chunk_bytes / (int64_t)s->item;
  if (s->chunk < 1) s->chunk = 1;
  s->requests.list = list;
  s->step = step_of(l, m, s->item);
  return s;
}

/* What failed may still be MPI's: that memory stays. */
static lt_progress finish(lt_comm_move *m, lt_progress how) {
  lt_mpi_moving *s = m->state;
  m->state = NULL;
  if (how == LT_BROKEN) return how;
  free(s->scratch);
  free(s->requests.list);
  free(s);
  return how;
}

/* A loop, not recursion: several steps may finish without waiting (empty pieces). */
lt_progress lt_mpi_move(lt_comm_link *l, lt_comm_move *m) {
  if (m->state == NULL && (m->state = moving_new(l, m)) == NULL) return LT_BROKEN;
  lt_mpi_moving *s = m->state;
  if (s->step == NULL) {
    snprintf(m->text, sizeof m->text, "invalid operation: %d", m->op);
    return finish(m, LT_BROKEN);
  }
  for (;;) {
    lt_progress at = lt_mpi_test(&s->requests, m->text);
    if (at == LT_PENDING) return at;
    if (at == LT_BROKEN) return finish(m, at);
    m->moved += s->under_way;
    s->under_way = 0;
    lt_mpi_step step = s->step(l, m, s);
    if (step == LT_STEP_FINISHED) return finish(m, LT_DONE);
    if (step == LT_STEP_FAILED) return finish(m, LT_BROKEN);
  }
}
