/* lua/bind/io/zip.c: members of zip files as strings and tensors (`c.io.open_zip`).

   What the world may spoil gives nil and the reason. */
#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/types.h"
#include "io/zip.h"

#include "bind/core/tensor.h"
#include "bind/core/values.h"
#include "bind/io/io.h"
#include "bind/io/json.h"
#include "io/npy.h"
#include "io/zip_save.h"

#define ZIP_NAME "ltrain.Zip"

typedef struct open_zip {
  lt_zip file;
  lt_ctx *c; /* NULL: closed */
} open_zip;

static int zip_close(lua_State *L) {
  open_zip *o = luaL_checkudata(L, 1, ZIP_NAME);
  if (o->c != NULL) lt_zip_close(o->c, &o->file);
  o->c = NULL;
  return 0;
}

/* io.open_zip(path [, npz [, unchecked]]) -> zip, which keeps the path that its messages name; npz:
   its members may be deflated; unchecked: their bytes are not read before they are checked */
int lt_open_zip(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "load");
  bool npz = lua_toboolean(L, 2), unchecked = lua_toboolean(L, 3);
  lt_note_line(b);
  open_zip *o = lua_newuserdatauv(L, sizeof *o, 1);
  o->c = NULL;
  luaL_setmetatable(L, ZIP_NAME);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  if (!lt_zip_open(b->c, &o->file, "load", path, npz)) return lt_refused(L, b);
  o->c = b->c;
  o->file.unchecked = unchecked;
  return 1;
}

static open_zip *check_zip(lua_State *L) {
  open_zip *o = luaL_checkudata(L, 1, ZIP_NAME);
  luaL_argcheck(L, o->c != NULL, 1, "a closed file");
  return o;
}

