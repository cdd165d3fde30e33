/* lua/bind/ops/convert.c: tensors to numbers, tables, bytes, other dtypes and devices. */
#include "bind/ops/convert.h"

#include <string.h>

#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/nearest_word.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"
#include "bind/core/types.h"
#include "bind/core/current_line.h"
#include "bind/ops/pinned.h"
#include "bind/ops/tensor.h"
#include "device/plugin.h"
#include "device/stream.h"
#include "ops/materialize.h"

static void push_scalar(lua_State *L, lt_scalar s) {
  if (s.kind == LT_SCALAR_BOOL)
    lua_pushboolean(L, s.i != 0);
  else if (s.kind == LT_SCALAR_INT)
    lua_pushinteger(L, s.i);
  else
    lua_pushnumber(L, s.f);
}

/* x:item() -> the number of a one-element tensor. It waits for the device: the element is copied
   back in stream order, after the kernels that make it. Calls of it in a loop keep the host from
   issuing work ahead. */
static int item(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "item");
  lt_scalar s = LT_NONE_SCALAR;
  lt_frame frame = lt_begin(L, b, 0);
  lt_item(b->c, x, &s);
  lt_end_call(L, b, frame);
  push_scalar(L, s);
  return 1;
}

/* Elements as f64, i64 or bool in row-major order: exact for every dtype, as f64 has all values of
   f32, f16 and bf16, and i64 those of all integer dtypes. The host casts them: fewer bytes travel,
   and not every device has f64. The userdata is pushed before the frame
   opens: an error of Lua's for want of memory leaves no tensor behind. */
void *lt_push_elements(lua_State *L, lt_bind *b, lt_tensor *x, lt_dtype *as) {
  lt_ctx *c = b->c;
  lt_dtype d = (lt_dtype)x->dtype;
  *as = lt_dtype_is_float(d) ? LT_F64 : d == LT_BOOL ? LT_BOOL : LT_I64;
  void *data = lua_newuserdatauv(L, (size_t)x->numel * lt_dtype_size(*as) + 1, 0);
  lt_frame frame = lt_begin(L, b, 0);
  lt_tensor *here = lt_to_device(c, lt_detach(c, x), LT_CPU_DEVICE);
  lt_tensor *t = here != NULL ? lt_contiguous(c, lt_cast(c, here, *as)) : NULL;
  if (t != NULL) lt_tensor_read(c, t, data);
  lt_end_call(L, b, frame);
  return data;
}

/* Sizes are known, so each table is created with its final length and never rehashed. */
static void push_nested(lua_State *L, const lt_tensor *x, int dim, lt_dtype as, const char **at) {
  if (dim == x->ndim) {
    if (as == LT_F64)
      lua_pushnumber(L, *(const double *)*at);
    else if (as == LT_I64)
      lua_pushinteger(L, *(const int64_t *)*at);
    else
      lua_pushboolean(L, **at != 0);
    *at += lt_dtype_size(as);
    return;
  }
  luaL_checkstack(L, 4, "tolist");
  lua_createtable(L, (int)x->size[dim], 0);
  for (int64_t k = 1; k <= x->size[dim]; k++) {
    push_nested(L, x, dim + 1, as, at);
    lua_rawseti(L, -2, k);
  }
}

/* x:tolist() -> nested tables, or the number of a tensor of no dims */
static int tolist(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "tolist");
  lt_dtype as;
  if (!lt_check_data(b->c, "tolist", x)) lt_raise_failure(L, b);
  const char *at = lt_push_elements(L, b, x, &as);
  push_nested(L, x, 0, as, &at);
  return 1;
}

/* x:tobytes() -> its elements in logical order as a string. Straight into Lua's string buffer: one
   copy. The buffer is a userdata on the stack, for which the frame comes after it. */
