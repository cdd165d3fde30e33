/* runtime/cuda/gemm.h: matrix products for the kernels of other files.

   M rows, K terms, N columns. */
#ifndef LT_CUDA_GEMM_H
#define LT_CUDA_GEMM_H

#include "cuda/cuda.h"

/* A matrix, or a stack of them: strides in elements, any of them (transposed: `row` is 1). */
typedef struct lt_cuda_matrix {
  void *data;
  int dtype;
  int64_t row, col;           /* from a row to the next, from a column to the next */
  int64_t batch[LT_MAX_DIMS]; /* by dim of the batch; 0: the same matrix for all */
} lt_cuda_matrix;

/* D = alpha A B + beta D (+ bias in every row), D [m, n], A [m, k], B [k, n]. D shares no memory
   with A, B and bias. */
typedef struct lt_cuda_product {
  int64_t m, n, k;
  int n_batch; /* dims of the stack, slowest first; 0: one product */
  int64_t batch[LT_MAX_DIMS];
  lt_cuda_matrix a, b, d;
  double alpha, beta; /* integers take 1, and 0 or 1 */
  const void *bias;   /* [n] of d's dtype, side by side, or NULL */
  /* Of lt_cuda_gemm_library alone: where A and B are float8 (u8), what their values are multiplied
     by, numbers in memory of the device; and their formats, if not e4m3. */
  const float *scale_a, *scale_b;
  bool e5m2_a, e5m2_b;
} lt_cuda_product;

/* Any dtypes, shapes (empty ones, no terms) and strides. Products of floats go to cuBLASLt, summed
   in f32, of factors in TF32 or bf16 where lt_cuda_now.precision allows it: in place where A and B
   are of one dtype (f32, f16 or bf16), D of the same or f32, and each matrix has one stride of 1
   and another that reaches over it; else by copies in scratch memory. f64 (summed in f64), integers
   (in i64, wrapping) and everything where the library is missing go to an own kernel. The same bits
   each time.

   The library adds the bias; it neither applies an activation, which is an op of its own, nor sums
   the gradient of a bias, which it would in f32 alone (reduce.h sums in f64).

   Batch dims that do not merge cost a call for each matrix beside the longest dim, or copies. */
bool lt_cuda_gemm(lt_ctx *c, const lt_cuda_product *p);

/* A row-major matrix whose rows lie `ld` elements apart, or the transpose of one. */
static inline lt_cuda_matrix lt_cuda_matrix_of(const void *data, int dtype, int64_t ld,
                                               bool transposed) {
  lt_cuda_matrix m = {};
  m.data = const_cast<void *>(data);
  m.dtype = dtype;
  m.row = transposed ? 1 : ld;
  m.col = transposed ? ld : 1;
  return m;
}

/* From here on: parts of lt_cuda_gemm, by file. */

/* gemm_plan.cu: by cuBLASLt. *taken false: it has no algorithm for this product. At most one dim of
   batch, of 65535. */
bool lt_cuda_gemm_has_library(lt_ctx *c);
bool lt_cuda_gemm_library(lt_ctx *c, const lt_cuda_product *p, bool *taken);

/* gemm_tiled.cu: by the own kernel. */
bool lt_cuda_gemm_tiled(lt_ctx *c, const lt_cuda_product *p);

#endif
