/* lua/bind/ops/index.h: x[i] and x[i] = v, as metamethods. */
#ifndef LT_BIND_OPS_INDEX_H
#define LT_BIND_OPS_INDEX_H

#include "bind/core/state.h"

/* __index with a key that is not a string: (tensor, key) -> value. */
int lt_index_read(lua_State *L);

/* __newindex with a key that is not a string: (tensor, key, value). */
int lt_index_write(lua_State *L);

#endif
