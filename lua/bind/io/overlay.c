/* lua/bind/io/overlay.c: the overlay over the file system (io/overlay.h), for `ltrain check`. */
#include "bind/core/openers.h"
#include "bind/core/types.h"
#include "io/overlay.h"

#include <errno.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/io/io.h"
#include "io/file.h"

/* shadow.open(folder) -> true */
static int shadow_open(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *folder = luaL_checkstring(L, 1);
  if (lt_file_may_write(b->c, "shadow", folder)) lt_overlay_open(b->c, folder);
  return lt_done(L, b);
}

static int shadow_close(lua_State *L) {
  lt_overlay_close(lt_enter(L)->c);
  return 0;
}

static int make_folders(lua_State *L) {
  (void)L;
  lt_overlay_make_folders();
  return 0;
}

static int push_errno(lua_State *L, const char *path) {
  int code = errno;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(code));
  lua_pushinteger(L, code);
  return 3;
}

/* shadow.path(path, mode) -> where that is to be opened, with a mode of io.open; as io.open without
   it */
static int shadow_path(lua_State *L) {
  const char *path = luaL_checkstring(L, 1), *mode = luaL_optstring(L, 2, "r");
  char real[LT_PATH_MAX];
  bool writes = strpbrk(mode, "wa+") != NULL;
  bool found = writes ? lt_overlay_write_path(path, mode[0] != 'w', real)
                      : lt_overlay_read_path(path, real);
  if (!found) return push_errno(L, path);
  lua_pushstring(L, real);
  return 1;
}

/* shadow.remove(path), shadow.rename(from, to): as of os */
static int shadow_remove(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (lt_overlay_unlink(path) != 0) return push_errno(L, path);
  lua_pushboolean(L, true);
  return 1;
}

static int shadow_rename(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (lt_overlay_rename(path, luaL_checkstring(L, 2)) != 0) return push_errno(L, path);
  lua_pushboolean(L, true);
  return 1;
}

void lt_bind_overlay(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"open", shadow_open},
                                       {"close", shadow_close},
                                       {"make_folders", make_folders},
                                       {"path", shadow_path},
                                       {"remove", shadow_remove},
                                       {"rename", shadow_rename},
                                       {NULL, NULL}};
  lua_getfield(L, 1, "runtime");
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_setfield(L, -2, "shadow");
  lua_pop(L, 1);
}
