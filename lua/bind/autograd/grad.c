/* lua/bind/autograd/grad.c: x:backward, x:register_hook.

   Hooks of a leaf live with its userdata (a table with weak keys), so that a hook which names its
   own tensor is not a cycle that the collector cannot see; hooks of inner tensors belong to their
   node and hold the function in the registry. */
#include <string.h>

#include "bind/autograd/node_refs.h"
#include "bind/autograd/paused_backward.h"
#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"

/* Backward. */

/* y:backward([gradient, retain_graph, create_graph]) */
static lt_backward_options read_backward_options(lua_State *L, lt_bind *b) {
  lt_backward_options o = {0};
  if (!lua_isnoneornil(L, 2) && lt_to_tensor(L, b, 2) == NULL)
    lt_raise(L, b, LT_EARG, "backward: argument 'gradient' must be a tensor, got %s",
             lt_shown(L, 2));
  o.seed = lt_to_tensor(L, b, 2);
  if (!lua_isnoneornil(L, 4)) o.create_graph = lt_check_flag(L, b, 4, "backward", "create_graph");
  o.retain_graph = o.create_graph;
  if (!lua_isnoneornil(L, 3)) o.retain_graph = lt_check_flag(L, b, 3, "backward", "retain_graph");
  return o;
}

/* `context`: where the walk is on the stack. */
static int continue_backward(lua_State *L, int unused, lua_KContext context) {
  (void)unused;
  lt_bind *b = lt_enter(L);
  lt_walking *w = lua_touserdata(L, (int)context);
  if (!lt_walk_or_pause(L, w)) return lua_yieldk(L, 0, context, continue_backward);
  lt_frame frame = lt_begin(L, b, 0);
  lt_end_walking(w);
  lt_node_refs_sweep(L, b);
  lt_end_call(L, b, frame);
  return 0;
}

static int backward(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "backward");
  lt_backward_options o = read_backward_options(L, b);
  lt_walking *w = lt_push_walking(L, b, 0);
  lt_frame frame = lt_begin(L, b, 0);
  if (w != NULL) {
    w->walk = lt_walk_backward(b->c, x, &o);
    lt_frame_close(b->c, frame, 0, NULL);
    return continue_backward(L, 0, lua_gettop(L));
  }
  lt_backward(b->c, x, &o);
  lt_node_refs_sweep(L, b);
  lt_end_call(L, b, frame);
  return 0;
}

/* A backward whose gradients of parameters come later. */

#define DEFERRED_NAME "ltrain.Deferred"

typedef struct deferred {
  lt_deferred *list; /* NULL: freed */
} deferred;

/* runtime.backward_of_inputs(y [, gradient]) -> deferred: y:backward(gradient) without the
   gradients of parameters; deferred:run() adds those. */
static int backward_of_inputs(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "backward");
  lua_settop(L, 2);
  lt_backward_options o = read_backward_options(L, b);
  deferred *d = lua_newuserdatauv(L, sizeof *d, 0);
  d->list = lt_deferred_new(b->c);
  if (d->list == NULL) lt_raise_failure(L, b);
  luaL_setmetatable(L, DEFERRED_NAME);
  o.later = d->list;
  lt_frame frame = lt_begin(L, b, 0);
  lt_backward(b->c, x, &o);
  lt_node_refs_sweep(L, b);
  lt_end_call(L, b, frame);
  return 1;
}

/* deferred:run() */
static int run_deferred(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const deferred *d = luaL_checkudata(L, 1, DEFERRED_NAME);
  if (d->list == NULL) lt_raise(L, b, LT_EINTERNAL, "internal: deferred: it has been freed");
  lt_frame frame = lt_begin(L, b, 0);
  lt_deferred_run(b->c, d->list);
  lt_node_refs_sweep(L, b);
  lt_end_call(L, b, frame);
  return 0;
}

static int deferred_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  deferred *d = luaL_checkudata(L, 1, DEFERRED_NAME);
  if (b->c != NULL) lt_deferred_free(b->c, d->list);
  d->list = NULL;
  return 0;
}

/* Hooks. */

/* A hook whose function is Lua's is on one of two lists of the binding while it is not a leaf's:
   the living, and the dead whose function is still in the registry (a node may die at a moment when
   Lua must not be touched). */
static void list_add(lt_script_hook **list, lt_script_hook *h) {
  h->next = *list;
  h->link = list;
  if (h->next != NULL) h->next->link = &h->next;
  *list = h;
}

