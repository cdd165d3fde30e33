/* lua/bind/data/images.c: file names, and batches of images read ahead, for the library's own Lua
   (`c.runtime.data`).

   Paths are one block of text and offsets, not Lua strings: reading ahead happens on other threads,
   which must not touch a lua_State, and a million strings would be walked by each collection. */
#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "data/images.h"

#include <string.h>

#include "bind/core/option_fields.h"
#include "bind/data/data.h"
#include "bind/data/image.h"

#define PATHS_NAME "ltrain.Paths"
#define FEED_NAME "ltrain.ImageFeed"

/* Paths. */

static lt_paths *check_paths(lua_State *L, int index) {
  lt_paths *p = *(lt_paths **)luaL_checkudata(L, index, PATHS_NAME);
  luaL_argcheck(L, p != NULL, index, "paths that were freed");
  return p;
}

static int paths_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_paths **box = luaL_checkudata(L, 1, PATHS_NAME);
  if (b->c != NULL) lt_release(b->c, *box);
  *box = NULL;
  return 0;
}

/* data.paths({path, ...}) -> paths, with `#` and at(k), k from 1. Two walks: the first checks the
   strings and sums their lengths, so that the block is allocated once and nothing raises while it
   is filled. */
static int paths(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer n = lt_raw_length(L, 1);
  size_t bytes = 0, length;
  for (lua_Integer k = 1; k <= n; k++) {
    lt_raw_geti(L, 1, k);
    const char *path = luaL_checklstring(L, -1, &length);
    if (length == 0 || strlen(path) != length)
      lt_raise(L, b, LT_EARG, "data.Images: path %lld is none: '%s'", (long long)k, path);
    bytes += length + 1;
    lua_pop(L, 1);
  }
  lt_paths **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, PATHS_NAME);
  *box = lt_paths_new(b->c, n, bytes);
  if (*box == NULL) lt_raise_failure(L, b);
  for (lua_Integer k = 1; k <= n; k++) {
    lt_raw_geti(L, 1, k);
    const char *path = lua_tolstring(L, -1, &length);
    lt_paths_add(*box, k - 1, path, length);
    lua_pop(L, 1);
  }
  return 1;
}

static int paths_len(lua_State *L) {
  lua_pushinteger(L, check_paths(L, 1)->n);
  return 1;
}

static int paths_at(lua_State *L) {
  const lt_paths *p = check_paths(L, 1);
  lua_Integer k = luaL_checkinteger(L, 2);
  luaL_argcheck(L, k >= 1 && k <= p->n, 2, "out of range");
  lua_pushstring(L, lt_path_at(p, k - 1));
  return 1;
}

/* Feeds. */

typedef struct feed {
  lt_image_feed *images;
  int n_views, n_columns;
  lt_column columns[LT_COLUMNS_MAX]; /* whose tensors are the user value */
  lt_order *files;                   /* likewise */
  int64_t position;                  /* samples taken so far */
} feed;

static void feed_end(lt_bind *b, feed *f) {
  if (b->c != NULL) lt_image_feed_release(b->c, f->images);
  f->images = NULL;
}

static int feed_close(lua_State *L) {
  feed_end(lua_touserdata(L, lua_upvalueindex(1)), luaL_checkudata(L, 1, FEED_NAME));
  return 0;
}

/* The table of a source at index 3. */
static lt_image_source read_source(lua_State *L, lt_bind *b) {
  lt_image_source s = {.order = lt_check_order(L, 1), .files = lt_check_order(L, 2)};
  luaL_argcheck(L, s.order->n == s.files->n, 2, "another length");
  lua_getfield(L, 3, "paths");
  s.paths = check_paths(L, -1);
  lua_getfield(L, 3, "mode");
  s.mode = lt_check_image_mode(L, lua_gettop(L));
  lua_getfield(L, 3, "views");
  s.n_views = (int)lt_length(L, -1);
  luaL_argcheck(L, s.n_views >= 1 && s.n_views <= LT_VIEWS_MAX, 3, "views");
  for (int v = 0; v < s.n_views; v++) {
    lua_geti(L, -1, v + 1);
    s.view[v] = lt_check_chain(L, lua_gettop(L));
    lua_pop(L, 1);
  }
  lua_pop(L, 3);
  s.orient = lt_field_flag(L, 3, "orient");
  s.seed = (uint64_t)lt_field_int(L, 3, "seed", 0);
  s.epoch = (uint32_t)lt_field_int(L, 3, "epoch", 0);
  s.pin = lt_field_flag(L, 5, "pin") ? lt_pinned_device(b->c) : LT_CPU_DEVICE;
  return s;
}

