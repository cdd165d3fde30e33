/* lua/bind/dist_bucket.c: many tensors that travel together. */
#include <string.h>

#include "bind/dist.h"
#include "bind/tensor.h"
#include "device/device.h"

static bool is_plain(lt_ctx *c, const lt_tensor *t) {
  return t->contiguous && lt_device_table(c, t->storage->device)->host_memory;
}

/* flat[at .. at + numel - 1] = t, in flat's dtype. */
static bool put(lt_ctx *c, lt_tensor *flat, int64_t at, lt_tensor *t) {
  if (is_plain(c, t) && is_plain(c, flat) && t->dtype == flat->dtype) {
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

/* The list of tensors at 1 as an array, which is pushed. */
static lt_tensor **push_parts(lua_State *L, lt_bind *b, const char *who, lua_Integer *n) {
  luaL_checktype(L, 1, LUA_TTABLE);
  *n = (lua_Integer)lua_rawlen(L, 1);
  lt_tensor **parts = lua_newuserdatauv(L, (size_t)(*n + 1) * sizeof *parts, 0);
  for (lua_Integer k = 0; k < *n; k++) {
    lua_rawgeti(L, 1, k + 1);
    parts[k] = lt_check_tensor(L, b, lua_gettop(L), who);
    lua_pop(L, 1);
  }
  return parts;
}

/* dist.pack(list, flat): the elements of all tensors of the list, one after the other, into a
   tensor of one dim that has room for just them; cast to its dtype. No history. */
static int pack(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *flat = lt_check_tensor(L, b, 2, "pack");
  lua_Integer n;
  lt_tensor **parts = push_parts(L, b, "pack", &n);
  int64_t count = 0;
  for (lua_Integer k = 0; k < n; k++) count += parts[k]->numel;
  if (flat->ndim != 1 || flat->numel != count)
    lt_raise(L, b, LT_ESHAPE, "pack: needs room for %lld elements in a row: got %s",
             (long long)count, LT_TENSOR_STR(flat));
  lt_ctx *c = b->c;
  lt_modes modes = c->modes;
  lt_frame frame = lt_begin(L, b, 0);
  c->modes.grad = c->modes.autocast = false;
  int64_t at = 0;
  for (lua_Integer k = 0; k < n && lt_ok(c); at += parts[k++]->numel) put(c, flat, at, parts[k]);
  lt_storage_bump(c, flat->storage);
  c->modes = modes;
  lt_end_call(L, b, frame);
  return 0;
}

/* dist.reduce(list, scale): each tensor of the list = its sum over all ranks times `scale`, all at
   once; contiguous tensors of one dtype. No history. */
static int reduce(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_ctx *c = b->c;
  double scale = luaL_checknumber(L, 2);
  lt_group *g = lt_check_group(L, b, 99, "all_reduce");
  lua_Integer n;
  lt_tensor **parts = push_parts(L, b, "all_reduce", &n);
  if (n == 0) return 0;
  lt_place place = lt_place_here(L, b);
  lt_frame frame = lt_begin(L, b, 0);
  lt_work *w = lt_comm_all_reduce_parts(c, g, (int)n, parts, scale, lt_origin_of(&place));
  if (w != NULL) {
    lt_work_wait(c, w);
    lt_work_release(c, w);
  }
  lt_end_call(L, b, frame);
  return 0;
}

void lt_bind_dist_bucket(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"pack", pack}, {"reduce", reduce}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
