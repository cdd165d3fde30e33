/* lua/bind/open.c: opens the binding of a state: its context, and the functions of all parts. */
#include "bind/open.h"

#include <string.h>

#include "bind/autograd/node_refs.h"
#include "bind/core/current_line.h"
#include "bind/core/openers.h"
#include "bind/core/raw.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/data/image.h"
#include "bind/data/text.h"
#include "ops/op.h"
#include "registry.h"

#define BIND_NAME "ltrain.Binding"

enum { RUNTIME_FUNCTIONS = 128 }; /* about as many; beyond them their table grows */

/* Slots of the registry are reserved once and filled by number: lua_rawgeti with a constant index
   is the cheapest look-up there is, and an entry with false never moves. */
static int make_slot(lua_State *L) {
  lua_pushboolean(L, false);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Weak, since these tables say something about objects of scripts and must not keep them alive. */
static int make_weak_table(lua_State *L, const char *mode) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushstring(L, mode);
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Tensors that stayed when they were finalised (must_stay of ops/tensor.c): something in C had them
   too. Nothing finalises them again. */
static void release_tensors(lua_State *L, lt_bind *b) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->unique_ref);
  if (lua_type(L, -1) == LUA_TTABLE)
    for (lua_pushnil(L); lt_raw_next(L, -2) != 0; lua_pop(L, 1)) {
      lt_boxed *box = lt_to_box(L, b, -1);
      if (box == NULL) continue;
      lt_release(b->c, box->t);
      box->t = NULL;
    }
  lua_pop(L, 1);
}

/* The state is closing: tensors were finalised before, their context may go. */
static int bind_gc(lua_State *L) {
  lt_bind *b = luaL_checkudata(L, 1, BIND_NAME);
  lt_ctx *c = b->c;
  if (c != NULL) {
    release_tensors(L, b);
    lt_drop_grads(c);
    lt_node_refs_free(b);
  }
  b->c = NULL;
  if (c != NULL) c->find_line = NULL, c->root->interrupts = NULL; /* b's */
  b->L = NULL; /* finalizers of a host that come after us: lt_enter says that the state closes */
  lt_ctx_release(c);
  return 0;
}

/* A list, not one function that calls another: the parts do not know each other, and each adds to
   the same two tables (core/openers.h). */
static void fill(lua_State *L, lt_bind *b) {
  static void (*const parts[])(lua_State *, lt_bind *) = {
      lt_bind_tensor,          lt_bind_marks,  lt_bind_ops,   lt_bind_dtypes, lt_bind_create,
      lt_bind_convert,         lt_bind_views,  lt_bind_compare, lt_bind_index, lt_bind_grad,
      lt_bind_gradients,       lt_bind_custom, lt_bind_modes, lt_bind_print,  lt_bind_collect,
      lt_bind_devices,         lt_bind_streams, lt_bind_graphs, lt_bind_system, lt_bind_random,
      lt_bind_io,
      lt_bind_data,            lt_bind_image,  lt_bind_text,  lt_bind_text_tokens, lt_bind_trace,
      lt_bind_overlay,          lt_bind_walk,
      lt_bind_reports, lt_bind_dist,   lt_bind_hash,  lt_bind_in_place,
      lt_bind_stops,           lt_bind_coroutines, lt_bind_loading, lt_bind_warnings,
      lt_bind_readback,            lt_bind_inbox,  lt_bind_net,   lt_bind_apps};
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) parts[k](L, b);
}

static void init_slots(lua_State *L, lt_bind *b) {
  b->unique_ref = make_weak_table(L, "v");
  b->hooks_ref = make_weak_table(L, "k");
  b->threads_ref = make_weak_table(L, "k");
  b->thread_ref = make_slot(L);
  b->record_ref = make_slot(L);
  b->error_ref = make_slot(L);
  b->last_error_ref = make_slot(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  b->L = lua_tothread(L, -1);
  b->modes = &b->main_modes;
  lua_rawseti(L, LUA_REGISTRYINDEX, b->thread_ref);
}

/* Makes the binding; the only argument is the options. Leaves it in the registry. The userdata has
   its metatable before anything is made that __gc must free: whatever raises afterwards, also for
   want of memory, leaves nothing behind. */
static int bind_new(lua_State *L) {
  static const luaL_Reg meta[] = {{"__gc", bind_gc}, {NULL, NULL}};
  const lt_bind_options *options = lua_touserdata(L, 1);
  lt_bind *b = lua_newuserdatauv(L, sizeof *b, 1);
  memset(b, 0, sizeof *b);
  lt_new_type(L, b, BIND_NAME, meta, NULL);
  luaL_setmetatable(L, BIND_NAME);
  const lt_registry *registry = lt_registry_here();
  if (registry->refusal[0] != 0) return luaL_error(L, "ltrain: %s", registry->refusal);
  b->c = lt_ctx_new(registry, options->allocator);
  if (b->c == NULL) return luaL_error(L, "ltrain: no memory for a context");
  b->owned = options->owned;
  b->owns_process = options->owns_process;
  b->c->policy = options->policy;
  b->limits = options->limits;
  if (b->limits.memory > 0) lt_device_set_limit(b->c, b->limits.memory);
  b->c->threads = options->threads > 0 ? options->threads : 1;
  b->c->find_line = lt_find_line;
  b->c->root->interrupts = &b->interrupts;
  b->c->line_ud = b;
  b->main_modes = b->c->modes;
  init_slots(L, b);
  lua_replace(L, 1);
  lua_createtable(L, 0, LT_OP_COUNT); /* functions */
  lua_createtable(L, 0, LT_OP_COUNT); /* methods */
  lua_rotate(L, 1, 2);
  lua_createtable(L, 0, RUNTIME_FUNCTIONS);
  lua_setfield(L, 1, "runtime");
  fill(L, b);
  lua_settop(L, 3);
  lt_bind_keep(L, 1);
  return 0;
}

/* One binding a state: a second require, or a host that loads ltrain into a state that has it
   already, finds the first. */
lt_bind *lt_bind_open(lua_State *L, const lt_bind_options *options) {
  if (lt_bind_get(L) == NULL) {
    lua_pushcfunction(L, bind_new);
    lua_pushlightuserdata(L, (void *)options);
    lua_call(L, 1, 0);
  }
  lt_push_functions(L);
  return lt_bind_get(L);
}
