/* runtime/cuda/lines.h: tensors of one shape as lines of elements, for what works along dims.

   Dims are either kept (which line) or lie along the line. Kernels index both with 32 bits and find
   places by strides of 64, so that nothing is copied to be contiguous: the host cuts what has 2^31
   lines, and refuses lines of 2^31 elements unless the caller cuts them. */
#ifndef LT_CUDA_LINES_H
#define LT_CUDA_LINES_H

#include "cuda/tile.h"

enum { LT_CUDA_LINED = 4, LT_CUDA_LINES_MOST = 1 << 30 };

typedef struct lt_cuda_lined {
  char *data;
  int dtype, item; /* bytes of an element */
  bool quads;      /* elements 4 i..4 i + 3 of a line are neighbours, aligned, of 16 or 32 bits */
  int64_t kept[LT_MAX_DIMS], along[LT_MAX_DIMS]; /* strides in elements, from the fastest dim on */
} lt_cuda_lined;

typedef struct lt_cuda_lines {
  uint32_t count, length;
  int n_kept, n_along;
  lt_divider kept[LT_MAX_DIMS], along[LT_MAX_DIMS]; /* sizes */
  bool columns; /* operand 0 lies so that neighbouring lines are closer than a line's elements */
  int64_t first; /* of these lines, among all of them */
  lt_cuda_lined o[LT_CUDA_LINED];
} lt_cuda_lines;

/* The same on the host, from the slowest dim on; before it is cut. */
typedef struct lt_cuda_lines_plan {
  int n, n_kept, n_along;
  int64_t count, length;
  int64_t kept[LT_MAX_DIMS], along[LT_MAX_DIMS];
  lt_view v[LT_CUDA_LINED];
  int64_t kept_stride[LT_CUDA_LINED][LT_MAX_DIMS], along_stride[LT_CUDA_LINED][LT_MAX_DIMS];
  bool columns;
} lt_cuda_lines_plan;

/* Dims of views[0] for which `along` has a bit lie along the lines. The other views have its dims,
   or lack those that lie along: then their lines are one element; one without data has none. Kept
   dims are sorted as views[0] lies, unless in order; those along the lines only if `sorted`, for
   sums. */
typedef enum lt_cuda_order { LT_LINES_BY_MEMORY, LT_LINES_IN_ORDER } lt_cuda_order;
void lt_cuda_lines_make(lt_cuda_lines_plan *p, uint32_t along, lt_cuda_order order, bool sorted,
                        int n, const lt_view *views);

/* Calls `each` for pieces of at most 2^30 lines until one returns false. False with a failure for
   lines that are too long, or too many along all dims but one. */
bool lt_cuda_lines_pieces(lt_ctx *c, const lt_cuda_lines_plan *p,
                          bool (*each)(void *ud, const lt_cuda_lines *x), void *ud);

/* Neighbours in shared memory, which move at once. */
template <class T> struct alignas(16) lt_quad {
  T v[4];
};

/* Where a line of operand k starts. */
static __device__ inline char *lt_line(const lt_cuda_lines &x, int k, uint32_t line) {
  int64_t at = 0;
  for (int d = 0; d < x.n_kept; d++) {
    uint32_t q = d + 1 < x.n_kept ? lt_quotient(line, x.kept[d]) : 0;
    at += static_cast<int64_t>(line - q * x.kept[d].d) * x.o[k].kept[d];
    line = q;
  }
  return x.o[k].data + at * x.o[k].item;
}

/* Where element `i` of the line that starts at `line` is. */
static __device__ inline char *lt_line_at(const lt_cuda_lines &x, int k, char *line, uint32_t i) {
  int64_t at = 0;
  for (int d = 0; d < x.n_along; d++) {
    uint32_t q = d + 1 < x.n_along ? lt_quotient(i, x.along[d]) : 0;
    at += static_cast<int64_t>(i - q * x.along[d].d) * x.o[k].along[d];
    i = q;
  }
  return line + at * x.o[k].item;
}

template <class T>
static __device__ inline T lt_line_load(const lt_cuda_lines &x, int k, char *line, uint32_t i) {
  return lt_load<T>(lt_line_at(x, k, line, i), x.o[k].dtype, 0);
}
template <class T>
static __device__ inline void lt_line_store(const lt_cuda_lines &x, int k, char *line, uint32_t i,
                                            T v) {
  lt_store<T>(lt_line_at(x, k, line, i), x.o[k].dtype, 0, v);
}

