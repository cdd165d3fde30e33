/* runtime/cuda/device.cu: opening a device, its memory, copies, launches. */
#include "cuda/device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mutex>

static std::mutex lock;
static pid_t used_by; /* the process that used CUDA first */

bool lt_cuda_open(lt_ctx *c, int index) {
  {
    std::lock_guard<std::mutex> hold(lock);
    if (used_by == 0) used_by = getpid();
  }
  /* CUDA's state does not survive fork: the first call in a child would fail with an error that
     says nothing of it. */
  if (used_by != getpid())
    return lt_cuda_fail(c, LT_EDEVICE,
                        "a GPU was used before this process was forked: leave tensors on the CPU "
                        "before fit, the Trainer moves them");
  /* cudaFree(nullptr) makes the device's context, which otherwise the first call that needs it
     does, in the middle of something else. */
  return lt_cuda_use(c, index) && lt_cuda_ok(c, cudaFree(nullptr), "CUDA");
}

/* Without a ctx nothing can fail with words: what asks for memory says how much it was. */
static bool set_device(int index) {
  bool ok = lt_cuda_has(index) && lt_cuda_make_current(index) == cudaSuccess;
  cudaGetLastError();
  return ok;
}

/* For the pool (device/pool.c), which asks rarely: cudaMalloc synchronises the device. NULL makes
   the pool give its caches back and ask again. */
void *lt_cuda_alloc(int index, size_t bytes) {
  void *p = nullptr;
  if (!set_device(index)) return nullptr;
  if (cudaMalloc(&p, bytes > 0 ? bytes : 1) != cudaSuccess) p = nullptr;
  cudaGetLastError();
  return p;
}

void lt_cuda_free(int index, void *memory, size_t bytes) {
  (void)bytes;
  if (set_device(index)) cudaFree(memory);
  cudaGetLastError();
}

bool lt_cuda_memory_info(int index, int64_t *free_bytes, int64_t *total) {
  size_t left, all;
  if (!set_device(index) || cudaMemGetInfo(&left, &all) != cudaSuccess) return false;
  *free_bytes = static_cast<int64_t>(left);
  *total = static_cast<int64_t>(all);
  return true;
}

/* ---- copies ---- */

/* The devices whose memory the kernels and copies of one reach, as bits. */
static uint32_t reached[LT_CUDA_MOST];

static void reach(int index, int peer) {
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, index, peer) == cudaSuccess && can != 0 && set_device(index))
    cudaDeviceEnablePeerAccess(peer, 0);
  cudaGetLastError();
}

/* Copies between two devices of this process go straight over their link, where the driver can do
   that; else by way of the host's memory. Not before the first one: from then on each device maps
   what the other allocates. */
static void connect(int index, int peer) {
  std::lock_guard<std::mutex> hold(lock);
  if ((reached[index] >> peer & 1) != 0) return;
  reached[index] |= uint32_t{1} << peer;
  reached[peer] |= uint32_t{1} << index;
  reach(peer, index);
  reach(index, peer);
}

/* Memory that ltrain has not pinned goes through staging.cu's buffers. Pageable memory, so that the
   order of copies on the stream is ours: the runtime would copy in the middle of the call, in
   pieces and on its own terms. Memory that others have pinned, since they may write to it, or free
   it, as soon as this returns. */
bool lt_cuda_copy(lt_ctx *c, lt_stream *stream, lt_copy way, int index, void *dst, int from,
                  const void *src, size_t bytes, lt_dtype dtype) {
  (void)dtype;
  static const cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                         cudaMemcpyDeviceToDevice};
  if (way == LT_PEER && !lt_cuda_has(from))
    return lt_cuda_fail(c, LT_EDEVICE, "no such device: cuda:%d", from);
  if (way == LT_PEER && lt_cuda_has(index)) connect(index, from);
  if (!lt_cuda_use(c, index)) return false;
  if (way == LT_TO_DEVICE && !lt_cuda_host_has(src))
    return lt_cuda_stage_in(c, stream, dst, src, bytes);
  if (way == LT_TO_HOST && !lt_cuda_host_has(dst))
    return lt_cuda_stage_out(c, stream, dst, src, bytes);
  cudaStream_t native = static_cast<cudaStream_t>(lt_cuda_stream_native(stream));
  cudaError_t e = way == LT_PEER ? cudaMemcpyPeerAsync(dst, index, src, from, bytes, native)
                                 : cudaMemcpyAsync(dst, src, bytes, kinds[way], native);
  if (!lt_cuda_ok(c, e, "copy")) return false;
  lt_cuda_stream_issued(stream);
  return true;
}

#ifndef __CUDACC__
/* Which bytes the next launch reads and writes, for the fake runtime's look for races. */
static void touch(lt_ctx *c, cudaStream_t stream, lt_tensor *t, bool writes, const char *what) {
  lt_view v;
  int64_t low = 0, high = 0;
  if (t == nullptr || !lt_cuda_host->view(c, t, &v) || lt_cuda_numel(&v) == 0) return;
  for (int d = 0; d < v.ndim; d++) {
    int64_t reach = v.stride[d] * (v.size[d] - 1);
    (reach < 0 ? low : high) += reach;
  }
  LT_TOUCH(stream, static_cast<char *>(v.data) + low * lt_cuda_item_size(v.dtype),
           static_cast<size_t>((high - low + 1) * lt_cuda_item_size(v.dtype)), writes, what);
}
#endif

/* TF32 and bf16, where the script allows them: GPUs have them from compute capability 8.0 on. */
static lt_matmul_precision precision_of(lt_ctx *c, int index) {
  int major = 0;
  lt_matmul_precision allowed = lt_cuda_host->matmul_precision(c);
  if (allowed == LT_MATMUL_HIGHEST) return allowed;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess)
    cudaGetLastError();
  return major >= 8 ? allowed : LT_MATMUL_HIGHEST;
}

/* The state of the thread's launch (ctx, stream, op) is a variable of the thread, which kernels'
   host functions read; it is put back, since a kernel may run another op inside. */
bool lt_cuda_launch(lt_ctx *c, int index, lt_stream *stream, lt_kernel kernel,
                    const lt_call *call) {
  if (!lt_cuda_use(c, index)) return false;
  cudaStream_t native = static_cast<cudaStream_t>(lt_cuda_stream_native(stream));
  lt_cuda_launch_state before = lt_cuda_now;
  lt_cuda_now = {c, index, native, lt_cuda_host->op_name(call->op), precision_of(c, index)};
#ifndef __CUDACC__
  for (int k = 0; k < call->n_in; k++)
    touch(c, native, call->in[k], lt_cuda_host->writes(call, k), lt_cuda_now.op);
  /* `empty` launches nothing: its write would be one that no event comes after. */
  bool writes = strcmp(lt_cuda_now.op, "empty") != 0;
  for (int k = 0; k < call->n_out && writes; k++)
    touch(c, native, call->out[k], true, lt_cuda_now.op);
#endif
  lt_cuda_now.captured_by = lt_cuda_stream_captured(stream);
  if (lt_cuda_now.captured_by != nullptr) lt_cuda_graph_count(lt_cuda_now.captured_by);
  bool ok = kernel(c, call);
  lt_cuda_stream_issued(stream);
  lt_cuda_now = before;
  return ok;
}
