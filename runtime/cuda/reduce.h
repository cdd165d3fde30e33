/* runtime/cuda/reduce.h: one value of many threads: of a warp, of a block, of a team.

   Values are joined in a tree whose order depends on the number of threads alone: the same bits in
   each run. All threads get the result. Blocks have one dim and a multiple of 32 threads, all of
   which must come; `scratch` is shared memory of LT_CUDA_SCRATCH values, free again on return. */
#ifndef LT_CUDA_REDUCE_H
#define LT_CUDA_REDUCE_H

#include "cuda/kernel.h"

enum { LT_CUDA_SCRATCH = 32 }; /* warps of the largest block */

struct lt_plus {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
/* NaN is passed over, unless all are. */
struct lt_larger {
  template <class T> __device__ T operator()(T a, T b) const { return b > a || a != a ? b : a; }
};
struct lt_smaller {
  template <class T> __device__ T operator()(T a, T b) const { return b < a || a != a ? b : a; }
};
/* NaN wins and stays. */
struct lt_larger_or_nan {
  template <class T> __device__ T operator()(T a, T b) const { return b > a || b != b ? b : a; }
};
struct lt_smaller_or_nan {
  template <class T> __device__ T operator()(T a, T b) const { return b < a || b != b ? b : a; }
};

/* Of `lanes` neighbouring threads: a power of 2, at most 32. A butterfly: all lanes have the result
   after it, and each pair is joined on both sides alike. */
template <class T, class F> static __device__ inline T lt_lanes_all(T v, int lanes, F join) {
  for (int d = lanes / 2; d > 0; d /= 2) v = join(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

template <class T, class F> static __device__ inline T lt_warp_all(T v, F join) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v = join(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

/* `none` is what changes nothing. */
template <class T, class F>
static __device__ inline T lt_block_all(T v, T none, F join, T *scratch) {
  int warps = static_cast<int>(blockDim.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  v = lt_warp_all(v, join);
  if (warps == 1) return v;
  if (lane == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = lt_warp_all(lane < warps ? scratch[lane] : none, join);
  __syncthreads();
  return v;
}

/* Of a team: `lanes` neighbouring threads of a warp, or the block when there are more than 32. */
template <class T, class F>
static __device__ inline T lt_team_all(T v, T none, int lanes, F join, T *scratch) {
  return lanes <= 32 ? lt_lanes_all(v, lanes, join) : lt_block_all(v, none, join, scratch);
}

template <class T> static __device__ inline T lt_warp_sum(T v) { return lt_warp_all(v, lt_plus()); }
template <class T> static __device__ inline T lt_block_sum(T v, T *scratch) {
  return lt_block_all(v, T(0), lt_plus(), scratch);
}
template <class T> static __device__ inline T lt_team_sum(T v, int lanes, T *scratch) {
  return lt_team_all(v, T(0), lanes, lt_plus(), scratch);
}

/* Of the threads of a block that are `lanes`, a power of 2, apart: they share a column. `scratch`
   has a value for each thread. */
template <class T, class F>
static __device__ inline T lt_column_all(T v, uint32_t lanes, F join, T *scratch) {
  scratch[threadIdx.x] = v;
  for (uint32_t d = blockDim.x / lanes / 2; d > 0; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d * lanes)
      scratch[threadIdx.x] = join(scratch[threadIdx.x], scratch[threadIdx.x + d * lanes]);
  }
  __syncthreads();
  v = scratch[threadIdx.x % lanes];
  __syncthreads();
  return v;
}

/* How many threads work on a row of `length` elements together: a power of 2 up to 32, or 256,
   a block; each takes neighbours in fours. Long rows, and few of some length, get a block. */
static inline int lt_cuda_team(int64_t count, int64_t length) {
  int lanes = 1;
  if (length > 1024 || (length > 512 && count < 1024)) return 256;
  while (lanes < 32 && lanes * 4 < length) lanes *= 2;
  return lanes;
}

#endif
