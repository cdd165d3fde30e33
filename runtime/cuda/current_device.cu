/* runtime/cuda/current_device.cu: the current CUDA device of the calling thread (cudaSetDevice). */
#include "cuda/device.h"

thread_local lt_cuda_launch_state lt_cuda_now;

/* The device that we made this thread's; a host, or a library beside us, may have made another its
   own since. */
static thread_local int current = -1;

static bool is_current(int index) {
  int now = -1;
  if (current != index) return false;
  if (cudaGetDevice(&now) != cudaSuccess) cudaGetLastError();
  return now == index;
}

cudaError_t lt_cuda_make_current(int index) {
  if (is_current(index)) return cudaSuccess;
  cudaError_t e = cudaSetDevice(index);
  current = e == cudaSuccess ? index : -1;
  return e;
}

cudaError_t lt_cuda_enter(int index, int *before) {
  *before = current;
  return lt_cuda_make_current(index);
}

void lt_cuda_leave(int before) {
  if (before >= 0 && lt_cuda_make_current(before) != cudaSuccess) cudaGetLastError();
}

bool lt_cuda_use(lt_ctx *c, int index) {
  if (index >= 0 && is_current(index)) return true;
  if (!lt_cuda_has(index)) return lt_cuda_fail(c, LT_EDEVICE, "no such device: cuda:%d", index);
  return lt_cuda_ok(c, lt_cuda_make_current(index), "cudaSetDevice");
}
