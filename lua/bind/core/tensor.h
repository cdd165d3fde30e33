/* lua/bind/core/tensor.h: tensors as userdata. */
#ifndef LT_BIND_CORE_TENSOR_H
#define LT_BIND_CORE_TENSOR_H

#include "bind/core/state.h"
#include "tensor/tensor.h"

#define LT_TENSOR_NAME "ltrain.Tensor"

/* The userdata: one reference; NULL before a result is moved in and after __close. */
typedef struct lt_boxed {
  lt_tensor *t;
} lt_boxed;

/* Push an empty tensor. */
lt_boxed *lt_push_empty(lua_State *L, lt_bind *b);

/* Push `t` (its own reference is taken): the userdata it has if it is in the weak map, else a new
   one, which enters the map. For gradients, parameters, hooked tensors. */
void lt_push_unique(lua_State *L, lt_bind *b, lt_tensor *t);

/* Enter the tensor at `index` into the weak map, so that it has this one userdata. */
void lt_make_unique(lua_State *L, lt_bind *b, int index);

/* The userdata of a tensor at `index`, NULL when it is something else. */
lt_boxed *lt_to_box(lua_State *L, const lt_bind *b, int index);

/* The tensor at `index`, NULL when it is something else or closed. */
lt_tensor *lt_to_tensor(lua_State *L, const lt_bind *b, int index);

#endif
