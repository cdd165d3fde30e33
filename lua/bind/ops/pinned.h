/* lua/bind/ops/pinned.h: methods of tensors in pinned memory. */
#ifndef LT_BIND_OPS_PINNED_H
#define LT_BIND_OPS_PINNED_H

#include <lua.h>

int lt_pin_memory(lua_State *L);
int lt_is_pinned(lua_State *L);

#endif
