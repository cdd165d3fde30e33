/* runtime/cuda/tile.h: loads and stores of any dtype in a compute type: float, double, int64_t.

   The dtype is an argument of the kernel, not a template parameter: one kernel for each compute
   type in place of one for each pair of dtypes keeps the binary and its load time small. A branch
   that all threads of a warp take alike costs little beside a load from memory. */
#ifndef LT_CUDA_TILE_H
#define LT_CUDA_TILE_H

#include "cuda/tensor_iterator.h"
#include "ops/math/compute_type.h"
#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "ops/math/half.h"
#include "ops/math/i64.h"

static __device__ inline int64_t lt_to_int(float x) { return lt_int_of_f32(x); }
static __device__ inline int64_t lt_to_int(double x) { return lt_int_of_f64(x); }
static __device__ inline int64_t lt_to_int(int64_t x) { return x; }

/* Element `at` of memory of a dtype. The switch goes the same way in all threads. */
template <class T> static __device__ inline T lt_load(const void *data, int dtype, int32_t at) {
  switch (dtype) {
#define LT_DTYPE(id, category, memory, own, half, ...) \
  case LT_##id: return static_cast<T>(FROM_##half(static_cast<const memory *>(data)[at]));
#include "tensor/dtype.def"
  }
  return T();
}

#define LT_STORE_FLOATING(memory, own, half, v) TO_##half(static_cast<own>(v))
#define LT_STORE_INTEGER(memory, own, half, v) static_cast<memory>(lt_to_int(v))
#define LT_STORE_BOOLEAN(memory, own, half, v) ((v) != 0)
template <class T> static __device__ inline void lt_store(void *data, int dtype, int32_t at, T v) {
  switch (dtype) {
#define LT_DTYPE(id, category, memory, own, half, ...)                                   \
  case LT_##id:                                                                          \
    static_cast<memory *>(data)[at] = LT_STORE_##category(memory, own, half, v);         \
    return;
#include "tensor/dtype.def"
  }
}

/* Halves are handled as their 16 bits: two fit a word, and no arithmetic is done in them. */
static __device__ inline bool lt_is_half(int dtype) { return dtype == LT_F16 || dtype == LT_BF16; }

static __device__ inline float lt_of_half(int dtype, uint32_t bits) {
  return dtype == LT_F16 ? lt_f16_to_f32(static_cast<uint16_t>(bits))
                         : lt_bf16_to_f32(static_cast<uint16_t>(bits));
}
static __device__ inline uint32_t lt_to_half(int dtype, float v) {
  return dtype == LT_F16 ? lt_f32_to_f16(v) : lt_f32_to_bf16(v);
}

/* N numbers of 16 bits, two a word; which of the dtypes is asked once, not for each. */
template <class T, int N>
static __device__ inline void lt_of_halves(int dtype, const uint32_t *w, T *v) {
  if (dtype == LT_F16) {
#pragma unroll
    for (int e = 0; e < N; e++)
      v[e] = static_cast<T>(lt_f16_to_f32(static_cast<uint16_t>(w[e / 2] >> (e % 2 * 16))));
  } else {
#pragma unroll
    for (int e = 0; e < N; e++)
      v[e] = static_cast<T>(lt_bf16_to_f32(static_cast<uint16_t>(w[e / 2] >> (e % 2 * 16))));
  }
}
template <class T, int N>
static __device__ inline void lt_to_halves(int dtype, const T *v, uint32_t *w) {
  if (dtype == LT_F16) {
#pragma unroll
    for (int e = 0; e < N; e += 2)
      w[e / 2] = lt_f32_to_f16(static_cast<float>(v[e])) |
                 static_cast<uint32_t>(lt_f32_to_f16(static_cast<float>(v[e + 1]))) << 16;
  } else {
#pragma unroll
    for (int e = 0; e < N; e += 2)
      w[e / 2] = lt_f32_to_bf16(static_cast<float>(v[e])) |
                 static_cast<uint32_t>(lt_f32_to_bf16(static_cast<float>(v[e + 1]))) << 16;
  }
}

