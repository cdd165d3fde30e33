/* lua/cli/output.c: print and io.write of scripts, which clear a progress bar before they write.

   Scripts take the functions when they begin (`local print = print`), so they are there before the
   first bar is. Text without a newline at its end keeps the line: the bar comes back behind the
   newline. */
#include "cli/output.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <lauxlib.h>

#include "bind/core/state.h"
#include "bind/open.h"

#define HIDE "ltrain.hide_line"
#define DRAW "ltrain.draw_line"

static bool is_open; /* a line has begun and not ended */

static void tell(lua_State *L, const char *which) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, which) == LUA_TFUNCTION)
    lua_call(L, 0, 0);
  else
    lua_pop(L, 1);
}

static bool is_held(lua_State *L) {
  bool has_bar = lua_getfield(L, LUA_REGISTRYINDEX, HIDE) == LUA_TFUNCTION;
  lua_pop(L, 1);
  return has_bar;
}

/* The plain function, upvalue 1, with all arguments, past the bar; `ends`: its text ends a line. */
static int past(lua_State *L, bool has_bar, bool ends) {
  int n = lua_gettop(L);
  if (has_bar && !is_open) tell(L, HIDE);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, n, LUA_MULTRET);
  if (has_bar && ends) tell(L, DRAW);
  is_open = has_bar && !ends;
  return lua_gettop(L);
}

static int print(lua_State *L) { return past(L, is_held(L), true); }

/* io's default output may be a file. */
static bool is_stdout(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_IO_output"); /* as liolib.c names it */
  luaL_Stream *stream = luaL_testudata(L, -1, LUA_FILEHANDLE);
  lua_pop(L, 1);
  return stream != NULL && stream->f == stdout;
}

static int write_text(lua_State *L) {
  size_t size = 0;
  const char *last = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &size) : NULL;
  return past(L, is_held(L) && is_stdout(L), size > 0 && last[size - 1] == '\n');
}

/* hold_line([hide, draw]) */
static int hold_line(lua_State *L) {
  lua_settop(L, 2);
  lua_setfield(L, LUA_REGISTRYINDEX, DRAW);
  lua_setfield(L, LUA_REGISTRYINDEX, HIDE);
  is_open = false;
  return 0;
}

/* Puts f, with the function that is there as its upvalue, into the table on top. */
static void wrap(lua_State *L, const char *name, lua_CFunction f) {
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, f, 1);
  lua_setfield(L, -2, name);
}

void lt_output_install(lua_State *L) {
  if (!isatty(STDOUT_FILENO)) return;
  int top = lua_gettop(L);
  lua_pushglobaltable(L);
  wrap(L, "print", print);
  lua_getfield(L, -1, "io");
  wrap(L, "write", write_text);
  lt_bind_open(L, NULL);
  lua_getfield(L, -1, "runtime");
  lua_pushcfunction(L, hold_line);
  lua_setfield(L, -2, "hold_line");
  lua_settop(L, top);
}
