/* runtime/ops/infer_index.c: shapes of indexing, by position, by index and by mask. */
#include <string.h>

#include "ops/infer.h"

/* Input k holds positions. */
static bool is_index(lt_ctx *c, const lt_infer *i, int k) {
  lt_dtype d = (lt_dtype)i->in[k]->dtype;
  return lt_dtype_is_int(d) ||
         lt_fail(c, LT_EDTYPE, "%s: indices must be integers, got %s; write x:long()", i->op->name,
                 lt_dtype_name(d));
}

static bool is_mask(lt_ctx *c, const lt_infer *i, int k) {
  lt_dtype d = (lt_dtype)i->in[k]->dtype;
  return d == LT_BOOL ||
         lt_fail(c, LT_EDTYPE, "%s: the mask must be bool, got %s; write x:ne(0), or x:gt(y)",
                 i->op->name, lt_dtype_name(d));
}

/* The dim of input 0 to work along; a tensor without dims counts as one of size 1. */
static bool resolve(lt_ctx *c, const lt_infer *i, int64_t *dim) {
  int d;
  if (!lt_shape_dim(c, lt_tensor_shape(i->in[0]), *dim, &d)) return false;
  *dim = d;
  return true;
}

static int64_t size_at(const lt_tensor *t, int64_t dim) { return t->ndim > 0 ? t->size[dim] : 1; }

/* One index: a list of positions along `dim`; the result has its length there. */
static bool infer_list(lt_ctx *c, lt_infer *i, int64_t dim, int64_t n) {
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[0]), .dtype = (lt_dtype)i->in[0]->dtype};
  if (i->in[0]->ndim == 0 && n != 1)
    return lt_fail(c, LT_ESHAPE, "%s: the index of a tensor without dims has 1 element, got %lld",
                   i->op->name, (long long)n);
  if (i->in[0]->ndim > 0) i->out[0].shape.size[dim] = n;
  if (i->in[1]->ndim > 1)
    return lt_fail(c, LT_ESHAPE, "%s: the index must have one dim, got %s", i->op->name,
                   LT_TENSOR_STR(i->in[1]));
  return is_index(c, i, 1);
}

bool lt_infer_index_select(lt_ctx *c, lt_infer *i) {
  lt_args_index_select *a = i->args;
  return resolve(c, i, &a->dim) && infer_list(c, i, a->dim, i->in[1]->numel);
}

bool lt_infer_index_select_backward(lt_ctx *c, lt_infer *i) {
  lt_args_index_select_backward *a = i->args;
  if (!resolve(c, i, &a->dim) || !infer_list(c, i, a->dim, a->size)) return false;
  return size_at(i->in[0], a->dim) == i->in[1]->numel ||
         lt_fail(c, LT_ESHAPE, "%s: %lld indices for dim %lld of %s", i->op->name,
                 (long long)i->in[1]->numel, (long long)a->dim + 1, LT_TENSOR_STR(i->in[0]));
}

/* (x, index, src) */
bool lt_infer_index_add(lt_ctx *c, lt_infer *i) {
  lt_args_index_add *a = i->args;
  if (!resolve(c, i, &a->dim)) return false;
  int64_t n = i->in[1]->numel;
  if (!infer_list(c, i, a->dim, n)) return false;
  lt_shape part = i->out[0].shape;
  return lt_shape_equal(part, lt_tensor_shape(i->in[2])) ||
         lt_fail(c, LT_ESHAPE,
                 "index_add: %lld indices into dim %lld of %s need a source of %s, got %s",
                 (long long)n, (long long)a->dim + 1, LT_TENSOR_STR(i->in[0]), LT_SHAPE_STR(part),
                 LT_TENSOR_STR(i->in[2]));
}

/* Every dim of the index but `dim` fits into input k. */
static bool fits_index(lt_ctx *c, const lt_infer *i, int64_t dim, int k) {
  const lt_tensor *index = i->in[1], *t = i->in[k];
  bool fits = index->ndim == t->ndim || (index->ndim < 2 && t->ndim < 2);
  int n = index->ndim > 0 ? t->ndim : 0;
  for (int j = 0; j < n && fits; j++) fits = j == dim || index->size[j] <= t->size[j];
  return fits || lt_fail(c, LT_ESHAPE, "%s: an index of %s does not fit into %s along dim %lld",
                         i->op->name, LT_TENSOR_STR(index), LT_TENSOR_STR(t), (long long)dim + 1);
}

