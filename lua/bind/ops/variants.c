/* lua/bind/ops/variants.c: selects the operation for a call: the named one, or a variant that its
   arguments require.

   As in PyTorch, x:max(y) is maximum, x:clamp(low, high) takes tensors, and options name a variant:
   x:div(y, {rounding_mode = "floor"}), x:gelu{approximate = "tanh"}. */
#include <string.h>

#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"
#include "bind/ops/arguments.h"

void lt_reading_init(lt_reading *r, lt_op op) {
  r->op = &lt_ops[op];
  r->who = r->op->name;
  r->kind = &lt_kinds[r->op->kind];
  r->rows = lt_op_args(op, &r->n_rows);
  r->is_set = 0;
  r->n_in = 0;
  r->in = r->few;
  r->numbers = false;
  r->with_requires_grad = r->requires_grad = r->all_results = false;
  r->dtype = LT_DTYPE_NONE;
  lt_op_defaults(op, r->args);
}

/* Another op does what this call asks for; errors call it as before. */
static void change_op(lt_reading *r, lt_op op) {
  const char *who = r->who;
  lt_reading_init(r, op);
  r->who = who;
}

/* Whether there is a tensor among the arguments from `index` on or among the options. */
static bool has_tensor(lua_State *L, lt_bind *b, int index) {
  bool found = false;
  for (int top = lua_gettop(L); index <= top && !found; index++) {
    found = lt_to_tensor(L, b, index) != NULL;
    if (found || !lua_istable(L, index)) continue;
    for (lua_pushnil(L); lt_raw_next(L, index) != 0; lua_pop(L, 1))
      found = found || lt_to_tensor(L, b, -1) != NULL;
  }
  return found;
}

/* The choice of the only option, in a last table at `index`, which is taken away; -1: there is no
   such option, and a table stays only if it has another, for whoever reads it to refuse. */
static int64_t take_choice(lua_State *L, lt_bind *b, const lt_reading *r, const lt_arg *a,
                           int index) {
  int64_t choice = -1;
  if (lua_gettop(L) != index || !lua_istable(L, index)) return -1;
  lua_pushnil(L);
  if (lt_raw_next(L, index) == 0) {
    lua_settop(L, index - 1);
    return -1;
  }
  if (lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), a->name) == 0)
    choice = lt_check_choice(L, b, lua_gettop(L), r->who, a);
  lua_settop(L, choice < 0 ? index : index - 1);
  return choice;
}

static void choose_gelu(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  static const lt_arg way = {.name = "approximate", .choices = "none|tanh"};
  bool by_place = lua_gettop(L) == index && lua_type(L, index) == LUA_TSTRING &&
                  strcmp(lua_tostring(L, index), "tanh") == 0;
  if (by_place) lua_settop(L, index - 1);
  if (by_place || take_choice(L, b, r, &way, index) == 1) change_op(r, LT_OP_gelu_tanh);
}

static void choose_division(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  static const lt_arg mode = {.name = "rounding_mode", .choices = "floor|trunc"};
  int64_t way = take_choice(L, b, r, &mode, index);
  if (way < 0 && lua_gettop(L) == index && lua_istable(L, index))
    lt_raise(L, b, LT_EARG, "%s: unknown option; there is rounding_mode", r->who);
  if (way >= 0) change_op(r, way == 0 ? LT_OP_floor_divide : LT_OP_trunc_divide);
}

void lt_choose_variant(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  switch ((int)(r->op - lt_ops)) {
    case LT_OP_clamp:
      if (has_tensor(L, b, index + 1)) change_op(r, LT_OP_clamp_tensor);
      break;
    case LT_OP_masked_fill:
      if (has_tensor(L, b, index + 2)) change_op(r, LT_OP_masked_fill_tensor);
      break;
    case LT_OP_max:
      if (lt_to_tensor(L, b, index + 1) != NULL) change_op(r, LT_OP_maximum);
      break;
    case LT_OP_min:
      if (lt_to_tensor(L, b, index + 1) != NULL) change_op(r, LT_OP_minimum);
      break;
    case LT_OP_gelu: choose_gelu(L, b, r, index + 1); break;
    case LT_OP_div: choose_division(L, b, r, index + 2); break;
    default: break;
  }
}
