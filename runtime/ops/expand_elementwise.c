/* runtime/ops/expand_elementwise.c: composite functions of corresponding elements.

   Each is written as the formula of PyTorch's documentation in terms of ops that have derivatives,
   so that its gradient, and the gradient of that, follow from theirs and no row has a rule of its
   own. The price is a tensor of x's size for each step: what is hot in training has a kernel
   instead. */
#include <float.h>

#include "ops/expand.h"

/* Short forms of the two connectives, which are used on masks only. */
static lt_tensor *either(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_binary(c, LT_OP_logical_or, a, b);
}

static lt_tensor *both(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_binary(c, LT_OP_logical_and, a, b);
}

/* |a - b| <= atol + rtol |b|, or equal: not symmetric in a and b, as in NumPy and PyTorch. The test
   for equality comes first, since of two equal infinities the difference is NaN; `isfinite` keeps
   an infinite difference from being within an infinite bound (b = inf). 16-bit values are
   subtracted in f32, where their difference is exact unless the exponents are far apart; NaNs are
   close only by `equal_nan`. */
bool lt_expand_isclose(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_isclose *a = call->args;
  lt_tensor *x = call->in[0], *y = call->in[1];
  lt_tensor *close = lt_binary(c, LT_OP_eq, x, y);
  if (a->equal_nan)
    close = either(c, close, both(c, lt_unary(c, LT_OP_isnan, x), lt_unary(c, LT_OP_isnan, y)));
  if (a->rtol != 0 || a->atol != 0) {
    lt_dtype wide = x->dtype == LT_F64 || y->dtype == LT_F64 ? LT_F64 : LT_F32;
    lt_tensor *allowed = lt_unary(c, LT_OP_abs, lt_cast(c, y, wide));
    allowed = lt_binary_scalar(c, LT_OP_mul, allowed, lt_scalar_of(a->rtol));
    allowed = lt_binary_scalar(c, LT_OP_add, allowed, lt_scalar_of(a->atol));
    lt_tensor *d = lt_binary(c, LT_OP_sub, lt_cast(c, x, wide), lt_cast(c, y, wide));
    d = lt_unary(c, LT_OP_abs, d);
    lt_tensor *within = both(c, lt_unary(c, LT_OP_isfinite, d),
                             lt_binary(c, LT_OP_le, d, allowed));
    close = either(c, close, within);
  }
  *out = close;
  return close != NULL;
}

/* The largest finite number of a dtype: 65504 is (2 - 2^-10) 2^15 of f16; bf16 has f32's exponents
   and 8 significant bits, so (2 - 2^-7) 2^127. */
static double largest(lt_dtype dtype) {
  return dtype == LT_F64   ? DBL_MAX
         : dtype == LT_F16 ? 65504
         : dtype == LT_F32 ? (double)FLT_MAX
                           : 0x1.fep127;
}

/* Masks are taken of x, not of y: a replacement that is itself infinite is not replaced again.
   Integers have nothing to replace and are copied. */
bool lt_expand_nan_to_num(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_nan_to_num *a = call->args;
  lt_tensor *x = call->in[0];
  if (!lt_dtype_is_float((lt_dtype)x->dtype)) return (*out = lt_unary(c, LT_OP_clone, x)) != NULL;
  double most = largest((lt_dtype)x->dtype), least = -most;
  if (a->posinf.kind != LT_NO_SCALAR) most = a->posinf.f;
  if (a->neginf.kind != LT_NO_SCALAR) least = a->neginf.f;
  lt_tensor *y = lt_filled(c, x, lt_unary(c, LT_OP_isnan, x), a->nan);
  y = lt_filled(c, y, lt_binary_scalar(c, LT_OP_eq, x, lt_scalar_of(INFINITY)), most);
  *out = lt_filled(c, y, lt_binary_scalar(c, LT_OP_eq, x, lt_scalar_of(-INFINITY)), least);
  return *out != NULL;
}

/* x + weight (other - x), computed from the nearer end: x + (other - x) is not always `other` in
   floating point, so that the one-sided formula would miss it at weight 1. PyTorch's kernel
   switches at |weight| = 0.5 for the same reason. */
bool lt_expand_lerp(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0], *other = call->in[1], *weight = call->in[2];
  lt_tensor *d = lt_binary(c, LT_OP_sub, other, x);
  lt_tensor *low = lt_binary(c, LT_OP_add, x, lt_binary(c, LT_OP_mul, d, weight));
  lt_tensor *rest = lt_apply1(c, LT_OP_sub, 1, &weight, &(lt_args_binary){.a = lt_scalar_int(1)});
  lt_tensor *high = lt_binary(c, LT_OP_sub, other, lt_binary(c, LT_OP_mul, d, rest));
  lt_tensor *near = lt_binary_scalar(c, LT_OP_lt, lt_unary(c, LT_OP_abs, weight),
                                     lt_scalar_of(0.5));
  *out = lt_chosen(c, near, low, high);
  return *out != NULL;
}

/* x + value (a op b). `value` multiplies in the dtype
   of a op b: of integers it must be whole. */
