/* lua/bind/core/types.c: registers C functions and types of userdata, and hides metatables from
   scripts.

   A metamethod can be called by a script, with anything, and twice: each checks its arguments, and
   a script finds neither the metatable (getmetatable gives its name) nor metamethods among the
   methods. */
#include "bind/core/types.h"

#include "bind/core/state.h"

void lt_add_functions(lua_State *L, lt_bind *b, const luaL_Reg *functions) {
  lua_pushlightuserdata(L, b);
  luaL_setfuncs(L, functions, 1);
}

void lt_new_type(lua_State *L, lt_bind *b, const char *name, const luaL_Reg *meta,
                 const luaL_Reg *methods) {
  luaL_newmetatable(L, name);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
  lt_add_functions(L, b, meta);
  if (methods != NULL) {
    lua_newtable(L);
    lt_add_functions(L, b, methods);
    lua_setfield(L, -2, "__index");
  }
  lua_pop(L, 1);
}
