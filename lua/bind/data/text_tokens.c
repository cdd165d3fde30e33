/* lua/bind/data/text_tokens.c: files of token ids (text.h). */
#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/data/text.h"
#include "bind/io/io.h"
#include "io/mapping.h"
#include "text/token_file.h"

/* text.write_tokens(path, tokenizer, {path, ...}, dtype, separator or -1) -> how many */
static int write_tokens(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "text.write_tokens");
  lt_tokenizer *t = lt_check_tokenizer(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  lt_dtype dtype = lt_check_dtype(L, b, 4, "text.write_tokens");
  int32_t separator = (int32_t)luaL_checkinteger(L, 5);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 3);
  lt_token_file f;
  lt_note_line(b);
  bool ok = lt_token_file_open(b->c, &f, "text.write_tokens", path, dtype);
  for (lua_Integer k = 1; k <= n && ok; k++) {
    lt_raw_geti(L, 3, k);
    const char *from = lua_tostring(L, -1);
    ok = lt_token_file_add_file(b->c, &f, t, from != NULL ? from : "") &&
         (separator < 0 || lt_token_file_add(b->c, &f, &separator, 1));
    lua_pop(L, 1);
  }
  if (!lt_token_file_commit(b->c, &f) || !lt_ok(b->c)) return lt_refused(L, b);
  lua_pushinteger(L, f.count);
  return 1;
}

/* The numbers of an open file as a tensor that is in it; NULL: a failure. The file is mapped, not
   read: a corpus larger than memory is used by pages, and processes of one machine share them. The
   mapping outlives the descriptor and is released with the last tensor in it. */
static lt_tensor *map_tokens(lt_ctx *c, const char *path, int fd, int64_t size, lt_dtype dtype) {
  int64_t item = (int64_t)lt_dtype_size(dtype), n = size / item;
  if (size % item != 0 || n == 0) {
    lt_fail(c, LT_EIO, "text.read_tokens: %s: %lld bytes are not a file of %s", path,
            (long long)size, lt_dtype_name(dtype));
    return NULL;
  }
  lt_mapping *m = lt_mapping_new(c, fd, (size_t)size);
  lt_tensor *t = m != NULL ? lt_mapping_tensor(c, m, 0, dtype, 1, &n) : NULL;
  lt_mapping_release(c, m);
  if (t == NULL) lt_fail(c, LT_EIO, "text.read_tokens: cannot map %s", path);
  return t;
}

/* text.read_tokens(path, dtype) -> tensor [n] in the mapped file */
static int read_tokens(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "text.read_tokens");
  lt_dtype dtype = lt_check_dtype(L, b, 2, "text.read_tokens");
  int64_t size;
  lt_frame frame = lt_begin(L, b, 1);
  int fd = lt_file_open(b->c, "text.read_tokens", path, &size);
  lt_tensor *t = fd >= 0 ? map_tokens(b->c, path, fd, size, dtype) : NULL;
  if (fd >= 0) lt_file_close(b->c, fd);
  if (t != NULL) return lt_end(L, b, frame, 1, &t);
  lt_frame_close(b->c, frame, 0, NULL);
  return lt_refused(L, b);
}

void lt_bind_text_tokens(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"write_tokens", write_tokens}, {"read_tokens", read_tokens}, {NULL, NULL}};
  lua_getfield(L, 1, "text");
  lt_add_functions(L, b, functions);
  lua_pop(L, 1);
}
