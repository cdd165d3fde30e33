/* runtime/autograd/vjp_random.c: derivatives of random ops.

   Random numbers are a function of a key and the position of an element (Philox, base/random.h), so
   nothing is saved: neither the mask nor the state of a generator. */
#include "autograd/vjp.h"

/* The same elements are dropped again: the key says which. */
bool lt_vjp_dropout(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = lt_apply1(c, LT_OP_dropout, 1, &v->grad[0], v->args);
  return lt_ok(c);
}
