/* lua/bind/ops/create.c: making tensors: from numbers, nested tables, bytes, shapes.

   Makers that are op rows without inputs (rand, randn, ...) come from ops.c by themselves; their
   `_like` forms are here.

   What comes from numbers of Lua's (tensor, arange) is first made on the CPU in the widest type of
   its kind (f64, i64, bool) and then cast and moved: one conversion, rounded once, with the same
   rules as x:to. */
#include <math.h>
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"
#include "bind/ops/arguments.h"
#include "device/graph.h"

/* The options of lt.tensor and arange: dtype, device, requires_grad. */
typedef struct options {
  lt_dtype dtype;
  lt_device device;
  bool requires_grad;
} options;

/* From `index` on. By position; the binding's wrapper (lt_add_formed) has put named options into
   their places before. */
static options read_options(lua_State *L, lt_bind *b, int index, const char *who) {
  options o = {.dtype = LT_DTYPE_NONE, .device = lt_device_default(b->c)};
  if (!lua_isnoneornil(L, index)) o.dtype = lt_check_dtype(L, b, index, who);
  if (!lua_isnoneornil(L, index + 1)) o.device = lt_check_device(L, b, index + 1, who);
  if (!lua_isnoneornil(L, index + 2))
    o.requires_grad = lt_check_flag(L, b, index + 2, who, "requires_grad");
  return o;
}

/* End the call that made `t` (NULL: it failed), which is cast and moved as the options say. Without
   a dtype, floats become f32, PyTorch's default; integers stay i64, as torch.tensor({1, 2})
   does. */
static int end_staged(lua_State *L, lt_bind *b, lt_frame frame, lt_tensor *t, options o) {
  lt_ctx *c = b->c;
  if (o.dtype == LT_DTYPE_NONE && t != NULL)
    o.dtype = t->dtype == LT_F64 ? LT_F32 : (lt_dtype)t->dtype;
  lt_graph *captures = lt_graph_captures(c);
  if (captures != NULL) captures->takes_constants = true;
  if (t != NULL) t = lt_to_device(c, lt_cast(c, t, o.dtype), o.device);
  if (captures != NULL) captures->takes_constants = false;
  if (t != NULL && o.requires_grad) {
    if (lt_dtype_is_float(o.dtype))
      t->flags |= LT_REQUIRES_GRAD;
    else
      lt_fail(c, LT_EDTYPE, "requires_grad: only floating tensors have gradients, this is %s",
              lt_dtype_name(o.dtype));
  }
  return lt_end(L, b, frame, 1, &t);
}

/* A tensor of `staged` type from host memory. The bytes are copied: `data` may be a userdata or a
   string of Lua's, which the collector frees. */
