/* lua/bind/dist/bucket.c: packs gradients, and Lua numbers, into one buffer for a collective. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/dist/dist.h"
#include "device/device.h"

bool lt_is_plain(const lt_ctx *c, const lt_tensor *t) {
  const lt_device_ops *ops = lt_device_table(c, t->storage->device);
  return t->contiguous && ops->host_memory && ops->launch == NULL && t->storage->away == NULL;
}

/* flat[at .. at + numel - 1] = t, in flat's dtype. */
static bool put(lt_ctx *c, lt_tensor *flat, int64_t at, lt_tensor *t) {
  if (lt_is_plain(c, t) && lt_is_plain(c, flat) && t->dtype == flat->dtype) {
    size_t item = lt_item_size(t);
    memcpy((char *)lt_data(flat) + (size_t)at * item, lt_data(t), (size_t)t->numel * item);
    return true;
  }
  lt_frame frame = lt_frame_open(c);
  lt_tensor *part = lt_slice(c, flat, 0, at, t->numel, 1);
  lt_tensor *row = part != NULL ? lt_reshape(c, t, lt_shape_of(1, &t->numel)) : NULL;
  bool ok = row != NULL && lt_copy_into(c, part, row);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* The parameters of the list at 1 as an array, which is pushed. */
static lt_tensor **push_parameters(lua_State *L, lt_bind *b, const char *who, lua_Integer *n) {
  luaL_checktype(L, 1, LUA_TTABLE);
  *n = (lua_Integer)lua_rawlen(L, 1);
  lt_tensor **list = lua_newuserdatauv(L, (size_t)(*n + 1) * sizeof *list, 0);
  for (lua_Integer k = 0; k < *n; k++) {
    lt_raw_geti(L, 1, k + 1);
    list[k] = lt_check_tensor(L, b, lua_gettop(L), who);
    lua_pop(L, 1);
  }
  return list;
}

bool lt_take_gradients(lt_ctx *c, int64_t n, lt_tensor **list) {
  for (int64_t k = 0; k < n; k++) {
    lt_tensor *p = list[k];
    lt_tensor *grad = p->grad != NULL ? lt_contiguous(c, p->grad)
                                      : lt_full(c, lt_tensor_shape(p), (lt_scalar){0},
                                                (lt_dtype)p->dtype, p->storage->device);
    if (grad == NULL) return false;
    if (grad != p->grad) {
      lt_release(c, p->grad);
      p->grad = lt_retain(grad);
      lt_tensor_note_grad(c, p);
    }
    list[k] = grad;
  }
  return true;
}

/* dist.missing(list): how many parameters of the list have no gradient. */
static int missing(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_Integer n, count = 0;
  lt_tensor **list = push_parameters(L, b, "missing", &n);
  for (lua_Integer k = 0; k < n; k++) count += list[k]->grad == NULL;
  lua_pushinteger(L, count);
  return 1;
}

/* dist.pack(list, flat): the gradients of all parameters of the list, one after the other, into a
   tensor of one dim of exactly their size; cast to its dtype. No history. */
static int pack(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *flat = lt_check_tensor(L, b, 2, "pack");
  lua_Integer n;
  lt_tensor **parts = push_parameters(L, b, "pack", &n);
  int64_t count = 0;
  for (lua_Integer k = 0; k < n; k++) count += parts[k]->numel;
  if (flat->ndim != 1 || flat->numel != count)
    lt_raise(L, b, LT_ESHAPE, "pack: needs %lld contiguous elements: got %s",
             (long long)count, LT_TENSOR_STR(flat));
  lt_ctx *c = b->c;
  lt_modes modes = c->modes;
  c->modes.collective = true;
  lt_frame frame = lt_begin(L, b, 0);
  c->modes.grad = c->modes.autocast = false;
  lt_take_gradients(c, n, parts);
  int64_t at = 0;
  for (lua_Integer k = 0; k < n && lt_ok(c); at += parts[k++]->numel) put(c, flat, at, parts[k]);
  lt_storage_bump(c, flat->storage);
  c->modes = modes;
  lt_end_call(L, b, frame);
  return 0;
}

/* The sum of all parts over the ranks of `g` times `scale`, in place. */
static lt_work *add_up(lt_ctx *c, lt_group *g, int n, lt_tensor *const *parts, double scale,
                       const lt_place *place) {
  lt_work *w = lt_comm_all_reduce_parts(c, g, n, parts, scale, lt_origin_of(place));
  if (w != NULL) lt_work_wait(c, w);
  return w;
}

/* dist.reduce(list, scale, group) -> what dist.collective returns second: the gradient of each
   parameter of the list = its sum over the ranks of the group times `scale`, all at once; of one
   dtype. No history. */
static int reduce(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_ctx *c = b->c;
  double scale = luaL_checknumber(L, 2);
  lt_group *g = lt_check_group(L, b, 3, "all_reduce");
  lua_Integer n;
  lt_tensor **parts = push_parameters(L, b, "all_reduce", &n);
  if (n == 0) return 0;
  lt_place place = lt_place_of_loop(L, b);
  lt_modes modes = c->modes;
  c->modes.collective = true;
  lt_frame frame = lt_begin(L, b, 0);
  c->modes.grad = c->modes.autocast = false;
  lt_work *w = lt_take_gradients(c, n, parts) ? add_up(c, g, (int)n, parts, scale, &place) : NULL;
  bool staged = w != NULL && lt_work_is_staged(w);
  lt_device at = parts[0]->storage->device;
  lt_work_release(c, w);
  c->modes = modes;
  lt_end_call(L, b, frame);
  return lt_dist_push_staged(L, b, staged, at);
}

/* dist.add(numbers, group): the sums of a list of numbers over the ranks of the group, as
   floats. */
static int add(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lt_group *g = lt_check_group(L, b, 2, "all_reduce");
  int64_t n = (int64_t)lua_rawlen(L, 1);
  double *numbers = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *numbers, 0);
  for (int64_t k = 0; k < n; k++) {
    lt_raw_geti(L, 1, k + 1);
    numbers[k] = luaL_checknumber(L, -1);
    lua_pop(L, 1);
  }
  lt_place place = lt_place_of_loop(L, b);
  lt_frame frame = lt_begin(L, b, 0);
  lt_tensor *row = lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_F64, 1, &n);
  if (row != NULL) {
    memcpy(lt_data(row), numbers, (size_t)n * sizeof *numbers);
    lt_work_release(b->c, add_up(b->c, g, 1, &row, 1, &place));
    memcpy(numbers, lt_data(row), (size_t)n * sizeof *numbers);
  }
  lt_end_call(L, b, frame);
  lua_createtable(L, (int)n, 0);
  for (int64_t k = 0; k < n; k++) {
    lua_pushnumber(L, numbers[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

void lt_bind_dist_bucket(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"missing", missing}, {"pack", pack}, {"reduce", reduce}, {"add", add}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
