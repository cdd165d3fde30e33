/* runtime/cuda/norm.h: norms of rows, and the gradients of their weights and biases. */
#ifndef LT_CUDA_NORM_H
#define LT_CUDA_NORM_H

#include "cuda/elementwise.h"

typedef struct lt_cuda_norm {
  uint32_t along; /* the dims of a row */
  double eps;
  bool centred;   /* the mean is taken off */
  void *stats; /* backward: memory for mean and 1 / sqrt(variance + eps) of each row, or nullptr */
  int64_t groups; /* group_norm: rows of an element of the batch; views are [N, groups, channels,
                     values] */
} lt_cuda_norm;

/* layer_norm.cu: the rows of x [0] that are there. Forward: y [1], weight [2] and bias [3], which
   may be absent; backward: gradient [1], weight [2], gradient of x [3]. */
bool lt_cuda_norm_rows(lt_ctx *c, const lt_cuda_norm *n, bool back, const lt_view *v);

/* norm_columns.cu: gradients of weight [2] and bias [3], which may be absent, of x [0] and its
   gradient [1]. */
bool lt_cuda_norm_columns(lt_ctx *c, const lt_cuda_norm *n, const lt_view *v);

/* layer_norm.cu: backward of rows that may be none, with the gradients of weight and bias where
   `grads` has data. */
bool lt_cuda_norm_backward(lt_ctx *c, lt_cuda_norm *n, const lt_view *v, const lt_view *grads);

#endif
