/* lua/bind/core/state.c: opening the binding, modes per Lua thread, raising, calling back. */
#include "bind/core/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/lines.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"
#include "bind/data/image.h"
#include "bind/data/text.h"
#include "ltrain/version.h"
#include "ops/trace.h"
#include "registry.h"

/* Address used as the registry key of a state's binding. */
static const char bind_key;

#define BIND_NAME "ltrain.Binding"

enum { CORE_SLOT = 1 }; /* user value of the binding: the table of C functions */

static int make_slot(lua_State *L) {
  lua_pushboolean(L, false);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

static int make_weak_table(lua_State *L, const char *mode) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushstring(L, mode);
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

/* The state is closing: tensors were finalised before, their context may go. */
static int bind_gc(lua_State *L) {
  lt_bind *b = luaL_checkudata(L, 1, BIND_NAME);
  lt_ctx *c = b->c;
  if (c != NULL) {
    lt_drop_grads(c);
    lt_forget_dead_hooks(b);
  }
  b->c = NULL;
  if (c != NULL) c->find_line = NULL, c->root->interrupts = NULL; /* b's */
  b->L = NULL; /* finalizers of a host that come after us: lt_enter says that the state closes */
  lt_ctx_release(c);
  return 0;
}

static void fill(lua_State *L, lt_bind *b) {
  static void (*const parts[])(lua_State *, lt_bind *) = {
      lt_bind_tensor,          lt_bind_marks,  lt_bind_ops,   lt_bind_dtypes, lt_bind_create,
      lt_bind_convert,         lt_bind_views,  lt_bind_compare, lt_bind_index, lt_bind_grad,
      lt_bind_gradients,       lt_bind_custom, lt_bind_modes, lt_bind_print,  lt_bind_collect,
      lt_bind_devices,         lt_bind_streams, lt_bind_system, lt_bind_random, lt_bind_io,
      lt_bind_data,            lt_bind_image,  lt_bind_text,  lt_bind_trace,
      lt_bind_shadow,          lt_bind_walk,
      lt_bind_state_functions, lt_bind_dist,   lt_bind_hash,  lt_bind_in_place,
      lt_bind_coroutines,      lt_bind_loading, lt_bind_warnings, lt_bind_flag,
      lt_bind_stops};
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) parts[k](L, b);
}

lt_bind *lt_bind_get(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &bind_key);
  lt_bind *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return b;
}

static const char require_key;

void lt_set_require(lua_State *L, lua_CFunction require) {
  lua_pushcfunction(L, require);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &require_key);
}

void lt_push_require(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &require_key); }

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

/* Makes the binding; the only argument is the options. Leaves it in the registry. */
static int bind_new(lua_State *L) {
  static const luaL_Reg meta[] = {{"__gc", bind_gc}, {NULL, NULL}};
  const lt_bind_options *options = lua_touserdata(L, 1);
  lt_bind *b = lua_newuserdatauv(L, sizeof *b, CORE_SLOT);
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
  lua_newtable(L); /* functions */
  lua_newtable(L); /* methods */
  lua_rotate(L, 1, 2);
  lua_newtable(L);
  lua_setfield(L, 1, "runtime");
  fill(L, b);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 3, CORE_SLOT);
  lua_settop(L, 3);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &bind_key);
  return 0;
}

lt_bind *lt_bind_open(lua_State *L, const lt_bind_options *options) {
  if (lt_bind_get(L) == NULL) {
    lua_pushcfunction(L, bind_new);
    lua_pushlightuserdata(L, (void *)options);
    lua_call(L, 1, 0);
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &bind_key);
  lua_getiuservalue(L, -1, CORE_SLOT);
  lua_remove(L, -2);
  return lt_bind_get(L);
}

/* The record of modes of the thread on top of the stack, which it pops. A new thread starts with
   the main thread's; it may outlive a part that is computed again, which it does not belong to. */
static lt_modes *record_of(lua_State *L, lt_bind *b) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->threads_ref);
  lua_pushvalue(L, -2);
  if (lt_raw_get(L, -2) != LUA_TUSERDATA) {
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lt_modes *fresh = lua_newuserdatauv(L, sizeof *fresh, 0);
    *fresh = b->main_modes;
    fresh->dropping = fresh->filling = NULL;
    lua_rawset(L, -3);
    lua_pushvalue(L, -2);
    lt_raw_get(L, -2);
  }
  lt_modes *record = lua_touserdata(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, b->record_ref);
  lua_pop(L, 2);
  return record;
}

static void leave(lt_modes *m, const lt_trace *t) {
  if (m->trace == t) m->trace = t->outer;
}

void lt_trace_open(lua_State *L, lt_bind *b, lt_trace *t) {
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, t);
  t->outer = b->c->modes.trace;
  if (t->outer != NULL) t->outer->inner++;
  t->open = true;
  b->c->modes.trace = t;
}

void lt_trace_close(lua_State *L, lt_bind *b, lt_trace *t) {
  if (!t->open || t->inner > 0 || b->c->modes.trace != t) return;
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->threads_ref);
  for (lua_pushnil(L); lt_raw_next(L, -2) != 0; lua_pop(L, 1)) leave(lua_touserdata(L, -1), t);
  leave(&b->main_modes, t);
  leave(&b->c->modes, t);
  if (t->outer != NULL) t->outer->inner--;
  t->open = false;
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, t);
}

