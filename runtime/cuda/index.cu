/* runtime/cuda/index.cu: elements and rows chosen by index.

   index_select, gather and embedding are one walk over the result: the source has stride 0 along
   the dim of the index, whose value times the source's own stride is added. Where neighbours lie
   together on both sides and share their index, 16 bytes are one element of the walk. */
#include "cuda/index.h"

/* Scratch of a view's shape, row-major; at least one element, so that the address is valid. */
bool lt_cuda_row_major_new(lt_ctx *c, const lt_view *like, int dtype, lt_view *out) {
  int64_t stride = 1;
  lt_view v = *like;
  v.dtype = static_cast<lt_dtype>(dtype);
  for (int d = v.ndim - 1; d >= 0; d--) {
    v.stride[d] = stride;
    stride *= v.size[d];
  }
  v.data = lt_cuda_scratch<char>(c, stride > 0 ? stride * lt_cuda_item_size(dtype) : 1);
  *out = v;
  return v.data != nullptr;
}

bool lt_cuda_row_major(lt_ctx *c, const lt_view *v, int dtype, lt_view *out) {
  if (v->dtype == dtype && lt_cuda_is_row_major(v)) {
    *out = *v;
    return true;
  }
  lt_view from = *v;
  return lt_cuda_row_major_new(c, &from, dtype, out) && lt_cuda_move(c, out, &from);
}

bool lt_cuda_result(lt_ctx *c, const lt_view *v, int dtype, lt_view *out) {
  lt_view to = *v;
  bool fits = to.dtype == dtype && lt_cuda_is_row_major(&to);
  *out = to;
  return fits || lt_cuda_row_major_new(c, &to, dtype, out);
}

typedef struct job {
  lt_cuda_iter it; /* result, source, index */
  int64_t n, step; /* size and stride of the source's dim */
  int item;
  lt_cuda_blame blame;
} job;

/* One thread a unit U; bytes limit it. */
template <class U> static __global__ void take(LT_CONSTANT job j) {
  uint32_t n = lt_thread();
  int32_t at[3];
  if (n >= j.it.numel) return;
  lt_places<3>(j.it, n, at);
  int64_t k = lt_index_at(j.it.o[2].data, j.it.o[2].dtype, at[2], j.n, j.blame);
  U v = U();
  if (k >= 0)
    v = *reinterpret_cast<const U *>(j.it.o[1].data + (at[1] + k * j.step) * j.item);
  *reinterpret_cast<U *>(j.it.o[0].data + static_cast<int64_t>(at[0]) * j.item) = v;
}

typedef struct plan {
  lt_ctx *c;
  job j;
  int64_t unit;
} plan;

static bool take_piece(void *ud, const lt_cuda_iter *it) {
  plan *p = static_cast<plan *>(ud);
  p->j.it = *it;
  unsigned blocks = lt_cuda_blocks(it->numel);
  switch (p->unit) {
    case 16: return lt_cuda_grid(p->c, take<uint4>, blocks, LT_CUDA_THREADS, 0, p->j);
    case 8: return lt_cuda_grid(p->c, take<uint2>, blocks, LT_CUDA_THREADS, 0, p->j);
    case 4: return lt_cuda_grid(p->c, take<uint32_t>, blocks, LT_CUDA_THREADS, 0, p->j);
    case 2: return lt_cuda_grid(p->c, take<uint16_t>, blocks, LT_CUDA_THREADS, 0, p->j);
    default: return lt_cuda_grid(p->c, take<uint8_t>, blocks, LT_CUDA_THREADS, 0, p->j);
  }
}

/* The largest unit that cuts the last dim of both sides; `step`: a stride that is not a dim's. */
static int64_t unit_of(const lt_view *to, const lt_view *from, const lt_view *index, int64_t step) {
  int64_t item = lt_cuda_item_size(to->dtype), last = to->ndim - 1;
  if (to->stride[last] != 1 || from->stride[last] != 1 || index->stride[last] != 0) return item;
  uint64_t all = reinterpret_cast<uintptr_t>(to->data) | reinterpret_cast<uintptr_t>(from->data);
  all |= static_cast<uint64_t>(to->size[last] * item) | static_cast<uint64_t>(step * item);
  for (int d = 0; d < last; d++)
    all |= static_cast<uint64_t>(to->stride[d] * item | from->stride[d] * item);
  int64_t unit = 16;
  while (unit > item && all % static_cast<uint64_t>(unit) != 0) unit /= 2;
  return unit;
}

