/* runtime/autograd/vjp_random.c: derivatives of random ops. */
#include "autograd/vjp.h"

/* The same elements are dropped again: the key says which. */
bool lt_vjp_dropout(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = lt_apply1(c, LT_OP_dropout, 1, &v->grad[0], v->args);
  return lt_ok(c);
}