static int push_staged(lua_State *L, lt_bind *b, const void *data, lt_dtype staged, lt_shape shape,
                       options o) {
  lt_collect_if_due(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_tensor_empty(b->c, LT_CPU_DEVICE, staged, shape.ndim, shape.size);
  if (t != NULL) lt_tensor_write(b->c, t, data);
  return end_staged(L, b, frame, t, o);
}

/* lt.tensor: a nested table is walked twice, first for its shape and the kind of its numbers. Two
   walks rather than a growing buffer: the first one finds faults (ragged tables, values that are
   not numbers) before anything is allocated, and the exact size. Tables are read raw; a metatable's
   __index does not run between the walks, which therefore see the same values. */
typedef struct nested {
  lt_bind *b;
  lt_shape shape;
  int64_t at[LT_MAX_DIMS]; /* 1-based position of the walk */
  lt_scalar_kind kind;     /* the highest met so far */
  bool measured;           /* a first leaf was met: the number of dims is known */
  double *floats;          /* second walk: where elements go, by kind */
  int64_t *ints;
  uint8_t *bools;
  int64_t n;
} nested;

/* "[2][1]" */
static const char *place(lua_State *L, const nested *w, int depth) {
  lua_pushliteral(L, "");
  for (int k = 0; k < depth; k++) {
    lua_pushfstring(L, "[%I]", (LUAI_UACINT)w->at[k]);
    lua_concat(L, 2);
  }
  return lua_tostring(L, -1);
}

static void walk(lua_State *L, nested *w, int depth);

/* The first path down to a leaf fixes the number of dims and their sizes; every later table is
   compared with them, and an error names the place as the script would index it. */
static void walk_table(lua_State *L, nested *w, int depth) {
  int64_t n = (int64_t)lua_rawlen(L, -1);
  if (depth == LT_MAX_DIMS)
    lt_raise(L, w->b, LT_ESHAPE, "tensor: tables nested deeper than %d", LT_MAX_DIMS);
  bool first = !w->measured && depth == w->shape.ndim;
  if (first) {
    w->shape.size[w->shape.ndim++] = n;
  } else if (depth >= w->shape.ndim) {
    lt_raise(L, w->b, LT_ESHAPE, "tensor: ragged table: %s is a table, a number is expected",
             place(L, w, depth));
  } else if (w->shape.size[depth] != n) {
    lt_raise(L, w->b, LT_ESHAPE, "tensor: ragged table: %s has %lld elements, its neighbours %lld",
             depth > 0 ? place(L, w, depth) : "it", (long long)n, (long long)w->shape.size[depth]);
  }
  if (n == 0) {
    w->measured = true;
    lua_pushnil(L);
    if (lt_raw_next(L, -2) != 0)
      lt_raise(L, w->b, LT_EARG,
               "tensor: %s has no element 1, but other keys: only lists become tensors",
               depth > 0 ? place(L, w, depth) : "the table");
  }
  luaL_checkstack(L, 6, "tensor");
  for (int64_t k = 1; k <= n; k++) {
    w->at[depth] = k;
    lt_raw_geti(L, -1, k);
    walk(L, w, depth + 1);
    lua_pop(L, 1);
  }
}

/* A leaf: a number or boolean. `kind` rises from bool to integer to float over all leaves, so that
   {1, 2.5} is floating and {true, 1} an integer tensor. */
static void walk(lua_State *L, nested *w, int depth) {
  if (lua_istable(L, -1)) {
    walk_table(L, w, depth);
    return;
  }
  lt_scalar s = lt_to_scalar(L, -1);
  if (s.kind == LT_NO_SCALAR && lt_to_tensor(L, w->b, -1) != NULL)
    lt_raise(L, w->b, LT_EARG, "tensor: %s is a tensor: join tensors with lt.stack or lt.cat",
             place(L, w, depth));
  if (s.kind == LT_NO_SCALAR)
    lt_raise(L, w->b, LT_EARG, "tensor: %s must be a number, got %s",
             depth > 0 ? place(L, w, depth) : "argument 1", lt_shown(L, -1));
  if (w->measured && depth != w->shape.ndim)
    lt_raise(L, w->b, LT_ESHAPE, "tensor: ragged table: %s is a number, a table is expected",
             place(L, w, depth));
  w->measured = true;
  if (s.kind > w->kind) w->kind = s.kind;
  if (w->floats != NULL)
    w->floats[w->n] = s.f;
  else if (w->ints != NULL)
    w->ints[w->n] = s.i;
  else if (w->bools != NULL)
    w->bools[w->n] = s.i != 0;
  w->n++;
}

/* A copy of a tensor, without history; on its own device, unless another one `is_moved` to. */
static int copy_tensor(lua_State *L, lt_bind *b, lt_tensor *x, bool is_moved, options o) {
  lt_ctx *c = b->c;
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_apply1(c, LT_OP_clone, LT_IN(lt_detach(c, x)), NULL);
  if (o.dtype != LT_DTYPE_NONE) t = lt_cast(c, t, o.dtype);
  if (is_moved) t = lt_to_device(c, t, o.device);
  if (t != NULL && o.requires_grad) t->flags |= LT_REQUIRES_GRAD;
  return lt_end(L, b, frame, 1, &t);
}

/* lt.tensor(number | boolean | nested table | tensor [, dtype, device, requires_grad]). A tensor as
   the argument is copied without history, on its own device unless `device` is there. Memory for
   the elements is a userdata: Lua frees it if the second walk raises. */
static int make_tensor(lua_State *L) {
  lt_bind *b = lt_enter(L);
  options o = read_options(L, b, 2, "tensor");
  lt_tensor *x = lt_to_tensor(L, b, 1);
  if (x != NULL) return copy_tensor(L, b, x, !lua_isnoneornil(L, 3), o);
  lua_settop(L, 2);
  nested w = {.b = b};
  lua_pushvalue(L, 1);
  walk(L, &w, 0);
  if (w.kind == LT_NO_SCALAR) w.kind = LT_SCALAR_FLOAT;
  static const lt_dtype staged[] = {LT_F64, LT_BOOL, LT_I64, LT_F64};
  lt_dtype dtype = staged[w.kind];
  void *data = lua_newuserdatauv(L, (size_t)w.n * lt_dtype_size(dtype) + 1, 0);
  if (dtype == LT_F64)
    w.floats = data;
  else if (dtype == LT_I64)
    w.ints = data;
  else
    w.bools = data;
  w.n = 0;
  lua_pushvalue(L, 1);
  walk(L, &w, 0);
  return push_staged(L, b, data, dtype, w.shape, o);
}

/* zeros, ones, full, empty: upvalue 2 is the name. One function for four names: `empty` has its own
   row, the others are `full` with a value. zeros takes no value and full needs one: the row allows
   both. */
static int make_filled(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *name = lua_tostring(L, lua_upvalueindex(2));
  lt_reading r;
  lt_reading_init(&r, strcmp(name, "empty") == 0 ? LT_OP_empty : LT_OP_full);
  r.who = name;
  r.with_requires_grad = true;
  lt_args_create *args = (lt_args_create *)r.args;
  bool is_set;
  int last = lua_gettop(L);
  if (last > 1 && lua_type(L, last) == LUA_TSTRING) /* PyTorch's dtype by position */
    lt_raise(L, b, LT_EARG, "%s: options must be a table, {dtype = 'f64'}: got %s", name,
             lt_shown(L, last));
  lt_read_arguments(L, b, &r, 1);
  for (int k = 0; k < args->size.n; k++)
    if (args->size.size[k] < 0)
      lt_raise(L, b, LT_ESHAPE, "%s: impossible shape %s (sizes are at least 0)", name,
               LT_SHAPE_STR(lt_shape_of(args->size.n, args->size.size)));
  lt_argument(&r, "fill_value", &is_set);
  if (strcmp(name, "full") == 0) {
    if (!is_set)
      lt_raise(L, b, LT_EARG, "full: argument 'fill_value' is missing: write lt.full({2, 3}, "
               "fill_value)");
  } else if (is_set) {
    lt_raise(L, b, LT_EARG, "%s: takes no value", name);
  } else {
    args->fill_value = lt_scalar_of(name[0] == 'o' ? 1 : 0);
  }
  return lt_run_reading(L, b, &r);
}

/* Without `low` it is 0: lt.randint(5, {2, 3}), lt.randint_like(x, 5), `high` at `index`. */
static void insert_low(lua_State *L, int index) {
  bool named = false;
  if (lua_type(L, index) != LUA_TNUMBER || lua_type(L, index + 1) == LUA_TNUMBER) return;
  if (lua_istable(L, index + 1)) {
    lua_getfield(L, index + 1, "high");
    named = !lua_isnil(L, -1);
    lua_pop(L, 1);
  }
  if (named) return;
  lua_pushinteger(L, 0);
  lua_insert(L, index);
}

static int make_randint(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r;
  lt_reading_init(&r, LT_OP_randint);
  r.with_requires_grad = true;
  if (lua_gettop(L) > 1) insert_low(L, 1);
  lt_read_arguments(L, b, &r, 1);
  return lt_run_reading(L, b, &r);
}

/* x:zeros_like([options]) and so on. Upvalues: binding, op, name, value or nil. The size comes from
   x, `dtype` and `device` too unless they were written; the value of zeros_like and ones_like is
   the fourth upvalue. */
static int make_like(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *name = lua_tostring(L, lua_upvalueindex(3));
  lt_reading r;
  lt_reading_init(&r, (lt_op)lua_tointeger(L, lua_upvalueindex(2)));
  r.who = name;
  r.with_requires_grad = true;
  const lt_tensor *x = lt_check_tensor(L, b, 1, name);
  lt_sizes *size = lt_argument(&r, "size", NULL);
  size->n = x->ndim;
  memcpy(size->size, x->size, sizeof size->size);
  lt_mark_present(&r, "size");
  lt_scalar *value = lt_argument(&r, "fill_value", NULL);
  if (!lua_isnil(L, lua_upvalueindex(4)) && value != NULL) {
    *value = lt_to_scalar(L, lua_upvalueindex(4));
    lt_mark_present(&r, "fill_value");
  }
  if (r.op == &lt_ops[LT_OP_randint]) insert_low(L, 2);
  lt_read_arguments(L, b, &r, 2);
  bool is_set;
  lt_dtype *dtype = lt_argument(&r, "dtype", &is_set);
  if (dtype != NULL && !is_set) *dtype = (lt_dtype)x->dtype;
  lt_device *device = lt_argument(&r, "device", &is_set);
  if (device != NULL && !is_set) *device = x->storage->device;
  return lt_run_reading(L, b, &r);
}

static double check_number(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  lt_scalar s = lua_type(L, index) == LUA_TNUMBER ? lt_to_scalar(L, index) : LT_NONE_SCALAR;
  if (s.kind == LT_NO_SCALAR)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a number, got %s", who, name,
             lt_shown(L, index));
  return s.f;
}

