/* runtime/autograd/vjp_elementwise.c: derivatives of elementwise rows: by their backward ops, or,
   where the backward itself is recorded, written out as operations. */
#include "autograd/formula.h"
#include "autograd/vjp.h"
#include "ops/elementwise_numbers.h"

/* The dtype in which a derivative is written out: f16 and bf16 would round at each step. */
static lt_tensor *widened(lt_ctx *c, lt_tensor *x, const lt_tensor *g) {
  return lt_cast(c, x, g->dtype == LT_F64 ? LT_F64 : LT_F32);
}

/* g times the derivative, which `text` says in terms of those of `terms`. */
static lt_tensor *written_out(lt_ctx *c, lt_tensor *g, const char *text, lt_terms terms) {
  lt_term *all[] = {&terms.x, &terms.y, &terms.a, &terms.b};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (all[k]->tensor != NULL) all[k]->tensor = widened(c, all[k]->tensor, g);
  lt_term d = lt_formula(c, text, &terms);
  if (!lt_ok(c)) return NULL;
  g = widened(c, g, g);
  return d.tensor != NULL ? lt_binary(c, LT_OP_mul, g, d.tensor)
                          : lt_binary_scalar(c, LT_OP_mul, g, lt_scalar_of(d.number));
}

/* Only what the derivative reads was saved (the bits of `saves`, found in its text): x, y, or
   neither. The fused op reads both terms in one pass; a recorded backward, for second derivatives,
   runs the text as operations (formula.c). */
bool lt_vjp_unary(lt_ctx *c, lt_vjp_call *v) {
  const lt_op_info *op = &lt_ops[v->node->op];
  lt_tensor *g = v->grad[0];
  lt_terms terms = {0};
  if ((op->saves & 1u) != 0) terms.x.tensor = lt_saved_in(c, v, 0);
  if ((op->saves >> 16) != 0) terms.y.tensor = lt_saved_out(c, v, 0);
  if (!lt_ok(c)) return false;
  lt_tensor *value = terms.x.tensor != NULL   ? terms.x.tensor
                     : terms.y.tensor != NULL ? terms.y.tensor
                                              : g; /* a constant derivative reads nothing */
  if (!lt_recording(c, LT_IN(g, value))) {
    v->in[0] = lt_apply1(c, op->backward, LT_IN(g, value), v->args);
    return lt_ok(c);
  }
  lt_scalar p = {0}, q = {0};
  lt_row_numbers(op->kind, v->args, &p, &q);
  terms.p.number = p.f;
  terms.q.number = q.f;
  v->in[0] = written_out(c, g, op->derivative[0], terms);
  return lt_ok(c);
}

/* Gradient by one operand of a binary row; input `k` of the node. `which` says whose derivative (0:
   of a, 1: of b); a scalar operand is not an input of the node, so that b may be input 0. Where an
   operand was broadcast its gradient is the sum over those dims. */
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
  lt_tensor *grad;
  if (lt_recording(c, LT_IN(g, a, b, y)))
    grad = written_out(c, g, op->derivative[which],
                       (lt_terms){.a = {a, args->a.f}, .b = {b, args->b.f}, .y = {y, 0}});
  else
    grad = lt_apply1(c, backward, LT_IN(g, a, b, y), v->args);
  return lt_sum_to(c, grad, lt_in_shape(v, k));
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
