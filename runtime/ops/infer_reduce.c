/* runtime/ops/infer_reduce.c: shapes and dtypes of reductions. */
#include "ops/infer.h"

/* Write the dims that are meant into *dims: explicit, from 0, ascending, each once. None given
   (or an empty list) means all of them. */
static bool resolve_dims(lt_ctx *c, const lt_op_info *op, const lt_tensor *x, lt_dims *dims) {
  bool reduced[LT_MAX_DIMS] = {false};
  for (int k = 0; k < x->ndim && dims->n <= 0; k++) reduced[k] = true;
  for (int k = 0; k < dims->n; k++) {
    int d;
    if (!lt_shape_dim(c, lt_tensor_shape(x), dims->dim[k], &d)) return false;
    if (reduced[d])
      return lt_fail(c, LT_EARG, "%s: dim %d is given twice for %s", op->name, d + 1,
                     LT_TENSOR_STR(x));
    reduced[d] = true;
  }
  dims->n = 0;
  for (int k = 0; k < x->ndim; k++)
    if (reduced[k]) dims->dim[dims->n++] = k;
  return true;
}

/* Shape of `x` with the dims (as resolve_dims leaves them) gone, or of size 1. */
static lt_shape without_dims(const lt_tensor *x, const lt_dims *dims, bool keepdim) {
  lt_shape s = {0};
  for (int k = 0, r = 0; k < x->ndim; k++) {
    bool reduced = r < dims->n && dims->dim[r] == k;
    if (reduced) r++;
    if (!reduced || keepdim) s.size[s.ndim++] = reduced ? 1 : x->size[k];
  }
  return s;
}

/* Integers: sums stay integers (i64), means become f32, truth values become bool. */
static lt_dtype reduced_dtype(const lt_op_info *op, lt_dtype x) {
  switch ((int)(op - lt_ops)) {
    case LT_OP_sum: return lt_dtype_is_float(x) ? x : LT_I64;
    default: return x;
  }
}

bool lt_infer_reduce(lt_ctx *c, lt_infer *i) {
  lt_args_reduce *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!resolve_dims(c, i->op, x, &a->dims)) return false;
  i->out[0] = (lt_meta){.shape = without_dims(x, &a->dims, a->keepdim),
                        .dtype = reduced_dtype(i->op, (lt_dtype)x->dtype)};
  return true;
}
