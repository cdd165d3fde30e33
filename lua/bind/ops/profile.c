/* lua/bind/ops/profile.c: how long operations take, for the library's own Lua
   (`c.runtime.profile`).

   The time is that of the call: a device of its own may still be at work when it returns.

   clock_gettime before and after each call, a few tens of nanoseconds; sums by op in a fixed table,
   so that a profile of a long run has a fixed size. Events are kept on demand for a timeline, up to
   MOST_EVENTS of 24 bytes, 48 MB; later ones count in the sums only. */
#include "bind/ops/profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bind/core/current_line.h"
#include "bind/core/types.h"
#include "ops/trace.h"

#define PROFILE_NAME "ltrain.Profile"

enum { MOST_EVENTS = 2000000 };

typedef struct op_time {
  int64_t calls, total, most; /* nanoseconds */
} op_time;

typedef struct event {
  int64_t start, duration;
  uint16_t op;
} event;

typedef struct profile {
  lt_trace trace;
  lt_bind *b;
  int64_t opened, began;
  op_time ops[LT_OP_COUNT];
  event *events;
  size_t n, capacity; /* capacity 0: none are kept */
  bool keeps;
} profile;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void begin(lt_trace *t) { ((profile *)t)->began = now(); }

static bool keep(lt_ctx *c, profile *p, event e) {
  if (p->n == MOST_EVENTS) return true;
  if (p->n == p->capacity) {
    size_t more = p->capacity == 0 ? 4096 : 2 * p->capacity;
    event *events = realloc(p->events, more * sizeof *events);
    if (events == NULL) return lt_fail(c, LT_EMEMORY, "profile: no memory for events");
    p->events = events;
    p->capacity = more;
  }
  p->events[p->n++] = e;
  return true;
}

/* Only kernels and views are reported, never the composites of them, so that times of different ops
   do not overlap. An outer trace gets the call too. */
static bool note(lt_ctx *c, lt_trace *t, const lt_call *call) {
  profile *p = (profile *)t;
  int64_t duration = now() - p->began;
  op_time *op = &p->ops[call->op];
  op->calls++;
  op->total += duration;
  if (duration > op->most) op->most = duration;
  event e = {.start = p->began - p->opened, .duration = duration, .op = (uint16_t)call->op};
  if (p->keeps && !keep(c, p, e)) return false;
  return t->outer == NULL || t->outer->note(c, t->outer, call);
}

static profile *check(lua_State *L) { return luaL_checkudata(L, 1, PROFILE_NAME); }

static int profile_close(lua_State *L) {
  profile *p = check(L);
  lt_trace_close(L, lt_enter(L), &p->trace);
  return 0;
}

static int profile_gc(lua_State *L) {
  profile *p = check(L);
  free(p->events);
  p->events = NULL;
  p->n = p->capacity = 0;
  return 0;
}

/* p:ops() -> a list of {name, calls, total, most}, seconds */
static int profile_ops(lua_State *L) {
  profile *p = check(L);
  lua_newtable(L);
  for (int k = 0, n = 0; k < LT_OP_COUNT; k++) {
    if (p->ops[k].calls == 0) continue;
    lua_createtable(L, 4, 0);
    lua_pushstring(L, lt_ops[k].name);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, p->ops[k].calls);
    lua_rawseti(L, -2, 2);
    lua_pushnumber(L, (double)p->ops[k].total * 1e-9);
    lua_rawseti(L, -2, 3);
    lua_pushnumber(L, (double)p->ops[k].most * 1e-9);
    lua_rawseti(L, -2, 4);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* p:count() -> how many events it has kept */
static int profile_count(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)check(L)->n);
  return 1;
}