bool lt_infer_gather(lt_ctx *c, lt_infer *i) {
  lt_args_gather *a = i->args;
  if (!resolve(c, i, &a->dim) || !is_index(c, i, 1)) return false;
  if (!fits_index(c, i, a->dim, 0)) return false;
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[1]), .dtype = (lt_dtype)i->in[0]->dtype};
  return true;
}

/* (x, index, src) */
bool lt_infer_scatter_add(lt_ctx *c, lt_infer *i) {
  lt_args_scatter_add *a = i->args;
  const lt_tensor *index = i->in[1], *src = i->in[2];
  if (!resolve(c, i, &a->dim) || !is_index(c, i, 1)) return false;
  if (!fits_index(c, i, a->dim, 0) || !fits_index(c, i, a->dim, 2)) return false;
  if (size_at(index, a->dim) > size_at(src, a->dim))
    return lt_fail(c, LT_ESHAPE, "scatter_add: an index of %s is larger than its source of %s",
                   LT_TENSOR_STR(index), LT_TENSOR_STR(src));
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[0]), .dtype = (lt_dtype)i->in[0]->dtype};
  return true;
}

/* (weight [V, D], ids [...]) -> [..., D] padding_idx counts from 0 here, negative ones from the
   end; its row gets no gradient. */
bool lt_infer_embedding(lt_ctx *c, lt_infer *i) {
  lt_args_embedding *a = i->args;
  const lt_tensor *weight = i->in[0];
  if (!is_index(c, i, 1)) return false;
  lt_shape shape = lt_tensor_shape(i->in[1]);
  if (weight->ndim != 2 || shape.ndim == LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "embedding: needs a weight [V, D], got %s, and ids of at most %d "
                   "dims, got %s", LT_TENSOR_STR(weight), LT_MAX_DIMS - 1, LT_SHAPE_STR(shape));
  int64_t n = weight->size[0];
  if (a->padding_idx != LT_NO_INDEX && (a->padding_idx < -n || a->padding_idx >= n))
    return lt_fail(c, LT_EARG, "embedding: padding_idx %lld is out of 0..%lld (weight of %s)",
                   (long long)a->padding_idx, (long long)n - 1, LT_TENSOR_STR(weight));
  if (a->padding_idx != LT_NO_INDEX && a->padding_idx < 0) a->padding_idx += n;
  shape.size[shape.ndim++] = weight->size[1];
  i->out[0] = (lt_meta){.shape = shape, .dtype = (lt_dtype)weight->dtype};
  return true;
}

/* (weight [V, D], ids [B, L] or [N], offsets [B] of the latter, factors of the shape of the ids)
   -> [B, D]. stdlib/ops/embedding_bag.lua has checked the ids, the offsets and the factors. */
bool lt_infer_embedding_bag(lt_ctx *c, lt_infer *i) {
  const lt_tensor *weight = i->in[0], *ids = i->in[1];
  const lt_tensor *offsets = i->n_in > 2 ? i->in[2] : NULL;
  const lt_tensor *factors = i->n_in > 3 ? i->in[3] : NULL;
  if (!is_index(c, i, 1) || (offsets != NULL && !is_index(c, i, 2))) return false;
  if (!lt_dtype_is_float((lt_dtype)weight->dtype))
    return lt_fail(c, LT_EDTYPE, "%s: the weight must be of floats, got %s", i->op->name,
                   lt_dtype_name((lt_dtype)weight->dtype));
  bool fits = weight->ndim == 2 && ids->ndim == (offsets != NULL ? 1 : 2) &&
              (offsets == NULL || offsets->ndim == 1) &&
              (factors == NULL || lt_shape_equal(lt_tensor_shape(factors), lt_tensor_shape(ids)));
  int64_t bags = offsets != NULL ? offsets->numel : ids->size[0];
  i->out[0] = (lt_meta){.shape = {.ndim = 2, .size = {bags, weight->size[1]}},
                        .dtype = (lt_dtype)weight->dtype};
  return lt_assert(c, fits);
}

/* By mask. */

