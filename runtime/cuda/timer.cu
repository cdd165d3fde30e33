/* runtime/cuda/timer.cu: for scripts that measure: timed events, and names for a profiler's
   timeline (NVTX: nothing but a test of a pointer where no tool is attached). */
#include "cuda/device.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else /* a toolkit without NVTX: no ranges */
static void nvtxRangePushA(const char *) {}
static void nvtxRangePop(void) {}
static void nvtxMarkA(const char *) {}
#endif

/* Events with times (cudaEventDefault), unlike those of stream.cu: made once for each timer. */
bool lt_cuda_timer_record(lt_ctx *c, lt_stream *stream, void **timer) {
  if (!lt_cuda_use(c, lt_cuda_stream_index(stream))) return false;
  cudaEvent_t event = static_cast<cudaEvent_t>(*timer);
  if (event == nullptr &&
      !lt_cuda_ok(c, cudaEventCreateWithFlags(&event, cudaEventDefault), "new event"))
    return false;
  *timer = event;
  cudaStream_t native = static_cast<cudaStream_t>(lt_cuda_stream_native(stream));
  return lt_cuda_ok(c, cudaEventRecord(event, native), "event");
}

/* Never waits: LT_PENDING until both events have passed. Resolution is about half a microsecond. */
lt_progress lt_cuda_timer_elapsed(void *from, void *to, double *milliseconds) {
  float ms = 0;
  cudaError_t e =
      cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(from), static_cast<cudaEvent_t>(to));
  *milliseconds = static_cast<double>(ms);
  if (e == cudaSuccess) return LT_DONE;
  cudaGetLastError();
  return e == cudaErrorNotReady ? LT_PENDING : LT_BROKEN;
}

void lt_cuda_timer_free(void *timer) {
  cudaEventDestroy(static_cast<cudaEvent_t>(timer));
  cudaGetLastError();
}

void lt_cuda_range_push(const char *name) { nvtxRangePushA(name); }
void lt_cuda_range_pop(void) { nvtxRangePop(); }
void lt_cuda_mark(const char *name) { nvtxMarkA(name); }