static int tobytes(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "tobytes");
  size_t size = (size_t)x->numel * lt_item_size(x);
  if (!lt_check_data(b->c, "tobytes", x)) lt_raise_failure(L, b);
  luaL_Buffer buffer;
  char *data = luaL_buffinitsize(L, &buffer, size);
  lt_note_line(b);
  lt_frame frame = lt_frame_open(b->c);
  lt_tensor *t = lt_contiguous(b->c, lt_detach(b->c, x));
  if (t != NULL) lt_tensor_read(b->c, t, data);
  lt_end_call(L, b, frame);
  luaL_pushresultsize(&buffer, size);
  return 1;
}

/* Other dtypes and devices. */

/* `t`; when it is the argument x itself, with a reference of the frame, as lt_end expects. */
static lt_tensor *result(lt_ctx *c, lt_tensor *t, lt_tensor *x) {
  if (t == x && t != NULL) lt_frame_add(c, lt_retain(t));
  return t;
}

/* Where a tensor goes; what is not asked for is LT_DTYPE_NONE and LT_NO_DEVICE. */
typedef struct target {
  lt_dtype dtype;
  lt_device device;
  bool non_blocking;
} target;

/* On the device's stream for copies: what it computes meanwhile need not be done. The copy still
   waits for what the tensor's own stream had issued before (lt_to_device orders them by events),
   and what uses the result waits for the copy: `non_blocking` changes only what the host and the
   compute stream do meanwhile. Memory need not be pinned for it: pageable memory goes through
   pinned staging buffers (cuda/staging.cu). */
static lt_tensor *to_device_beside(lt_ctx *c, lt_tensor *t, lt_device d) {
  if (t == NULL || lt_device_equal(t->storage->device, d)) return t;
  lt_stream *copies = lt_stream_of(c, d, LT_STREAM_COPY);
  if (copies == NULL) return lt_ok(c) ? lt_to_device(c, t, d) : NULL;
  lt_stream *before = lt_stream_current(c, d);
  if (before == NULL || !lt_stream_set(c, d, copies)) return NULL;
  t = lt_to_device(c, t, d);
  lt_stream_set(c, d, before == lt_stream_of(c, d, LT_STREAM_COMPUTE) ? NULL : before);
  return t;
}

/* The cast comes before the move: to a narrower dtype, the usual case, fewer bytes cross the
   bus. */
