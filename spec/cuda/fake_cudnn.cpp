/* spec/cuda/fake_cudnn.cpp: cuDNN's convolutions over host memory, as strict as its manual.

   What the manual forbids ends the program with a sentence: descriptors that do not fit each
   other, another algorithm or math than was answered, less workspace than it needs, memory of
   another device or beside 16 bytes; so do algorithms whose bits differ from run to run. f32 is
   multiplied in TF32 unless that is forbidden.
   Convolutions run late, on their stream (fakert.h), with the workspace filled with 0xff.

   An odd number of images has no algorithm that repeats its bits, and padding around a kernel of
   one pixel is refused when it is issued: that is what backends must do without. */
#include <cudnn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda/fakert.h"
#include "ops/math/half.h"

[[noreturn]] static void die(const char *what) {
  fprintf(stderr, "fake cuDNN: %s\n", what);
  abort();
}

static void demand(bool holds, const char *what) {
  if (!holds) die(what);
}

enum { WOBBLY = 0, HUNGRY = 3, ABSENT = 2, GOOD = 1 }; /* algorithms */
static const size_t NEEDS = 4096, TOO_MUCH = size_t(1) << 40;

struct cudnnContext {
  int device;
  cudaStream_t stream;
};
struct cudnnTensorStruct {
  cudnnDataType_t type;
  int n, c, h, w;
};
struct cudnnFilterStruct {
  cudnnDataType_t type;
  int o, c, h, w;
};
struct cudnnConvolutionStruct {
  int padding[2], stride[2], dilation[2], groups;
  cudnnMathType_t math;
};

#define API extern "C" FAKERT_API
#define NEW_AND_DELETE(name)                                                            \
  API cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t *out) {     \
    if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;                             \
    *out = new cudnn##name##Struct();                                                   \
    return CUDNN_STATUS_SUCCESS;                                                        \
  }                                                                                     \
  API cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t p) {       \
    delete p;                                                                           \
    return CUDNN_STATUS_SUCCESS;                                                        \
  }
NEW_AND_DELETE(Tensor)
NEW_AND_DELETE(Filter)
NEW_AND_DELETE(Convolution)

API cudnnStatus_t cudnnCreate(cudnnHandle_t *out) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  *out = new cudnnContext();
  (*out)->device = fakert_device();
  return CUDNN_STATUS_SUCCESS;
}
API const char *cudnnGetErrorString(cudnnStatus_t s) {
  return s == CUDNN_STATUS_NOT_SUPPORTED    ? "CUDNN_STATUS_NOT_SUPPORTED"
         : s == CUDNN_STATUS_INTERNAL_ERROR ? "CUDNN_STATUS_INTERNAL_ERROR"
                                            : "CUDNN_STATUS_BAD_PARAM";
}
API cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  h->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

static void demand_type(cudnnDataType_t t) {
  demand(t == CUDNN_DATA_FLOAT || t == CUDNN_DATA_HALF || t == CUDNN_DATA_BFLOAT16,
         "an unknown dtype");
}

API cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                             cudnnDataType_t type, int n, int c, int h, int w) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  demand(format == CUDNN_TENSOR_NCHW, "a format other than NCHW");
  demand_type(type);
  demand(n > 0 && c > 0 && h > 0 && w > 0, "an empty tensor");
  *t = {type, n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type,
                                             cudnnTensorFormat_t format, int o, int c, int h,
                                             int w) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  demand(format == CUDNN_TENSOR_NCHW, "a format other than NCHW");
  demand_type(type);
  demand(o > 0 && c > 0 && h > 0 && w > 0, "an empty filter");
  *f = {type, o, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h,
                                                  int pad_w, int stride_h, int stride_w,
                                                  int dilation_h, int dilation_w,
                                                  cudnnConvolutionMode_t mode,
                                                  cudnnDataType_t compute) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  demand(mode == CUDNN_CROSS_CORRELATION, "a kernel that is turned");
  demand(compute == CUDNN_DATA_FLOAT, "sums other than in f32");
  demand(pad_h >= 0 && pad_w >= 0 && stride_h > 0 && stride_w > 0 && dilation_h > 0 &&
             dilation_w > 0, "an impossible geometry");
  *d = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, 1, CUDNN_DEFAULT_MATH};
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  d->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d,
                                              cudnnMathType_t math) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  d->math = math;
  return CUDNN_STATUS_SUCCESS;
}

/* A convolution whose sizes fit each other. */
struct Conv {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct d;
};

static int result_size(int size, int kernel, int padding, int stride, int dilation) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

static Conv conv_of(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                    cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t y) {
  Conv v = {*x, *y, *w, *d};
  demand(x->type == y->type && x->type == w->type, "dtypes that differ");
  demand(x->n == y->n, "numbers of images that differ");
  demand(x->c == w->c * d->groups && y->c == w->o && w->o % d->groups == 0,
         "channels that do not fit");
  demand(y->h == result_size(x->h, w->h, d->padding[0], d->stride[0], d->dilation[0]) &&
             y->w == result_size(x->w, w->w, d->padding[1], d->stride[1], d->dilation[1]),
         "a result of another size");
  return v;
}

