/* runtime/cuda/lines.cu: normalizes the dims of a reduction, scan or softmax: sorted, merged, cut
   into 32-bit parts.

   Kernels of reductions, scans and softmax see two lists of dims, those that are kept and those
   along the lines, each as short as it can be: a contiguous tensor has one of each whatever its
   shape. So one kernel serves any view, and the usual one costs no division. */
#include "cuda/lines.h"

#include <stdlib.h>
#include <string.h>

#include <utility>

typedef struct dims { /* the kept ones, or those along */
  int *n;
  int64_t *size;
  int64_t (*stride)[LT_MAX_DIMS];
} dims;

static void swap_dims(const lt_cuda_lines_plan *p, dims d, int a, int b) {
  std::swap(d.size[a], d.size[b]);
  for (int k = 0; k < p->n; k++) std::swap(d.stride[k][a], d.stride[k][b]);
}

/* By the first operand's stride, largest first: its memory is then walked in order. Insertion sort
   of at most 8. */
static void sort_dims(const lt_cuda_lines_plan *p, dims d) {
  for (int i = 1; i < *d.n; i++)
    for (int j = i; j > 0 && llabs(d.stride[0][j - 1]) < llabs(d.stride[0][j]); j--)
      swap_dims(p, d, j - 1, j);
}

/* Two neighbouring dims are one where every operand steps from the end of the inner to the next of
   the outer. */
static void merge_dims(const lt_cuda_lines_plan *p, dims d) {
  int top = 0;
  for (int i = 1; i < *d.n; i++) {
    bool merge = true;
    for (int k = 0; k < p->n; k++)
      merge = merge && d.stride[k][top] == d.stride[k][i] * d.size[i];
    if (!merge) top++;
    d.size[top] = merge ? d.size[top] * d.size[i] : d.size[i];
    for (int k = 0; k < p->n; k++) d.stride[k][top] = d.stride[k][i];
  }
  if (*d.n > 0) *d.n = top + 1;
}

/* Broadcast dims have stride 0 in the operands that lack them. */
static void add_dim(const lt_cuda_lines_plan *p, dims d, int64_t size, const int *of) {
  for (int k = 0; k < p->n; k++) {
    const lt_view *v = &p->v[k];
    d.stride[k][*d.n] = of[k] < 0 || v->size[of[k]] == 1 ? 0 : v->stride[of[k]];
  }
  d.size[(*d.n)++] = size;
}

static int64_t least_stride(const int64_t *stride, int n) {
  int64_t least = INT64_MAX;
  for (int d = 0; d < n; d++)
    if (llabs(stride[d]) < least) least = llabs(stride[d]);
  return least;
}

/* A view may lack the dims along the lines (a result without the reduced ones): its stride there is
   0. `columns` says that memory runs across the lines: threads side by side then take a line
   each. */
void lt_cuda_lines_make(lt_cuda_lines_plan *p, uint32_t along, lt_cuda_order order, bool sorted,
                        int n, const lt_view *views) {
  memset(p, 0, sizeof *p);
  p->n = n;
  p->count = p->length = 1;
  for (int k = 0; k < n; k++) p->v[k] = views[k];
  dims kept = {&p->n_kept, p->kept, p->kept_stride};
  dims inner = {&p->n_along, p->along, p->along_stride};
  int place = 0; /* in views that lack the dims along the lines */
  for (int d = 0; d < views[0].ndim; d++) {
    bool is_along = along >> d & 1;
    int of[LT_CUDA_LINED];
    for (int k = 0; k < n; k++)
      of[k] = views[k].data == nullptr              ? -1
              : views[k].ndim == views[0].ndim ? d
              : is_along                       ? -1
                                               : place;
    if (!is_along) place++;
    *(is_along ? &p->length : &p->count) *= views[0].size[d];
    if (views[0].size[d] != 1) add_dim(p, is_along ? inner : kept, views[0].size[d], of);
  }
  p->columns = least_stride(p->kept_stride[0], p->n_kept) <
               least_stride(p->along_stride[0], p->n_along);
  if (order == LT_LINES_BY_MEMORY) sort_dims(p, kept);
  if (sorted) sort_dims(p, inner);
  merge_dims(p, kept);
  merge_dims(p, inner);
}

