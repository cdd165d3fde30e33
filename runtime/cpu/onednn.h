/* runtime/cpu/onednn.h: matrix products and convolutions by oneDNN.

   Primitives are cached by shape, dtype, strides and thread count in a table of the ctx; which call
   serves a product depends on these alone, never on what ran before, because results of different
   calls differ in the last bits and a resumed run must repeat them. While the cores are shared
   (base/cpu_load.h) one thread serves those products that are known to be equal on one. */
#ifndef LT_CPU_ONEDNN_H
#define LT_CPU_ONEDNN_H

#include "ops/op.h"

enum { LT_PRODUCT_DIMS = LT_MAX_DIMS - 2 };

/* Where a matrix of a product lies: strides in elements, one of row and col is 1. A batch stride
   of 0 repeats the matrix. */
typedef struct lt_matrix {
  void *data;
  int64_t row, col;
  int64_t batch[LT_PRODUCT_DIMS];
} lt_matrix;

/* out[.., m, n] = a[.., m, k] b[.., k, n] (+ bias[n]), all of `dtype`, f32 or bf16; no size is 0.
 */
typedef struct lt_product {
  lt_dtype dtype;
  int n_batch;
  int64_t batch[LT_PRODUCT_DIMS];
  int64_t m, n, k;
  lt_matrix a, b, out;
  const void *bias; /* or NULL */
  bool adds;        /* to what out holds: of f32, without batch and bias, b.col is 1 */
} lt_product;

bool lt_onednn_product(lt_ctx *c, const lt_product *p);

/* C = alpha A B + beta C in f32, row-major C. A is [m, k] with leading dimension lda, or [k, m]
   when ta; B likewise. Runs on the calling thread alone, to be called inside lt_parallel. False: no
   memory. */
bool lt_onednn_sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                     int64_t lda, const float *b, int64_t ldb, float beta, float *out, int64_t ldc);

/* Its version, "2.6.3". */
void lt_onednn_version(char *text, size_t size);

/* Whether this machine multiplies bf16 in hardware; else it goes through f32. */
bool lt_onednn_has_bf16(void);

/* A convolution in f32 or bf16: x [N, C, H, W] and y [N, O, OH, OW] lie channels last, without
   holes; weight [O, C / groups, KH, KW] row-major. */
typedef enum lt_conv_pass { LT_CONV_FORWARD, LT_CONV_INPUT, LT_CONV_WEIGHT } lt_conv_pass;
typedef struct lt_conv {
  lt_dtype dtype;
  int64_t n, c, h, w, o, oh, ow, kh, kw, groups;
  lt_pair stride, padding, dilation;
} lt_conv;

/* FORWARD writes y, INPUT writes x (the gradient by the input, y being the gradient of the
   result), WEIGHT writes weight and bias. bias [O] or NULL. */
bool lt_onednn_conv(lt_ctx *c, lt_conv_pass pass, const lt_conv *v, void *x, void *weight,
                    void *bias, void *y);

/* Generates the kernels of sgemm on a helper thread, once a ctx: see lt_cpu_warm_up. */
void lt_onednn_warm_up(lt_ctx *c);

#endif
