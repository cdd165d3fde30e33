/* runtime/ops/expand_scatter.c: composite ops that put elements where an index says.

   An element's place in the row-major result is its key. Of several for one place the last one
   stays (rows_put), so that ops which choose among them sort first.

   Atomic adds, PyTorch's way on GPUs, would be faster and give other sums in each run (its
   documentation lists scatter_add among the nondeterministic ops). A sort before `put`, O(N log N),
   makes the choice the same in every run. */
#include "ops/expand.h"
#include "ops/node.h"

/* How many of input 2 take part: as many as there are indices. */
static lt_tensor *part_of(lt_ctx *c, lt_tensor *x, const lt_tensor *index) {
  x = lt_flat(c, x);
  return x == NULL || x->numel == index->numel ? x : lt_slice(c, x, 0, 0, index->numel, 1);
}

/* The first elements along each dim of x, as many as the index has: PyTorch lets the source be
   larger than the index, and ignores the rest. */
static lt_tensor *corner(lt_ctx *c, lt_tensor *x, const lt_tensor *index) {
  for (int k = 0; x != NULL && k < x->ndim && x->ndim == index->ndim; k++)
    if (x->size[k] != index->size[k]) x = lt_slice(c, x, k, 0, index->size[k], 1);
  return part_of(c, x, index);
}

/* [N]: the keys of an index [...] along `dim` of x: all other coordinates are those of the index's
   own element. index_flatten multiplies the coordinates out and checks the range, negative ones
   included; along the others it gets ranges that broadcast. */
static lt_tensor *keys(lt_ctx *c, lt_tensor *x, int64_t dim, lt_tensor *index) {
  lt_tensor *at[LT_MAX_DIMS];
  lt_args_index_flatten args = {.dims = {.n = x->ndim}, .full = {.n = x->ndim}};
  if (x->ndim == 0) return lt_flat(c, index);
  index = lt_cast(c, index, LT_I64);
  if (index != NULL && index->ndim == 0) index = lt_flat(c, index);
  for (int k = 0; k < x->ndim && index != NULL; k++) {
    lt_shape s = {.ndim = x->ndim};
    for (int d = 0; d < s.ndim; d++) s.size[d] = d == k ? index->size[k] : 1;
    at[k] = k == dim ? index
                     : lt_reshape(c, lt_counting(c, index->size[k], x->storage->device), s);
    args.dims.dim[k] = k, args.full.size[k] = x->size[k];
  }
  return lt_ok(c) ? lt_flat(c, lt_apply1(c, LT_OP_index_flatten, x->ndim, at, &args)) : NULL;
}

/* The list x with values at the keys. */
static lt_tensor *put(lt_ctx *c, lt_tensor *x, lt_tensor *values, lt_tensor *at) {
  return lt_apply1(c, LT_OP_rows_put, LT_IN(x, values, at), &(lt_args_rows_put){0});
}

/* x + the sum of the values of each key, in the order of the list. */
static lt_tensor *added(lt_ctx *c, lt_tensor *x, lt_tensor *values, lt_tensor *at) {
  return lt_apply1(c, LT_OP_scatter_add, LT_IN(x, at, values), &(lt_args_scatter_add){.dim = 0});
}

/* A tensor of `value` with the shape, dtype and device of `like`. */
static lt_tensor *same(lt_ctx *c, lt_tensor *like, double value) {
  return lt_full(c, lt_tensor_shape(like), lt_scalar_of(value), (lt_dtype)like->dtype,
                 like->storage->device);
}

/* The order that puts the values of a list ascending or descending, NaN last in either: the last of
   a key is what `put` keeps, so a NaN wins, as in PyTorch's amax and amin. */
static lt_tensor *sorted(lt_ctx *c, lt_tensor *values, bool descending) {
  if (descending && lt_dtype_is_float((lt_dtype)values->dtype))
    values = lt_filled(c, values, lt_unary(c, LT_OP_isnan, values), -INFINITY);
  const lt_args_argsort args = {.dim = 0, .descending = descending};
  return lt_apply1(c, LT_OP_argsort, 1, &values, &args);
}

/* Where z equals y, a NaN being equal to a NaN. */
static lt_tensor *equals(lt_ctx *c, lt_tensor *z, lt_tensor *y) {
  lt_tensor *both = lt_binary(c, LT_OP_logical_and, lt_unary(c, LT_OP_isnan, z),
                              lt_unary(c, LT_OP_isnan, y));
  return lt_binary(c, LT_OP_logical_or, lt_binary(c, LT_OP_eq, z, y), both);
}

/* 0 with the derivative of z where `mask` is true: z - detach(z). Infinite z are left out, whose
   difference is NaN: their gradient is 0. */
static lt_tensor *derivative_of(lt_ctx *c, lt_tensor *z, lt_tensor *mask) {
  lt_tensor *d = lt_binary(c, LT_OP_sub, z, lt_detach(c, z));
  mask = lt_binary(c, LT_OP_logical_and, mask, lt_unary(c, LT_OP_isfinite, lt_detach(c, z)));
  return lt_filled(c, d, lt_unary(c, LT_OP_logical_not, mask), 0);
}