static int convert(lua_State *L, lt_bind *b, lt_tensor *x, target to) {
  lt_ctx *c = b->c;
  lt_collect_if_due(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = x;
  if (to.dtype != LT_DTYPE_NONE) t = lt_cast(c, t, to.dtype);
  if (to.device.kind >= 0)
    t = to.non_blocking ? to_device_beside(c, t, to.device) : lt_to_device(c, t, to.device);
  t = result(c, t, x);
  return lt_end(L, b, frame, 1, &t);
}

_Noreturn static void unknown_target(lua_State *L, lt_bind *b, const char *name) {
  lt_nearest nearest = {0};
  lt_consider_dtypes(&nearest, name);
  for (int k = 0; lt_devices_known[k] != NULL; k++) /* not "cpu": it is near "gpu" */
    lt_consider_word(&nearest, name, lt_devices_known[k]);
  if (nearest.word != NULL)
    lt_raise(L, b, LT_EARG, "to: '%s' is neither a dtype nor a device; did you mean '%s'?", name,
             nearest.word);
  lt_raise(L, b, LT_EARG, "to: '%s' is neither a dtype (%s) nor a device (%s)", name,
           lt_push_dtype_names(L), lt_device_names((char[128]){0}, 128));
}

static void read_options(lua_State *L, lt_bind *b, int index, target *to) {
  for (lua_pushnil(L); lt_raw_next(L, index) != 0; lua_pop(L, 1)) {
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    if (strcmp(key, "dtype") == 0)
      to->dtype = lt_check_dtype(L, b, lua_gettop(L), "to");
    else if (strcmp(key, "device") == 0)
      to->device = lt_check_device(L, b, lua_gettop(L), "to");
    else if (strcmp(key, "non_blocking") == 0)
      to->non_blocking = lt_check_flag(L, b, lua_gettop(L), "to", "non_blocking");
    else
      lt_raise(L, b, LT_EARG, "to: unknown option '%s' (there are dtype, device, non_blocking)",
               key);
  }
}

/* One value is a dtype's name, a device's name or index, a table of options, or a tensor whose
   dtype and device are taken: names of dtypes and of devices never collide. */
static void read_target(lua_State *L, lt_bind *b, int index, target *to) {
  const lt_tensor *like = lt_to_tensor(L, b, index);
  if (like != NULL) {
    to->dtype = (lt_dtype)like->dtype;
    to->device = like->storage->device;
  } else if (lua_istable(L, index)) {
    read_options(L, b, index, to);
  } else if (lua_isinteger(L, index)) {
    to->device = lt_check_device(L, b, index, "to");
  } else if (lua_type(L, index) != LUA_TSTRING) {
    lt_raise(L, b, LT_EARG, "to: needs a dtype, a device or a tensor, got %s",
             lt_shown(L, index));
  } else if (lt_dtype_from_name(lua_tostring(L, index)) != LT_DTYPE_NONE) {
    to->dtype = lt_dtype_from_name(lua_tostring(L, index));
  } else {
    const char *name = lua_tostring(L, index);
    if (!lt_device_named(b->c, name)) unknown_target(L, b, name);
    to->device = lt_check_device(L, b, index, "to");
  }
}

/* x:to("f64"), x:to("cpu"), x:to(1), x:to("cpu", "f64"), x:to(other), each with non_blocking behind
   it, x:to("cuda", {non_blocking = true}), x:to{dtype =, device =, non_blocking =}; x itself when
   it fits already */
static int to(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "to");
  target to = {LT_DTYPE_NONE, LT_NO_DEVICE, false};
  int last = lua_gettop(L) < 4 ? lua_gettop(L) : 4;
  lt_check_count(L, b, "to", 4);
  if (last > 2 && lua_isboolean(L, last)) {
    to.non_blocking = lua_toboolean(L, last);
    lua_settop(L, last - 1);
  }
  read_target(L, b, 2, &to);
  for (int k = 3; k <= lua_gettop(L); k++)
    if (!lua_isnil(L, k)) read_target(L, b, k, &to);
  return convert(L, b, x, to);
}

/* x:float() and so on: upvalue 2 is the dtype. */
static int to_dtype(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_dtype dtype = (lt_dtype)lua_tointeger(L, lua_upvalueindex(2));
  lt_check_count(L, b, lt_dtype_name(dtype), 1);
  return convert(L, b, lt_check_tensor(L, b, 1, lt_dtype_name(dtype)),
                 (target){dtype, LT_NO_DEVICE, false});
}

static int cpu(lua_State *L) {
  lt_bind *b = lt_enter(L);
  return convert(L, b, lt_check_tensor(L, b, 1, "cpu"),
                 (target){LT_DTYPE_NONE, LT_CPU_DEVICE, false});
}

/* x:cuda([device [, non_blocking]]) -> x there; `device` is a number from 0 or a name, by default
   the current one */
static int cuda(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "cuda");
  bool beside = !lua_isnoneornil(L, 3) && lt_check_flag(L, b, 3, "cuda", "non_blocking");
  if (lua_isnoneornil(L, 2))
    lua_pushliteral(L, "cuda");
  else
    lua_pushvalue(L, 2);
  lt_device device = lt_check_device(L, b, lua_gettop(L), "cuda");
  return convert(L, b, x, (target){LT_DTYPE_NONE, device, beside});
}

static int detach(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "detach");
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_detach(b->c, x);
  return lt_end(L, b, frame, 1, &t);
}

static int contiguous(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "contiguous");
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = result(b->c, lt_contiguous(b->c, x), x);
  return lt_end(L, b, frame, 1, &t);
}

static int is_contiguous(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_pushboolean(L, lt_check_tensor(L, b, 1, "is_contiguous")->contiguous);
  return 1;
}