void lt_bind_switch(lt_bind *b, lua_State *L) {
  if (b->c == NULL || b->closing) luaL_error(L, "ltrain: the state is closing");
  luaL_checkstack(L, 8, "ltrain");
  *b->modes = b->c->modes;
  if (lua_pushthread(L) != 0) {
    lua_pop(L, 1);
    b->modes = &b->main_modes;
  } else {
    b->modes = record_of(L, b);
  }
  b->c->modes = *b->modes;
  lua_pushthread(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, b->thread_ref);
  b->L = L;
}

/* Finalizers of a host's state run in threads of their own: each of their calls is a switch. */
void lt_bind_close(lt_bind *b, lua_State *L) {
  *b->modes = b->c->modes;
  b->modes = &b->main_modes;
  b->c->modes = b->main_modes;
  b->L = L;
  b->closing = true;
}

void lt_add_functions(lua_State *L, lt_bind *b, const luaL_Reg *functions) {
  lua_pushlightuserdata(L, b);
  luaL_setfuncs(L, functions, 1);
}

void lt_check_count(lua_State *L, lt_bind *b, const char *who, int most) {
  int top = lua_gettop(L);
  for (int k = most + 1; k <= top; k++)
    if (!lua_isnil(L, k))
      lt_raise(L, b, LT_EARG, "%s: one argument too many: %s", who, lt_shown(L, k));
  if (top > most) lua_settop(L, most);
}

/* Upvalues: the binding, the row. What is called finds the binding in the same place. */
static int call_public(lua_State *L) {
  const lt_function *f = lua_touserdata(L, lua_upvalueindex(2));
  if (f->most >= 0 && lua_gettop(L) > f->most) lt_check_count(L, lt_enter(L), f->name, f->most);
  return f->call(L);
}

void lt_add_public(lua_State *L, lt_bind *b, const lt_function *functions) {
  for (const lt_function *f = functions; f->name != NULL; f++) {
    lua_pushlightuserdata(L, b);
    lua_pushlightuserdata(L, (void *)f);
    lua_pushcclosure(L, call_public, 2);
    lua_setfield(L, -2, f->name);
  }
}

/* lt.last_error() -> {code, op, shapes, message, line, path} of the last error raised by us, or nil
 */
static int last_error(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->last_error_ref);
  if (!lua_istable(L, -1)) lua_pushnil(L);
  return 1;
}

/* runtime.error_text(error) -> its text */
static int error_text(lua_State *L) {
  luaL_checkany(L, 1);
  lt_push_error_text(L, 1);
  return 1;
}

/* runtime.status_of(error) -> the exit status that goes with it */
static int status_of(lua_State *L) {
  luaL_checkany(L, 1);
  lua_pushinteger(L, lt_status_of(L, 1));
  return 1;
}

/* runtime.mark_line([id]) -> id: a Module's call notes the script's line once for all ops below
   it; called with what it gave back before, it restores that. */
static int mark_line(lua_State *L) {
  lt_bind *b = lt_enter(L);
  uint32_t before = b->line_hint;
  if (lua_isnoneornil(L, 1)) {
    if (before == 0) b->line_hint = lt_script_line(L, b);
  } else {
    b->line_hint = (uint32_t)luaL_checkinteger(L, 1);
  }
  lua_pushinteger(L, before);
  return 1;
}

/* runtime.line_text(id) -> "model.lua:14" */
static int line_text(lua_State *L) {
  char text[512];
  uint32_t id = (uint32_t)luaL_checkinteger(L, 1);
  lua_pushstring(L, lt_line_text(lt_enter(L)->c, id, text, sizeof text));
  return 1;
}

/* runtime.where() -> "model.lua:14: " of the script's innermost line, for errors of our own Lua */
static int where(lua_State *L) {
  lt_push_where(L);
  return 1;
}

static int module_path(lua_State *L) {
  lt_push_module_path(L);
  return 1;
}

void lt_bind_state_functions(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {{"mark_line", mark_line},
                                     {"line_text", line_text},
                                     {"where", where},
                                     {"module_path", module_path},
                                     {"parameters", lt_parameters},
                                     {"parameter_names", lt_parameter_names},
                                     {"arguments", lt_arguments},
                                     {"path_of", lt_path_of},
                                     {"origin", lt_function_origin},
                                     {"code", lt_function_code},
                                     {"note_error", lt_note_error},
                                     {"printable", lt_printable},
                                     {"status_of", status_of},
                                     {"error_text", error_text},
                                     {NULL, NULL}};
  static const lt_function functions[] = {{"last_error", last_error, 0}, {NULL, NULL, 0}};
  lua_pushvalue(L, 1);
  lt_add_public(L, b, functions);
  lua_getfield(L, -1, "runtime");
  lt_add_functions(L, b, runtime);
  lt_add_places(L);
  lua_pop(L, 1);
  lua_pushliteral(L, LT_VERSION);
  lua_setfield(L, -2, "version");
  lua_pop(L, 1);
}
