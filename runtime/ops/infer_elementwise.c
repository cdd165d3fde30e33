/* runtime/ops/infer_elementwise.c: shapes and dtypes of elementwise kinds. */
#include "ops/infer.h"

/* Finds the dim of stride 1, then the one whose stride is that dim's size, and so on: at most 8
   dims, so a search in each round is cheaper than a sort. Dims of size 1 fit anywhere. */
bool lt_is_dense(const lt_tensor *t) {
  int64_t expected = 1;
  bool seen[LT_MAX_DIMS] = {false};
  for (int round = 0; round < t->ndim; round++) {
    int found = -1;
    for (int k = 0; k < t->ndim && found < 0; k++)
      if (!seen[k] && (t->size[k] == 1 || t->stride[k] == expected)) found = k;
    if (found < 0) return false;
    seen[found] = true;
    expected *= t->size[found];
  }
  return true;
}

/* A dense result takes the strides of its input (channels last stays channels last through an
   elementwise op, as PyTorch's memory formats do); one with gaps becomes row-major. */
void lt_meta_of(lt_meta *m, const lt_tensor *t) {
  m->shape = lt_tensor_shape(t);
  m->dtype = (lt_dtype)t->dtype;
  m->strided = !t->contiguous && lt_is_dense(t);
  if (!m->strided) return;
  for (int k = 0; k < t->ndim; k++) m->stride[k] = t->stride[k];
}

bool lt_infer_same(lt_ctx *c, lt_infer *i) {
  lt_meta_of(&i->out[0], i->in[0]);
  return lt_ok(c);
}

/* The strides are those of the first input that has the result's shape: for a bias added to a
   channels-last image, the image's. */
bool lt_infer_broadcast(lt_ctx *c, lt_infer *i) {
  const lt_tensor *first = NULL;
  lt_shape shape = {0};
  for (int k = 0; k < i->n_in; k++) {
    if (i->in[k] == NULL) continue;
    if (first == NULL) {
      first = i->in[k];
      shape = lt_tensor_shape(first);
    } else if (!lt_shape_broadcast(&shape, lt_tensor_shape(i->in[k]))) {
      return lt_fail(c, LT_ESHAPE, "%s: shapes do not broadcast: %s and %s", i->op->name,
                     LT_TENSOR_STR(first), LT_TENSOR_STR(i->in[k]));
    }
  }
  lt_meta *m = &i->out[0];
  m->shape = shape;
  m->strided = false;
  for (int k = 0; k < i->n_in && !m->strided; k++)
    if (i->in[k] != NULL && lt_shape_equal(lt_tensor_shape(i->in[k]), shape)) {
      lt_dtype dtype = m->dtype;
      lt_meta_of(m, i->in[k]);
      m->dtype = dtype;
      break;
    }
  return true;
}

/* PyTorch's rule (torch.result_type): category first (bool, integer, float); among equals tensors
   with dims outrank 0-d ones, and those outrank plain numbers. So a f16 tensor times 2.5 stays f16,
   an i64 tensor times 2.5 is f32, the default float. */
lt_dtype lt_result_type(lt_tensor *const *in, int n_in, lt_scalar a, lt_scalar b) {
  lt_dtype ranked[3] = {LT_DTYPE_NONE, LT_DTYPE_NONE, LT_DTYPE_NONE};
  for (int k = 0; k < n_in; k++) {
    if (in[k] == NULL) continue;
    lt_dtype *r = &ranked[in[k]->ndim > 0 ? 0 : 1];
    *r =
        *r == LT_DTYPE_NONE ? (lt_dtype)in[k]->dtype : lt_dtype_promote(*r, (lt_dtype)in[k]->dtype);
  }
  const lt_scalar scalars[2] = {a, b};
  for (int k = 0; k < 2; k++) {
    static const lt_dtype of_kind[] = {LT_DTYPE_NONE, LT_BOOL, LT_I64, LT_F32};
    lt_dtype d = of_kind[scalars[k].kind];
    if (d == LT_DTYPE_NONE) continue;
    ranked[2] = ranked[2] == LT_DTYPE_NONE ? d : lt_dtype_promote(ranked[2], d);
  }
  lt_dtype result = LT_DTYPE_NONE;
  for (int k = 0; k < 3; k++) {
    lt_dtype d = ranked[k];
    if (d == LT_DTYPE_NONE) continue;
    if (result == LT_DTYPE_NONE)
      result = d;
    else if ((lt_dtype_is_float(d) && !lt_dtype_is_float(result)) ||
             (lt_dtype_is_int(d) && result == LT_BOOL))
      result = d;
  }
  return result;
}

/* Comparisons give bool but compare in the promoted dtype of their inputs; the kernel needs the
   latter. */