/* How many integers there are from `first` up or down to `stop`, which is left out: exact where
   doubles are not. The difference of two i64 may not fit into one: it is taken modulo 2^64, where
   it is exact, since the side is known. Above 2^53 a double would count one too many or too few. */
static double count_ints(int64_t first, int64_t stop, int64_t by) {
  if (by == 0 || (by > 0 ? first >= stop : first <= stop)) return 0;
  uint64_t span = by > 0 ? (uint64_t)stop - (uint64_t)first : (uint64_t)first - (uint64_t)stop;
  return (double)((span - 1) / (by > 0 ? (uint64_t)by : 0 - (uint64_t)by)) + 1;
}

/* lt.arange([start = 0,] stop [, step = 1, dtype, device, requires_grad]): contents, stop
   exclusive */
/* Integers are start + k * step in exact arithmetic modulo 2^64; floats are start + k * step, not a
   running sum whose error would grow with k. The count is ceil((stop - start) / step), as PyTorch's
   and NumPy's, and shares their weakness: with a step such as 0.1 the quotient's rounding decides
   whether a last element comes. 2^37 elements are a terabyte of f64: refused before an allocation
   is tried. */
static int make_arange(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 6);
  if (lua_isnil(L, 2)) { /* stop alone */
    lua_pushvalue(L, 1);
    lua_replace(L, 2);
    lua_pushnil(L);
    lua_replace(L, 1);
  }
  for (int k = 1; k <= 3; k += 2) { /* start, step */
    if (!lua_isnil(L, k)) continue;
    lua_pushinteger(L, k / 2);
    lua_replace(L, k);
  }
  options o = read_options(L, b, 4, "arange");
  double start = check_number(L, b, 1, "arange", "start");
  double stop = check_number(L, b, 2, "arange", "stop");
  double step = check_number(L, b, 3, "arange", "step");
  bool ints = lua_isinteger(L, 1) && lua_isinteger(L, 2) && lua_isinteger(L, 3);
  double count = ceil((stop - start) / step);
  bool leads = step != 0 && count == count && (stop == start || (stop > start) == (step > 0));
  if (!leads)
    lt_raise(L, b, LT_EARG, "arange: step %g does not lead from %g to %g", step, start, stop);
  int64_t first = lua_tointeger(L, 1), by = lua_tointeger(L, 3);
  if (ints) count = count_ints(first, lua_tointeger(L, 2), by);
  if (count > 0x1p37) lt_raise(L, b, LT_EARG, "arange: %g elements are too many", count);
  int64_t n = (int64_t)count;
  lt_collect_if_due(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  b->c->op = "arange"; /* for the text when memory ends */
  lt_tensor *t = lt_tensor_empty(b->c, LT_CPU_DEVICE, ints ? LT_I64 : LT_F64, 1, &n);
  b->c->op = NULL;
  void *data = t != NULL ? lt_data(t) : NULL;
  for (int64_t k = 0; data != NULL && k < n; k++)
    if (ints)
      ((int64_t *)data)[k] = (int64_t)((uint64_t)first + (uint64_t)k * (uint64_t)by);
    else
      ((double *)data)[k] = start + (double)k * step;
  return end_staged(L, b, frame, t, o);
}