/* x:requires_grad_([requires_grad = true]) -> x */
static int requires_grad_(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "requires_grad_");
  bool on = lua_isnoneornil(L, 2) || lt_check_flag(L, b, 2, "requires_grad_", "requires_grad");
  lua_settop(L, 1);
  lt_set_requires_grad(L, b, x, on);
  if (on) lt_make_unique(L, b, 1);
  return 1;
}

/* Sizes. */

static int numel(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_pushinteger(L, lt_check_tensor(L, b, 1, "numel")->numel);
  return 1;
}

static int dim(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_pushinteger(L, lt_check_tensor(L, b, 1, "dim")->ndim);
  return 1;
}

static int push_numbers(lua_State *L, lt_bind *b, const char *who, bool strides) {
  const lt_tensor *x = lt_check_tensor(L, b, 1, who);
  const int64_t *from = strides ? x->stride : x->size;
  if (!lua_isnoneornil(L, 2)) {
    int k = lt_check_dim_of(L, b, 2, x, who, "dim");
    if (x->ndim == 0) lt_raise(L, b, LT_ESHAPE, "%s: a tensor of shape [] has no dims", who);
    lua_pushinteger(L, from[k]);
    return 1;
  }
  lua_createtable(L, x->ndim, 0);
  for (int k = 0; k < x->ndim; k++) {
    lua_pushinteger(L, from[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* x:size(dim) -> number; x:size() -> table */
static int size(lua_State *L) { return push_numbers(L, lt_enter(L), "size", false); }
static int stride(lua_State *L) { return push_numbers(L, lt_enter(L), "stride", true); }

/* runtime.materialize(x, device [, first, last]) -> a meta tensor computed there, by the calls that
   were to make it; rows first to last of it; or nil and why not */
/* A failure other than for want of memory is an answer, not an error: Module:materialize says which
   parameter it was. */
static int materialize(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "materialize");
  lt_device d = lt_check_device(L, b, 2, "materialize");
  int64_t first = luaL_optinteger(L, 3, 1), last = luaL_optinteger(L, 4, first - 2);
  lt_failure f;
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *y = lt_materialize(b->c, x, d, first - 1, last - first + 1);
  if (y != NULL || b->c->failure.code == LT_EMEMORY) return lt_end(L, b, frame, 1, &y);
  lt_frame_close(b->c, frame, 0, NULL);
  lua_pushnil(L);
  lua_pushstring(L, lt_take_failure(b->c, &f) ? f.text : "");
  return 2;
}

static void add_dtype_methods(lua_State *L, lt_bind *b) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    lua_pushlightuserdata(L, b);
    lua_pushinteger(L, d);
    lua_pushcclosure(L, to_dtype, 2);
    lua_setfield(L, 2, lt_dtype_row((lt_dtype)d)->method);
  }
}

void lt_bind_convert(lua_State *L, lt_bind *b) {
  static const lt_formed methods[] = {
      {{"item", item, 1}, "x"},
      {{"tolist", tolist, 1}, "x"},
      {{"tobytes", tobytes, 1}, "x"},
      {{"to", to, -1}, "x device dtype non_blocking"},
      {{"cpu", cpu, 1}, "x"},
      {{"cuda", cuda, 3}, "x | device non_blocking"},
      {{"detach", detach, 1}, "x"},
      {{"contiguous", contiguous, 1}, "x"},
      {{"is_contiguous", is_contiguous, 1}, "x"},
      {{"pin_memory", lt_pin_memory, 1}, "x"},
      {{"is_pinned", lt_is_pinned, 1}, "x"},
      {{"requires_grad_", requires_grad_, 2}, "x | requires_grad"},
      {{"numel", numel, 1}, "x"},
      {{"dim", dim, 1}, "x"},
      {{"size", size, 2}, "x | dim"},
      {{"stride", stride, 2}, "x | dim"},
      {{NULL, NULL, 0}, NULL}};
  static const luaL_Reg runtime[] = {{"materialize", materialize}, {NULL, NULL}};
  lua_pushvalue(L, 2);
  lt_add_formed(L, b, methods);
  lua_pop(L, 1);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
  add_dtype_methods(L, b);
}
