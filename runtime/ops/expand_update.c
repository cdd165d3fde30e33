/* runtime/ops/expand_update.c: gradient clipping, in place and without reading the norm; never
   recorded. */
#include "ops/expand.h"

/* The factor where the norm is finite, else 1. With keep_nonfinite a NaN stays where it was made,
   for the message that names the parameter; otherwise one NaN in the norm makes all gradients NaN,
   PyTorch's behaviour. */
static lt_tensor *finite_or_one(lt_ctx *c, lt_tensor *norm, lt_tensor *factor) {
  lt_tensor *finite = lt_unary(c, LT_OP_isfinite, norm);
  lt_tensor *one = lt_full(c, lt_tensor_shape(norm), lt_scalar_of(1), (lt_dtype)norm->dtype,
                           norm->storage->device);
  return finite != NULL && one != NULL
             ? lt_apply1(c, LT_OP_where, LT_IN(finite, factor, one), NULL)
             : NULL;
}

/* factor = max_norm / (norm + 1e-6), at most 1; the norm before clipping is the result. R. Pascanu,
   T. Mikolov, Y. Bengio, On the Difficulty of Training Recurrent Neural Networks, 2013; the 1e-6 is
   torch.nn.utils.clip_grad_norm_'s. The factor stays on the device: the host never waits, at the
   price of a multiplication by 1 where nothing is to be clipped. */
static bool clip(lt_ctx *c, const lt_call *call, lt_tensor *norm) {
  const lt_args_clip_grad_norm *a = call->args;
  lt_tensor *n = lt_binary_scalar(c, LT_OP_add, norm, lt_scalar_of(1e-6));
  n = lt_apply1(c, LT_OP_div, 1, &n, &(lt_args_binary){.a = lt_scalar_of(a->max_norm)});
  n = lt_apply1(c, LT_OP_clamp, 1, &n, &(lt_args_clamp){.max = lt_scalar_of(1)});
  if (a->keep_nonfinite) n = finite_or_one(c, norm, n);
  size_t bytes = (size_t)(call->n_in + 1) * sizeof n;
  lt_tensor **in = n == NULL ? NULL : lt_alloc(c, bytes);
  if (in == NULL) return false;
  in[0] = n;
  for (int k = 0; k < call->n_in; k++) in[k + 1] = call->in[k];
  bool ok = lt_apply(c, LT_OP_grads_scale, call->n_in + 1, in, NULL, 0, NULL);
  lt_free(c, in, bytes);
  return ok;
}

/* One norm over all gradients as one vector. Only error_if_nonfinite waits for its value. */
static bool clip_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_clip_grad_norm *a = call->args;
  const lt_args_grads_norm args = {.p = a->norm_type};
  lt_tensor *norm = lt_apply1(c, LT_OP_grads_norm, call->n_in, call->in, &args);
  if (norm == NULL) return false;
  if (a->error_if_nonfinite) {
    lt_scalar value;
    if (!lt_item(c, norm, &value)) return false;
    if (!isfinite(value.f))
      return lt_fail(c, LT_EVALUE, "clip_grad_norm: the total norm of %d gradients is %g",
                     call->n_in, value.f);
  }
  *out = norm;
  return call->n_in == 0 || clip(c, call, norm);
}

bool lt_expand_clip_grad_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  bool grad = c->modes.grad;
  c->modes.grad = false;
  bool ok = clip_norm(c, call, out);
  c->modes.grad = grad;
  return ok;
}

/* Each gradient through clamp, in place; a NaN passes. */
bool lt_expand_clip_grad_value(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_clip_grad_value *a = call->args;
  bool grad = c->modes.grad, ok = true;
  const lt_args_clamp args = {.min = lt_scalar_of(-a->clip_value),
                              .max = lt_scalar_of(a->clip_value)};
  (void)out;
  c->modes.grad = false;
  for (int k = 0; k < call->n_in && ok; k++) {
    lt_tensor *g = call->in[k];
    ok = lt_apply(c, LT_OP_clamp, 1, &call->in[k], &args, 1, &g);
  }
  c->modes.grad = grad;
  return ok;
}
