/* lua/bind/io/confined_files.c: files below a folder that others have written.

   For folders that somebody else may change while they are read (an output folder that a browser
   looks at): each part of the path is opened below the one before and no link is followed, so that
   a path cannot lead out of the folder, neither by `..` nor by a link that is put there in
   between. */
#include "io/confined_files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bind/io/io.h"
#include "bind/io/json.h"
#include "io/file.h"

enum { MOST_BYTES = 1 << 28 };

/* The path below the folder at index 1, at index 2. */
static const char *check_below(lua_State *L) {
  size_t n;
  const char *path = luaL_checklstring(L, 2, &n);
  luaL_argcheck(L, strlen(path) == n, 2, "a path");
  return path;
}

/* io.stat_below(folder, path) -> "file", "folder" or "other", bytes, when it was written last,
   number of the file; nothing where nothing is, or that is reached by a link */
int lt_stat_below(lua_State *L) {
  lt_bind *b = lt_enter(L);
  struct stat info;
  const char *folder = lt_check_path(L, b, "stat"), *path = check_below(L);
  if (!lt_below_stat(b->c, folder, path, &info)) return 0;
  lua_pushstring(L, S_ISREG(info.st_mode) ? "file" : S_ISDIR(info.st_mode) ? "folder" : "other");
  lua_pushinteger(L, (lua_Integer)info.st_size);
  lua_pushnumber(L, (double)info.st_mtim.tv_sec + 1e-9 * (double)info.st_mtim.tv_nsec);
  lua_pushinteger(L, (lua_Integer)info.st_ino);
  return 4;
}

/* io.read_below(folder, path, from, most) -> up to `most` bytes from `from` on, the bytes of the
   whole file, when it was written last, its number; nil and a reason. Size and date come from the
   descriptor that is read, not from the path: a file that is replaced meanwhile is answered for as
   the one that was opened. */
int lt_read_below(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *folder = lt_check_path(L, b, "read"), *path = check_below(L);
  int64_t from = luaL_checkinteger(L, 3), most = luaL_checkinteger(L, 4);
  luaL_argcheck(L, from >= 0, 3, "0 or more");
  luaL_argcheck(L, most >= 0 && most <= MOST_BYTES, 4, "up to 2^28 bytes");
  struct stat info;
  int fd = lt_below_open(b->c, "read", folder, path, &info);
  if (fd < 0) return lt_refused(L, b);
  if (!S_ISREG(info.st_mode))
    lt_fail(b->c, LT_EIO, "read: not a plain file: %s/%s", folder, path);
  int64_t n = info.st_size > from ? (int64_t)info.st_size - from : 0;
  if (n > most) n = most;
  lt_json *text = lt_push_text(L, b);
  if (lt_ok(b->c) && n > 0) {
    text->data = lt_alloc(b->c, (size_t)n);
    if (text->data != NULL) text->capacity = (size_t)n;
  }
  while (lt_ok(b->c) && (int64_t)text->size < n) {
    ssize_t got = lt_files(b->c)->pread(fd, text->data + text->size, (size_t)n - text->size,
                                        (off_t)(from + (int64_t)text->size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) lt_fail(b->c, LT_EIO, "read: cannot read %s/%s: %s", folder, path,
                         strerror(errno));
    if (got <= 0) break; /* it was cut meanwhile */
    text->size += (size_t)got;
  }
  close(fd);
  if (!lt_ok(b->c)) return lt_refused(L, b);
  lua_pushlstring(L, text->data != NULL ? text->data : "", text->size);
  lt_json_free(text);
  lua_pushinteger(L, (lua_Integer)info.st_size);
  lua_pushnumber(L, (double)info.st_mtim.tv_sec + 1e-9 * (double)info.st_mtim.tv_nsec);
  lua_pushinteger(L, (lua_Integer)info.st_ino);
  return 4;
}
