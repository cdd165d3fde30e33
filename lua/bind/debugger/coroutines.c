/* lua/bind/debugger/coroutines.c: coroutine.resume and wrap of owned states: they
   note the Lua thread that runs, for signal handlers that must stop the script.

   A hook set on one thread does not reach a coroutine that it resumed, and Lua keeps no pointer to
   the running one that a handler could read. In an owned state `coroutine.resume` and
   `coroutine.wrap` are therefore ours: they note the thread before they run it, and put back the
   former one after, also when it failed. Without them a script that loops in a coroutine outlives
   the budget that its host gave it, and Ctrl-C; a rank's would be ended by its watchdog alone.

   A host that runs a call in slices of time pauses it in any of its threads: the thread yields in
   a hook, and each function here that had resumed it yields in turn, until the host has control.
   Resumed, they resume in the same order. */
#include <string.h>

#include <lauxlib.h>

#include "bind/core/openers.h"
#include "bind/core/threads.h"
#include "bind/core/types.h"
#include "bind/debugger/debugger.h"

/* Whether it waits because its host has paused the call that it belongs to: it stands in a line of
   the script, or in a function of ours, which all have the binding as their first upvalue. */
static bool is_paused(const lt_bind *b, lua_State *thread) {
  lua_Debug at;
  if (lua_status(thread) != LUA_YIELD || lua_getstack(thread, 0, &at) == 0) return false;
  lua_getinfo(thread, "S", &at);
  if (*at.what != 'C') return true;
  lua_checkstack(thread, 2);
  int top = lua_gettop(thread);
  lua_getinfo(thread, "f", &at);
  bool ours = lua_getupvalue(thread, -1, 1) != NULL && lua_touserdata(thread, -1) == b;
  lua_settop(thread, top);
  return ours;
}

/* Run a thread whose arguments are on its stack. Returns the status; on top of the thread are its
   results, or the error. */
static int run(lua_State *L, lt_bind *b, lua_State *thread, int n_args, int *n_results) {
  bool pausable = b->pausable;
  b->pausable = pausable && lua_isyieldable(L);
  b->pausing = false;
  lt_resumed link = {.thread = L, .outer = b->resumed};
  b->resumed = &link;
  lua_State *before = lt_bind_enter_thread(b, thread);
  int status = lua_resume(thread, L, n_args, n_results);
  lt_bind_enter_thread(b, before);
  b->resumed = link.outer;
  b->pausable = pausable;
  return status;
}

/* The same with the top n_args values of L as arguments. */
static int begin(lua_State *L, lt_bind *b, lua_State *thread, int n_args, int *n_results) {
  bool paused = is_paused(b, thread);
  *n_results = 0;
  if (!paused && lua_checkstack(thread, n_args)) {
    lua_xmove(L, thread, n_args);
    return run(L, b, thread, n_args, n_results);
  }
  lua_pop(L, n_args);
  lua_pushstring(L, paused ? "cannot resume a coroutine of the call that its host has paused"
                           : "too many arguments to resume");
  lua_xmove(L, thread, 1);
  return LUA_ERRRUN;
}

/* A pause is on its way to the host: the threads above wait too. */
static bool pauses(const lt_bind *b, int status) { return status == LUA_YIELD && b->pausing; }

/* What coroutine.resume returns. */
static int take_resumed(lua_State *L, lua_State *thread, int status, int n_results) {
  bool ok = status == LUA_OK || status == LUA_YIELD;
  if (!ok) n_results = 1;
  if (!lua_checkstack(L, n_results + 1)) {
    lua_pop(thread, n_results);
    lua_pushboolean(L, false);
    lua_pushliteral(L, "too many results to resume");
    return 2;
  }
  lua_xmove(thread, L, n_results);
  lua_pushboolean(L, ok);
  lua_insert(L, -(n_results + 1));
  return n_results + 1;
}

/* The host has let the paused call continue. */
static int continue_resume(lua_State *L, int unused, lua_KContext context) {
  (void)unused;
  (void)context;
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lua_State *thread = lua_tothread(L, 1);
  lua_settop(L, 1);
  int n_results, status = run(L, b, thread, 0, &n_results);
  if (pauses(b, status)) return lua_yieldk(L, 0, 0, continue_resume);
  return take_resumed(L, thread, status, n_results);
}

/* Upvalue: the binding. As Lua's own coroutine.resume. */
static int resume(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lua_State *thread = lua_tothread(L, 1);
  luaL_argexpected(L, thread != NULL, 1, "coroutine");
  int n_results, status = begin(L, b, thread, lua_gettop(L) - 1, &n_results);
  if (pauses(b, status)) return lua_yieldk(L, 0, 0, continue_resume);
  return take_resumed(L, thread, status, n_results);
}

