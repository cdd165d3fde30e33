/* runtime/ops/expand_sets.c: composite ops that count values or look for them, by sorting.

   All are sorts followed by a scan of neighbours, O(N log N) with O(N) memory: a hash table would
   be faster on a CPU, but sort, cumsum and scatter_add exist on every device, and their results do
   not depend on the order in which threads run. What decides the size of a result (the number of
   distinct values, the largest id) is read on the host: these ops wait for the device. */
#include "ops/expand.h"

/* *values = x in ascending order along its last dim, *order = the positions from which they come.
   The sort is stable: `unique` relies on it for the order of equal elements. */
static bool sort_last(lt_ctx *c, lt_tensor *x, lt_tensor **values, lt_tensor **order) {
  lt_tensor *both[2] = {NULL};
  if (!lt_apply(c, LT_OP_sort, 1, &x, &(lt_args_sort){.dim = -1}, 2, both)) return false;
  *values = both[0], *order = both[1];
  return true;
}

/* Whether each element of a list differs from the one before it; the first does. */
static lt_tensor *begins(lt_ctx *c, lt_tensor *x) {
  lt_tensor *first = lt_full(c, lt_one_dim(x->numel > 0 ? 1 : 0), lt_scalar_int(1), LT_BOOL,
                             x->storage->device);
  if (x->numel < 2) return first;
  int64_t n = x->numel - 1;
  lt_tensor *rest = lt_binary(c, LT_OP_ne, lt_slice(c, x, 0, 1, n, 1), lt_slice(c, x, 0, 0, n, 1));
  return lt_joined(c, first, rest, 0);
}

/* [N]: the number of the run that each element belongs to, from 0: the count of beginnings up to
   it, less one. */
static lt_tensor *run_of(lt_ctx *c, lt_tensor *first) {
  lt_tensor *run = lt_apply1(c, LT_OP_cumsum, 1, &first, &(lt_args_scan){.dim = 0});
  return lt_binary_scalar(c, LT_OP_sub, run, lt_scalar_int(1));
}

/* [n]: the sum of the weights (NULL: of ones) for each index; scatter_add, so that weights have a
   gradient and equal indices are added in a fixed order. */
static lt_tensor *tally(lt_ctx *c, lt_tensor *index, int64_t n, lt_tensor *weights,
                        lt_dtype dtype) {
  if (!lt_ok(c)) return NULL;
  lt_device device = index->storage->device;
  if (weights == NULL)
    weights = lt_full(c, lt_one_dim(index->numel), lt_scalar_int(1), dtype, device);
  lt_tensor *zeros = lt_full(c, lt_one_dim(n), lt_scalar_int(0), dtype, device);
  return lt_apply1(c, LT_OP_scatter_add, LT_IN(zeros, index, weights),
                   &(lt_args_scatter_add){.dim = 0});
}

/* Values, places and counts of the runs of a list; `order`: where its elements came from. The
   inverse is a permutation of the run numbers back to where the elements stood before the sort:
   rows_put writes each place once, so its rule for repeated places does not matter. */
static bool runs(lt_ctx *c, lt_tensor *list, lt_tensor *order, lt_shape shape, bool inverse,
                 bool counts, lt_tensor **out) {
  int n = 1;
  lt_tensor *first = begins(c, list);
  out[0] = lt_apply1(c, LT_OP_masked_select, LT_IN(list, first), NULL);
  lt_tensor *run = inverse || counts ? run_of(c, first) : NULL;
  if (!lt_ok(c)) return false;
  if (inverse) {
    lt_tensor *place = run;
    if (order != NULL)
      place = lt_apply1(c, LT_OP_rows_put, LT_IN(run, run, order), &(lt_args_rows_put){0});
    out[n++] = lt_reshape(c, place, shape);
  }
  if (counts) out[n++] = tally(c, run, out[0]->numel, NULL, LT_I64);
  return lt_ok(c);
}

/* PyTorch's unique(sorted=True) of the flattened input. NaN differs from itself, so each is a value
   of its own, as there. */
bool lt_expand_unique(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_unique *a = call->args;
  lt_tensor *list = NULL, *order = NULL;
  return sort_last(c, lt_flat(c, call->in[0]), &list, &order) &&
         runs(c, list, order, lt_tensor_shape(call->in[0]), a->return_inverse, a->return_counts,
              out);
}

bool lt_expand_unique_consecutive(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_unique_consecutive *a = call->args;
  lt_tensor *list = lt_flat(c, call->in[0]);
  return list != NULL && runs(c, list, NULL, lt_tensor_shape(call->in[0]), a->return_inverse,
                              a->return_counts, out);
}

/* The largest id decides the length of the result: one pass for the extremes, both read by the
   host, before memory is taken. An id of INT64_MAX would overflow the length and is one that no
   allocation can hold anyway. */
bool lt_expand_bincount(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_bincount *a = call->args;
  lt_tensor *x = call->in[0], *weights = call->n_in > 1 ? call->in[1] : NULL;
  lt_scalar most = {.i = -1}, least = {0};
  if (x->numel > 0 && (!lt_item(c, lt_unary(c, LT_OP_amax, x), &most) ||
                       !lt_item(c, lt_unary(c, LT_OP_amin, x), &least)))
    return false;
  if (least.i < 0)
    return lt_fail(c, LT_EVALUE, "bincount: counts integers from 0, got %lld", (long long)least.i);
  if (most.i == INT64_MAX) most.i--; /* too many in any case */
  int64_t n = most.i + 1 > a->minlength ? most.i + 1 : a->minlength;
  lt_dtype dtype = weights == NULL              ? LT_I64
                   : weights->dtype == LT_F32 ? LT_F32
                                                : LT_F64;
  *out = tally(c, x, n, weights == NULL ? NULL : lt_cast(c, weights, dtype), dtype);
  return *out != NULL;
}

