/* lua/bind/core/raw.h: access to tables past their metamethods, by functions that check for a
   table.

   Lua's own (lua_rawgeti, lua_next, ...) trust their caller: of any other value they read memory
   that is not a table's. Arguments come from scripts, and so do fields of tables and results of
   their functions. So the binding reads by these only, and writes by these where the table is not
   at a fixed place below the top, which it has made itself (tools/lint_tree.lua). */
#ifndef LT_BIND_CORE_RAW_H
#define LT_BIND_CORE_RAW_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

static inline void lt_need_table(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TTABLE)
    luaL_error(L, "expected a table, got %s", luaL_typename(L, index));
}

/* How many elements a list has, by its metamethod if there is one. */
static inline lua_Integer lt_length(lua_State *L, int index) {
  lua_Integer n = luaL_len(L, index);
  if (n < 0 || n > INT32_MAX) luaL_error(L, "a list of %I elements", (LUAI_UACINT)n);
  return n;
}

/* The same of a plain table, which cannot change between two readings. */
static inline lua_Integer lt_raw_length(lua_State *L, int index) {
  lt_need_table(L, index);
  return (lua_Integer)lua_rawlen(L, index);
}

static inline int lt_raw_geti(lua_State *L, int index, lua_Integer n) {
  lt_need_table(L, index);
  return lua_rawgeti(L, index, n);
}

static inline int lt_raw_get(lua_State *L, int index) {
  lt_need_table(L, index);
  return lua_rawget(L, index);
}

static inline int lt_raw_getp(lua_State *L, int index, const void *p) {
  lt_need_table(L, index);
  return lua_rawgetp(L, index, p);
}

static inline int lt_raw_next(lua_State *L, int index) {
  lt_need_table(L, index);
  return lua_next(L, index);
}

static inline void lt_raw_seti(lua_State *L, int index, lua_Integer n) {
  lt_need_table(L, index);
  lua_rawseti(L, index, n);
}

static inline void lt_raw_set(lua_State *L, int index) {
  lt_need_table(L, index);
  lua_rawset(L, index);
}

#endif
