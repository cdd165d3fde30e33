/* runtime/ops/expand_reduce.c: reductions written as other ops; f16 and bf16 go through f32. */
#include <float.h>

#include "ops/expand.h"

/* A reduction over dims that are resolved. */
static lt_tensor *reduced(lt_ctx *c, lt_op op, lt_tensor *x, lt_dims dims, bool keepdim) {
  if (dims.n == 0) return x; /* a 0-d tensor; none given would mean all */
  return lt_apply1(c, op, 1, &x, &(lt_args_reduce){.dims = dims, .keepdim = keepdim});
}

/* Mean of the squared distance from the mean; the sum is divided by n - correction (1: Bessel's).
   Two passes, as E[x^2] - E[x]^2 cancels; a divisor below 0 counts as 0, which gives PyTorch's NaN
   or inf for fewer elements than the correction. */
static lt_tensor *variance(lt_ctx *c, const lt_call *call) {
  const lt_args_variance *a = call->args;
  lt_tensor *x = lt_wide(c, call->in[0]);
  if (x == NULL) return NULL;
  double n = 1;
  for (int k = 0; k < a->dims.n; k++) n *= (double)x->size[a->dims.dim[k]];
  lt_tensor *d = lt_binary(c, LT_OP_sub, x, reduced(c, LT_OP_mean, x, a->dims, true));
  d = reduced(c, LT_OP_sum, lt_binary(c, LT_OP_mul, d, d), a->dims, a->keepdim);
  double by = n - a->correction;
  return lt_binary_scalar(c, LT_OP_div, d, lt_scalar_of(by > 0 ? by : 0));
}

bool lt_expand_var(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  *out = lt_cast(c, variance(c, call), (lt_dtype)call->in[0]->dtype);
  return *out != NULL;
}

/* sqrt has an infinite derivative at 0, and 0 * inf is NaN in the chain rule. Exactly at 0 1 is
   added inside and taken off outside: the value stays 0, the derivative is 1/2 times that of x,
   which for sums of squares is 0: PyTorch's subgradient of a norm. */
lt_tensor *lt_root(lt_ctx *c, lt_tensor *x) {
  lt_tensor *zero = lt_binary_scalar(c, LT_OP_eq, x, lt_scalar_of(0));
  if (zero == NULL) return NULL;
  zero = lt_cast(c, zero, (lt_dtype)x->dtype);
  x = lt_unary(c, LT_OP_sqrt, lt_binary(c, LT_OP_add, x, zero));
  return lt_binary(c, LT_OP_sub, x, zero);
}

bool lt_expand_std(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  *out = lt_cast(c, lt_root(c, variance(c, call)), (lt_dtype)call->in[0]->dtype);
  return *out != NULL;
}

/* The variance or its root, and the mean. */
static bool with_mean(lt_ctx *c, const lt_call *call, lt_op op, lt_tensor **out) {
  const lt_args_moments *a = call->args;
  const lt_args_variance of = {.dims = a->dims, .keepdim = a->keepdim, .correction = a->correction};
  out[0] = lt_apply1(c, op, 1, call->in, &of);
  out[1] = lt_apply1(c, LT_OP_mean, 1, call->in,
                     &(lt_args_reduce){.dims = a->dims, .keepdim = a->keepdim});
  return lt_ok(c);
}

bool lt_expand_var_mean(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return with_mean(c, call, LT_OP_var, out);
}

bool lt_expand_std_mean(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return with_mean(c, call, LT_OP_std, out);
}

bool lt_expand_count_nonzero(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *is = lt_binary_scalar(c, LT_OP_ne, call->in[0], lt_scalar_int(0));
  *out = lt_apply1(c, LT_OP_sum, 1, &is, call->args);
  return *out != NULL;
}

bool lt_expand_nansum(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0];
  x = lt_filled(c, x, lt_unary(c, LT_OP_isnan, x), 0);
  *out = lt_apply1(c, LT_OP_sum, 1, &x, call->args);
  return *out != NULL;
}

/* The sum over the count of numbers: of NaNs alone 0 / 0, as torch.nanmean. */
bool lt_expand_nanmean(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *is = lt_unary(c, LT_OP_logical_not, lt_unary(c, LT_OP_isnan, call->in[0]));
  lt_tensor *n = lt_apply1(c, LT_OP_sum, 1, &is, call->args);
  lt_tensor *sum = lt_apply1(c, LT_OP_nansum, 1, call->in, call->args);
  *out = lt_binary(c, LT_OP_div, sum, n);
  return *out != NULL;
}

/* Its caller has taken the largest off, so that no exponential overflows and one of them is 1. */
static lt_tensor *log_of_sum(lt_ctx *c, lt_tensor *e, lt_dims dims) {
  return lt_unary(c, LT_OP_log, reduced(c, LT_OP_sum, lt_unary(c, LT_OP_exp, e), dims, true));
}