/* The largest (smallest) for each place; what is equal to it shares the gradient evenly, as in
   PyTorch's scatter_reduce. The value is made without history; then a term that is 0 is added, the
   mean of what won, which carries the derivative: max has no formula in differentiable ops that
   would split ties so. */
static lt_tensor *extremes(lt_ctx *c, const lt_args_scatter_reduce *a, lt_tensor *x,
                           lt_tensor *values, lt_tensor *at) {
  bool largest = a->reduce == LT_REDUCE_amax;
  lt_tensor *z = lt_detach(c, values), *own = lt_detach(c, x);
  lt_tensor *order = sorted(c, z, !largest);
  lt_tensor *y = put(c, own, lt_taken(c, z, 0, order), lt_taken(c, at, 0, order));
  if (a->include_self) y = lt_binary(c, largest ? LT_OP_maximum : LT_OP_minimum, y, own);
  if (!lt_ok(c) || !lt_recording(c, LT_IN(x, values))) return y;
  lt_tensor *won = equals(c, z, lt_taken(c, y, 0, at)), *kept = equals(c, own, y);
  lt_dtype dtype = (lt_dtype)x->dtype;
  if (!a->include_self) {
    lt_tensor *yes = lt_full(c, lt_one_dim(at->numel), lt_scalar_int(0), LT_BOOL,
                             x->storage->device);
    kept = put(c, lt_unary(c, LT_OP_isnan, same(c, own, NAN)), yes, at);
  }
  lt_tensor *count = added(c, lt_cast(c, kept, dtype), lt_cast(c, won, dtype), at);
  lt_tensor *d = added(c, derivative_of(c, x, kept), derivative_of(c, values, won), at);
  count = lt_binary_scalar(c, LT_OP_maximum, count, lt_scalar_of(1));
  return lt_binary(c, LT_OP_add, y, lt_binary(c, LT_OP_div, d, count));
}

/* Products: with equal keys side by side, each doubling of the step multiplies what has the same
   key that far before it (the scan of expand_order.c, by segments); the last of a key then has
   them all. log2(N) passes; unlike division of the product of all by one element, derivatives are
   right where an element is 0. */
static lt_tensor *products(lt_ctx *c, lt_tensor *x, lt_tensor *values, lt_tensor *at) {
  lt_tensor *order = sorted(c, at, false);
  values = lt_taken(c, values, 0, order), at = lt_taken(c, at, 0, order);
  if (!lt_ok(c)) return NULL;
  int64_t n = at->numel;
  for (int64_t step = 1; step < n && lt_ok(c); step *= 2) {
    lt_tensor *same_key = lt_binary(c, LT_OP_eq, lt_slice(c, at, 0, step, n - step, 1),
                                    lt_slice(c, at, 0, 0, n - step, 1));
    lt_tensor *lower = lt_slice(c, values, 0, 0, n - step, 1);
    lower = lt_filled(c, lower, lt_unary(c, LT_OP_logical_not, same_key), 1);
    lt_tensor *upper = lt_binary(c, LT_OP_mul, lt_slice(c, values, 0, step, n - step, 1), lower);
    values = lt_joined(c, lt_slice(c, values, 0, 0, step, 1), upper, 0);
  }
  if (!lt_ok(c)) return NULL;
  lt_tensor *ones = same(c, x, 1);
  if (n > 1) { /* what another overwrites has no gradient */
    lt_tensor *last = lt_binary(c, LT_OP_ne, lt_slice(c, at, 0, 1, n - 1, 1),
                                lt_slice(c, at, 0, 0, n - 1, 1));
    lt_tensor *yes = lt_full(c, lt_one_dim(1), lt_scalar_int(1), LT_BOOL, x->storage->device);
    values = lt_chosen(c, lt_joined(c, last, yes, 0), values, lt_detach(c, values));
  }
  return lt_binary(c, LT_OP_mul, x, put(c, ones, values, at));
}

/* Sum over count, at least 1 so that places that nothing is written to stay as they are; integers
   divide down, as PyTorch does. */
static lt_tensor *means(lt_ctx *c, const lt_args_scatter_reduce *a, lt_tensor *x, lt_tensor *values,
                        lt_tensor *at) {
  lt_tensor *count = added(c, same(c, x, a->include_self ? 1 : 0), same(c, values, 1), at);
  count = lt_binary_scalar(c, LT_OP_maximum, count, lt_scalar_int(1));
  lt_op by = lt_dtype_is_float((lt_dtype)x->dtype) ? LT_OP_div : LT_OP_floor_divide;
  return lt_binary(c, by, added(c, x, values, at), count);
}

/* The reductions by their keys. Without include_self a place that is written starts from the
   neutral element (1 of products, else 0), others keep x; extremes have none in all dtypes and
   ignore the old value by themselves. An empty index only has to return a copy of x with its
   history. */
