/* runtime/ops/infer_composite.c: arguments of the other composite ops; what they are made of infers
   shapes and dtypes. */
#include "ops/infer.h"

/* Dims arrive as the script gave them (-1 is the last) and leave as positions from 0: what the op
   is composed of, and its derivative, read the args again and must find them resolved. */
static bool resolve(lt_ctx *c, const lt_infer *i, int64_t *dim) {
  int d;
  if (!lt_shape_dim(c, lt_tensor_shape(i->in[0]), *dim, &d)) return false;
  *dim = d;
  return true;
}

static bool is_index(lt_ctx *c, const lt_infer *i, int k) {
  lt_dtype d = (lt_dtype)i->in[k]->dtype;
  return lt_dtype_is_int(d) ||
         lt_fail(c, LT_EDTYPE, "%s: indices must be integers, got %s; write x:long()", i->op->name,
                 lt_dtype_name(d));
}

/* Integers are refused although 0 and 1 would do: an index in the place of a mask would be taken
   for true nearly everywhere, without an error. */
static bool is_mask(lt_ctx *c, const lt_infer *i, int k) {
  lt_dtype d = (lt_dtype)i->in[k]->dtype;
  return d == LT_BOOL ||
         lt_fail(c, LT_EDTYPE, "%s: the mask must be bool, got %s; write x:ne(0), or x:gt(y)",
                 i->op->name, lt_dtype_name(d));
}

/* Elements. */

/* As in torch.isclose: promotion would hide that one side was rounded to another dtype. */
bool lt_infer_isclose(lt_ctx *c, lt_infer *i) {
  const lt_args_isclose *a = i->args;
  if (i->in[0]->dtype != i->in[1]->dtype)
    return lt_fail(c, LT_EDTYPE, "isclose: dtypes differ: %s and %s",
                   lt_dtype_name((lt_dtype)i->in[0]->dtype),
                   lt_dtype_name((lt_dtype)i->in[1]->dtype));
  if (a->rtol < 0 || a->atol < 0)
    return lt_fail(c, LT_EARG, "isclose: tolerances must be 0 or more, got %g and %g", a->rtol,
                   a->atol);
  return lt_infer_broadcast(c, i);
}

bool lt_infer_nan_to_num(lt_ctx *c, lt_infer *i) { return lt_infer_same(c, i); }
bool lt_infer_lerp(lt_ctx *c, lt_infer *i) {
  return lt_infer_float(c, i, 0) && lt_infer_float(c, i, 1) && lt_infer_broadcast(c, i);
}
bool lt_infer_addcmul(lt_ctx *c, lt_infer *i) { return lt_infer_broadcast(c, i); }

bool lt_infer_clamp_tensor(lt_ctx *c, lt_infer *i) {
  bool any = (i->n_in > 1 && i->in[1] != NULL) || (i->n_in > 2 && i->in[2] != NULL);
  if (!any) return lt_fail(c, LT_EARG, "clamp: needs min, max or both");
  return lt_infer_broadcast(c, i);
}

bool lt_infer_masked_fill_tensor(lt_ctx *c, lt_infer *i) {
  const lt_tensor *value = i->n_in > 2 ? i->in[2] : NULL;
  if (value == NULL || value->ndim != 0)
    return lt_fail(c, LT_ESHAPE, "masked_fill: the value must be a number or a tensor of shape []"
                   ", got %s", value == NULL ? "none" : LT_TENSOR_STR(value));
  return is_mask(c, i, 1) && lt_infer_broadcast(c, i);
}

bool lt_infer_trunc_divide(lt_ctx *c, lt_infer *i) { return lt_infer_broadcast(c, i); }

bool lt_infer_bitwise_not(lt_ctx *c, lt_infer *i) {
  lt_dtype d = (lt_dtype)i->in[0]->dtype;
  if (lt_dtype_is_float(d))
    return lt_fail(c, LT_EDTYPE, "bitwise_not: needs integers or bools, got %s", lt_dtype_name(d));
  return lt_infer_same(c, i);
}

/* A weight for all, or one for each channel. */
bool lt_infer_prelu(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[0], *weight = i->in[1];
  int64_t channels = x->ndim > 1 ? x->size[1] : 1;
  if (weight->ndim > 1 || (weight->numel != 1 && weight->numel != channels))
    return lt_fail(c, LT_ESHAPE, "prelu: the weight must be [1] or, for x [N, C, ...], [C], got %s "
                   "for x of %s", LT_TENSOR_STR(weight), LT_TENSOR_STR(x));
  return lt_infer_float(c, i, 0) && lt_infer_float(c, i, 1);
}

/* Halves of the dim are the value and its gate (Dauphin et al., Language Modeling with Gated
   Convolutional Networks, 2017). */
