/* lua/bind/io/safetensors.c: tables of tensors and safetensors files. */
#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "bind/core/tensor.h"
#include "bind/core/values.h"
#include "bind/io/io.h"
#include "io/async_save.h"

static lt_tensor *tensor_at(lua_State *L, lt_bind *b, const char *who, const char *name) {
  lt_tensor *t = lt_to_tensor(L, b, -1);
  if (t == NULL)
    lt_raise(L, b, LT_EARG, "%s: '%s' must be a tensor, got %s", who, name, lt_shown(L, -1));
  return t;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const lt_named_tensor *)a)->name, ((const lt_named_tensor *)b)->name);
}

/* The string key at `index`, which stays in its table. */
static const char *check_name(lua_State *L, lt_bind *b, int index, const char *who) {
  size_t n;
  if (lua_type(L, index) != LUA_TSTRING)
    lt_raise(L, b, LT_EARG, "%s: names must be strings, got %s", who, lt_shown(L, index));
  const char *name = lua_tolstring(L, index, &n);
  if (strlen(name) != n) lt_raise(L, b, LT_EARG, "%s: the name '%s' has a zero byte", who, name);
  return name;
}

static int64_t count_pairs(lua_State *L, int index) {
  int64_t n = 0;
  for (lua_pushnil(L); lt_raw_next(L, index) != 0; lua_pop(L, 1)) n++;
  return n;
}

/* Is `name` a key of the table at index 4 (nil: of none)? */
static bool is_alias(lua_State *L, const char *name) {
  if (lua_isnoneornil(L, 4)) return false;
  bool is = lua_getfield(L, 4, name) != LUA_TNIL;
  lua_pop(L, 1);
  return is;
}

/* The tensors of the table at index 2 in memory of Lua's that is pushed, sorted by name, aliases
   last: of names that share a tensor the first gets its bytes. Sorted names make files
   reproducible: the same tensors give the same bytes, whatever order Lua's table has. */
lt_named_tensor *lt_read_named_tensors(lua_State *L, lt_bind *b, int64_t *n) {
  static const char who[] = "save_safetensors";
  luaL_checktype(L, 2, LUA_TTABLE);
  *n = count_pairs(L, 2);
  lt_named_tensor *list = lua_newuserdatauv(L, (size_t)*n * sizeof *list + 1, 0);
  int64_t i = 0;
  for (lua_pushnil(L); lt_raw_next(L, 2) != 0; lua_pop(L, 1)) {
    const char *name = check_name(L, b, -2, who);
    list[i++] = (lt_named_tensor){.name = name, .tensor = tensor_at(L, b, who, name)};
  }
  int64_t kept = *n;
  for (i = 0; i < kept; i++) {
    if (!is_alias(L, list[i].name)) continue;
    lt_named_tensor alias = list[i];
    list[i--] = list[--kept];
    list[kept] = alias;
  }
  if (kept > 1) qsort(list, (size_t)kept, sizeof *list, by_name);
  if (*n - kept > 1) qsort(list + kept, (size_t)(*n - kept), sizeof *list, by_name);
  return list;
}

lt_metadata *lt_read_file_metadata(lua_State *L, lt_bind *b, int64_t *n) {
  static const char who[] = "save_safetensors";
  *n = 0;
  if (lua_isnoneornil(L, 3)) return NULL;
  luaL_checktype(L, 3, LUA_TTABLE);
  *n = count_pairs(L, 3);
  lt_metadata *list = lua_newuserdatauv(L, (size_t)*n * sizeof *list + 1, 0);
  int64_t i = 0;
  for (lua_pushnil(L); lt_raw_next(L, 3) != 0; lua_pop(L, 1)) {
    lt_metadata m = {.key = check_name(L, b, -2, who)};
    if (lua_type(L, -1) != LUA_TSTRING)
      lt_raise(L, b, LT_EARG, "%s: metadata '%s' must be a string, got %s", who, m.key,
               lt_shown(L, -1));
    m.value = lua_tolstring(L, -1, &m.value_size);
    list[i++] = m;
  }
  return list;
}

