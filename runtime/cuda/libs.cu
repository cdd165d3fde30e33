/* runtime/cuda/libs.cu: finds and opens NVIDIA's libraries (libs.h). */
#include "cuda/libs.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mutex>

enum { PATH = 1024, OLDEST_CUBLASLT = 12 };

/* A library: `names` in the order of preference, the last one NULL. */
typedef struct library {
  const char *called, *package, *const *names;
  void *handle;
  bool tried;
  char why[LT_CUDA_WHY];
} library;

static void *open_in(const library *l, const char *folder) {
  char path[PATH];
  for (int k = 0; l->names[k] != nullptr; k++) {
    snprintf(path, sizeof path, "%s%s%s", folder, *folder != '\0' ? "/" : "", l->names[k]);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
  }
  return nullptr;
}

/* The folder that a variable names, and a folder in it. */
static void *open_below(const library *l, const char *variable, const char *folder) {
  char path[PATH];
  const char *home = getenv(variable);
  if (home == nullptr || *home == '\0') return nullptr;
  snprintf(path, sizeof path, "%s%s", home, folder);
  return open_in(l, path);
}

#ifndef LT_CUDA_LIBS /* a folder where specs find all libraries */
static void *open_matching(const library *l, const char *pattern) {
  glob_t found;
  void *handle = nullptr;
  if (glob(pattern, 0, nullptr, &found) != 0) return nullptr;
  for (size_t k = 0; k < found.gl_pathc && handle == nullptr; k++)
    handle = open_in(l, found.gl_pathv[k]);
  globfree(&found);
  return handle;
}

/* The packages of PyPI, in the environment that is active, else in the system's Python. */
static void *open_of_python(const library *l) {
  static const char *const system[] = {"/usr/local/lib/python3*/dist-packages/nvidia/*/lib",
                                       "/usr/local/lib/python3*/site-packages/nvidia/*/lib",
                                       "/usr/lib/python3*/site-packages/nvidia/*/lib"};
  static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
  char pattern[PATH];
  void *handle = nullptr;
  for (int k = 0; k < 2 && handle == nullptr; k++) {
    const char *home = getenv(variables[k]);
    if (home == nullptr) continue;
    snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/nvidia/*/lib", home);
    handle = open_matching(l, pattern);
  }
  for (int k = 0; k < 3 && handle == nullptr; k++) handle = open_matching(l, system[k]);
  return handle;
}

static void *open_anywhere(const library *l) {
  void *handle = open_below(l, "LTRAIN_CUDA_LIBS", "");
  if (handle == nullptr) handle = open_in(l, "");
  if (handle == nullptr) handle = open_below(l, "CUDA_HOME", "/lib64");
  if (handle == nullptr) handle = open_in(l, "/usr/local/cuda/lib64");
  return handle != nullptr ? handle : open_of_python(l);
}
#else
static void *open_anywhere(const library *l) {
  bool named = getenv("LTRAIN_CUDA_LIBS") != nullptr;
  return named ? open_below(l, "LTRAIN_CUDA_LIBS", "") : open_in(l, LT_CUDA_LIBS);
}
#endif

static bool open_library(library *l) {
  l->handle = open_anywhere(l);
  if (l->handle == nullptr)
    snprintf(l->why, sizeof l->why,
             "%s not found (%s): install the CUDA Toolkit or the Python package %s, or let "
             "LTRAIN_CUDA_LIBS name its folder",
             l->called, l->names[0], l->package);
  return l->handle != nullptr;
}

/* The function of that name; a library that lacks it is too old. */
static void *find(library *l, const char *name) {
  void *f = l->handle != nullptr ? dlsym(l->handle, name) : nullptr;
  if (f == nullptr && l->why[0] == '\0')
    snprintf(l->why, sizeof l->why, "%s is too old: it has no %s", l->called, name);
  return f;
}

static lt_cuda_libs libs;
static std::mutex lock;

static const char *const cublaslt_names[] = {"libcublasLt.so.13", "libcublasLt.so.12", nullptr};
static library cublaslt = {"cuBLASLt", "nvidia-cublas", cublaslt_names, nullptr, false, ""};

/* Under the lock. */
static void open_cublaslt(void) {
  if (!open_library(&cublaslt)) return;
#define LT_LIB(lib, name) LT_LIB_##lib(name)
#define LT_LIB_cublasLt(name) \
  libs.name = reinterpret_cast<decltype(libs.name)>(find(&cublaslt, #name));
#define LT_LIB_cudnn(name)
#include "cuda/libs.def"
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
  cublaslt.tried = true;
  if (cublaslt.why[0] == '\0') return &libs;
  if (why != nullptr) memcpy(why, cublaslt.why, LT_CUDA_WHY);
  return nullptr;
}

static const char *const cudnn_names[] = {"libcudnn.so.9", nullptr};
static library cudnn = {"cuDNN", "nvidia-cudnn-cu13", cudnn_names, nullptr, false, ""};

bool lt_cuda_cudnn(void **functions, char *why) {
  std::lock_guard<std::mutex> hold(lock);
  if (!cudnn.tried) open_library(&cudnn);
  cudnn.tried = true;
#define LT_LIB(lib, name) LT_LIB_##lib(name)
#define LT_LIB_cublasLt(name)
#define LT_LIB_cudnn(name) *functions++ = find(&cudnn, #name);
#include "cuda/libs.def"
  memcpy(why, cudnn.why, LT_CUDA_WHY);
  return cudnn.why[0] == '\0';
}
