/* runtime/cuda/conv_cudnn.cu: convolutions of f32, f16 and bf16 by cuDNN.

   A plan (descriptors and the algorithm) is made once for a geometry: the first algorithm of
   cuDNN's heuristic that repeats its bits and is content with the workspace; nothing is timed. A
   device keeps SETS x WAYS plans; of a full set the oldest goes. What cuDNN cannot do is left to
   products of matrices. Sums are in f32; f32 is multiplied as such, or in TF32 where
   lt_cuda_now.precision allows it. */
#include <cudnn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mutex>

#include "cuda/conv.h"
#include "cuda/cublas_cudnn.h"
#include "cuda/device.h"
#include "cuda/elementwise.h"

enum { SETS = 64, WAYS = 8, ALIGNED = 16, ASKED = 16 };
static const size_t WORKSPACE = 256 << 20;

typedef struct functions {
#define LT_LIB(library, name) LT_LIB_##library(name)
#define LT_LIB_cublasLt(name)
#define LT_LIB_cudnn(name) decltype(::name) *name;
#include "cuda/cublas_cudnn.def"
#undef LT_LIB_cublasLt
#undef LT_LIB_cudnn
} functions;

/* Compared by bytes: no padding. */
typedef struct key {
  int32_t pass, dtype, tf32, groups, n, c, h, w, o, kh, kw, oh, ow;
  int32_t stride[2], padding[2], dilation[2];
} key;

typedef struct plan {
  key k;
  bool made, fits; /* fits: cuDNN has an algorithm */
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t weight;
  cudnnConvolutionDescriptor_t conv;
  int algo;
  size_t workspace;
} plan;

/* The lock is held while a convolution is issued: the handle has the stream. Geometries repeat from
   step to step: the search in a set of WAYS plans is a comparison of 76 bytes each. */
typedef struct cache {
  std::mutex lock;
  cudnnHandle_t handle;
  plan *sets[SETS];
  uint8_t oldest[SETS];
} cache;
static cache caches[LT_CUDA_MOST];

static functions api;
static std::once_flag opened;
static bool there;

/* Without the library convolutions are slower: reported once. */
static bool open_library(lt_ctx *c) {
  std::call_once(opened, [c] {
    char why[LT_CUDA_WHY], text[LT_CUDA_WHY + 64];
    void *found[sizeof(functions) / sizeof(void *)];
    there = lt_cuda_cudnn(found, why);
    memcpy(&api, found, sizeof api);
    if (there) return;
    snprintf(text, sizeof text, "convolutions on GPUs are slower: %s", why);
    lt_cuda_host->log(c, text);
  });
  return there;
}

static bool ok(lt_ctx *c, cudnnStatus_t s) {
  return s == CUDNN_STATUS_SUCCESS ||
         lt_cuda_fail_library(c, "cuDNN", api.cudnnGetErrorString(s));
}

/* cuDNN's legacy interface counts with 32 bits; f64 goes to products of matrices. */
static bool fits(const lt_cuda_conv *v) {
  return v->weight.dtype != LT_F64 && v->n * v->c * v->h * v->w <= INT32_MAX &&
         v->n * v->o * v->oh * v->ow <= INT32_MAX && lt_cuda_numel(&v->weight) <= INT32_MAX;
}

/* Everything that a plan depends on; the addresses and the stream are not part of it. */
static key key_of(const lt_cuda_conv *v, lt_cuda_conv_pass pass) {
  key k = {};
  bool tf32 = v->weight.dtype == LT_F32 && lt_cuda_now.precision != LT_MATMUL_HIGHEST;
  const int64_t from[] = {pass,  v->weight.dtype, tf32,  v->groups, v->n,  v->c,  v->h,
                          v->w,  v->o,            v->kh, v->kw,     v->oh, v->ow,
                          v->stride.h,   v->stride.w,   v->padding.h, v->padding.w,
                          v->dilation.h, v->dilation.w};
  int32_t to[sizeof k / sizeof(int32_t)];
  static_assert(sizeof from / sizeof *from == sizeof k / sizeof(int32_t), "");
  for (size_t i = 0; i < sizeof from / sizeof *from; i++) to[i] = static_cast<int32_t>(from[i]);
  memcpy(&k, to, sizeof k);
  return k;
}

