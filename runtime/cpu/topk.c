/* runtime/cpu/topk.c: the k largest or smallest of each line, in order.

   A heap of the k best so far, worst on top; then it is emptied from the back. Equal elements come
   in the order of their positions; NaN counts as larger than every number. Where k is all of a long
   line, cpu/radix.c sorts it.

   D. Knuth, The Art of Computer Programming, volume 3, section 5.2.3 (heapsort): n log k
   comparisons, and mostly one an element, as few of a long line get into the heap. */
#include "cpu/index.h"
#include "cpu/radix.h"

typedef struct job {
  const void *x; /* [lines, n] */
  void *value;   /* [lines, k] */
  int64_t *index;
  int64_t n, k, lines, per_chunk;
  bool largest;
  lt_dtype dtype;
} job;

#define TOPK(T)                                                                                \
  /* Whether element (a, i) comes before (b, j). */                                            \
  static inline bool before_##T(bool largest, T a, int64_t i, T b, int64_t j) {                \
    bool a_nan = a != a, b_nan = b != b;                                                       \
    if (a_nan || b_nan) return a_nan && b_nan ? i < j : largest ? a_nan : b_nan;               \
    if (a == b) return i < j;                                                                  \
    return largest ? a > b : a < b;                                                            \
  }                                                                                            \
  /* Put (v, i) into the heap of n elements from the top: worse children rise. */              \
  static void sift_##T(bool largest, T *value, int64_t *index, int64_t n, T v, int64_t i) {    \
    int64_t at = 0;                                                                            \
    for (int64_t child = 1; child < n; child = 2 * at + 1) {                                   \
      if (child + 1 < n &&                                                                     \
          before_##T(largest, value[child], index[child], value[child + 1], index[child + 1])) \
        child++;                                                                               \
      if (!before_##T(largest, v, i, value[child], index[child])) break;                       \
      value[at] = value[child], index[at] = index[child];                                      \
      at = child;                                                                              \
    }                                                                                          \
    value[at] = v, index[at] = i;                                                              \
  }                                                                                            \
  static void line_##T(const job *j, int64_t line) {                                           \
    const T *x = (const T *)j->x + line * j->n;                                                \
    T *value = (T *)j->value + line * j->k;                                                    \
    int64_t *index = j->index + line * j->k;                                                   \
    for (int64_t e = 0; e < j->k; e++) { /* sift up */                                         \
      int64_t at = e;                                                                          \
      while (at > 0 &&                                                                         \
             before_##T(j->largest, value[(at - 1) / 2], index[(at - 1) / 2], x[e], e)) {      \
        value[at] = value[(at - 1) / 2], index[at] = index[(at - 1) / 2];                      \
        at = (at - 1) / 2;                                                                     \
      }                                                                                        \
      value[at] = x[e], index[at] = e;                                                         \
    }                                                                                          \
    for (int64_t e = j->k; e < j->n && j->k > 0; e++)                                          \
      if (before_##T(j->largest, x[e], e, value[0], index[0]))                                 \
        sift_##T(j->largest, value, index, j->k, x[e], e);                                     \
    for (int64_t e = j->k - 1; e > 0; e--) {                                                   \
      T v = value[e];                                                                          \
      int64_t i = index[e];                                                                    \
      value[e] = value[0], index[e] = index[0];                                                \
      sift_##T(j->largest, value, index, e, v, i);                                             \
    }                                                                                          \
  }
TOPK(float)
TOPK(double)
TOPK(int64_t)
#undef TOPK

/* The heap is in the result's memory itself: no scratch. */
static void chunk(void *ud, int64_t number) {
  const job *j = ud;
  int64_t from = number * j->per_chunk, to = from + j->per_chunk;
  for (int64_t line = from; line < to && line < j->lines; line++) {
    if (j->dtype == LT_F32) line_float(j, line);
    if (j->dtype == LT_F64) line_double(j, line);
    if (j->dtype == LT_I64) line_int64_t(j, line);
  }
}

/* All of each line; false without memory. */
static bool sort_whole(lt_ctx *c, const job *j) {
  const lt_radix r = {.x = j->x, .value = j->value, .index = j->index, .lines = j->lines,
                      .n = j->n, .descending = j->largest, .dtype = j->dtype};
  void *scratch = lt_cpu_scratch(c, LT_I64, (int64_t)(lt_radix_scratch(c, &r) / sizeof(int64_t)));
  if (scratch != NULL) lt_radix_sort(c, &r, scratch);
  return scratch != NULL;
}

/* A view of `t` with `dim` as its last one; lives on the stack. */
static lt_tensor dim_last(const lt_tensor *t, int64_t dim) {
  lt_tensor v = *t;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS];
  int n = 0;
  for (int k = 0; k < t->ndim; k++)
    if (k != dim) size[n] = t->size[k], stride[n++] = t->stride[k];
  if (t->ndim > 0) size[n] = t->size[dim], stride[n] = t->stride[dim];
  lt_tensor_set_shape(&v, t->ndim, size, stride);
  return v;
}

/* With the dim last and contiguous each line is an array; other layouts are copied, which is linear
   and small beside n log k. */
LT_KERNEL(topk) {
  const lt_args_topk *a = call->args;
  static const lt_dtype of[] = {LT_F32, LT_F64, LT_I64};
  lt_tensor x = dim_last(call->in[0], a->dim), value = dim_last(call->out[0], a->dim);
  lt_tensor index = dim_last(call->out[1], a->dim);
  if (value.numel == 0) return true;
  lt_frame frame = lt_frame_open(c);
  lt_dtype dtype = of[lt_compute_of((lt_dtype)x.dtype)];
  lt_tensor *from = lt_cpu_contiguous(c, &x, dtype);
  lt_tensor *best = lt_cpu_result(c, &value, dtype, NULL);
  lt_tensor *place = lt_cpu_result(c, &index, LT_I64, NULL);
  if (lt_ok(c)) {
    job j = {.x = lt_data(from), .value = lt_data(best), .index = lt_data(place), .k = a->k,
             .n = x.ndim > 0 ? x.size[x.ndim - 1] : 1, .largest = a->largest, .dtype = dtype};
    j.lines = value.numel / j.k;
    j.per_chunk = LT_CHUNK / j.n > 0 ? LT_CHUNK / j.n : 1;
    if (j.k == j.n && j.n >= LT_RADIX_LEAST && j.n <= UINT32_MAX)
      sort_whole(c, &j);
    else
      lt_parallel(c, (j.lines + j.per_chunk - 1) / j.per_chunk, chunk, &j);
    if (lt_ok(c) && best != &value) lt_cpu_move(c, &value, best);
    if (lt_ok(c) && place != &index) lt_cpu_move(c, &index, place);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}