/* Their words from element `at` on, a multiple of N, of memory that is on 16 bytes: one access
   for 8 of them. */
template <int N>
static __device__ inline void lt_load_words(const void *data, int32_t at, uint32_t *w) {
#pragma unroll
  for (int k = 0; k < N; k += 8) {
    if (N == 4) {
      uint2 h = static_cast<const uint2 *>(data)[at / 4];
      w[0] = h.x, w[1] = h.y;
    } else {
      uint4 h = static_cast<const uint4 *>(data)[(at + k) / 8];
      w[k / 2] = h.x, w[k / 2 + 1] = h.y, w[k / 2 + 2] = h.z, w[k / 2 + 3] = h.w;
    }
  }
}

/* N neighbours from element `at` on, of memory that is on 16 bytes, in accesses of 16. float4 and
   uint4: the hardware's widest access is 16 bytes a thread, and four times fewer instructions are
   needed for the same bytes. */
template <class T, int N>
static __device__ inline void lt_load_row(const void *data, int dtype, int32_t at, T *v) {
  if (N >= 4 && dtype == LT_F32) {
#pragma unroll
    for (int k = 0; k < N; k += 4) {
      float4 f = static_cast<const float4 *>(data)[(at + k) / 4];
      v[k] = static_cast<T>(f.x), v[k + 1] = static_cast<T>(f.y);
      v[k + 2] = static_cast<T>(f.z), v[k + 3] = static_cast<T>(f.w);
    }
  } else if (N >= 4 && lt_is_half(dtype)) {
    uint32_t w[(N + 1) / 2];
    lt_load_words<N>(data, at, w);
    lt_of_halves<T, N>(dtype, w, v);
  } else {
    for (int k = 0; k < N; k++) v[k] = lt_load<T>(data, dtype, at + k);
  }
}

template <class T, int N>
static __device__ inline void lt_store_row(void *data, int dtype, int32_t at, const T *v) {
  if (N >= 4 && dtype == LT_F32) {
#pragma unroll
    for (int k = 0; k < N; k += 4)
      static_cast<float4 *>(data)[(at + k) / 4] =
          float4{static_cast<float>(v[k]), static_cast<float>(v[k + 1]),
                 static_cast<float>(v[k + 2]), static_cast<float>(v[k + 3])};
  } else if (N >= 4 && lt_is_half(dtype)) {
    uint32_t w[(N + 1) / 2];
    lt_to_halves<T, N>(dtype, v, w);
#pragma unroll
    for (int k = 0; k < N; k += 8) {
      if (N == 4)
        static_cast<uint2 *>(data)[at / 4] = uint2{w[0], w[1]};
      else
        static_cast<uint4 *>(data)[(at + k) / 8] =
            uint4{w[k / 2], w[k / 2 + 1], w[k / 2 + 2], w[k / 2 + 3]};
    }
  } else {
    for (int k = 0; k < N; k++) lt_store<T>(data, dtype, at + k, v[k]);
  }
}

/* The number of an operand without memory. */
template <class T> static __device__ inline T lt_number(const lt_cuda_operand &o) {
  return static_cast<T>(o.f);
}
template <> __device__ inline int64_t lt_number<int64_t>(const lt_cuda_operand &o) { return o.i; }

/* Which compute type holds values of a dtype: 0 float, 1 double, 2 int64_t. */
enum { LT_CUDA_F32, LT_CUDA_F64, LT_CUDA_I64 };
static inline int lt_cuda_compute(int dtype) {
  lt_dtype own = lt_computed_in(static_cast<lt_dtype>(dtype));
  return own == LT_F64 ? LT_CUDA_F64 : own == LT_F32 ? LT_CUDA_F32 : LT_CUDA_I64;
}

/* The dtype of that. */
static inline lt_dtype lt_cuda_own(int dtype) {
  return lt_computed_in(static_cast<lt_dtype>(dtype));
}

#endif
