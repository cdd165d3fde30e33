/* lua/bind/ops/arguments.c: the arguments of an op, read from the Lua stack by its kind's table.

   Order: tensors (or one table of them, for list kinds), then the kind's arguments in the order of
   its table, then one table of options, which may name optional tensors too. A Lua number that
   names a dim is 1-based, everything else is passed as it is.

   All functions of ops share this reader: what an op takes is a row of offsets and types, so that a
   new op needs no code here, and its errors read like those of all others. Names from PyTorch that
   differ (lt_other_name) find their rows too.

   Nothing here owns memory: the tensors of a reading are kept alive by the Lua stack of the call,
   strings by the interpreter. An error is raised by longjmp at any point, hence no C allocation is
   open while arguments are read. */
#include "bind/ops/arguments.h"

#include <string.h>

#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"

static const lt_arg *find_row(const lt_reading *r, const char *name);

/* x:sum{1, keepdim = true}: the name would be dropped without a word. */
static void refuse_options(lua_State *L, lt_bind *b, const lt_reading *r, int index) {
  if (!lua_istable(L, index)) return;
  for (lua_pushnil(L); lt_raw_next(L, index) != 0; lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING && find_row(r, lua_tostring(L, -2)) != NULL)
      lt_raise(L, b, LT_EARG, "%s: a list of dims has the option '%s': give it in a table after it",
               r->who, lua_tostring(L, -2));
}

/* One argument into the C struct of the kind, at the offset of its row. The bit in `is_set` tells
   an argument that was written from one at its default: `full` needs to know, and a second value
   for it is an error. The generator's key is never read: lt_apply draws it. */
static void read_value(lua_State *L, lt_bind *b, lt_reading *r, const lt_arg *a, int index) {
  void *at = r->args + a->offset;
  const char *who = r->who, *name = a->name;
  r->is_set |= 1u << (a - r->rows);
  switch (a->type) {
  case LT_ARG_INT:
    *(int64_t *)at = lt_check_int(L, b, index, who, name);
    break;
  case LT_ARG_NUMBER:
    if (lua_isboolean(L, index))
      lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a number, got %s", who, name,
               lt_shown(L, index));
    *(double *)at = lt_check_scalar(L, b, index, who, name).f;
    break;
  case LT_ARG_FLAG:
    *(bool *)at = lt_check_flag(L, b, index, who, name);
    break;
  case LT_ARG_DIM:
    *(int64_t *)at = lt_check_dim(L, b, index, who, name);
    break;
  case LT_ARG_POS:
    *(int64_t *)at = lt_check_pos(L, b, index, who, name);
    break;
  case LT_ARG_DIMS:
    refuse_options(L, b, r, index);
    *(lt_dims *)at = lt_check_dims(L, b, index, who, name);
    break;
  case LT_ARG_SIZES:
    *(lt_sizes *)at = lt_check_sizes(L, b, index, who, name);
    break;
  case LT_ARG_PAIR:
    *(lt_pair *)at = lt_check_pair(L, b, index, who, name);
    break;
  case LT_ARG_EACH:
  case LT_ARG_PADDING:
    *(lt_sizes *)at = lt_check_each(L, b, index, who, a);
    break;
  case LT_ARG_SCALAR:
    *(lt_scalar *)at = lt_check_scalar(L, b, index, who, name);
    break;
  case LT_ARG_DTYPE:
    *(lt_dtype *)at = lt_check_dtype(L, b, index, who);
    break;
  case LT_ARG_DEVICE:
    *(lt_device *)at = lt_check_device(L, b, index, who);
    break;
  case LT_ARG_CHOICE:
    *(int64_t *)at = lt_check_choice(L, b, index, who, a);
    break;
  case LT_ARG_RNG_KEY: break;
  }
}

/* Positional arguments. */

static bool takes_list(lt_arg_type t) { return t == LT_ARG_DIMS || t == LT_ARG_SIZES; }

