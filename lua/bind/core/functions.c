/* lua/bind/core/functions.c: introspection of Lua functions: where they are defined, their
   bytecode, their parameters. */
#include "bind/core/functions.h"

#include <string.h>

#include "bind/core/current_line.h"
#include "bind/core/public_functions.h"

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

/* runtime.parameters(fn[, any]) -> how many a function of the library's Lua names, and whether it
   is a method; nil of any other but with `any`, of one that takes all, of the asking file's own */
int lt_parameters(lua_State *L) {
  lua_Debug ar, asking;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  bool any = lua_toboolean(L, 2);
  lua_pushvalue(L, 1);
  lua_getinfo(L, ">Su", &ar);
  if ((!any && !lt_source_is_ours(ar.source)) || ar.isvararg || ar.what[0] == 'C') return 0;
  if (lua_getstack(L, 1, &asking) != 0 && lua_getinfo(L, "S", &asking) != 0 &&
      strcmp(asking.source, ar.source) == 0)
    return 0;
  lua_pushvalue(L, 1);
  const char *first = lua_getlocal(L, NULL, 1);
  lua_pushinteger(L, ar.nparams);
  lua_pushboolean(L, first != NULL && strcmp(first, "self") == 0);
  return 2;
}

/* runtime.parameter_names(fn) -> a list of the names of a function's parameters; of one of C those
   of its form */
int lt_parameter_names(lua_State *L) {
  const char *name;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  if (lua_iscfunction(L, 1)) {
    lt_push_form(L, 1);
    return 1;
  }
  lua_newtable(L);
  lua_insert(L, 1); /* lua_getlocal asks the function on top */
  for (int k = 1; (name = lua_getlocal(L, NULL, k)) != NULL; k++) {
    lua_pushstring(L, name);
    lt_raw_seti(L, 1, k);
  }
  lua_settop(L, 1);
  return 1;
}

/* runtime.arguments(level) -> {[name] = value} of the parameters of a running Lua function, as they
   are now */
int lt_arguments(lua_State *L) {
  lua_Debug ar;
  const char *name;
  int level = (int)luaL_checkinteger(L, 1);
  lua_settop(L, 1);
  lua_newtable(L);
  if (lua_getstack(L, level, &ar) == 0 || lua_getinfo(L, "u", &ar) == 0) return 1;
  for (int k = 1; k <= ar.nparams && (name = lua_getlocal(L, &ar, k)) != NULL; k++)
    lua_setfield(L, 2, name);
  return 1;
}
