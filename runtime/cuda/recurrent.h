/* runtime/cuda/recurrent.h: what the kernels of recurrent layers, forward and backward, share.

   A step is a product by lt_cuda_gemm and a grid that runs the cells, a thread a unit; with a
   projection one of each more. All of it is in the compute type; products of x in x's own. */
#ifndef LT_CUDA_RECURRENT_H
#define LT_CUDA_RECURRENT_H

#include "cuda/elementwise_functions.h"
#include "cuda/gemm.h"
#include "cuda/index.h"
#include "ops/recurrent.h"

typedef struct lt_cuda_recurrent {
  lt_recurrent r;
  int wide; /* the dtype that it is computed in */
  bool reverse, relu;
  const int64_t *lengths; /* nullptr: all steps of all */
  void *w_hh, *w_hr;
  void *acts, *cells, *hidden; /* what is saved, or nullptr */
  void *y;                     /* [T, N, P] */
  int64_t at, before, after;   /* this step, the one before in time and the one after; -1: none */
} lt_cuda_recurrent;

template <class T> static __device__ inline T *lt_offset(void *data, int64_t at) {
  return data == nullptr ? nullptr : static_cast<T *>(data) + at;
}

static __device__ inline bool lt_is_active(const lt_cuda_recurrent &j, int64_t n) {
  return j.lengths == nullptr || j.at < j.lengths[n];
}

/* Step number k of all, in the order of the direction. */
static inline void lt_cuda_recurrent_at(lt_cuda_recurrent *j, int64_t k) {
  int64_t t = j->r.t;
  j->at = j->reverse ? t - 1 - k : k;
  j->before = k == 0 ? -1 : j->reverse ? j->at + 1 : j->at - 1;
  j->after = k == t - 1 ? -1 : j->reverse ? j->at - 1 : j->at + 1;
}

/* Values of an input, row-major in the compute type; nullptr where it is absent. */
static inline bool lt_cuda_recurrent_values(lt_ctx *c, const lt_call *call, int k, int dtype,
                                            void **out) {
  lt_view v;
  lt_tensor *t = k < call->n_in ? call->in[k] : nullptr;
  *out = nullptr;
  if (t == nullptr) return true;
  if (!lt_cuda_view(c, t, &v) || !lt_cuda_row_major(c, &v, dtype, &v)) return false;
  *out = v.data;
  return true;
}

/* Memory of [rows, cols] with the values of an input, or zeros. */
static inline bool lt_cuda_recurrent_copy(lt_ctx *c, const lt_call *call, int k, int dtype,
                                          int64_t rows, int64_t cols, void **out) {
  lt_view from, to = {};
  lt_tensor *t = k < call->n_in ? call->in[k] : nullptr;
  to.ndim = 2, to.dtype = static_cast<lt_dtype>(dtype);
  to.size[0] = rows, to.size[1] = cols;
  if (!lt_cuda_row_major_new(c, &to, dtype, &to)) return false;
  *out = to.data;
  if (t == nullptr) return lt_cuda_fill_view(c, &to, lt_cuda_number(0));
  return lt_cuda_view(c, t, &from) && lt_cuda_move(c, &to, &from);
}

/* to [m, n] = (to, if it adds) + a [m, k] times b, which lies [k, n] or transposed. */
static inline bool lt_cuda_recurrent_product(lt_ctx *c, const lt_cuda_recurrent *j, const void *a,
                                             const void *b, bool transposed, int64_t m, int64_t n,
                                             int64_t k, bool adds, void *to) {
  lt_cuda_product p = {};
  p.m = m, p.n = n, p.k = k;
  p.a = lt_cuda_matrix_of(a, j->wide, k, false);
  p.b = lt_cuda_matrix_of(b, j->wide, transposed ? k : n, transposed);
  p.d = lt_cuda_matrix_of(to, j->wide, n, false);
  p.alpha = 1, p.beta = adds ? 1 : 0;
  return lt_cuda_gemm(c, &p);
}

/* Element `at` of memory of the compute type. */
static inline void *lt_cuda_recurrent_part(const lt_cuda_recurrent *j, void *data, int64_t at) {
  return data == nullptr ? nullptr
                         : static_cast<char *>(data) + at * lt_cuda_item_size(j->wide);
}

#endif
