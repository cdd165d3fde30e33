/* runtime/nccl/collectives.c: the collectives of comm.h by NCCL's calls.

   A movement is issued by one group of calls; it is on the stream when NCCL no longer says that it
   is in progress.

   Operations that NCCL lacks (all_to_all, parts of different sizes) are sends and receives in one
   group: within ncclGroupStart and ncclGroupEnd their order does not matter, outside of it a send
   would wait for its receiver and two ranks could wait for each other.

   NCCL's sums depend on its algorithm (ring, tree) and so on the number of GPUs and its version:
   ltrain's own order of sums is not kept here. */
#include "nccl/link.h"

static ncclDataType_t type_of(lt_dtype dtype) {
  switch (dtype) {
    case LT_F32: return ncclFloat32;
    case LT_F64: return ncclFloat64;
    case LT_F16: return ncclFloat16;
    case LT_BF16: return ncclBfloat16;
    case LT_I64: return ncclInt64;
    case LT_I32: return ncclInt32;
    case LT_U8: return ncclUint8;
    case LT_I8: return ncclInt8;
    case LT_BOOL: return ncclUint8;
    case LT_I16:
    case LT_U16:
    case LT_DTYPE_NONE:
    case LT_DTYPE_COUNT: break;
  }
  return ncclNumTypes;
}

/* Its minima and maxima pass over nan, and its sums of bytes that are 0 or 1 are not an "or". */
bool lt_nccl_reduces(lt_dtype dtype, lt_comm_reduce reduce) {
  if (type_of(dtype) == ncclNumTypes || dtype == LT_BOOL) return false;
  return reduce == LT_COMM_SUM || reduce == LT_COMM_PROD;
}

/* A movement of elements of `item` bytes, which NCCL takes as bytes where it does not add them. */
typedef struct movement {
  lt_comm_link *link;
  const lt_comm_move *m;
  cudaStream_t stream;
  size_t item;
} movement;

static size_t bytes_of(const movement *v, int64_t n) { return (size_t)n * v->item; }

static const char *at(const movement *v, const void *data, int64_t element) {
  return (const char *)data + bytes_of(v, element);
}

static ncclRedOp_t operation(const lt_comm_move *m) {
  return m->reduce == LT_COMM_PROD ? ncclProd : ncclSum;
}

static bool are_equal(const int64_t *counts, int n) {
  for (int r = 1; r < n; r++)
    if (counts[r] != counts[0]) return false;
  return true;
}

static ncclResult_t send(const movement *v, int64_t from, int64_t n, int to) {
  return n == 0 ? ncclSuccess
                : lt_nccl.ncclSend(at(v, v->m->in, from), bytes_of(v, n), ncclUint8, to,
                                   v->link->comm, v->stream);
}

static ncclResult_t receive(const movement *v, int64_t to, int64_t n, int from) {
  char *out = (char *)v->m->out + bytes_of(v, to);
  return n == 0 ? ncclSuccess
                : lt_nccl.ncclRecv(out, bytes_of(v, n), ncclUint8, from, v->link->comm, v->stream);
}

/* Whether a call of a group was taken: communicators that do not block may say that it is under
   way. The group ends also after one that was not. */
static bool is_taken(ncclResult_t r) { return r == ncclSuccess || r == ncclInProgress; }

static ncclResult_t end_group(ncclResult_t last) {
  ncclResult_t end = lt_nccl.ncclGroupEnd();
  return is_taken(last) ? end : last;
}

/* Between two ranks what the one has for the other. */
static ncclResult_t all_to_all(const movement *v) {
  const int64_t *in = v->m->in_counts, *out = v->m->counts;
  ncclResult_t r = lt_nccl.ncclGroupStart();
  int64_t from = 0, to = 0;
  for (int k = 0; k < v->link->size && is_taken(r); from += in[k], to += out[k++]) {
    r = send(v, from, in[k], k);
    if (is_taken(r)) r = receive(v, to, out[k], k);
  }
  return end_group(r);
}

