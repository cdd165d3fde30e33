/* lua/bind/core/functions.c: what is known of a Lua function of the script without calling it. */
#include <string.h>

#include "bind/core/state.h"

/* runtime.origin(fn) -> "model.lua:12", where a function of the script was written; nil of the
   library's own and of C's */
int lt_function_origin(lua_State *L) {
  lua_Debug ar;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_pushvalue(L, 1);
  lua_getinfo(L, ">S", &ar);
  if (lt_source_is_ours(ar.source) || strcmp(ar.what, "C") == 0) return 0;
  lua_pushfstring(L, "%s:%d", ar.short_src, ar.linedefined);
  return 1;
}

typedef struct code {
  luaL_Buffer text;
  bool begun;
} code;

/* The buffer lives on the stack, above the function that lua_dump found on top. */
static int append(lua_State *L, const void *piece, size_t size, void *ud) {
  code *c = ud;
  if (!c->begun) luaL_buffinit(L, &c->text);
  c->begun = true;
  luaL_addlstring(&c->text, piece, size);
  return 0;
}

/* runtime.code(fn) -> the code of a Lua function, with those within it: every name that they say
   stands in it. For looking into, never for loading. */
int lt_function_code(lua_State *L) {
  code c = {.begun = false};
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  if (lua_dump(L, append, &c, 1) != 0) return 0;
  luaL_pushresult(&c.text);
  return 1;
}
