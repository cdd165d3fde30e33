/* spec/cuda/counts.cpp: what the fake runtime counted, for specs: counts() returns a table of
   launches, their threads, copies (those that go straight between devices: direct), waits of the
   host and messages that were sent by the fake NCCL since it was called last, and all calls that
   can fail; which devices have a context, as bits; and of the operation with the narrowest
   grid its name, and bytes a thread. */
extern "C" {
#include <lua.h>
}

#include "cuda/grids.h"

static int take(lua_State *L) {
  fakert_counts n = fakert_take_counts();
  fakert_grid narrowest = fakert_take_narrowest();
  lua_createtable(L, 0, 10);
  lua_pushstring(L, narrowest.what), lua_setfield(L, -2, "narrowest");
  lua_pushinteger(L, narrowest.threads > 0 ? narrowest.bytes / narrowest.threads : 0);
  lua_setfield(L, -2, "bytes_a_thread");
  lua_pushinteger(L, n.launches), lua_setfield(L, -2, "launches");
  lua_pushinteger(L, n.threads), lua_setfield(L, -2, "threads");
  lua_pushinteger(L, n.copies), lua_setfield(L, -2, "copies");
  lua_pushinteger(L, n.waits), lua_setfield(L, -2, "waits");
  lua_pushinteger(L, n.direct), lua_setfield(L, -2, "direct");
  lua_pushinteger(L, n.messages), lua_setfield(L, -2, "messages");
  lua_pushinteger(L, n.calls), lua_setfield(L, -2, "calls");
  lua_pushinteger(L, n.contexts), lua_setfield(L, -2, "contexts");
  return 1;
}

extern "C" FAKERT_API int luaopen_counts(lua_State *L) {
  lua_pushcfunction(L, take);
  return 1;
}
