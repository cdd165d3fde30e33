/* lua/bind/debugger/frames.c: the frames of running Lua threads, with the values of their
   variables.

   A frame is named by its thread and its depth, counted from the thread's first function: that
   stays what it is while functions are called above it. */
#include "bind/core/current_line.h"
#include "bind/core/types.h"
#include "bind/debugger/debugger.h"

enum { MOST_FRAMES = 500 };

static lua_State *check_thread(lua_State *L, int index) {
  lua_State *thread = lua_tothread(L, index);
  luaL_argexpected(L, thread != NULL, index, "thread");
  return thread;
}

/* The frame of arguments 1 and 2. The stack of its thread has some free slots. */
static lua_State *check_frame(lua_State *L, lua_Debug *ar) {
  lua_State *thread = check_thread(L, 1);
  lua_Integer depth = luaL_checkinteger(L, 2);
  int n = lt_frame_depth(thread);
  if (depth < 1 || depth > n || lua_getstack(thread, n - (int)depth, ar) == 0)
    luaL_argerror(L, 2, "no such frame");
  if (thread != L && lua_checkstack(thread, 3) == 0) luaL_error(L, "stack overflow");
  return thread;
}

static void set_text(lua_State *L, const char *name, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, int value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static void push_frame(lua_State *L, lua_State *thread, lua_Debug *ar, int depth) {
  lua_getinfo(thread, "Slnf", ar);
  lua_createtable(L, 0, 9);
  if (thread != L) lua_xmove(thread, L, 1);
  else lua_rotate(L, -2, 1);
  lua_setfield(L, -2, "fn");
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "thread");
  set_integer(L, "depth", depth);
  set_text(L, "source", ar->source);
  set_text(L, "file", ar->source[0] == '@' ? ar->source + 1 : ar->short_src);
  set_text(L, "name", ar->name);
  set_text(L, "what", ar->what);
  set_integer(L, "line", ar->currentline);
  set_integer(L, "first_line", ar->linedefined);
  lua_pushboolean(L, lt_source_is_ours(ar->source));
  lua_setfield(L, -2, "ours");
}

/* frames.list(thread) -> its frames, the innermost first: {thread =, depth =, source =, file =,
   line =, first_line =, name =, what =, fn =, ours =}; at most MOST_FRAMES */
static int list(lua_State *L) {
  lua_State *thread = check_thread(L, 1);
  lua_Debug ar;
  int n = lt_frame_depth(thread);
  if (thread != L && lua_checkstack(thread, 3) == 0) return luaL_error(L, "stack overflow");
  lua_createtable(L, n < MOST_FRAMES ? n : MOST_FRAMES, 0);
  for (int level = 0; level < n && level < MOST_FRAMES; level++) {
    if (lua_getstack(thread, level, &ar) == 0) break;
    push_frame(L, thread, &ar, n - level);
    lua_rawseti(L, -2, level + 1);
  }
  return 1;
}

/* frames.threads() -> the running thread, the one that resumed it, and so on */
static int threads(lua_State *L) {
  const lt_bind *b = lt_enter(L);
  lua_newtable(L);
  lua_pushthread(L);
  lua_rawseti(L, -2, 1);
  int n = 1;
  for (const lt_resumed *r = b->resumed; r != NULL; r = r->outer) {
    if (lua_checkstack(r->thread, 1) == 0) break;
    lua_pushthread(r->thread);
    if (r->thread != L) lua_xmove(r->thread, L, 1);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* Append {name =, kind =, index =, value =} with the value on top of the stack, which goes. */
static void append(lua_State *L, int to, const char *name, const char *kind, int index) {
  lua_createtable(L, 0, 4);
  lua_insert(L, -2);
  lua_setfield(L, -2, "value");
  set_text(L, "name", name);
  set_text(L, "kind", kind);
  set_integer(L, "index", index);
  lt_raw_seti(L, to, (lua_Integer)lua_rawlen(L, to) + 1);
}

static void append_locals(lua_State *L, lua_State *thread, lua_Debug *ar, int to, int step) {
  const char *name;
  for (int k = step; (name = lua_getlocal(thread, ar, k)) != NULL; k += step) {
    if (thread != L) lua_xmove(thread, L, 1);
    if (step > 0 && name[0] == '(')
      lua_pop(L, 1); /* a temporary */
    else
      append(L, to, name, step > 0 ? "local" : "vararg", k);
  }
}

static void push_function(lua_State *L, lua_State *thread, lua_Debug *ar) {
  lua_getinfo(thread, "f", ar);
  if (thread != L) lua_xmove(thread, L, 1);
}

/* frames.variables(thread, depth) -> a list of {name =, kind = "local" | "vararg" | "upvalue",
   index =, value =}: those of inner blocks come after those that they hide */
static int variables(lua_State *L) {
  lua_Debug ar;
  lua_State *thread = check_frame(L, &ar);
  luaL_checkstack(L, 8, "frames");
  lua_newtable(L);
  int to = lua_gettop(L);
  push_function(L, thread, &ar);
  const char *name;
  for (int k = 1; (name = lua_getupvalue(L, to + 1, k)) != NULL; k++) {
    if (name[0] == 0 || name[0] == '(') /* of C, or stripped */
      lua_pop(L, 1);
    else
      append(L, to, name, "upvalue", k);
  }
  lua_settop(L, to);
  append_locals(L, thread, &ar, to, 1);
  append_locals(L, thread, &ar, to, -1);
  return 1;
}

static bool is_upvalue(lua_State *L) {
  static const char *const kinds[] = {"local", "upvalue", "vararg", NULL};
  return luaL_checkoption(L, 3, NULL, kinds) == 1;
}

/* frames.get(thread, depth, kind, index) -> its value */
static int get(lua_State *L) {
  lua_Debug ar;
  lua_State *thread = check_frame(L, &ar);
  int index = (int)luaL_checkinteger(L, 4);
  if (is_upvalue(L)) {
    push_function(L, thread, &ar);
    return lua_getupvalue(L, -1, index) != NULL;
  }
  if (lua_getlocal(thread, &ar, index) == NULL) return 0;
  if (thread != L) lua_xmove(thread, L, 1);
  return 1;
}

/* frames.set(thread, depth, kind, index, value) */
static int set(lua_State *L) {
  lua_Debug ar;
  lua_State *thread = check_frame(L, &ar);
  int index = (int)luaL_checkinteger(L, 4);
  luaL_checkany(L, 5);
  lua_settop(L, 5);
  if (is_upvalue(L)) {
    push_function(L, thread, &ar);
    lua_insert(L, -2);
    lua_setupvalue(L, -2, index);
  } else {
    if (thread != L) lua_xmove(L, thread, 1);
    lua_setlocal(thread, &ar, index);
  }
  return 0;
}

void lt_offer_frames(lua_State *L) {
  static const luaL_Reg functions[] = {{"list", list}, {"threads", threads},
                                       {"variables", variables}, {"get", get},
                                       {"set", set}, {NULL, NULL}};
  lt_bind *b = lt_bind_get(L);
  lt_push_functions(L);
  lua_getfield(L, -1, "runtime");
  lua_getfield(L, -1, "frames");
  lt_add_functions(L, b, functions);
  lt_offer_stops(L, b);
  lua_pop(L, 3);
}