/* Numbers from `index` on as one list: x:view(2, -1), x:permute(2, 1). Returns how many: one where
   another list follows, as in x:movedim(1, 3). */
static int read_list(lua_State *L, lt_bind *b, lt_reading *r, const lt_arg *a, int index) {
  int n = 0, top = lua_gettop(L);
  bool last = a + 1 == r->rows + r->n_rows || !takes_list(a[1].type);
  while (index + n <= top && lua_type(L, index + n) == LUA_TNUMBER && (last || n == 0)) n++;
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    lua_pushvalue(L, index + k);
    lua_rawseti(L, -2, k + 1);
  }
  read_value(L, b, r, a, lua_gettop(L));
  lua_pop(L, 1);
  return n;
}

/* Ops with PyTorch's `dtype` option, not an argument of a kind: the binding casts around the call
   (lt_run_reading in ops.c). The switch stands for a column of the rows that all but ten would
   leave empty. */
bool lt_takes_dtype(const lt_op_info *op) {
  switch ((int)(op - lt_ops)) {
    case LT_OP_sum:
    case LT_OP_mean:
    case LT_OP_prod:
    case LT_OP_nansum:
    case LT_OP_nanmean:
    case LT_OP_cumsum:
    case LT_OP_cumprod:
    case LT_OP_softmax:
    case LT_OP_softmin:
    case LT_OP_log_softmax: return true;
    default: return false;
  }
}

/* Whether the value at `index` is the table of options: a last table with names, or an empty one
   where no list is due. The first key decides: a list {2, 3} and options {dim = 1} need no mark of
   their own, and a table with both is an error of whoever reads it (refuse_options,
   read_options). */
static bool is_options(lua_State *L, int index, bool list_due) {
  if (!lua_istable(L, index) || index != lua_gettop(L)) return false;
  lua_pushnil(L);
  if (lt_raw_next(L, index) == 0) return !list_due;
  bool named = lua_type(L, -2) == LUA_TSTRING;
  lua_pop(L, 2);
  return named;
}

/* The row of an argument by its name here, else by PyTorch's name for it. A name of this library
   wins where one op has both. */
static const lt_arg *find_row(const lt_reading *r, const char *name) {
  const lt_arg *other = NULL;
  for (int k = 0; k < r->n_rows; k++) {
    if (r->rows[k].type == LT_ARG_RNG_KEY) continue;
    if (strcmp(r->rows[k].name, name) == 0) return &r->rows[k];
    if (strcmp(r->rows[k].name, lt_other_name(name)) == 0) other = &r->rows[k];
  }
  return other;
}

/* The next name of a list with blanks between, NULL at the end. */
static const char *next_word(const char *at, size_t *length) {
  at += strspn(at, " ");
  *length = strcspn(at, " ");
  return *length > 0 ? at : NULL;
}

/* The place of the input `name`, -1: none is called so. */
static int find_input(const lt_reading *r, const char *name) {
  const char *at = r->kind->inputs;
  size_t length;
  for (int k = 0; k < r->kind->max_in && (at = next_word(at, &length)) != NULL; at += length, k++)
    if (strlen(name) == length && memcmp(at, name, length) == 0) return k;
  return -1;
}

/* Input k, with absent ones (NULL, and no number) for the places before it, which were not
   named. */
static void set_input(lt_reading *r, int k, lt_tensor *t) {
  while (r->n_in <= k) {
    r->number[r->n_in].kind = LT_NO_SCALAR;
    r->in[r->n_in++] = NULL;
  }
  r->in[k] = t;
}

/* Whether `name` is an optional input, which the value on top of the stack then becomes. */
static bool read_input(lua_State *L, lt_bind *b, lt_reading *r, const char *name) {
  int k = find_input(r, name);
  if (k < r->kind->min_in) return false;
  if (k < r->n_in && r->in[k] != NULL)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' is given twice", r->who, name);
  lt_tensor *t = lt_to_tensor(L, b, -1);
  if (t == NULL)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a tensor, got %s", r->who, name,
             lt_shown(L, lua_gettop(L)));
  set_input(r, k, t);
  return true;
}