bool lt_infer_glu(lt_ctx *c, lt_infer *i) {
  lt_args_glu *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!lt_infer_float(c, i, 0) || !resolve(c, i, &a->dim)) return false;
  return (x->ndim > 0 && x->size[a->dim] % 2 == 0) ||
         lt_fail(c, LT_ESHAPE, "%s: dim %lld must have an even size, got x of %s", i->op->name,
                 (long long)a->dim + 1, LT_TENSOR_STR(x));
}

bool lt_infer_normalize(lt_ctx *c, lt_infer *i) {
  lt_args_normalize *a = i->args;
  return lt_infer_float(c, i, 0) && resolve(c, i, &a->dim);
}

/* The dim counts in the shape that both broadcast to, not in that of the first input. */
bool lt_infer_cosine_similarity(lt_ctx *c, lt_infer *i) {
  lt_args_cosine_similarity *a = i->args;
  int d;
  if (!lt_infer_float(c, i, 0) || !lt_infer_broadcast(c, i) ||
      !lt_shape_dim(c, i->out[0].shape, a->dim, &d))
    return false;
  a->dim = d;
  return true;
}

/* Order. */

bool lt_infer_mode(lt_ctx *c, lt_infer *i) {
  lt_args_mode *a = i->args;
  return resolve(c, i, &a->dim) && (i->in[0]->numel > 0 ||
         lt_fail(c, LT_ESHAPE, "mode: no elements in %s", LT_TENSOR_STR(i->in[0])));
}

/* An empty list has no quantile, of any q: without this check the position n * q would be read from
   outside of it. */
bool lt_infer_quantile(lt_ctx *c, lt_infer *i) {
  lt_args_quantile *a = i->args;
  const lt_tensor *q = i->in[1];
  if (!lt_infer_float(c, i, 0) || !lt_infer_float(c, i, 1)) return false;
  if (i->in[0]->numel == 0)
    return lt_fail(c, LT_ESHAPE, "quantile: no elements in %s", LT_TENSOR_STR(i->in[0]));
  if (q->ndim > 1)
    return lt_fail(c, LT_ESHAPE, "quantile: q must be a number or a vector, got %s",
                   LT_TENSOR_STR(q));
  return a->dim == LT_NO_DIM || resolve(c, i, &a->dim);
}

bool lt_infer_cummax(lt_ctx *c, lt_infer *i) {
  lt_args_cummax *a = i->args;
  return resolve(c, i, &a->dim);
}

/* Places. */

/* (x, index, source): the source, unless it is a number, covers the index. */
static bool infer_scatter(lt_ctx *c, lt_infer *i, int64_t dim) {
  const lt_tensor *x = i->in[0], *index = i->in[1], *source = i->in[2];
  bool fits = index->ndim == x->ndim || (index->ndim < 2 && x->ndim < 2);
  for (int k = 0; k < index->ndim && fits && x->ndim > 0; k++)
    fits = k == dim || index->size[k] <= x->size[k];
  if (source->ndim > 0) fits = fits && source->ndim == index->ndim;
  for (int k = 0; k < source->ndim && fits; k++) fits = index->size[k] <= source->size[k];
  return is_index(c, i, 1) &&
         (fits || lt_fail(c, LT_ESHAPE, "%s: an index of %s does not fit %s along dim %lld and a "
                          "source of %s", i->op->name, LT_TENSOR_STR(index), LT_TENSOR_STR(x),
                          (long long)dim + 1, LT_TENSOR_STR(source)));
}

bool lt_infer_scatter(lt_ctx *c, lt_infer *i) {
  lt_args_scatter *a = i->args;
  bool known = a->reduce <= LT_REDUCE_multiply;
  if (!known) return lt_fail(c, LT_EARG, "scatter: reduce must be add or multiply; the others are "
                             "scatter_reduce's");
  return resolve(c, i, &a->dim) && infer_scatter(c, i, a->dim);
}

/* index_reduce is the same with a list of positions, each of which stands for a slice: the source
   then has the shape of x, with as many slices as there are positions. */
bool lt_infer_scatter_reduce(lt_ctx *c, lt_infer *i) {
  lt_args_scatter_reduce *a = i->args;
  bool list = i->op == &lt_ops[LT_OP_index_reduce];
  const lt_tensor *x = i->in[0], *index = i->in[1], *source = i->in[2];
  if (a->reduce < LT_REDUCE_sum || (list && a->reduce == LT_REDUCE_sum))
    return lt_fail(c, LT_EARG, "%s: reduce must be one of %sprod, mean, amax, amin", i->op->name,
                   list ? "" : "sum, ");
  if (!resolve(c, i, &a->dim)) return false;
  if (!list) return infer_scatter(c, i, a->dim);
  lt_shape part = lt_tensor_shape(x);
  if (part.ndim > 0) part.size[a->dim] = index->numel;
  return is_index(c, i, 1) &&
         ((index->ndim <= 1 && lt_shape_equal(part, lt_tensor_shape(source))) ||
          lt_fail(c, LT_ESHAPE, "index_reduce: an index of %s into dim %lld of %s needs a source "
                  "of %s, got %s", LT_TENSOR_STR(index), (long long)a->dim + 1, LT_TENSOR_STR(x),
                  LT_SHAPE_STR(part), LT_TENSOR_STR(source)));
}

