/* runtime/autograd/vjp_attention.c: the derivative of attention, which computes the scores again.
 */
#include "autograd/vjp.h"

bool lt_vjp_scaled_dot_product_attention(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_attention *a = v->args;
  const lt_args_attention_backward args = {.causal = a->causal, .scale = a->scale};
  bool masked = v->node->n_in > 3;
  if (masked && v->need[3])
    return lt_fail(c, LT_EARG,
                   "scaled_dot_product_attention: has no derivative by its mask; "
                   "detach the mask or write the product out with softmax");
  if (v->grad[0] == NULL) return true;
  lt_tensor *in[7] = {v->grad[0],
                      lt_saved_in(c, v, 0),
                      lt_saved_in(c, v, 1),
                      lt_saved_in(c, v, 2),
                      lt_saved_out(c, v, 0),
                      lt_saved_out(c, v, 1),
                      masked ? lt_saved_in(c, v, 3) : NULL};
  lt_tensor *out[3] = {NULL};
  if (!lt_apply(c, LT_OP_scaled_dot_product_attention_backward, 7, in, &args, 3, out)) return false;
  for (int k = 0; k < 3; k++) v->in[k] = out[k];
  return true;
}
