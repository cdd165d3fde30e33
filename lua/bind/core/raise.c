/* lua/bind/core/raise.c: Lua errors of failures: the line, the Module, and what lt.last_error
   gives. */
#include "bind/core/raise.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/script_lines.h"
#include "base/locale.h"
#include "bind/core/current_line.h"
#include "launch/launch.h"

/* Push the list of shapes that a text like "[2, 3] [4, 5]" names, each a table; nil for "". */
static void push_shapes(lua_State *L, const char *text) {
  if (text[0] == 0) {
    lua_pushnil(L);
    return;
  }
  lua_newtable(L);
  lua_Integer n = 0;
  for (const char *at = strchr(text, '['); at != NULL; at = strchr(at, '[')) {
    lua_newtable(L);
    at++;
    for (lua_Integer dim = 1; isdigit((unsigned char)*at); dim++) {
      char *end;
      lua_pushinteger(L, strtoll(at, &end, 10));
      lua_rawseti(L, -2, dim);
      at = end + strspn(end, ", ");
    }
    lua_rawseti(L, -2, ++n);
  }
}

/* Fill lt.last_error() from the values on the stack: path (or nil), where. */
static void keep_last_error(lua_State *L, lt_bind *b, const lt_failure *f, const char *message) {
  static const char *const code_names[] = {"ok",       "argument", "shape",   "dtype", "device",
                                           "value",    "version",  "memory",  "io",    "cancel",
                                           "callback", "ranks",    "internal"};
  lua_createtable(L, 0, 6);
  lua_pushstring(L, code_names[f->code]);
  lua_setfield(L, -2, "code");
  if (f->op[0] != 0) {
    lua_pushstring(L, f->op);
  } else {
    size_t length = strcspn(f->text, ": ");
    lua_pushlstring(L, f->text, f->text[length] == ':' ? length : 0);
  }
  lua_setfield(L, -2, "op");
  push_shapes(L, f->shapes);
  lua_setfield(L, -2, "shapes");
  lua_pushstring(L, message);
  lua_setfield(L, -2, "message");
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "path");
  size_t length;
  const char *where = lua_tolstring(L, -2, &length);
  lua_pushlstring(L, where, length > 2 ? length - 2 : 0);
  lua_setfield(L, -2, "line");
  lua_rawseti(L, LUA_REGISTRYINDEX, b->last_error_ref);
}

/* The text gets its line and its Module here, once, when it leaves C. An error that a callback
   raised passes through as the object that it was (LT_ECALLBACK), with whatever table or text the
   script had made. A deferred failure, of work on a device, has the line that issued it, not the
   line that waits. */
void lt_raise_failure(lua_State *L, lt_bind *b) {
  lt_failure f;
  if (!lt_take_failure(b->c, &f)) luaL_error(L, "internal: a call failed without a reason");
  luaL_checkstack(L, 12, "ltrain");
  if (f.code == LT_ECALLBACK) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->error_ref);
    lua_pushboolean(L, false);
    lua_rawseti(L, LUA_REGISTRYINDEX, b->error_ref);
    lua_error(L);
  }
  if (f.code == LT_ERANKS) lt_raise_ranks(L, b, f.text, 1);
  if (f.code == LT_ECANCEL && b->guard != NULL) b->guard->enter(L);
  if (f.deferred && f.line != 0) {
    char line[256];
    lua_pushnil(L); /* which module it was is not known any more */
    lua_pushfstring(L, "%s: ", lt_line_text(b->c, f.line, line, sizeof line));
  } else {
    lt_push_module_path(L);
    lt_push_where(L);
  }
  keep_last_error(L, b, &f, f.text);
  size_t first = strcspn(f.text, "\n"); /* the line that says where */
  lua_pushlstring(L, f.text, first);
  if (!lua_isnil(L, -3))
    lua_pushfstring(L, " (in %s)", lua_tostring(L, -3));
  else
    lua_pushliteral(L, "");
  lua_pushstring(L, f.text + first);
  lua_concat(L, 4);
  lua_error(L);
  for (;;) {
  }
}

/* It names its ranks and lines itself. An outcome is what counts, whatever was found first here. */
void lt_raise_ranks(lua_State *L, lt_bind *b, const char *text, int status) {
  const lt_outcome *v = lt_world_outcome(lt_world_current(b->c));
  const lt_failure f = {.code = LT_ERANKS};
  if (v != NULL) text = v->text, status = v->status;
  luaL_checkstack(L, 12, "ltrain");
  lua_pushnil(L);
  lt_push_where(L);
  keep_last_error(L, b, &f, text);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->last_error_ref);
  lua_pushinteger(L, status);
  lua_setfield(L, -2, "status");
  lua_pushstring(L, text);
  lua_error(L);
  for (;;) {
  }
}

int lt_status_of(lua_State *L, int index) {
  const lt_bind *b = lt_bind_get(L);
  int top = lua_gettop(L), status = 1;
  if (lt_is_interrupt(L, index)) {
    lua_getfield(L, index, "status"); /* that the launcher of this rank wants */
    bool known = lua_isinteger(L, -1);
    if (known) status = (int)lua_tointeger(L, -1);
    lua_settop(L, top);
    if (known) return status;
    lua_getfield(L, index, "signal"); /* that ranks agreed on */
    int number = lua_isinteger(L, -1) ? (int)lua_tointeger(L, -1) : b != NULL ? b->signal : 0;
    if (number > 0) status = LT_STATUS_OF_SIGNAL + number;
    lua_settop(L, top);
    return status;
  }
  lua_pushvalue(L, index);
  if (b != NULL && lua_rawgeti(L, LUA_REGISTRYINDEX, b->last_error_ref) == LUA_TTABLE) {
    lua_getfield(L, -1, "message");
    bool same = lua_rawequal(L, -1, top + 1);
    if (same && lua_getfield(L, top + 2, "status") == LUA_TNUMBER)
      status = (int)lua_tointeger(L, -1);
  }
  lua_settop(L, top);
  return status;
}

/* By the name of the metatable: the class is in Lua and may not have been loaded, and then no such
   object exists. */
bool lt_is_interrupt(lua_State *L, int index) {
  if (luaL_getmetafield(L, index, "__name") != LUA_TSTRING) return false;
  bool found = strcmp(lua_tostring(L, -1), "ltrain.Interrupt") == 0;
  lua_pop(L, 1);
  return found;
}

int lt_note_error(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *message = luaL_checkstring(L, 1);
  lt_failure f = {.code = LT_EARG};
  snprintf(f.text, sizeof f.text, "%s", message);
  luaL_checkstack(L, 12, "ltrain");
  lt_push_module_path(L);
  lt_push_where(L);
  keep_last_error(L, b, &f, message);
  lua_pushvalue(L, -2);
  return 2;
}

void lt_raise(lua_State *L, lt_bind *b, lt_code code, const char *format, ...) {
  char text[LT_FAILURE_TEXT];
  va_list args;
  va_start(args, format);
  lt_format_list(text, sizeof text, format, args);
  va_end(args);
  lt_fail(b->c, code, "%s", text);
  lt_raise_failure(L, b);
}