bool lt_infer_take_along_dim(lt_ctx *c, lt_infer *i) {
  lt_args_take_along_dim *a = i->args;
  if (!is_index(c, i, 1)) return false;
  if (a->dim == LT_NO_DIM) return true;
  return resolve(c, i, &a->dim) &&
         (i->in[0]->ndim == i->in[1]->ndim ||
          lt_fail(c, LT_ESHAPE, "take_along_dim: an index of %s for %s", LT_TENSOR_STR(i->in[1]),
                  LT_TENSOR_STR(i->in[0])));
}

/* How many elements of the source are needed is known by the mask's values alone: that is checked
   when the kernel runs, and the mask must have data here (not a tensor that only has a shape). */
bool lt_infer_masked_scatter(lt_ctx *c, lt_infer *i) {
  if (i->in[0]->dtype != i->in[2]->dtype)
    return lt_fail(c, LT_EDTYPE, "masked_scatter: dtypes differ: %s and %s",
                   lt_dtype_name((lt_dtype)i->in[0]->dtype),
                   lt_dtype_name((lt_dtype)i->in[2]->dtype));
  lt_shape s = lt_tensor_shape(i->in[0]);
  return is_mask(c, i, 1) && lt_check_data(c, NULL, i->in[1]) &&
         (lt_shape_broadcast(&s, lt_tensor_shape(i->in[1])) ||
          lt_fail(c, LT_ESHAPE, "masked_scatter: shapes do not broadcast: %s and %s",
                  LT_TENSOR_STR(i->in[0]), LT_TENSOR_STR(i->in[1])));
}

/* Values. */

/* The number of results depends on the options. Their shapes depend on the values, so tensors
   without data (shapes alone, as in a plan of memory) are refused below. */
static int results(bool inverse, bool counts) { return 1 + inverse + counts; }

bool lt_infer_unique(lt_ctx *c, lt_infer *i) {
  const lt_args_unique *a = i->args;
  i->n_out = results(a->return_inverse, a->return_counts);
  return lt_check_data(c, NULL, i->in[0]);
}

bool lt_infer_unique_consecutive(lt_ctx *c, lt_infer *i) {
  const lt_args_unique_consecutive *a = i->args;
  i->n_out = results(a->return_inverse, a->return_counts);
  return lt_check_data(c, NULL, i->in[0]);
}

bool lt_infer_bincount(lt_ctx *c, lt_infer *i) {
  const lt_args_bincount *a = i->args;
  const lt_tensor *x = i->in[0], *weights = i->n_in > 1 ? i->in[1] : NULL;
  if (!is_index(c, i, 0)) return false;
  if (x->ndim != 1 || a->minlength < 0)
    return lt_fail(c, LT_ESHAPE, "bincount: needs a vector and a minlength of 0 or more, got %s "
                   "and %lld", LT_TENSOR_STR(x), (long long)a->minlength);
  return weights == NULL || lt_shape_equal(lt_tensor_shape(x), lt_tensor_shape(weights)) ||
         lt_fail(c, LT_ESHAPE, "bincount: weights of %s for %s", LT_TENSOR_STR(weights),
                 LT_TENSOR_STR(x));
}

bool lt_infer_histc(lt_ctx *c, lt_infer *i) {
  const lt_args_histc *a = i->args;
  if (!lt_infer_float(c, i, 0)) return false;
  return a->bins > 0 ||
         lt_fail(c, LT_EARG, "histc: bins must be 1 or more, got %lld", (long long)a->bins);
}

/* Boundaries of one dim serve all values; else each row of values has its own row of boundaries.
   bucketize is the first with its arguments the other way round. */
bool lt_infer_searchsorted(lt_ctx *c, lt_infer *i) {
  bool buckets = i->op == &lt_ops[LT_OP_bucketize];
  const lt_tensor *bounds = i->in[buckets ? 1 : 0], *values = i->in[buckets ? 0 : 1];
  bool fits = bounds->ndim == 1 || (!buckets && bounds->ndim == values->ndim);
  for (int k = 0; k < bounds->ndim - 1 && fits; k++) fits = bounds->size[k] == values->size[k];
  return fits || lt_fail(c, LT_ESHAPE, "%s: boundaries of %s for values of %s", i->op->name,
                         LT_TENSOR_STR(bounds), LT_TENSOR_STR(values));
}
