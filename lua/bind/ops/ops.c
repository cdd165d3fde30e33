/* lua/bind/ops/ops.c: every row of the op table as a function and a method, and the operators.

   Nothing here knows a single structured op: what is visible, what it takes and what it gives
   comes from lt_ops and lt_kinds.

   A closure with three upvalues (binding, op, name) in place of a C function per op: about 20 lines
   of C serve all rows. `lt` and the methods get the same closure, so lt.relu == x.relu. Calling one
   costs a read of the op's row, a frame for the temporaries, and lt_apply. */
#include <stdio.h>
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/ops/arguments.h"

/* Upvalues of an op's function: the binding, the op, of a form in place its name, of an operation
   for the library's files whether it returns all results. */
enum { OP_UPVALUE = 2, NAME_UPVALUE = 3, ALL_UPVALUE = 4 };

/* A failure names the op that ran; a script knows it by what it called: zeros, add_. */
static void name_as_called(lt_ctx *c, const lt_reading *r) {
  size_t length = strlen(r->op->name);
  lt_failure *f = &c->failure;
  if (lt_ok(c) || r->who == r->op->name || strncmp(f->text, r->op->name, length) != 0 ||
      f->text[length] != ':')
    return;
  char text[LT_FAILURE_TEXT];
  snprintf(text, sizeof text, "%s", f->text + length);
  snprintf(f->text, sizeof f->text, "%s%s", r->who, text);
  snprintf(f->op, sizeof f->op, "%s", r->who);
}

/* With `dtype`: integers were computed in i64, and means of them would be floating. So a cast
   within floating or within integer dtypes is all that may be left to do; anything else is an
   error. */
static lt_tensor *in_dtype(lt_ctx *c, const lt_reading *r, lt_tensor *y) {
  if (r->dtype == LT_DTYPE_NONE || y == NULL) return y;
  if (lt_dtype_is_float((lt_dtype)y->dtype) == lt_dtype_is_float(r->dtype))
    return lt_cast(c, y, r->dtype);
  lt_fail(c, LT_EDTYPE, "%s: dtype must be floating, got %s", r->who, lt_dtype_name(r->dtype));
  return NULL;
}

/* Run a call that was read, push its results. The order matters: a collection that is due comes
   before the frame opens, since finalizers may call ops; `dtype` casts the input before the op, as
   PyTorch documents it, and what is left of it after the op. A result that the op left out (an
   absent gradient, an optional output) is dropped from the end only. */
int lt_run_reading(lua_State *L, lt_bind *b, lt_reading *r) {
  lt_tensor *out[LT_MAX_OUT] = {NULL};
  int n_out = r->kind->n_out, n_shown = r->all_results ? n_out : lt_kind_shown(r->kind);
  lt_ctx *c = b->c;
  lt_collect_if_due(L, b);
  lt_frame frame = lt_begin(L, b, n_shown);
  lt_make_numbers(c, r);
  if (r->dtype != LT_DTYPE_NONE) r->in[0] = lt_cast(c, r->in[0], r->dtype);
  lt_apply(c, (lt_op)(r->op - lt_ops), r->n_in, r->in, r->args, n_out, out);
  out[0] = in_dtype(c, r, out[0]);
  if (r->requires_grad && lt_ok(c)) {
    if (lt_dtype_is_float((lt_dtype)out[0]->dtype))
      out[0]->flags |= LT_REQUIRES_GRAD;
    else
      lt_fail(c, LT_EDTYPE, "%s: only floating tensors can require grad, this is %s", r->who,
              lt_dtype_name((lt_dtype)out[0]->dtype));
  }
  name_as_called(c, r);
  n_out = lt_end(L, b, frame, n_shown, out);
  for (; n_out > 1 && lua_isnil(L, -1); n_out--) lua_pop(L, 1); /* results that this call lacks */
  return n_out;
}

