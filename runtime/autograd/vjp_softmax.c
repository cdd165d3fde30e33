/* runtime/autograd/vjp_softmax.c: derivatives of softmax and of losses. */
#include "autograd/vjp.h"

#include <string.h>

/* The same as the backward ops, in operations that have derivatives: y (g - sum(g y)) of softmax,
   g - e^y sum(g) of its logarithm. */
static lt_tensor *written_out(lt_ctx *c, lt_tensor *g, lt_tensor *y, lt_op op, int64_t dim) {
  const lt_args_reduce keep = {.dims = LT_ONE_DIM(dim), .keepdim = true};
  lt_dtype wide = y->dtype == LT_F64 ? LT_F64 : LT_F32;
  if (y->ndim == 0) return lt_binary_scalar(c, LT_OP_mul, g, lt_scalar_of(0)); /* one class */
  g = lt_cast(c, g, wide);
  y = lt_cast(c, y, wide);
  if (op == LT_OP_softmax_backward) {
    lt_tensor *own = lt_binary(c, LT_OP_mul, g, y);
    lt_tensor *all = lt_apply1(c, LT_OP_sum, 1, &own, &keep);
    return lt_binary(c, LT_OP_mul, y, lt_binary(c, LT_OP_sub, g, all));
  }
  lt_tensor *all = lt_apply1(c, LT_OP_sum, 1, &g, &keep);
  return lt_binary(c, LT_OP_sub, g, lt_binary(c, LT_OP_mul, lt_unary(c, LT_OP_exp, y), all));
}

static bool softmax_backward(lt_ctx *c, lt_vjp_call *v, lt_op op) {
  const lt_args_softmax_backward args = {.dim = ((const lt_args_softmax *)v->args)->dim};
  lt_tensor *y = lt_saved_out(c, v, 0), *g = v->grad[0];
  if (y == NULL) return false;
  v->in[0] = c->modes.grad ? written_out(c, g, y, op, args.dim)
                           : lt_apply1(c, op, LT_IN(g, y), &args);
  return lt_ok(c);
}

/* y (g - sum(y g)): the product with the Jacobian diag(y) - y y^T, which is never made. */
bool lt_vjp_softmax(lt_ctx *c, lt_vjp_call *v) {
  return softmax_backward(c, v, LT_OP_softmax_backward);
}
/* g - softmax(x) sum(g). */
bool lt_vjp_log_softmax(lt_ctx *c, lt_vjp_call *v) {
  return softmax_backward(c, v, LT_OP_log_softmax_backward);
}

/* By probabilities as targets: -log_softmax(x) (1 - smoothing) times weights and gradient. Targets
   that are probabilities may come from a model (distillation), and then want a gradient themselves.
   Rare enough to be written in operations instead of a kernel. */
static lt_tensor *by_target(lt_ctx *c, lt_vjp_call *v, lt_tensor *x, lt_tensor *total,
                            lt_tensor *weight) {
  const lt_args_cross_entropy *a = v->args;
  int dim = x->ndim > 1 ? 1 : 0;
  lt_shape row = lt_tensor_shape(x), classes = {.ndim = x->ndim};
  for (int k = 0; k < x->ndim; k++) classes.size[k] = k == dim ? x->size[k] : 1;
  row.size[dim] = 1;
  lt_tensor *y = lt_apply1(c, LT_OP_log_softmax, 1, &x, &(lt_args_softmax){.dim = dim});
  y = lt_binary_scalar(c, LT_OP_mul, y, lt_scalar_of(a->label_smoothing - 1));
  if (weight != NULL) y = lt_binary(c, LT_OP_mul, y, lt_reshape(c, weight, classes));
  lt_tensor *g = v->grad[0];
  if (a->reduction == LT_REDUCTION_none) g = lt_reshape(c, g, row);
  if (a->reduction == LT_REDUCTION_mean) g = lt_binary(c, LT_OP_div, g, total);
  return lt_binary(c, LT_OP_mul, y, g);
}

bool lt_vjp_cross_entropy(lt_ctx *c, lt_vjp_call *v) {
  lt_args_cross_entropy_backward args;
  memcpy(&args, v->args, sizeof args); /* the kinds have the same arguments */
  bool weighted = v->node->n_in > 2 && v->node->edges[2].shape.ndim > 0;
  if (weighted && v->need[2]) return lt_vjp_by_expand(c, v);
  lt_tensor *x = lt_saved_in(c, v, 0), *target = lt_saved_in(c, v, 1);
  lt_tensor *stats = lt_saved_out(c, v, 1), *total = lt_saved_out(c, v, 2);
  lt_tensor *weight = weighted ? lt_saved_in(c, v, 2) : NULL;
  if (!lt_ok(c)) return false;
  if (v->need[0])
    v->in[0] = lt_apply1(c, LT_OP_cross_entropy_backward,
                         LT_IN(v->grad[0], x, target, stats, total, weight), &args);
  if (v->need[1]) v->in[1] = by_target(c, v, x, total, weight);
  return lt_ok(c);
}
