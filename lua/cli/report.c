/* lua/cli/report.c: errors of scripts, printed as `lua` prints them, without the library's
   frames. */
#include "cli/report.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/printable.h"
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/dist/dist.h"
#include "cli/deferred_signals.h"
#include "cli/signals.h"
#include "cli/stack.h"

/* A line of which no terminal acts on the names and values. */
static void print_line(const char *start, const char *text) {
  size_t n = strlen(text), size = lt_make_printable(NULL, 0, text, n, LT_KEEP_LINES);
  char *line = malloc(size + 1);
  if (line != NULL) lt_make_printable(line, size + 1, text, n, LT_KEEP_LINES);
  fprintf(stderr, "%s%s\n", start, line != NULL ? line : "not enough memory for a message");
  free(line);
}

void lt_complain(const char *text) {
  fflush(stdout);
  print_line("ltrain: ", text);
}

/* Lua's warnings: they come in pieces, and a single "@on" or "@off" is for us. */
typedef struct warnings {
  bool on;
  size_t length;
  char text[1024];
} warnings;

static void warn(void *ud, const char *text, int goes_on) {
  warnings *w = ud;
  if (w->length == 0 && !goes_on && text[0] == '@') {
    if (strcmp(text, "@on") == 0 || strcmp(text, "@off") == 0) w->on = text[2] == 'n';
    return;
  }
  int n = snprintf(w->text + w->length, sizeof w->text - w->length, "%s", text);
  w->length += (size_t)n < sizeof w->text - w->length ? (size_t)n : sizeof w->text - w->length - 1;
  if (goes_on) return;
  bool lost = strncmp(w->text, "error in ", 9) == 0; /* of a __gc: nobody else hears of it */
  if (w->on || lost) print_line("ltrain: warning: ", w->text);
  w->length = 0;
}

void lt_report_warnings(lua_State *L) {
  warnings *w = lua_newuserdatauv(L, sizeof *w, 0);
  *w = (warnings){.on = false};
  lua_setfield(L, LUA_REGISTRYINDEX, "ltrain.warnings");
  lua_setwarnf(L, warn, w);
}

/* Replace the traceback on top by what the user sees of it: stdlib/core/traceback.lua; false where
   that failed, as at the end of the stack. */
static bool trim(lua_State *L, int message) {
  int top = lua_gettop(L);
  bool done = false;
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.core.traceback");
  if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_istable(L, -1)) {
    lua_getfield(L, -1, "show");
    lua_pushvalue(L, message);
    lua_pushvalue(L, top);
    done = lua_pcall(L, 2, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING;
    if (done) lua_replace(L, top);
  }
  lua_settop(L, top);
  return done;
}

/* Report the error on top to the ranks that a launcher started, before anything unwinds. */
static void report_to_ranks(lua_State *L) {
  lt_bind *b = lt_bind_get(L);
  if (b != NULL) lt_dist_report(L, b);
}

/* The world that this process is part of; NULL for none. */
static lt_world *world_of(lua_State *L) {
  const lt_bind *b = lt_bind_get(L);
  return b != NULL && b->c != NULL ? lt_world_current(b->c) : NULL;
}

/* What is reported of an error. */
enum { REPORT_VALUE = 1, REPORT_TEXT, REPORT_STOPPED, REPORT_STATUS, REPORT_RAW };

/* Push the text of the error at 1; with a traceback where `level` is not 0. False where that has
   all its frames still. */
static bool push_text(lua_State *L, bool stopped, int level) {
  if (lua_type(L, 1) != LUA_TSTRING) {
    bool has_text = luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL;
    if (has_text) lua_pop(L, 1);
    int top = lua_gettop(L);
    lua_pushliteral(L, "");
    if (!stopped && !has_text) lt_push_where(L);
    lt_push_error_text(L, 1);
    lua_concat(L, lua_gettop(L) - top);
  } else if (!stopped && level > 0) {
    lt_push_traceback(L, L, lua_tostring(L, 1), level);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, LT_LAST_STACK);
    return trim(L, 1);
  } else {
    lua_pushvalue(L, 1);
  }
  return true;
}

