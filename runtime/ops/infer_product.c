/* runtime/ops/infer_product.c: shapes of the composite products. */
#include "ops/infer.h"

/* Of kron any two. */
bool lt_infer_product(lt_ctx *c, lt_infer *i) {
  const lt_tensor *a = i->in[0], *b = i->in[1];
  bool dot = i->op == &lt_ops[LT_OP_dot], fits = true;
  if (dot || i->op == &lt_ops[LT_OP_outer])
    fits = a->ndim == 1 && b->ndim == 1 && (!dot || a->numel == b->numel);
  if (i->op == &lt_ops[LT_OP_bmm])
    fits = a->ndim == 3 && b->ndim == 3 && a->size[0] == b->size[0] && a->size[2] == b->size[1];
  return fits || lt_fail(c, LT_ESHAPE, "%s: needs %s, got %s and %s", i->op->name,
                         dot ? "two vectors of equal length"
                         : a->ndim == 3 || b->ndim == 3 ? "batches of matrices of equal inner size"
                                                        : "two vectors",
                         LT_TENSOR_STR(a), LT_TENSOR_STR(b));
}

bool lt_infer_cdist(lt_ctx *c, lt_infer *i) {
  const lt_args_cdist *args = i->args;
  const lt_tensor *a = i->in[0], *b = i->in[1];
  if (!lt_infer_float(c, i, 0)) return false;
  if (args->p < 0) return lt_fail(c, LT_EARG, "cdist: p must be 0 or more, got %g", args->p);
  return (a->ndim >= 2 && b->ndim >= 2 && a->size[a->ndim - 1] == b->size[b->ndim - 1]) ||
         lt_fail(c, LT_ESHAPE, "cdist: needs rows of equal length, got %s and %s",
                 LT_TENSOR_STR(a), LT_TENSOR_STR(b));
}

/* (input, a [N, K], b [K, M]); of baddbmm batches of them. */
bool lt_infer_addmm(lt_ctx *c, lt_infer *i) {
  const lt_tensor *a = i->in[1], *b = i->in[2];
  int n = i->op == &lt_ops[LT_OP_baddbmm] ? 3 : 2;
  if (a->ndim != n || b->ndim != n || a->size[n - 1] != b->size[n - 2] ||
      (n == 3 && a->size[0] != b->size[0]))
    return lt_fail(c, LT_ESHAPE, "%s: inner sizes differ, or these are not matrices: %s x %s",
                   i->op->name, LT_TENSOR_STR(a), LT_TENSOR_STR(b));
  lt_shape out = lt_tensor_shape(a);
  out.size[n - 1] = b->size[n - 1];
  lt_shape fit = out;
  if (!lt_shape_broadcast(&fit, lt_tensor_shape(i->in[0])) || !lt_shape_equal(fit, out))
    return lt_fail(c, LT_ESHAPE, "%s: %s does not fit into the product %s", i->op->name,
                   LT_TENSOR_STR(i->in[0]), LT_SHAPE_STR(out));
  return true;
}