/* Whether the math is f32's own: no tensor cores. */
static bool is_exact(const key *k) { return k->dtype == LT_F32 && !k->tf32; }

/* CUDNN_FMA_MATH forbids the conversion of f32 to TF32 that the default allows. */
static cudnnMathType_t math_of(const key *k) {
  return is_exact(k) ? CUDNN_FMA_MATH : k->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

static bool good(cudnnStatus_t s) { return s == CUDNN_STATUS_SUCCESS; }

/* Row-major (NCHW): cuDNN converts to channels last by itself where its kernel for tensor cores
   wants it. Sums are in f32 for all types (CUDNN_DATA_FLOAT). */
static bool describe(plan *p) {
  const key *k = &p->k;
  cudnnDataType_t type = k->dtype == LT_F16    ? CUDNN_DATA_HALF
                         : k->dtype == LT_BF16 ? CUDNN_DATA_BFLOAT16
                                               : CUDNN_DATA_FLOAT;
  return good(api.cudnnCreateTensorDescriptor(&p->x)) &&
         good(api.cudnnCreateTensorDescriptor(&p->y)) &&
         good(api.cudnnCreateFilterDescriptor(&p->weight)) &&
         good(api.cudnnCreateConvolutionDescriptor(&p->conv)) &&
         good(api.cudnnSetTensor4dDescriptor(p->x, CUDNN_TENSOR_NCHW, type, k->n, k->c, k->h,
                                             k->w)) &&
         good(api.cudnnSetTensor4dDescriptor(p->y, CUDNN_TENSOR_NCHW, type, k->n, k->o, k->oh,
                                             k->ow)) &&
         good(api.cudnnSetFilter4dDescriptor(p->weight, type, CUDNN_TENSOR_NCHW, k->o,
                                             k->c / k->groups, k->kh, k->kw)) &&
         good(api.cudnnSetConvolution2dDescriptor(p->conv, k->padding[0], k->padding[1],
                                                  k->stride[0], k->stride[1], k->dilation[0],
                                                  k->dilation[1], CUDNN_CROSS_CORRELATION,
                                                  CUDNN_DATA_FLOAT)) &&
         good(api.cudnnSetConvolutionGroupCount(p->conv, k->groups)) &&
         good(api.cudnnSetConvolutionMathType(p->conv, math_of(k)));
}

/* What the three passes call differently. */
static cudnnStatus_t ask(cudnnHandle_t h, plan *p, int *n, cudnnConvolutionFwdAlgoPerf_t *found) {
  return api.cudnnGetConvolutionForwardAlgorithm_v7(h, p->x, p->weight, p->conv, p->y, ASKED, n,
                                                    found);
}
static cudnnStatus_t ask(cudnnHandle_t h, plan *p, int *n,
                         cudnnConvolutionBwdDataAlgoPerf_t *found) {
  return api.cudnnGetConvolutionBackwardDataAlgorithm_v7(h, p->weight, p->y, p->conv, p->x, ASKED,
                                                         n, found);
}
static cudnnStatus_t ask(cudnnHandle_t h, plan *p, int *n,
                         cudnnConvolutionBwdFilterAlgoPerf_t *found) {
  return api.cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, p->x, p->y, p->conv, p->weight,
                                                           ASKED, n, found);
}
static cudnnStatus_t measure(cudnnHandle_t h, plan *p, cudnnConvolutionFwdAlgo_t algo) {
  return api.cudnnGetConvolutionForwardWorkspaceSize(h, p->x, p->weight, p->conv, p->y, algo,
                                                     &p->workspace);
}
static cudnnStatus_t measure(cudnnHandle_t h, plan *p, cudnnConvolutionBwdDataAlgo_t algo) {
  return api.cudnnGetConvolutionBackwardDataWorkspaceSize(h, p->weight, p->y, p->conv, p->x, algo,
                                                          &p->workspace);
}
static cudnnStatus_t measure(cudnnHandle_t h, plan *p, cudnnConvolutionBwdFilterAlgo_t algo) {
  return api.cudnnGetConvolutionBackwardFilterWorkspaceSize(h, p->x, p->y, p->conv, p->weight,
                                                            algo, &p->workspace);
}