/* Whether 4 neighbours can be moved at once wherever they are. */
static bool has_quads(const lt_cuda_lines_plan *p, int k) {
  const lt_view *v = &p->v[k];
  int64_t item = lt_cuda_item_size(v->dtype);
  if (v->dtype != LT_F32 && v->dtype != LT_F16 && v->dtype != LT_BF16) return false;
  int last = p->n_along - 1;
  if (last < 0 || p->along_stride[k][last] != 1) return false;
  if (last > 0 && p->along[last] % 4 != 0) return false;
  for (int d = 0; d < last; d++)
    if (p->along_stride[k][d] % 4 != 0) return false;
  if (reinterpret_cast<uintptr_t>(v->data) % static_cast<uintptr_t>(4 * item) != 0) return false;
  for (int d = 0; d < p->n_kept; d++)
    if (p->kept_stride[k][d] % 4 != 0) return false;
  return true;
}

/* 64 bits to 32, and divisions to multiplications: what the kernels take as their argument. */
static void narrow(const lt_cuda_lines_plan *p, int64_t first, lt_cuda_lines *x) {
  memset(x, 0, sizeof *x);
  x->count = static_cast<uint32_t>(p->count);
  x->length = static_cast<uint32_t>(p->length);
  x->first = first;
  x->columns = p->columns;
  x->n_kept = p->n_kept;
  x->n_along = p->n_along;
  for (int d = 0; d < p->n_kept; d++)
    x->kept[d] = lt_divide_by(static_cast<uint32_t>(p->kept[p->n_kept - 1 - d]));
  for (int d = 0; d < p->n_along; d++)
    x->along[d] = lt_divide_by(static_cast<uint32_t>(p->along[p->n_along - 1 - d]));
  for (int k = 0; k < p->n; k++) {
    lt_cuda_lined *o = &x->o[k];
    o->data = static_cast<char *>(p->v[k].data);
    o->dtype = p->v[k].dtype;
    o->item = static_cast<int>(lt_cuda_item_size(o->dtype));
    o->quads = has_quads(p, k);
    for (int d = 0; d < p->n_kept; d++) o->kept[d] = p->kept_stride[k][p->n_kept - 1 - d];
    for (int d = 0; d < p->n_along; d++) o->along[d] = p->along_stride[k][p->n_along - 1 - d];
  }
}

static const int64_t MOST = LT_CUDA_LINES_MOST;

/* Counts of at most 2^30 lines a launch: cut along the slowest kept dim. A line is never cut here
   (reduce.cu does). */
bool lt_cuda_lines_pieces(lt_ctx *c, const lt_cuda_lines_plan *p,
                          bool (*each)(void *ud, const lt_cuda_lines *x), void *ud) {
  lt_cuda_lines x;
  if (p->count == 0) return true;
  if (p->length > MOST)
    return lt_cuda_fail(c, LT_EARG, "%s: lines of %lld elements: at most 2^30 on a GPU",
                        lt_cuda_now.op, static_cast<long long>(p->length));
  if (p->count <= MOST) {
    narrow(p, 0, &x);
    return each(ud, &x);
  }
  int64_t inner = p->count / p->kept[0], most = MOST / inner;
  if (most == 0)
    return lt_cuda_fail(c, LT_EARG, "%s: too large for a GPU: %lld lines", lt_cuda_now.op,
                        static_cast<long long>(p->count));
  for (int64_t at = 0; at < p->kept[0]; at += most) {
    lt_cuda_lines_plan part = *p;
    part.kept[0] = p->kept[0] - at < most ? p->kept[0] - at : most;
    part.count = part.kept[0] * inner;
    for (int k = 0; k < p->n; k++)
      part.v[k].data = static_cast<char *>(p->v[k].data) +
                       at * p->kept_stride[k][0] * lt_cuda_item_size(p->v[k].dtype);
    narrow(&part, at * inner, &x);
    if (!each(ud, &x)) return false;
  }
  return true;
}
