/* lua/bind/ops/trace.c: records the operations of a computation as tables, for exporters. */
#include "base/script_lines.h"
#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/ops/profile.h"
#include "ops/trace.h"

#define TRACE_NAME "ltrain.Trace"

/* The list is the user value of the userdata. */
typedef struct trace {
  lt_trace trace;
  lt_bind *b;
} trace;

typedef struct noted {
  trace *t;
  const lt_call *call;
  uint32_t line;
} noted;

/* A shape, or with first = 1 dims as scripts count them; n = -1: none. */
static void push_list(lua_State *L, int n, const int64_t *values, int first) {
  lua_createtable(L, n > 0 ? n : 0, 0);
  for (int k = 0; k < n; k++) {
    lua_pushinteger(L, values[k] + first);
    lua_rawseti(L, -2, k + 1);
  }
}

static void push_scalar(lua_State *L, lt_scalar s) {
  if (s.kind == LT_NO_SCALAR)
    lua_pushnil(L);
  else if (s.kind == LT_SCALAR_FLOAT)
    lua_pushnumber(L, s.f);
  else if (s.kind == LT_SCALAR_BOOL)
    lua_pushboolean(L, s.i != 0);
  else
    lua_pushinteger(L, s.i);
}

/* Dims count from 1, lists and pairs are lists; nil: absent. */
static void push_argument(lua_State *L, const lt_arg *a, const char *args) {
  const void *at = args + a->offset;
  int64_t number = 0;
  switch (a->type) {
  case LT_ARG_INT:
  case LT_ARG_POS:
  case LT_ARG_CHOICE: lua_pushinteger(L, *(const int64_t *)at); break;
  case LT_ARG_NUMBER: lua_pushnumber(L, *(const double *)at); break;
  case LT_ARG_FLAG: lua_pushboolean(L, *(const bool *)at); break;
  case LT_ARG_DIM:
    number = *(const int64_t *)at;
    if (number == LT_NO_DIM)
      lua_pushnil(L);
    else
      lua_pushinteger(L, number + 1);
    break;
  case LT_ARG_DIMS: push_list(L, ((const lt_dims *)at)->n, ((const lt_dims *)at)->dim, 1); break;
  case LT_ARG_SIZES:
  case LT_ARG_EACH:
  case LT_ARG_PADDING:
    push_list(L, ((const lt_sizes *)at)->n, ((const lt_sizes *)at)->size, 0);
    break;
  case LT_ARG_PAIR: push_list(L, 2, (const int64_t *)at, 0); break;
  case LT_ARG_SCALAR: push_scalar(L, *(const lt_scalar *)at); break;
  case LT_ARG_DTYPE: lua_pushstring(L, lt_dtype_name(*(const lt_dtype *)at)); break;
  case LT_ARG_DEVICE:
  case LT_ARG_RNG_KEY: lua_pushnil(L); break;
  }
}

static void push_tensors(lua_State *L, lt_bind *b, int n, lt_tensor *const *list) {
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    if (list[k] != NULL)
      lt_push_unique(L, b, list[k]);
    else
      lua_pushboolean(L, 0);
    lua_rawseti(L, -2, k + 1);
  }
}

/* (noted) -> nothing; appends {op, composite, args, inputs, outputs, line, view}. Under lua_pcall
   (lt_callback): an error for want of memory must not jump over lt_apply, which has an open
   frame. */
static int append(lua_State *L) {
  const noted *n = lua_touserdata(L, 1);
  lt_bind *b = n->t->b;
  const lt_op_info *op = &lt_ops[n->call->op];
  char line[256];
  lua_rawgetp(L, LUA_REGISTRYINDEX, n->t);
  lua_getiuservalue(L, -1, 1);
  lua_createtable(L, 0, 7);
  lua_pushstring(L, op->name);
  lua_setfield(L, -2, "op");
  lua_pushstring(L, n->t->trace.composite);
  lua_setfield(L, -2, "composite");
  int n_rows;
  const lt_arg *rows = lt_op_args((lt_op)n->call->op, &n_rows);
  lua_createtable(L, 0, n_rows);
  for (int k = 0; k < n_rows; k++) {
    push_argument(L, &rows[k], n->call->args);
    lua_setfield(L, -2, rows[k].name);
  }
  lua_setfield(L, -2, "args");
  push_tensors(L, b, n->call->n_in, n->call->in);
  lua_setfield(L, -2, "inputs");
  push_tensors(L, b, n->call->n_out, n->call->out);
  lua_setfield(L, -2, "outputs");
  lua_pushstring(L, lt_line_text(b->c, n->line, line, sizeof line));
  lua_setfield(L, -2, "line");
  lua_pushboolean(L, (lt_kinds[op->kind].flags & LT_KIND_VIEW) != 0);
  lua_setfield(L, -2, "view");
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return 0;
}

/* Tracing is off meanwhile: what Lua does here must not record itself. */
static bool note(lt_ctx *c, lt_trace *t, const lt_call *call) {
  noted n = {.t = (trace *)t, .call = call, .line = lt_ctx_line(c)};
  lua_State *L = n.t->b->L;
  if (lua_checkstack(L, 20) == 0) return lt_fail(c, LT_EMEMORY, "trace: Lua's stack is full");
  c->modes.trace = NULL;
  lua_pushcfunction(L, append);
  lua_pushlightuserdata(L, &n);
  bool ok = lt_callback(n.t->b, "trace", 1, 0);
  c->modes.trace = t;
  return ok && lt_ok(c);
}

static int trace_close(lua_State *L) {
  lt_bind *b = lt_enter(L);
  trace *t = luaL_checkudata(L, 1, TRACE_NAME);
  lt_trace_close(L, b, &t->trace);
  return 0;
}

/* runtime.trace(list) -> a scope: calls made in it are appended to the list as {op, composite,
   args, inputs, outputs, line, view}; an absent input is false, and composite nil where a call is
   not a part of one */
static int open_trace(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  trace *t = lua_newuserdatauv(L, sizeof *t, 1);
  *t = (trace){.trace = {.note = note}, .b = b};
  luaL_setmetatable(L, TRACE_NAME);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  lt_trace_open(L, b, &t->trace);
  return 1;
}

void lt_bind_trace(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {{"trace", open_trace}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__close", trace_close}, {NULL, NULL}};
  lt_bind_profile(L, b);
  lt_new_type(L, b, TRACE_NAME, meta, NULL);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
