/* spec/cuda/races.cpp: kernels with mistakes, for races_spec.lua: `races KIND` runs one under
   ThreadSanitizer. */
#include <stdio.h>
#include <string.h>

#include "cuda/kernel.h"

enum { RIGHT, NO_BARRIER, BY_SHUFFLE, BY_WARP, BLOCKS_WRITE, BLOCK_READS, KINDS };
static const char *const names[] = {"right",   "no_barrier",   "by_shuffle",
                                    "by_warp", "blocks_write", "block_reads"};
enum { THREADS = 64, BLOCKS = 4 };

template <int KIND> static void kernel(int *out) {
  LT_SHARED(int, room, THREADS);
  int t = static_cast<int>(threadIdx.x), own = static_cast<int>(blockIdx.x) * THREADS;
  room[t] = t;
  if (KIND != NO_BARRIER) __syncthreads();
  int v = room[(t + 33) % THREADS];
  if (KIND == BY_SHUFFLE || KIND == BY_WARP) {
    __syncthreads();
    room[t] = v;
    if (KIND == BY_WARP)
      __syncwarp();
    else
      v = __shfl_sync(0xffffffffu, v, 0); /* orders no memory */
    v += room[t / 32 * 32 + (t + 1) % 32];
  }
  out[KIND == BLOCKS_WRITE ? (t + static_cast<int>(blockIdx.x)) % THREADS : own + t] = v;
  if (KIND == BLOCK_READS && t == 0 && blockIdx.x > 0) out[own] = out[own - THREADS + 1];
}

int main(int n, char **arguments) {
  static void (*const kernels[])(int *) = {kernel<RIGHT>,   kernel<NO_BARRIER>,
                                           kernel<BY_SHUFFLE>, kernel<BY_WARP>,
                                           kernel<BLOCKS_WRITE>, kernel<BLOCK_READS>};
  cudaStream_t s;
  void *memory;
  int kind = 0;
  while (kind < KINDS && (n < 2 || strcmp(arguments[1], names[kind]) != 0)) kind++;
  if (kind == KINDS || cudaSetDevice(0) != cudaSuccess ||
      cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0) != cudaSuccess ||
      cudaMalloc(&memory, THREADS * BLOCKS * sizeof(int)) != cudaSuccess)
    return 2;
  for (int k = 0; k < 2; k++) /* a launch is after the one before it */
    lt_cuda_issue(names[kind], kernels[kind], dim3(BLOCKS), dim3(THREADS), 0, s,
                  static_cast<int *>(memory));
  if (cudaStreamSynchronize(s) != cudaSuccess) return 2;
  puts("end");
  return 0;
}