/* p:event(k) -> name, start since the profile was opened, duration: seconds */
static int profile_event(lua_State *L) {
  profile *p = check(L);
  lua_Integer k = luaL_checkinteger(L, 2);
  luaL_argcheck(L, k >= 1 && (size_t)k <= p->n, 2, "no such event");
  const event *e = &p->events[k - 1];
  lua_pushstring(L, lt_ops[e->op].name);
  lua_pushnumber(L, (double)e->start * 1e-9);
  lua_pushnumber(L, (double)e->duration * 1e-9);
  return 3;
}

/* p:now() -> seconds since it was opened */
static int profile_now(lua_State *L) {
  lua_pushnumber(L, (double)(now() - check(L)->opened) * 1e-9);
  return 1;
}

/* runtime.profile(keeps) -> a profile, open until it is closed; keeps: each call as an event */
static int open_profile(lua_State *L) {
  lt_bind *b = lt_enter(L);
  profile *p = lua_newuserdatauv(L, sizeof *p, 0);
  memset(p, 0, sizeof *p);
  p->trace = (lt_trace){.begin = begin, .note = note};
  p->b = b;
  p->opened = p->began = now();
  p->keeps = lua_toboolean(L, 1);
  luaL_setmetatable(L, PROFILE_NAME);
  lt_trace_open(L, b, &p->trace);
  return 1;
}

/* Key of the registry: what is called at lines of the script. */
static const char line_key;

/* What calls the function calls it; true: the library does; nil: not known, as of a tail call. */
static void push_name(lua_State *L, lua_Debug *ar) {
  lua_Debug caller;
  if (lua_getstack(L, 1, &caller) != 0 && lua_getinfo(L, "S", &caller) != 0 &&
      lt_source_is_ours(caller.source))
    lua_pushboolean(L, 1);
  else if (lua_getinfo(L, "n", ar) != 0 && ar->name != NULL)
    lua_pushstring(L, ar->name);
  else
    lua_pushnil(L);
}

/* Lines and calls of the script's functions, not the library's. A debug hook: it runs at each line,
   and slows scripts down by far more than ops; it is on only while a script profiler is. */
static void on_line(lua_State *L, lua_Debug *ar) {
  if (lua_getinfo(L, "S", ar) == 0 || *ar->what == 'C' || lt_source_is_ours(ar->source)) return;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &line_key) != LUA_TFUNCTION) {
    lua_pop(L, 1);
    lua_sethook(L, NULL, 0, 0); /* a coroutine has the hook of the thread that made it */
    return;
  }
  lua_pushstring(L, ar->short_src);
  lua_pushinteger(L, ar->linedefined);
  if (ar->event == LUA_HOOKLINE) {
    lua_pushinteger(L, ar->currentline);
    lua_pushnil(L);
  } else {
    lua_pushnil(L);
    if (ar->event == LUA_HOOKTAILCALL)
      lua_pushnil(L);
    else
      push_name(L, ar);
  }
  lua_call(L, 4, 0);
}

/* runtime.watch_lines(fn): from now on fn(file, first line, line, nil) at each line that this
   thread begins in a function of the script that begins at that line, and fn(file, first line, nil,
   name) at each call of one, true in place of its name where the library calls it; fn = nil: no
   more. Another hook of Lua stays. */
static int watch_lines(lua_State *L) {
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &line_key);
  bool on = lua_rawgetp(L, LUA_REGISTRYINDEX, &line_key) == LUA_TFUNCTION;
  lua_Hook hook = lua_gethook(L);
  if (on && hook == NULL) lua_sethook(L, on_line, LUA_MASKCALL | LUA_MASKLINE, 0);
  if (!on && hook == on_line) lua_sethook(L, NULL, 0, 0);
  return 0;
}

void lt_bind_profile(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {
      {"profile", open_profile}, {"watch_lines", watch_lines}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__close", profile_close}, {"__gc", profile_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"close", profile_close}, {"count", profile_count},
                                     {"event", profile_event}, {"now", profile_now},
                                     {"ops", profile_ops},     {NULL, NULL}};
  lt_new_type(L, b, PROFILE_NAME, meta, methods);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