/* The function in place of the op, with the same arguments. */
static int call_replacement(lua_State *L, lt_bind *b) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &b->replaced_op);
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

static int call_op(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r;
  int op = (int)lua_tointeger(L, lua_upvalueindex(OP_UPVALUE));
  if (op == b->replaced_op) return call_replacement(L, b);
  lt_reading_init(&r, (lt_op)op);
  lt_read_call(L, b, &r, 1);
  return lt_run_reading(L, b, &r);
}

/* Ops of a namespace, as linalg.solve: errors name them with it. */
static int call_in_namespace(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r;
  lt_reading_init(&r, (lt_op)lua_tointeger(L, lua_upvalueindex(OP_UPVALUE)));
  r.who = lua_tostring(L, lua_upvalueindex(NAME_UPVALUE));
  lt_read_call(L, b, &r, 1);
  return lt_run_reading(L, b, &r);
}

/* Makers of tensors: no tensor goes in, `requires_grad` is one more option. */
static int call_maker(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r;
  lt_reading_init(&r, (lt_op)lua_tointeger(L, lua_upvalueindex(OP_UPVALUE)));
  r.with_requires_grad = true;
  lt_read_arguments(L, b, &r, 1);
  return lt_run_reading(L, b, &r);
}

/* x:add_(y): the result goes into x, which is returned. */
static int call_in_place(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r;
  lt_reading_init(&r, (lt_op)lua_tointeger(L, lua_upvalueindex(OP_UPVALUE)));
  r.who = lua_tostring(L, lua_upvalueindex(NAME_UPVALUE));
  lt_tensor *x = lt_check_tensor(L, b, 1, r.who);
  lt_read_call(L, b, &r, 1);
  lt_frame frame = lt_begin(L, b, 0);
  lt_make_numbers(b->c, &r);
  lt_apply(b->c, (lt_op)(r.op - lt_ops), r.n_in, r.in, r.args, 1, &x);
  name_as_called(b->c, &r);
  lt_end_call(L, b, frame);
  lua_pushvalue(L, 1);
  return 1;
}

/* Operators of one operand get it twice. */
static int call_unary_operator(lua_State *L) {
  lua_settop(L, 1);
  return call_op(L);
}

static void push_op(lua_State *L, lt_bind *b, lua_CFunction fn, int op) {
  lua_pushlightuserdata(L, b);
  lua_pushinteger(L, op);
  lua_pushcclosure(L, fn, OP_UPVALUE);
}

/* Which functions a row becomes. */

/* Derivatives and parts of composites have rows but no names in scripts: they are reached by
   lt_apply alone. */
static bool is_visible(const lt_op_info *op) {
  return !op->hidden && (lt_kinds[op->kind].flags & LT_KIND_HIDDEN) == 0;
}

/* Steps of optimizers, recurrent layers, lists of gradients: for the library's own files. */
static bool is_internal(const lt_op_info *op) {
  switch ((int)op->kind) {
    case LT_KIND_update:
    case LT_KIND_sgd_step:
    case LT_KIND_adam_step:
    case LT_KIND_recurrent:
    case LT_KIND_grads_norm:
    case LT_KIND_grads_scale:
    case LT_KIND_clip_grad_norm:
    case LT_KIND_clip_grad_value: return true;
    default: return false;
  }
}

/* Kinds whose result has the shape of x and may go into its memory. `x:add_(y)` is `add` with an
   output that is x: lt_apply checks views, versions and history then. */
static bool has_in_place_form(const lt_op_info *op) {
  return op->kind == LT_KIND_unary || op->kind == LT_KIND_binary || op->kind == LT_KIND_clamp ||
         op->kind == LT_KIND_unary_numbers ||
         op->kind == LT_KIND_masked_fill || op->kind == LT_KIND_lerp ||
         op->kind == LT_KIND_addcmul || op->kind == LT_KIND_scatter;
}

