/* lua/bind/running.c: which Lua thread runs now, for signal handlers that must stop the script.

   A hook set on one thread does not reach a coroutine that it resumed, and Lua keeps no pointer to
   the running one that a handler could read. In an owned state `coroutine.resume` and
   `coroutine.wrap` are therefore ours: they note the thread before they run it, and put back the
   former one after, also when it failed. Without them a script that loops in a coroutine outlives
   the budget that its host gave it, and Ctrl-C; a rank's would be ended by its watchdog alone. */
#include "bind/debugger.h"

static lua_State *enter(lt_bind *b, lua_State *thread) {
  lua_State *before = b->running;
  b->running = thread;
  if (b->stops.active) lt_stops_hook(b, thread);
  if (b->waking) lt_bind_hook_verdict(thread);
  if (b->guard != NULL) b->guard->enter(thread);
  return before;
}

lua_State *lt_bind_running(const lt_bind *b) { return b->running != NULL ? b->running : b->L; }

lua_State *lt_bind_enter_thread(lt_bind *b, lua_State *thread) { return enter(b, thread); }

/* Upvalues: the binding, Lua's own coroutine.resume. */
static int resume(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lua_State *thread = lua_tothread(L, 1);
  luaL_argexpected(L, thread != NULL, 1, "coroutine");
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 1);
  lt_resumed link = {.thread = L, .outer = b->resumed};
  b->resumed = &link;
  lua_State *before = enter(b, thread);
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  enter(b, before);
  b->resumed = link.outer;
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* The thread has failed, and its frames are still there. */
static void raised(lua_State *L, lt_bind *b, lua_State *thread) {
  if (!b->stops.catches || lua_checkstack(thread, 1) == 0) return;
  lua_pushvalue(thread, -1);
  lua_xmove(thread, L, 1);
  lt_stops_raised(L, b, thread);
  lua_pop(L, 1);
}

/* What coroutine.wrap returned. Upvalues: the binding, the thread. */
static int call_wrapped(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lua_State *thread = lua_tothread(L, lua_upvalueindex(2));
  int n_args = lua_gettop(L), n_results = 0;
  if (!lua_checkstack(thread, n_args)) return luaL_error(L, "too many arguments to resume");
  lua_xmove(L, thread, n_args);
  lt_resumed link = {.thread = L, .outer = b->resumed};
  b->resumed = &link;
  lua_State *before = enter(b, thread);
  int status = lua_resume(thread, L, n_args, &n_results);
  enter(b, before);
  b->resumed = link.outer;
  if (status == LUA_OK || status == LUA_YIELD) {
    luaL_checkstack(L, n_results, "too many results to resume");
    lua_xmove(thread, L, n_results);
    return n_results;
  }
  int state = lua_status(thread);
  bool lost = b->guard != NULL && b->guard->is_lost(thread);
  if (state != LUA_OK && state != LUA_YIELD) raised(L, b, thread);
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
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  b->running = b->owned ? lua_tothread(L, -1) : NULL;
  lua_pop(L, 1);
  if (!b->owned || lua_getglobal(L, "coroutine") != LUA_TTABLE) return;
  lua_pushlightuserdata(L, b);
  lua_getfield(L, -2, "resume");
  lua_pushcclosure(L, resume, 2);
  lua_setfield(L, -2, "resume");
  lua_pushlightuserdata(L, b);
  lua_pushcclosure(L, wrap, 1);
  lua_setfield(L, -2, "wrap");
  lua_pop(L, 1);
}