static ncclResult_t all_gather(const movement *v) {
  const lt_comm_move *m = v->m;
  const int64_t *counts = m->counts;
  int64_t mine = counts[v->link->rank], to = 0;
  if (are_equal(counts, v->link->size))
    return lt_nccl.ncclAllGather(m->in, m->out, bytes_of(v, mine), ncclUint8, v->link->comm,
                                 v->stream);
  ncclResult_t r = lt_nccl.ncclGroupStart();
  for (int k = 0; k < v->link->size && is_taken(r); to += counts[k++]) {
    r = send(v, 0, mine, k);
    if (is_taken(r)) r = receive(v, to, counts[k], k);
  }
  return end_group(r);
}

static ncclResult_t broadcast(const movement *v) {
  const lt_comm_move *m = v->m;
  bool first = v->link->rank == m->root;
  void *out = first ? (void *)m->in : m->out; /* at the root in place: it is not written */
  return lt_nccl.ncclBroadcast(first ? m->in : out, out, bytes_of(v, m->count), ncclUint8, m->root,
                               v->link->comm, v->stream);
}

/* With parts of different sizes it is a reduction to each rank of its part, R calls in one group:
   the bytes on the wire are the same, the steps are not. */
static ncclResult_t reduce_scatter(const movement *v) {
  const lt_comm_move *m = v->m;
  ncclDataType_t type = type_of((lt_dtype)m->dtype);
  if (are_equal(m->counts, v->link->size))
    return lt_nccl.ncclReduceScatter(m->in, m->out, (size_t)m->counts[0], type, operation(m),
                                     v->link->comm, v->stream);
  ncclResult_t r = lt_nccl.ncclGroupStart();
  int64_t from = 0;
  for (int k = 0; k < v->link->size && is_taken(r); from += m->counts[k++])
    if (m->counts[k] > 0)
      r = lt_nccl.ncclReduce(at(v, m->in, from), m->out, (size_t)m->counts[k], type, operation(m),
                             k, v->link->comm, v->stream);
  return end_group(r);
}

static ncclResult_t issue(const movement *v) {
  const lt_comm_move *m = v->m;
  ncclDataType_t type = type_of((lt_dtype)m->dtype);
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_REDUCE:
      return lt_nccl.ncclAllReduce(m->in, m->out, (size_t)m->count, type, operation(m),
                                   v->link->comm, v->stream);
    case LT_COMM_REDUCE_SCATTER: return reduce_scatter(v);
    case LT_COMM_BROADCAST: return broadcast(v);
    case LT_COMM_ALL_GATHER: return all_gather(v);
    case LT_COMM_ALL_TO_ALL: return all_to_all(v);
    case LT_COMM_SEND: return send(v, 0, m->count, m->root);
    case LT_COMM_RECV: return receive(v, 0, m->count, m->root);
    case LT_COMM_BARRIER:
    case LT_COMM_GATHER:
    case LT_COMM_SCATTER:
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return ncclInvalidArgument;
}

/* Nothing moves; all ranks see it. By counts that all ranks have: a rank must not leave out a call
   that others make. */
static bool is_empty(const lt_comm_move *m, int size) {
  if (m->op != LT_COMM_ALL_GATHER && m->op != LT_COMM_REDUCE_SCATTER) return m->count == 0;
  int64_t n = 0;
  for (int r = 0; r < size; r++) n += m->counts[r];
  return n == 0;
}

/* `state` only says that the calls were issued: calling again asks NCCL how far it is. Done means
   that the kernels are on the stream, not that they have run; events of the stream tell that. */
lt_progress lt_nccl_move(lt_comm_link *l, lt_comm_move *m) {
  static char issued;
  lt_progress p = lt_nccl_progress(l, m->text);
  if (p != LT_DONE) return p;
  l->is_ready = true;
  if (m->state == NULL && !is_empty(m, l->size)) {
    movement v = {.link = l,
                  .m = m,
                  .stream = (cudaStream_t)m->native,
                  .item = l->host->item_size((lt_dtype)m->dtype)};
    if (!lt_nccl_ok(l, issue(&v), "NCCL", m->text)) return LT_BROKEN;
    m->state = &issued;
    p = lt_nccl_progress(l, m->text);
  }
  if (p == LT_DONE) m->state = NULL;
  return p;
}
