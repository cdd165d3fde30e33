/* runtime/comm/mpi/native_collectives.c: collectives that MPI does by itself: broadcasts, and
   reductions where its order of additions may be used. */
#include "comm/mpi/link.h"

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

static bool reduce(lt_comm_link *l, lt_comm_move *m, size_t item, int64_t at, int64_t n,
                   MPI_Request *request) {
  MPI_Datatype type = MPI_BYTE;
  MPI_Op op = MPI_OP_NULL;
  size_t skip = (size_t)at * item;
  known(m, &type, &op);
  return lt_mpi_ok(
      MPI_Iallreduce(m->in == m->out ? MPI_IN_PLACE : (const char *)m->in + skip,
                     (char *)m->out + skip, (int)n, type, op, l->comm, request),
      "MPI_Iallreduce", m->text);
}

static bool broadcast(lt_comm_link *l, lt_comm_move *m, size_t item, int64_t at, int64_t n,
                      MPI_Request *request) {
  char *data = l->p2p.rank == m->root ? (char *)(uintptr_t)m->in : m->out;
  return lt_mpi_ok(MPI_Ibcast(data + (size_t)at * item, (int)(n * (int64_t)item), MPI_BYTE, m->root,
                              l->comm, request),
                   "MPI_Ibcast", m->text);
}

bool lt_mpi_whole(lt_p2p *l, lt_comm_move *m, size_t item, int64_t at, int64_t n,
                  MPI_Request *request) {
  return (m->op == LT_COMM_BROADCAST ? broadcast : reduce)((lt_comm_link *)l, m, item, at, n,
                                                           request);
}

/* MPI's own reductions are better where they are known and more than a few ranks have few bytes, or
   hosts with several ranks many: its ring goes over each wire twice, trading once for each two
   ranks. On one host trading is faster (64 MB, two busy cores: 2 ranks 90 against 116 ms, 4 ranks
   220 against 397); with one rank a host it sends the same bytes in two rounds. */
bool lt_mpi_prefers(const lt_p2p *l, const lt_comm_move *m, size_t item) {
  const lt_comm_link *link = (const lt_comm_link *)l;
  MPI_Datatype type;
  MPI_Op op;
  if (m->op == LT_COMM_BROADCAST) return true;
  if (m->op != LT_COMM_ALL_REDUCE || m->fixed_order || !known(m, &type, &op)) return false;
  if (lt_p2p_is_small(m, item)) return l->size > LT_P2P_FEW;
  return link->most_local > 1 && link->most_local < l->size;
}
