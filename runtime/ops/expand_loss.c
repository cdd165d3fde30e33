/* runtime/ops/expand_loss.c: losses written as other ops. */
#include "ops/op.h"

bool lt_expand_mse_loss(lt_ctx *c, const lt_call *call, lt_tensor **out);
bool lt_expand_l1_loss(lt_ctx *c, const lt_call *call, lt_tensor **out);
bool lt_expand_binary_cross_entropy_with_logits(lt_ctx *c, const lt_call *call, lt_tensor **out);

static bool reduce(lt_ctx *c, const lt_call *call, lt_tensor *loss, lt_tensor **out) {
  const lt_args_loss *a = call->args;
  if (a->reduction == LT_REDUCTION_mean) loss = lt_unary(c, LT_OP_mean, loss);
  if (a->reduction == LT_REDUCTION_sum) loss = lt_unary(c, LT_OP_sum, loss);
  *out = loss;
  return loss != NULL;
}

bool lt_expand_mse_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *d = lt_binary(c, LT_OP_sub, call->in[0], call->in[1]);
  return reduce(c, call, lt_unary(c, LT_OP_square, d), out);
}

bool lt_expand_l1_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *d = lt_binary(c, LT_OP_sub, call->in[0], call->in[1]);
  return reduce(c, call, lt_unary(c, LT_OP_abs, d), out);
}

/* log(1 + e^x) - x target: no exponential overflows. */
bool lt_expand_binary_cross_entropy_with_logits(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *own = lt_binary(c, LT_OP_mul, call->in[0], call->in[1]);
  lt_tensor *loss = lt_binary(c, LT_OP_sub, lt_unary(c, LT_OP_softplus, call->in[0]), own);
  return reduce(c, call, loss, out);
}
