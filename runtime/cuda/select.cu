/* runtime/cuda/select.cu: tril, triu, one_hot, and flat positions of indices.

   Coordinates are an operand whose "strides" count them: lt_coordinates gives a view without
   memory, so that column - row or a class number is what the walk over dims adds up anyway. */
#include "cuda/index.h"

enum { MOST = LT_CUDA_OPERANDS - 1 };

typedef struct job {
  lt_cuda_iter it;
  int64_t diagonal, n[MOST];
  int item, count;
  bool lower, first;
  lt_cuda_blame blame;
} job;

typedef struct plan {
  lt_ctx *c;
  void (*kernel)(LT_CONSTANT job j);
  job j;
} plan;

static bool issue(void *ud, const lt_cuda_iter *it) {
  plan *p = static_cast<plan *>(ud);
  p->j.it = *it;
  return lt_cuda_grid(p->c, p->kernel, lt_cuda_blocks(it->numel), LT_CUDA_THREADS, 0, p->j);
}

/* One thread an element; bytes limit it. Operand 2 is the column less the row. */
static __global__ void triangle(LT_CONSTANT job j) {
  uint32_t n = lt_thread();
  int32_t at[3];
  if (n >= j.it.numel) return;
  lt_places<3>(j.it, n, at);
  int64_t off = lt_coordinate(j.it.o[2], at[2]);
  bool keep = j.lower ? off <= j.diagonal : off >= j.diagonal;
  lt_store_bits(j.it.o[0].data, at[0], j.item,
                keep ? lt_load_bits(j.it.o[1].data, at[1], j.item) : 0);
}

/* Strides -1 and 1 of the last two dims make the coordinate column - row, the number of the
   diagonal. */
static bool run_triangle(lt_ctx *c, const lt_call *call, bool lower) {
  plan p = {c, triangle, {}};
  lt_cuda_walk w;
  lt_view v[3];
  if (!lt_cuda_view(c, call->out[0], &v[0]) || !lt_cuda_view(c, call->in[0], &v[1])) return false;
  v[2] = lt_coordinates(&v[0]);
  v[2].stride[v[0].ndim - 2] = -1;
  v[2].stride[v[0].ndim - 1] = 1;
  p.j.lower = lower;
  p.j.diagonal = lt_cuda_args<lt_args_triangle>(call)->diagonal;
  p.j.item = static_cast<int>(lt_cuda_item_size(v[0].dtype));
  lt_cuda_walk_make(&w, &v[0], 3, v);
  return lt_cuda_pieces(&w, issue, &p);
}

LT_CUDA_KERNEL(tril) { return run_triangle(c, call, true); }
LT_CUDA_KERNEL(triu) { return run_triangle(c, call, false); }

/* One thread an element of the result. Operand 2 is the class. */
static __global__ void one_hot(LT_CONSTANT job j) {
  uint32_t n = lt_thread();
  int32_t at[3];
  if (n >= j.it.numel) return;
  lt_places<3>(j.it, n, at);
  int64_t of = lt_coordinate(j.it.o[2], at[2]);
  int64_t id = lt_load<int64_t>(j.it.o[1].data, j.it.o[1].dtype, at[1]);
  if (of == 0 && static_cast<uint64_t>(id) >= static_cast<uint64_t>(j.n[0]))
    lt_cuda_refuse(j.blame, id, j.n[0]);
  reinterpret_cast<int64_t *>(j.it.o[0].data)[at[0]] = id == of;
}

/* The index is repeated along the new dim, whose coordinate is the class; a thread compares
   both. */
LT_CUDA_KERNEL(one_hot) {
  plan p = {c, one_hot, {}};
  lt_cuda_walk w;
  lt_view v[3];
  if (!lt_cuda_view(c, call->out[0], &v[0]) || !lt_cuda_view(c, call->in[0], &v[1]) ||
      !lt_cuda_blame_of(c, call, &p.j.blame))
    return false;
  int last = v[0].ndim - 1;
  v[1].ndim = v[0].ndim;
  v[1].size[last] = p.j.n[0] = v[0].size[last];
  v[1].stride[last] = 0;
  v[2] = lt_coordinates(&v[0]);
  v[2].stride[last] = 1;
  lt_cuda_walk_make(&w, &v[0], 3, v);
  return lt_cuda_pieces(&w, issue, &p);
}

/* One thread an element: result = (result n + index) .. for `count` indices; those that are
   negative count from the end. */
static __global__ void flatten(LT_CONSTANT job j) {
  uint32_t n = lt_thread();
  if (n >= j.it.numel) return;
  int64_t *to = reinterpret_cast<int64_t *>(j.it.o[0].data) + lt_cuda_place(j.it, 0, n);
  int64_t sum = j.first ? 0 : *to;
#pragma unroll
  for (int k = 0; k < MOST; k++) {
    if (k >= j.count) break;
    const lt_cuda_operand &o = j.it.o[k + 1];
    int64_t at = lt_load<int64_t>(o.data, o.dtype, lt_cuda_place(j.it, k + 1, n)), most = j.n[k];
    if (at < -most || at >= most) {
      lt_cuda_refuse(j.blame, at, most);
      at = 0;
    }
    sum = sum * most + (at < 0 ? at + most : at);
  }
  *to = sum;
}

/* Horner's scheme over at most MOST indices a launch; later launches go on with the result of those
   before. */
LT_CUDA_KERNEL(index_flatten) {
  const lt_args_index_flatten *a = lt_cuda_args<lt_args_index_flatten>(call);
  plan p = {c, flatten, {}};
  bool ok = lt_cuda_blame_of(c, call, &p.j.blame);
  for (int from = 0; from < call->n_in && ok; from += MOST) {
    lt_cuda_walk w;
    lt_view v[LT_CUDA_OPERANDS];
    p.j.count = call->n_in - from < MOST ? call->n_in - from : MOST;
    p.j.first = from == 0;
    ok = lt_cuda_view(c, call->out[0], &v[0]);
    for (int k = 0; k < p.j.count && ok; k++) {
      ok = lt_cuda_view(c, call->in[from + k], &v[k + 1]);
      p.j.n[k] = a->full.size[a->dims.dim[from + k]];
    }
    if (!ok) break;
    lt_cuda_walk_make(&w, &v[0], p.j.count + 1, v);
    ok = lt_cuda_pieces(&w, issue, &p);
  }
  return ok;
}
