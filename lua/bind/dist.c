/* lua/bind/dist.c: which world this is: groups, ranks, what is held of a world. */
#include "bind/dist.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "bind/dist_values.h"
#include "device/device.h"
#include "device/plugin.h"

#define GROUP_NAME "ltrain.Group"

/* What lt.dist keeps in a context. */
typedef struct dist {
  lt_held *held;
  lt_heartbeat *heartbeat; /* of the group of one, made when first asked for */
  lt_group *self;
  char hook[LT_MARK_HOOK];  /* that stdlib says it is in */
  char outer[LT_MARK_HOOK]; /* in an exchange: the hook that it came from */
  lt_place loop;            /* where the script called the loop that runs */
  bool by_loop;             /* an exchange of that loop, under no hook of the script's */
  bool reported_staged;     /* that a device's memory goes through the host's */
} dist;

static void forget(lt_ctx *c, lt_held *h) {
  lt_work_release(c, h->work);
  lt_group_release(c, h->group);
  h->work = NULL;
  h->group = NULL;
}

static void drop_dist(lt_ctx *c, void *slot) {
  dist *d = slot;
  for (lt_held *h = d->held, *next; h != NULL; h = next) {
    next = h->next;
    forget(c, h);
    h->link = NULL; /* a cached node may go later */
  }
  lt_group_release(c, d->self);
  lt_free(c, d->heartbeat, sizeof *d->heartbeat);
  lt_free(c, d, sizeof *d);
}

/* NULL with a failure. */
static dist *dist_of(lt_ctx *c) {
  dist *d = c->slot[LT_SLOT_BIND];
  if (d != NULL) return d;
  c->slot[LT_SLOT_BIND] = d = lt_alloc(c, sizeof *d);
  c->slot_drop[LT_SLOT_BIND] = drop_dist;
  return d;
}

lt_group *lt_dist_group(lt_ctx *c) {
  lt_world *w = lt_world_current(c);
  if (w != NULL) return lt_world_group(w);
  dist *d = dist_of(c);
  if (d == NULL) return NULL;
  if (d->self != NULL) return d->self;
  if (d->heartbeat == NULL) d->heartbeat = lt_alloc(c, sizeof *d->heartbeat);
  if (d->heartbeat == NULL) return NULL;
  d->heartbeat->size = 1;
  return d->self = lt_group_self(c, d->heartbeat);
}

void lt_hold(lt_ctx *c, lt_held *h, lt_group *group) {
  dist *d = dist_of(c);
  h->group = lt_group_retain(group);
  h->of_world = lt_world_current(c) != NULL;
  if (d == NULL) return;
  h->next = d->held;
  h->link = &d->held;
  if (h->next != NULL) h->next->link = &h->next;
  d->held = h;
}

void lt_let_go(lt_ctx *c, lt_held *h) {
  forget(c, h);
  if (h->link == NULL) return;
  *h->link = h->next;
  if (h->next != NULL) h->next->link = h->link;
  h->link = NULL;
}

void lt_dist_forget_world(lt_ctx *c) {
  const dist *d = c->slot[LT_SLOT_BIND];
  for (lt_held *h = d != NULL ? d->held : NULL; h != NULL; h = h->next)
    if (h->of_world) forget(c, h);
}

/* What the script does now. */

lt_place lt_place_here(lua_State *L, lt_bind *b) {
  const dist *d = b->c->slot[LT_SLOT_BIND];
  lt_place p = {.line = 0};
  p.line = lt_script_place(L, b, p.file, sizeof p.file);
  if (d != NULL) memcpy(p.hook, d->hook, sizeof p.hook);
  return p;
}

lt_place lt_place_of_loop(lua_State *L, lt_bind *b) {
  const dist *d = b->c->slot[LT_SLOT_BIND];
  if (d == NULL || !d->by_loop) return lt_place_here(L, b);
  lt_place p = d->loop;
  memcpy(p.hook, d->hook, sizeof p.hook);
  return p;
}