/* What the heuristics answer, the fastest first. */
template <class Answer>
static cudnnStatus_t answer(cudnnHandle_t h, const Conv &v, int asked, int *n, Answer *out) {
  const int algos[] = {WOBBLY, HUNGRY, ABSENT, GOOD};
  demand(h != nullptr && asked >= 4, "no handle, or too little asked for");
  if (fakert_capability() < 80 && v.x.type == CUDNN_DATA_BFLOAT16)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *n = v.x.n % 2 != 0 ? 3 : 4;
  for (int i = 0; i < *n; i++) {
    memset(static_cast<void *>(&out[i]), 0, sizeof out[i]);
    out[i].algo = static_cast<decltype(out[i].algo)>(algos[i]);
    out[i].status = algos[i] == ABSENT ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    out[i].determinism = algos[i] == WOBBLY ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    out[i].mathType = v.x.type == CUDNN_DATA_FLOAT ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
    out[i].memory = algos[i] == HUNGRY ? TOO_MUCH : NEEDS;
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t measure(int algo, size_t *bytes) {
  demand(algo != WOBBLY && algo != ABSENT, "the workspace of an algorithm that must not be used");
  *bytes = algo == HUNGRY ? TOO_MUCH : NEEDS;
  return CUDNN_STATUS_SUCCESS;
}

static float load(const void *p, cudnnDataType_t t, int64_t at) {
  if (t == CUDNN_DATA_FLOAT) return static_cast<const float *>(p)[at];
  uint16_t bits = static_cast<const uint16_t *>(p)[at];
  return t == CUDNN_DATA_HALF ? lt_f16_to_f32(bits) : lt_bf16_to_f32(bits);
}
static void store(void *p, cudnnDataType_t t, int64_t at, double value) {
  float v = static_cast<float>(value);
  if (t == CUDNN_DATA_FLOAT)
    static_cast<float *>(p)[at] = v;
  else
    static_cast<uint16_t *>(p)[at] = t == CUDNN_DATA_HALF ? lt_f32_to_f16(v) : lt_f32_to_bf16(v);
}

/* Calls f(x, w, y) with the places of each product. */
template <class F> static void each_product(const Conv &v, F f) {
  int per = v.w.o / v.d.groups;
  for (int64_t n = 0; n < v.x.n; n++)
    for (int64_t o = 0; o < v.w.o; o++)
      for (int64_t i = 0; i < v.y.h * v.y.w; i++)
        for (int64_t k = 0; k < v.w.c * v.w.h * v.w.w; k++) {
          int64_t c = k / (v.w.h * v.w.w), kh = k / v.w.w % v.w.h, kw = k % v.w.w;
          int64_t h = i / v.y.w * v.d.stride[0] - v.d.padding[0] + kh * v.d.dilation[0];
          int64_t w = i % v.y.w * v.d.stride[1] - v.d.padding[1] + kw * v.d.dilation[1];
          if (h < 0 || h >= v.x.h || w < 0 || w >= v.x.w) continue;
          int64_t channel = o / per * v.w.c + c;
          f(((n * v.x.c + channel) * v.x.h + h) * v.x.w + w, o * v.w.c * v.w.h * v.w.w + k,
            (n * v.w.o + o) * v.y.h * v.y.w + i);
        }
}

static void demand_memory(const void *p, int device, const char *name) {
  char text[128];
  snprintf(text, sizeof text, "%s is no memory of device %d", name, device);
  demand(fakert_device_of(p) == device, text);
  snprintf(text, sizeof text, "%s does not lie on 16 bytes", name);
  demand(reinterpret_cast<uintptr_t>(p) % 16 == 0, text);
}

struct Memory {
  char *data;
  int64_t n;
};

/* to = sums of a b: `place` says where they lie, of (x, w, y). */
template <class F>
static cudnnStatus_t issue(cudnnHandle_t h, const Conv &v, int algo, const void *alpha,
                           const void *beta, void *workspace, size_t bytes, Memory a, Memory b,
                           Memory to, F place) {
  size_t item = v.x.type == CUDNN_DATA_FLOAT ? 4 : 2;
  int device = fakert_device();
  demand(h->device == device && h->stream != nullptr, "a handle of another device, or no stream");
  demand(algo == GOOD && v.x.n % 2 == 0, "an algorithm that was not answered");
  demand(bytes >= NEEDS, "less workspace than the algorithm needs");
  bool wide = v.x.type == CUDNN_DATA_FLOAT, tf32 = wide && v.d.math == CUDNN_DEFAULT_MATH;
  demand(tf32 || v.d.math == (wide ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH),
         "f32 on tensor cores other than in TF32, or halves without them");
  demand(*static_cast<const float *>(alpha) == 1 && *static_cast<const float *>(beta) == 0,
         "a result that is blended, which some algorithms cannot");
  demand_memory(a.data, device, "the first operand");
  demand_memory(b.data, device, "the second operand");
  demand_memory(to.data, device, "the result");
  demand_memory(workspace, device, "the workspace");
  if (v.w.h * v.w.w == 1 && v.d.padding[0] > 0) return CUDNN_STATUS_NOT_SUPPORTED;
  fakert_touch(h->stream, a.data, a.n * item, false, "cudnnConvolution");
  fakert_touch(h->stream, b.data, b.n * item, false, "cudnnConvolution");
  fakert_touch(h->stream, to.data, to.n * item, true, "cudnnConvolution");
  fakert_touch(h->stream, workspace, bytes, true, "cudnnConvolution");
  fakert_queue(h->stream, "cudnnConvolution", [=] {
    memset(workspace, 0xff, bytes);
    std::vector<double> sums(to.n);
    each_product(v, [&](int64_t x, int64_t w, int64_t y) {
      int64_t at[3];
      place(x, w, y, at);
      float left = load(a.data, v.x.type, at[0]), right = load(b.data, v.x.type, at[1]);
      if (tf32) left = fakert_tf32(left), right = fakert_tf32(right);
      sums[at[2]] += static_cast<double>(left) * right;
    });
    for (int64_t i = 0; i < to.n; i++) store(to.data, v.x.type, i, sums[i]);
  });
  return CUDNN_STATUS_SUCCESS;
}

static Memory of(const cudnnTensorStruct &t, const void *p) {
  return {static_cast<char *>(const_cast<void *>(p)), int64_t(t.n) * t.c * t.h * t.w};
}
static Memory of(const cudnnFilterStruct &f, const void *p) {
  return {static_cast<char *>(const_cast<void *>(p)), int64_t(f.o) * f.c * f.h * f.w};
}

API cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t y, int asked, int *n,
    cudnnConvolutionFwdAlgoPerf_t *out) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  return answer(h, conv_of(x, w, d, y), asked, n, out);
}
API cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t h, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t x, int asked, int *n,
    cudnnConvolutionBwdDataAlgoPerf_t *out) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  return answer(h, conv_of(x, w, d, y), asked, n, out);
}
API cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t d, cudnnFilterDescriptor_t w, int asked, int *n,
    cudnnConvolutionBwdFilterAlgoPerf_t *out) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  return answer(h, conv_of(x, w, d, y), asked, n, out);
}

API cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
    size_t *bytes) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  conv_of(x, w, d, y);
  return measure(algo, bytes);
}
API cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t x, cudnnConvolutionBwdDataAlgo_t algo,
    size_t *bytes) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  conv_of(x, w, d, y);
  return measure(algo, bytes);
}
API cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t d, cudnnFilterDescriptor_t w,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  conv_of(x, w, d, y);
  return measure(algo, bytes);
}

API cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t h, const void *alpha, cudnnTensorDescriptor_t x, const void *x_data,
    cudnnFilterDescriptor_t w, const void *w_data, cudnnConvolutionDescriptor_t d,
    cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes, const void *beta,
    cudnnTensorDescriptor_t y, void *y_data) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  return issue(h, conv_of(x, w, d, y), algo, alpha, beta, workspace, bytes, of(*x, x_data),
               of(*w, w_data), of(*y, y_data),
               [](int64_t at_x, int64_t at_w, int64_t at_y, int64_t *at) {
                 at[0] = at_x, at[1] = at_w, at[2] = at_y;
               });
}
API cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t h, const void *alpha, cudnnFilterDescriptor_t w, const void *w_data,
    cudnnTensorDescriptor_t y, const void *y_data, cudnnConvolutionDescriptor_t d,
    cudnnConvolutionBwdDataAlgo_t algo, void *workspace, size_t bytes, const void *beta,
    cudnnTensorDescriptor_t x, void *x_data) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  return issue(h, conv_of(x, w, d, y), algo, alpha, beta, workspace, bytes, of(*w, w_data),
               of(*y, y_data), of(*x, x_data),
               [](int64_t at_x, int64_t at_w, int64_t at_y, int64_t *at) {
                 at[0] = at_w, at[1] = at_y, at[2] = at_x;
               });
}
API cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t h, const void *alpha, cudnnTensorDescriptor_t x, const void *x_data,
    cudnnTensorDescriptor_t y, const void *y_data, cudnnConvolutionDescriptor_t d,
    cudnnConvolutionBwdFilterAlgo_t algo, void *workspace, size_t bytes, const void *beta,
    cudnnFilterDescriptor_t w, void *w_data) {
  if (fakert_fails()) return CUDNN_STATUS_INTERNAL_ERROR;
  return issue(h, conv_of(x, w, d, y), algo, alpha, beta, workspace, bytes, of(*x, x_data),
               of(*y, y_data), of(*w, w_data),
               [](int64_t at_x, int64_t at_w, int64_t at_y, int64_t *at) {
                 at[0] = at_x, at[1] = at_y, at[2] = at_w;
               });
}