/* zip:names() -> list */
static int zip_names(lua_State *L) {
  open_zip *o = check_zip(L);
  lua_createtable(L, 0, 0);
  for (int64_t i = 0; i < o->file.count; i++) {
    lua_pushlstring(L, o->file.members[i].name, o->file.members[i].name_size);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* The member named at index 2; raises when there is none: names() has all. */
static const lt_member *check_member(lua_State *L, const open_zip *o) {
  size_t n;
  const char *name = luaL_checklstring(L, 2, &n);
  const lt_member *m = lt_zip_find(&o->file, name, n);
  luaL_argcheck(L, m != NULL, 2, "no member of the file");
  return m;
}

/* zip:size(name) -> bytes of a member, nil: there is none */
static int zip_size(lua_State *L) {
  size_t n;
  open_zip *o = check_zip(L);
  const char *name = luaL_checklstring(L, 2, &n);
  const lt_member *m = lt_zip_find(&o->file, name, n);
  if (m != NULL)
    lua_pushinteger(L, m->size);
  else
    lua_pushnil(L);
  return 1;
}

/* zip:read(name) -> string */
static int zip_read(lua_State *L) {
  lt_bind *b = lt_enter(L);
  open_zip *o = check_zip(L);
  const lt_member *m = check_member(L, o);
  lt_json *text = lt_push_text(L, b);
  text->data = lt_zip_read(b->c, &o->file, m);
  if (text->data == NULL) return lt_refused(L, b);
  text->size = (size_t)m->size;
  text->capacity = text->size + 1;
  lua_pushlstring(L, text->data, text->size);
  lt_json_free(text);
  return 1;
}

/* zip:tensor(name, dtype) -> a tensor [n] of all bytes of a member */
static int zip_tensor(lua_State *L) {
  lt_bind *b = lt_enter(L);
  open_zip *o = check_zip(L);
  const lt_member *m = check_member(L, o);
  lt_dtype dtype = lt_check_dtype(L, b, 3, "load");
  lt_note_line(b);
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_zip_tensor(b->c, &o->file, m, dtype);
  if (t != NULL) {
    b->collect.fresh += m->size;
    return lt_end(L, b, frame, 1, &t);
  }
  lt_frame_close(b->c, frame, 0, NULL);
  return lt_refused(L, b);
}

/* zip:array(name) -> the tensor that a member in NumPy's format is. The member is read to the end
   and then parsed: its size is in the zip's directory, and .npy's own header must agree with it. */
static int zip_array(lua_State *L) {
  lt_bind *b = lt_enter(L);
  open_zip *o = check_zip(L);
  const lt_member *m = check_member(L, o);
  lt_note_line(b);
  lt_frame frame = lt_begin(L, b, 1);
  char *bytes = lt_zip_read(b->c, &o->file, m);
  lt_tensor *t =
      bytes != NULL ? lt_npy_parse(b->c, "load", o->file.path, bytes, (size_t)m->size) : NULL;
  if (bytes != NULL) lt_free(b->c, bytes, (size_t)m->size + 1);
  if (t != NULL) return lt_end(L, b, frame, 1, &t);
  lt_frame_close(b->c, frame, 0, NULL);
  return lt_refused(L, b);
}

/* zip:layout(name) -> dtype, sizes of the array that a member in NumPy's format is */
static int zip_layout(lua_State *L) {
  lt_bind *b = lt_enter(L);
  open_zip *o = check_zip(L);
  const lt_member *m = check_member(L, o);
  char head[LT_NPY_HEAD];
  size_t n = m->size < (int64_t)sizeof head ? (size_t)m->size : sizeof head;
  lt_dtype dtype;
  int ndim;
  int64_t size[LT_MAX_DIMS];
  if (!lt_zip_head(b->c, &o->file, m, head, n) ||
      !lt_npy_layout(b->c, "load", o->file.path, head, n, m->size, &dtype, &ndim, size))
    return lt_refused(L, b);
  lua_pushstring(L, lt_dtype_name(dtype));
  lua_createtable(L, ndim, 0);
  for (int k = 0; k < ndim; k++) {
    lua_pushinteger(L, size[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 2;
}

/* Whether all that a view shows is among n elements. Strides and offset come from a file (PyTorch's
   pickles) that anybody may have written: without this check a crafted one reads memory beyond the
   storage. Products and sums are checked for overflow, which would wrap a large stride into the
   allowed range. */
static bool is_within(int64_t n, int64_t offset, int ndim, const int64_t *size,
                      const int64_t *stride) {
  int64_t last = offset, part;
  bool empty = false, fits = offset >= 0;
  for (int i = 0; i < ndim; i++) {
    empty = empty || size[i] == 0;
    fits = fits && size[i] >= 0 && stride[i] >= 0 &&
           !__builtin_mul_overflow(size[i] > 0 ? size[i] - 1 : 0, stride[i], &part) &&
           !__builtin_add_overflow(last, part, &last);
  }
  return fits && (empty ? offset <= n : last < n);
}

/* io.strided(flat, offset, sizes, strides) -> a tensor that shares the memory of a flat one, offset
   and strides in its elements; nil: it is not within */
int lt_io_strided(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *flat = lt_check_tensor(L, b, 1, "load");
  int64_t offset = luaL_checkinteger(L, 2);
  lt_sizes size = lt_check_sizes(L, b, 3, "load", "size");
  lt_sizes stride = lt_check_sizes(L, b, 4, "load", "stride");
  int ndim = size.n;
  if (stride.n != ndim || !is_within(flat->numel, offset, ndim, size.size, stride.size) ||
      !lt_shape_check(b->c, ndim, size.size)) {
    lt_take_failure(b->c, NULL);
    lua_pushnil(L);
    return 1;
  }
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *t = lt_tensor_make(b->c, flat->storage, (lt_dtype)flat->dtype, ndim, size.size,
                                stride.size, flat->offset + offset);
  return lt_end(L, b, frame, 1, &t);
}

/* io.storage(x) -> a light userdata, the storage of a tensor; its offset there in elements. Two
   tensors that share a storage are saved once: the caller compares the pointers while both are
   alive. */
int lt_io_storage(lua_State *L) {
  const lt_tensor *x = lt_check_tensor(L, lt_enter(L), 1, "save");
  lua_pushlightuserdata(L, x->storage);
  lua_pushinteger(L, x->offset);
  return 2;
}

/* io.span(x, from, n) -> n elements of the storage of a tensor, on the host */
int lt_io_span(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *x = lt_check_tensor(L, b, 1, "save");
  int64_t from = luaL_checkinteger(L, 2), n = luaL_checkinteger(L, 3), one = 1;
  int64_t all = (int64_t)(x->storage->bytes / lt_item_size(x));
  luaL_argcheck(L, from >= 0 && from <= all && n >= 0 && n <= all - from, 3, "beyond the storage");
  lt_modes modes = b->c->modes;
  b->c->modes.grad = false;
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *span =
      lt_tensor_make(b->c, x->storage, (lt_dtype)x->dtype, 1, &n, &one, from);
  if (span != NULL) span = lt_to_device(b->c, span, LT_CPU_DEVICE);
  b->c->modes = modes;
  return lt_end(L, b, frame, 1, &span);
}

/* All arguments are checked before a file is begun: raising later would leave the temporary
   file. */
lua_Integer lt_check_members(lua_State *L, lt_bind *b, const char *who, bool texts) {
  lua_Integer n = lt_raw_length(L, 2);
  for (lua_Integer k = 1; k <= n; k++) {
    luaL_argcheck(L, lt_raw_geti(L, 2, k) == LUA_TSTRING, 2, "a list of names is needed");
    if (lt_raw_geti(L, 3, k) != LUA_TSTRING || !texts) {
      const lt_tensor *t = lt_check_tensor(L, b, -1, who);
      bool is_plain = t->contiguous && t->storage->device.kind == LT_CPU_DEVICE.kind;
      luaL_argcheck(L, is_plain || !texts, 3,
                    "a tensor whose elements follow each other, on the host");
    }
    lua_pop(L, 2);
  }
  return n;
}

/* io.zip_save(path, names, contents) -> true: strings, and the bytes of tensors on the host */
int lt_io_zip_save(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_zip_saving z;
  const char *path = lt_check_path(L, b, "save");
  lua_Integer n = lt_check_members(L, b, "save", true);
  lt_zip_saving_open(b->c, &z, "save", path);
  for (lua_Integer k = 1; k <= n && lt_ok(b->c); k++) {
    lt_raw_geti(L, 2, k);
    lt_raw_geti(L, 3, k);
    size_t size;
    const void *bytes = lua_tolstring(L, -1, &size);
    lt_tensor *t = bytes == NULL ? lt_to_tensor(L, b, -1) : NULL;
    if (t != NULL) size = (size_t)t->numel * lt_item_size(t);
    if (t != NULL && size > 0) bytes = lt_tensor_ptr(b->c, t, LT_READ);
    if (lt_ok(b->c))
      lt_zip_saving_add(b->c, &z, lua_tostring(L, -2), size > 0 ? bytes : "", size, false);
    lua_pop(L, 2);
  }
  lt_zip_saving_commit(b->c, &z);
  return lt_done(L, b);
}

void lt_bind_zip(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", zip_close}, {"__close", zip_close}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"names", zip_names}, {"size", zip_size},     {"read", zip_read}, {"tensor", zip_tensor},
      {"array", zip_array}, {"layout", zip_layout}, {NULL, NULL}};
  lt_new_type(L, b, ZIP_NAME, meta, methods);
}
