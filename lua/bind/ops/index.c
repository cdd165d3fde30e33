/* lua/bind/ops/index.c: x[...], x(...) and x[...] = v.

   Positions, ranges, lt.all and lt.new together are one strided `view`. Tensors among the items
   choose from what the view leaves: integers are contents (0-based), a bool tensor is a mask over
   as many dims as it has. A write without history goes straight into memory; with history the part
   is replaced in a copy and x takes over the copy's values and history.

   Cost: a position or a range is O(1) and shares memory (as_strided); a tensor among the items is a
   gather, O(result), with memory of its own. Positions count from 1 and negative ones from the end,
   as in Lua's string functions; a step may be negative nowhere, as in PyTorch. */
#include "bind/ops/index.h"

#include <math.h>
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "ops/node.h"

static const char all_mark, new_mark;

typedef struct chosen {
  lt_tensor *t;
  int dim; /* of the view: the first that it indexes */
} chosen;

/* A plan has borrowed tensors: the items stay on the Lua stack until the call ends. */
typedef struct plan {
  lt_args_as_strided view;
  bool whole; /* the view is all of x, dims in place */
  int dims;   /* dims of x used up */
  int n_tensors;
  chosen tensors[LT_MAX_DIMS];
} plan;

static void add_dim(lua_State *L, lt_bind *b, plan *p, int64_t size, int64_t stride) {
  if (p->view.size.n == LT_MAX_DIMS)
    lt_raise(L, b, LT_ESHAPE, "index: the result has more than %d dims", LT_MAX_DIMS);
  p->view.size.size[p->view.size.n++] = size;
  p->view.stride.size[p->view.stride.n++] = stride;
}

static int64_t range_field(lua_State *L, lt_bind *b, int item, int field) {
  lt_raw_geti(L, item, field);
  int64_t value = lt_check_int(L, b, -1, "index", field == 3 ? "step" : "range");
  lua_pop(L, 1);
  return value;
}

/* Both ends are included, as in string.sub: {1, 3} are three elements. */
static lt_range read_range(lua_State *L, lt_bind *b, int item) {
  size_t n = lua_rawlen(L, item);
  if (n != 2 && n != 3)
    lt_raise(L, b, LT_EARG,
             "index: a range is {from, to} or {from, to, step}, got %zu numbers: %s", n,
             n == 0 ? "a whole dim is lt.all" : "to the end is {from, -1}");
  return (lt_range){.from = range_field(L, b, item, 1),
                    .to = range_field(L, b, item, 2),
                    .step = n == 3 ? range_field(L, b, item, 3) : 1};
}

/* The dims of x that a tensor stands for: checked against its kind and shape. */
static int dims_of_tensor(lua_State *L, lt_bind *b, const lt_tensor *x, const plan *p,
                          const lt_tensor *t) {
  if (t->dtype != LT_BOOL) {
    if (!lt_dtype_is_int((lt_dtype)t->dtype))
      lt_raise(L, b, LT_EDTYPE, "index: a tensor must hold integers or bools, got %s",
               lt_dtype_name((lt_dtype)t->dtype));
    return 1;
  }
  if (t->ndim == 0) lt_raise(L, b, LT_ESHAPE, "index: a mask must have dims, got []");
  for (int k = 0; k < t->ndim; k++)
    if (p->dims + k >= x->ndim || t->size[k] != x->size[p->dims + k])
      lt_raise(L, b, LT_ESHAPE, "index: a mask of %s does not fit dims %d.. of %s",
               LT_TENSOR_STR(t), p->dims + 1, LT_TENSOR_STR(x));
  return t->ndim;
}

static void need_dim(lua_State *L, lt_bind *b, const lt_tensor *x, const plan *p) {
  if (p->dims >= x->ndim)
    lt_raise(L, b, LT_ESHAPE, "index: more indices than the %d dims of %s", x->ndim,
             LT_TENSOR_STR(x));
}

static void add_tensor(lua_State *L, lt_bind *b, const lt_tensor *x, const int64_t *base, plan *p,
                       lt_tensor *t) {
  need_dim(L, b, x, p);
  int n = dims_of_tensor(L, b, x, p, t);
  p->tensors[p->n_tensors++] = (chosen){t, p->view.size.n};
  for (int k = 0; k < n; k++, p->dims++) add_dim(L, b, p, x->size[p->dims], base[p->dims]);
}