lt_dtype lt_row_dtype(const lt_call *call) {
  const lt_op_info *op = &lt_ops[call->op];
  if (op->kind == LT_KIND_test) return (lt_dtype)call->in[0]->dtype;
  if (op->kind != LT_KIND_compare && op->kind != LT_KIND_binary)
    return (lt_dtype)call->out[0]->dtype;
  const lt_args_binary *args = call->args;
  lt_dtype d = lt_result_type(call->in, call->n_in, args->a, args->b);
  return op->dtype == LT_DTYPE_float && !lt_dtype_is_float(d) ? LT_F32 : d;
}

/* Rows of the rule `float` take integers as f32. */
static lt_dtype ruled(const lt_op_info *op, lt_dtype d) {
  return op->dtype == LT_DTYPE_float && !lt_dtype_is_float(d) ? LT_F32 : d;
}

static bool infer_one(lt_ctx *c, lt_infer *i) {
  lt_meta_of(&i->out[0], i->in[0]);
  i->out[0].dtype = ruled(i->op, i->out[0].dtype);
  if (i->out[0].dtype == LT_BOOL && i->op->kind != LT_KIND_test)
    return lt_fail(c, LT_EDTYPE, "%s: not defined for bool; write x:to('i64') first", i->op->name);
  return true;
}

bool lt_infer_unary(lt_ctx *c, lt_infer *i) { return infer_one(c, i); }

bool lt_infer_unary_numbers(lt_ctx *c, lt_infer *i) {
  const lt_args_unary_numbers *a = i->args;
  lt_op op = (lt_op)(i->op - lt_ops);
  if (op == LT_OP_hardtanh && a->p > a->q)
    return lt_fail(c, LT_EARG, "hardtanh: min_val must be at most max_val, got %g and %g", a->p,
                   a->q);
  if (op == LT_OP_softshrink && !(a->p >= 0))
    return lt_fail(c, LT_EARG, "softshrink: lambd must be at least 0, got %g", a->p);
  if (op == LT_OP_celu && a->p == 0) return lt_fail(c, LT_EARG, "celu: alpha must not be 0");
  return infer_one(c, i);
}

/* Of integers and fractions fractions, as in every other promotion. */
bool lt_infer_clamp(lt_ctx *c, lt_infer *i) {
  const lt_args_clamp *a = i->args;
  if (!infer_one(c, i)) return false;
  i->out[0].dtype = lt_result_type(i->in, 1, a->min, a->max);
  return true;
}

bool lt_infer_test(lt_ctx *c, lt_infer *i) {
  if (!infer_one(c, i)) return false;
  i->out[0].dtype = LT_BOOL;
  return true;
}

/* Gradients: (g, x or y). */
bool lt_infer_unary_backward(lt_ctx *c, lt_infer *i) { return lt_infer_same(c, i); }
bool lt_infer_unary_numbers_backward(lt_ctx *c, lt_infer *i) { return lt_infer_same(c, i); }
bool lt_infer_clamp_backward(lt_ctx *c, lt_infer *i) { return lt_infer_same(c, i); }

/* Gradients: (g, a, b, y), absent ones NULL; the result has the shape of g. */
bool lt_infer_binary_backward(lt_ctx *c, lt_infer *i) {
  return (i->op->dtype != LT_DTYPE_int || lt_assert(c, false)) && lt_infer_same(c, i);
}

/* A row takes two operands, each a tensor or a number: a call with both or neither is a mistake of
   C code or of a script that passes nil. */
static bool infer_two(lt_ctx *c, lt_infer *i) {
  const lt_args_binary *args = i->args;
  int operands = (i->n_in > 1 && i->in[1] != NULL) + (args->a.kind != LT_NO_SCALAR) +
                 (args->b.kind != LT_NO_SCALAR);
  if (operands != 1)
    return lt_fail(c, LT_EARG, "%s: needs two operands, got %d", i->op->name, operands + 1);
  i->out[0].dtype = ruled(i->op, lt_result_type(i->in, i->n_in, args->a, args->b));
  return lt_infer_broadcast(c, i);
}

/* Of two bools + is "or" and * is "and", as in PyTorch: what is not 0 is stored as true. */
static bool takes_bools(const lt_op_info *op) {
  return op->dtype != LT_DTYPE_any || op == &lt_ops[LT_OP_add] || op == &lt_ops[LT_OP_mul];
}

bool lt_infer_binary(lt_ctx *c, lt_infer *i) {
  if (!infer_two(c, i)) return false;
  if (i->op->dtype == LT_DTYPE_int && lt_dtype_is_float(i->out[0].dtype))
    return lt_fail(c, LT_EDTYPE, "%s: needs integers or bools, got %s", i->op->name,
                   lt_dtype_name(i->out[0].dtype));
  if (i->out[0].dtype == LT_BOOL && !takes_bools(i->op))
    return lt_fail(c, LT_EDTYPE, "%s: not defined for two bools; use the logical ops or :to('i64')",
                   i->op->name);
  return true;
}

bool lt_infer_compare(lt_ctx *c, lt_infer *i) {
  if (!infer_two(c, i)) return false;
  i->out[0].dtype = LT_BOOL;
  return true;
}
