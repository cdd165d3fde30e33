/* lua/bind/dist/join.c: joins a world of ranks that mpirun, srun or a script's own launcher
   started. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/option_fields.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/dist/dist.h"
#include "device/plugin.h"

/* Registry field: paths of registered backends by name. */
#define BACKENDS "ltrain.comms"

/* dist.register_comm(name, path): a backend from elsewhere, a shared object that exports
   lt_backend_open; a link between devices moves their memory from now on */
static int register_comm(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *name = luaL_checkstring(L, 1), *path = luaL_checkstring(L, 2);
  lua_settop(L, 2);
  if (lt_backend_comm(b->c, name, path) == NULL) lt_raise_failure(L, b);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, BACKENDS);
  lua_insert(L, 1);
  lua_settable(L, 1);
  return 0;
}

static const lt_comm_ops *load(lua_State *L, lt_bind *b, const char *name) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, BACKENDS);
  lua_getfield(L, -1, name);
  const lt_comm_ops *ops = lt_backend_comm(b->c, name, lua_tostring(L, -1));
  lua_pop(L, 2);
  if (ops == NULL || ops->device == NULL) return ops;
  lt_fail(b->c, LT_EARG, "%s: transfers device memory (%s) only: choose the comm that connects "
                         "the ranks' processes",
          name, ops->device);
  return NULL;
}

static int refused(lua_State *L, lt_bind *b, lt_frame frame) {
  lt_failure f;
  lt_take_failure(b->c, &f);
  lt_frame_close(b->c, frame, 0, NULL);
  lua_pushnil(L);
  lua_pushstring(L, f.text);
  return 2;
}

/* dist.join{comm =, rank =, size =, local_rank =, local_size =, main_address =, token =, options =,
   network =, timeout =, launch_timeout =, folder =, owns_process =} -> true; or nil and why not */
static int join(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_launch_options o = lt_check_launch(L, b, 1);
  lua_settop(L, 1);
  const char *name = lt_field_text(L, 1, "comm");
  if (name == NULL) lt_raise(L, b, LT_EARG, "join: comm: the name of a backend is missing");
  const lt_comm_place place = {.rank = (int)lt_field_int(L, 1, "rank", -1),
                               .size = (int)lt_field_int(L, 1, "size", 0),
                               .local_rank = (int)lt_field_int(L, 1, "local_rank", -1),
                               .local_size = (int)lt_field_int(L, 1, "local_size", 0),
                               .main_address = lt_field_text(L, 1, "main_address"),
                               .options = lt_field_text(L, 1, "options"),
                               .token = lt_field_text(L, 1, "token")};
  o.ranks = place.size;
  o.owns_process = lt_field_flag(L, 1, "owns_process");
  o.network = lt_field_text(L, 1, "network");
  o.takes_seed = b->seed_unreported;
  lt_frame frame = lt_begin(L, b, 0);
  const lt_comm_ops *ops = load(L, b, name);
  if (!b->c->policy.network)
    lt_fail(b->c, LT_EIO, "join: this state may not use the network (LTRAIN_NETWORK)");
  if (ops == NULL || lt_world_join(b->c, ops, &place, &o) == NULL) return refused(L, b, frame);
  lt_frame_close(b->c, frame, 0, NULL);
  lua_pushboolean(L, true);
  return 1;
}

/* dist.exit(status) -> status: the last act of a joined rank's process. Waits until all ranks have
   left, or after an outcome ends the process. What a world owned is released before it. */
static int exit_world(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int status = (int)luaL_checkinteger(L, 1);
  lt_world *w = lt_world_current(b->c);
  if (w != NULL) {
    lt_dist_forget_world(b->c);
    status = lt_world_exit(b->c, w, status);
  }
  lua_pushinteger(L, status);
  return 1;
}

void lt_bind_dist_join(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"register_comm", register_comm}, {"join", join}, {"exit", exit_world}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