/* log(sum(exp(x - m))) + m, m the largest element (cut to finite numbers: inf - inf is NaN).
   Without m exp overflows f32 from 88.7 on. m is detached: its derivatives cancel exactly, d
   log(sum) being the softmax either way. */
bool lt_expand_logsumexp(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_reduce *a = call->args;
  lt_tensor *x = call->in[0], *y;
  x = lt_dtype_is_float((lt_dtype)x->dtype) ? lt_wide(c, x) : lt_cast(c, x, LT_F32);
  if (x == NULL) return false;
  double most = x->dtype == LT_F64 ? DBL_MAX : (double)FLT_MAX;
  const lt_args_clamp finite = {.min = lt_scalar_of(-most), .max = lt_scalar_of(most)};
  if (x->numel == 0) {
    y = log_of_sum(c, x, a->dims);
  } else {
    lt_tensor *m = reduced(c, LT_OP_amax, lt_detach(c, x), a->dims, true);
    m = lt_apply1(c, LT_OP_clamp, 1, &m, &finite);
    y = lt_binary(c, LT_OP_add, log_of_sum(c, lt_binary(c, LT_OP_sub, x, m), a->dims), m);
  }
  lt_shape shape = {0};
  for (int k = 0, r = 0; k < x->ndim; k++) {
    bool gone = r < a->dims.n && a->dims.dim[r] == k;
    if (gone) r++;
    if (!gone || a->keepdim) shape.size[shape.ndim++] = gone ? 1 : x->size[k];
  }
  if (y != NULL && y->ndim != shape.ndim) y = lt_reshape(c, y, shape);
  lt_dtype dtype = (lt_dtype)call->in[0]->dtype;
  *out = lt_cast(c, y, lt_dtype_is_float(dtype) ? dtype : LT_F32);
  return *out != NULL;
}

static lt_tensor *filled(lt_ctx *c, lt_tensor *x, lt_tensor *mask, double value) {
  const lt_args_masked_fill args = {.value = lt_scalar_of(value)};
  return lt_apply1(c, LT_OP_masked_fill, LT_IN(x, mask), &args);
}

/* x^p, and `at_zero` with derivative 0 where x is 0: there p x^(p - 1) is infinite for p < 1, and
   times 0 NaN. The base is made 1 before, not after, so that no infinity is ever in the graph. */
static lt_tensor *power_but_of_zero(lt_ctx *c, lt_tensor *x, double p, double at_zero) {
  lt_tensor *zero = lt_binary_scalar(c, LT_OP_eq, x, lt_scalar_of(0));
  x = lt_binary_scalar(c, LT_OP_pow, filled(c, x, zero, 1), lt_scalar_of(p));
  return filled(c, x, zero, at_zero);
}

/* |x|^p with derivative 0 where x is 0; p = 0: 1 for what is not 0. */
static lt_tensor *powers(lt_ctx *c, lt_tensor *x, double p) {
  x = lt_unary(c, LT_OP_abs, x);
  if (p != 0) return power_but_of_zero(c, x, p, p > 0 ? 0 : INFINITY);
  lt_tensor *other = lt_binary_scalar(c, LT_OP_ne, x, lt_scalar_of(0));
  return filled(c, filled(c, x, other, 1), lt_unary(c, LT_OP_logical_not, other), 0);
}

/* (sum |x|^p)^(1/p); p = inf: the largest, 0: how many are not zero. Squares of f32 overflow beyond
   1.8e19: there is no scaling as in BLAS's nrm2. p = 1 and 2 have forms with
   cheaper derivatives than pow. */
bool lt_expand_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_norm *a = call->args;
  lt_tensor *x = lt_wide(c, call->in[0]), *y;
  double p = a->p;
  if (x == NULL) return false;
  if (p == 2) {
    y = lt_root(c, reduced(c, LT_OP_sum, lt_binary(c, LT_OP_mul, x, x), a->dims, a->keepdim));
  } else if (isinf(p)) {
    y = reduced(c, p > 0 ? LT_OP_amax : LT_OP_amin, lt_unary(c, LT_OP_abs, x), a->dims, a->keepdim);
  } else if (p == 1) {
    y = reduced(c, LT_OP_sum, lt_unary(c, LT_OP_abs, x), a->dims, a->keepdim);
  } else {
    y = reduced(c, LT_OP_sum, powers(c, x, p), a->dims, a->keepdim);
    if (p != 0) y = power_but_of_zero(c, y, 1 / p, p > 0 ? 0 : INFINITY);
  }
  *out = lt_cast(c, y, (lt_dtype)call->in[0]->dtype);
  return *out != NULL;
}
