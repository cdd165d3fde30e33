/* runtime/cuda/gemm_plan.cu: products by cuBLASLt.

   A plan (descriptors and the algorithm) is made once for a key of all that the choice depends on;
   cuBLASLt's heuristic is asked then, its first answer is taken and nothing is timed: equal runs
   get equal algorithms, and so equal bits. A device keeps SETS x WAYS plans; of a full set the
   oldest goes. Row-major D = A B is cuBLASLt's column-major D' = B' A'. */
#include "cuda/cublas_cudnn.h"
#include "cuda/device.h"
#include "cuda/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mutex>

enum { SETS = 256, WAYS = 8, ALIGNED = 16 };

/* Compared by bytes: no padding is left unset. */
typedef struct key {
  int64_t m, n, k, batch, ld[3], step[3]; /* of A, B, D */
  uint8_t dtype, dtype_d, a_transposed, b_transposed, bias, precision;
  uint8_t aligned[4]; /* bytes, of A, B, D, bias */
  uint8_t e5m2[2];    /* of A, B: float8 (dtype u8) in that format */
  uint8_t none[4];
} key;

typedef struct plan {
  key k;
  bool made, fits; /* fits: cuBLASLt has an algorithm */
  cublasLtMatmulDesc_t what;
  cublasLtMatrixLayout_t layout[3];
  cublasLtMatmulAlgo_t algo;
  size_t workspace;
} plan;

/* The lock is held while a product is issued: descriptors carry addresses. */
typedef struct cache {
  std::mutex lock;
  cublasLtHandle_t handle;
  size_t workspace; /* most bytes */
  plan *sets[SETS];
  uint8_t oldest[SETS];
} cache;
static cache caches[LT_CUDA_MOST];

static bool ok(lt_ctx *c, const lt_cuda_libs *libs, cublasStatus_t s) {
  return s == CUBLAS_STATUS_SUCCESS ||
         lt_cuda_fail_library(c, "cuBLASLt", libs->cublasLtGetStatusString(s));
}

