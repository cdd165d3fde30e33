/* runtime/cpu/cat.c: concatenation: each tensor is copied into its part of the result.

   The result is divided into views, and each input is a copy into its view: dtypes and strides of
   inputs are the copy's affair. */
#include "cpu/scratch.h"

LT_KERNEL(cat) {
  const lt_args_cat *a = call->args;
  lt_tensor *out = call->out[0];
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS], at = 0;
  for (int k = 0; k < call->n_in; k++) {
    lt_tensor *t = call->in[k];
    if (t->numel == 0) {
      if (t->ndim == out->ndim) at += t->size[a->dim];
      continue;
    }
    lt_tensor part = *out; /* a view, on the stack */
    for (int j = 0; j < out->ndim; j++) size[j] = t->size[j], stride[j] = out->stride[j];
    lt_tensor_set_shape(&part, out->ndim, size, stride);
    part.offset += at * out->stride[a->dim];
    if (!lt_cpu_move(c, &part, t)) return false;
    at += t->size[a->dim];
  }
  return true;
}

LT_KERNEL(stack) {
  const lt_args_stack *a = call->args;
  lt_tensor *out = call->out[0];
  int64_t stride[LT_MAX_DIMS];
  for (int k = 0; k < call->n_in; k++) {
    lt_tensor *t = call->in[k], part = *out;
    for (int j = 0, to = 0; j < out->ndim; j++)
      if (j != a->dim) stride[to++] = out->stride[j];
    lt_tensor_set_shape(&part, t->ndim, t->size, stride);
    part.offset += k * out->stride[a->dim];
    if (!lt_cpu_move(c, &part, t)) return false;
  }
  return true;
}
