/* runtime/ops/infer_join.c: shapes of cat and stack. */
#include "ops/infer.h"

/* The common dtype of a list, ranks not counted (as PyTorch's cat). */
static lt_dtype common_dtype(const lt_infer *i) {
  lt_dtype d = (lt_dtype)i->in[0]->dtype;
  for (int k = 1; k < i->n_in; k++) d = lt_dtype_promote(d, (lt_dtype)i->in[k]->dtype);
  return d;
}

static bool some(lt_ctx *c, const lt_infer *i) {
  return i->n_in > 0 || lt_fail(c, LT_EARG, "%s: the list is empty", i->op->name);
}

/* A tensor of shape [0] fits into every list, as in PyTorch. */
static bool is_nothing(const lt_tensor *t) { return t->ndim == 1 && t->size[0] == 0; }

bool lt_infer_cat(lt_ctx *c, lt_infer *i) {
  lt_args_cat *a = i->args;
  if (!some(c, i)) return false;
  int first = 0, dim;
  while (first + 1 < i->n_in && is_nothing(i->in[first])) first++;
  lt_shape shape = lt_tensor_shape(i->in[first]);
  if (shape.ndim == 0)
    return lt_fail(c, LT_ESHAPE, "cat: tensors without dims cannot be joined; stack makes one");
  if (!lt_shape_dim(c, shape, a->dim, &dim)) return false;
  a->dim = dim;
  shape.size[dim] = 0;
  for (int k = 0; k < i->n_in; k++) {
    const lt_tensor *t = i->in[k];
    if (is_nothing(t)) continue;
    bool fits = t->ndim == shape.ndim;
    for (int j = 0; j < shape.ndim && fits; j++) fits = j == dim || t->size[j] == shape.size[j];
    if (!fits)
      return lt_fail(c, LT_ESHAPE, "cat: shapes differ outside dim %d: %s and %s (tensor %d)",
                     dim + 1, LT_TENSOR_STR(i->in[first]), LT_TENSOR_STR(t), k + 1);
    shape.size[dim] += t->size[dim];
  }
  i->out[0] = (lt_meta){.shape = shape, .dtype = common_dtype(i)};
  return true;
}

bool lt_infer_stack(lt_ctx *c, lt_infer *i) {
  lt_args_stack *a = i->args;
  if (!some(c, i)) return false;
  lt_shape part = lt_tensor_shape(i->in[0]), shape = part;
  int dim;
  shape.ndim++;
  if (part.ndim == LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "stack: %s cannot have one more dim", LT_SHAPE_STR(part));
  shape.size[part.ndim] = 1;
  if (!lt_shape_dim(c, shape, a->dim, &dim)) return false;
  a->dim = dim;
  for (int k = 1; k < i->n_in; k++)
    if (!lt_shape_equal(part, lt_tensor_shape(i->in[k])))
      return lt_fail(c, LT_ESHAPE, "stack: shapes differ: %s and %s (tensor %d)",
                     LT_SHAPE_STR(part), LT_TENSOR_STR(i->in[k]), k + 1);
  for (int k = shape.ndim - 1; k > dim; k--) shape.size[k] = shape.size[k - 1];
  shape.size[dim] = i->n_in;
  i->out[0] = (lt_meta){.shape = shape, .dtype = common_dtype(i)};
  return true;
}
