/* lua/bind/core/option_fields.c: reads fields of option tables that stdlib passes. */
#include "bind/core/option_fields.h"

#include <lauxlib.h>

int64_t lt_field_int(lua_State *L, int index, const char *name, int64_t otherwise) {
  int64_t value = otherwise;
  if (lua_getfield(L, index, name) != LUA_TNIL) value = luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  return value;
}

double lt_field_number(lua_State *L, int index, const char *name) {
  lua_getfield(L, index, name);
  double value = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return value;
}

bool lt_field_flag(lua_State *L, int index, const char *name) {
  lua_getfield(L, index, name);
  bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

const char *lt_field_text(lua_State *L, int index, const char *name) {
  const char *text = lua_getfield(L, index, name) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1);
  return text;
}