/* lt.from_bytes(string, dtype [, shape]): elements in native order. The inverse of x:tobytes(), for
   data from files and sockets; nothing is converted, so byte order is the caller's matter. */
static int from_bytes(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t length;
  if (lua_type(L, 1) != LUA_TSTRING)
    lt_raise(L, b, LT_EARG, "from_bytes: argument 1 must be a string, got %s", lt_shown(L, 1));
  const char *bytes = lua_tolstring(L, 1, &length);
  lt_dtype dtype = lt_check_dtype(L, b, 2, "from_bytes");
  size_t size = lt_dtype_size(dtype);
  lt_shape shape = {.ndim = 1, .size = {(int64_t)(length / size)}};
  if (!lua_isnoneornil(L, 3)) {
    lt_sizes s = lt_check_sizes(L, b, 3, "from_bytes", "shape");
    shape = lt_shape_of(s.n, s.size);
  }
  if (length % size != 0 || lt_shape_numel(shape) != (int64_t)(length / size))
    lt_raise(L, b, LT_ESHAPE, "from_bytes: %zu bytes do not make %s of %s", length,
             LT_SHAPE_STR(shape), lt_dtype_name(dtype));
  return push_staged(L, b, bytes, dtype, shape,
                     (options){.dtype = dtype, .device = lt_device_default(b->c)});
}

