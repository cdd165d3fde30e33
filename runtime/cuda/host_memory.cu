/* runtime/cuda/host_memory.cu: pinned memory of the host. */
#include "cuda/device.h"

void *lt_cuda_host_alloc(size_t bytes) {
  void *p = nullptr;
  if (cudaHostAlloc(&p, bytes > 0 ? bytes : 1, cudaHostAllocPortable) != cudaSuccess) p = nullptr;
  cudaGetLastError();
  return p;
}

void lt_cuda_host_free(void *memory, size_t bytes) {
  (void)bytes;
  cudaFreeHost(memory);
  cudaGetLastError();
}