/* Grad mode is off: making a tensor contiguous must not be recorded. The names are strings of the
   tables at indices 2 and 3, which stay there for the length of the call. */
int lt_save_safetensors(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 4);
  if (!lua_isnil(L, 4)) luaL_checktype(L, 4, LUA_TTABLE);
  const char *path = lt_check_path(L, b, "save");
  int64_t n, n_metadata;
  lt_named_tensor *tensors = lt_read_named_tensors(L, b, &n);
  lt_metadata *metadata = lt_read_file_metadata(L, b, &n_metadata);
  lt_modes modes = b->c->modes;
  b->c->modes.grad = false;
  lt_frame frame = lt_begin(L, b, 0);
  lt_safetensors_save(b->c, "save", path, n, tensors, n_metadata, metadata, lt_contiguous);
  lt_frame_close(b->c, frame, 0, NULL);
  b->c->modes = modes;
  return lt_done(L, b);
}

/* The tensor that the function at index 5 returns for a name, in the open frame. Called from C in
   the middle of writing, hence protected: an error of the function becomes the failure of the save,
   whose temporary file is then removed. */
static lt_tensor *fill_by_call(lt_ctx *c, void *ud, const char *name) {
  lt_bind *b = ud;
  lua_State *L = b->L;
  lua_pushvalue(L, 5);
  lua_pushstring(L, name);
  if (!lt_callback(b, "save", 1, 1)) return NULL;
  lt_tensor *t = lt_to_tensor(L, b, -1);
  if (t != NULL) lt_frame_add(c, lt_retain(t));
  else lt_fail(c, LT_EARG, "save: '%.100s': no tensor was returned", name);
  lua_pop(L, 1);
  return t;
}

/* io.stream_safetensors(path, {name = tensor}, metadata, aliases, fn) -> true: as save_safetensors,
   of what fn(name) returns when it is written: of the given tensors shapes and dtypes count. */
int lt_stream_safetensors(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 5);
  if (!lua_isnil(L, 4)) luaL_checktype(L, 4, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TFUNCTION);
  const char *path = lt_check_path(L, b, "save");
  int64_t n, n_metadata;
  lt_named_tensor *tensors = lt_read_named_tensors(L, b, &n);
  lt_metadata *metadata = lt_read_file_metadata(L, b, &n_metadata);
  luaL_checkstack(L, 8, "save");
  lt_frame frame = lt_begin(L, b, 0);
  lt_safetensors_stream(b->c, "save", path, n, tensors, n_metadata, metadata, fill_by_call, b);
  lt_frame_close(b->c, frame, 0, NULL);
  return lt_done(L, b);
}

/* A file on its way; its user value keeps the texts. */
#define SAVING_NAME "ltrain.Saving"

static lt_async_save **check_saving(lua_State *L, int arg) {
  return luaL_checkudata(L, arg, SAVING_NAME);
}

/* saving:done() -> whether wait would not wait */
static int saving_done(lua_State *L) {
  lt_enter(L);
  lt_async_save **l = check_saving(L, 1);
  lua_pushboolean(L, *l == NULL || lt_async_save_done(*l));
  return 1;
}

/* saving:wait() -> true when the file is there, or nil and why it is not */
static int saving_wait(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_async_save **box = check_saving(L, 1), *l = *box;
  *box = NULL;
  if (l != NULL) lt_async_save_end(b->c, l);
  return lt_done(L, b);
}

/* A saving that nobody waited for is ended here: the writer thread uses memory of this state, so
   that it must be through before the state is. */
static int saving_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_async_save **box = check_saving(L, 1);
  lt_failure f;
  if (*box != NULL && b->c != NULL && !lt_async_save_end(b->c, *box)) lt_take_failure(b->c, &f);
  *box = NULL;
  return 0;
}