/* The thread has failed, and its frames are still there. */
static void raised(lua_State *L, lt_bind *b, lua_State *thread) {
  if (b->stops.handler == NULL || lua_checkstack(thread, 1) == 0) return;
  lua_pushvalue(thread, -1);
  lua_xmove(thread, L, 1);
  lt_stops_raised(L, b, thread);
  lua_pop(L, 1);
}

static const char ended_key = 0; /* in the registry: {message, frames} */

/* frames.ended() -> the text of the error that has ended a coroutine of coroutine.wrap last, and
   the frames that it had, as a traceback has them; of one within another those of both. */
static int ended_coroutine(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &ended_key) != LUA_TTABLE) return 0;
  lt_raw_geti(L, -1, 1);
  lt_raw_geti(L, -2, 2);
  return 2;
}

/* Whether the text at `a` ends with that at `b`. */
static bool ends_with(lua_State *L, int a, int b) {
  size_t n, m;
  const char *text = lua_tolstring(L, a, &n), *end = lua_tolstring(L, b, &m);
  return m <= n && memcmp(text + n - m, end, m) == 0;
}

/* Keeps the frames of a thread that an error has ended, before they go. What the error passed
   through before stands in front. */
static void keep_frames(lua_State *L, lua_State *thread) {
  if (lua_type(thread, -1) != LUA_TSTRING || lua_checkstack(thread, 1) == 0) return;
  int top = lua_gettop(L);
  luaL_checkstack(L, 8, NULL);
  lua_pushvalue(thread, -1);
  lua_xmove(thread, L, 1);
  bool is_passed = ended_coroutine(L) == 2 && ends_with(L, top + 1, top + 3);
  if (!is_passed) lua_settop(L, top + 1), lua_pushliteral(L, "");
  luaL_traceback(L, thread, NULL, 0);
  const char *frames = strchr(lua_tostring(L, -1), '\n'); /* behind "stack traceback:" */
  lua_pushstring(L, frames != NULL ? frames : "");
  lua_remove(L, -2);
  lua_concat(L, 2);
  lua_createtable(L, 2, 0);
  lua_insert(L, -2);
  lua_rawseti(L, -2, 2);
  lua_pushvalue(L, top + 1);
  lua_rawseti(L, -2, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &ended_key);
  lua_settop(L, top);
}

/* What a function of coroutine.wrap returns or raises. */
static int take_wrapped(lua_State *L, lt_bind *b, lua_State *thread, int status, int n_results) {
  if (status == LUA_OK || status == LUA_YIELD) {
    luaL_checkstack(L, n_results, "too many results to resume");
    lua_xmove(thread, L, n_results);
    return n_results;
  }
  int state = lua_status(thread);
  bool lost = b->guard != NULL && b->guard->is_lost(thread);
  if (state != LUA_OK && state != LUA_YIELD) raised(L, b, thread);
  if (state == LUA_ERRRUN && !lost) keep_frames(L, thread);
  if (state != LUA_OK && state != LUA_YIELD && !lost)
    status = lua_resetthread(thread); /* closes its variables; leaves the error on top */
  lua_xmove(thread, L, 1);
  if (lua_type(L, -1) == LUA_TSTRING && status != LUA_ERRMEM) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

static int continue_wrapped(lua_State *L, int unused, lua_KContext context) {
  (void)unused;
  (void)context;
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lua_State *thread = lua_tothread(L, lua_upvalueindex(2));
  lua_settop(L, 0);
  int n_results, status = run(L, b, thread, 0, &n_results);
  if (pauses(b, status)) return lua_yieldk(L, 0, 0, continue_wrapped);
  return take_wrapped(L, b, thread, status, n_results);
}

/* What coroutine.wrap returned. Upvalues: the binding, the thread. */
static int call_wrapped(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lua_State *thread = lua_tothread(L, lua_upvalueindex(2));
  int n_results, status = begin(L, b, thread, lua_gettop(L), &n_results);
  if (pauses(b, status)) return lua_yieldk(L, 0, 0, continue_wrapped);
  return take_wrapped(L, b, thread, status, n_results);
}

static int wrap(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_pushlightuserdata(L, b);
  lua_State *thread = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, thread, 1);
  lua_pushcclosure(L, call_wrapped, 2);
  return 1;
}

void lt_bind_coroutines(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"ended", ended_coroutine}, {NULL, NULL}};
  lua_getfield(L, 1, "runtime");
  lua_getfield(L, -1, "frames");
  lt_add_functions(L, b, functions);
  lua_pop(L, 2);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  b->running = b->owned ? lua_tothread(L, -1) : NULL;
  lua_pop(L, 1);
  if (!b->owned || lua_getglobal(L, "coroutine") != LUA_TTABLE) return;
  lua_pushlightuserdata(L, b);
  lua_pushcclosure(L, resume, 1);
  lua_setfield(L, -2, "resume");
  lua_pushlightuserdata(L, b);
  lua_pushcclosure(L, wrap, 1);
  lua_setfield(L, -2, "wrap");
  lua_pop(L, 1);
}