static void add_item(lua_State *L, lt_bind *b, const lt_tensor *x, const int64_t *base, plan *p,
                     int item) {
  const void *mark = lua_islightuserdata(L, item) ? lua_touserdata(L, item) : NULL;
  lt_tensor *t = lt_to_tensor(L, b, item);
  if (mark == &new_mark) {
    add_dim(L, b, p, 1, 0);
    p->whole = false;
    return;
  }
  if (t != NULL) {
    add_tensor(L, b, x, base, p, t);
    return;
  }
  need_dim(L, b, x, p);
  int d = p->dims++;
  if (mark == &all_mark) {
    add_dim(L, b, p, x->size[d], base[d]);
  } else if (lua_istable(L, item)) {
    lt_range r = lt_check_range(L, b, read_range(L, b, item), x->size[d], "index", x);
    p->view.offset += r.from * base[d];
    add_dim(L, b, p, r.n, base[d] * r.step);
    if (r.n != x->size[d] || r.step != 1) p->whole = false;
  } else if (lua_type(L, item) == LUA_TNUMBER) {
    p->view.offset += lt_check_position(L, b, item, x->size[d], "index", x) * base[d];
    p->whole = false;
  } else {
    lt_raise(L, b, LT_EARG,
             "index: item %d must be a position, a range, a tensor, lt.all or lt.new, got %s",
             d + 1, lt_shown(L, item));
  }
}

/* Strides are those of a row-major tensor of x's shape, not x's own: as_strided works on positions
   of the logical tensor here, so that the same plan serves reading and the scatter of a write with
   history, and views of views. */
static void start(const lt_tensor *x, plan *p, int64_t *base) {
  memset(p, 0, sizeof *p);
  p->whole = true;
  lt_shape_strides(lt_tensor_shape(x), base);
}

/* Dims that no item named stay whole. */
static void finish(lua_State *L, lt_bind *b, const lt_tensor *x, const int64_t *base, plan *p) {
  for (; p->dims < x->ndim; p->dims++) add_dim(L, b, p, x->size[p->dims], base[p->dims]);
}

/* The items of the key at `index`: a table of them, or one. */
static void read_key(lua_State *L, lt_bind *b, const lt_tensor *x, plan *p, int index) {
  int64_t base[LT_MAX_DIMS];
  start(x, p, base);
  if (lua_istable(L, index)) {
    lua_Integer n = lt_length(L, index);
    if (n > 2 * LT_MAX_DIMS) lt_raise(L, b, LT_EARG, "index: too many items");
    luaL_checkstack(L, (int)n + 8, "index");
    for (lua_Integer k = 1; k <= n; k++) {
      lua_geti(L, index, k); /* stays on the stack: a tensor must live as long as the plan */
      add_item(L, b, x, base, p, lua_gettop(L));
    }
  } else {
    add_item(L, b, x, base, p, index);
  }
  finish(L, b, x, base, p);
}

/* Lists of the CPU go to the device that they index. */
static lt_tensor *list_for(lt_ctx *c, lt_tensor *list, lt_device device) {
  if (list == NULL || list->storage->device.kind != LT_CPU_DEVICE.kind) return list;
  return lt_to_device(c, list, device);
}

/* Masks become one list of integers a dim; all lists go into `in` and their dims into `dims`. A
   mask of k dims becomes k lists by nonzero, one a dim: its count is known only on the device, so
   that a mask makes the host wait, and a list does not. */
static int gather_lists(lt_ctx *c, const plan *p, lt_device device, lt_tensor **in, lt_dims *dims) {
  int n = 0;
  for (int k = 0; k < p->n_tensors; k++) {
    lt_tensor *t = p->tensors[k].t;
    if (t->dtype != LT_BOOL) {
      dims->dim[n] = p->tensors[k].dim;
      in[n++] = list_for(c, t, device);
      continue;
    }
    lt_tensor *places = list_for(c, lt_apply1(c, LT_OP_nonzero, 1, &t, NULL), device);
    for (int d = 0; d < t->ndim && places != NULL; d++) {
      dims->dim[n] = p->tensors[k].dim + d;
      in[n++] = lt_select(c, places, 1, d);
    }
  }
  dims->n = n;
  return n;
}

