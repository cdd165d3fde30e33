/* runtime/autograd/vjp_attention.c: the derivative of attention, which computes the scores again.

   Forward saves the output and the logarithm of each row's sum of exponentials, [.., T], not the
   scores, [.., T, T]: backward computes them again by tiles (T. Dao et al., FlashAttention, 2022,
   arXiv:2205.14135). Dropout repeats its mask from rng_key, which is why the key is an argument. */
#include "autograd/vjp.h"

bool lt_vjp_scaled_dot_product_attention(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_attention *a = v->args;
  bool masked = v->node->n_in > 3, of_mask = masked && v->need[3];
  const lt_args_attention_backward args = {.causal = a->causal,
                                           .scale = a->scale,
                                           .dropout_p = a->dropout_p,
                                           .enable_gqa = a->enable_gqa,
                                           .first_head = a->first_head,
                                           .all_heads = a->all_heads,
                                           .rng_key = a->rng_key,
                                           .of_mask = of_mask};
  if (v->grad[0] == NULL) return true;
  lt_tensor *q = lt_saved_in(c, v, 0);
  if (q == NULL) return false;
  lt_tensor *in[7] = {lt_cast(c, v->grad[0], (lt_dtype)q->dtype),
                      q,
                      lt_saved_in(c, v, 1),
                      lt_saved_in(c, v, 2),
                      lt_saved_out(c, v, 0),
                      lt_saved_out(c, v, 1),
                      masked ? lt_saved_in(c, v, 3) : NULL};
  lt_tensor *out[4] = {NULL};
  if (!lt_apply(c, LT_OP_scaled_dot_product_attention_backward, 7, in, &args, 4, out)) return false;
  for (int k = 0; k < 3; k++) v->in[k] = out[k];
  if (of_mask) v->in[3] = lt_sum_to(c, out[3], v->node->edges[3].shape);
  return lt_ok(c);
}