bool lt_infer_masked_fill(lt_ctx *c, lt_infer *i) {
  const lt_args_masked_fill *a = i->args;
  lt_dtype d = i->out[0].dtype = (lt_dtype)i->in[0]->dtype;
  if (!lt_dtype_is_float(d) && a->value.kind == LT_SCALAR_FLOAT &&
      !(fabs(a->value.f) < 0x1p63 && a->value.f == trunc(a->value.f)))
    return lt_fail(c, LT_EDTYPE, "masked_fill: %g does not fit into a tensor of %s", a->value.f,
                   lt_dtype_name(d));
  return is_mask(c, i, 1) && lt_infer_broadcast(c, i);
}

/* (condition, a, b) */
bool lt_infer_where(lt_ctx *c, lt_infer *i) {
  i->out[0].dtype = lt_result_type(i->in + 1, 2, LT_NONE_SCALAR, LT_NONE_SCALAR);
  return is_mask(c, i, 0) && lt_infer_broadcast(c, i);
}

bool lt_infer_triangle(lt_ctx *c, lt_infer *i) {
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[0]), .dtype = (lt_dtype)i->in[0]->dtype};
  return i->in[0]->ndim >= 2 || lt_fail(c, LT_ESHAPE, "%s: needs at least 2 dims, got %s",
                                        i->op->name, LT_TENSOR_STR(i->in[0]));
}

/* The values of an index or a mask, row-major on the host; waits for them. The host reads them only
   where a size depends on them: one_hot without num_classes, positions of a mask. */
static const void *values(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  t = lt_to_device(c, lt_contiguous(c, lt_cast(c, t, dtype)), LT_CPU_DEVICE);
  return t == NULL ? NULL : lt_tensor_ptr(c, t, LT_READ);
}

bool lt_infer_one_hot(lt_ctx *c, lt_infer *i) {
  lt_args_one_hot *a = i->args;
  lt_shape shape = lt_tensor_shape(i->in[0]);
  if (!is_index(c, i, 0)) return false;
  if (shape.ndim == LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "one_hot: %s cannot have one more dim", LT_SHAPE_STR(shape));
  if (a->num_classes == -1) {
    if (i->in[0]->numel == 0)
      return lt_fail(c, LT_EARG, "one_hot: num_classes is needed for an empty tensor");
    const int64_t *v = values(c, i->in[0], LT_I64);
    if (v == NULL) return false;
    for (int64_t k = 0; k < i->in[0]->numel; k++)
      if (v[k] >= a->num_classes) a->num_classes = v[k] < INT64_MAX ? v[k] + 1 : v[k];
    if (a->num_classes < 1) a->num_classes = 1; /* all negative: the kernel fails */
  }
  if (a->num_classes < 1)
    return lt_fail(c, LT_EARG, "one_hot: num_classes must be 1 or more, got %lld",
                   (long long)a->num_classes);
  shape.size[shape.ndim++] = a->num_classes;
  i->out[0] = (lt_meta){.shape = shape, .dtype = LT_I64};
  return true;
}

bool lt_infer_nonzero(lt_ctx *c, lt_infer *i) { return lt_check_data(c, NULL, i->in[0]); }

/* The number of rows is the number of trues: read here. */
bool lt_infer_mask_positions(lt_ctx *c, lt_infer *i) {
  const lt_tensor *mask = i->in[0];
  const uint8_t *v = values(c, i->in[0], LT_BOOL);
  int64_t n = 0;
  if (v == NULL && !lt_ok(c)) return false;
  for (int64_t k = 0; k < mask->numel; k++) n += v[k] != 0;
  i->out[0] = (lt_meta){.shape = {.ndim = 2, .size = {n, mask->ndim}}, .dtype = LT_I64};
  return true;
}

/* The mask covers the first dims of x. */
static bool covers(lt_ctx *c, const lt_infer *i) {
  const lt_tensor *x = i->in[0], *mask = i->in[1];
  bool fits = mask->ndim <= x->ndim &&
              memcmp(mask->size, x->size, (size_t)mask->ndim * sizeof *x->size) == 0;
  return fits || lt_fail(c, LT_ESHAPE, "%s: a mask of %s does not fit %s", i->op->name,
                         LT_TENSOR_STR(mask), LT_TENSOR_STR(x));
}

bool lt_infer_masked_select(lt_ctx *c, lt_infer *i) {
  return is_mask(c, i, 1) && lt_check_data(c, NULL, i->in[1]) && lt_infer_broadcast(c, i);
}

/* (x, mask, values) */
bool lt_infer_masked_put(lt_ctx *c, lt_infer *i) { return is_mask(c, i, 1) && covers(c, i); }