/* Methods take their tensor as `self`: makers have none, and a list has no metatable. */
static bool is_method(const lt_op_info *op) {
  const lt_kind_info *kind = &lt_kinds[op->kind];
  return kind->max_in != 0 && (kind->flags & LT_KIND_LIST) == 0 && !is_internal(op);
}

/* A method table (index 2), a module table (index 1), one closure in both. */
static void add_op(lua_State *L, lt_bind *b, int id) {
  const lt_op_info *op = &lt_ops[id];
  push_op(L, b, lt_kinds[op->kind].max_in == 0 ? call_maker : call_op, id);
  if (is_method(op)) {
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, op->name);
  }
  lua_setfield(L, 1, op->name);
  if (!has_in_place_form(op)) return;
  const char *name = lua_pushfstring(L, "%s_", op->name);
  lua_pushlightuserdata(L, b);
  lua_pushinteger(L, id);
  lua_pushvalue(L, -3);
  lua_pushcclosure(L, call_in_place, NAME_UPVALUE);
  lua_setfield(L, 2, name);
  lua_pop(L, 1);
}

/* `linalg_solve` is solve in the table linalg, for stdlib/linalg and the like. */
static void add_to_namespace(lua_State *L, lt_bind *b, int id) {
  static const char *const namespaces[] = {"fft", "linalg"};
  const char *name = lt_ops[id].name;
  for (size_t k = 0; k < sizeof namespaces / sizeof *namespaces; k++) {
    size_t length = strlen(namespaces[k]);
    if (strncmp(name, namespaces[k], length) != 0 || name[length] != '_') continue;
    luaL_getsubtable(L, 1, namespaces[k]);
    lua_pushlightuserdata(L, b);
    lua_pushinteger(L, id);
    lua_pushfstring(L, "%s.%s", namespaces[k], name + length + 1);
    lua_pushcclosure(L, call_in_namespace, NAME_UPVALUE);
    lua_setfield(L, -2, name + length + 1);
    lua_pop(L, 1);
  }
}

static int call_operation(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r;
  lt_reading_init(&r, (lt_op)lua_tointeger(L, lua_upvalueindex(OP_UPVALUE)));
  r.who = lua_tostring(L, lua_upvalueindex(NAME_UPVALUE));
  r.all_results = lua_toboolean(L, lua_upvalueindex(ALL_UPVALUE));
  lt_read_call(L, b, &r, 1);
  return lt_run_reading(L, b, &r);
}

/* runtime.operation(name, who [, all]) -> the function of an op, which errors call `who`. For Lua
   files of the library that implement a public name with a hidden row: errors then carry the public
   name. With `all` it returns also the results that are for the derivative. */
static int named_operation(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_op op = lt_op_by_name(luaL_checkstring(L, 1));
  luaL_checkstring(L, 2);
  luaL_argcheck(L, op != LT_OP_COUNT, 1, "no operation");
  lua_settop(L, 3);
  lua_pushlightuserdata(L, b);
  lua_pushinteger(L, op);
  lua_pushvalue(L, 2);
  lua_pushboolean(L, lua_toboolean(L, 3));
  lua_pushcclosure(L, call_operation, ALL_UPVALUE);
  return 1;
}

/* runtime.replace_operation(name, fn): scripts' calls of the op go to fn, which reaches the op by
   runtime.operation; nil: to the op again. Of one op at a time. */
static int replace_operation(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_op op = lt_op_by_name(luaL_checkstring(L, 1));
  luaL_argcheck(L, op != LT_OP_COUNT, 1, "no operation");
  bool replaces = !lua_isnoneornil(L, 2);
  if (replaces) luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &b->replaced_op);
  b->replaced_op = replaces ? (int)op : (int)LT_OP_COUNT;
  return 0;
}

/* Lua's operators by PyTorch's semantics: // and % are floor division and the remainder with the
   divisor's sign, as Lua's own are for numbers. Comparisons are missing: Lua turns what __lt
   returns into one boolean (tensor.c raises there). */