static void add_filled(lua_State *L, lt_bind *b) {
  static const char *const names[] = {"zeros", "ones", "full", "empty"};
  for (int k = 0; k < 4; k++) {
    lua_pushlightuserdata(L, b);
    lua_pushstring(L, names[k]);
    lua_pushcclosure(L, make_filled, 2);
    lua_setfield(L, 1, names[k]);
  }
}

static void add_likes(lua_State *L, lt_bind *b) {
  static const struct {
    const char *name;
    lt_op op;
    int value; /* -1: none */
  } rows[] = {{"zeros_like", LT_OP_full, 0},      {"ones_like", LT_OP_full, 1},
              {"full_like", LT_OP_full, -1},      {"empty_like", LT_OP_empty, -1},
              {"rand_like", LT_OP_rand, -1},      {"randn_like", LT_OP_randn, -1},
              {"randint_like", LT_OP_randint, -1}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    lua_pushlightuserdata(L, b);
    lua_pushinteger(L, rows[k].op);
    lua_pushstring(L, rows[k].name);
    if (rows[k].value >= 0)
      lua_pushinteger(L, rows[k].value);
    else
      lua_pushnil(L);
    lua_pushcclosure(L, make_like, 4);
    lua_pushvalue(L, -1);
    lua_setfield(L, 1, rows[k].name);
    lua_setfield(L, 2, rows[k].name);
  }
}

void lt_bind_create(lua_State *L, lt_bind *b) {
  static const lt_formed functions[] = {
      {{"tensor", make_tensor, 4}, "data | dtype device requires_grad"},
      {{"arange", make_arange, 6}, "start | stop step dtype device requires_grad"},
      {{"from_bytes", from_bytes, 3}, "bytes dtype | shape"},
      {{NULL, NULL, 0}, NULL}};
  lua_pushvalue(L, 1);
  lt_add_formed(L, b, functions);
  lua_pop(L, 1);
  add_filled(L, b);
  lua_pushlightuserdata(L, b);
  lua_pushcclosure(L, make_randint, 1);
  lua_setfield(L, 1, "randint");
  add_likes(L, b);
}
