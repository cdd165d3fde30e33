/* runtime/autograd/vjp.h: one declaration per vjp that a row names. */
#ifndef LT_AUTOGRAD_VJP_H
#define LT_AUTOGRAD_VJP_H

#include "autograd/backward.h"

/* Rows of ops.def name theirs; several ops may share one. */
#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) \
  bool lt_vjp_##vjp(lt_ctx *c, lt_vjp_call *v);
#include "ops/ops.def"

/* Rows of unary.def and binary.def share these. */
bool lt_vjp_unary(lt_ctx *c, lt_vjp_call *v);
bool lt_vjp_binary(lt_ctx *c, lt_vjp_call *v);

#endif
