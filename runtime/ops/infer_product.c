/* runtime/ops/infer_product.c: shapes of the composite products. */
#include "ops/infer.h"

bool lt_infer_outer(lt_ctx *c, lt_infer *i) {
  return (i->in[0]->ndim == 1 && i->in[1]->ndim == 1) ||
         lt_fail(c, LT_ESHAPE, "outer: needs two vectors, got %s and %s", LT_TENSOR_STR(i->in[0]),
                 LT_TENSOR_STR(i->in[1]));
}

/* (input, a [N, K], b [K, M]) */
bool lt_infer_addmm(lt_ctx *c, lt_infer *i) {
  const lt_tensor *a = i->in[1], *b = i->in[2];
  if (a->ndim != 2 || b->ndim != 2 || a->size[1] != b->size[0])
    return lt_fail(c, LT_ESHAPE, "addmm: inner sizes differ, or these are not matrices: %s x %s",
                   LT_TENSOR_STR(a), LT_TENSOR_STR(b));
  lt_shape out = {.ndim = 2, .size = {a->size[0], b->size[1]}}, fit = out;
  if (!lt_shape_broadcast(&fit, lt_tensor_shape(i->in[0])) || !lt_shape_equal(fit, out))
    return lt_fail(c, LT_ESHAPE, "addmm: %s does not fit into the product %s",
                   LT_TENSOR_STR(i->in[0]), LT_SHAPE_STR(out));
  return true;
}
