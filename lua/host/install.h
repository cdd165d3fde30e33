/* lua/host/install.h: loads ltrain, its bindings and its Lua library, into a lua_State. */
#ifndef LT_HOST_INSTALL_H
#define LT_HOST_INSTALL_H

#include <lauxlib.h>
#include <lua.h>

#include "bind/open.h"

/* A new state with the standard libraries, which is ours: its collector and math.random too.
   `allocator` serves Lua and the context (NULL: malloc). NULL when there is no memory. */
lua_State *lt_host_new(const lt_bind_options *options);

/* Why the library cannot use the Lua that it finds in this process, NULL if it can. */
const char *lt_host_lua_fault(void);

/* Make `require "ltrain"` and its parts work in `L`. */
void lt_host_install(lua_State *L, const lt_bind_options *options);

/* For stock Lua: `require "ltrain"` finds ltrain.so and calls this. */
LT_API int luaopen_ltrain(lua_State *L);

#endif