static void list_remove(lt_script_hook *h) {
  *h->link = h->next;
  if (h->next != NULL) h->next->link = h->link;
}

/* Push the function of a hook, or something that is none. */
void lt_node_ref_push(lua_State *L, const lt_script_hook *h) {
  if (h->leaf == NULL) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, h);
    return;
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, h->b->hooks_ref);
  lua_rawgeti(L, LUA_REGISTRYINDEX, h->b->unique_ref);
  lt_raw_getp(L, -1, h->leaf);
  if (lt_raw_get(L, -3) == LUA_TTABLE) lt_raw_getp(L, -1, h);
}

static void check_result(lua_State *L, lt_bind *b) {
  if (lt_to_tensor(L, b, -1) == NULL)
    lt_raise(L, b, LT_EARG, "hook: must return a tensor or nothing, returned %s", lt_shown(L, -1));
}

/* Whether the function on top takes an argument. */
static bool takes_argument(lua_State *L) {
  lua_Debug about;
  lua_pushvalue(L, -1);
  lua_getinfo(L, ">u", &about);
  return about.nparams > 0 || about.isvararg;
}

/* Runs under lt_callback: (hook, gradient) -> replacement or nil. A function without parameters
   gets no handle of the gradient, which would keep its memory until the next collection: those of
   sharding are on each block's activations. */
static int call_hook(lua_State *L) {
  const lt_script_hook *h = lua_touserdata(L, 1);
  lt_tensor *grad = lua_touserdata(L, 2);
  lt_node_ref_push(L, h);
  if (!lua_isfunction(L, -1)) return 0;
  bool takes = takes_argument(L);
  if (takes) lt_push_unique(L, h->b, grad);
  lua_call(L, takes ? 1 : 0, 1);
  if (lua_isnil(L, -1)) return 0;
  check_result(L, h->b);
  return 1;
}

static bool run_hook(lt_ctx *c, void *ud, lt_tensor *grad, lt_tensor **replacement) {
  lt_script_hook *h = ud;
  lua_State *L = h->b->L;
  if (lua_checkstack(L, 10) == 0) return lt_fail(c, LT_EMEMORY, "hook: Lua's stack is full");
  lua_pushcfunction(L, call_hook);
  lua_pushlightuserdata(L, h);
  lua_pushlightuserdata(L, grad);
  if (!lt_callback(h->b, "hook", 2, 1)) return false;
  *replacement = lt_to_tensor(L, h->b, -1);
  if (*replacement != NULL) lt_frame_add(c, lt_retain(*replacement));
  lua_pop(L, 1);
  return lt_ok(c);
}

void lt_node_ref_drop(lt_ctx *c, void *ud) {
  lt_script_hook *h = ud;
  if (h->leaf == NULL) list_remove(h);
  if (h->leaf == NULL && h->b->c != NULL)
    list_add(&h->b->dead_hooks, h);
  else
    lt_free(c, h, sizeof *h);
}

static void forget_function(lua_State *L, const lt_script_hook *h) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, h) != LUA_TNIL) {
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, h);
  }
  lua_pop(L, 1);
}

/* Functions of hooks that cannot run again leave the registry, or a hook that names its own tensor
   would keep both forever. */
void lt_node_refs_sweep(lua_State *L, lt_bind *b) {
  for (const lt_script_hook *h = b->live_hooks; h != NULL; h = h->next)
    if (h->node != NULL && h->node->used) forget_function(L, h);
  while (b->dead_hooks != NULL) {
    lt_script_hook *h = b->dead_hooks;
    forget_function(L, h);
    list_remove(h);
    lt_free(b->c, h, sizeof *h);
  }
}

void lt_node_refs_free(lt_bind *b) {
  while (b->dead_hooks != NULL) {
    lt_script_hook *h = b->dead_hooks;
    list_remove(h);
    lt_free(b->c, h, sizeof *h);
  }
}

