/* runtime/ops/expand.h: composite ops written as other ops, one function for each row with EXPAND.
   Of kinds whose first result alone is shown (FIRST) it may leave the others NULL. */
#ifndef LT_OPS_EXPAND_H
#define LT_OPS_EXPAND_H

#include <float.h>

#include "ops/op.h"

#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) LT_DECLARE_##devices(name)
#define LT_DECLARE_ALL(name)
#define LT_DECLARE_HOST(name)
#define LT_DECLARE_VIEW(name)
#define LT_DECLARE_COPY(name)
#define LT_DECLARE_ALL_EXPAND(name) LT_DECLARE_EXPAND(name)
#define LT_DECLARE_EXPAND(name) \
  bool lt_expand_##name(lt_ctx *c, const lt_call *call, lt_tensor **out);
#include "ops/ops.def"
#undef LT_DECLARE_ALL
#undef LT_DECLARE_HOST
#undef LT_DECLARE_VIEW
#undef LT_DECLARE_COPY
#undef LT_DECLARE_ALL_EXPAND
#undef LT_DECLARE_EXPAND

/* x in f32 unless it is f64; NULL for NULL. */
lt_tensor *lt_wide(lt_ctx *c, lt_tensor *x);

/* The loss of each element as it is, their mean, sum, or sum divided by the first size. */
bool lt_reduce_loss(lt_ctx *c, int64_t reduction, lt_tensor *loss, lt_tensor **out);

/* Short forms, for formulas of several steps. */
static inline lt_tensor *lt_add(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_binary(c, LT_OP_add, a, b);
}
static inline lt_tensor *lt_sub(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_binary(c, LT_OP_sub, a, b);
}
static inline lt_tensor *lt_mul(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_binary(c, LT_OP_mul, a, b);
}
static inline lt_tensor *lt_plus(lt_ctx *c, lt_tensor *x, double by) {
  return by == 0 ? x : lt_binary_scalar(c, LT_OP_add, x, lt_scalar_of(by));
}
static inline lt_tensor *lt_scaled(lt_ctx *c, lt_tensor *x, double by) {
  return by == 1 ? x : lt_binary_scalar(c, LT_OP_mul, x, lt_scalar_of(by));
}
/* log(1 + exp(x)) everywhere: a threshold of 20 is for f32. */
static inline lt_tensor *lt_softplus(lt_ctx *c, lt_tensor *x) {
  return lt_apply1(c, LT_OP_softplus, 1, &x, &(lt_args_unary_numbers){.p = 1, .q = FLT_MAX});
}
/* k - x */
static inline lt_tensor *lt_from(lt_ctx *c, double k, lt_tensor *x) {
  return lt_plus(c, lt_unary(c, LT_OP_neg, x), k);
}
static inline lt_tensor *lt_at_least(lt_ctx *c, lt_tensor *x, double k) {
  return lt_apply1(c, LT_OP_clamp, 1, &x, &(lt_args_clamp){.min = lt_scalar_of(k)});
}
static inline lt_tensor *lt_equals(lt_ctx *c, lt_tensor *x, double k) {
  return lt_binary_scalar(c, LT_OP_eq, x, lt_scalar_of(k));
}
/* x with `value` where the mask is true. */
static inline lt_tensor *lt_filled(lt_ctx *c, lt_tensor *x, lt_tensor *mask, double value) {
  return lt_apply1(c, LT_OP_masked_fill, LT_IN(x, mask),
                   &(lt_args_masked_fill){.value = lt_scalar_of(value)});
}
/* Sum over one dim. */
static inline lt_tensor *lt_summed(lt_ctx *c, lt_tensor *x, int dim, bool keepdim) {
  return lt_apply1(c, LT_OP_sum, 1, &x,
                   &(lt_args_reduce){.dims = LT_ONE_DIM(dim), .keepdim = keepdim});
}

/* Short forms that these definitions share (expand_make.c). */
lt_shape lt_one_dim(int64_t n);
lt_tensor *lt_flat(lt_ctx *c, lt_tensor *x);
lt_tensor *lt_counting(lt_ctx *c, int64_t n, lt_device device); /* 0, 1, ..., n - 1 as i64 */
lt_tensor *lt_chosen(lt_ctx *c, lt_tensor *mask, lt_tensor *yes, lt_tensor *no);
/* index_select and gather. */
lt_tensor *lt_taken(lt_ctx *c, lt_tensor *x, int64_t dim, lt_tensor *index);
lt_tensor *lt_gather_along(lt_ctx *c, lt_tensor *x, int64_t dim, lt_tensor *index);
lt_tensor *lt_joined(lt_ctx *c, lt_tensor *a, lt_tensor *b, int64_t dim);
/* A reduction over one dim, that of a tensor without dims too. */
lt_tensor *lt_reduced(lt_ctx *c, lt_op op, lt_tensor *x, int64_t dim, bool keepdim);

/* sqrt(x) whose derivative at 0 is 0. */
lt_tensor *lt_root(lt_ctx *c, lt_tensor *x);

/* x times the argument `name` of an op in x's dtype, which for integers must be whole. */
lt_tensor *lt_times(lt_ctx *c, lt_tensor *x, double factor, const char *name);

#endif
