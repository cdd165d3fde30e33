/* runtime/autograd/vjp_join.c: derivatives of concatenation and stacking: parts of the gradient. */
#include "autograd/vjp.h"

/* Each tensor has the part of the gradient that stands where it stood. */
bool lt_vjp_cat(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_cat *a = v->args;
  lt_tensor *g = v->grad[0];
  int64_t at = 0;
  for (int k = 0; k < v->node->n_in; k++) {
    lt_shape s = lt_in_shape(v, k);
    if (s.ndim != g->ndim) continue; /* a tensor of shape [0], which fits everywhere */
    int64_t n = s.size[a->dim];
    if (v->need[k]) v->in[k] = lt_slice(c, g, (int)a->dim, at, n, 1);
    at += n;
  }
  return lt_ok(c);
}

bool lt_vjp_stack(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_stack *a = v->args;
  for (int k = 0; k < v->node->n_in; k++)
    if (v->need[k]) v->in[k] = lt_select(c, v->grad[0], (int)a->dim, k);
  return lt_ok(c);
}