/* Push the list of the options and optional inputs of `r`; `own`: not a form as ones_like, which
   has its sizes. */
static void push_option_names(lua_State *L, const lt_reading *r, bool own) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (int k = 0; k < r->n_rows; k++) {
    lt_arg_type type = r->rows[k].type;
    if (type == LT_ARG_RNG_KEY || (type == LT_ARG_SIZES && !own)) continue;
    lua_pushstring(L, r->rows[k].name);
    lua_rawseti(L, -2, ++n);
  }
  const char *at = r->kind->inputs;
  size_t length;
  for (int k = 0; k < r->kind->max_in && (at = next_word(at, &length)) != NULL; at += length, k++) {
    if (k < r->kind->min_in) continue;
    lua_pushlstring(L, at, length);
    lua_rawseti(L, -2, ++n);
  }
  const char *const others[] = {r->with_requires_grad ? "requires_grad" : NULL,
                                lt_takes_dtype(r->op) ? "dtype" : NULL};
  for (int k = 0; k < 2; k++) {
    if (others[k] == NULL) continue;
    lua_pushstring(L, others[k]);
    lua_rawseti(L, -2, ++n);
  }
}

/* Raise with the option that was meant, or those that there are. */
_Noreturn static void unknown_option(lua_State *L, lt_bind *b, const lt_reading *r,
                                     const char *name) {
  luaL_checkstack(L, 12, "ltrain");
  bool own = strcmp(r->who, r->op->name) == 0;
  push_option_names(L, r, own);
  const char *hint = lt_push_hint(L, "did_you_mean", name, NULL);
  if (hint[0] != 0) lt_raise(L, b, LT_EARG, "%s: unknown option '%s'%s", r->who, name, hint);
  lua_pushliteral(L, "");
  for (int k = 0; k < r->n_rows && own; k++) {
    if (r->rows[k].type == LT_ARG_RNG_KEY) continue;
    const char *before = lua_tostring(L, -1);
    lua_pushfstring(L, "%s%s%s", before, *before != 0 ? ", " : "; there is: ", r->rows[k].name);
    lua_remove(L, -2);
  }
  lt_raise(L, b, LT_EARG, "%s: unknown option '%s'%s", r->who, name, lua_tostring(L, -1));
}

/* The table of options: arguments by name, `requires_grad` of makers, `dtype`, optional inputs.
   lt_raw_next goes around metamethods: options are data. */
static void read_options(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  for (lua_pushnil(L); lt_raw_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      lt_raise(L, b, LT_EARG, "%s: the table of options contains a value without a name", r->who);
    const char *name = lua_tostring(L, -2);
    const lt_arg *a = find_row(r, name);
    if (a == NULL && r->with_requires_grad && strcmp(name, "requires_grad") == 0) {
      r->requires_grad = lt_check_flag(L, b, lua_gettop(L), r->who, name);
      continue;
    }
    if (a == NULL && lt_takes_dtype(r->op) && strcmp(name, "dtype") == 0) {
      r->dtype = lt_check_dtype(L, b, lua_gettop(L), r->who);
      continue;
    }
    if (a == NULL && read_input(L, b, r, name)) continue;
    if (a == NULL) unknown_option(L, b, r, name);
    if ((r->is_set >> (a - r->rows) & 1) != 0)
      lt_raise(L, b, LT_EARG, "%s: argument '%s' is given twice", r->who, name);
    read_value(L, b, r, a, lua_gettop(L));
  }
}

