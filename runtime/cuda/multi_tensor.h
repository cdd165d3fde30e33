/* runtime/cuda/multi_tensor.h: multi-tensor kernels: one launch works on a list of up to 160
   tensors, as PyTorch's multi_tensor_apply.

   Addresses travel as an argument of the kernel: a table in memory would have to be copied first.
   Each tensor is cut into chunks, a block works on one, and finds whose it is by halving. */
#ifndef LT_CUDA_MULTI_TENSOR_H
#define LT_CUDA_MULTI_TENSOR_H

#include "cuda/elementwise.h"

/* LT_LIST_BYTES: arguments of a kernel may have 4096 bytes, all together. A chunk gives each of the
   threads 8 elements, two accesses of 16 bytes of f32. */
enum { LT_LIST_THREADS = 256, LT_LIST_CHUNK = 2048, LT_LIST_BYTES = 3840, LT_LIST_GROUPS = 5 };

/* One tensor of each of G groups, of one shape, whose elements lie in the same order. */
template <int G> struct lt_list_row {
  char *data[G];
  int64_t n;
  uint32_t first; /* chunk: those of a launch are numbered from 0 */
  uint16_t dtype; /* of parameters and gradients; states are f64 or f32 */
  bool aligned;   /* all of them to 16 bytes */
};

template <int G> struct lt_list {
  enum { MOST = LT_LIST_BYTES / sizeof(lt_list_row<G>) };
  lt_list_row<G> row[MOST];
  int n;
  uint32_t chunks;
};

/* The row that a block works on. Rows are sorted by their first chunk: bisection, at most 8 steps
   for 160 rows, the same in all threads of a block. */
template <int G> static __device__ inline int lt_list_find(const lt_list<G> &l) {
  int low = 0, high = l.n - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (l.row[middle].first <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* Up to 4 neighbours from element `at` on, as T: float holds f16 and bf16, double f64. */
static __device__ inline float lt_list_one(const char *p, int dtype, int64_t at, float) {
  if (dtype == LT_F32) return reinterpret_cast<const float *>(p)[at];
  return lt_of_half(dtype, reinterpret_cast<const uint16_t *>(p)[at]);
}
static __device__ inline double lt_list_one(const char *p, int, int64_t at, double) {
  return reinterpret_cast<const double *>(p)[at];
}
static __device__ inline void lt_list_set(char *p, int dtype, int64_t at, float v) {
  if (dtype == LT_F32)
    reinterpret_cast<float *>(p)[at] = v;
  else
    reinterpret_cast<uint16_t *>(p)[at] = static_cast<uint16_t>(lt_to_half(dtype, v));
}
static __device__ inline void lt_list_set(char *p, int, int64_t at, double v) {
  reinterpret_cast<double *>(p)[at] = v;
}

static __device__ inline void lt_list_four(const char *p, int dtype, int64_t at, float *v) {
  if (dtype == LT_F32) {
    float4 f = reinterpret_cast<const float4 *>(p)[at / 4];
    v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
  } else {
    uint2 h = reinterpret_cast<const uint2 *>(p)[at / 4];
    v[0] = lt_of_half(dtype, h.x & 0xffffu), v[1] = lt_of_half(dtype, h.x >> 16);
    v[2] = lt_of_half(dtype, h.y & 0xffffu), v[3] = lt_of_half(dtype, h.y >> 16);
  }
}
static __device__ inline void lt_list_four(const char *p, int, int64_t at, double *v) {
  double2 a = reinterpret_cast<const double2 *>(p)[at / 2];
  double2 b = reinterpret_cast<const double2 *>(p)[at / 2 + 1];
  v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
}
static __device__ inline void lt_list_set_four(char *p, int dtype, int64_t at, const float *v) {
  if (dtype == LT_F32)
    reinterpret_cast<float4 *>(p)[at / 4] = float4{v[0], v[1], v[2], v[3]};
  else
    reinterpret_cast<uint2 *>(p)[at / 4] =
        uint2{lt_to_half(dtype, v[0]) | lt_to_half(dtype, v[1]) << 16,
              lt_to_half(dtype, v[2]) | lt_to_half(dtype, v[3]) << 16};
}
static __device__ inline void lt_list_set_four(char *p, int, int64_t at, const double *v) {
  reinterpret_cast<double2 *>(p)[at / 2] = double2{v[0], v[1]};
  reinterpret_cast<double2 *>(p)[at / 2 + 1] = double2{v[2], v[3]};
}

/* What is beyond the end of the tensor is 0. */
template <class T>
static __device__ inline void lt_list_load(const char *p, int dtype, int64_t at, int count,
                                           bool aligned, T *v) {
  if (aligned && count == 4) {
    lt_list_four(p, dtype, at, v);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; k++) v[k] = k < count ? lt_list_one(p, dtype, at + k, T()) : T();
}

template <class T>
static __device__ inline void lt_list_store(char *p, int dtype, int64_t at, int count, bool aligned,
                                            const T *v) {
  if (aligned && count == 4) {
    lt_list_set_four(p, dtype, at, v);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (k < count) lt_list_set(p, dtype, at + k, v[k]);
}

/* A call's tensors, group after group. Those that do not lie in the order of the first of their row
   are worked on in row-major copies. */
typedef struct lt_list_job {
  lt_ctx *c;
  const lt_call *call;
  lt_tensor *const *in;
  int n, groups;      /* tensors in a group */
  bool (*writes)(int group);
  char *copies;
} lt_list_job;

typedef enum lt_list_way { LT_LIST_SIZE, LT_LIST_IN, LT_LIST_OUT } lt_list_way;

/* Views of row k, in copies where they must be; `at`: bytes of copies so far. */
bool lt_list_views(const lt_list_job *j, int k, lt_list_way way, int64_t *at, lt_view *v);
/* Makes the copies; afterwards writes back those that are results. */
bool lt_list_begin(lt_list_job *j);
bool lt_list_end(lt_list_job *j);

/* Calls `run` (false: it failed) with tables of all rows whose compute type is T. A launch for each
   table that is full; rows of other types come in a call of their own. */
template <class T, int G, class F> static bool lt_list_each(lt_list_job *j, F run) {
  lt_list<G> l;
  int64_t copied = 0;
  l.n = 0, l.chunks = 0;
  for (int k = 0; k < j->n; k++) {
    lt_view v[G];
    if (!lt_list_views(j, k, LT_LIST_SIZE, &copied, v)) return false;
    int64_t n = lt_cuda_numel(&v[0]);
    if (n == 0 || (lt_cuda_compute(v[0].dtype) == LT_CUDA_F64) != (sizeof(T) == 8)) continue;
    lt_list_row<G> *r = &l.row[l.n++];
    r->n = n, r->first = l.chunks, r->dtype = static_cast<uint16_t>(v[0].dtype), r->aligned = true;
    for (int g = 0; g < G; g++) {
      r->data[g] = static_cast<char *>(v[g].data);
      if (reinterpret_cast<uintptr_t>(v[g].data) % 16 != 0) r->aligned = false;
    }
    l.chunks += static_cast<uint32_t>((n + LT_LIST_CHUNK - 1) / LT_LIST_CHUNK);
    if (l.n < lt_list<G>::MOST) continue;
    if (!run(l)) return false;
    l.n = 0, l.chunks = 0;
  }
  return l.n == 0 || run(l);
}

#endif
