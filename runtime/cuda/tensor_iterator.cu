/* runtime/cuda/tensor_iterator.cu: normalizes the dims of strided operands for kernels: sorted by
   stride, merged where contiguous.

   The same rules as cpu/tile.c, but offsets are kept in 32 bits: 64-bit multiplications are several
   instructions on a GPU, and registers are what limits how many threads run. Larger tensors are
   walked in pieces. */
#include "cuda/tensor_iterator.h"

#include <stdlib.h>
#include <string.h>

#include <utility>

static void swap_dims(lt_cuda_walk *w, int a, int b) {
  std::swap(w->size[a], w->size[b]);
  for (int k = 0; k < w->n; k++) std::swap(w->v[k].stride[a], w->v[k].stride[b]);
}

/* Operand 0's largest stride first: its memory is walked in order. */
static void sort_dims(lt_cuda_walk *w) {
  for (int i = 1; i < w->ndim; i++)
    for (int j = i; j > 0 && llabs(w->v[0].stride[j - 1]) < llabs(w->v[0].stride[j]); j--)
      swap_dims(w, j - 1, j);
}

/* Absent operands (numbers) allow any merge. */
static bool merges(const lt_cuda_walk *w, int outer, int inner) {
  for (int k = 0; k < w->n; k++)
    if (w->v[k].data != nullptr && w->v[k].stride[outer] != w->v[k].stride[inner] * w->size[inner])
      return false;
  return true;
}

static void merge_dims(lt_cuda_walk *w) {
  int top = 0;
  for (int i = 1; i < w->ndim; i++) {
    bool merge = merges(w, top, i);
    if (!merge) top++;
    w->size[top] = merge ? w->size[top] * w->size[i] : w->size[i];
    for (int k = 0; k < w->n; k++) w->v[k].stride[top] = w->v[k].stride[i];
  }
  w->ndim = top + 1;
}

/* Dims of size 1 are dropped; broadcast ones have stride 0. Without dims there is one of size 1, so
   that kernels need no case for it. */
void lt_cuda_walk_make(lt_cuda_walk *w, const lt_view *over, int n, const lt_view *views) {
  w->n = n;
  w->ndim = 0;
  for (int k = 0; k < n; k++) {
    w->v[k] = views[k];
    memset(w->v[k].stride, 0, sizeof w->v[k].stride);
    w->number[k].kind = LT_NO_SCALAR;
  }
  for (int d = 0; d < over->ndim; d++) {
    if (over->size[d] == 1) continue;
    w->size[w->ndim] = over->size[d];
    for (int k = 0; k < n; k++) {
      int own = d - (over->ndim - views[k].ndim);
      bool has = views[k].data != nullptr && own >= 0 && views[k].size[own] != 1;
      w->v[k].stride[w->ndim] = has ? views[k].stride[own] : 0;
    }
    w->ndim++;
  }
  if (w->ndim == 0) {
    w->ndim = 1;
    w->size[0] = 1;
    for (int k = 0; k < n; k++) w->v[k].stride[0] = 1;
  }
  sort_dims(w);
  merge_dims(w);
}

static const int64_t MOST = INT32_MAX;

/* Whether 32 bits are enough: elements, and how far each operand reaches. */
static bool fits(const lt_cuda_walk *w) {
  int64_t numel = 1;
  for (int d = 0; d < w->ndim; d++) numel *= w->size[d];
  if (numel > MOST) return false;
  for (int k = 0; k < w->n; k++) {
    int64_t reach = 0;
    for (int d = 0; d < w->ndim; d++) reach += llabs(w->v[k].stride[d]) * (w->size[d] - 1);
    if (w->v[k].data != nullptr && reach > MOST) return false;
  }
  return true;
}

/* Sizes become dividers (a multiplication and a shift: H. Warren, Hacker's Delight, chapter 10),
   the fastest dim first, as a thread finds its place by dividing its number. */
static void narrow(const lt_cuda_walk *w, lt_cuda_iter *it) {
  memset(it, 0, sizeof *it);
  it->numel = 1;
  it->ndim = w->ndim;
  it->linear = w->ndim == 1;
  for (int d = 0; d < w->ndim; d++) {
    int from = w->ndim - 1 - d;
    it->size[d] = lt_divide_by(static_cast<uint32_t>(w->size[from]));
    it->numel *= static_cast<uint32_t>(w->size[from]);
    for (int k = 0; k < w->n; k++)
      it->o[k].stride[d] = static_cast<int32_t>(w->v[k].stride[from]);
  }
  for (int k = 0; k < w->n; k++) {
    lt_cuda_operand *o = &it->o[k];
    o->data = static_cast<char *>(w->v[k].data);
    o->dtype = w->v[k].dtype;
    o->f = w->number[k].f;
    o->i = w->number[k].i;
    if (o->data != nullptr && o->stride[0] != 1 && it->numel > 1) it->linear = false;
  }
}

/* Halves the slowest dim until both halves fit: few launches, each of them long. */
bool lt_cuda_pieces(const lt_cuda_walk *w, bool (*each)(void *ud, const lt_cuda_iter *it),
                    void *ud) {
  int64_t numel = 1;
  for (int d = 0; d < w->ndim; d++) numel *= w->size[d];
  if (numel == 0) return true;
  if (fits(w)) {
    lt_cuda_iter it;
    narrow(w, &it);
    return each(ud, &it);
  }
  int d = 0; /* the slowest dim that can be cut */
  while (w->size[d] == 1) d++;
  lt_cuda_walk half = *w;
  half.size[d] = w->size[d] / 2;
  if (!lt_cuda_pieces(&half, each, ud)) return false;
  for (int k = 0; k < w->n; k++)
    if (w->v[k].data != nullptr)
      half.v[k].data = static_cast<char *>(w->v[k].data) +
                       half.size[d] * w->v[k].stride[d] * lt_cuda_item_size(w->v[k].dtype);
  half.size[d] = w->size[d] - half.size[d];
  return lt_cuda_pieces(&half, each, ud);
}