/* Elements i..i+3, i a multiple of 4; those from `end` on are `none`. */
template <class T>
static __device__ inline void lt_line_load4(const lt_cuda_lines &x, int k, char *line, uint32_t i,
                                            uint32_t end, T none, T *v) {
  if (x.o[k].quads && i + 4 <= end) {
    lt_load_row<T, 4>(lt_line_at(x, k, line, i), x.o[k].dtype, 0, v);
    return;
  }
#pragma unroll
  for (uint32_t e = 0; e < 4; e++)
    v[e] = i + e < end ? lt_line_load<T>(x, k, line, i + e) : none;
}
template <class T>
static __device__ inline void lt_line_store4(const lt_cuda_lines &x, int k, char *line, uint32_t i,
                                             uint32_t end, const T *v) {
  if (x.o[k].quads && i + 4 <= end) {
    lt_store_row<T, 4>(lt_line_at(x, k, line, i), x.o[k].dtype, 0, v);
    return;
  }
#pragma unroll
  for (uint32_t e = 0; e < 4; e++)
    if (i + e < end) lt_line_store<T>(x, k, line, i + e, v[e]);
}

/* Several loads of a line are issued before the first value is used: what limits kernels that read
   lines is how many bytes are under way. */

/* Quads that a thread has under way. */
template <class T> constexpr int lt_quads = sizeof(T) == 8 ? 1 : 4;

/* Where elements i, i + step, .. of a line are, N of them. */
template <int N>
static __device__ inline void lt_line_places(const lt_cuda_lines &x, int k, char *line, uint32_t i,
                                             uint32_t step, const char **at) {
  const lt_cuda_lined &o = x.o[k];
  if (x.n_along == 1) {
    const char *first = line + i * o.along[0] * o.item;
    int64_t by = step * o.along[0] * o.item;
#pragma unroll
    for (int a = 0; a < N; a++) at[a] = first + a * by;
    return;
  }
#pragma unroll
  for (int a = 0; a < N; a++) at[a] = lt_line_at(x, k, line, i + a * step);
}

/* The quads from elements i, i + step, .. on, lt_quads<T> of them; as lt_line_load4. */
template <class T>
static __device__ inline void lt_line_load_quads(const lt_cuda_lines &x, int k, char *line,
                                                 uint32_t i, uint32_t step, uint32_t end, T none,
                                                 lt_quad<T> *q) {
  const int n = lt_quads<T>;
  const lt_cuda_lined &o = x.o[k];
  if (n > 1 && o.quads && i + (n - 1) * step + 4 <= end &&
      (o.dtype == LT_F32 || lt_is_half(o.dtype))) {
    const char *at[n];
    lt_line_places<n>(x, k, line, i, step, at);
    if (o.dtype == LT_F32) {
      float4 f[n];
#pragma unroll
      for (int a = 0; a < n; a++) f[a] = *reinterpret_cast<const float4 *>(at[a]);
#pragma unroll
      for (int a = 0; a < n; a++)
        q[a] = {{static_cast<T>(f[a].x), static_cast<T>(f[a].y), static_cast<T>(f[a].z),
                 static_cast<T>(f[a].w)}};
    } else {
      uint32_t w[n][2];
#pragma unroll
      for (int a = 0; a < n; a++) lt_load_words<4>(at[a], 0, w[a]);
#pragma unroll
      for (int a = 0; a < n; a++) lt_of_halves<T, 4>(o.dtype, w[a], q[a].v);
    }
    return;
  }
#pragma unroll 1
  for (int a = 0; a < n; a++) { /* the code for any strides and dtypes is there once */
    lt_quad<T> one;
    lt_line_load4<T>(x, k, line, i + a * step, end, none, one.v);
#pragma unroll
    for (int b = 0; b < n; b++)
      if (b == a) q[b] = one;
  }
}

template <class M, int N>
static __device__ inline void lt_load_apart(const char *at, int64_t by, M *v) {
#pragma unroll
  for (int e = 0; e < N; e++) v[e] = *reinterpret_cast<const M *>(at + e * by);
}

/* Elements i, i + step, .., N of them; those from `end` on are `none`. */
template <class T, int N>
static __device__ inline void lt_line_load_apart(const lt_cuda_lines &x, int k, char *line,
                                                 uint32_t i, uint32_t step, uint32_t end, T none,
                                                 T *v) {
  const lt_cuda_lined &o = x.o[k];
  if (x.n_along == 1 && i + (N - 1) * step < end && (o.dtype == LT_F32 || lt_is_half(o.dtype))) {
    const char *at = line + i * o.along[0] * o.item;
    int64_t by = step * o.along[0] * o.item;
    if (o.dtype == LT_F32) {
      float f[N];
      lt_load_apart<float, N>(at, by, f);
#pragma unroll
      for (int e = 0; e < N; e++) v[e] = static_cast<T>(f[e]);
    } else {
      uint16_t h[N];
      lt_load_apart<uint16_t, N>(at, by, h);
#pragma unroll
      for (int e = 0; e < N; e++) v[e] = static_cast<T>(lt_of_half(o.dtype, h[e]));
    }
    return;
  }
#pragma unroll 1
  for (int e = 0; e < N; e++) {
    T one = i + e * step < end ? lt_line_load<T>(x, k, line, i + e * step) : none;
#pragma unroll
    for (int b = 0; b < N; b++)
      if (b == e) v[b] = one;
  }
}

#endif
