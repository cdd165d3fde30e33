/* lua/bind/dist_bucket.c: many tensors in one buffer, so that they travel together. */
#include <string.h>

#include "bind/dist.h"
#include "bind/tensor.h"
#include "device/device.h"

/* The tensor at place k of the list at `list`. */
static lt_tensor *element(lua_State *L, lt_bind *b, int list, lua_Integer k) {
  lua_rawgeti(L, list, k);
  lt_tensor *t = lt_check_tensor(L, b, -1, "pack");
  lua_pop(L, 1);
  return t;
}

/* Elements of all tensors of the list. */
static int64_t count_all(lua_State *L, lt_bind *b, int list, lua_Integer n) {
  int64_t sum = 0;
  for (lua_Integer k = 1; k <= n; k++) sum += element(L, b, list, k)->numel;
  return sum;
}

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

/* dist.pack(list, flat): the elements of all tensors of the list, one after the other, into a
   tensor of one dim that has room for just them; cast to its dtype. No history. */
static int pack(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lt_tensor *flat = lt_check_tensor(L, b, 2, "pack");
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  int64_t all = count_all(L, b, 1, n);
  if (flat->ndim != 1 || flat->numel != all)
    lt_raise(L, b, LT_ESHAPE, "pack: needs room for %lld elements in a row: got %s", (long long)all,
             LT_TENSOR_STR(flat));
  lt_ctx *c = b->c;
  lt_modes modes = c->modes;
  lt_frame frame = lt_begin(L, b, 0);
  c->modes.grad = c->modes.autocast = false;
  int64_t at = 0;
  for (lua_Integer k = 1; k <= n && lt_ok(c); k++) {
    lt_tensor *t = element(L, b, 1, k);
    put(c, flat, at, t);
    at += t->numel;
  }
  lt_storage_bump(c, flat->storage);
  c->modes = modes;
  lt_end_call(L, b, frame);
  return 0;
}

void lt_bind_dist_bucket(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"pack", pack}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