static void add_operators(lua_State *L, lt_bind *b) {
  static const struct {
    const char *event;
    lt_op op;
    lua_CFunction fn;
  } rows[] = {
      {"__add", LT_OP_add, call_op},
      {"__sub", LT_OP_sub, call_op},
      {"__mul", LT_OP_mul, call_op},
      {"__div", LT_OP_div, call_op},
      {"__idiv", LT_OP_floor_divide, call_op},
      {"__mod", LT_OP_remainder, call_op},
      {"__pow", LT_OP_pow, call_op},
      {"__unm", LT_OP_neg, call_unary_operator},
      {"__band", LT_OP_bitwise_and, call_op},
      {"__bor", LT_OP_bitwise_or, call_op},
      {"__bxor", LT_OP_bitwise_xor, call_op},
      {"__bnot", LT_OP_bitwise_not, call_unary_operator},
      {"__shl", LT_OP_bitwise_left_shift, call_op},
      {"__shr", LT_OP_bitwise_right_shift, call_op},
  };
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->metatable_ref);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    push_op(L, b, rows[k].fn, (int)rows[k].op);
    lua_setfield(L, -2, rows[k].event);
  }
  lua_pop(L, 1);
}

/* lt.ops(): the rows as tables, for derived specs and docs. */

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void set_flag(lua_State *L, const char *key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

static void push_arguments(lua_State *L, const lt_op_info *op) {
  static const char *const types[] = {"int",    "number", "flag",   "dim",    "dims",
                                      "pos",    "sizes",  "pair",   "each",   "padding",
                                      "scalar", "dtype",  "device", "choice", "rng_key"};
  int n, at = 0;
  const lt_arg *rows = lt_op_args((lt_op)(op - lt_ops), &n);
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    if (rows[k].type == LT_ARG_RNG_KEY) continue;
    lua_createtable(L, 0, 4);
    lua_pushstring(L, rows[k].name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, types[rows[k].type]);
    lua_setfield(L, -2, "type");
    lua_pushboolean(L, rows[k].required);
    lua_setfield(L, -2, "required");
    lua_pushstring(L, rows[k].default_text);
    lua_setfield(L, -2, "default");
    if (rows[k].choices != NULL) {
      lua_pushstring(L, rows[k].choices);
      lua_setfield(L, -2, "choices");
    }
    lua_rawseti(L, -2, ++at);
  }
  if (!lt_takes_dtype(op)) return;
  lua_createtable(L, 0, 4);
  set_string(L, "name", "dtype");
  set_string(L, "type", "dtype");
  set_string(L, "default", "LT_DTYPE_NONE");
  set_flag(L, "required", false);
  lua_rawseti(L, -2, ++at);
}

static void push_inputs(lua_State *L, const char *names) {
  lua_newtable(L);
  for (lua_Integer k = 1; names[0] != 0; k++) {
    size_t length = strcspn(names, " ");
    lua_pushlstring(L, names, length);
    lua_rawseti(L, -2, k);
    names += length + strspn(names + length, " ");
  }
}

/* The order of a call: inputs, then arguments, unless its kind has another. */
static void push_places(lua_State *L, const lt_op_info *op) {
  const char *own = lt_kind_places[op->kind];
  if (op->kind == LT_KIND_binary || op->kind == LT_KIND_compare) own = lt_kinds[op->kind].inputs;
  push_inputs(L, own != NULL ? own : lt_kinds[op->kind].inputs);
  lua_Integer at = (lua_Integer)lua_rawlen(L, -1);
  int n = 0;
  const lt_arg *rows = lt_op_args((lt_op)(op - lt_ops), &n);
  for (int k = 0; own == NULL && k < n; k++) {
    if (rows[k].type == LT_ARG_RNG_KEY) continue;
    lua_pushstring(L, rows[k].name);
    lua_rawseti(L, -2, ++at);
  }
  if (!lt_takes_dtype(op)) return;
  lua_pushliteral(L, "dtype");
  lua_rawseti(L, -2, ++at);
}