/* The math of an answer belongs to it; f32 that stays f32 may need another workspace. Only
   algorithms that cuDNN calls deterministic: others add with atomics and give other bits in each
   run. Asked of the heuristic, not measured: a choice by time would differ between runs, and with
   it the bits. */
template <class Answer> static bool choose(cudnnHandle_t h, plan *p) {
  Answer found[ASKED];
  int n = 0;
  if (ask(h, p, &n, found) != CUDNN_STATUS_SUCCESS) return false;
  for (int i = 0; i < n; i++) {
    if (found[i].status != CUDNN_STATUS_SUCCESS || found[i].determinism != CUDNN_DETERMINISTIC)
      continue;
    if (!is_exact(&p->k) && api.cudnnSetConvolutionMathType(p->conv, found[i].mathType) !=
                                CUDNN_STATUS_SUCCESS)
      continue;
    p->algo = found[i].algo;
    if (measure(h, p, found[i].algo) == CUDNN_STATUS_SUCCESS && p->workspace <= WORKSPACE)
      return true;
  }
  return false;
}

static bool choose_by_pass(cudnnHandle_t h, plan *p) {
  return p->k.pass == LT_CUDA_CONV_FORWARD ? choose<cudnnConvolutionFwdAlgoPerf_t>(h, p)
         : p->k.pass == LT_CUDA_CONV_INPUT ? choose<cudnnConvolutionBwdDataAlgoPerf_t>(h, p)
                                           : choose<cudnnConvolutionBwdFilterAlgoPerf_t>(h, p);
}

static void drop(plan *p) {
  if (p->x != nullptr) api.cudnnDestroyTensorDescriptor(p->x);
  if (p->y != nullptr) api.cudnnDestroyTensorDescriptor(p->y);
  if (p->weight != nullptr) api.cudnnDestroyFilterDescriptor(p->weight);
  if (p->conv != nullptr) api.cudnnDestroyConvolutionDescriptor(p->conv);
  memset(static_cast<void *>(p), 0, sizeof *p);
}

/* The plan of a key; NULL: no memory. Under the lock. FNV-1a: G. Fowler, L. C. Noll, K.-P. Vo; 64
   bits with the published offset and prime. Which plan goes does not matter for results: it would
   be made again by the same rule. */
static plan *plan_of(cache *at, const key *k) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(k);
  for (size_t i = 0; i < sizeof *k; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
  size_t set = (hash ^ hash >> 32) % SETS;
  if (at->sets[set] == nullptr) at->sets[set] = static_cast<plan *>(calloc(WAYS, sizeof(plan)));
  plan *ways = at->sets[set];
  if (ways == nullptr) return nullptr;
  for (int i = 0; i < WAYS; i++)
    if (ways[i].made && memcmp(&ways[i].k, k, sizeof *k) == 0) return &ways[i];
  plan *p = &ways[at->oldest[set]++ % WAYS];
  drop(p);
  p->k = *k;
  p->made = true;
  p->fits = describe(p) && choose_by_pass(at->handle, p);
  return p;
}

static cudnnStatus_t issue(cudnnHandle_t h, const plan *p, const lt_cuda_conv *v, void *memory) {
  const float one = 1, zero = 0;
  if (p->k.pass == LT_CUDA_CONV_FORWARD)
    return api.cudnnConvolutionForward(h, &one, p->x, v->x.data, p->weight, v->weight.data, p->conv,
                                       static_cast<cudnnConvolutionFwdAlgo_t>(p->algo), memory,
                                       p->workspace, &zero, p->y, v->y.data);
  if (p->k.pass == LT_CUDA_CONV_INPUT)
    return api.cudnnConvolutionBackwardData(h, &one, p->weight, v->weight.data, p->y, v->y.data,
                                            p->conv,
                                            static_cast<cudnnConvolutionBwdDataAlgo_t>(p->algo),
                                            memory, p->workspace, &zero, p->x, v->x.data);
  return api.cudnnConvolutionBackwardFilter(h, &one, p->x, v->x.data, p->y, v->y.data, p->conv,
                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(p->algo),
                                            memory, p->workspace, &zero, p->weight, v->weight.data);
}

