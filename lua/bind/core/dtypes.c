/* lua/bind/core/dtypes.c: dtypes by name, and the rows of tensor/dtype.def for scripts. */
#include "bind/core/nearest_word.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/values.h"

void lt_consider_dtypes(lt_nearest *n, const char *unknown) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    lt_consider_word(n, unknown, lt_dtype_name((lt_dtype)d));
    lt_consider_word(n, unknown, lt_dtype_torch_name((lt_dtype)d));
  }
}

const char *lt_push_dtype_names(lua_State *L) {
  luaL_Buffer names;
  luaL_buffinit(L, &names);
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    if (d > 0) luaL_addchar(&names, ' ');
    luaL_addstring(&names, lt_dtype_name((lt_dtype)d));
  }
  luaL_pushresult(&names);
  return lua_tostring(L, -1);
}

lt_dtype lt_check_dtype(lua_State *L, lt_bind *b, int index, const char *who) {
  if (lua_type(L, index) != LUA_TSTRING)
    lt_raise(L, b, LT_EARG, "%s: argument 'dtype' must be a name such as \"f32\", got %s", who,
             lt_shown(L, index));
  const char *name = lua_tostring(L, index);
  lt_dtype d = lt_dtype_from_name(name);
  if (d != LT_DTYPE_NONE) return d;
  lt_nearest nearest = {0};
  lt_consider_dtypes(&nearest, name);
  if (nearest.word != NULL)
    lt_raise(L, b, LT_EDTYPE, "%s: unknown dtype '%s'; did you mean '%s'?", who, name,
             nearest.word);
  lt_raise(L, b, LT_EDTYPE, "%s: unknown dtype '%s' (there are %s)", who, name,
           lt_push_dtype_names(L));
}

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

/* lt.dtypes() -> the rows as tables, for derived specs and docs, in the order of the enum */
static int list_dtypes(lua_State *L) {
  static const char *const categories[] = {
      [LT_BOOLEAN] = "boolean", [LT_INTEGER] = "integer", [LT_FLOATING] = "floating"};
  lua_createtable(L, LT_DTYPE_COUNT, 0);
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    const lt_dtype_info *row = lt_dtype_row((lt_dtype)d);
    lua_createtable(L, 0, 8);
    set_string(L, "name", row->name);
    set_string(L, "torch_name", row->torch_name);
    set_string(L, "method", row->method);
    set_string(L, "safetensors", row->safetensors);
    set_string(L, "category", categories[row->category]);
    lua_pushboolean(L, row->is_signed);
    lua_setfield(L, -2, "signed");
    lua_pushinteger(L, row->size);
    lua_setfield(L, -2, "size");
    lua_pushinteger(L, row->idx);
    lua_setfield(L, -2, "idx");
    lua_rawseti(L, -2, d + 1);
  }
  return 1;
}

void lt_bind_dtypes(lua_State *L, lt_bind *b) {
  static const lt_function functions[] = {{"dtypes", list_dtypes, 0}, {NULL, NULL, 0}};
  lua_pushvalue(L, 1);
  lt_add_public(L, b, functions);
  lua_pop(L, 1);
}
