/* lua/bind/state.c: opening the binding, modes per Lua thread, raising, calling back. */
#include "bind/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bind/tensor.h"
#include "registry.h"

/* Address used as the registry key of a state's binding. */
static const char bind_key;

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
  lt_bind *b = lua_touserdata(L, 1);
  lt_ctx *c = b->c;
  if (c != NULL) lt_forget_dead_hooks(b);
  b->c = NULL;
  lt_ctx_release(c);
  return 0;
}

static void fill(lua_State *L, lt_bind *b) {
  static void (*const parts[])(lua_State *, lt_bind *) = {
      lt_bind_tensor, lt_bind_ops,   lt_bind_create,  lt_bind_convert, lt_bind_views,
      lt_bind_index,  lt_bind_grad,  lt_bind_modes,   lt_bind_print,   lt_bind_collect,
      lt_bind_system, lt_bind_random, lt_bind_io,
      lt_bind_data, lt_bind_state_functions};
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) parts[k](L, b);
}

lt_bind *lt_bind_get(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &bind_key);
  lt_bind *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return b;
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

/* Makes the binding; the only argument is the options. Leaves it in the registry. */
static int bind_new(lua_State *L) {
  const lt_bind_options *options = lua_touserdata(L, 1);
  lt_bind *b = lua_newuserdatauv(L, sizeof *b, CORE_SLOT);
  memset(b, 0, sizeof *b);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, bind_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  b->c = lt_ctx_new(lt_registry_here(), options->allocator);
  if (b->c == NULL) return luaL_error(L, "ltrain: no memory for a context");
  b->owned = options->owned;
  b->c->policy = options->policy;
  b->c->threads = options->threads > 0 ? options->threads : 1;
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

void lt_bind_interrupt(lt_bind *b) { atomic_fetch_add(&b->interrupts, 1); }

/* The record of modes of the thread on top of the stack, which it pops. A new thread starts with
   the main thread's. */
static lt_modes *record_of(lua_State *L, lt_bind *b) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->threads_ref);
  lua_pushvalue(L, -2);
  if (lua_rawget(L, -2) != LUA_TUSERDATA) {
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lt_modes *fresh = lua_newuserdatauv(L, sizeof *fresh, 0);
    *fresh = b->main_modes;
    lua_rawset(L, -3);
    lua_pushvalue(L, -2);
    lua_rawget(L, -2);
  }
  lt_modes *record = lua_touserdata(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, b->record_ref);
  lua_pop(L, 2);
  return record;
}

void lt_bind_switch(lt_bind *b, lua_State *L) {
  if (b->c == NULL) luaL_error(L, "ltrain: the state is closing");
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

/* Fill lt.last_error() from the values on the stack: path (or nil), where. */
static void keep_last_error(lua_State *L, lt_bind *b, const lt_failure *f, const char *message) {
  static const char *const code_names[] = {"ok", "argument", "shape", "dtype", "device", "value",
                                           "version", "memory", "io", "cancel", "callback",
                                           "internal"};
  lua_createtable(L, 0, 5);
  lua_pushstring(L, code_names[f->code]);
  lua_setfield(L, -2, "code");
  if (f->op[0] != 0) {
    lua_pushstring(L, f->op);
  } else {
    size_t length = strcspn(f->text, ": ");
    lua_pushlstring(L, f->text, f->text[length] == ':' ? length : 0);
  }
  lua_setfield(L, -2, "op");
  lua_pushstring(L, message);
  lua_setfield(L, -2, "message");
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "path");
  size_t length;
  const char *where = lua_tolstring(L, -2, &length);
  lua_pushlstring(L, where, length > 2 ? length - 2 : 0);
  lua_setfield(L, -2, "line");
  lua_rawseti(L, LUA_REGISTRYINDEX, b->last_error_ref);
}

void lt_raise_failure(lua_State *L, lt_bind *b) {
  lt_failure f;
  if (!lt_take_failure(b->c, &f)) luaL_error(L, "internal: a call failed without a reason");
  luaL_checkstack(L, 12, "ltrain");
  if (f.code == LT_ECALLBACK) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->error_ref);
    lua_pushboolean(L, false);
    lua_rawseti(L, LUA_REGISTRYINDEX, b->error_ref);
    lua_error(L);
  }
  lt_push_module_path(L);
  lt_push_where(L);
  keep_last_error(L, b, &f, f.text);
  lua_pushstring(L, f.text);
  if (!lua_isnil(L, -3)) {
    lua_pushliteral(L, " (in ");
    lua_pushvalue(L, -4);
    lua_pushliteral(L, ")");
    lua_concat(L, 5);
  } else {
    lua_concat(L, 2);
  }
  lua_error(L);
  for (;;) {
  }
}

