/* runtime/ops/expand_product.c: composite products. */
#include <math.h>

#include "ops/expand.h"

bool lt_expand_outer(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_shape column = {.ndim = 2, .size = {call->in[0]->numel, 1}};
  *out = lt_binary(c, LT_OP_mul, lt_reshape(c, call->in[0], column), call->in[1]);
  return *out != NULL;
}

lt_tensor *lt_times(lt_ctx *c, lt_tensor *x, double factor, const char *name) {
  bool whole = x != NULL && !lt_dtype_is_float((lt_dtype)x->dtype);
  if (x == NULL || factor == 1) return x;
  if (whole && factor != floor(factor)) {
    lt_fail(c, LT_EDTYPE, "%s: %s = %g does not fit into a tensor of %s", c->op, name, factor,
            lt_dtype_name((lt_dtype)x->dtype));
    return NULL;
  }
  lt_scalar by = whole ? lt_scalar_int((int64_t)factor) : lt_scalar_of(factor);
  return lt_binary_scalar(c, LT_OP_mul, x, by);
}

/* Zeros that hang on the history of x, whatever it holds. */
static lt_tensor *nothing_of(lt_ctx *c, lt_tensor *x) {
  lt_scalar yes = lt_scalar_int(1);
  lt_tensor *all = lt_full(c, lt_tensor_shape(x), yes, LT_BOOL, x->storage->device);
  return lt_apply1(c, LT_OP_masked_fill, LT_IN(x, all),
                   &(lt_args_masked_fill){.value = lt_scalar_int(0)});
}

/* beta * input + alpha * (a b); beta = 0 ignores the input, NaN and all. */
bool lt_expand_addmm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_addmm *a = call->args;
  lt_tensor *input = call->in[0];
  lt_tensor *y = lt_apply1(c, LT_OP_matmul, LT_IN(call->in[1], call->in[2]), NULL);
  y = lt_times(c, y, a->alpha, "alpha");
  input = a->beta == 0 ? nothing_of(c, input) : lt_times(c, input, a->beta, "beta");
  *out = lt_binary(c, LT_OP_add, input, y);
  return *out != NULL;
}
