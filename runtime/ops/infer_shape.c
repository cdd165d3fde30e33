/* runtime/ops/infer_shape.c: arguments of the composite view ops.

   These ops are written as reshape, permute and as_strided (expand_shape.c); here their dims and
   positions are resolved, so that errors name the op that was called. */
#include "ops/infer.h"

static bool resolve(lt_ctx *c, const lt_infer *i, int64_t *dim) {
  int d;
  if (!lt_shape_dim(c, lt_tensor_shape(i->in[0]), *dim, &d)) return false;
  *dim = d;
  return true;
}

/* A dim to work along: a tensor without dims has none. */
static bool resolve_along(lt_ctx *c, const lt_infer *i, int64_t *dim) {
  if (i->in[0]->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "%s: a tensor without dims has no positions", i->op->name);
  return resolve(c, i, dim);
}

bool lt_infer_transpose(lt_ctx *c, lt_infer *i) {
  lt_args_transpose *a = i->args;
  return resolve(c, i, &a->dim0) && resolve(c, i, &a->dim1);
}

bool lt_infer_t(lt_ctx *c, lt_infer *i) {
  return i->in[0]->ndim <= 2 ||
         lt_fail(c, LT_ESHAPE, "t: needs at most 2 dims, got %s; transpose names two dims",
                 LT_TENSOR_STR(i->in[0]));
}

bool lt_infer_squeeze(lt_ctx *c, lt_infer *i) {
  lt_args_squeeze *a = i->args;
  for (int k = 0; k < a->dims.n; k++)
    if (!resolve(c, i, &a->dims.dim[k])) return false;
  return true;
}

/* There is one place more than x has dims: -1 is behind the last. */
bool lt_infer_unsqueeze(lt_ctx *c, lt_infer *i) {
  lt_args_unsqueeze *a = i->args;
  const lt_tensor *x = i->in[0];
  if (x->ndim == LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "unsqueeze: %s cannot have one more dim", LT_TENSOR_STR(x));
  if (a->dim < -x->ndim - 1 || a->dim > x->ndim)
    return lt_fail(
        c, LT_EARG, "unsqueeze: dim %lld is out of range for shape %s (1..%d or -1..-%d)",
        (long long)(a->dim < 0 ? a->dim : a->dim + 1), LT_TENSOR_STR(x), x->ndim + 1, x->ndim + 1);
  if (a->dim < 0) a->dim += x->ndim + 1;
  return true;
}

bool lt_infer_flatten(lt_ctx *c, lt_infer *i) {
  lt_args_flatten *a = i->args;
  if (!resolve(c, i, &a->start_dim) || !resolve(c, i, &a->end_dim)) return false;
  return a->start_dim <= a->end_dim ||
         lt_fail(c, LT_EARG, "flatten: start_dim %lld comes after end_dim %lld (shape %s)",
                 (long long)a->start_dim + 1, (long long)a->end_dim + 1, LT_TENSOR_STR(i->in[0]));
}

/* A dim that is named twice would leave a place without one: a mask for each side finds that. */
bool lt_infer_movedim(lt_ctx *c, lt_infer *i) {
  lt_args_movedim *a = i->args;
  unsigned from = 0, to = 0;
  if (a->source.n != a->destination.n)
    return lt_fail(c, LT_EARG, "movedim: %d dims to move, %d places", a->source.n,
                   a->destination.n);
  for (int k = 0; k < a->source.n; k++) {
    if (!resolve(c, i, &a->source.dim[k]) || !resolve(c, i, &a->destination.dim[k])) return false;
    unsigned f = 1u << a->source.dim[k], t = 1u << a->destination.dim[k];
    if ((from & f) != 0 || (to & t) != 0)
      return lt_fail(c, LT_EARG, "movedim: a dim is given twice (shape %s)",
                     LT_TENSOR_STR(i->in[0]));
    from |= f;
    to |= t;
  }
  return true;
}

bool lt_infer_flip(lt_ctx *c, lt_infer *i) {
  lt_args_flip *a = i->args;
  for (int k = 0; k < a->dims.n; k++)
    if (!resolve(c, i, &a->dims.dim[k])) return false;
  return true;
}

/* Positions as scripts count them. */
static long long shown(int64_t position) { return position < 0 ? position : position + 1; }

bool lt_infer_select(lt_ctx *c, lt_infer *i) {
  lt_args_select *a = i->args;
  if (!resolve_along(c, i, &a->dim)) return false;
  int64_t n = i->in[0]->size[a->dim];
  if (a->index < -n || a->index >= n)
    return lt_fail(c, LT_EARG, "select: position %lld is out of 1..%lld (dim %lld of %s)",
                   shown(a->index), (long long)n, (long long)a->dim + 1, LT_TENSOR_STR(i->in[0]));
  if (a->index < 0) a->index += n;
  return true;
}

/* length > n - start, and not start + length > n, which may overflow. */
bool lt_infer_narrow(lt_ctx *c, lt_infer *i) {
  lt_args_narrow *a = i->args;
  if (!resolve_along(c, i, &a->dim)) return false;
  int64_t n = i->in[0]->size[a->dim], start = a->start < 0 ? a->start + n : a->start;
  if (a->length < 0 || start < 0 || start > n || a->length > n - start)
    return lt_fail(c, LT_EARG,
                   "narrow: %lld positions from %lld are out of 1..%lld (dim %lld of %s)",
                   (long long)a->length, shown(a->start), (long long)n, (long long)a->dim + 1,
                   LT_TENSOR_STR(i->in[0]));
  a->start = start;
  return true;
}

/* Ranges are inclusive; one that ends right before its start is empty. */
bool lt_infer_slice(lt_ctx *c, lt_infer *i) {
  lt_args_slice *a = i->args;
  if (!resolve_along(c, i, &a->dim)) return false;
  int64_t n = i->in[0]->size[a->dim];
  int64_t from = a->from < 0 ? a->from + n : a->from, to = a->to < 0 ? a->to + n : a->to;
  bool empty = to == from - 1 && from >= 0 && from <= n;
  if (a->step < 1)
    return lt_fail(c, LT_EARG, "slice: the step must be 1 or more, got %lld", (long long)a->step);
  if (!empty && (from < 0 || to >= n || to < from))
    return lt_fail(c, LT_EARG, "slice: the range %lld..%lld is out of 1..%lld (dim %lld of %s)",
                   shown(a->from), shown(a->to), (long long)n, (long long)a->dim + 1,
                   LT_TENSOR_STR(i->in[0]));
  a->from = from;
  a->to = to;
  return true;
}
