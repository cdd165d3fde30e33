/* lua/bind/io/npy.c: arrays in NumPy's formats for the library's own Lua (`c.io`). What the world
   may spoil gives nil and the reason. */
#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "io/npy.h"

#include "bind/core/values.h"
#include "bind/io/io.h"
#include "bind/io/json.h"
#include "io/zip_save.h"

static int give(lua_State *L, lt_bind *b, lt_frame frame, lt_tensor *t) {
  if (t != NULL) return lt_end(L, b, frame, 1, &t);
  lt_frame_close(b->c, frame, 0, NULL);
  return lt_refused(L, b);
}

/* io.npy_load(path) -> tensor */
int lt_npy_load(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "numpy.load");
  lt_frame frame = lt_begin(L, b, 1);
  return give(L, b, frame, lt_npy_read(b->c, "numpy.load", path));
}

/* io.memmap(path, dtype, offset [, sizes]) -> tensor */
int lt_memmap(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "numpy.memmap");
  lt_dtype dtype = lt_check_dtype(L, b, 2, "numpy.memmap");
  int64_t offset = luaL_checkinteger(L, 3);
  lt_sizes size = {.n = -1};
  if (!lua_isnoneornil(L, 4)) size = lt_check_sizes(L, b, 4, "numpy.memmap", "shape");
  for (int k = 0; k < size.n; k++)
    if (size.size[k] < 0)
      lt_raise(L, b, LT_EARG, "numpy.memmap: shape must not be negative: %lld in place %d",
               (long long)size.size[k], k + 1);
  lt_frame frame = lt_begin(L, b, 1);
  return give(L, b, frame,
              lt_bare_read(b->c, "numpy.memmap", path, dtype, offset, size.n, size.size));
}

/* The .npy file of the tensor at `index`, added to `out`. */
static bool write_array(lua_State *L, lt_bind *b, int index, lt_json *out, const char *who) {
  lt_ctx *c = b->c;
  lt_tensor *t = lt_check_tensor(L, b, index, who);
  lt_modes modes = c->modes;
  c->modes.grad = false;
  lt_frame frame = lt_frame_open(c);
  const lt_tensor *row = lt_contiguous(c, lt_to_device(c, t, LT_CPU_DEVICE));
  if (row != NULL) lt_npy_write(out, who, row);
  lt_frame_close(c, frame, 0, NULL);
  c->modes = modes;
  return lt_ok(c);
}

/* io.npy_save(path, tensor) -> true */
int lt_npy_save(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "numpy.save");
  lt_json *text = lt_push_text(L, b);
  if (write_array(L, b, 2, text, "numpy.save"))
    lt_file_save(b->c, "numpy.save", path, text->data, text->size);
  lt_json_free(text);
  return lt_done(L, b);
}

/* io.npz_save(path, names, tensors, deflated) -> true; names end with .npy */
int lt_npz_save(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_zip_saving z;
  const char *path = lt_check_path(L, b, "numpy.savez");
  bool deflated = lua_toboolean(L, 4);
  lua_Integer n = lt_check_members(L, b, "numpy.savez", false);
  lt_zip_saving_open(b->c, &z, "numpy.savez", path);
  lt_json text = {.c = b->c};
  for (lua_Integer k = 1; k <= n && lt_ok(b->c); k++) {
    lt_raw_geti(L, 2, k);
    lt_raw_geti(L, 3, k);
    text.size = 0;
    if (write_array(L, b, -1, &text, "numpy.savez"))
      lt_zip_saving_add(b->c, &z, lua_tostring(L, -2), text.data, text.size, deflated);
    lua_pop(L, 2);
  }
  lt_json_free(&text);
  lt_zip_saving_commit(b->c, &z);
  return lt_done(L, b);
}
