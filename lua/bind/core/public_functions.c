/* lua/bind/core/public_functions.c: functions that scripts call refuse what they would not read. */
#include "bind/core/public_functions.h"

#include "bind/core/raise.h"
#include "bind/core/values.h"

void lt_check_count(lua_State *L, lt_bind *b, const char *who, int most) {
  int top = lua_gettop(L);
  for (int k = most + 1; k <= top; k++)
    if (!lua_isnil(L, k))
      lt_raise(L, b, LT_EARG, "%s: one argument too many: %s", who, lt_shown(L, k));
  if (top > most) lua_settop(L, most);
}

/* Upvalues: the binding, the row. What is called finds the binding in the same place. */
static int call_public(lua_State *L) {
  const lt_function *f = lua_touserdata(L, lua_upvalueindex(2));
  if (f->most >= 0 && lua_gettop(L) > f->most) lt_check_count(L, lt_enter(L), f->name, f->most);
  return f->call(L);
}

void lt_add_public(lua_State *L, lt_bind *b, const lt_function *functions) {
  for (const lt_function *f = functions; f->name != NULL; f++) {
    lua_pushlightuserdata(L, b);
    lua_pushlightuserdata(L, (void *)f);
    lua_pushcclosure(L, call_public, 2);
    lua_setfield(L, -2, f->name);
  }
}
