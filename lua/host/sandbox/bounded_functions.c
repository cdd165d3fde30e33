/* lua/host/sandbox/bounded_functions.c: replaces functions of Lua's library that would run long
   without counting against the host's instruction limit.

   Lua runs no hooks in message handlers of errors that a hook raised, in finalizers, and in what
   C code loops over. So a handler is left out once the call must end; finalizers run in threads of
   their own, which have hooks; long loops in C charge what they are about to do. */
#include <lauxlib.h>

#include "bind/core/threads.h"
#include "host/sandbox/budget.h"

/* Lua's own, which has no upvalues, in place of the function that runs: errors name that. */
static int call_original(lua_State *L) {
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* xpcall */

/* Upvalue: the script's message handler. */
static int handle(lua_State *L) {
  lua_settop(L, 1);
  if (lt_host_ended(lt_host_of(L))) return 1;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

static int bounded_xpcall(lua_State *L) {
  if (lua_isfunction(L, 2) && !lua_iscfunction(L, 2)) {
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, handle, 1);
    lua_replace(L, 2);
  }
  return call_original(L);
}

/* Finalizers. Lua never sees a table's __gc: a userdata that dies with the table calls it. */

static const char guards_key; /* registry: table -> its userdata */
static const char guard_type[] = "ltrain.Guard";

/* (finalizer, table) */
static int run_in_thread(lua_State *L) {
  ltrain *l = lt_host_of(L);
  lua_State *thread = lua_newthread(L);
  lua_insert(L, -3);
  lua_xmove(L, thread, 2);
  int n_results = 0;
  bool pausable = l->b->pausable;
  l->b->pausable = false; /* the collector waits for it */
  lua_State *before = lt_bind_enter_thread(l->b, thread);
  int status = lua_resume(thread, L, 1, &n_results);
  lt_bind_enter_thread(l->b, before);
  l->b->pausable = pausable;
  if (status == LUA_OK) return 0;
  if (status == LUA_YIELD) return luaL_error(L, "attempt to yield across a C-call boundary");
  lua_xmove(thread, L, 1);
  return lua_error(L);
}

/* What an earlier call has left is not charged to the one that finds it: all of it may run as long
   as a call may. */
static int run_inherited(lua_State *L, ltrain *l) {
  if (l->inherited <= 0) return 0;
  l->lending = true;
  lt_host_budget before = lt_host_budget_begin(l, l->inherited);
  lua_pushcfunction(L, run_in_thread);
  lua_insert(L, -3);
  int status = lua_pcall(L, 2, 0, 0);
  l->inherited -= l->instructions;
  lt_host_budget_end(l, before);
  l->lending = false;
  return status == LUA_OK ? 0 : lua_error(L);
}

/* __gc of the userdata: its user value is the table. */
static int finalize(lua_State *L) {
  ltrain *l = lt_host_of(L);
  const int64_t *made = luaL_checkudata(L, 1, guard_type);
  if (lua_getiuservalue(L, 1, 1) != LUA_TTABLE) return 0;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &guards_key);
  lua_pushvalue(L, 2);
  lua_pushnil(L);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  if (lt_host_ended(l)) {
    lt_host_guard.enter(L);
    return 0;
  }
  if (luaL_getmetafield(L, 2, "__gc") == LUA_TNIL) return 0;
  lua_insert(L, 2);
  bool inherited = *made != l->calls && l->limit > 0 && !l->closing && !l->lending;
  return inherited ? run_inherited(L, l) : run_in_thread(L);
}

/* The table at 1 has got a metatable with __gc. */
static void guard(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &guards_key);
  lua_pushvalue(L, 1);
  if (lua_rawget(L, -2) == LUA_TNIL) {
    lua_pushvalue(L, 1);
    *(int64_t *)lua_newuserdatauv(L, sizeof(int64_t), 1) = lt_host_of(L)->calls;
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, guard_type);
    lua_rawset(L, -4);
  }
  lua_pop(L, 2);
}

static int bounded_setmetatable(lua_State *L) {
  if (!lua_istable(L, 1) || !lua_istable(L, 2)) return call_original(L);
  lua_settop(L, 2);
  lua_pushliteral(L, "__gc");
  if (lua_rawget(L, 2) == LUA_TNIL || luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL) {
    lua_settop(L, 2);
    return call_original(L);
  }
  lua_pushliteral(L, "__gc");
  lua_pushnil(L);
  lua_rawset(L, 2);
  lua_pushvalue(L, 2);
  lua_setmetatable(L, 1);
  lua_pushliteral(L, "__gc");
  lua_insert(L, 3);
  lua_rawset(L, 2);
  guard(L);
  lua_settop(L, 1);
  return 1;
}

static void make_guards(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &guards_key);
  luaL_newmetatable(L, guard_type);
  lua_pushcfunction(L, finalize);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
}

