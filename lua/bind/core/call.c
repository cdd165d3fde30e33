/* lua/bind/core/call.c: the prologue and epilogue of every C function that Lua calls, and calls
   from C into Lua. */
#include "bind/core/call.h"

#include <stdio.h>
#include <string.h>

#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/tensor.h"
#include "device/device.h"

void lt_lacking_text(const lt_bind *b, const lt_tensor *t, char text[LT_LACKING]) {
  char name[64];
  snprintf(text, LT_LACKING, "%s has no %s: use f32 or bf16, or leave the tensor on the CPU",
           lt_device_text(b->c, t->storage->device, name, sizeof name),
           lt_dtype_name((lt_dtype)t->dtype));
}

lt_frame lt_begin(lua_State *L, lt_bind *b, int n) {
  luaL_checkstack(L, n + 8, "ltrain");
  lt_note_line(b);
  for (int k = 0; k < n; k++) lt_push_empty(L, b);
  return lt_frame_open(b->c);
}

/* The result is `t`, which existed before: give back the argument that it is. */
static void return_argument(lua_State *L, const lt_bind *b, int at, int n_args,
                            const lt_tensor *t) {
  for (int k = 1; k <= n_args; k++) {
    if (lt_to_tensor(L, b, k) != t) continue;
    lua_pushvalue(L, k);
    lua_replace(L, at);
    return;
  }
}

/* Whether one of the arguments is of the result's dtype, on its device. */
static bool is_given(lua_State *L, const lt_bind *b, int n_args, const lt_tensor *result) {
  for (int k = 1; k <= n_args; k++) {
    const lt_tensor *t = lt_to_tensor(L, b, k);
    if (t != NULL && t->dtype == result->dtype &&
        lt_device_equal(t->storage->device, result->storage->device))
      return true;
  }
  return false;
}

/* Refuses a tensor of a dtype that its device lacks, where the script itself makes one: what the
   library computes may have fewer digits, and what it gives may be used. */
static void check_dtype(lua_State *L, lt_bind *b, lt_frame frame, int n_args, const lt_tensor *t) {
  lua_Debug ar;
  if (t == NULL || !lt_device_lacks(t->storage->device, (lt_dtype)t->dtype)) return;
  if (is_given(L, b, n_args, t) || lua_getstack(L, 1, &ar) == 0) return;
  lua_getinfo(L, "S", &ar);
  if (lt_source_is_ours(ar.source)) return;
  char text[LT_LACKING];
  lt_lacking_text(b, t, text);
  lt_frame_close(b->c, frame, 0, NULL);
  lt_raise(L, b, LT_EDEVICE, "%s", text);
}

int lt_end(lua_State *L, lt_bind *b, lt_frame frame, int n, lt_tensor *const *out) {
  lt_ctx *c = b->c;
  if (atomic_load_explicit(c->cancel, memory_order_relaxed))
    lt_fail(c, LT_ECANCEL, "cancelled"); /* also what no operation made */
  if (!lt_ok(c)) {
    lt_frame_close(c, frame, 0, NULL);
    lt_raise_failure(L, b);
  }
  int first = lua_gettop(L) - n + 1;
  for (int k = 0; k < n; k++) check_dtype(L, b, frame, first - 1, out[k]);
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
  int handler = b->stops.handler != NULL ? lua_gettop(L) - n_args : 0; /* see lt_stops_raised */
  if (handler > 0) {
    lua_pushcfunction(L, b->stops.handler);
    lua_insert(L, handler);
  }
  int status = lua_pcall(L, n_args, n_results, handler);
  if (handler > 0) lua_remove(L, handler);
  if (b->L != L) lt_bind_switch(b, L);
  c->op = op;
  c->line = line;
  if (status == LUA_OK) return true;
  lt_frame_close(c, mark, 0, NULL);
  name_yield(L, who);
  lua_rawseti(L, LUA_REGISTRYINDEX, b->error_ref);
  return lt_fail(c, LT_ECALLBACK, "%s: error in a function of the script", who);
}