static lt_tensor *make_view(lt_ctx *c, lt_tensor *x, const plan *p) {
  return p->whole ? x : lt_apply1(c, LT_OP_as_strided, 1, &x, &p->view);
}

/* All of x: a view of its own, so that x[lt.all] is not x itself. */
static lt_tensor *whole_view(lt_ctx *c, lt_tensor *x, const plan *p) {
  return lt_apply1(c, LT_OP_as_strided, 1, &x, &p->view);
}

static lt_tensor *read_plan(lt_ctx *c, lt_tensor *x, const plan *p) {
  if (p->n_tensors == 0) return whole_view(c, x, p);
  lt_tensor *in[1 + LT_MAX_DIMS];
  lt_args_index_get args;
  lt_kinds[LT_KIND_index_get].defaults(&args);
  in[0] = make_view(c, x, p);
  int n = gather_lists(c, p, x->storage->device, in + 1, &args.dims);
  return lt_apply1(c, LT_OP_index_get, 1 + n, in, &args);
}

static int push_plan(lua_State *L, lt_bind *b, lt_tensor *x, const plan *p) {
  lt_collect_if_due(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *y = read_plan(b->c, x, p);
  return lt_end(L, b, frame, 1, &y);
}

/* ipairs and table.unpack ask from C: they would end in an error after the last row. */
static void refuse_ipairs(lua_State *L, lt_bind *b) {
  lua_Debug ar;
  if (lua_getstack(L, 1, &ar) == 0) return;
  lua_getinfo(L, "S", &ar);
  if (ar.what[0] == 'C')
    lt_raise(L, b, LT_EARG,
             "index: a tensor is not a table: write `for i, row in x:rows() do` instead of "
             "ipairs(x)");
}

/* x[i] is by far the most frequent and takes the short way: one select, no plan. */
int lt_index_read(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "index");
  if (lua_type(L, 2) == LUA_TNUMBER) {
    refuse_ipairs(L, b);
    if (x->ndim == 0) need_dim(L, b, x, &(plan){0});
    int64_t at = lt_check_position(L, b, 2, x->size[0], "index", x);
    lt_frame frame = lt_begin(L, b, 1);
    lt_tensor *y = lt_select(b->c, x, 0, at);
    return lt_end(L, b, frame, 1, &y);
  }
  plan p;
  read_key(L, b, x, &p, 2);
  return push_plan(L, b, x, &p);
}

/* x(i, {a, b}, ...) */
static int call(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "index");
  int64_t base[LT_MAX_DIMS];
  plan p;
  int top = lua_gettop(L);
  if (top == 3 && lua_isnil(L, 2) && lua_isnil(L, 3)) /* what a loop of Lua calls first */
    lt_raise(L, b, LT_EARG,
             "index: `for ... in x`: a tensor is not an iterator: write `for i, row in x:rows() "
             "do`");
  start(x, &p, base);
  for (int item = 2; item <= top; item++) add_item(L, b, x, base, &p, item);
  finish(L, b, x, base, &p);
  return push_plan(L, b, x, &p);
}

/* Writing. */

/* The value to write at stack index 3: a tensor, or a number that fits x's dtype. */
static lt_scalar check_value(lua_State *L, lt_bind *b, const lt_tensor *x) {
  lt_scalar s = lt_to_scalar(L, 3);
  if (s.kind == LT_NO_SCALAR)
    lt_raise(L, b, LT_EARG, "index: can only assign a tensor or a number, got %s%s",
             lt_shown(L, 3), lua_istable(L, 3) ? " (write lt.tensor{...})" : "");
  if (s.kind == LT_SCALAR_FLOAT && !lt_dtype_is_float((lt_dtype)x->dtype) && s.f != floor(s.f))
    lt_raise(L, b, LT_EDTYPE, "index: %g does not fit into a tensor of %s", s.f,
             lt_dtype_name((lt_dtype)x->dtype));
  return s;
}