/* By several indices: x and the indices of the dims in `dims`. */

/* Rising order, so that a list of indices has one spelling, and place_of_index (expand_index.c)
   reads it from left to right. */
static bool infer_indices(lt_ctx *c, lt_infer *i, lt_dims *dims, int first) {
  const lt_tensor *x = i->in[0];
  int n = i->n_in - first;
  if (x->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "%s: needs a tensor with dims, got []", i->op->name);
  if (dims->n < 0) /* absent: the first ones */
    for (dims->n = 0; dims->n < n && dims->n < LT_MAX_DIMS; dims->n++) dims->dim[dims->n] = dims->n;
  if (n < 1 || dims->n != n)
    return lt_fail(c, LT_EARG, "%s: %d index tensors for %d dims of %s", i->op->name, n, dims->n,
                   LT_TENSOR_STR(x));
  for (int k = 0; k < n; k++) {
    if (!resolve(c, i, &dims->dim[k]) || !is_index(c, i, first + k)) return false;
    if (k > 0 && dims->dim[k] <= dims->dim[k - 1])
      return lt_fail(c, LT_EARG, "%s: dims must be in rising order", i->op->name);
  }
  return true;
}

bool lt_infer_index_get(lt_ctx *c, lt_infer *i) {
  lt_args_index_get *a = i->args;
  return infer_indices(c, i, &a->dims, 1);
}

/* (x, values, indices...) */
bool lt_infer_index_put(lt_ctx *c, lt_infer *i) {
  lt_args_index_put *a = i->args;
  return infer_indices(c, i, &a->dims, 2);
}

/* All inputs are indices, of dims `dims` of a tensor of shape `full`. */
bool lt_infer_index_flatten(lt_ctx *c, lt_infer *i) {
  lt_shape s = lt_tensor_shape(i->in[0]);
  for (int k = 1; k < i->n_in; k++)
    if (!lt_shape_broadcast(&s, lt_tensor_shape(i->in[k])))
      return lt_fail(c, LT_ESHAPE, "index: the shapes of the indices do not broadcast: %s and %s",
                     LT_TENSOR_STR(i->in[0]), LT_TENSOR_STR(i->in[k]));
  i->out[0] = (lt_meta){.shape = s, .dtype = LT_I64};
  return true;
}

/* (x [P, ...], source [N, ...], rows [N]) */
bool lt_infer_rows_put(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[0], *src = i->in[1], *rows = i->in[2];
  bool fits = x->ndim == src->ndim && rows->ndim == 1 && rows->numel == src->size[0];
  for (int k = 1; k < x->ndim && fits; k++) fits = x->size[k] == src->size[k];
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(x), .dtype = (lt_dtype)x->dtype};
  return lt_assert(c, fits);
}

/* Largest or smallest along a dim. */

/* k may be 0 (an empty result) but not of a tensor without dims, which has no dim that could be
   empty. */
bool lt_infer_topk(lt_ctx *c, lt_infer *i) {
  lt_args_topk *a = i->args;
  lt_shape shape = lt_tensor_shape(i->in[0]);
  int dim;
  if (!lt_shape_dim(c, shape, a->dim, &dim)) return false;
  a->dim = dim;
  int64_t n = shape.ndim > 0 ? shape.size[dim] : 1;
  if (a->k < 0 || a->k > n)
    return lt_fail(c, LT_EARG, "%s: k = %lld is out of 0..%lld (dim %d of %s)", i->op->name,
                   (long long)a->k, (long long)n, dim + 1, LT_SHAPE_STR(shape));
  if (shape.ndim > 0) shape.size[dim] = a->k;
  if (shape.ndim == 0 && a->k == 0)
    return lt_fail(c, LT_EARG, "%s: k = 0 of a tensor without dims", i->op->name);
  i->out[0] = (lt_meta){.shape = shape, .dtype = (lt_dtype)i->in[0]->dtype};
  i->out[1] = (lt_meta){.shape = shape, .dtype = LT_I64};
  return true;
}

bool lt_infer_sort(lt_ctx *c, lt_infer *i) {
  lt_args_sort *a = i->args;
  int dim;
  if (!lt_shape_dim(c, lt_tensor_shape(i->in[0]), a->dim, &dim)) return false;
  a->dim = dim;
  return true;
}

bool lt_infer_argsort(lt_ctx *c, lt_infer *i) { return lt_infer_sort(c, i); }
