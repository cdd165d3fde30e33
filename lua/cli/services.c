/* lua/cli/services.c: output, scripts, signals and lines for stdlib/cli. */
#include "cli/services.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "apps/apps.h"
#include "base/printable.h"
#include "base/threads.h"
#include "bind/core/current_line.h"
#include "bind/core/state.h"
#include "bind/core/values.h"
#include "bind/debugger/debugger.h"
#include "bind/open.h"
#include "cli/deferred_signals.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "cli/stack.h"
#include "io/file.h"
#include "ltrain/version.h"

/* Texts have names and values of files in them: no terminal acts on those. */
static int write_to(lua_State *L, FILE *file, lt_printable_keep keep) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  lt_push_printable(L, text, length, (int)keep);
  text = lua_tolstring(L, -1, &length);
  fwrite(text, 1, length, file);
  return 0;
}

/* write(text): standard output, at once */
static int write_out(lua_State *L) {
  write_to(L, stdout, LT_KEEP_LINES);
  fflush(stdout);
  return 0;
}

/* paint(text): the same of a text with colours */
static int paint(lua_State *L) {
  write_to(L, stdout, LT_KEEP_COLOURS);
  fflush(stdout);
  return 0;
}

/* complain(text): standard error, after what was printed */
static int complain(lua_State *L) {
  fflush(stdout);
  return write_to(L, stderr, LT_KEEP_LINES);
}

void lt_prepend_script_folder(lua_State *L, const char *script) {
  const char *slash = strrchr(script, '/');
  int top = lua_gettop(L);
  if (lua_getglobal(L, "package") == LUA_TTABLE && lua_getfield(L, -1, "path") == LUA_TSTRING) {
    if (slash == NULL)
      lua_pushliteral(L, ".");
    else
      lua_pushlstring(L, script, (size_t)(slash == script ? 1 : slash - script));
    const char *folder = lua_tostring(L, -1);
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", folder, folder, lua_tostring(L, -2));
    lua_setfield(L, top + 1, "path");
  }
  lua_settop(L, top);
}

/* load(path) -> chunk | nil, message[, true when there is no such file] */
static int load_script(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  bool is_stdin = strcmp(path, "-") == 0, absent = !is_stdin && access(path, R_OK) != 0;
  if (absent || (!is_stdin && lt_file_may_wait(path))) {
    lua_pushnil(L);
    lua_pushfstring(L, absent ? "cannot open %s: %s" : "not a plain file: %s", path,
                    strerror(errno));
    lua_pushboolean(L, absent);
    return 3;
  }
  if (luaL_loadfile(L, is_stdin ? NULL : path) != LUA_OK) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  if (!is_stdin) lt_prepend_script_folder(L, path);
  return 1;
}

/* run(chunk, ...) -> its results. Called from here the chunk is "main chunk" in tracebacks. */
static int run_chunk(lua_State *L) {
  lt_set_script(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

static int traceback(lua_State *L) {
  lua_State *thread = lua_tothread(L, 3);
  lt_push_traceback(L, thread != NULL ? thread : L, luaL_checkstring(L, 1),
                    (int)luaL_checkinteger(L, 2));
  return 1;
}

/* signal() -> 130, 143 (138: see deferred_signals.h) or nil */
static int signal_status(lua_State *L) {
  int status = lt_signals_status() != 0 ? lt_signals_status() : lt_notes_status();
  if (status == 0) return 0;
  lua_pushinteger(L, status);
  return 1;
}

static int stopped(lua_State *L) {
  lua_pushboolean(L, lt_signals_stopped());
  return 1;
}

/* set_threads(n) -> the number that is used: at most LT_MAX_THREADS */
static int set_threads(lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 1);
  lt_bind *b = lt_bind_get(L);
  if (n > LT_MAX_THREADS) n = LT_MAX_THREADS;
  if (b != NULL && b->c != NULL) b->c->threads = (int)n;
  lua_pushinteger(L, n);
  return 1;
}

/* upvalue(fn, i) -> name, value; nothing when there is none */
static int upvalue(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  const char *name = lua_getupvalue(L, 1, (int)luaL_checkinteger(L, 2));
  if (name == NULL) return 0;
  lua_pushstring(L, name);
  lua_insert(L, -2);
  return 2;
}

void lt_push_services(lua_State *L) {
  static const luaL_Reg functions[] = {{"write", write_out},         {"complain", complain},
                                       {"paint", paint},
                                       {"load", load_script},
                                       {"run", run_chunk},        {"traceback", traceback},
                                       {"signal", signal_status},    {"stopped", stopped},
                                       {"set_threads", set_threads}, {"upvalue", upvalue},
                                       {NULL, NULL}};
  luaL_newlib(L, functions);
  lt_notes_push(L);
  lt_apps_add_services(L);
  lua_pushboolean(L, isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
  lua_setfield(L, -2, "tty");
  lua_getfield(L, LUA_REGISTRYINDEX, LT_LAST_STACK);
  lua_setfield(L, -2, "last_stack");
  lua_getfield(L, LUA_REGISTRYINDEX, LT_RETURNED);
  lua_setfield(L, -2, "returned");
  lua_pushglobaltable(L);
  lua_setfield(L, -2, "globals");
  lua_pushliteral(L, LT_VERSION);
  lua_setfield(L, -2, "version");
  lua_pushliteral(L, LUA_RELEASE);
  lua_setfield(L, -2, "lua_version");
}

static int services(lua_State *L) {
  lt_push_services(L);
  return 1;
}

void lt_offer_services(lua_State *L) {
  lt_offer_frames(L);
  lt_bind_open(L, NULL);
  lua_getfield(L, -1, "runtime");
  lua_pushcfunction(L, services);
  lua_setfield(L, -2, "services");
  lua_pop(L, 2);
}
