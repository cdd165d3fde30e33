/* runtime/ops/expand_make.c: typed functions for the operations from which composite ones are
   composed. */
#include "ops/expand.h"

lt_shape lt_one_dim(int64_t n) { return lt_shape_of(1, &n); }

lt_tensor *lt_flat(lt_ctx *c, lt_tensor *x) {
  return x == NULL ? NULL : lt_reshape(c, x, lt_one_dim(x->numel));
}

/* Running sum of ones less 1: on every device without an arange kernel of its own. */
lt_tensor *lt_counting(lt_ctx *c, int64_t n, lt_device device) {
  lt_tensor *ones = lt_full(c, lt_one_dim(n), lt_scalar_int(1), LT_I64, device);
  ones = lt_apply1(c, LT_OP_cumsum, 1, &ones, &(lt_args_scan){.dim = 0});
  return lt_binary_scalar(c, LT_OP_sub, ones, lt_scalar_int(1));
}

lt_tensor *lt_chosen(lt_ctx *c, lt_tensor *mask, lt_tensor *yes, lt_tensor *no) {
  return lt_apply1(c, LT_OP_where, LT_IN(mask, yes, no), NULL);
}

lt_tensor *lt_taken(lt_ctx *c, lt_tensor *x, int64_t dim, lt_tensor *index) {
  return lt_apply1(c, LT_OP_index_select, LT_IN(x, index), &(lt_args_index_select){.dim = dim});
}

lt_tensor *lt_gather_along(lt_ctx *c, lt_tensor *x, int64_t dim, lt_tensor *index) {
  return lt_apply1(c, LT_OP_gather, LT_IN(x, index), &(lt_args_gather){.dim = dim});
}

lt_tensor *lt_reduced(lt_ctx *c, lt_op op, lt_tensor *x, int64_t dim, bool keepdim) {
  if (x != NULL && x->ndim == 0) return lt_unary(c, op, x);
  return lt_apply1(c, op, 1, &x, &(lt_args_reduce){.dims = LT_ONE_DIM(dim), .keepdim = keepdim});
}

lt_tensor *lt_joined(lt_ctx *c, lt_tensor *a, lt_tensor *b, int64_t dim) {
  return lt_apply1(c, LT_OP_cat, LT_IN(a, b), &(lt_args_cat){.dim = dim});
}

static lt_dtype dtype_or(lt_dtype dtype, lt_dtype other) {
  return dtype != LT_DTYPE_NONE ? dtype : other;
}

static lt_device device_or_default(lt_ctx *c, lt_device device) {
  return device.kind >= 0 ? device : lt_device_default(c);
}

/* Counted from both ends, so that the last one is exactly `stop`. In f64, rounded once to the
   dtype. */
bool lt_expand_linspace(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_linspace *a = call->args;
  lt_device device = device_or_default(c, a->device);
  lt_tensor *k = lt_cast(c, lt_counting(c, a->steps, device), LT_F64);
  double step = a->steps > 1 ? (a->stop - a->start) / (double)(a->steps - 1) : 0;
  lt_tensor *low = lt_binary_scalar(c, LT_OP_mul, k, lt_scalar_of(step));
  low = lt_binary_scalar(c, LT_OP_add, low, lt_scalar_of(a->start));
  lt_tensor *high = lt_binary_scalar(c, LT_OP_sub, k, lt_scalar_of((double)(a->steps - 1)));
  high = lt_binary_scalar(c, LT_OP_mul, high, lt_scalar_of(step));
  high = lt_binary_scalar(c, LT_OP_add, high, lt_scalar_of(a->stop));
  lt_tensor *first = lt_binary_scalar(c, LT_OP_lt, k, lt_scalar_of((double)(a->steps / 2)));
  *out = lt_cast(c, lt_chosen(c, first, low, high), dtype_or(a->dtype, LT_F32));
  if (a->steps == 1)
    *out = lt_full(c, lt_one_dim(1), lt_scalar_of(a->start), dtype_or(a->dtype, LT_F32), device);
  return *out != NULL;
}

/* Ones that are both in the upper and in the lower triangle. */
bool lt_expand_eye(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_eye *a = call->args;
  lt_shape shape = {.ndim = 2, .size = {a->n, a->m}};
  lt_tensor *y = lt_full(c, shape, lt_scalar_int(1), dtype_or(a->dtype, LT_F32),
                         device_or_default(c, a->device));
  *out = lt_unary(c, LT_OP_triu, lt_unary(c, LT_OP_tril, y));
  return *out != NULL;
}