/* "; it is topk(x, k, dim)": what there is to give, in order; "" of one that makes a tensor. */
static const char *usage(lua_State *L, const lt_reading *r) {
  if (r->kind->min_in == 0) return "";
  int top = lua_gettop(L), k = 0;
  const char *places = lt_kind_places[r->op->kind], *before = "";
  if (r->op->kind == LT_KIND_binary || r->op->kind == LT_KIND_compare) places = r->kind->inputs;
  const char *at = places != NULL ? places : r->kind->inputs;
  size_t length;
  luaL_checkstack(L, 2 * LT_FINITE_IN + 2 * r->n_rows + 8, "ltrain");
  lua_pushfstring(L, "; it is %s(", r->who);
  for (; (places != NULL || k < r->kind->min_in) && (at = next_word(at, &length)) != NULL; k++) {
    lua_pushstring(L, before);
    lua_pushlstring(L, at, length);
    at += length;
    before = ", ";
  }
  for (k = 0; places == NULL && k < r->n_rows; k++)
    if (r->rows[k].type != LT_ARG_RNG_KEY) lua_pushfstring(L, ", %s", r->rows[k].name);
  lua_pushliteral(L, ")");
  lua_concat(L, lua_gettop(L) - top);
  return lua_tostring(L, -1);
}

static void check_required(lua_State *L, lt_bind *b, const lt_reading *r) {
  for (int k = 0; k < r->n_rows; k++)
    if (r->rows[k].required && (r->is_set >> k & 1) == 0)
      lt_raise(L, b, LT_EARG, "%s: argument '%s' is missing%s", r->who, r->rows[k].name,
               usage(L, r));
}

/* A nil may stand for an argument that is given by name, not for one that is needed. */
static void refuse_nil(lua_State *L, lt_bind *b, const lt_reading *r) {
  for (int k = 0; k < r->n_rows; k++)
    if (r->rows[k].required && (r->is_set >> k & 1) == 0)
      lt_raise(L, b, LT_EARG, "%s: argument '%s' is nil%s", r->who, r->rows[k].name, usage(L, r));
}

_Noreturn static void too_many(lua_State *L, lt_bind *b, const lt_reading *r, int index) {
  refuse_nil(L, b, r);
  lt_raise(L, b, LT_EARG, "%s: one argument too many: %s%s", r->who, lt_shown(L, index),
           usage(L, r));
}

/* Tensors come before arguments. */
static void check_order(lua_State *L, lt_bind *b, const lt_reading *r, const lt_arg *a, int index) {
  bool is_count = a->type == LT_ARG_INT || a->type == LT_ARG_DIM || a->type == LT_ARG_DIMS ||
                  a->type == LT_ARG_POS || a->type == LT_ARG_SIZES;
  if (!is_count || lt_to_tensor(L, b, index) == NULL) return;
  lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a number, got a tensor%s", r->who, a->name,
           usage(L, r));
}

/* Positional arguments from `index` on, then options. Each value takes the next row that is not
   set; nil skips a row, a run of numbers fills a list. What is left over is an error with the
   usage, since Lua itself ignores arguments that a function does not name, and a misplaced one
   would change results silently. */
void lt_read_arguments(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  int top = lua_gettop(L), row = 0;
  luaL_checkstack(L, 8, "ltrain");
  while (index <= top) {
    while (row < r->n_rows && (r->rows[row].type == LT_ARG_RNG_KEY || (r->is_set >> row & 1) != 0))
      row++;
    bool list_due = row < r->n_rows && takes_list(r->rows[row].type);
    if (is_options(L, index, list_due)) {
      read_options(L, b, r, index);
      break;
    }
    if (row >= r->n_rows) {
      bool is_dtype = r->dtype == LT_DTYPE_NONE && lt_takes_dtype(r->op) &&
                      lua_type(L, index) == LUA_TSTRING;
      if (is_dtype) r->dtype = lt_check_dtype(L, b, index, r->who);
      if (!is_dtype && !lua_isnil(L, index)) too_many(L, b, r, index);
      if (r->n_rows == 1 && takes_list(r->rows[0].type) && !r->with_requires_grad)
        lt_raise(L, b, LT_EARG, "%s: argument '%s' contains nil%s", r->who, r->rows[0].name,
                 usage(L, r));
      index++;
    } else if (lua_isnil(L, index)) {
      index++, row++;
    } else if (list_due && lua_type(L, index) == LUA_TNUMBER) {
      index += read_list(L, b, r, &r->rows[row++], index);
    } else {
      check_order(L, b, r, &r->rows[row], index);
      read_value(L, b, r, &r->rows[row++], index++);
    }
  }
  check_required(L, b, r);
}

