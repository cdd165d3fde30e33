/* lua/bind/core/error_lines.c: the script line of an error that is raised while no function of the
   script is on the stack (hooks of backward, finalizers).

   A hook that ends in a tail call has gone when what it called fails, and what it returned is read
   after it: the line of such errors is that of the function itself. */
#include "bind/core/current_line.h"

#define LT_PLACES "ltrain.places"

/* The line of the function on top, of the script; pops it. `ask`: Lua may be run to find out at
   which `return` it ended (stdlib/core/return_line.lua); else it is known, or its first. */
static int line_of(lua_State *L, int places, const lua_Debug *ar, bool ask) {
  int fn = lua_gettop(L), line = ar->linedefined;
  if (ask) {
    lt_push_require(L);
    lua_pushliteral(L, "ltrain.core.return_line");
    if (lua_pcall(L, 1, 1, 0) == LUA_OK) {
      lua_pushvalue(L, fn);
      lua_pushstring(L, ar->source);
      lua_pushinteger(L, ar->linedefined);
      if (lua_pcall(L, 3, 1, 0) != LUA_OK) lua_pushnil(L);
    }
  } else if (lua_getfield(L, places, "lines") == LUA_TTABLE) {
    lua_pushvalue(L, fn);
    lt_raw_get(L, -2);
  }
  if (lua_isinteger(L, -1)) line = (int)lua_tointeger(L, -1);
  lua_settop(L, fn - 1);
  return line;
}

/* Whether `name` of the table at `places` is a function of the script: `ar` has its line then. */
static bool find_one(lua_State *L, int places, const char *name, lua_Debug *ar, bool ask) {
  bool found = false;
  if (lua_getfield(L, places, name) == LUA_TFUNCTION) {
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", ar);
    found = ar->linedefined >= 0 && !lt_source_is_ours(ar->source);
    if (found) ar->currentline = line_of(L, places, ar, ask);
  }
  lua_settop(L, places);
  return found;
}

bool lt_find_place(lua_State *L, const char *const *names, lua_Debug *ar, bool ask) {
  if (lua_checkstack(L, 12) == 0) return false;
  lua_getfield(L, LUA_REGISTRYINDEX, LT_PLACES);
  int places = lua_gettop(L);
  bool found = false;
  for (; *names != NULL && !found && lua_istable(L, places); names++)
    found = find_one(L, places, *names, ar, ask);
  lua_remove(L, places);
  return found;
}

void lt_set_script(lua_State *L, int index) {
  lua_pushvalue(L, index);
  if (lua_getfield(L, LUA_REGISTRYINDEX, LT_PLACES) == LUA_TTABLE) {
    lua_insert(L, -2);
    lua_setfield(L, -2, "script");
  } else {
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

void lt_add_places(lua_State *L) {
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, LT_PLACES);
  lua_setfield(L, -2, "places");
}
