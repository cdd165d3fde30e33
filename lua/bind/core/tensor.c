/* lua/bind/core/tensor.c: userdata of tensors: creation, uniqueness (one userdata for each tensor),
   conversion back. */
#include "bind/core/tensor.h"



lt_boxed *lt_push_empty(lua_State *L, lt_bind *b) {
  lt_boxed *box = lua_newuserdatauv(L, sizeof *box, 0);
  box->t = NULL;
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->metatable_ref);
  lua_setmetatable(L, -2);
  return box;
}

void lt_make_unique(lua_State *L, lt_bind *b, int index) {
  index = lua_absindex(L, index);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->unique_ref);
  lua_pushvalue(L, index);
  lua_rawsetp(L, -2, lt_to_tensor(L, b, index));
  lua_pop(L, 1);
}

void lt_push_unique(lua_State *L, lt_bind *b, lt_tensor *t) {
  luaL_checkstack(L, 6, "ltrain");
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->unique_ref);
  if (lt_raw_getp(L, -1, t) != LUA_TUSERDATA || lt_to_tensor(L, b, -1) != t) {
    lua_pop(L, 1);
    lt_push_empty(L, b)->t = lt_retain(t);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, -3, t);
  }
  lua_remove(L, -2);
}

lt_boxed *lt_to_box(lua_State *L, const lt_bind *b, int index) {
  lt_boxed *box = lua_touserdata(L, index);
  if (box == NULL || lua_getmetatable(L, index) == 0) return NULL;
  bool ours = lua_topointer(L, -1) == b->metatable;
  lua_pop(L, 1);
  return ours ? box : NULL;
}

lt_tensor *lt_to_tensor(lua_State *L, const lt_bind *b, int index) {
  lt_boxed *box = lt_to_box(L, b, index);
  return box != NULL ? box->t : NULL;
}