/* coroutine.close: false and the error, without closing variables, of threads that are lost. */
static int bounded_close(lua_State *L) {
  lua_State *thread = lua_tothread(L, 1);
  if (thread == NULL || !lt_host_is_lost(thread)) return call_original(L);
  lua_pushboolean(L, false);
  lua_checkstack(thread, 1);
  lua_pushvalue(thread, -1);
  lua_xmove(thread, L, 1);
  return 2;
}

/* Loops in C. */

enum { MOST_RESULTS = 1000000, LONGEST = INT32_MAX }; /* beyond these Lua refuses */

/* Elements from..to; as many as that cannot be counted are an error of Lua's. */
static int64_t span(int64_t from, int64_t to) {
  int64_t n;
  if (to < from || __builtin_sub_overflow(to, from, &n)) return 0;
  return n;
}

static int64_t argument(lua_State *L, int index, int64_t otherwise) {
  int is_integer = 0;
  int64_t value = lua_tointegerx(L, index, &is_integer);
  return is_integer ? value : otherwise;
}

static int64_t length(lua_State *L) {
  if (lua_getmetatable(L, 1) == 0) return (int64_t)lua_rawlen(L, 1);
  lua_pop(L, 1);
  return luaL_len(L, 1);
}

/* The first nil is an error: a plain table has no more than its length. */
static int64_t cost_of_concat(lua_State *L) {
  int64_t n = length(L), cost = span(argument(L, 3, 1), argument(L, 4, n));
  bool plain = lua_getmetatable(L, 1) == 0;
  return plain && cost > n ? n : cost;
}

static int64_t cost_of_insert(lua_State *L) {
  return lua_gettop(L) < 3 ? 0 : span(argument(L, 2, 0), length(L));
}

static int64_t cost_of_move(lua_State *L) { return span(argument(L, 2, 0), argument(L, 3, 0)); }

static int64_t cost_of_remove(lua_State *L) {
  return lua_gettop(L) < 2 ? 0 : span(argument(L, 2, 0), length(L));
}

static int64_t cost_of_sort(lua_State *L) {
  int64_t n = length(L), cost = 0;
  if (n >= LONGEST) return 0;
  for (int64_t half = n; half > 0; half /= 2)
    cost += n;
  return cost;
}

static int64_t cost_of_unpack(lua_State *L) {
  int64_t n = span(argument(L, 2, 1), lua_isnoneornil(L, 3) ? length(L) : argument(L, 3, 0));
  return n < MOST_RESULTS ? n : 0;
}

/* Memory is charged as it is asked for; many times nothing asks for none. */
static int64_t cost_of_rep(lua_State *L) {
  return lua_rawlen(L, 1) == 0 && lua_rawlen(L, 3) == 0 ? argument(L, 2, 0) : 0;
}

/* Each byte is a value. */
static int64_t cost_of_byte(lua_State *L) {
  int64_t n = (int64_t)lua_rawlen(L, 1), from = argument(L, 2, 1), to = argument(L, 3, from);
  if (from < 0) from = from < -n ? 1 : from + n + 1;
  if (to < 0) to += n + 1;
  return span(from, to > n ? n : to);
}

typedef int64_t (*cost_fn)(lua_State *L);

typedef struct charged {
  const char *library, *name;
  cost_fn cost;
} charged;

static const charged loops[] = {
    {"table", "concat", cost_of_concat}, {"table", "insert", cost_of_insert},
    {"table", "move", cost_of_move},     {"table", "remove", cost_of_remove},
    {"table", "sort", cost_of_sort},     {"table", "unpack", cost_of_unpack},
    {"string", "rep", cost_of_rep},      {"string", "byte", cost_of_byte},
};

/* Upvalues: Lua's own, the row. */
static int charge_and_call(lua_State *L) {
  const charged *row = lua_touserdata(L, lua_upvalueindex(2));
  if (lua_istable(L, 1) || lua_isstring(L, 1)) lt_host_spend(L, row->cost(L));
  return call_original(L);
}

static void replace(lua_State *L, const char *library, const char *name, lua_CFunction fn,
                    const charged *row) {
  lua_getglobal(L, library);
  lua_getfield(L, -1, name);
  lua_pushlightuserdata(L, (void *)row);
  lua_pushcclosure(L, fn, 2);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

void lt_host_bound(lua_State *L, const ltrain *l) {
  make_guards(L);
  replace(L, LUA_GNAME, "xpcall", bounded_xpcall, NULL);
  replace(L, LUA_GNAME, "setmetatable", bounded_setmetatable, NULL);
  replace(L, "coroutine", "close", bounded_close, NULL);
  lt_host_bound_patterns(L);
  if (l->config.max_instructions <= 0) return;
  for (size_t k = 0; k < sizeof loops / sizeof *loops; k++)
    replace(L, loops[k].library, loops[k].name, charge_and_call, &loops[k]);
}
