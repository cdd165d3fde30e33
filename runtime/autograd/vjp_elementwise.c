/* runtime/autograd/vjp_elementwise.c: derivatives of elementwise rows, by their backward ops. */
#include "autograd/vjp.h"

bool lt_vjp_unary(lt_ctx *c, lt_vjp_call *v) {
  const lt_op_info *op = &lt_ops[v->node->op];
  lt_tensor *g = v->grad[0];
  lt_tensor *value = (op->saves & 1u) != 0      ? lt_saved_in(c, v, 0)
                     : (op->saves >> 16) != 0 ? lt_saved_out(c, v, 0)
                                                : g; /* a constant derivative reads nothing */
  v->in[0] = value == NULL ? NULL : lt_apply1(c, op->backward, LT_IN(g, value), v->args);
  return lt_ok(c);
}

/* Gradient by one operand of a binary row; input `k` of the node. */
static lt_tensor *side(lt_ctx *c, lt_vjp_call *v, int which, int k) {
  const lt_op_info *op = &lt_ops[v->node->op];
  const lt_args_binary *args = v->args;
  lt_tensor *g = v->grad[0], *a = NULL, *b = NULL, *y = NULL;
  if (op->pass_side[which]) return lt_sum_to(c, g, lt_in_shape(v, k));
  uint32_t reads = op->saves_side[which];
  int b_input = args->a.kind != LT_NO_SCALAR ? 0 : 1;
  if ((reads & LT_SAVES_A) != 0 && args->a.kind == LT_NO_SCALAR) a = lt_saved_in(c, v, 0);
  if ((reads & LT_SAVES_B) != 0 && args->b.kind == LT_NO_SCALAR) b = lt_saved_in(c, v, b_input);
  if ((reads & LT_SAVES_Y) != 0) y = lt_saved_out(c, v, 0);
  if (!lt_ok(c)) return NULL;
  lt_op backward = (lt_op)(op->backward + (lt_op)which);
  return lt_sum_to(c, lt_apply1(c, backward, LT_IN(g, a, b, y), v->args), lt_in_shape(v, k));
}

bool lt_vjp_binary(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_binary *args = v->args;
  if (args->a.kind != LT_NO_SCALAR) {
    v->in[0] = side(c, v, 1, 0);
    return lt_ok(c);
  }
  if (v->need[0]) v->in[0] = side(c, v, 0, 0);
  if (args->b.kind == LT_NO_SCALAR && v->need[1]) v->in[1] = side(c, v, 1, 1);
  return lt_ok(c);
}
