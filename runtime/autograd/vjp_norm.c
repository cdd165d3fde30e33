/* runtime/autograd/vjp_norm.c: derivatives of norms.

   Backward kernels compute the mean and the variance of layer, RMS and group norm again from x: one
   more pass over a row in cache, instead of two more saved tensors. Batch norm saves them, as they
   are outputs, and their sums run over all of x. */
#include "autograd/vjp.h"

/* With z = (x - mean) scale and a = g weight: scale (a - mean(a) - z mean(a z)), as the mean and
   the variance depend on x too (S. Ioffe, C. Szegedy, 2015, for batches). */
bool lt_vjp_layer_norm(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_layer_norm *a = v->args;
  const lt_args_layer_norm_backward args = {.normalized_shape = a->normalized_shape, .eps = a->eps};
  bool weighted = v->node->n_in > 1 && v->node->edges[1].shape.ndim > 0;
  lt_tensor *x = lt_saved_in(c, v, 0), *weight = weighted ? lt_saved_in(c, v, 1) : NULL;
  lt_tensor *g = v->grad[0], *out[3] = {NULL};
  if (x == NULL || !lt_ok(c)) return false;
  if (!lt_apply(c, LT_OP_layer_norm_backward, LT_IN(g, x, weight), &args, 3, out)) return false;
  if (v->need[0]) v->in[0] = out[0];
  if (weighted && v->need[1]) v->in[1] = out[1];
  if (v->node->n_in > 2 && v->need[2])
    v->in[2] = weighted ? out[2] : lt_sum_to(c, g, lt_in_shape(v, 2));
  return lt_ok(c);
}

bool lt_vjp_rms_norm(lt_ctx *c, lt_vjp_call *v) {
  bool weighted = v->node->n_in > 1 && v->node->edges[1].shape.ndim > 0;
  lt_tensor *x = lt_saved_in(c, v, 0), *weight = weighted ? lt_saved_in(c, v, 1) : NULL;
  lt_tensor *out[2] = {NULL};
  if (x == NULL || !lt_ok(c)) return false;
  if (!lt_apply(c, LT_OP_rms_norm_backward, LT_IN(v->grad[0], x, weight), v->args, 2, out))
    return false;
  for (int k = 0; k < v->node->n_in && k < 2; k++)
    if (v->need[k]) v->in[k] = out[k];
  return lt_ok(c);
}

bool lt_vjp_group_norm(lt_ctx *c, lt_vjp_call *v) {
  bool weighted = v->node->n_in > 1 && v->node->edges[1].shape.ndim > 0;
  lt_tensor *x = lt_saved_in(c, v, 0), *weight = weighted ? lt_saved_in(c, v, 1) : NULL;
  lt_tensor *out[3] = {NULL};
  if (x == NULL || !lt_ok(c)) return false;
  if (!lt_apply(c, LT_OP_group_norm_backward, LT_IN(v->grad[0], x, weight), v->args, 3, out))
    return false;
  for (int k = 0; k < v->node->n_in && k < 3; k++)
    if (v->need[k]) v->in[k] = out[k];
  return lt_ok(c);
}

/* A value of each channel, ready to broadcast over x. */
static lt_tensor *of_channels(lt_ctx *c, lt_tensor *t, const lt_tensor *x) {
  lt_shape s = {.ndim = x->ndim};
  for (int k = 0; k < x->ndim; k++) s.size[k] = k == 1 ? x->size[1] : 1;
  return lt_reshape(c, t, s);
}

/* What reaches x through the batch's mean and variance: (dmean + 2 (x - mean) dvar) / n; added to
   `gx`, which may be absent. */
static lt_tensor *through_statistics(lt_ctx *c, const lt_vjp_call *v, lt_tensor *x, lt_tensor *mean,
                                     lt_tensor *gx) {
  double n = (double)x->numel / (double)x->size[1];
  for (int k = 1; k < 3; k++) {
    if (v->grad[k] == NULL) continue;
    lt_tensor *g = of_channels(c, v->grad[k], x);
    g = lt_binary_scalar(c, LT_OP_mul, g, lt_scalar_of((double)k / n));
    if (k == 1)
      g = lt_expand_to(c, g, lt_tensor_shape(x));
    else
      g = lt_binary(c, LT_OP_mul, lt_binary(c, LT_OP_sub, x, of_channels(c, mean, x)), g);
    gx = gx == NULL ? g : lt_binary(c, LT_OP_add, gx, g);
  }
  return gx;
}

/* `fixed`: evaluation with running statistics, which do not depend on x; the derivative by x is
   then a factor for each channel. */
bool lt_vjp_batch_norm(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_batch_norm *a = v->args;
  const lt_node *n = v->node;
  bool fixed = n->n_out == 1;
  if (fixed && (v->need[3] || v->need[4]))
    return lt_fail(c, LT_EARG, "batch_norm: has no derivative by running statistics; detach them");
  const lt_args_batch_norm_backward args = {.eps = a->eps, .fixed = fixed};
  bool weighted = n->n_in > 1 && n->edges[1].shape.ndim > 0;
  lt_tensor *x = lt_saved_in(c, v, 0), *weight = weighted ? lt_saved_in(c, v, 1) : NULL;
  lt_tensor *mean = fixed ? lt_saved_in(c, v, 3) : lt_saved_out(c, v, 1);
  lt_tensor *variance = fixed ? lt_saved_in(c, v, 4) : lt_saved_out(c, v, 2);
  lt_tensor *g = v->grad[0], *out[3] = {NULL};
  if (!lt_ok(c)) return false;
  if (g != NULL &&
      !lt_apply(c, LT_OP_batch_norm_backward, LT_IN(g, x, mean, variance, weight), &args, 3, out))
    return false;
  if (!fixed && v->need[0]) out[0] = through_statistics(c, v, x, mean, out[0]);
  for (int k = 0; k < 3 && k < n->n_in; k++)
    if (v->need[k]) v->in[k] = out[k];
  return lt_ok(c);
}
