/* runtime/ops/expand_order.c: medians, quantiles, modes and running extremes and products.

   quantile: R. Hyndman and Y. Fan, Sample Quantiles in Statistical Packages, 1996 (their
   definition 7 for "linear").

   All sort once along the dim, O(n log n) for each line, and take elements of the sorted lines by
   index. The values that are returned are gathered from the input itself, not from its sorted copy:
   so the gradient goes to the element that was chosen, by gather's rule. */
#include "ops/expand.h"

/* both[0] = sorted values, both[1] = where they come from; NaNs are last. */
static bool sort_along(lt_ctx *c, lt_tensor *x, int64_t dim, lt_tensor **both) {
  return x != NULL && lt_apply(c, LT_OP_sort, 1, &x, &(lt_args_sort){.dim = dim}, 2, both);
}

/* A tensor without dims counts as one line of one element. */
static int64_t size_at(const lt_tensor *x, int64_t dim) { return x->ndim > 0 ? x->size[dim] : 1; }

/* [..., 1, ...]: how many elements along a dim are not NaN. */
static lt_tensor *count_numbers(lt_ctx *c, lt_tensor *x, int64_t dim) {
  lt_tensor *is = lt_unary(c, LT_OP_logical_not, lt_unary(c, LT_OP_isnan, x));
  return lt_reduced(c, LT_OP_sum, is, dim, true);
}

/* x at an index [..., 1, ...] along the dim, which goes unless it is kept. */
static lt_tensor *pick(lt_ctx *c, lt_tensor *x, int64_t dim, lt_tensor *index, bool keepdim) {
  if (x == NULL || index == NULL || x->ndim == 0) return x;
  lt_tensor *y = lt_gather_along(c, x, dim, index);
  const lt_args_squeeze args = {.dims = LT_ONE_DIM(dim)};
  return keepdim || y == NULL ? y : lt_apply1(c, LT_OP_squeeze, 1, &y, &args);
}

/* The lower of the two in the middle, as torch.median (NumPy takes their mean): element (n - 1) / 2
   of n sorted ones. NaNs sort last, so that the count of numbers is the index of the first NaN: it
   is the median of a line that has one, and nanmedian's line ends there. Of a line of NaNs only k =
   -1 becomes 0: NaN. */
static bool middle(lt_ctx *c, const lt_call *call, bool skip_nan, lt_tensor **out) {
  const lt_args_extremum *a = call->args;
  bool all = a->dim == LT_NO_DIM;
  int64_t dim = all ? 0 : a->dim;
  lt_tensor *x = all ? lt_flat(c, call->in[0]) : call->in[0], *both[2] = {NULL};
  if (!sort_along(c, lt_detach(c, x), dim, both)) return false;
  int64_t n = size_at(x, dim);
  lt_tensor *numbers = count_numbers(c, x, dim);
  lt_tensor *k = lt_binary_scalar(c, LT_OP_sub, numbers, lt_scalar_int(1));
  k = lt_binary_scalar(c, LT_OP_floor_divide, k, lt_scalar_int(2));
  k = lt_binary_scalar(c, LT_OP_maximum, k, lt_scalar_int(0));
  if (!skip_nan) { /* the first NaN follows the numbers */
    lt_tensor *has = lt_binary_scalar(c, LT_OP_lt, numbers, lt_scalar_int(n));
    k = lt_chosen(c, has, numbers, k);
  }
  lt_tensor *index = x->ndim == 0 ? both[1] : pick(c, both[1], dim, k, true);
  out[0] = pick(c, x, dim, index, a->keepdim && !all);
  if (all && a->keepdim && out[0] != NULL) {
    lt_shape ones = {.ndim = call->in[0]->ndim};
    for (int d = 0; d < ones.ndim; d++) ones.size[d] = 1;
    out[0] = lt_reshape(c, out[0], ones);
  }
  if (x->ndim == 0) out[0] = lt_unary(c, LT_OP_clone, x);
  if (!all) out[1] = pick(c, both[1], dim, k, a->keepdim);
  return lt_ok(c);
}

bool lt_expand_median(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return middle(c, call, false, out);
}

bool lt_expand_nanmedian(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return middle(c, call, true, out);
}

/* The most frequent: in sorted order, where the run of equal elements that ends here is longest.
   Place minus beginning of the run is the run's length so far; the beginning is carried forward by
   cummax, since places rise. argmax takes the first of equal lengths: the smallest value wins a
   tie, and the index is that of the last of its elements in x. */