/* data.image_feed(order, files, {paths, views = {chain, ...}, mode, orient, seed, epoch}, tensors,
   {batch_size, ..., position, prefetch, threads, pin}) -> feed. `files` has the file of each entry
   of `order`, and so the row of the tensors. The userdata's user values keep the tensors and the
   order alive that the struct borrows. */
static int new_feed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 5);
  luaL_checktype(L, 3, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TTABLE);
  lt_image_source source = read_source(L, b);
  int64_t position = lt_field_int(L, 5, "position", 0), depth = lt_field_int(L, 5, "prefetch", 2);
  int64_t threads = lt_field_int(L, 5, "threads", b->c->threads);
  lt_batching batching = lt_read_batching(L, 5, source.order->n, position);
  feed *f = lua_newuserdatauv(L, sizeof *f, 2);
  *f = (feed){.n_views = source.n_views, .position = position, .files = source.files};
  lua_pushvalue(L, 4);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, 2);
  luaL_setmetatable(L, FEED_NAME);
  lua_pushnil(L); /* no divisors */
  f->n_columns = lt_read_columns(L, b, 4, lua_gettop(L), f->columns);
  lua_pop(L, 1);
  for (int k = 0; k < f->n_columns; k++) f->columns[k].pin = source.pin;
  if (f->n_columns == 0 || lt_columns_check(b->c, "data", f->n_columns, f->columns))
    f->images = lt_image_feed_new(b->c, &source, &batching, position, (int)depth, (int)threads);
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
  return 1;
}

/* Rows of the tensors that belong to the images. */
static bool gather(lt_ctx *c, const feed *f, const lt_span *span, lt_tensor **out) {
  for (int k = 0; k < f->n_columns && lt_ok(c); k++) {
    lt_storage *rows = lt_gather_rows(c, &f->columns[k], f->files, span->first, span->n);
    if (rows == NULL) return false;
    out[k] = lt_gathered(c, &f->columns[k], rows, span->n);
    lt_storage_release(c, rows);
  }
  return lt_ok(c);
}

/* feed:next() -> views and rows of the next batch; false when only other ranks have one; nothing at
   the end */
static int feed_next(lua_State *L) {
  lt_bind *b = lt_enter(L);
  feed *f = luaL_checkudata(L, 1, FEED_NAME);
  if (f->images == NULL) return 0;
  lt_collect_if_due(L, b);
  lt_tensor *out[LT_VIEWS_MAX + LT_COLUMNS_MAX] = {NULL};
  lt_span span = {0};
  int n = f->n_views + f->n_columns;
  lt_frame frame = lt_begin(L, b, n);
  bool ok = lt_image_feed_next(b->c, f->images, out, &span) &&
            (span.n == 0 || gather(b->c, f, &span, out + f->n_views));
  int given = lt_give_batch(L, b, frame, ok, &span, &f->position, n, out);
  if (given == 0) feed_end(b, f);
  return given;
}

/* feed:position() -> samples consumed, counting all ranks */
static int feed_position(lua_State *L) {
  lua_pushinteger(L, ((feed *)luaL_checkudata(L, 1, FEED_NAME))->position);
  return 1;
}

void lt_bind_images(lua_State *L, lt_bind *b) {
  static const luaL_Reg paths_meta[] = {{"__len", paths_len}, {"__gc", paths_gc}, {NULL, NULL}};
  static const luaL_Reg paths_methods[] = {{"at", paths_at}, {NULL, NULL}};
  static const luaL_Reg feed_meta[] = {
      {"__close", feed_close}, {"__gc", feed_close}, {NULL, NULL}};
  static const luaL_Reg feed_methods[] = {
      {"next", feed_next}, {"position", feed_position}, {NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"paths", paths}, {"image_feed", new_feed}, {NULL, NULL}};
  lt_new_type(L, b, PATHS_NAME, paths_meta, paths_methods);
  lt_new_type(L, b, FEED_NAME, feed_meta, feed_methods);
  lt_add_functions(L, b, functions);
}
