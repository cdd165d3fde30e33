/* lua/bind/places.c: whose work is done while no frame of the script is on the stack.

   A hook that ends in a tail call has gone when what it called fails, and what it returned is read
   after it: the line of such errors is that of the function itself. */
#include "bind/state.h"

#define LT_PLACES "ltrain.places"

/* The last line of the function on top, a main chunk; pops it. */
static int last_line(lua_State *L) {
  lua_Debug ar;
  int last = 0;
  lua_getinfo(L, ">L", &ar);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    return 0;
  }
  for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
    if (lua_tointeger(L, -2) > last) last = (int)lua_tointeger(L, -2);
  lua_pop(L, 1);
  return last;
}

/* Push the place of the function that is `name` of the table at `places`, if it is the script's. */
static bool push_one(lua_State *L, int places, const char *name) {
  lua_Debug ar;
  if (lua_getfield(L, places, name) == LUA_TFUNCTION) {
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    if (ar.linedefined >= 0 && !lt_source_is_ours(ar.source)) {
      int line = ar.linedefined > 0 ? ar.linedefined : last_line(L);
      lua_settop(L, places);
      lua_pushfstring(L, "%s:%d: ", ar.short_src, line);
      return true;
    }
  }
  lua_settop(L, places);
  return false;
}

bool lt_push_place(lua_State *L) {
  static const char *const names[] = {"hook", "source", "script"};
  if (lua_checkstack(L, 8) == 0) return false;
  lua_getfield(L, LUA_REGISTRYINDEX, LT_PLACES);
  int places = lua_gettop(L);
  bool found = false;
  for (int k = 0; k < 3 && !found && lua_istable(L, places); k++)
    found = push_one(L, places, names[k]);
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