static cudaDataType type_of(int dtype, bool e5m2) {
  if (dtype == LT_U8) return e5m2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
  return dtype == LT_F16 ? CUDA_R_16F : dtype == LT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* The lowest bit that is set, at most ALIGNED: what a vector load may assume. The key has it, since
   the heuristic chooses other algorithms for other alignments: equal keys must mean equal bits. */
static uint8_t alignment_of(const void *p) {
  uintptr_t at = reinterpret_cast<uintptr_t>(p) | ALIGNED;
  return static_cast<uint8_t>(at & (~at + 1));
}

/* Numbers and flags only, never addresses: a product of the next step with other memory finds the
   same plan. Padding is zeroed, since keys are compared and hashed as bytes. */
static key key_of(const lt_cuda_product *p) {
  key k;
  memset(&k, 0, sizeof k);
  const lt_cuda_matrix *all[3] = {&p->a, &p->b, &p->d};
  k.m = p->m, k.n = p->n, k.k = p->k, k.batch = p->n_batch > 0 ? p->batch[0] : 1;
  for (int i = 0; i < 3; i++) {
    k.ld[i] = all[i]->col == 1 ? all[i]->row : all[i]->col;
    k.step[i] = p->n_batch > 0 ? all[i]->batch[0] : 0;
    k.aligned[i] = alignment_of(all[i]->data);
  }
  k.dtype = static_cast<uint8_t>(p->a.dtype), k.dtype_d = static_cast<uint8_t>(p->d.dtype);
  k.a_transposed = p->a.col != 1, k.b_transposed = p->b.col != 1;
  k.bias = p->bias != nullptr;
  k.precision = static_cast<uint8_t>(p->a.dtype == LT_F32 ? lt_cuda_now.precision : 0);
  k.aligned[3] = k.bias ? alignment_of(p->bias) : 0;
  k.e5m2[0] = p->e5m2_a, k.e5m2[1] = p->e5m2_b;
  return k;
}

/* Column-major, so that `rows` is the dim that runs. */
static bool set_layout(const lt_cuda_libs *l, plan *p, int i, int dtype, int64_t rows,
                       int64_t cols) {
  int32_t batch = static_cast<int32_t>(p->k.batch);
  cudaDataType type = type_of(dtype, i < 2 && p->k.e5m2[i]);
  return l->cublasLtMatrixLayoutCreate(&p->layout[i], type, static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(cols), p->k.ld[i]) ==
             CUBLAS_STATUS_SUCCESS &&
         l->cublasLtMatrixLayoutSetAttribute(p->layout[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                             &batch, sizeof batch) == CUBLAS_STATUS_SUCCESS &&
         l->cublasLtMatrixLayoutSetAttribute(
             p->layout[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &p->k.step[i],
             sizeof p->k.step[i]) == CUBLAS_STATUS_SUCCESS;
}

template <class T>
static bool set(const lt_cuda_libs *l, plan *p, cublasLtMatmulDescAttributes_t what, T value) {
  return l->cublasLtMatmulDescSetAttribute(p->what, what, &value, sizeof value) ==
         CUBLAS_STATUS_SUCCESS;
}

/* The addresses of one product; cuBLASLt's A is our B. */
static bool point(const lt_cuda_libs *l, plan *p, const lt_cuda_product *product) {
  return (!p->k.bias || set(l, p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product->bias)) &&
         (p->k.dtype != LT_U8 ||
          (set(l, p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, product->scale_b) &&
           set(l, p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, product->scale_a)));
}

/* cuBLASLt's A is our B. */
static bool describe(const lt_cuda_libs *l, plan *p, const lt_cuda_product *product) {
  const key *k = &p->k;
  static const cublasComputeType_t computes[] = {
      CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF};
  cublasComputeType_t compute = computes[k->precision];
  if (l->cublasLtMatmulDescCreate(&p->what, compute, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS)
    return false;
  int32_t a = k->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  int32_t b = k->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  uint32_t end = k->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  return set(l, p, CUBLASLT_MATMUL_DESC_TRANSA, b) && set(l, p, CUBLASLT_MATMUL_DESC_TRANSB, a) &&
         set(l, p, CUBLASLT_MATMUL_DESC_EPILOGUE, end) &&
         point(l, p, product) &&
         set_layout(l, p, 0, k->dtype, k->a_transposed ? k->m : k->k,
                    k->a_transposed ? k->k : k->m) &&
         set_layout(l, p, 1, k->dtype, k->b_transposed ? k->k : k->n,
                    k->b_transposed ? k->n : k->k) &&
         set_layout(l, p, 2, k->dtype_d, k->n, k->m);
}

template <class T>
static bool prefer(const lt_cuda_libs *l, cublasLtMatmulPreference_t to,
                   cublasLtMatmulPreferenceAttributes_t what, T value) {
  return l->cublasLtMatmulPreferenceSetAttribute(to, what, &value, sizeof value) ==
         CUBLAS_STATUS_SUCCESS;
}

/* Partial sums are kept in the compute type, in the workspace: adding them up in the result would
   round each and take them as they come. */
static bool prefer_all(const lt_cuda_libs *l, cublasLtMatmulPreference_t to, uint64_t workspace,
                       const uint8_t *aligned) {
  const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const uint32_t a = aligned[1], b = aligned[0], d = aligned[2];
  return prefer(l, to, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace) &&
         prefer(l, to, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums) &&
         prefer(l, to, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a) &&
         prefer(l, to, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b) &&
         prefer(l, to, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, d) &&
         prefer(l, to, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d);
}

/* One answer is asked for. Timing several would choose differently from run to run, and another
   algorithm may add in another order. */
static bool choose(const lt_cuda_libs *l, const cache *at, plan *p) {
  cublasLtMatmulPreference_t prefers;
  cublasLtMatmulHeuristicResult_t found;
  int n = 0;
  if (l->cublasLtMatmulPreferenceCreate(&prefers) != CUBLAS_STATUS_SUCCESS) return false;
  bool chosen = prefer_all(l, prefers, at->workspace, p->k.aligned) &&
                l->cublasLtMatmulAlgoGetHeuristic(at->handle, p->what, p->layout[1], p->layout[0],
                                                  p->layout[2], p->layout[2], prefers, 1, &found,
                                                  &n) == CUBLAS_STATUS_SUCCESS &&
                n > 0 && found.state == CUBLAS_STATUS_SUCCESS;
  l->cublasLtMatmulPreferenceDestroy(prefers);
  if (!chosen) return false;
  p->algo = found.algo;
  p->workspace = found.workspaceSize;
  return true;
}

static void drop(const lt_cuda_libs *l, plan *p) {
  if (p->what != nullptr) l->cublasLtMatmulDescDestroy(p->what);
  for (int i = 0; i < 3; i++)
    if (p->layout[i] != nullptr) l->cublasLtMatrixLayoutDestroy(p->layout[i]);
  memset(static_cast<void *>(p), 0, sizeof *p);
}

/* The plan of a key; NULL: no memory. Under the lock. */
static plan *plan_of(const lt_cuda_libs *l, cache *at, const key *k,
                     const lt_cuda_product *product) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(k);
  for (size_t i = 0; i < sizeof *k; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
  size_t set = (hash ^ hash >> 32) % SETS;
  if (at->sets[set] == nullptr)
    at->sets[set] = static_cast<plan *>(calloc(WAYS, sizeof(plan)));
  plan *ways = at->sets[set];
  if (ways == nullptr) return nullptr;
  for (int i = 0; i < WAYS; i++)
    if (ways[i].made && memcmp(&ways[i].k, k, sizeof *k) == 0) return &ways[i];
  plan *p = &ways[at->oldest[set]++ % WAYS];
  drop(l, p);
  p->k = *k;
  p->made = true;
  p->fits = describe(l, p, product) && choose(l, at, p);
  return p;
}

/* Under the lock. Sizes of workspace as NVIDIA's documentation of cuBLAS recommends: 32 MB from
   Hopper on, 4 MB before. */
static bool open_cache(lt_ctx *c, const lt_cuda_libs *libs, cache *at) {
  int major = 0;
  if (at->handle != nullptr) return true;
  if (!lt_cuda_ok(c, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                            lt_cuda_now.index), "compute capability"))
    return false;
  at->workspace = static_cast<size_t>(major >= 9 ? 32 : 4) << 20;
  return ok(c, libs, libs->cublasLtCreate(&at->handle));
}

/* One workspace for all products of a launch, which run one after the other; it grows in large
   steps. The library refuses one that does not lie on 256 bytes. */
static bool take_workspace(lt_ctx *c, size_t bytes) {
  const size_t align = 256;
  size_t rounded = 64 << 10;
  if (bytes <= lt_cuda_now.workspace_size) return true;
  while (rounded < bytes) rounded *= 8;
  char *memory = lt_cuda_scratch<char>(c, static_cast<int64_t>(rounded + align));
  if (memory == nullptr) return false;
  lt_cuda_now.workspace = memory + (align - reinterpret_cast<uintptr_t>(memory) % align) % align;
  lt_cuda_now.workspace_size = rounded;
  return true;
}

/* Without the library products are slow: said once. */
bool lt_cuda_gemm_has_library(lt_ctx *c) {
  static bool said;
  char why[LT_CUDA_WHY], text[LT_CUDA_WHY + 64];
  if (lt_cuda_cublaslt(why) != nullptr) return true;
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
    snprintf(text, sizeof text, "matrix products on GPUs are slow: %s", why);
    lt_cuda_host->log(c, text);
  }
  return false;
}

/* Under the lock. */
static bool multiply(lt_ctx *c, const lt_cuda_libs *libs, cache *at, plan *p,
                     const lt_cuda_product *product) {
  if (lt_cuda_now.changed != nullptr) return true; /* products have no arguments that change */
  if (!point(libs, p, product))
    return lt_cuda_fail(c, LT_EDEVICE, "cuBLASLt: refuses a bias or scales");
  float alpha = static_cast<float>(product->alpha), beta = static_cast<float>(product->beta);
  return ok(c, libs,
            libs->cublasLtMatmul(at->handle, p->what, &alpha, product->b.data, p->layout[1],
                                 product->a.data, p->layout[0], &beta, product->d.data,
                                 p->layout[2], product->d.data, p->layout[2], &p->algo,
                                 p->workspace > 0 ? lt_cuda_now.workspace : nullptr, p->workspace,
                                 lt_cuda_now.stream));
}

/* Issues the product, unless its plan needs a larger workspace than there is: `*needed` bytes. */
static bool try_product(lt_ctx *c, const lt_cuda_libs *libs, const lt_cuda_product *product,
                        bool *taken, size_t *needed) {
  key k = key_of(product);
  cache *at = &caches[lt_cuda_now.index];
  std::lock_guard<std::mutex> hold(at->lock);
  if (!open_cache(c, libs, at)) return false;
  plan *p = plan_of(libs, at, &k, product);
  if (p == nullptr) return lt_cuda_fail(c, LT_EMEMORY, "out of memory");
  *taken = p->fits;
  *needed = p->fits ? p->workspace : 0;
  return !p->fits || *needed > lt_cuda_now.workspace_size || multiply(c, libs, at, p, product);
}

/* `taken` false without a failure: the caller computes the product by its own kernels. Memory is
   asked for without the lock: where there is none left finalizers run, which may multiply. */
bool lt_cuda_gemm_library(lt_ctx *c, const lt_cuda_product *product, bool *taken) {
  const lt_cuda_libs *libs = lt_cuda_cublaslt(nullptr);
  size_t needed = 0;
  *taken = false;
  if (libs == nullptr) return true;
  do {
    if (!take_workspace(c, needed) || !try_product(c, libs, product, taken, &needed)) return false;
  } while (needed > lt_cuda_now.workspace_size);
  return true;
}
