/* runtime/cuda/cublas_cudnn.cu: opens cuBLASLt and cuDNN (cublas_cudnn.h).

   Opened once, on first use, and never closed: their handles and kernels stay in use until the
   process ends. Each function of cublas_cudnn.def is a pointer; a library with a function missing
   counts as absent, and ltrain's own kernels are used. */
#include "cuda/cublas_cudnn.h"

#include <stdio.h>
#include <string.h>

#include <mutex>

enum { OLDEST_CUBLASLT = 12 };

static lt_cuda_libs libs;
static std::mutex lock;

static const char *const cublaslt_names[] = {"libcublasLt.so.13", "libcublasLt.so.12", nullptr};
static lt_cuda_library cublaslt = {"cuBLASLt", "nvidia-cublas", cublaslt_names, nullptr, false, ""};

/* Under the lock. */
static void open_cublaslt(void) {
  if (!lt_cuda_library_open(&cublaslt)) return;
#define LT_LIB(lib, name) LT_LIB_##lib(name)
#define LT_LIB_cublasLt(name) \
  libs.name = reinterpret_cast<decltype(libs.name)>(lt_cuda_library_find(&cublaslt, #name));
#define LT_LIB_cudnn(name)
#include "cuda/cublas_cudnn.def"
#undef LT_LIB_cublasLt
#undef LT_LIB_cudnn
  if (cublaslt.why[0] != '\0') return;
  size_t version = libs.cublasLtGetVersion() / 10000;
  if (version < OLDEST_CUBLASLT)
    snprintf(cublaslt.why, sizeof cublaslt.why, "cuBLASLt %zu is too old: %d or later is needed",
             version, OLDEST_CUBLASLT);
}

const lt_cuda_libs *lt_cuda_cublaslt(char *why) {
  std::lock_guard<std::mutex> hold(lock);
  if (!cublaslt.tried) open_cublaslt();
  if (cublaslt.why[0] == '\0') return &libs;
  if (why != nullptr) memcpy(why, cublaslt.why, LT_CUDA_WHY);
  return nullptr;
}

static const char *const cudnn_names[] = {"libcudnn.so.9", nullptr};
static lt_cuda_library cudnn = {"cuDNN", "nvidia-cudnn-cu13", cudnn_names, nullptr, false, ""};

bool lt_cuda_cudnn(void **functions, char *why) {
  std::lock_guard<std::mutex> hold(lock);
  lt_cuda_library_open(&cudnn);
#define LT_LIB(lib, name) LT_LIB_##lib(name)
#define LT_LIB_cublasLt(name)
#define LT_LIB_cudnn(name) *functions++ = lt_cuda_library_find(&cudnn, #name);
#include "cuda/cublas_cudnn.def"
  memcpy(why, cudnn.why, LT_CUDA_WHY);
  return cudnn.why[0] == '\0';
}
