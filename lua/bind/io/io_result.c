/* lua/bind/io/io_result.c: the path argument of functions of `c.io`, and their results: true, or
 * nil and the reason. */
#include "bind/core/raise.h"
#include "bind/io/io.h"

#include <string.h>

#include "base/printable.h"
#include "bind/core/values.h"

const char *lt_check_path(lua_State *L, lt_bind *b, const char *who) {
  size_t n;
  if (lua_type(L, 1) != LUA_TSTRING)
    lt_raise(L, b, LT_EARG, "%s: the path must be a string, got %s", who, lt_shown(L, 1));
  const char *path = lua_tolstring(L, 1, &n);
  if (n == 0 || strlen(path) != n) lt_raise(L, b, LT_EARG, "%s: not a path: '%s'", who, path);
  return path;
}

int lt_refused(lua_State *L, lt_bind *b) {
  if (b->c->failure.code != LT_EIO) lt_raise_failure(L, b);
  lt_failure f;
  lt_take_failure(b->c, &f);
  lua_pushnil(L);
  lt_push_printable(L, f.text, strlen(f.text), LT_KEEP_NOTHING);
  return 2;
}

int lt_refuse_network(lua_State *L, const char *who) {
  lua_pushnil(L);
  lua_pushfstring(L, "%s: this state may not use the network (LTRAIN_NETWORK)", who);
  return 2;
}

int lt_done(lua_State *L, lt_bind *b) {
  if (!lt_ok(b->c)) return lt_refused(L, b);
  lua_pushboolean(L, true);
  return 1;
}
