/* runtime/ops/expand_memory.c: composite ops around shapes. */
#include "ops/expand.h"

lt_tensor *lt_wide(lt_ctx *c, lt_tensor *x) {
  return x == NULL ? NULL : lt_cast(c, x, x->dtype == LT_F64 ? LT_F64 : LT_F32);
}

/* Sum over the dims that broadcasting added or stretched, then drop the added ones. */
bool lt_expand_sum_to(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_sum_to *a = call->args;
  lt_tensor *x = call->in[0];
  lt_args_reduce args = {.dims = {.n = 0}, .keepdim = true};
  int lead = x->ndim - a->size.n;
  for (int k = 0; k < x->ndim; k++)
    if (k < lead || (a->size.size[k - lead] == 1 && x->size[k] != 1))
      args.dims.dim[args.dims.n++] = k;
  if (args.dims.n > 0) x = lt_apply1(c, LT_OP_sum, 1, &x, &args);
  *out = x == NULL ? NULL : lt_reshape(c, x, lt_shape_of(a->size.n, a->size.size));
  return *out != NULL;
}