/* Row-major and on 16 bytes, as cuDNN's kernels want it: in place, or a copy. */
static bool pack(lt_ctx *c, lt_view *v) {
  lt_view from = *v;
  int64_t n = 1;
  bool packed = reinterpret_cast<uintptr_t>(v->data) % ALIGNED == 0;
  for (int d = v->ndim - 1; d >= 0; d--) {
    packed = packed && (v->size[d] == 1 || v->stride[d] == n);
    v->stride[d] = n, n *= v->size[d];
  }
  if (packed) return true;
  v->data = lt_cuda_scratch<char>(c, n * lt_cuda_item_size(v->dtype));
  return v->data != nullptr && lt_cuda_move(c, v, &from);
}

/* Operands; the result is row-major already. */
static bool pack_operands(lt_ctx *c, lt_cuda_conv *v, lt_cuda_conv_pass pass) {
  return (pass == LT_CUDA_CONV_INPUT || pack(c, &v->x)) &&
         (pass == LT_CUDA_CONV_WEIGHT || pack(c, &v->weight)) &&
         (pass == LT_CUDA_CONV_FORWARD || pack(c, &v->y));
}

/* What an attempt needs: packed operands, and so much workspace. */
typedef struct attempt {
  lt_cuda_conv own;
  bool is_packed;
  void *memory;
  size_t workspace;
} attempt;

/* Outside of the lock: where there is no memory left finalizers run, which may convolve. */
static bool prepare(lt_ctx *c, attempt *a, size_t workspace, lt_cuda_conv_pass pass) {
  if (!a->is_packed && !pack_operands(c, &a->own, pass)) return false;
  a->is_packed = true;
  if (workspace <= a->workspace) return true;
  a->memory = lt_cuda_scratch<char>(c, static_cast<int64_t>(workspace));
  a->workspace = workspace;
  return a->memory != nullptr;
}

/* Under the lock. An algorithm that is refused after all is not asked for again. */
static bool run(lt_ctx *c, cache *at, plan *p, const attempt *a, bool *taken) {
  if (!ok(c, api.cudnnSetStream(at->handle, lt_cuda_now.stream))) return false;
  cudnnStatus_t s = issue(at->handle, p, &a->own, a->memory);
  *taken = p->fits = CUDNN_STATUS_CATEGORY(s) != CUDNN_STATUS_NOT_SUPPORTED;
  return !*taken || ok(c, s);
}

/* Issues the convolution where what it needs is there; else `*needed`: the bytes of workspace. One
   handle for a device, and a lock, as a handle is bound to a stream for the time of a call. */
static bool try_convolution(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_pass pass,
                            const attempt *a, bool *taken, size_t *needed, bool *again) {
  cache *at = &caches[lt_cuda_now.index];
  std::lock_guard<std::mutex> hold(at->lock);
  if (at->handle == nullptr && !ok(c, api.cudnnCreate(&at->handle))) return false;
  key k = key_of(v, pass);
  plan *p = plan_of(at, &k);
  if (p == nullptr) return lt_cuda_fail(c, LT_EMEMORY, "out of memory");
  *needed = p->workspace;
  *again = p->fits && (!a->is_packed || a->workspace < *needed);
  return !p->fits || *again || run(c, at, p, a, taken);
}

/* *taken stays false where cuDNN cannot do it: the caller then multiplies matrices. */
bool lt_cuda_conv_library(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_pass pass, bool *taken) {
  const lt_view *made = pass == LT_CUDA_CONV_FORWARD ? &v->y
                        : pass == LT_CUDA_CONV_INPUT ? &v->x
                                                     : &v->weight;
  attempt a = {*v, false, nullptr, 0};
  size_t needed = 0;
  bool again = false;
  *taken = false;
  if (!fits(v) || reinterpret_cast<uintptr_t>(made->data) % ALIGNED != 0 || !open_library(c))
    return true;
  do {
    if (again && !prepare(c, &a, needed, pass)) return false;
    if (!try_convolution(c, v, pass, &a, taken, &needed, &again)) return false;
  } while (again);
  return true;
}