/* Tensors. */

static void check_open(lua_State *L, lt_bind *b, const lt_reading *r, int index) {
  if (lua_type(L, index) == LUA_TUSERDATA) lt_check_tensor(L, b, index, r->who);
}

/* Two operands, one of which may be a number. The other operand stays a number in the arguments and
   becomes no tensor: kernels take it as a constant, and the result has the tensor's dtype (a number
   decides by its category only, as in PyTorch's type promotion). */
static void read_operands(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  lt_args_binary *args = (lt_args_binary *)r->args;
  lt_tensor *x = lt_to_tensor(L, b, index), *y = lt_to_tensor(L, b, index + 1);
  if (lua_gettop(L) > index + 1) too_many(L, b, r, index + 2);
  if (x != NULL && y != NULL) {
    r->in[0] = x, r->in[1] = y, r->n_in = 2;
    return;
  }
  int other = x != NULL ? index + 1 : index;
  check_open(L, b, r, index);
  check_open(L, b, r, index + 1);
  lt_scalar s = lt_to_scalar(L, other);
  if ((x == NULL && y == NULL) || s.kind == LT_NO_SCALAR)
    lt_raise(L, b, LT_EARG, "%s: operands must be tensors or numbers, got %s and %s", r->who,
             x != NULL                ? "a tensor"
             : lua_type(L, index) < 0 ? "nothing"
                                      : lt_shown(L, index),
             y != NULL                    ? "a tensor"
             : lua_type(L, index + 1) < 0 ? "nothing"
                                          : lt_shown(L, index + 1));
  r->in[0] = x != NULL ? x : y;
  r->n_in = 1;
  if (x != NULL)
    args->b = s;
  else
    args->a = s;
}

/* A table of tensors (cat, stack, steps of optimizers). Lists longer than the reading's own array
   get a userdata, which Lua frees even if a later argument raises. */
static int read_tensor_list(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  if (!lua_istable(L, index))
    lt_raise(L, b, LT_EARG, "%s: needs a table of tensors, got %s", r->who,
             lua_type(L, index) < 0 ? "nothing" : lt_shown(L, index));
  lua_Integer n = lt_length(L, index);
  if (n > INT32_MAX / 16) lt_raise(L, b, LT_EARG, "%s: too many tensors", r->who);
  r->n_in = (int)n;
  if (n > LT_FINITE_IN) {
    r->in = lua_newuserdatauv(L, (size_t)n * sizeof *r->in, 0);
    lua_insert(L, index++); /* stays below the arguments while they are read */
  }
  for (int k = 0; k < r->n_in; k++) {
    lua_geti(L, index, k + 1);
    r->in[k] = lt_to_tensor(L, b, -1);
    if (r->in[k] == NULL)
      lt_raise(L, b, LT_EARG, "%s: element %d of the list must be a tensor, got %s", r->who, k + 1,
               lt_shown(L, -1));
    lua_pop(L, 1);
  }
  return index + 1;
}

/* One required input that is not a tensor: a number stands for a tensor of no dims. */
static void read_number(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  lt_scalar s = lt_to_scalar(L, index);
  if (s.kind == LT_NO_SCALAR || r->n_in == 0) lt_check_tensor(L, b, index, r->who);
  r->in[r->n_in] = NULL;
  r->number[r->n_in++] = s;
  r->numbers = true;
}

/* Inputs by position, until a value is neither a tensor nor nil nor, for a required one, a number.
   Trailing nils are not counted as inputs: `wanted` is the last place that something stands in. */