/* For the tables of failures. */
static void set_activity(lt_bind *b, const dist *d) {
  lt_world *w = lt_world_current(b->c);
  if (w != NULL) lt_world_set_activity(w, d->hook, d->loop.file, d->loop.line);
}

/* dist.set_hook([name [, here]]): what the library's loops run from now on. `here` notes the
   script's line, which is that of the loop's call and stays: looking it up at each hook of each
   step would cost more than a small step. */
static int set_hook(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *name = luaL_optstring(L, 1, "");
  dist *d = dist_of(b->c);
  if (d == NULL) lt_raise_failure(L, b);
  strncpy(d->hook, name, sizeof d->hook - 1);
  d->by_loop = false;
  if (lua_toboolean(L, 2)) d->loop = lt_place_here(L, b);
  set_activity(b, d);
  return 0;
}

/* dist.exchange([name]): begins what all ranks do for the library's loop, or without a name ends
   it: the hook that it came from continues. */
static int exchange(lua_State *L) {
  lt_bind *b = lt_enter(L);
  dist *d = dist_of(b->c);
  if (d == NULL) lt_raise_failure(L, b);
  if (lua_isnoneornil(L, 1)) {
    memcpy(d->hook, d->outer, sizeof d->hook);
    d->by_loop = false;
  } else {
    memcpy(d->outer, d->hook, sizeof d->hook);
    strncpy(d->hook, luaL_checkstring(L, 1), sizeof d->hook - 1);
    d->by_loop = d->outer[0] == 0 && d->loop.line > 0;
  }
  set_activity(b, d);
  return 0;
}

int lt_dist_push_staged(lua_State *L, lt_bind *b, bool staged, lt_device at) {
  dist *d = b->c->slot[LT_SLOT_BIND];
  if (staged && d != NULL && !d->reported_staged) {
    d->reported_staged = true;
    lua_pushstring(L, lt_device_table(b->c, at)->name);
  } else {
    lua_pushnil(L);
  }
  return 1;
}

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

static lt_held *to_held(lua_State *L, int index) { return luaL_testudata(L, index, GROUP_NAME); }

lt_group *lt_check_group(lua_State *L, lt_bind *b, int index, const char *who) {
  lt_group *g = NULL;
  if (lua_isnoneornil(L, index)) {
    g = lt_dist_group(b->c);
    if (g == NULL) lt_raise_failure(L, b);
    return g;
  }
  const lt_held *h = to_held(L, index);
  if (h == NULL) lt_raise(L, b, LT_EARG, "%s: group: not a group", who);
  if (h->group == NULL)
    lt_raise(L, b, LT_EARG, "%s: this group belongs to a launch that has ended", who);
  return h->group;
}

static int group_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_held *h = luaL_checkudata(L, 1, GROUP_NAME);
  if (b->c != NULL) lt_let_go(b->c, h);
  return 0;
}

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
  lt_held *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (lt_held){.group = NULL};
  luaL_setmetatable(L, GROUP_NAME);
  lt_frame frame = lt_begin(L, b, 0);
  lt_group *part = lt_group_split(b->c, g, (int)color, (int)key);
  if (part != NULL) {
    lt_hold(b->c, h, part);
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

void lt_bind_dist(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"rank", rank_of},
                                       {"size", size_of},
                                       {"ranks", ranks_of},
                                       {"world", world},
                                       {"set_fixed_order", set_fixed_order},
                                       {"link", device_link},
                                       {"waited", waited},
                                       {"split", split},
                                       {"set_hook", set_hook},
                                       {"exchange", exchange},
                                       {"encode", lt_value_encode},
                                       {"decode", lt_value_decode},
                                       {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", group_gc}, {NULL, NULL}};
  lt_new_type(L, b, GROUP_NAME, meta, NULL);
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lt_bind_dist_calls(L, b);
  lt_bind_dist_grad(L, b);
  lt_bind_dist_bucket(L, b);
  lt_bind_dist_shards(L, b);
  lt_bind_dist_launch(L, b);
  lt_bind_dist_join(L, b);
  lua_setfield(L, 1, "dist");
}
