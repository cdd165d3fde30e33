/* runtime/cuda/radix.h: sorting on the device, by digits. */
#ifndef LT_CUDA_RADIX_H
#define LT_CUDA_RADIX_H

#include "cuda/cuda.h"

/* Lines of n keys in rising order, one line after the other, and where in its line each stood.
   Equal keys keep their order. */
template <class K> struct lt_cuda_sorted {
  K *key;
  uint32_t *index;
};

/* Sorts by the lowest `bits` of the keys (the others must be 0), of which no value is kept. n is
   below 2^31. In memory of this launch: two pieces of scratch. */
bool lt_cuda_sort(lt_ctx *c, uint32_t *keys, int64_t lines, int64_t n, int bits,
                  lt_cuda_sorted<uint32_t> *out);
bool lt_cuda_sort(lt_ctx *c, uint64_t *keys, int64_t lines, int64_t n, int bits,
                  lt_cuda_sorted<uint64_t> *out);

/* Bits of numbers up to `most`. */
static inline int lt_cuda_bits(uint64_t most) {
  int bits = 1;
  while (bits < 64 && most >> bits != 0) bits++;
  return bits;
}

/* The sum of v over the threads of a block of 256 before this one; *all: over all of them. Every
   thread comes; `scratch`: 8 numbers in shared memory. */
static __device__ inline uint32_t lt_block_before(uint32_t v, uint32_t *scratch, uint32_t *all) {
  uint32_t lane = threadIdx.x % 32, sum = v, before = 0, total = 0;
  for (uint32_t d = 1; d < 32; d *= 2) {
    uint32_t left = __shfl_up_sync(0xffffffffu, sum, d);
    if (lane >= d) sum += left;
  }
  if (lane == 31) scratch[threadIdx.x / 32] = sum;
  __syncthreads();
#pragma unroll
  for (uint32_t w = 0; w < 8; w++) {
    if (w < threadIdx.x / 32) before += scratch[w];
    total += scratch[w];
  }
  __syncthreads(); /* scratch may be used again */
  *all = total;
  return before + sum - v;
}

#endif
