/* lua/bind/core/loading.c: `load` and `loadfile` of owned states.

   Lua's own call the message handler that is set around them for what they catch (a reader that
   fails, a text that nests too deep). Ours reports errors that end a script to ranks and users: it
   must not see these, and the script must get what was raised. */
#include "bind/core/openers.h"
#include "bind/core/state.h"

/* Upvalue: Lua's own. */
static int call_unwatched(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  return lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* load(chunk [, name [, mode [, env]]]): arguments are checked where they have a name. */
static int load(lua_State *L) {
  if (lua_tostring(L, 1) == NULL) luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_optstring(L, 2, NULL);
  luaL_optstring(L, 3, NULL);
  return call_unwatched(L);
}

/* loadfile([name [, mode [, env]]]) */
static int loadfile(lua_State *L) {
  luaL_optstring(L, 1, NULL);
  luaL_optstring(L, 2, NULL);
  return call_unwatched(L);
}

void lt_bind_loading(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"load", load}, {"loadfile", loadfile}, {NULL, NULL}};
  if (!b->owned) return;
  for (const luaL_Reg *f = functions; f->name != NULL; f++) {
    lua_getglobal(L, f->name);
    lua_pushcclosure(L, f->func, 1);
    lua_setglobal(L, f->name);
  }
}
