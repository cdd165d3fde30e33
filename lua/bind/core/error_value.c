/* lua/bind/core/error_value.c: texts of error values: those that are not strings are printed as
   `lua` prints them, and of plain tables what they hold; and what to do about an error. */
#include <string.h>

#include "bind/core/raise.h"
#include "bind/core/values.h"

/* Push the field `function` of a module of the library; false: an error is on top. */
static bool push_function(lua_State *L, const char *module, const char *function) {
  lt_push_require(L);
  lua_pushstring(L, module);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) return false;
  return function == NULL || lua_getfield(L, -1, function) == LUA_TFUNCTION;
}

const char *lt_push_error_text(lua_State *L, int index) {
  index = lua_absindex(L, index);
  luaL_checkstack(L, 10, "ltrain");
  if (lua_type(L, index) == LUA_TSTRING || lua_type(L, index) == LUA_TNUMBER) {
    lua_pushvalue(L, index);
    return lua_tostring(L, -1);
  }
  if (luaL_callmeta(L, index, "__tostring")) {
    if (lua_isstring(L, -1)) return lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  int top = lua_gettop(L);
  bool plain = lua_type(L, index) == LUA_TTABLE && lua_getmetatable(L, index) == 0;
  if (plain && push_function(L, "ltrain.core.errors", "show_fields")) {
    lua_pushvalue(L, index);
    plain = lua_pcall(L, 1, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING;
  } else {
    plain = false;
  }
  if (plain)
    lua_pushfstring(L, "(error object is a table value: %s)", lua_tostring(L, -1));
  else
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, index));
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return lua_tostring(L, -1);
}

void lt_add_remedy(lua_State *L, const char *script) {
  int top = lua_gettop(L);
  if (push_function(L, "ltrain.core.lua_error_hints", NULL)) {
    lua_pushvalue(L, top);
    lua_pushstring(L, script);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING) lua_replace(L, top);
  }
  lua_settop(L, top);
}

const char *lt_push_hint(lua_State *L, const char *function, const char *name, const char *owner) {
  int words = lua_gettop(L);
  if (push_function(L, "ltrain.core.errors", function)) {
    lua_pushstring(L, name);
    if (owner != NULL) lua_pushstring(L, owner);
    lua_pushvalue(L, words);
    if (lua_pcall(L, owner != NULL ? 3 : 2, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING) {
      lua_replace(L, words);
      lua_settop(L, words);
      return lua_tostring(L, words);
    }
  }
  lua_settop(L, words);
  return "";
}
