/* lua/bind/debugger/stops.c: where the debugger stops a script: at lines, and where an error was
   raised; and sessions, in which code runs there that leaves no trace in the run.

   Without a line that is watched no hook is set: a script then runs as if there was no debugger. */
#include "bind/core/current_line.h"
#include "bind/core/openers.h"
#include "bind/core/threads.h"
#include "bind/core/types.h"
#include "bind/debugger/debugger.h"

#include <limits.h>
#include <time.h>

#include "launch/launch.h"

/* Keys of the registry: what is called at a line and for an error, the thread of a step. */
static const char line_key, error_key, thread_key;

enum { LINE_BITS = 64 * LT_STOP_WORDS };

int lt_frame_depth(lua_State *thread) {
  lua_Debug ar;
  int low = 0, high = 1;
  while (lua_getstack(thread, high - 1, &ar) != 0) low = high, high *= 2;
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    if (lua_getstack(thread, middle - 1, &ar) != 0)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Whether the thread of the step does not run any more: it yielded, returned or failed. */
static bool has_left(lua_State *thread) {
  lua_Debug ar;
  return lua_status(thread) != LUA_OK || lua_getstack(thread, 0, &ar) == 0;
}

/* Whether a line is the next one: not in a function that the frame of the step calls. */
static bool is_next(lua_State *L, lt_stops *s, bool ours) {
  if (!s->every) return false;
  if (s->of != NULL && s->of != L && !has_left(s->of)) return false;
  if (s->of == L) {
    int depth = lt_frame_depth(L);
    if (depth < s->depth) s->of = NULL; /* that frame has returned */
    if (s->of != NULL && depth > s->depth) return false;
  } else {
    s->of = NULL;
  }
  return !ours;
}

static void on_line(lua_State *L, lua_Debug *ar) {
  lt_bind *b = lt_bind_get(L);
  if (b == NULL || b->c == NULL || b->stops.hook == NULL) {
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  lt_stops *s = &b->stops;
  if (s->sessions > 0) return; /* code of the prompt */
  unsigned bit = (unsigned)ar->currentline % LINE_BITS;
  bool listed = (s->lines[bit / 64] >> bit % 64 & 1) != 0;
  if ((!s->every && !listed) || lua_getinfo(L, "S", ar) == 0) return;
  bool ours = lt_source_is_ours(ar->source), next = is_next(L, s, ours);
  if (ours || (!next && !listed)) return;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &line_key);
  lua_pushstring(L, ar->source[0] == '@' ? ar->source + 1 : ar->short_src);
  lua_pushinteger(L, ar->currentline);
  lua_pushboolean(L, next);
  lua_call(L, 3, 0);
}

/* frames.watch(on_line, lines [, thread, depth]): on_line(file, line, is_next) is called in front
   of the script's lines with these numbers and, with a thread (or false for any), at the next line
   there that is no deeper than `depth`. Without on_line nothing is watched. */
static int watch(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 4);
  lt_stops s = {.sessions = b->stops.sessions, .floor = b->stops.floor, .ns = b->stops.ns,
                .handler = b->stops.handler, .hook = lua_isnil(L, 1) ? NULL : on_line,
                .depth = INT_MAX};
  s.every = s.hook != NULL && !lua_isnil(L, 3);
  if (lua_isthread(L, 3)) {
    s.of = lua_tothread(L, 3);
    s.depth = (int)luaL_checkinteger(L, 4);
  }
  for (lua_Integer k = 1; s.hook != NULL && lt_raw_geti(L, 2, k) == LUA_TNUMBER; k++) {
    unsigned bit = (unsigned)lua_tointeger(L, -1) % LINE_BITS;
    s.lines[bit / 64] |= (uint64_t)1 << bit % 64;
    lua_pop(L, 1);
  }
  lua_settop(L, 3);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &thread_key); /* so that s.of is not collected */
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &line_key);
  b->stops = s;
  lt_stops_hook(b, L);
  for (const lt_resumed *r = b->resumed; r != NULL; r = r->outer) lt_stops_hook(b, r->thread);
  return 0;
}

/* Sessions. */

/* What a session gives back as it was. */
typedef struct kept {
  lt_rng rng, outside;
  lt_script_random random;
  bool seed_unreported;
  const char *op;
  uint32_t line, line_hint;
  int floor;
} kept;

static kept keep(lt_bind *b) {
  return (kept){.rng = b->c->rng,
                .outside = b->outside,
                .random = b->random,
                .seed_unreported = b->seed_unreported,
                .op = b->c->op,
                .line = lt_ctx_line(b->c),
                .line_hint = b->line_hint,
                .floor = b->stops.floor};
}