bool lt_expand_mode(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_mode *a = call->args;
  lt_tensor *x = call->in[0], *both[2] = {NULL};
  if (!sort_along(c, lt_detach(c, x), a->dim, both)) return false;
  int64_t n = size_at(x, a->dim);
  if (x->ndim == 0) {
    out[0] = lt_unary(c, LT_OP_clone, x), out[1] = both[1];
    return lt_ok(c);
  }
  lt_shape each = {.ndim = x->ndim};
  for (int d = 0; d < each.ndim; d++) each.size[d] = d == a->dim ? n : 1;
  lt_tensor *place = lt_reshape(c, lt_counting(c, n, x->storage->device), each);
  place = lt_expand_to(c, place, lt_tensor_shape(x));
  lt_tensor *begin = lt_binary_scalar(c, LT_OP_mul, place, lt_scalar_int(0));
  if (n > 1 && begin != NULL) { /* where a run begins its place, which is then carried on */
    int dim = (int)a->dim;
    lt_tensor *differs = lt_binary(c, LT_OP_ne, lt_slice(c, both[0], dim, 1, n - 1, 1),
                                   lt_slice(c, both[0], dim, 0, n - 1, 1));
    lt_tensor *rest = lt_slice(c, place, dim, 1, n - 1, 1);
    rest = lt_filled(c, rest, lt_unary(c, LT_OP_logical_not, differs), 0);
    begin = lt_joined(c, lt_slice(c, begin, dim, 0, 1, 1), rest, dim);
    lt_tensor *top[2] = {NULL};
    if (!lt_apply(c, LT_OP_cummax, 1, &begin, &(lt_args_scan){.dim = dim}, 2, top)) return false;
    begin = top[0];
  }
  lt_tensor *length = lt_binary(c, LT_OP_sub, place, begin);
  lt_tensor *best = lt_apply1(c, LT_OP_argmax, 1, &length,
                              &(lt_args_arg_reduce){.dim = a->dim, .keepdim = true});
  out[0] = pick(c, x, a->dim, lt_gather_along(c, both[1], a->dim, best), a->keepdim);
  out[1] = pick(c, both[1], a->dim, best, a->keepdim);
  return lt_ok(c);
}

/* Between the elements at floor(q (n - 1)) and the next one; a NaN in a line is its result. q (n -
   1) is rounded in x's dtype, f32 for f32, as torch.quantile does: of lines beyond 2^24 elements
   neighbouring places are then one number. "lower", "higher" and "nearest" are interpolation with
   both ends at one element. The dim of the quantiles comes first in the result. */
bool lt_expand_quantile(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_quantile *a = call->args;
  lt_tensor *x = call->in[0], *q = call->in[1], *both[2] = {NULL};
  bool all = a->dim == LT_NO_DIM;
  int64_t dim = all || x->ndim == 0 ? 0 : a->dim;
  lt_shape result = lt_tensor_shape(x);
  if (all || x->ndim == 0) x = lt_flat(c, x);
  if (!sort_along(c, x, dim, both)) return false;
  int64_t n = x->size[dim], m = q->numel;
  lt_tensor *at = lt_binary_scalar(c, LT_OP_mul, lt_cast(c, lt_flat(c, q), (lt_dtype)x->dtype),
                                   lt_scalar_of((double)(n - 1)));
  lt_tensor *low = lt_unary(c, LT_OP_floor, at), *high = lt_unary(c, LT_OP_ceil, at);
  if (a->interpolation == LT_INTERPOLATION_lower) at = high = low;
  if (a->interpolation == LT_INTERPOLATION_higher) at = low = high;
  if (a->interpolation == LT_INTERPOLATION_nearest) at = low = high = lt_unary(c, LT_OP_round, at);
  lt_tensor *share = lt_binary(c, LT_OP_sub, at, low);
  if (a->interpolation == LT_INTERPOLATION_midpoint)
    share = lt_binary_scalar(c, LT_OP_mul, lt_binary(c, LT_OP_sub, high, low), lt_scalar_of(0.5));
  lt_shape each = {.ndim = x->ndim};
  for (int d = 0; d < each.ndim; d++) each.size[d] = d == dim ? m : 1;
  share = lt_cast(c, lt_reshape(c, share, each), (lt_dtype)x->dtype);
  lt_tensor *lower = lt_taken(c, both[0], dim, lt_cast(c, low, LT_I64));
  lt_tensor *upper = lt_taken(c, both[0], dim, lt_cast(c, high, LT_I64));
  lt_tensor *y = lt_apply1(c, LT_OP_lerp, LT_IN(lower, upper, share), NULL);
  lt_tensor *has = lt_binary_scalar(c, LT_OP_lt, count_numbers(c, x, dim), lt_scalar_int(n));
  y = lt_filled(c, y, has, NAN);
  const lt_args_movedim first = {.source = LT_ONE_DIM(dim), .destination = LT_ONE_DIM(0)};
  y = lt_apply1(c, LT_OP_movedim, 1, &y, &first);
  lt_shape shape = {0};
  if (q->ndim > 0) shape.size[shape.ndim++] = m;
  for (int d = 0; d < result.ndim; d++) {
    bool gone = all || d == a->dim;
    if (!gone || a->keepdim) shape.size[shape.ndim++] = gone ? 1 : result.size[d];
  }
  *out = lt_reshape(c, y, shape);
  return *out != NULL;
}

