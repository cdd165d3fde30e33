/* spec/cuda/fake_cublaslt.cpp: a cuBLASLt over host memory, as strict as its manual.

   What the manual forbids ends the program with a sentence: matrices that overlap themselves,
   sizes that do not fit each other, alignments below those that the algorithm was asked for, less
   workspace than it needs, another device's memory. Products run late, on their stream
   (fakert.h), with the workspace filled with 0xff. */
#include <cublasLt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda/fakert.h"
#include "ops/math/float8.h"
#include "ops/math/half.h"

[[noreturn]] static void die(const char *what) {
  fprintf(stderr, "fake cuBLASLt: %s\n", what);
  abort();
}

static void demand(bool holds, const char *what) {
  if (!holds) die(what);
}

struct Layout {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld, step;
  int32_t batch;
};

struct Desc {
  cublasComputeType_t compute;
  int32_t transposed[2]; /* cublasOperation_t */
  uint32_t epilogue;
  const void *bias;
  const float *scale[2]; /* of A and B, if they are float8 */
};

struct Preference {
  uint64_t workspace;
  uint32_t sums, aligned[4]; /* of A, B, C, D */
};

/* What an algorithm was chosen for. */
struct Algo {
  uint64_t magic, workspace;
  uint32_t aligned[4];
  uint64_t m, n, k;
};
static const uint64_t MAGIC = 0x616c676f;

static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "");
static_assert(sizeof(Desc) <= sizeof(cublasLtMatmulDescOpaque_t), "");
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "");
static_assert(sizeof(Algo) <= sizeof(cublasLtMatmulAlgo_t), "");

template <class T> static T *as(void *p) { return static_cast<T *>(p); }

static bool is_float8(cudaDataType t) { return t == CUDA_R_8F_E4M3 || t == CUDA_R_8F_E5M2; }

static size_t item(cudaDataType t) { return t == CUDA_R_32F ? 4 : is_float8(t) ? 1 : 2; }

/* Sets a member from an attribute of the same size. */
template <class T> static cublasStatus_t take(T *to, const void *from, size_t size) {
  demand(from != nullptr && size == sizeof(T), "an attribute of another size");
  memcpy(to, from, size);
  return CUBLAS_STATUS_SUCCESS;
}

#define API extern "C" FAKERT_API

API cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t *out) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  *out = reinterpret_cast<cublasLtHandle_t>(new int(fakert_device()));
  return CUBLAS_STATUS_SUCCESS;
}
/* Whether factors of f32 are rounded. */
static bool rounds(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_32F_FAST_TF32 || compute == CUBLAS_COMPUTE_32F_FAST_16BF;
}

API size_t CUBLASWINAPI cublasLtGetVersion(void) { return CUBLAS_VERSION; }
API const char *CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_NOT_SUPPORTED    ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : s == CUBLAS_STATUS_INTERNAL_ERROR ? "CUBLAS_STATUS_INTERNAL_ERROR"
                                             : "CUBLAS_STATUS_INVALID_VALUE";
}

API cublasStatus_t CUBLASWINAPI cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                                         cublasComputeType_t compute,
                                                         cudaDataType_t scale) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  demand(compute == CUBLAS_COMPUTE_32F || rounds(compute), "a compute type other than f32");
  demand(scale == CUDA_R_32F, "a scale type other than f32");
  *out = new cublasLtMatmulDescOpaque_t();
  Desc *d = as<Desc>(*out);
  d->compute = compute;
  d->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t CUBLASWINAPI cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t CUBLASWINAPI cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p,
                                                               cublasLtMatmulDescAttributes_t what,
                                                               const void *from, size_t size) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  Desc *d = as<Desc>(p);
  switch (static_cast<int>(what)) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(&d->transposed[0], from, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(&d->transposed[1], from, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(&d->epilogue, from, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(&d->bias, from, size);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: return take(&d->scale[0], from, size);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: return take(&d->scale[1], from, size);
    default: die("an attribute of a product that this fake does not know");
  }
}

API cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                                           cudaDataType type, uint64_t rows,
                                                           uint64_t cols, int64_t ld) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  demand(type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF || is_float8(type),
         "an unknown dtype");
  demand(rows > 0 && cols > 0 && rows <= INT32_MAX && cols <= INT32_MAX, "an impossible size");
  demand(ld >= 0 && static_cast<uint64_t>(ld) >= rows, "columns that overlap: ld below rows");
  *out = new cublasLtMatrixLayoutOpaque_t();
  *as<Layout>(*out) = {type, rows, cols, ld, 0, 1};
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t p, cublasLtMatrixLayoutAttribute_t what, const void *from, size_t size) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  Layout *l = as<Layout>(p);
  switch (static_cast<int>(what)) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return take(&l->batch, from, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return take(&l->step, from, size);
    default: die("an attribute of a layout that this fake does not know");
  }
}

API cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  *out = new cublasLtMatmulPreferenceOpaque_t();
  *as<Preference>(*out) = {0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t CUBLASWINAPI
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                     cublasLtMatmulPreferenceAttributes_t what, const void *from,
                                     size_t size) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  Preference *to = as<Preference>(p);
  switch (static_cast<int>(what)) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(&to->workspace, from, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(&to->sums, from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(&to->aligned[0], from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(&to->aligned[1], from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(&to->aligned[2], from, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(&to->aligned[3], from, size);
    default: die("a preference that this fake does not know");
  }
}

/* Bytes from the first element to the last of a stack. */
static size_t reach(const Layout &l) {
  return static_cast<size_t>(l.step * (l.batch - 1) + l.ld * static_cast<int64_t>(l.cols - 1) +
                             static_cast<int64_t>(l.rows)) *
         item(l.type);
}

/* What the manual asks of float8 products ("FP8 Kernels"): A transposed and B not, dims and memory
   in pieces of 16, not both factors e5m2, a result of f32, f16 or bf16. */
static void demand_float8(const Desc &what, const Layout &a, const Layout &b, const Layout &d) {
  demand(is_float8(a.type) && is_float8(b.type), "a float8 times another dtype");
  demand(a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3, "e5m2 times e5m2");
  demand(!is_float8(d.type), "a result of float8");
  demand(what.transposed[0] != CUBLAS_OP_N && what.transposed[1] == CUBLAS_OP_N,
         "float8 factors that are not both in order of the terms");
  demand(a.rows % 16 == 0 && a.cols % 16 == 0 && b.cols % 16 == 0 && a.ld % 16 == 0 &&
             b.ld % 16 == 0,
         "dims of float8 that are no multiples of 16");
  demand(a.batch == 1, "a batch of float8 products");
}

struct Product {
  Desc what;
  Layout a, b, d;
  uint64_t m, n, k;
};

/* A product whose sizes fit each other. */
static Product product_of(cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                          cublasLtMatrixLayout_t d) {
  Product p = {*as<Desc>(what), *as<Layout>(a), *as<Layout>(b), *as<Layout>(d), 0, 0, 0};
  bool ta = p.what.transposed[0] != CUBLAS_OP_N, tb = p.what.transposed[1] != CUBLAS_OP_N;
  p.m = ta ? p.a.cols : p.a.rows, p.k = ta ? p.a.rows : p.a.cols;
  p.n = tb ? p.b.rows : p.b.cols;
  demand(p.k == (tb ? p.b.cols : p.b.rows), "inner sizes differ");
  demand(p.d.rows == p.m && p.d.cols == p.n, "D has another size than A B");
  demand(memcmp(c, d, sizeof *c) == 0, "C and D lie differently");
  demand(p.a.batch == p.b.batch && p.a.batch == p.d.batch, "batch counts differ");
  demand(p.a.batch >= 1 && p.a.batch <= 65535, "an impossible batch count");
  if (is_float8(p.a.type) || is_float8(p.b.type)) {
    demand_float8(p.what, p.a, p.b, p.d);
  } else {
    demand(p.a.type == p.b.type, "A and B are of different dtypes");
    demand(p.d.type == p.a.type || p.d.type == CUDA_R_32F, "D is of an impossible dtype");
  }
  demand(p.a.step >= 0 && p.b.step >= 0, "a batch that goes backwards");
  int64_t whole = p.d.ld * static_cast<int64_t>(p.n - 1) + static_cast<int64_t>(p.m);
  int64_t m = static_cast<int64_t>(p.m);
  bool between = p.d.step >= m && p.d.ld >= p.d.step * (p.d.batch - 1) + m; /* column by column */
  demand(p.d.batch == 1 || p.d.step >= whole || between, "the products of a batch overlap");
  demand(!rounds(p.what.compute) || p.a.type == CUDA_R_32F, "halves rounded once more");
  demand(p.what.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
             (p.what.epilogue == CUBLASLT_EPILOGUE_BIAS && p.what.bias != nullptr),
         "an epilogue without its vector");
  return p;
}

/* Long sums are made in pieces that meet in the workspace. */
API cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t *out,
    int *n) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  const Preference *prefers = as<Preference>(preference);
  demand(handle != nullptr && asked > 0, "no handle, or nothing asked for");
  demand((prefers->sums & CUBLASLT_REDUCTION_SCHEME_INPLACE) == 0,
         "sums in place, which come in any order");
  demand(prefers->workspace > 0 && prefers->workspace <= 32u << 20, "an odd workspace");
  Product p = product_of(what, a, b, c, d);
  bool old = fakert_capability() < 80;
  demand(!old || !rounds(p.what.compute), "TF32 or bf16 of a GPU without it");
  if (old && p.a.type == CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  demand(fakert_capability() >= 89 || !is_float8(p.a.type), "float8 of a GPU without it");
  Algo algo = {MAGIC, p.k >= 64 ? 4096u : 0u, {}, p.m, p.n, p.k};
  memcpy(algo.aligned, prefers->aligned, sizeof algo.aligned);
  memset(static_cast<void *>(out), 0, sizeof *out);
  memcpy(&out->algo, &algo, sizeof algo);
  out->workspaceSize = algo.workspace;
  out->state = CUBLAS_STATUS_SUCCESS;
  *n = 1;
  return CUBLAS_STATUS_SUCCESS;
}

static float load(const void *p, cudaDataType t, int64_t at) {
  if (t == CUDA_R_32F) return static_cast<const float *>(p)[at];
  if (is_float8(t))
    return lt_float8_to_f32(static_cast<const uint8_t *>(p)[at], t == CUDA_R_8F_E5M2);
  uint16_t bits = static_cast<const uint16_t *>(p)[at];
  return t == CUDA_R_16F ? lt_f16_to_f32(bits) : lt_bf16_to_f32(bits);
}

static void store(void *p, cudaDataType t, int64_t at, float v) {
  if (t == CUDA_R_32F)
    static_cast<float *>(p)[at] = v;
  else
    static_cast<uint16_t *>(p)[at] = t == CUDA_R_16F ? lt_f32_to_f16(v) : lt_f32_to_bf16(v);
}

/* A factor as it is multiplied. */
static float rounded(float x, cublasComputeType_t compute) {
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return fakert_tf32(x);
  return rounds(compute) ? lt_bf16_to_f32(lt_f32_to_bf16(x)) : x;
}

/* op(X) of one product, column-major, as floats. */
static std::vector<float> floats(const Layout &l, const void *data, int32_t number, bool turned,
                                 cublasComputeType_t compute) {
  std::vector<float> out(l.rows * l.cols);
  for (uint64_t q = 0; q < l.cols; q++)
    for (uint64_t r = 0; r < l.rows; r++)
      out[turned ? r * l.cols + q : q * l.rows + r] =
          load(data, l.type, number * l.step + static_cast<int64_t>(q) * l.ld +
                                 static_cast<int64_t>(r));
  for (float &x : out) x = rounded(x, compute);
  return out;
}

static void multiply(const Product &p, float alpha, const void *a, const void *b, float beta,
                     void *d, int32_t number) {
  cublasComputeType_t compute = p.what.compute;
  std::vector<float> x = floats(p.a, a, number, p.what.transposed[0] != CUBLAS_OP_N, compute);
  std::vector<float> y = floats(p.b, b, number, p.what.transposed[1] != CUBLAS_OP_N, compute);
  std::vector<float> sum(p.m);
  if (is_float8(p.a.type)) alpha *= *p.what.scale[0] * *p.what.scale[1];
  for (uint64_t q = 0; q < p.n; q++) {
    sum.assign(p.m, 0.0f);
    for (uint64_t k = 0; k < p.k; k++)
      for (uint64_t r = 0; r < p.m; r++) sum[r] += x[k * p.m + r] * y[q * p.k + k];
    for (uint64_t r = 0; r < p.m; r++) {
      int64_t at = number * p.d.step + static_cast<int64_t>(q) * p.d.ld + static_cast<int64_t>(r);
      float v = alpha * sum[r];
      if (beta != 0) v += beta * load(d, p.d.type, at);
      if (p.what.epilogue == CUBLASLT_EPILOGUE_BIAS)
        v += load(p.what.bias, p.d.type, static_cast<int64_t>(r));
      store(d, p.d.type, at, v);
    }
  }
}

static void demand_memory(const void *p, int device, uint64_t aligned, const char *name) {
  char text[128];
  snprintf(text, sizeof text, "%s is no memory of device %d", name, device);
  demand(fakert_device_of(p) == device, text);
  snprintf(text, sizeof text, "%s is not aligned as the algorithm was asked for", name);
  demand(reinterpret_cast<uintptr_t>(p) % aligned == 0, text);
}

API cublasStatus_t CUBLASWINAPI cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
    cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
    const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *chosen, void *workspace,
    size_t workspace_bytes, cudaStream_t stream) {
  if (fakert_fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  Product p = product_of(what, a_layout, b_layout, c_layout, d_layout);
  int device = *reinterpret_cast<int *>(handle);
  demand(device == fakert_device(), "a handle of another device");
  demand(stream != nullptr, "a product on the default stream");
  Algo algo;
  memcpy(&algo, chosen, sizeof algo);
  demand(algo.magic == MAGIC && algo.m == p.m && algo.n == p.n && algo.k == p.k,
         "an algorithm of another product");
  demand(workspace_bytes >= algo.workspace, "less workspace than the algorithm needs");
  demand(c == d, "C is not D");
  demand_memory(a, device, algo.aligned[0], "A");
  demand_memory(b, device, algo.aligned[1], "B");
  demand_memory(d, device, algo.aligned[3], "D");
  if (algo.workspace > 0) demand_memory(workspace, device, 256, "the workspace");
  if (p.what.epilogue == CUBLASLT_EPILOGUE_BIAS) {
    demand_memory(p.what.bias, device, item(p.d.type), "the bias");
    fakert_touch(stream, p.what.bias, p.m * item(p.d.type), false, "cublasLtMatmul");
  }
  for (int k = 0; k < 2 && is_float8(p.a.type); k++) {
    demand_memory(p.what.scale[k], device, sizeof(float), "a scale");
    fakert_touch(stream, p.what.scale[k], sizeof(float), false, "cublasLtMatmul");
  }
  fakert_touch(stream, a, reach(p.a), false, "cublasLtMatmul");
  fakert_touch(stream, b, reach(p.b), false, "cublasLtMatmul");
  fakert_touch(stream, d, reach(p.d), true, "cublasLtMatmul");
  fakert_touch(stream, workspace, algo.workspace, true, "cublasLtMatmul");
  float by = *static_cast<const float *>(alpha), keep = *static_cast<const float *>(beta);
  fakert_queue(stream, "cublasLtMatmul", [=] {
    if (algo.workspace > 0) memset(workspace, 0xff, workspace_bytes);
    for (int32_t k = 0; k < p.d.batch; k++) multiply(p, by, a, b, keep, d, k);
  });
  return CUBLAS_STATUS_SUCCESS;
}
