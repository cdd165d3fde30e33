/* runtime/cuda/index.h: what the kernels share that choose elements by index. */
#ifndef LT_CUDA_INDEX_H
#define LT_CUDA_INDEX_H

#include "cuda/elementwise.h"

enum { LT_CUDA_THREADS = 256 };

static inline unsigned lt_cuda_blocks(int64_t n) {
  return static_cast<unsigned>((n + LT_CUDA_THREADS - 1) / LT_CUDA_THREADS);
}

/* The number of this thread in its grid of LT_CUDA_THREADS a block. */
static __device__ inline uint32_t lt_thread(void) {
  return blockIdx.x * LT_CUDA_THREADS + threadIdx.x;
}

/* Product of the sizes of dims from..to-1. */
static inline int64_t lt_cuda_sizes_product(const lt_view *v, int64_t from, int64_t to) {
  int64_t n = 1;
  for (int64_t d = from; d < to; d++) n *= v->size[d];
  return n;
}

/* A view without dims as one of size 1. */
static inline void lt_cuda_give_dims(lt_view *v) {
  if (v->ndim > 0) return;
  v->ndim = 1;
  v->size[0] = v->stride[0] = 1;
}

/* View of a call's tensor, with at least one dim. */
static inline bool lt_cuda_view_dims(lt_ctx *c, lt_tensor *t, lt_view *out) {
  bool ok = lt_cuda_view(c, t, out);
  lt_cuda_give_dims(out);
  return ok;
}

static inline bool lt_cuda_is_row_major(const lt_view *v) {
  int64_t stride = 1;
  for (int d = v->ndim - 1; d >= 0; d--) {
    if (v->size[d] != 1 && v->stride[d] != stride) return false;
    stride *= v->size[d];
  }
  return true;
}

/* index.cu: a view of the shape of `like`, row-major, in memory of this launch. */
bool lt_cuda_row_major_new(lt_ctx *c, const lt_view *like, int dtype, lt_view *out);
/* `v` itself if it lies row-major in this dtype, else a copy that does. */
bool lt_cuda_row_major(lt_ctx *c, const lt_view *v, int dtype, lt_view *out);
/* The same for a result, which is moved to where it belongs after it was written. */
bool lt_cuda_result(lt_ctx *c, const lt_view *v, int dtype, lt_view *out);
static inline bool lt_cuda_deliver(lt_ctx *c, const lt_view *v, const lt_view *written) {
  return v->data == written->data || lt_cuda_move(c, v, written);
}

/* Where element n of the iteration is in operands 0..N-1: as lt_cuda_place, divided once. */
template <int N>
static __device__ inline void lt_places(const lt_cuda_iter &it, uint32_t n, int32_t *at) {
  uint32_t sum[N] = {};
  for (int d = 0; d < it.ndim; d++) {
    uint32_t q = lt_quotient(n, it.size[d]), r = n - q * it.size[d].d;
#pragma unroll
    for (int k = 0; k < N; k++) sum[k] += r * static_cast<uint32_t>(it.o[k].stride[d]);
    n = q;
  }
#pragma unroll
  for (int k = 0; k < N; k++) at[k] = static_cast<int32_t>(sum[k]);
}

/* An operand of the dims of `over` whose value is a coordinate. It has no memory: its strides
   count, and its address, which moves when the walk is cut, counts what is before. */
static const uintptr_t LT_COORDINATE_0 = 1ull << 40; /* its address */

static inline lt_view lt_coordinates(const lt_view *over) {
  lt_view v = *over;
  v.data = reinterpret_cast<void *>(LT_COORDINATE_0);
  v.dtype = LT_U8;
  for (int d = 0; d < v.ndim; d++) v.stride[d] = 0;
  return v;
}

static __device__ inline int64_t lt_coordinate(const lt_cuda_operand &o, int32_t at) {
  return at + static_cast<int64_t>(reinterpret_cast<uintptr_t>(o.data) - LT_COORDINATE_0);
}

/* The value of an index, which must be in 0..n-1; -1: it was refused. */
static __device__ inline int64_t lt_index_at(const void *index, int dtype, int32_t at, int64_t n,
                                             const lt_cuda_blame &blame) {
  int64_t k = lt_load<int64_t>(index, dtype, at);
  if (static_cast<uint64_t>(k) < static_cast<uint64_t>(n)) return k;
  lt_cuda_refuse(blame, k, n);
  return -1;
}

/* The bits of an element of `item` bytes. */
static __device__ inline uint64_t lt_load_bits(const char *data, int64_t at, int item) {
  switch (item) {
    case 8: return reinterpret_cast<const uint64_t *>(data)[at];
    case 4: return reinterpret_cast<const uint32_t *>(data)[at];
    case 2: return reinterpret_cast<const uint16_t *>(data)[at];
    default: return reinterpret_cast<const uint8_t *>(data)[at];
  }
}

static __device__ inline void lt_store_bits(char *data, int64_t at, int item, uint64_t bits) {
  switch (item) {
    case 8: reinterpret_cast<uint64_t *>(data)[at] = bits; break;
    case 4: reinterpret_cast<uint32_t *>(data)[at] = static_cast<uint32_t>(bits); break;
    case 2: reinterpret_cast<uint16_t *>(data)[at] = static_cast<uint16_t>(bits); break;
    default: reinterpret_cast<uint8_t *>(data)[at] = static_cast<uint8_t>(bits);
  }
}

#endif