/* Running results of an associative op: each doubling of the step joins what lies that far before
   (W. Hillis and G. Steele, Data Parallel Algorithms, 1986): log2(n) operations, so that its
   derivative follows from theirs. */
static lt_tensor *running(lt_ctx *c, lt_op op, lt_tensor *x, int dim) {
  if (x == NULL || x->ndim == 0) return x;
  int64_t n = x->size[dim];
  for (int64_t step = 1; step < n && x != NULL; step *= 2) {
    lt_tensor *upper = lt_binary(c, op, lt_slice(c, x, dim, step, n - step, 1),
                                 lt_slice(c, x, dim, 0, n - step, 1));
    x = lt_joined(c, lt_slice(c, x, dim, 0, step, 1), upper, dim);
  }
  return x;
}

/* 16-bit values are scanned in f32 and rounded once at the end; integers have the products of
   PyTorch (i64) and logarithms in f32. */
static bool scan(lt_ctx *c, const lt_call *call, lt_op op, lt_tensor **out) {
  lt_tensor *x = call->in[0];
  lt_dtype own = (lt_dtype)x->dtype, wide = own;
  if (!lt_dtype_is_float(own)) own = wide = op == LT_OP_logaddexp ? LT_F32 : LT_I64;
  else if (own != LT_F64) wide = LT_F32;
  lt_tensor *y = running(c, op, lt_cast(c, x, wide), (int)((const lt_args_scan *)call->args)->dim);
  *out = lt_cast(c, y, own);
  if (*out == x) *out = lt_unary(c, LT_OP_clone, x);
  return *out != NULL;
}

bool lt_expand_cumprod(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return scan(c, call, LT_OP_mul, out);
}

bool lt_expand_logcumsumexp(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return scan(c, call, LT_OP_logaddexp, out);
}

/* The index is that of the last element that is as large as the running extreme, or is NaN as it
   is: a second scan, the maximum of the places where an element equals the running extreme. NaN,
   once met, stays: `maximum` and `minimum` propagate it. */
static bool running_extreme(lt_ctx *c, const lt_call *call, lt_op op, lt_tensor **out) {
  lt_tensor *x = call->in[0], *own = lt_detach(c, x);
  int dim = (int)((const lt_args_scan *)call->args)->dim;
  lt_tensor *y = running(c, op, own, dim);
  if (y == NULL) return false;
  lt_tensor *both = lt_binary(c, LT_OP_logical_and, lt_unary(c, LT_OP_isnan, own),
                              lt_unary(c, LT_OP_isnan, y));
  lt_tensor *at = lt_binary(c, LT_OP_logical_or, lt_binary(c, LT_OP_eq, own, y), both);
  lt_shape each = {.ndim = x->ndim};
  for (int d = 0; d < each.ndim; d++) each.size[d] = d == dim ? x->size[d] : 1;
  lt_tensor *place = lt_reshape(c, lt_counting(c, size_at(x, dim), x->storage->device), each);
  place = lt_expand_to(c, place, lt_tensor_shape(x));
  place = lt_filled(c, place, lt_unary(c, LT_OP_logical_not, at), 0);
  out[1] = running(c, LT_OP_maximum, place, dim);
  out[0] = x->ndim == 0 ? lt_unary(c, LT_OP_clone, x) : lt_gather_along(c, x, dim, out[1]);
  return lt_ok(c);
}

bool lt_expand_cummax(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return running_extreme(c, call, LT_OP_maximum, out);
}

bool lt_expand_cummin(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return running_extreme(c, call, LT_OP_minimum, out);
}

/* (smallest, largest) */
bool lt_expand_aminmax(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_arg_reduce *a = call->args;
  const lt_args_reduce of = {.dims = a->dim == LT_NO_DIM ? LT_NO_DIMS : LT_ONE_DIM(a->dim),
                             .keepdim = a->keepdim};
  out[0] = lt_apply1(c, LT_OP_amin, 1, call->in, &of);
  out[1] = lt_apply1(c, LT_OP_amax, 1, call->in, &of);
  return lt_ok(c);
}