static void put_back(lt_bind *b, const kept *k) {
  b->c->rng = k->rng;
  b->outside = k->outside;
  b->random = k->random;
  b->seed_unreported = k->seed_unreported;
  b->c->op = k->op;
  b->c->line = k->line;
  b->line_hint = k->line_hint;
  b->stops.floor = k->floor;
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nothing in a session yields to its outside. */
static int call_all(lua_State *L) {
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* The thread of a session, with the modes of the one that it stopped: what is assigned there is
   part of the graph. */
static void enter_session(lt_bind *b, lua_State *thread) {
  lt_modes modes = b->c->modes;
  lt_bind_switch(b, thread);
  modes.anomaly = 0;
  modes.dropping = modes.filling = NULL;
  modes.trace = NULL;
  b->c->modes = modes;
  b->c->op = NULL;
  b->line_hint = 0;
  b->stops.floor = b->collect.depth;
}

/* Call the function below `n` values in a thread of its own, which leaves its results, or an error,
   in their place; returns its status. */
static int run_session(lua_State *L, lt_bind *b, int n) {
  lua_State *thread = lua_newthread(L);
  lua_insert(L, -n - 2);
  lua_sethook(thread, NULL, 0, 0);
  luaL_checkstack(thread, n + 2, "session");
  lua_pushcfunction(thread, call_all);
  lua_xmove(L, thread, n + 1);
  if (b->L != L) lt_bind_switch(b, L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->last_error_ref);
  kept before = keep(b);
  int64_t began = now_ns();
  lt_resumed link = {.thread = L, .outer = b->resumed};
  lt_frame mark = lt_frame_open(b->c);
  b->resumed = &link;
  b->stops.sessions++;
  lua_State *outer = lt_bind_enter_thread(b, thread);
  enter_session(b, thread);
  int n_results = 0, status = lua_resume(thread, L, n + 1, &n_results);
  lt_bind_enter_thread(b, outer);
  b->stops.sessions--;
  b->resumed = link.outer;
  lt_frame_close(b->c, mark, 0, NULL);
  lt_bind_switch(b, L);
  put_back(b, &before);
  if (b->stops.sessions == 0 && lt_world_current(b->c) == NULL) b->stops.ns += now_ns() - began;
  lua_rawseti(L, LUA_REGISTRYINDEX, b->last_error_ref);
  if (status != LUA_OK) n_results = 1;
  luaL_checkstack(L, n_results + 2, "session");
  lua_xmove(thread, L, n_results);
  lua_remove(L, -n_results - 1);
  lua_pushinteger(L, n_results);
  return status;
}

/* frames.session(fn, ...) -> its results. Random numbers and modes are afterwards what they were,
   lines are not watched meanwhile, and Ctrl-C ends what runs in it. */
static int session(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  int status = run_session(L, b, lua_gettop(L) - 1);
  int n = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return status == LUA_OK ? n : lua_error(L);
}

/* frames.sessions() -> how many are open, the seconds that all have taken so far; of forked ranks
   those of each, since the others have waited */
static int sessions(lua_State *L) {
  const lt_bind *b = lt_enter(L);
  const lt_world *w = lt_world_current(b->c);
  int64_t ns = b->stops.ns + (w != NULL ? lt_world_terminal_ns(w) : 0);
  lua_pushinteger(L, b->stops.sessions);
  lua_pushnumber(L, (double)ns * 1e-9);
  return 2;
}

/* frames.on_error(fn or nil): fn(error, thread) is called in a session where an error that ends the
   script was raised, before anything unwinds. It may be called again, for the same error, further
   out. */
static int on_error(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 1);
  b->stops.handler = lua_isnil(L, 1) ? NULL : lt_stops_handler;
  lua_rawsetp(L, LUA_REGISTRYINDEX, &error_key);
  return 0;
}

void lt_stops_raised(lua_State *L, lt_bind *b, lua_State *thread) {
  if (b->c == NULL || b->stops.handler == NULL || b->stops.sessions > 0) return;
  int top = lua_gettop(L);
  if (lua_checkstack(L, 8) == 0 || lua_checkstack(thread, 2) == 0) return;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &error_key);
  lua_pushvalue(L, top);
  lua_pushthread(thread);
  if (thread != L) lua_xmove(thread, L, 1);
  run_session(L, b, 2);
  lua_settop(L, top);
}

int lt_stops_handler(lua_State *L) {
  lt_bind *b = lt_bind_get(L);
  /* false: of a checkpoint that has made its values. */
  bool is_stop = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
  if (b != NULL && !is_stop) lt_stops_raised(L, b, L);
  return 1;
}

void lt_offer_stops(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"watch", watch}, {"session", session}, {"on_error", on_error}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}

void lt_bind_stops(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"sessions", sessions},
      {"raised", lt_stops_handler},
      {NULL, NULL}};
  lua_getfield(L, 1, "runtime");
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_setfield(L, -2, "frames");
  lua_pop(L, 1);
}