static int read_tensors(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  const lt_kind_info *kind = r->kind;
  int top = lua_gettop(L), wanted = 0;
  while (r->n_in < kind->max_in && (index <= top || r->n_in < kind->min_in)) {
    lt_tensor *t = lt_to_tensor(L, b, index);
    r->number[r->n_in].kind = LT_NO_SCALAR;
    if (t != NULL) {
      r->in[r->n_in++] = t;
      wanted = r->n_in;
    } else if (r->n_in < kind->min_in) {
      read_number(L, b, r, index);
      wanted = r->n_in;
    } else if (lua_isnil(L, index)) {
      r->in[r->n_in++] = NULL;
    } else {
      break;
    }
    index++;
  }
  r->n_in = wanted;
  return index;
}

/* Kinds with an order of their own (LT_PLACES of kinds.def). */

/* A tensor where an argument is due: x:gather(index, {dim = 1}) names it, other calls have the
   order wrong. */
static void check_named_later(lua_State *L, lt_bind *b, const lt_reading *r, const char *name) {
  if (is_options(L, lua_gettop(L), false)) return;
  lt_raise(L, b, LT_EARG, "%s: the %s comes before the %s%s", r->who, name,
           strcmp(name, "dim") == 0 ? "index" : "tensors", usage(L, r));
}

/* The value at `index` as the input of place k. */
static void read_input_at(lua_State *L, lt_bind *b, lt_reading *r, int k, const char *name,
                          int index) {
  lt_tensor *t = lt_to_tensor(L, b, index);
  set_input(r, k, t);
  if (t != NULL || (lua_isnil(L, index) && k >= r->kind->min_in)) return;
  if (k >= r->kind->min_in)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a tensor, got %s%s", r->who, name,
             lt_shown(L, index), usage(L, r));
  r->n_in = k;
  read_number(L, b, r, index);
}

/* What the value at `index` should be in place of what it is; NULL: it may be right. */
static const char *wanted_instead(lua_State *L, lt_bind *b, const lt_arg *a, int index) {
  lt_tensor *t = lt_to_tensor(L, b, index);
  int type = lua_type(L, index);
  switch ((int)a->type) {
    case LT_ARG_INT:
    case LT_ARG_NUMBER:
      return type == LUA_TNUMBER || (t != NULL && t->numel == 1) ? NULL : "a number";
    case LT_ARG_FLAG: return type == LUA_TBOOLEAN ? NULL : "true or false";
    case LT_ARG_CHOICE: return type == LUA_TSTRING ? NULL : "a name";
    default: return NULL;
  }
}

/* The value at `index` as the argument `a`; returns how many values it took, 0: it goes by name. */
static int read_argument_at(lua_State *L, lt_bind *b, lt_reading *r, const lt_arg *a, int index) {
  if (lua_isnil(L, index)) return 1;
  if (a->required && lt_to_tensor(L, b, index) != NULL) {
    check_named_later(L, b, r, a->name);
    return 0;
  }
  if (takes_list(a->type) && lua_type(L, index) == LUA_TNUMBER)
    return read_list(L, b, r, a, index);
  const char *wanted = wanted_instead(L, b, a, index);
  if (wanted != NULL)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be %s, got %s%s", r->who, a->name, wanted,
             lt_shown(L, index), usage(L, r));
  read_value(L, b, r, a, index);
  return 1;
}

/* Kinds whose positional order mixes inputs and arguments, as PyTorch's gather(x, dim, index): the
   words of LT_PLACES are the order, and each names either an input or an argument. */
