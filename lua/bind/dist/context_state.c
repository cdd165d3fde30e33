/* lua/bind/dist/context_state.c: what a context keeps for lt.dist: its groups, what runs before
   collectives in backward, and the hook and loop that its rank is in with the script's lines, for
   messages and the report of a deadlock. */
#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/dist/dist.h"

#include <string.h>

#include "device/device.h"

#define GROUP_NAME "ltrain.Group"

/* What lt.dist keeps in a context. */
typedef struct dist {
  lt_group_ref *refs;
  lt_heartbeat *heartbeat; /* of the group of one, made when first asked for */
  lt_group *self;
  lt_bind *before; /* whose registry has what runs before a collective in backward; NULL: nothing */
  char hook[LT_MARK_HOOK];  /* that stdlib says it is in */
  char outer[LT_MARK_HOOK]; /* in an exchange: the hook that it came from */
  lt_place loop;            /* where the script called the loop that runs */
  bool by_loop;             /* an exchange of that loop, under no hook of the script's */
  bool reported_staged;     /* that a device's memory goes through the host's */
} dist;

static void forget(lt_ctx *c, lt_group_ref *h) {
  lt_work_release(c, h->work);
  lt_group_release(c, h->group);
  h->work = NULL;
  h->group = NULL;
}

static void drop_dist(lt_ctx *c, void *slot) {
  dist *d = slot;
  for (lt_group_ref *h = d->refs, *next; h != NULL; h = next) {
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

void lt_group_ref_set(lt_ctx *c, lt_group_ref *h, lt_group *group) {
  dist *d = dist_of(c);
  h->group = lt_group_retain(group);
  h->of_world = lt_world_current(c) != NULL;
  if (d == NULL) return;
  h->next = d->refs;
  h->link = &d->refs;
  if (h->next != NULL) h->next->link = &h->next;
  d->refs = h;
}

void lt_group_ref_clear(lt_ctx *c, lt_group_ref *h) {
  forget(c, h);
  if (h->link == NULL) return;
  *h->link = h->next;
  if (h->next != NULL) h->next->link = h->link;
  h->link = NULL;
}

void lt_dist_forget_world(lt_ctx *c) {
  const dist *d = c->slot[LT_SLOT_BIND];
  for (lt_group_ref *h = d != NULL ? d->refs : NULL; h != NULL; h = h->next)
    if (h->of_world) forget(c, h);
}

/* Before collectives in backward. */

static const char before_key;

/* dist.before_backward([fn]): fn() is called before each collective of all ranks in backward. */
int lt_dist_before_backward(lua_State *L) {
  lt_bind *b = lt_enter(L);
  dist *d = dist_of(b->c);
  if (d == NULL) lt_raise_failure(L, b);
  d->before = lua_isnoneornil(L, 1) ? NULL : b;
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &before_key);
  return 0;
}

bool lt_dist_call_before(lt_ctx *c, const lt_group *g) {
  const dist *d = c->slot[LT_SLOT_BIND];
  if (d == NULL || d->before == NULL || g != lt_dist_group(c)) return true;
  lua_State *L = d->before->L;
  if (lua_checkstack(L, 5) == 0) return lt_fail(c, LT_EMEMORY, "backward: Lua's stack is full");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &before_key);
  return lt_callback(d->before, "backward", 0, 0);
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
int lt_dist_set_hook(lua_State *L) {
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
int lt_dist_exchange(lua_State *L) {
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

/* Groups. */

lt_group *lt_check_group(lua_State *L, lt_bind *b, int index, const char *who) {
  lt_group *g = NULL;
  if (lua_isnoneornil(L, index)) {
    g = lt_dist_group(b->c);
    if (g == NULL) lt_raise_failure(L, b);
    return g;
  }
  const lt_group_ref *h = luaL_testudata(L, index, GROUP_NAME);
  if (h == NULL) lt_raise(L, b, LT_EARG, "%s: group: not a group", who);
  if (h->group == NULL)
    lt_raise(L, b, LT_EARG, "%s: this group belongs to a launch that has ended", who);
  return h->group;
}

lt_group_ref *lt_push_group(lua_State *L) {
  lt_group_ref *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (lt_group_ref){.group = NULL};
  luaL_setmetatable(L, GROUP_NAME);
  return h;
}

static int group_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_group_ref *h = luaL_checkudata(L, 1, GROUP_NAME);
  if (b->c != NULL) lt_group_ref_clear(b->c, h);
  return 0;
}

void lt_bind_dist_group(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", group_gc}, {NULL, NULL}};
  lt_new_type(L, b, GROUP_NAME, meta, NULL);
}
