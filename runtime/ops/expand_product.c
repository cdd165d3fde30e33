/* runtime/ops/expand_product.c: composite products. */
#include "ops/expand.h"

bool lt_expand_outer(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_shape column = {.ndim = 2, .size = {call->in[0]->numel, 1}};
  *out = lt_binary(c, LT_OP_mul, lt_reshape(c, call->in[0], column), call->in[1]);
  return *out != NULL;
}

/* beta * input + alpha * (a b) */
bool lt_expand_addmm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_addmm *a = call->args;
  lt_tensor *input = call->in[0];
  lt_tensor *y = lt_apply1(c, LT_OP_matmul, LT_IN(call->in[1], call->in[2]), NULL);
  if (a->alpha != 1) y = lt_binary_scalar(c, LT_OP_mul, y, lt_scalar_of(a->alpha));
  if (a->beta != 1) input = lt_binary_scalar(c, LT_OP_mul, input, lt_scalar_of(a->beta));
  *out = lt_binary(c, LT_OP_add, input, y);
  return *out != NULL;
}