static bool combine(lt_ctx *c, const lt_args_scatter_reduce *a, lt_tensor *input, lt_tensor *values,
                    lt_tensor *at, lt_tensor **out) {
  lt_tensor *x = lt_flat(c, input), *y = NULL;
  values = lt_cast(c, values, (lt_dtype)input->dtype);
  if (!lt_ok(c)) return false;
  bool extreme = a->reduce == LT_REDUCE_amax || a->reduce == LT_REDUCE_amin;
  if (!a->include_self && !extreme) /* what is written starts from nothing */
    x = put(c, x, same(c, values, a->reduce == LT_REDUCE_prod ? 1 : 0), at);
  if (values->numel == 0) {
    y = added(c, x, values, at);
  } else {
    switch (a->reduce) {
      case LT_REDUCE_none: y = put(c, x, values, at); break;
      case LT_REDUCE_add:
      case LT_REDUCE_sum: y = added(c, x, values, at); break;
      case LT_REDUCE_multiply:
      case LT_REDUCE_prod: y = products(c, x, values, at); break;
      case LT_REDUCE_mean: y = means(c, a, x, values, at); break;
      default: y = extremes(c, a, x, values, at);
    }
  }
  *out = y == NULL ? NULL : lt_reshape(c, y, lt_tensor_shape(input));
  return *out != NULL;
}

bool lt_expand_scatter(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_scatter *a = call->args;
  const lt_args_scatter_reduce how = {.dim = a->dim, .reduce = a->reduce, .include_self = true};
  lt_tensor *x = call->in[0], *index = call->in[1], *source = call->in[2];
  if (source->ndim == 0 && index->numel != 1)
    source = lt_expand_to(c, source, lt_tensor_shape(index));
  source = corner(c, source, index);
  return combine(c, &how, x, source, keys(c, x, a->dim, index), out);
}

bool lt_expand_scatter_reduce(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_scatter_reduce *a = call->args;
  lt_tensor *x = call->in[0], *index = call->in[1];
  return combine(c, a, x, corner(c, call->in[2], index), keys(c, x, a->dim, index), out);
}

/* The index is a list: the same for all of the other dims, to which it is expanded, so that the
   path of scatter_reduce serves it. */
bool lt_expand_index_reduce(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_scatter_reduce *a = call->args;
  lt_tensor *x = call->in[0], *index = call->in[1], *source = call->in[2];
  lt_shape each = lt_tensor_shape(x);
  for (int k = 0; k < each.ndim; k++) each.size[k] = k == a->dim ? index->numel : 1;
  index = lt_expand_to(c, lt_reshape(c, index, each), lt_tensor_shape(source));
  return lt_ok(c) && combine(c, a, x, lt_flat(c, source), keys(c, x, a->dim, index), out);
}

/* gather, whose other dims are broadcast first (as in NumPy); without a dim, of the flattened
   tensors. */
bool lt_expand_take_along_dim(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_take_along_dim *a = call->args;
  lt_tensor *x = call->in[0], *index = call->in[1];
  if (a->dim == LT_NO_DIM) {
    lt_tensor *y = lt_taken(c, lt_flat(c, x), 0, lt_flat(c, index));
    *out = y;
    return y != NULL;
  }
  lt_shape each = lt_tensor_shape(x), at = lt_tensor_shape(index);
  int64_t n = each.size[a->dim], m = at.size[a->dim];
  each.size[a->dim] = at.size[a->dim] = 1;
  if (!lt_shape_broadcast(&each, at))
    return lt_fail(c, LT_ESHAPE, "take_along_dim: shapes do not broadcast: %s and %s",
                   LT_TENSOR_STR(x), LT_TENSOR_STR(index));
  lt_shape wide = each;
  wide.size[a->dim] = n, each.size[a->dim] = m;
  *out = lt_gather_along(c, lt_expand_to(c, x, wide), a->dim, lt_expand_to(c, index, each));
  return *out != NULL;
}

/* The first elements of the source, one for each true, in row-major order of the broadcast mask.
   How many trues there are decides how much of the source takes part: the host reads it. */
bool lt_expand_masked_scatter(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0], *mask = call->in[1], *source = lt_flat(c, call->in[2]);
  lt_shape both = lt_tensor_shape(x);
  lt_shape_broadcast(&both, lt_tensor_shape(mask));
  x = lt_expand_to(c, x, both), mask = lt_expand_to(c, mask, both);
  lt_tensor *list = lt_flat(c, mask), *flat = lt_flat(c, x);
  list = lt_apply1(c, LT_OP_mask_positions, 1, &list, NULL);
  if (list == NULL || source == NULL) return false;
  int64_t n = list->size[0];
  if (n > source->numel)
    return lt_fail(c, LT_ESHAPE, "masked_scatter: %lld trues, but a source of %lld elements",
                   (long long)n, (long long)source->numel);
  source = lt_slice(c, source, 0, 0, n, 1);
  *out = lt_reshape(c, put(c, flat, source, lt_flat(c, list)), both);
  return *out != NULL;
}