static void read_places(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  const char *at = lt_kind_places[r->op->kind];
  int top = lua_gettop(L);
  size_t length;
  luaL_checkstack(L, 16, "ltrain");
  for (; index <= top && (at = next_word(at, &length)) != NULL; at += length) {
    char name[32] = "";
    memcpy(name, at, length < sizeof name ? length : sizeof name - 1);
    int k = find_input(r, name);
    const lt_arg *a = k < 0 ? find_row(r, name) : NULL;
    if (is_options(L, index, a != NULL && takes_list(a->type))) break;
    if (a != NULL)
      index += read_argument_at(L, b, r, a, index);
    else
      read_input_at(L, b, r, k, name, index++);
  }
  for (int k = 0; k < r->kind->min_in; k++)
    if (k >= r->n_in || (r->in[k] == NULL && r->number[k].kind == LT_NO_SCALAR))
      lt_check_tensor(L, b, index, r->who);
  if (index <= top && is_options(L, index, false)) read_options(L, b, r, index++);
  if (index <= top && !lua_isnil(L, index)) too_many(L, b, r, index);
  check_required(L, b, r);
}

/* torch.embedding(weight, ids) is torch.nn.functional.embedding(ids, weight): either order. They
   cannot be confused: ids are integers and the weight is floating. */
static void weight_first(lt_reading *r) {
  lt_tensor *a = r->in[0], *b = r->in[1];
  if (r->n_in < 2 || a == NULL || b == NULL || lt_dtype_is_float((lt_dtype)a->dtype) ||
      !lt_dtype_is_float((lt_dtype)b->dtype))
    return;
  r->in[0] = b, r->in[1] = a;
}

/* The entry for ops with inputs: picks the form of the op (variants.c), then the reader for its
   kind. Pairs of operands, places and lists have their own; all others take tensors first. */
void lt_read_call(lua_State *L, lt_bind *b, lt_reading *r, int index) {
  lt_choose_variant(L, b, r, index);
  if (r->op->kind == LT_KIND_binary || r->op->kind == LT_KIND_compare ||
      r->op->kind == LT_KIND_trunc_divide) {
    read_operands(L, b, r, index);
    return;
  }
  if (lt_kind_places[r->op->kind] != NULL) {
    read_places(L, b, r, index);
    return;
  }
  if ((r->kind->flags & LT_KIND_LIST) != 0) {
    index = read_tensor_list(L, b, r, index);
  } else {
    index = read_tensors(L, b, r, index);
    if (r->op->kind == LT_KIND_embedding) weight_first(r);
  }
  if (r->n_rows > 0 || lua_gettop(L) >= index) lt_read_arguments(L, b, r, index);
}

/* Beside tensors a number has no say but its category; as an index or a count it has its own. */
static lt_dtype dtype_of_number(const lt_reading *r, int k) {
  switch ((int)r->op->kind) {
    case LT_KIND_where:
      return lt_result_type(r->in + 1, r->n_in - 1, r->number[k], LT_NONE_SCALAR);
    case LT_KIND_lerp:
    case LT_KIND_quantile:
    case LT_KIND_scatter: return lt_result_type(r->in, 1, r->number[k], LT_NONE_SCALAR);
    default: return LT_DTYPE_NONE;
  }
}

/* Numbers given in place of tensors become tensors without dims, on the device of the first input:
   it always is a tensor (read_number refuses a number there). This runs inside the call's frame,
   which owns them. */
void lt_make_numbers(lt_ctx *c, lt_reading *r) {
  if (!r->numbers) return;
  for (int k = 0; k < r->n_in; k++)
    if (r->in[k] == NULL && r->number[k].kind != LT_NO_SCALAR)
      r->in[k] = lt_full(c, (lt_shape){0}, r->number[k], dtype_of_number(r, k),
                         r->in[0]->storage->device);
}

void *lt_argument(lt_reading *r, const char *name, bool *is_set) {
  const lt_arg *a = find_row(r, name);
  if (a == NULL) return NULL;
  if (is_set != NULL) *is_set = (r->is_set >> (a - r->rows) & 1) != 0;
  return r->args + a->offset;
}

void lt_mark_present(lt_reading *r, const char *name) {
  const lt_arg *a = find_row(r, name);
  if (a != NULL) r->is_set |= 1u << (a - r->rows);
}