/* bin = floor((x - min) bins / (max - min)), the order of operations of torch.histc, in f32 (f64 of
   f64), so that elements on an edge fall on the same side as there. max itself belongs to the last
   bin, therefore the minimum with bins - 1. Elements outside count as weight 0 in bin 0 instead of
   being selected: a selection would wait for the device. min = max stands for the range of the
   data; a single value gets an interval of width 2 around it. */
bool lt_expand_histc(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_histc *a = call->args;
  lt_dtype dtype = (lt_dtype)call->in[0]->dtype;
  lt_tensor *x = lt_flat(c, lt_detach(c, call->in[0]));
  lt_scalar low = lt_scalar_of(a->min), high = lt_scalar_of(a->max);
  if (low.f == high.f && x != NULL && x->numel > 0 &&
      (!lt_item(c, lt_unary(c, LT_OP_amin, x), &low) ||
       !lt_item(c, lt_unary(c, LT_OP_amax, x), &high)))
    return false;
  if (low.f == high.f) low.f -= 1, high.f += 1;
  if (!isfinite(low.f) || !isfinite(high.f) || low.f > high.f)
    return lt_fail(c, LT_EVALUE, "histc: impossible range %g..%g", low.f, high.f);
  low = lt_scalar_of(low.f), high = lt_scalar_of(high.f);
  lt_tensor *in = lt_binary(c, LT_OP_logical_and, lt_binary_scalar(c, LT_OP_ge, x, low),
                            lt_binary_scalar(c, LT_OP_le, x, high));
  x = lt_cast(c, x, dtype == LT_F64 ? LT_F64 : LT_F32);
  lt_tensor *bin = lt_binary_scalar(c, LT_OP_sub, x, low);
  bin = lt_binary_scalar(c, LT_OP_mul, bin, lt_scalar_of((double)a->bins));
  bin = lt_binary_scalar(c, LT_OP_div, bin, lt_scalar_of(high.f - low.f));
  lt_tensor *outside = lt_unary(c, LT_OP_logical_not, in);
  bin = lt_filled(c, bin, outside, 0);
  bin = lt_binary_scalar(c, LT_OP_minimum, lt_cast(c, bin, LT_I64), lt_scalar_int(a->bins - 1));
  *out = tally(c, bin, a->bins, lt_cast(c, in, dtype), dtype);
  return *out != NULL;
}

/* How many of the boundaries [..., N] come before each value [..., M]: both are sorted together,
   `right`: boundaries first among equals, and the boundaries before each are counted. O((N + M)
   log(N + M)) in place of a binary search for each value, O(M log N): it needs no kernel of its
   own, and the sort is stable, which makes the order among equals the order of joining. */
static lt_tensor *places(lt_ctx *c, lt_tensor *bounds, lt_tensor *values, bool right) {
  if (!lt_ok(c)) return NULL;
  int last = values->ndim - 1;
  int64_t n = bounds->size[last], m = values->size[last];
  lt_tensor *all = right ? lt_joined(c, bounds, values, last) : lt_joined(c, values, bounds, last);
  lt_tensor *sorted = NULL, *order = NULL;
  if (all == NULL || !sort_last(c, all, &sorted, &order)) return NULL;
  lt_tensor *bound = right ? lt_binary_scalar(c, LT_OP_lt, order, lt_scalar_int(n))
                           : lt_binary_scalar(c, LT_OP_ge, order, lt_scalar_int(m));
  lt_tensor *count = lt_apply1(c, LT_OP_cumsum, 1, &bound, &(lt_args_scan){.dim = last});
  lt_tensor *zeros = lt_binary_scalar(c, LT_OP_mul, count, lt_scalar_int(0));
  count = lt_apply1(c, LT_OP_scatter_add, LT_IN(zeros, order, count),
                    &(lt_args_scatter_add){.dim = last});
  return count == NULL ? NULL : lt_slice(c, count, last, right ? n : 0, m, 1);
}

/* Values and boundaries are compared in their common dtype. Boundaries of one dim serve values of
   any shape, which are flattened; otherwise row i of the boundaries serves row i of the values. The
   clone detaches the result from the larger list that it is a slice of. */
static bool search(lt_ctx *c, lt_tensor *bounds, lt_tensor *values, bool right, lt_tensor **out) {
  lt_dtype common = lt_dtype_promote((lt_dtype)bounds->dtype, (lt_dtype)values->dtype);
  lt_shape shape = lt_tensor_shape(values);
  bounds = lt_cast(c, lt_detach(c, bounds), common);
  values = lt_cast(c, lt_detach(c, values), common);
  if (bounds != NULL && bounds->ndim == 1) values = lt_flat(c, values);
  lt_tensor *y = values != NULL && values->numel == 0
                     ? lt_cast(c, values, LT_I64)
                     : places(c, bounds, values, right);
  *out = y == NULL ? NULL : lt_unary(c, LT_OP_clone, lt_reshape(c, y, shape));
  return *out != NULL;
}

bool lt_expand_searchsorted(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_searchsorted *a = call->args;
  return search(c, call->in[0], call->in[1], a->right, out);
}

bool lt_expand_bucketize(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_searchsorted *a = call->args;
  return search(c, call->in[1], call->in[0], a->right, out);
}
