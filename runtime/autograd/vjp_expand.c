/* runtime/autograd/vjp_expand.c: the derivative of an op by way of its definition in other ops.

   A fused backward kernel has no derivative. Where a backward is recorded, or needs a derivative
   that the kernel does not give, the op is written out over again, and that is differentiated: by
   stand-ins for the inputs, so that the walk ends there and what it records continues to where the
   inputs came from. */
#include "autograd/vjp.h"

enum { MOST = LT_FINITE_IN };

/* A name of its own for input k: a view of what was saved, with its history; zeros where nothing
   was, because no derivative depends on it. */
static lt_tensor *stand_in(lt_ctx *c, lt_vjp_call *v, int k) {
  const lt_edge *e = &v->node->edges[k];
  lt_tensor *x = lt_saved_in(c, v, k);
  if (!lt_ok(c) || !v->need[k]) return x;
  if (x == NULL) {
    x = lt_full(c, e->shape, lt_scalar_of(0), e->dtype, e->device);
    if (x != NULL) x->flags |= LT_REQUIRES_GRAD;
  }
  return lt_reshape(c, x, e->shape);
}

static bool differentiate(lt_ctx *c, lt_vjp_call *v, bool is_recorded) {
  const lt_node *n = v->node;
  const lt_op_info *op = &lt_ops[n->op];
  lt_tensor *in[MOST] = {NULL}, *made[LT_MAX_OUT] = {NULL};
  lt_tensor *root[LT_MAX_OUT], *seed[LT_MAX_OUT], *by[MOST], *grad[MOST];
  int n_root = 0, n_by = 0;
  if (!lt_assert(c, n->n_in <= MOST)) return false;
  for (int k = 0; k < n->n_in; k++) {
    in[k] = stand_in(c, v, k);
    if (in[k] != NULL && v->need[k]) by[n_by++] = in[k];
  }
  const lt_call call = {.op = (int)n->op, .n_in = n->n_in, .n_out = n->n_out, .in = in,
                        .out = made, .args = v->args};
  if (!lt_ok(c) || !op->expand(c, &call, made)) return false;
  for (int k = 0; k < n->n_out; k++) {
    if (v->grad[k] == NULL || made[k] == NULL || !lt_requires_grad(made[k])) continue;
    root[n_root] = made[k];
    seed[n_root++] = v->grad[k];
  }
  const lt_backward_options options = {.create_graph = is_recorded};
  if (!lt_grad(c, n_root, root, seed, n_by, by, &options, grad)) return false;
  for (int k = 0, j = 0; k < n->n_in; k++)
    if (in[k] != NULL && v->need[k]) v->in[k] = grad[j++];
  return true;
}

bool lt_vjp_by_expand(lt_ctx *c, lt_vjp_call *v) {
  bool is_recorded = c->modes.grad;
  c->modes.grad = true; /* of what is written out */
  bool ok = differentiate(c, v, is_recorded);
  c->modes.grad = is_recorded;
  return ok;
}
