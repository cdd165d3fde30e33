/* lua/bind/ops/convert.h: tensors as numbers of Lua's. */
#ifndef LT_BIND_OPS_CONVERT_H
#define LT_BIND_OPS_CONVERT_H

#include "bind/core/tensor.h"

/* Push memory of Lua's with all elements of `x` in logical order, as f64, i64 or bool. */
void *lt_push_elements(lua_State *L, lt_bind *b, lt_tensor *x, lt_dtype *as);

#endif