/* Remember the function at index 2 for the tensor at index 1. */
static void keep_function(lua_State *L, lt_bind *b, const lt_script_hook *h) {
  if (h->leaf == NULL) {
    lua_pushvalue(L, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, h);
    return;
  }
  lt_make_unique(L, b, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->hooks_ref);
  lua_pushvalue(L, 1);
  if (lt_raw_get(L, -2) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_pushvalue(L, 2);
  lua_rawsetp(L, -2, h);
  lua_pop(L, 2);
}

lt_script_hook *lt_node_ref_new(lua_State *L, lt_bind *b, const lt_node *node, int index) {
  lt_script_hook *h = lt_alloc(b->c, sizeof *h);
  if (h == NULL) return NULL;
  *h = (lt_script_hook){.b = b, .node = node};
  lua_pushvalue(L, index);
  lua_rawsetp(L, LUA_REGISTRYINDEX, h);
  list_add(&b->live_hooks, h);
  return h;
}

/* The remover: upvalues are the binding, the tensor, the hook's address. It walks the tensor's own
   list, so that a hook which is gone already is simply not found. */
static int remove_hook(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *t = lt_to_tensor(L, b, lua_upvalueindex(2));
  const void *wanted = lua_touserdata(L, lua_upvalueindex(3));
  if (t == NULL) return 0;
  lt_hook *hook = t->node != NULL ? ((lt_node *)t->node)->hooks : t->hooks;
  while (hook != NULL && hook->ud != wanted) hook = hook->next;
  if (hook == NULL) return 0;
  const lt_script_hook *h = hook->ud;
  if (h->leaf == NULL) {
    forget_function(L, h);
    return 0;
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->hooks_ref);
  lua_pushvalue(L, lua_upvalueindex(2));
  if (lt_raw_get(L, -2) != LUA_TTABLE) return 0;
  lua_pushnil(L);
  lua_rawsetp(L, -2, h);
  return 0;
}

static int add_hook(lua_State *L, const char *who, bool after) {
  lt_bind *b = lt_enter(L);
  lt_ctx *c = b->c;
  lt_tensor *t = lt_check_tensor(L, b, 1, who);
  if (!lua_isfunction(L, 2))
    lt_raise(L, b, LT_EARG, "%s: needs a function, got %s", who, lt_shown(L, 2));
  if (!lt_requires_grad(t)) lt_raise(L, b, LT_EARG, "%s: this tensor does not require grad", who);
  if (after && t->node != NULL)
    lt_raise(L, b, LT_EARG,
             "%s: only leaves accumulate gradients, this tensor is a result: use "
             "register_hook",
             who);
  lua_settop(L, 2);
  lt_node_refs_sweep(L, b);
  lt_node *node = (lt_node *)t->node;
  lt_script_hook *h = lt_alloc(c, sizeof *h);
  lt_hook *hook = h != NULL ? lt_alloc(c, sizeof *hook) : NULL;
  if (hook == NULL) {
    lt_free(c, h, sizeof *h);
    lt_raise_failure(L, b);
  }
  *h = (lt_script_hook){.b = b, .leaf = node == NULL ? t : NULL, .node = node};
  *hook = (lt_hook){.fn = run_hook, .drop = lt_node_ref_drop, .ud = h, .output = t->output,
                    .after = after};
  c->hooks_after += after;
  if (node != NULL) {
    lt_hook **link = &node->hooks;
    while (*link != NULL) link = &(*link)->next;
    *link = hook;
    list_add(&b->live_hooks, h);
  } else {
    lt_tensor_add_hook(t, hook);
  }
  keep_function(L, b, h);
  lua_pushlightuserdata(L, b);
  lua_pushvalue(L, 1);
  lua_pushlightuserdata(L, h);
  lua_pushcclosure(L, remove_hook, 3);
  return 1;
}

/* x:register_hook(fn) -> function that removes it. fn(grad) may return a tensor to continue
   with. */
static int register_hook(lua_State *L) { return add_hook(L, "register_hook", false); }

/* x:register_post_accumulate_grad_hook(fn) -> function that removes it. fn(x) is called once in
   each backward, when x.grad is complete. */
static int register_post_accumulate_grad_hook(lua_State *L) {
  return add_hook(L, "register_post_accumulate_grad_hook", true);
}

void lt_bind_grad(lua_State *L, lt_bind *b) {
  static const lt_formed methods[] = {
      {{"backward", backward, 4}, "x | gradient retain_graph create_graph"},
      {{"register_hook", register_hook, 2}, "x hook"},
      {{"register_post_accumulate_grad_hook", register_post_accumulate_grad_hook, 2}, "x hook"},
      {{NULL, NULL, 0}, NULL}};
  static const luaL_Reg meta[] = {{"__gc", deferred_gc}, {NULL, NULL}};
  static const luaL_Reg of_deferred[] = {{"run", run_deferred}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"backward_of_inputs", backward_of_inputs}, {NULL, NULL}};
  lt_new_type(L, b, DEFERRED_NAME, meta, of_deferred);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, functions);
  lua_pop(L, 1);
  lua_pushvalue(L, 2);
  lt_add_formed(L, b, methods);
  lua_pop(L, 1);
}