/* io.save_later(path, tensors, metadata, aliases, mark[, before[, block]]) -> saving: as
   save_safetensors, of the tensors as they are now; checksums of those that are not aliases in
   place of the JSON text `mark` in the metadata (with `block`, lists of those of so many bytes);
   written when the saving `before` is. */
int lt_async_safetensors_save(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 7);
  if (!lua_isnil(L, 4)) luaL_checktype(L, 4, LUA_TTABLE);
  lt_async_file file = {.op = "save", .path = lt_check_path(L, b, "save"),
                        .mark = luaL_checkstring(L, 5), .dense = lt_contiguous,
                        .before = lua_isnil(L, 6) ? NULL : *check_saving(L, 6),
                        .block = (size_t)luaL_optinteger(L, 7, 0)};
  file.tensors = lt_read_named_tensors(L, b, &file.n);
  file.metadata = lt_read_file_metadata(L, b, &file.n_metadata);
  file.n_sums = file.n - (lua_isnil(L, 4) ? 0 : count_pairs(L, 4));
  lt_async_save **box = lua_newuserdatauv(L, sizeof *box, 5);
  *box = NULL;
  luaL_setmetatable(L, SAVING_NAME);
  for (int k = 1; k <= 5; k++) {
    lua_pushvalue(L, k);
    lua_setiuservalue(L, -2, k);
  }
  lt_modes modes = b->c->modes;
  b->c->modes.grad = false;
  lt_note_line(b);
  *box = lt_async_save_begin(b->c, &file);
  b->c->modes = modes;
  if (*box == NULL) return lt_refused(L, b);
  return 1;
}

#define OPEN_FILE_NAME "ltrain.OpenFile"

typedef struct open_file {
  lt_safetensors file;
  lt_ctx *c;
} open_file;

static int open_file_gc(lua_State *L) {
  open_file *o = luaL_checkudata(L, 1, OPEN_FILE_NAME);
  if (o->c != NULL) lt_safetensors_close(o->c, &o->file);
  o->c = NULL;
  return 0;
}

static open_file *push_open_file(lua_State *L) {
  open_file *o = lua_newuserdatauv(L, sizeof *o, 1);
  o->c = NULL;
  luaL_setmetatable(L, OPEN_FILE_NAME);
  return o;
}

/* Push tensor number i of the file; false with a failure. The userdata comes first, empty:
   allocating it may raise, and then no tensor is lost. What was read counts as fresh memory for the
   collector, which sees 40 bytes of a userdata and not the tensor behind it. */
static bool push_stored(lua_State *L, lt_bind *b, open_file *o, int64_t i) {
  lt_boxed *box = lt_push_empty(L, b);
  lt_frame frame = lt_frame_open(b->c);
  lt_tensor *t = lt_safetensors_read(b->c, &o->file, i);
  if (t != NULL) box->t = lt_retain(t);
  lt_frame_close(b->c, frame, 0, NULL);
  if (t != NULL) b->collect.fresh += t->numel * (int64_t)lt_item_size(t);
  return t != NULL;
}

/* Is `name` among the names at index 2, a table name = true, or nil for all? */
static bool is_wanted(lua_State *L, const char *name) {
  if (lua_isnoneornil(L, 2)) return true;
  lua_getfield(L, 2, name);
  bool wanted = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return wanted;
}

/* Fill the table on top of the stack. A tensor that has aliases is one userdata. Order of the file,
   one tensor at a time: reading is sequential and the peak is the tensors themselves. */
static bool push_tensors(lua_State *L, lt_bind *b, open_file *o) {
  lt_safetensors *s = &o->file;
  for (int64_t i = 0; i < s->count; i++) {
    if (!is_wanted(L, s->stored[i].name)) continue;
    if (!push_stored(L, b, o, i)) return false;
    lua_setfield(L, -2, s->stored[i].name);
  }
  for (int64_t i = 0; i < s->n_aliases; i++) {
    if (!is_wanted(L, s->aliases[i].name)) continue;
    const char *kept = s->stored[s->aliases[i].stored].name;
    if (lua_getfield(L, -1, kept) == LUA_TNIL) {
      lua_pop(L, 1);
      if (!push_stored(L, b, o, s->aliases[i].stored)) return false;
    }
    lua_setfield(L, -2, s->aliases[i].name);
  }
  return true;
}

