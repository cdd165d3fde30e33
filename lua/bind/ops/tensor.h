/* lua/bind/ops/tensor.h: properties of tensors. */
#ifndef LT_BIND_OPS_TENSOR_H
#define LT_BIND_OPS_TENSOR_H

#include "bind/core/tensor.h"

/* Switch gradients of a leaf on or off. */
void lt_set_requires_grad(lua_State *L, lt_bind *b, lt_tensor *t, bool on);

#endif
