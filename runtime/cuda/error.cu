/* runtime/cuda/error.cu: CUDA's error codes as failures, and the error words by which kernels
   report invalid values.

   Some errors are faults: CUDA answers every later call of the process on that device with the
   same. They come long after the kernel that made them, so ltrain adds what was issued last. The
   first is reported in full, the others point to it. */
#include <stdio.h>
#include <string.h>

#include <mutex>

#include "cuda/device.h"

static std::mutex of_faults, of_words;
static cudaError_t faults[LT_CUDA_MOST];

/* Errors that later headers have. */
enum { CONTAINED = 226, TENSOR_MEMORY_LEAK = 721, MPS_CLIENT_TERMINATED = 810 };

/* Of the GPU itself, not of a kernel. */
static bool is_loss(cudaError_t e) {
  switch (static_cast<int>(e)) {
    case CONTAINED:
    case MPS_CLIENT_TERMINATED:
    case cudaErrorExternalDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorSystemNotReady:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

/* Sticky errors: the context of the device is gone, and the process cannot make another. */
static bool is_fault(cudaError_t e) {
  switch (static_cast<int>(e)) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case TENSOR_MEMORY_LEAK:
    case cudaErrorLaunchFailure: return true;
    default: return is_loss(e);
  }
}

/* Makes it the device's fault; the one that came before, if any. */
static cudaError_t note_fault(int index, cudaError_t e) {
  std::lock_guard<std::mutex> hold(of_faults);
  cudaError_t before = faults[index];
  if (before == cudaSuccess) faults[index] = e;
  return before;
}

/* The host adds the last launches (device/host.c): the fault comes from one of them, but the call
   that reports it is some later one. LTRAIN_CUDA_SYNC waits after each and names the right one. */
static bool fail_fault(lt_ctx *c, int index, cudaError_t e) {
  char text[512], name[128] = "";
  cudaError_t before = note_fault(index, e);
  const char *why = cudaGetErrorString(e), *symbol = cudaGetErrorName(e);
  if (before != cudaSuccess)
    return lt_cuda_fail(c, LT_EDEVICE,
                        "cuda:%d cannot be used any more in this process: %s (%s) came before",
                        index, cudaGetErrorString(before), cudaGetErrorName(before));
  if (!is_loss(e)) {
    snprintf(text, sizeof text,
             "cuda:%d cannot be used any more in this process: %s (%s)", index, why, symbol);
    return lt_cuda_host->fault(c, index, text);
  }
  lt_cuda_describe(index, name, sizeof name);
  snprintf(text, sizeof text,
           "cuda:%d%s%s%s is lost: %s (%s); nvidia-smi and the kernel's log (dmesg, Xid) say more",
           index, name[0] != '\0' ? " (" : "", name, name[0] != '\0' ? ")" : "", why, symbol);
  return lt_cuda_host->fault(c, index, text);
}

/* The kernels were compiled for other GPUs, and the driver does not translate them for this one. */
static bool is_foreign(cudaError_t e) {
  switch (static_cast<int>(e)) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled: return true;
    default: return false;
  }
}

static bool fail_foreign(lt_ctx *c, int index, cudaError_t e) {
  char name[128] = "";
  int major = 0, minor = 0;
  lt_cuda_describe(index, name, sizeof name);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
  if (e == cudaErrorNoKernelImageForDevice)
    return lt_cuda_fail(c, LT_EDEVICE,
                        "cuda:%d (%s) has compute capability %d.%d, for which this ltrain was not "
                        "compiled: build it with -DLT_CUDA_ARCHS=%d%d, if nvcc still supports it",
                        index, name, major, minor, major, minor);
  return lt_cuda_fail(c, LT_EDEVICE,
                      "cuda:%d (%s) has compute capability %d.%d, for which the driver would have "
                      "to translate the kernels of this ltrain, of CUDA %d.%d, and cannot: %s "
                      "(%s): build it with -DLT_CUDA_ARCHS=%d%d, or install a driver of that "
                      "version", index, name, major, minor, CUDART_VERSION / 1000,
                      CUDART_VERSION % 1000 / 10, cudaGetErrorString(e), cudaGetErrorName(e),
                      major, minor);
}

/* In order of what helps most: kernels that this GPU cannot run, a fault, lack of memory, all else
   with CUDA's own text. */
bool lt_cuda_ok(lt_ctx *c, cudaError_t e, const char *what) {
  int index = 0;
  if (e == cudaSuccess) return true;
  cudaGetLastError(); /* one that is not a fault is forgotten */
  if (is_foreign(e) && cudaGetDevice(&index) == cudaSuccess) return fail_foreign(c, index, e);
  if (is_fault(e) && cudaGetDevice(&index) == cudaSuccess && index < LT_CUDA_MOST)
    return fail_fault(c, index, e);
  return lt_cuda_fail(c, e == cudaErrorMemoryAllocation ? LT_EMEMORY : LT_EDEVICE, "%s: %s (%s)",
                      what, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* A library reports a fault of an earlier kernel as a failure of its own: the stream is asked
   first. */
bool lt_cuda_fail_library(lt_ctx *c, const char *library, const char *text) {
  cudaError_t e = cudaStreamQuery(lt_cuda_now.stream);
  if (is_fault(e)) return lt_cuda_ok(c, e, library);
  cudaGetLastError();
  return lt_cuda_fail(c, LT_EDEVICE, "%s: %s", library, text);
}

/* The error words: pinned, written by kernels, read after a host wait. One a device for each root:
   a root's lines mean nothing to others. They stay when it ends, for one at the same address. */
typedef struct word {
  word *next;
  const void *root;
  int index;
  lt_cuda_word *memory;
} word;
static word *words;

static word *find_word(const void *root, int index) {
  word *w = words;
  while (w != nullptr && (w->root != root || w->index != index)) w = w->next;
  return w;
}

/* Mapped and portable: kernels write it over the bus, whichever device they are on, and the host
   reads it without a copy. */
static lt_cuda_word *word_of(lt_ctx *c, int index) {
  const void *root = lt_cuda_host->root(c);
  std::lock_guard<std::mutex> hold(of_words);
  word *w = find_word(root, index);
  if (w != nullptr) return w->memory;
  void *p = nullptr;
  unsigned how = cudaHostAllocPortable | cudaHostAllocMapped;
  if (!lt_cuda_ok(c, cudaHostAlloc(&p, sizeof(lt_cuda_word), how), "pinned memory")) return nullptr;
  memset(p, 0, sizeof(lt_cuda_word));
  words = new word{words, root, index, static_cast<lt_cuda_word *>(p)};
  return words->memory;
}

/* What a kernel needs to report a wrong value: the word, the op and the line of the script. */
bool lt_cuda_blame_of(lt_ctx *c, const lt_call *call, lt_cuda_blame *out) {
  out->word = word_of(c, lt_cuda_now.index);
  out->op = call->op;
  out->line = lt_cuda_host->line(c);
  return out->word != nullptr;
}

/* The kernel that found the word free fills it and publishes it with `state`; one error at a time,
   the first. */
bool lt_cuda_take_error(lt_ctx *c, int index, lt_device_error *out) {
  std::lock_guard<std::mutex> hold(of_words);
  const word *of = find_word(lt_cuda_host->root(c), index);
  if (of == nullptr) return false;
  lt_cuda_word *w = of->memory;
  if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) != LT_CUDA_WRITTEN) return false;
  *out = w->error;
  __atomic_store_n(&w->state, static_cast<int>(LT_CUDA_FREE), __ATOMIC_RELEASE);
  return true;
}