static void push_metadata(lua_State *L, const lt_safetensors *s) {
  lua_newtable(L);
  const char *key;
  json_t *value, *metadata = (json_t *)(uintptr_t)s->metadata;
  json_object_foreach(metadata, key, value) {
    if (strcmp(key, LT_ALIASES_KEY) == 0) continue;
    lua_pushlstring(L, json_string_value(value), json_string_length(value));
    lua_setfield(L, -2, key);
  }
}

/* The file at index 1, or with the integers at `within` and behind it a part of one. */
static bool open_at(lua_State *L, lt_bind *b, open_file *o, const char *path, int within) {
  bool ok = lua_isnil(L, within)
                ? lt_safetensors_open(b->c, &o->file, "load", path)
                : lt_safetensors_open_within(b->c, &o->file, "load", path, lua_tointeger(L, within),
                                             lua_tointeger(L, within + 1));
  if (ok) o->c = b->c;
  return ok;
}

/* A dtype that this library lacks is the file's fault here, and comes back as a reason;
   open_safetensors shows such tensors and reads the others. */
int lt_load_safetensors(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 4);
  const char *path = lt_check_path(L, b, "load");
  if (!lua_isnil(L, 2)) luaL_checktype(L, 2, LUA_TTABLE);
  lt_note_line(b);
  open_file *o = push_open_file(L);
  if (!open_at(L, b, o, path, 3)) return lt_refused(L, b);
  lua_newtable(L);
  bool ok = push_tensors(L, b, o);
  if (ok) push_metadata(L, &o->file);
  lt_safetensors_close(b->c, &o->file);
  o->c = NULL;
  if (ok) return 2;
  if (b->c->failure.code == LT_EDTYPE)
    b->c->failure.code = LT_EIO; /* the file's, not the caller's */
  return lt_refused(L, b);
}

/* io.open_safetensors(path [, start, size]) -> file, whose header is checked; nil and the reason.
   Its path is kept as its user value. */
int lt_open_safetensors(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 3);
  const char *path = lt_check_path(L, b, "load");
  lt_note_line(b);
  open_file *o = push_open_file(L);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  if (!open_at(L, b, o, path, 2)) return lt_refused(L, b);
  return 1;
}

int lt_crc32_of(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *t = lt_check_tensor(L, b, 1, "crc32");
  uint32_t crc = 0;
  lt_modes modes = b->c->modes;
  b->c->modes.grad = false;
  lt_frame frame = lt_begin(L, b, 0);
  t = lt_contiguous(b->c, t);
  if (t != NULL) lt_tensor_crc32(b->c, t, &crc);
  b->c->modes = modes;
  lt_end_call(L, b, frame);
  lua_pushinteger(L, (lua_Integer)crc);
  return 1;
}

/* zlib's crc32_combine: the checksum of two parts from those of each and the length of the second,
   in O(log length): parts that ranks or threads have summed need not be read again. */
int lt_crc32_join(lua_State *L) {
  lt_enter(L);
  uLong a = (uLong)luaL_checkinteger(L, 1), second = (uLong)luaL_checkinteger(L, 2);
  lua_pushinteger(L, (lua_Integer)crc32_combine(a, second, (z_off_t)luaL_checkinteger(L, 3)));
  return 1;
}

static open_file *check_open(lua_State *L) {
  open_file *o = luaL_checkudata(L, 1, OPEN_FILE_NAME);
  if (o->c == NULL) luaL_error(L, "the file is closed");
  return o;
}

/* file:close() */
static int open_file_close(lua_State *L) {
  lt_enter(L);
  return open_file_gc(L);
}

