/* runtime/ops/infer_reduce.c: shapes and dtypes of reductions and scans. */
#include "ops/infer.h"

bool lt_infer_float(lt_ctx *c, lt_infer *i, int k) {
  lt_dtype d = (lt_dtype)i->in[k]->dtype;
  return lt_dtype_is_float(d) ||
         lt_fail(c, LT_EDTYPE, "%s: needs a floating tensor, got %s; write x:to('f32')",
                 i->op->name, lt_dtype_name(d));
}

/* Write the dims that are meant into *dims: explicit, from 0, ascending, each once. None set (or an
   empty list) means all of them. Kernels can so rely on one form; a bit set would do, but args are
   also what error messages and the tape show. */
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

/* Integers: sums stay integers (i64), means become f32, truth values become bool. PyTorch's: a sum
   of bools counts them. 16-bit floats keep their dtype; kernels accumulate in f32. */
static lt_dtype reduced_dtype(const lt_op_info *op, lt_dtype x) {
  bool is_float = lt_dtype_is_float(x);
  switch ((int)(op - lt_ops)) {
    case LT_OP_count_nonzero: return LT_I64;
    case LT_OP_nansum:
    case LT_OP_sum:
    case LT_OP_prod: return is_float ? x : LT_I64;
    case LT_OP_mean:
    case LT_OP_logsumexp: return is_float ? x : LT_F32;
    case LT_OP_any:
    case LT_OP_all: return LT_BOOL;
    default: return x;
  }
}

/* The largest of nothing does not exist. */
static bool check_not_empty(lt_ctx *c, const lt_op_info *op, const lt_tensor *x,
                            const lt_dims *dims) {
  for (int k = 0; k < dims->n; k++)
    if (x->size[dims->dim[k]] == 0)
      return lt_fail(c, LT_ESHAPE, "%s: no elements along dim %d of %s", op->name,
                     (int)dims->dim[k] + 1, LT_TENSOR_STR(x));
  return true;
}

bool lt_infer_reduce(lt_ctx *c, lt_infer *i) {
  lt_args_reduce *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!resolve_dims(c, i->op, x, &a->dims)) return false;
  bool extreme = i->op == &lt_ops[LT_OP_amax] || i->op == &lt_ops[LT_OP_amin];
  if (extreme && !check_not_empty(c, i->op, x, &a->dims)) return false;
  i->out[0] = (lt_meta){.shape = without_dims(x, &a->dims, a->keepdim),
                        .dtype = reduced_dtype(i->op, (lt_dtype)x->dtype)};
  return true;
}

/* One dim, or none for the whole tensor; *dims gets what is reduced. */
static bool resolve_dim(lt_ctx *c, lt_infer *i, int64_t *dim, lt_dims *dims) {
  *dims = *dim == LT_NO_DIM ? LT_NO_DIMS : LT_ONE_DIM(*dim);
  if (!resolve_dims(c, i->op, i->in[0], dims)) return false;
  if (*dim != LT_NO_DIM) *dim = dims->n > 0 ? dims->dim[0] : 0;
  return check_not_empty(c, i->op, i->in[0], dims);
}

bool lt_infer_arg_reduce(lt_ctx *c, lt_infer *i) {
  lt_args_arg_reduce *a = i->args;
  lt_dims dims;
  if (!resolve_dim(c, i, &a->dim, &dims)) return false;
  i->out[0] = (lt_meta){.shape = without_dims(i->in[0], &dims, a->keepdim), .dtype = LT_I64};
  return true;
}

/* (values, indices) along a dim; without one the one value alone. */
bool lt_infer_extremum(lt_ctx *c, lt_infer *i) {
  lt_args_extremum *a = i->args;
  lt_dims dims;
  if (!resolve_dim(c, i, &a->dim, &dims)) return false;
  if (a->dim == LT_NO_DIM) i->n_out = 1;
  if (a->dim != LT_NO_DIM && !lt_assert(c, i->n_out == 2)) return false;
  lt_shape shape = without_dims(i->in[0], &dims, a->keepdim);
  i->out[0] = (lt_meta){.shape = shape, .dtype = (lt_dtype)i->in[0]->dtype};
  i->out[1] = (lt_meta){.shape = shape, .dtype = LT_I64};
  return true;
}

/* (gradient, indices), both with the dim in place at size 1. */
bool lt_infer_extremum_backward(lt_ctx *c, lt_infer *i) {
  const lt_args_extremum_backward *a = i->args;
  lt_shape shape = lt_tensor_shape(i->in[0]);
  if (shape.ndim > 0) shape.size[a->dim] = a->size;
  i->out[0] = (lt_meta){.shape = shape, .dtype = (lt_dtype)i->in[0]->dtype};
  return lt_ok(c);
}

bool lt_infer_variance(lt_ctx *c, lt_infer *i) {
  lt_args_variance *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!lt_infer_float(c, i, 0) || !resolve_dims(c, i->op, x, &a->dims)) return false;
  i->out[0] = (lt_meta){.shape = without_dims(x, &a->dims, a->keepdim),
                        .dtype = (lt_dtype)x->dtype};
  return true;
}

bool lt_infer_moments(lt_ctx *c, lt_infer *i) { return lt_infer_variance(c, i); }

bool lt_infer_aminmax(lt_ctx *c, lt_infer *i) {
  lt_args_aminmax *a = i->args;
  lt_dims dims;
  return resolve_dim(c, i, &a->dim, &dims);
}

bool lt_infer_norm(lt_ctx *c, lt_infer *i) {
  lt_args_norm *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!lt_infer_float(c, i, 0) || !resolve_dims(c, i->op, x, &a->dims)) return false;
  i->out[0] = (lt_meta){.shape = without_dims(x, &a->dims, a->keepdim),
                        .dtype = (lt_dtype)x->dtype};
  return true;
}

/* The strides stay, as a scan is elementwise in all dims but one. */
bool lt_infer_scan(lt_ctx *c, lt_infer *i) {
  lt_args_scan *a = i->args;
  int d;
  if (!lt_shape_dim(c, lt_tensor_shape(i->in[0]), a->dim, &d)) return false;
  a->dim = d;
  lt_meta_of(&i->out[0], i->in[0]);
  if (!lt_dtype_is_float(i->out[0].dtype)) i->out[0].dtype = LT_I64;
  return true;
}

bool lt_infer_scan_backward(lt_ctx *c, lt_infer *i) { return lt_infer_same(c, i); }