static void set_number(lua_State *L, const char *key, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, key);
}

/* What a spec, the documentation and the exporters read about an op: they are derived from these
   tables, never from a second list that could fall behind. */
static void push_row(lua_State *L, const lt_op_info *op) {
  static const char *const rules[] = {"float", "any", "promote", "first", "own", "int"};
  static const char *const casts[] = {"keep", "lower", "f32"};
  const lt_kind_info *kind = &lt_kinds[op->kind];
  lua_createtable(L, 0, 19);
  set_string(L, "name", op->name);
  set_string(L, "kind", kind->name);
  set_string(L, "doc", op->doc);
  set_string(L, "dtype", rules[op->dtype]);
  set_string(L, "cast", casts[op->cast]);
  set_flag(L, "differentiable", op->differentiable);
  set_flag(L, "composite", op->expand != NULL); /* then its parts carry the gradient */
  set_flag(L, "hidden", !is_visible(op) || is_internal(op));
  set_flag(L, "in_place", is_visible(op) && has_in_place_form(op));
  set_flag(L, "method", is_visible(op) && is_method(op));
  set_flag(L, "list", (kind->flags & LT_KIND_LIST) != 0);
  set_flag(L, "view", (kind->flags & LT_KIND_VIEW) != 0);
  set_flag(L, "mutates", (kind->flags & LT_KIND_MUTATES) != 0);
  set_number(L, "lo", op->lo);
  set_number(L, "hi", op->hi);
  lua_pushinteger(L, kind->min_in);
  lua_setfield(L, -2, "min_in");
  lua_pushinteger(L, kind->max_in);
  lua_setfield(L, -2, "max_in");
  lua_pushinteger(L, kind->n_out);
  lua_setfield(L, -2, "n_out");
  lua_pushinteger(L, lt_kind_shown(kind)); /* results that a script gets */
  lua_setfield(L, -2, "n_shown");
  push_inputs(L, kind->inputs);
  lua_setfield(L, -2, "inputs");
  push_arguments(L, op);
  lua_setfield(L, -2, "args");
  push_places(L, op);
  lua_setfield(L, -2, "places");
}

static int list_ops(lua_State *L) {
  lua_createtable(L, LT_OP_COUNT, 0);
  for (int op = 0; op < LT_OP_COUNT; op++) {
    push_row(L, &lt_ops[op]);
    lua_rawseti(L, -2, op + 1);
  }
  return 1;
}

/* The names that stdlib/init.lua leaves out of `lt`: a set. */
static void push_internal(lua_State *L) {
  lua_newtable(L);
  for (int op = 0; op < LT_OP_COUNT; op++) {
    if (!is_internal(&lt_ops[op])) continue;
    lua_pushboolean(L, true);
    lua_setfield(L, -2, lt_ops[op].name);
  }
}

void lt_bind_ops(lua_State *L, lt_bind *b) {
  static const lt_function functions[] = {{"ops", list_ops, 0}, {NULL, NULL, 0}};
  static const luaL_Reg runtime[] = {{"operation", named_operation},
                                     {"replace_operation", replace_operation},
                                     {NULL, NULL}};
  b->replaced_op = LT_OP_COUNT;
  for (int op = 0; op < LT_OP_COUNT; op++)
    if (is_visible(&lt_ops[op]))
      add_op(L, b, op);
    else
      add_to_namespace(L, b, op);
  add_operators(L, b);
  lua_pushvalue(L, 1);
  lt_add_public(L, b, functions);
  lua_getfield(L, -1, "runtime"); /* where stdlib/init.lua adds the operations of stdlib/ops */
  lua_pushvalue(L, 2);
  lua_setfield(L, -2, "methods");
  push_internal(L);
  lua_setfield(L, -2, "internal");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 2);
}
