/* lua/bind/core/call.c: the prologue and epilogue of every C function that Lua calls, and calls
   from C into Lua. */
#include "bind/core/call.h"

#include <string.h>

#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/tensor.h"

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

int lt_end(lua_State *L, lt_bind *b, lt_frame frame, int n, lt_tensor *const *out) {
  lt_ctx *c = b->c;
  if (atomic_load_explicit(c->cancel, memory_order_relaxed))
    lt_fail(c, LT_ECANCEL, "cancelled"); /* also what no operation made */
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
