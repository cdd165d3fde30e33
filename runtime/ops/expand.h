/* runtime/ops/expand.h: the definition of each composite op, one function a row with EXPAND.
   Of kinds whose first result alone is shown (FIRST) it may leave the others NULL. */
#ifndef LT_OPS_EXPAND_H
#define LT_OPS_EXPAND_H

#include "ops/op.h"

#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) LT_DECLARE_##devices(name)
#define LT_DECLARE_ALL(name)
#define LT_DECLARE_VIEW(name)
#define LT_DECLARE_COPY(name)
#define LT_DECLARE_ALL_EXPAND(name) LT_DECLARE_EXPAND(name)
#define LT_DECLARE_EXPAND(name) \
  bool lt_expand_##name(lt_ctx *c, const lt_call *call, lt_tensor **out);
#include "ops/ops.def"
#undef LT_DECLARE_ALL
#undef LT_DECLARE_VIEW
#undef LT_DECLARE_COPY
#undef LT_DECLARE_ALL_EXPAND
#undef LT_DECLARE_EXPAND

/* x times the argument `name` of an op in x's dtype, which for integers must be whole. */
lt_tensor *lt_times(lt_ctx *c, lt_tensor *x, double factor, const char *name);

#endif