/* What the view of x becomes when the chosen elements are replaced by v. */
static lt_tensor *replaced(lt_ctx *c, lt_tensor *x, lt_tensor *v, const plan *p) {
  lt_tensor *in[2 + LT_MAX_DIMS];
  lt_args_index_put args;
  lt_kinds[LT_KIND_index_put].defaults(&args);
  in[0] = make_view(c, x, p);
  in[1] = lt_to_device(c, lt_cast(c, v, (lt_dtype)x->dtype), x->storage->device);
  int n = gather_lists(c, p, x->storage->device, in + 2, &args.dims);
  return lt_apply1(c, LT_OP_index_put, 2 + n, in, &args);
}

/* Leading dims of size 1 beyond the dims of the part are dropped. */
static lt_tensor *without_leading_ones(lt_ctx *c, lt_tensor *v, const plan *p) {
  lt_shape s = lt_tensor_shape(v), kept = {0};
  int first = 0;
  while (first < s.ndim && s.size[first] == 1) first++;
  if (first == 0 || (p->n_tensors == 0 && s.ndim <= p->view.size.n)) return v;
  for (int k = first; k < s.ndim; k++) kept.size[kept.ndim++] = s.size[k];
  return lt_reshape(c, v, kept);
}

/* Without history the write goes into memory of x through the view: O(part). With history the write
   must be an op that the tape can differentiate: the part is replaced in a copy of x, O(x), which x
   then takes over (PyTorch records CopySlices for the same). A write of all of x needs no
   scatter. */
static void write_plan(lt_ctx *c, lt_tensor *x, lt_tensor *v, const plan *p) {
  bool history = lt_recording(c, 2, (lt_tensor *[]){x, v});
  v = without_leading_ones(c, v, p);
  if (v != NULL && p->n_tensors > 0) v = replaced(c, x, v, p);
  if (v == NULL) return;
  if (p->whole || !history) {
    lt_copy_into(c, make_view(c, x, p), v);
    return;
  }
  v = lt_to_device(c, lt_cast(c, v, (lt_dtype)x->dtype), x->storage->device);
  const lt_args_as_strided_scatter args = {
      .size = p->view.size, .stride = p->view.stride, .offset = p->view.offset};
  lt_tensor *y = lt_apply1(c, LT_OP_as_strided_scatter, LT_IN(x, v), &args);
  if (y != NULL) lt_copy_into(c, x, y);
}

/* One write into a dim that expand() repeats would change several elements. */
static void refuse_repeated(lua_State *L, lt_bind *b, const lt_tensor *x) {
  for (int k = 0; k < x->ndim; k++)
    if (x->stride[k] == 0 && x->size[k] > 1)
      lt_raise(L, b, LT_EVERSION,
               "index: cannot write into %s in place: dim %d is repeated without memory of its "
               "own; write x:clone() first",
               LT_TENSOR_STR(x), k + 1);
}

/* The value is cast to x's dtype as PyTorch's __setitem__ does; a number with a fraction is refused
   for integer tensors, where PyTorch truncates it silently. */
int lt_index_write(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "index");
  refuse_repeated(L, b, x);
  lt_tensor *v = lt_to_tensor(L, b, 3);
  lt_scalar s = v == NULL ? check_value(L, b, x) : LT_NONE_SCALAR;
  plan p;
  read_key(L, b, x, &p, 2);
  lt_frame frame = lt_begin(L, b, 0);
  if (v == NULL) v = lt_full(b->c, (lt_shape){0}, s, (lt_dtype)x->dtype, x->storage->device);
  if (v != NULL) write_plan(b->c, x, v, &p);
  lt_end_call(L, b, frame);
  return 0;
}

void lt_bind_index(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__call", call}, {NULL, NULL}};
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->metatable_ref);
  lt_add_functions(L, b, meta);
  lua_pop(L, 1);
  lua_pushlightuserdata(L, (void *)&all_mark);
  lua_setfield(L, 1, "all");
  lua_pushlightuserdata(L, (void *)&new_mark);
  lua_setfield(L, 1, "new");
}