/* file:tensors() -> {name = {shape =, dtype = (false: ltrain lacks it), index = for read}} */
static int open_file_tensors(lua_State *L) {
  lt_enter(L);
  open_file *o = check_open(L);
  lua_createtable(L, 0, (int)o->file.count);
  for (int64_t i = 0; i < o->file.count; i++) {
    const lt_stored *t = &o->file.stored[i];
    lt_dtype dtype = lt_stored_dtype(t);
    lua_createtable(L, 0, 3);
    lua_createtable(L, t->ndim, 0);
    for (int k = 0; k < t->ndim; k++) {
      lua_pushinteger(L, t->size[k]);
      lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "shape");
    if (dtype == LT_DTYPE_NONE) lua_pushboolean(L, 0);
    else lua_pushstring(L, lt_dtype_row(dtype)->name);
    lua_setfield(L, -2, "dtype");
    lua_pushinteger(L, i);
    lua_setfield(L, -2, "index");
    lua_setfield(L, -2, t->name);
  }
  for (int64_t i = 0; i < o->file.n_aliases; i++) {
    lua_getfield(L, -1, o->file.stored[o->file.aliases[i].stored].name);
    lua_setfield(L, -2, o->file.aliases[i].name);
  }
  return 1;
}

static int open_file_metadata(lua_State *L) {
  lt_enter(L);
  push_metadata(L, &check_open(L)->file);
  return 1;
}

/* file:read(index, from, tensor) -> the tensor, all of it read now; nil and the reason */
static int read_into(lua_State *L, lt_bind *b, open_file *o, int64_t i, int64_t from,
                     lt_tensor *into) {
  bool fits = into->contiguous && into->dtype == (int8_t)lt_stored_dtype(&o->file.stored[i]) &&
              lt_device_table(b->c, into->storage->device)->host_memory;
  luaL_argcheck(L, fits, 4, "a contiguous tensor of the host, of the dtype in the file");
  lt_frame frame = lt_begin(L, b, 0);
  bool ok = lt_safetensors_read_into(b->c, &o->file, i, from, into);
  lt_frame_close(b->c, frame, 0, NULL);
  if (!ok) return lt_refused(L, b);
  lua_settop(L, 4);
  return 1;
}

/* file:read(index, from, n) -> tensor [n], read now; nil and the reason */
static int open_file_read(lua_State *L) {
  lt_bind *b = lt_enter(L);
  open_file *o = check_open(L);
  lua_Integer i = luaL_checkinteger(L, 2), from = luaL_checkinteger(L, 3);
  luaL_argcheck(L, i >= 0 && i < o->file.count, 2, "no tensor has this index");
  lt_note_line(b);
  lt_tensor *into = lt_to_tensor(L, b, 4);
  if (into != NULL) return read_into(L, b, o, i, from, into);
  lua_Integer n = luaL_checkinteger(L, 4);
  lt_boxed *box = lt_push_empty(L, b);
  lt_frame frame = lt_frame_open(b->c);
  lt_tensor *t = lt_safetensors_read_range(b->c, &o->file, i, from, n);
  if (t != NULL) box->t = lt_retain(t);
  lt_frame_close(b->c, frame, 0, NULL);
  if (t == NULL) return lt_refused(L, b);
  b->collect.fresh += t->numel * (int64_t)lt_item_size(t);
  return 1;
}

void lt_bind_safetensors(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", open_file_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"close", open_file_close},
                                     {"tensors", open_file_tensors},
                                     {"metadata", open_file_metadata},
                                     {"read", open_file_read},
                                     {NULL, NULL}};
  static const luaL_Reg saving_meta[] = {{"__gc", saving_gc}, {NULL, NULL}};
  static const luaL_Reg saving[] = {{"done", saving_done}, {"wait", saving_wait}, {NULL, NULL}};
  lt_new_type(L, b, OPEN_FILE_NAME, meta, methods);
  lt_new_type(L, b, SAVING_NAME, saving_meta, saving);
}
