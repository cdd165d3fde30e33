/* spec/cuda/counts.cpp: what the fake runtime counted, for specs: counts() returns a table of
   launches, their threads, copies and waits of the host since it was called last, and all calls
   that can fail. */
extern "C" {
#include <lua.h>
}

#include "cuda/fakert.h"

static int take(lua_State *L) {
  fakert_counts n = fakert_take_counts();
  lua_createtable(L, 0, 5);
  lua_pushinteger(L, n.launches), lua_setfield(L, -2, "launches");
  lua_pushinteger(L, n.threads), lua_setfield(L, -2, "threads");
  lua_pushinteger(L, n.copies), lua_setfield(L, -2, "copies");
  lua_pushinteger(L, n.waits), lua_setfield(L, -2, "waits");
  lua_pushinteger(L, n.calls), lua_setfield(L, -2, "calls");
  return 1;
}

extern "C" FAKERT_API int luaopen_counts(lua_State *L) {
  lua_pushcfunction(L, take);
  return 1;
}
