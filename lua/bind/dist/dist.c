/* lua/bind/dist/dist.c: the functions of c.dist: the rank, the world, its groups. */
#include "bind/dist/dist.h"

#include <limits.h>
#include <unistd.h>

#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/dist/values.h"
#include "device/device.h"
#include "device/plugin.h"

/* dist.link(device): the name of the comm that moves memory of its kind between ranks; nil, and why
   there is none if that is known */
static int device_link(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d;
  if (!lt_device_parse(b->c, luaL_checkstring(L, 1), &d)) lt_raise_failure(L, b);
  const lt_device_ops *ops = lt_device_table(b->c, d);
  const lt_comm_ops *link = lt_backend_link(b->c, ops);
  if (link != NULL) {
    lua_pushstring(L, link->name);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, lt_backend_link_why(ops));
  return 2;
}

/* Groups. */

/* dist.split(group, color, key) -> group, or nil for color -1 */
static int split(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_group *g = lt_check_group(L, b, 1, "split");
  lua_Integer color = luaL_checkinteger(L, 2), key = luaL_checkinteger(L, 3);
  if (color < -1 || color > INT_MAX || key < INT_MIN || key > INT_MAX)
    lt_raise(L, b, LT_EARG,
             "split: color must be -1 or more and fit 31 bits, as key: got %lld, "
             "key %lld",
             (long long)color, (long long)key);
  lt_group_ref *h = lt_push_group(L);
  lt_frame frame = lt_begin(L, b, 0);
  lt_group *part = lt_group_split(b->c, g, (int)color, (int)key);
  if (part != NULL) {
    lt_group_ref_set(b->c, h, part);
    lt_group_release(b->c, part);
  }
  lt_end_call(L, b, frame);
  if (part == NULL) lua_pushnil(L);
  return 1;
}

/* dist.rank([group]), dist.size([group]) */
static int rank_of(lua_State *L) {
  lua_pushinteger(L, lt_group_rank(lt_check_group(L, lt_enter(L), 1, "rank")));
  return 1;
}

static int size_of(lua_State *L) {
  lua_pushinteger(L, lt_group_size(lt_check_group(L, lt_enter(L), 1, "world_size")));
  return 1;
}

/* dist.ranks(group) -> world ranks of its members */
static int ranks_of(lua_State *L) {
  const lt_group *g = lt_check_group(L, lt_enter(L), 1, "ranks");
  lua_createtable(L, lt_group_size(g), 0);
  for (int k = 0; k < lt_group_size(g); k++) {
    lua_pushinteger(L, lt_group_world_rank(g, k));
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* The world. */

static void set_integer(lua_State *L, const char *name, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static void set_string(lua_State *L, const char *name, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

static void set_lists(lua_State *L, const lt_world_info *w) {
  lua_createtable(L, w->size, 0);
  for (int k = 0; k < w->size; k++) {
    lua_pushstring(L, w->hosts != NULL ? w->hosts[k] : NULL);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "hosts");
  lua_createtable(L, w->size, 0);
  for (int k = 0; k < w->size && w->pids != NULL; k++) {
    lua_pushinteger(L, w->pids[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "pids");
}

/* dist.set_fixed_order(on): all ranks add in the binary tree, whatever the backend would do */
static int set_fixed_order(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_group_set_fixed_order(lt_check_group(L, b, 99, "set_fixed_order"), lua_toboolean(L, 1));
  return 0;
}

/* dist.world() -> table */
static int world(lua_State *L) {
  lt_bind *b = lt_enter(L);
  char host[1][LT_HOST_NAME] = {""};
  gethostname(host[0], sizeof host[0] - 1);
  const int pid = (int)getpid();
  const lt_world_info alone = {.backend = "self",
                               .size = 1,
                               .local_size = 1,
                               .nodes = 1,
                               .hosts = (const char(*)[LT_HOST_NAME])host,
                               .pids = &pid};
  lt_world *current = lt_world_current(b->c);
  const lt_world_info *w = current != NULL ? lt_world_describe(current) : &alone;
  lua_createtable(L, 0, 14);
  set_string(L, "backend", w->backend);
  set_integer(L, "rank", w->rank);
  set_integer(L, "ranks", w->size);
  set_integer(L, "local_rank", w->local_rank);
  set_integer(L, "local_ranks", w->local_size);
  set_integer(L, "node_rank", w->node_rank);
  set_integer(L, "nodes", w->nodes);
  set_integer(L, "threads", b->c->threads);
  set_integer(L, "pid", pid);
  lua_pushboolean(L, w->forked);
  lua_setfield(L, -2, "forked");
  lua_pushboolean(L, w->stays);
  lua_setfield(L, -2, "stays");
  bool fixed = lt_group_fixed_order(lt_check_group(L, b, 99, "world"));
  set_string(L, "reduction_order", fixed ? "binary tree" : "of the backend");
  if (w->timeout > 0) {
    lua_pushnumber(L, w->timeout);
    lua_setfield(L, -2, "timeout");
  }
  set_lists(L, w);
  return 1;
}

/* dist.waited() -> seconds that this rank has waited in collectives of its world */
static int waited(lua_State *L) {
  lt_world *w = lt_world_current(lt_enter(L)->c);
  int64_t ns = w != NULL ? atomic_load(&lt_world_heartbeat(w)->waited_ns) : 0;
  lua_pushnumber(L, (double)ns * 1e-9);
  return 1;
}

/* dist.traffic() -> a table by operation, "all_reduce", of {calls =, bytes =}: the collectives that
   this rank has completed in its world, and bytes of the whole that each of them reduced, gathered
   or scattered */
static int traffic(lua_State *L) {
  lt_world *w = lt_world_current(lt_enter(L)->c);
  lua_createtable(L, 0, LT_COMM_OP_COUNT);
  for (int k = 0; k < LT_COMM_OP_COUNT && w != NULL; k++) {
    const lt_traffic *t = &lt_world_heartbeat(w)->traffic[k];
    if (t->calls == 0) continue;
    lua_createtable(L, 0, 2);
    set_integer(L, "calls", t->calls);
    set_integer(L, "bytes", t->bytes);
    lua_setfield(L, -2, lt_comm_op_name((lt_comm_op)k));
  }
  return 1;
}

void lt_bind_dist(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"rank", rank_of},
                                       {"size", size_of},
                                       {"ranks", ranks_of},
                                       {"world", world},
                                       {"set_fixed_order", set_fixed_order},
                                       {"link", device_link},
                                       {"waited", waited},
                                       {"traffic", traffic},
                                       {"split", split},
                                       {"before_backward", lt_dist_before_backward},
                                       {"set_hook", lt_dist_set_hook},
                                       {"exchange", lt_dist_exchange},
                                       {"encode", lt_value_encode},
                                       {"decode", lt_value_decode},
                                       {NULL, NULL}};
  lt_bind_dist_group(L, b);
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lt_bind_dist_calls(L, b);
  lt_bind_dist_grad(L, b);
  lt_bind_dist_bucket(L, b);
  lt_bind_dist_overlap(L, b);
  lt_bind_dist_shards(L, b);
  lt_bind_dist_launch(L, b);
  lt_bind_dist_join(L, b);
  lt_bind_dist_report(L, b);
  lua_setfield(L, 1, "dist");
}
