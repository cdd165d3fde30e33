/* lua/cli/report.c: errors of scripts, told as `lua` tells them, without the library's frames. */
#include "cli/report.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/dist.h"
#include "cli/notes.h"
#include "cli/signals.h"

void lt_complain(const char *text) {
  fflush(stdout);
  fprintf(stderr, "ltrain: %s\n", text);
}

/* Replace the traceback on top by one without our frames: stdlib/cli/traceback.lua. Any failure of
   that leaves it as it is. */
static void trim(lua_State *L, int message) {
  int top = lua_gettop(L);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "ltrain.cli.traceback");
  if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_istable(L, -1)) {
    lua_getfield(L, -1, "trim");
    lua_pushvalue(L, message);
    lua_pushvalue(L, top);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING) lua_replace(L, top);
  }
  lua_settop(L, top);
}

/* Ranks that a launcher started hear of the error on top before anything unwinds. */
static void tell_ranks(lua_State *L) {
  lt_bind *b = lt_bind_get(L);
  if (b != NULL) lt_dist_tell(L, b);
}

/* The world that this process is part of; NULL for none. */
static lt_world *world_of(lua_State *L) {
  const lt_bind *b = lt_bind_get(L);
  return b != NULL && b->c != NULL ? lt_world_current(b->c) : NULL;
}

/* Message handler: text, whether a signal ended the script, exit status. */
static int describe(lua_State *L) {
  lua_settop(L, 1);
  bool stopped = lt_is_interrupt(L, 1) || lt_signals_stopped();
  tell_ranks(L);
  int status = lt_status_of(L, 1);
  if (lua_type(L, 1) != LUA_TSTRING) {
    bool speaks = luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL; /* for itself */
    if (speaks) lua_pop(L, 1);
    lua_pushliteral(L, "");
    if (!stopped && !speaks) lt_push_where(L);
    lt_push_error_text(L, 1);
    lua_concat(L, lua_gettop(L) - 1);
    lua_replace(L, 1);
  } else if (!stopped) {
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
    trim(L, 1);
    lua_replace(L, 1);
  }
  lua_createtable(L, 0, 2);
  lua_insert(L, 1);
  lua_settop(L, 2);
  lua_setfield(L, 1, "text");
  lua_pushboolean(L, stopped);
  lua_setfield(L, 1, "stopped");
  lua_pushinteger(L, status);
  lua_setfield(L, 1, "status");
  return 1;
}

int lt_report_load(lua_State *L, int status) {
  if (status == LUA_OK) return LT_EXIT_DONE;
  lt_complain(lua_tostring(L, -1));
  lua_pop(L, 1);
  return LT_EXIT_ERROR;
}

int lt_call_script(lua_State *L, int n_args, int n_results) {
  int base = lua_gettop(L) - n_args;
  lua_pushcfunction(L, describe);
  lua_insert(L, base);
  int status = lua_pcall(L, n_args, n_results, base);
  lua_remove(L, base);
  if (status == LUA_OK) return LT_EXIT_DONE;
  lt_world *w = world_of(L);
  const lt_verdict *v = lt_world_verdict(w);
  if (v != NULL) { /* of several ranks one tells, what came first */
    if (lt_world_may_speak(w)) lt_complain(v->text);
    lua_pop(L, 1);
    return v->status;
  }
  bool stopped = false;
  status = LT_EXIT_ERROR;
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "stopped");
    stopped = lua_toboolean(L, -1);
    lua_getfield(L, -2, "status");
    status = (int)lua_tointeger(L, -1);
    lua_pop(L, 2);
    lua_getfield(L, -1, "text");
    lua_remove(L, -2);
  }
  const char *text = lua_tostring(L, -1); /* no table: out of memory, or in the handler */
  lt_complain(text != NULL ? text : "an error without a text");
  lua_pop(L, 1);
  int asked = lt_signals_status() != 0 ? lt_signals_status() : lt_notes_status();
  return stopped && asked != 0 ? asked : status;
}
