/* runtime/ops/expand_activation.c: activations that are not functions of one element.

   prelu: K. He and others, Delving Deep into Rectifiers, 2015. glu: Y. Dauphin and others,
   Language Modeling with Gated Convolutional Networks, 2017. swiglu: N. Shazeer, GLU Variants
   Improve Transformer, 2020. */
#include "ops/expand.h"

/* x, or weight x where it is not positive; the weight is one for all or one for each channel. */
bool lt_expand_prelu(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0], *weight = call->in[1];
  lt_shape shape = {.ndim = x->ndim};
  for (int k = 0; k < x->ndim; k++) shape.size[k] = k == 1 ? weight->numel : 1;
  if (weight->numel == 1) shape.ndim = 0;
  lt_tensor *positive = lt_binary_scalar(c, LT_OP_gt, x, lt_scalar_of(0));
  lt_tensor *rest = lt_mul(c, lt_filled(c, x, positive, 0), lt_reshape(c, weight, shape));
  *out = lt_chosen(c, positive, x, rest);
  return *out != NULL;
}

/* The first or second half of x. */
static lt_tensor *half(lt_ctx *c, lt_tensor *x, int64_t dim, int which) {
  int64_t n = x->size[dim] / 2;
  return lt_slice(c, x, (int)dim, which * n, n, 1);
}

bool lt_expand_glu(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_glu *a = call->args;
  lt_tensor *x = call->in[0];
  *out = lt_mul(c, half(c, x, a->dim, 0), lt_unary(c, LT_OP_sigmoid, half(c, x, a->dim, 1)));
  return *out != NULL;
}

bool lt_expand_swiglu(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_glu *a = call->args;
  lt_tensor *x = call->in[0];
  *out = lt_mul(c, lt_unary(c, LT_OP_silu, half(c, x, a->dim, 0)), half(c, x, a->dim, 1));
  return *out != NULL;
}

bool lt_expand_softmin(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = lt_unary(c, LT_OP_neg, call->in[0]);
  *out = lt_apply1(c, LT_OP_softmax, 1, &x, call->args);
  return *out != NULL;
}