/* Refuses indices of which no element is taken, too. An index out of range must not pass because
   the other dims are empty. */
static bool check(plan *p, const lt_view *index) {
  lt_view v[3] = {*index, *index, *index};
  int8_t *place = lt_cuda_scratch<int8_t>(p->c, 1);
  lt_cuda_walk w;
  if (place == nullptr) return false;
  for (int k = 0; k < 2; k++) {
    v[k].data = place;
    v[k].dtype = LT_U8;
    for (int d = 0; d < index->ndim; d++) v[k].stride[d] = 0;
  }
  p->j.step = 0;
  p->unit = p->j.item = 1;
  lt_cuda_walk_make(&w, index, 3, v);
  return lt_cuda_pieces(&w, take_piece, p);
}

/* All views have the dims of `to`; the source has stride 0 where `step` is its stride. Addresses
   are computed as in any walk (cuda/tensor_iterator.h); an index out of range writes zeros and
   reports the value to the error word, which the host reads at its next wait. */
static bool run(lt_ctx *c, const lt_call *call, lt_view *v, int64_t n, int64_t step) {
  lt_cuda_walk w;
  plan p = {c, {}, unit_of(&v[0], &v[1], &v[2], step)};
  p.j.n = n;
  p.j.step = step;
  p.j.item = static_cast<int>(lt_cuda_item_size(v[0].dtype));
  if (!lt_cuda_blame_of(c, call, &p.j.blame)) return false;
  if (lt_cuda_numel(&v[0]) == 0) return lt_cuda_numel(&v[2]) == 0 || check(&p, &v[2]);
  int64_t per_unit = p.unit / p.j.item, last = v[0].ndim - 1;
  if (per_unit > 1) {
    for (int k = 0; k < 3; k++) v[k].size[last] = v[0].size[last] / per_unit;
    v[0].stride[last] = v[1].stride[last] = per_unit;
  }
  lt_view over = v[0];
  for (int k = 1; k < 3; k++)
    for (int d = 0; d < over.ndim; d++) v[k].size[d] = over.size[d];
  lt_cuda_walk_make(&w, &over, 3, v);
  return lt_cuda_pieces(&w, take_piece, &p);
}

/* The index has one dim, so its stride is 0 in all others of the result. */
LT_CUDA_KERNEL(index_select) {
  int64_t dim = lt_cuda_args<lt_args_index_select>(call)->dim;
  lt_view v[3], index;
  if (!lt_cuda_view_dims(c, call->out[0], &v[0]) || !lt_cuda_view_dims(c, call->in[0], &v[1]) ||
      !lt_cuda_view_dims(c, call->in[1], &index))
    return false;
  int64_t n = v[1].size[dim], step = v[1].stride[dim];
  v[2] = v[0];
  v[2].data = index.data;
  v[2].dtype = index.dtype;
  for (int d = 0; d < v[0].ndim; d++) {
    v[2].stride[d] = d == dim ? index.stride[0] : 0;
    v[2].size[d] = d == dim ? index.size[0] : 1; /* read by `check` alone */
  }
  v[1].stride[dim] = 0;
  return run(c, call, v, n, step);
}

/* The source has as many dims as the index; along `dim` only the index moves it. */
LT_CUDA_KERNEL(gather) {
  int64_t dim = lt_cuda_args<lt_args_gather>(call)->dim;
  lt_view v[3];
  if (!lt_cuda_view_dims(c, call->out[0], &v[0]) || !lt_cuda_view_dims(c, call->in[0], &v[1]) ||
      !lt_cuda_view_dims(c, call->in[1], &v[2]))
    return false;
  int64_t n = v[1].size[dim], step = v[1].stride[dim];
  v[1].stride[dim] = 0;
  return run(c, call, v, n, step);
}

/* (weight [V, D], ids [...]) -> [..., D] */
LT_CUDA_KERNEL(embedding) {
  lt_view v[3], table;
  if (!lt_cuda_view(c, call->out[0], &v[0]) || !lt_cuda_view(c, call->in[0], &table) ||
      !lt_cuda_view(c, call->in[1], &v[2]))
    return false;
  int last = v[2].ndim++;
  v[2].size[last] = 1;
  v[2].stride[last] = 0;
  v[1] = v[0];
  v[1].data = table.data;
  for (int d = 0; d < last; d++) v[1].stride[d] = 0;
  v[1].stride[last] = table.stride[1];
  return run(c, call, v, table.size[0], table.stride[0]);
}