static bool add_combined(lt_ctx *c, const lt_call *call, lt_op op, lt_tensor **out) {
  const lt_args_addcmul *a = call->args;
  lt_tensor *y = lt_binary(c, op, call->in[1], call->in[2]);
  *out = lt_binary(c, LT_OP_add, call->in[0], lt_times(c, y, a->value, "value"));
  return *out != NULL;
}

bool lt_expand_addcmul(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return add_combined(c, call, LT_OP_mul, out);
}

bool lt_expand_addcdiv(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return add_combined(c, call, LT_OP_div, out);
}

/* x, or the bound that it is beyond. Comparisons with NaN are false: without the second test a
   bound of NaN would leave x as it is, where PyTorch gives NaN. */
static lt_tensor *bounded(lt_ctx *c, lt_tensor *x, lt_tensor *bound, lt_op beyond) {
  if (bound == NULL) return x;
  lt_tensor *out = either(c, lt_binary(c, beyond, x, bound), lt_unary(c, LT_OP_isnan, bound));
  return lt_chosen(c, out, bound, x);
}

bool lt_expand_clamp_tensor(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0];
  x = bounded(c, x, call->n_in > 1 ? call->in[1] : NULL, LT_OP_lt);
  *out = bounded(c, x, call->n_in > 2 ? call->in[2] : NULL, LT_OP_gt);
  return *out != NULL;
}

bool lt_expand_masked_fill_tensor(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0], *value = lt_cast(c, call->in[2], (lt_dtype)x->dtype);
  *out = lt_chosen(c, call->in[1], value, x);
  return *out != NULL;
}

/* a / b rounded toward 0. Integers never pass through a float, which holds only 24 (f32) or 53
   bits: a - fmod(a, b) is a multiple of b, of which floor_divide is exact. */
bool lt_expand_trunc_divide(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_binary *a = call->args;
  lt_dtype d = lt_result_type(call->in, call->n_in, a->a, a->b);
  if (lt_dtype_is_float(d)) {
    *out = lt_unary(c, LT_OP_trunc, lt_apply1(c, LT_OP_div, call->n_in, call->in, a));
    return *out != NULL;
  }
  lt_tensor *rest = lt_apply1(c, LT_OP_fmod, call->n_in, call->in, a), *whole;
  if (a->a.kind != LT_NO_SCALAR)
    whole = lt_apply1(c, LT_OP_sub, 1, &rest, &(lt_args_binary){.a = a->a});
  else
    whole = lt_binary(c, LT_OP_sub, call->in[0], rest);
  if (a->b.kind != LT_NO_SCALAR) *out = lt_binary_scalar(c, LT_OP_floor_divide, whole, a->b);
  else *out = lt_binary(c, LT_OP_floor_divide, whole, call->in[call->n_in - 1]);
  return *out != NULL;
}

/* Two's complement: ~x = -1 - x, also of unsigned dtypes, whose arithmetic wraps. */
bool lt_expand_bitwise_not(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0];
  *out = x->dtype == LT_BOOL
             ? lt_unary(c, LT_OP_logical_not, x)
             : lt_apply1(c, LT_OP_sub, 1, &x, &(lt_args_binary){.a = lt_scalar_int(-1)});
  return *out != NULL;
}

/* The p-norm along a dim, which stays with size 1 so that it broadcasts. */
static lt_tensor *length_of(lt_ctx *c, lt_tensor *x, double p, int64_t dim) {
  return lt_apply1(c, LT_OP_norm, 1, &x,
                   &(lt_args_norm){.p = p, .dims = LT_ONE_DIM(dim), .keepdim = true});
}

/* x / max(|x|_p, eps): the bound is on the length, as in torch.nn.functional.normalize, so that a
   vector of zeros gives zeros and its gradient is finite. */
bool lt_expand_normalize(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_normalize *a = call->args;
  lt_tensor *n = length_of(c, call->in[0], a->p, a->dim);
  const lt_args_clamp least = {.min = lt_scalar_of(a->eps)};
  *out = lt_binary(c, LT_OP_div, call->in[0], lt_apply1(c, LT_OP_clamp, 1, &n, &least));
  return *out != NULL;
}

/* x . y / (max(|x|, eps) max(|y|, eps)). Each is divided by its length before the product is taken:
   x . y would overflow f16 or f32 where the quotient is about 1. Both are broadcast first, as a
   length is that of the broadcast vector along `dim`. */
bool lt_expand_cosine_similarity(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_cosine_similarity *a = call->args;
  const lt_args_normalize unit = {.p = 2, .dim = a->dim, .eps = a->eps};
  lt_shape shape = lt_tensor_shape(call->in[0]);
  lt_shape_broadcast(&shape, lt_tensor_shape(call->in[1]));
  lt_tensor *x = lt_expand_to(c, call->in[0], shape), *y = lt_expand_to(c, call->in[1], shape);
  x = lt_apply1(c, LT_OP_normalize, 1, &x, &unit);
  y = lt_apply1(c, LT_OP_normalize, 1, &y, &unit);
  *out = lt_reduced(c, LT_OP_sum, lt_binary(c, LT_OP_mul, x, y), a->dim, false);
  return *out != NULL;
}