/* Fill the table at 2 with what is reported of the error at 1. */
static void describe(lua_State *L, int level) {
  bool stopped = lt_is_interrupt(L, 1) || lt_signals_stopped();
  int status = lt_status_of(L, 1);
  bool trimmed = push_text(L, stopped, level);
  lua_rawseti(L, 2, REPORT_TEXT);
  lua_pushboolean(L, !trimmed);
  lua_rawseti(L, 2, REPORT_RAW);
  lua_pushboolean(L, stopped);
  lua_rawseti(L, 2, REPORT_STOPPED);
  lua_pushinteger(L, status);
  lua_rawseti(L, 2, REPORT_STATUS);
  lua_pushvalue(L, 1);
  lua_rawseti(L, 2, REPORT_VALUE);
}

/* Message handler. The value is passed on as it is: what the script closes while it unwinds
   gets what it has raised. Upvalue 1: a table for what is reported. */
static int watch(lua_State *L) {
  lua_settop(L, 1);
  report_to_ranks(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  describe(L, 1);
  lua_settop(L, 1);
  return 1;
}

/* (error, table) -> table, filled also when no handler saw the error: out of memory, or one in the
   handler */
static int complete(lua_State *L) {
  lua_rawgeti(L, 2, REPORT_VALUE);
  bool seen = lua_rawequal(L, 1, -1) != 0 && lua_rawgeti(L, 2, REPORT_TEXT) == LUA_TSTRING;
  lua_settop(L, 2);
  if (!seen) describe(L, 0);
  lua_rawgeti(L, 2, REPORT_RAW);
  if (lua_toboolean(L, -1)) { /* the stack is free again */
    lua_rawgeti(L, 2, REPORT_TEXT);
    trim(L, 1);
    lua_rawseti(L, 2, REPORT_TEXT);
  }
  lua_settop(L, 2);
  return 1;
}

int lt_report_load(lua_State *L, int status) {
  if (status == LUA_OK) return LT_EXIT_DONE;
  if (status == LUA_ERRSYNTAX) {
    lua_pushvalue(L, -1);
    trim(L, lua_gettop(L) - 1);
    lua_remove(L, -2);
  }
  lt_complain(lua_tostring(L, -1));
  lua_pop(L, 1);
  return LT_EXIT_ERROR;
}

/* The error on top, which the table below it may describe: print it, pop both. Returns a status. */
static int report(lua_State *L) {
  lt_world *w = world_of(L);
  const lt_outcome *v = lt_world_outcome(w);
  if (v != NULL) { /* of several ranks one prints, the first failure */
    if (lt_world_may_print(w)) lt_complain(v->text);
    lua_pop(L, 2);
    return v->status;
  }
  lua_pushcfunction(L, complete);
  lua_insert(L, -3);
  lua_insert(L, -2);
  if (lua_pcall(L, 2, 1, 0) != LUA_OK) {
    lt_complain("not enough memory");
    lua_pop(L, 1);
    return LT_EXIT_ERROR;
  }
  int described = lua_gettop(L);
  lua_rawgeti(L, described, REPORT_STOPPED);
  lua_rawgeti(L, described, REPORT_STATUS);
  lua_rawgeti(L, described, REPORT_TEXT);
  bool stopped = lua_toboolean(L, described + 1);
  int status = (int)lua_tointeger(L, described + 2);
  lt_complain(lua_tostring(L, described + 3));
  lua_settop(L, described - 1);
  int asked = lt_signals_status() != 0 ? lt_signals_status() : lt_notes_status();
  return stopped && asked != 0 ? asked : status;
}

int lt_call_script(lua_State *L, int n_args, int n_results) {
  int base = lua_gettop(L) - n_args;
  lua_createtable(L, REPORT_STATUS, 0);
  lua_insert(L, base);
  lua_pushvalue(L, base);
  lua_pushcclosure(L, watch, 1);
  lua_insert(L, base + 1);
  int status = lua_pcall(L, n_args, n_results, base + 1);
  lua_remove(L, base + 1);
  if (status != LUA_OK) return report(L);
  lua_remove(L, base);
  return LT_EXIT_DONE;
}