void lt_raise(lua_State *L, lt_bind *b, lt_code code, const char *format, ...) {
  char text[LT_FAILURE_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  lt_fail(b->c, code, "%s", text);
  lt_raise_failure(L, b);
}

lt_frame lt_begin(lua_State *L, lt_bind *b, int n) {
  luaL_checkstack(L, n + 8, "ltrain");
  lt_note_line(L, b);
  for (int k = 0; k < n; k++) lt_push_empty(L, b);
  return lt_frame_open(b->c);
}

/* The result is `t`, which existed before: give back the argument that it is. */
static void return_argument(lua_State *L, const lt_bind *b, int at, int n_args, const lt_tensor *t) {
  for (int k = 1; k <= n_args; k++) {
    if (lt_to_tensor(L, b, k) != t) continue;
    lua_pushvalue(L, k);
    lua_replace(L, at);
    return;
  }
}

int lt_end(lua_State *L, lt_bind *b, lt_frame frame, int n, lt_tensor *const *out) {
  lt_ctx *c = b->c;
  if (!lt_ok(c)) {
    lt_frame_close(c, frame, 0, NULL);
    lt_raise_failure(L, b);
  }
  int first = lua_gettop(L) - n + 1;
  for (int k = 0; k < n; k++) {
    lt_boxed *box = lua_touserdata(L, first + k);
    if (out[k] == NULL) {
      lua_pushnil(L);
      lua_replace(L, first + k);
      continue;
    }
    box->t = lt_retain(out[k]);
    if (out[k]->object.refs > 2) return_argument(L, b, first + k, first - 1, out[k]);
    b->collect.fresh += out[k]->numel * (int64_t)lt_item_size(out[k]);
  }
  lt_frame_close(c, frame, 0, NULL);
  return n;
}

void lt_end_call(lua_State *L, lt_bind *b, lt_frame frame) {
  lt_frame_close(b->c, frame, 0, NULL);
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
}

/* A yield that a C call forbids gets a sentence of its own. */
static void name_yield(lua_State *L, const char *who) {
  const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  if (text == NULL || strstr(text, "yield across a C-call boundary") == NULL) return;
  lua_pop(L, 1);
  lua_pushfstring(L, "%s: a function called from here must not yield", who);
}

bool lt_callback(lt_bind *b, const char *who, int n_args, int n_results) {
  lua_State *L = b->L;
  lt_ctx *c = b->c;
  if (!lt_ok(c)) {
    lua_pop(L, n_args + 1);
    return false;
  }
  lt_frame mark = lt_frame_open(c);
  const char *op = c->op;
  uint32_t line = c->line;
  c->op = NULL;
  int status = lua_pcall(L, n_args, n_results, 0);
  if (b->L != L) lt_bind_switch(b, L);
  c->op = op;
  c->line = line;
  if (status == LUA_OK) return true;
  lt_frame_close(c, mark, 0, NULL);
  name_yield(L, who);
  lua_rawseti(L, LUA_REGISTRYINDEX, b->error_ref);
  return lt_fail(c, LT_ECALLBACK, "%s: error in a function of the script", who);
}

void lt_add_functions(lua_State *L, lt_bind *b, const luaL_Reg *functions) {
  lua_pushlightuserdata(L, b);
  luaL_setfuncs(L, functions, 1);
}

/* lt.last_error() -> {code, op, message, line, path} of the last error raised by us, or nil */
static int last_error(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->last_error_ref);
  if (!lua_istable(L, -1)) lua_pushnil(L);
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
  static const luaL_Reg runtime[] = {
      {"mark_line", mark_line}, {"where", where}, {"module_path", module_path}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"last_error", last_error}, {NULL, NULL}};
  lua_pushvalue(L, 1);
  lt_add_functions(L, b, functions);
  lua_getfield(L, -1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 2);
}
