/* lua/bind/data/image.c: files of images for the library's own Lua (`c.runtime.image`).

   What the world may spoil gives nil and the reason; wrong use raises. */
#include "bind/data/image.h"

#include <string.h>

#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/io/io.h"
#include "device/device.h"
#include "image/boxes.h"
#include "io/file.h"

/* The mode named at `index`. */
lt_image_mode lt_check_image_mode(lua_State *L, int index) {
  static const char *const names[] = {"rgb", "grey", "rgba", "as_is", NULL};
  return (lt_image_mode)luaL_checkoption(L, index, NULL, names);
}

static int finish(lua_State *L, lt_bind *b, lt_picture *p) {
  if (!lt_ok(b->c)) return lt_refused(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_picture_tensor(b->c, p);
  b->collect.fresh += (int64_t)p->bytes;
  lt_picture_free(b->c, p);
  return lt_end(L, b, frame, 1, &t);
}

/* image.read(path, mode, turned by EXIF) -> tensor [C, H, W] */
static int read_image(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r = {.op = "image.read", .where = lt_check_path(L, b, "image.read")};
  r.mode = lt_check_image_mode(L, 2);
  r.orient = lua_toboolean(L, 3);
  lt_note_line(b);
  lt_picture p;
  lt_image_load(b->c, &r, &p);
  return finish(L, b, &p);
}

/* image.decode(bytes, mode, turned by EXIF) -> the same */
static int decode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n;
  const char *data = luaL_checklstring(L, 1, &n);
  lt_reading r = {.op = "image.decode", .where = "the bytes", .mode = lt_check_image_mode(L, 2)};
  r.orient = lua_toboolean(L, 3);
  lt_note_line(b);
  lt_picture p;
  lt_image_decode(b->c, &r, data, n, &p);
  return finish(L, b, &p);
}

/* image.bytes(path) -> u8 [n], all of a file */
static int bytes(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "read");
  lt_note_line(b);
  size_t n;
  char *data = lt_file_load(b->c, "read", path, (size_t)1 << 31, &n);
  if (data == NULL) return lt_refused(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_U8, 1, &(int64_t){(int64_t)n});
  if (t != NULL) memcpy(lt_data(t), data, n);
  lt_free(b->c, data, n + 1);
  return lt_end(L, b, frame, 1, &t);
}

/* Bytes that a library gave, freed also when Lua has no memory for the string. */
static int push_bytes(lua_State *L) {
  const lt_encoded *e = lua_touserdata(L, 1);
  lua_pushlstring(L, (const char *)e->bytes, e->n);
  return 1;
}

/* image.encode(tensor [C, H, W] u8 (png: or i32), "png" or "jpeg", level or quality) -> string */
static int encode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *t = lt_check_tensor(L, b, 1, "image.encode");
  bool png = strcmp(luaL_checkstring(L, 2), "png") == 0;
  int how = (int)luaL_checkinteger(L, 3);
  luaL_argcheck(L, t->ndim == 3, 1, "not an image");
  lt_note_line(b);
  lt_picture view, p = {0};
  if (!lt_picture_of(b->c, "image.write", t, &view)) lt_raise_failure(L, b);
  lt_encoded e = {0};
  if (png) {
    lt_png_encode(b->c, "image.write", &view, how, &e);
  } else if (lt_picture_interleaved(b->c, &p, LT_DEPTH_U8, view.channels, view.height,
                                    view.width)) {
    lt_picture_store(&p, &view);
    lt_jpeg_encode(b->c, "image.write", &p, how, &e);
    lt_picture_free(b->c, &p);
  }
  int status = LUA_OK;
  if (lt_ok(b->c)) {
    lua_pushcfunction(L, push_bytes);
    lua_pushlightuserdata(L, &e);
    status = lua_pcall(L, 1, 1, 0);
  }
  if (e.bytes != NULL) e.drop(e.bytes);
  if (status != LUA_OK) return lua_error(L);
  return lt_ok(b->c) ? 1 : lt_refused(L, b);
}

/* image.nms(boxes f32 [N, 4] in falling order of scores, threshold) -> i64 [K], from 0 */
static int nms(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *t = lt_check_tensor(L, b, 1, "boxes.nms");
  luaL_argcheck(L, t->ndim == 2 && t->size[1] == 4 && t->contiguous && t->dtype == LT_F32, 1,
                "not boxes");
  float most = (float)luaL_checknumber(L, 2);
  int64_t n = t->size[0];
  lt_note_line(b);
  if (!lt_check_data(b->c, "boxes.nms", t)) lt_raise_failure(L, b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *out = NULL;
  bool *keep = lt_alloc(b->c, (size_t)n);
  int64_t kept = keep != NULL ? lt_boxes_suppress(lt_data(t), n, most, keep) : 0;
  if (lt_ok(b->c)) out = lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_I64, 1, &kept);
  int64_t *ids = out != NULL ? lt_data(out) : NULL;
  for (int64_t i = 0; i < n && ids != NULL; i++)
    if (keep[i]) *ids++ = i;
  lt_free(b->c, keep, (size_t)n);
  return lt_end(L, b, frame, 1, &out);
}

void lt_bind_image(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"bytes", bytes},   {"read", read_image},
                                       {"decode", decode}, {"encode", encode},
                                       {"nms", nms},       {NULL, NULL}};
  lua_getfield(L, 1, "runtime");
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lt_bind_image_chain(L, b);
  lua_setfield(L, -2, "image");
  lua_pop(L, 1);
}
