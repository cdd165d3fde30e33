/* lua/host/sandbox/restrict.c: removes functions of Lua's library that the host's permissions do
   not allow.

   Damage control, not a boundary against hostile code. Chunks of ours captured what they need
   before, so that nothing here reaches them. */
#include <string.h>

#include <lauxlib.h>

#include "bind/core/current_line.h"
#include "host/state.h"

/* A function of Lua's that only goes with one of the permissions in `needs`. */
typedef struct gate {
  const char *table, *name;
  unsigned needs;
  const char *permission;
} gate;
static const gate gates[] = {
    {LUA_GNAME, "dofile", LTRAIN_READ_FILES, "LTRAIN_READ_FILES"},
    {LUA_GNAME, "loadfile", LTRAIN_READ_FILES, "LTRAIN_READ_FILES"},
    {"package", "searchpath", LTRAIN_READ_FILES, "LTRAIN_READ_FILES"},
    {"package", "loadlib", LTRAIN_LOAD_LIBRARIES, "LTRAIN_LOAD_LIBRARIES"},
    {"os", "getenv", LTRAIN_LUA_LIBRARIES | LTRAIN_ENVIRONMENT, "LTRAIN_ENVIRONMENT"},
    {"os", "execute", LTRAIN_LUA_LIBRARIES, "LTRAIN_LUA_LIBRARIES"},
    {"os", "remove", LTRAIN_LUA_LIBRARIES, "LTRAIN_LUA_LIBRARIES"},
    {"os", "rename", LTRAIN_LUA_LIBRARIES, "LTRAIN_LUA_LIBRARIES"},
    {"os", "setlocale", LTRAIN_LUA_LIBRARIES, "LTRAIN_LUA_LIBRARIES"},
    {"os", "tmpname", LTRAIN_LUA_LIBRARIES, "LTRAIN_LUA_LIBRARIES"},
    {LUA_GNAME, "collectgarbage", LTRAIN_LUA_LIBRARIES, "LTRAIN_LUA_LIBRARIES"}};

/* In place of such a function; upvalue 1: its gate. loadfile gives nil and the reason, as ever. */
static int refuse(lua_State *L) {
  const gate *g = lua_touserdata(L, lua_upvalueindex(1));
  bool global = strcmp(g->table, LUA_GNAME) == 0;
  const char *text =
      lua_pushfstring(L, "%s%s%s: the host of this state does not allow it (%s)",
                      global ? "" : g->table, global ? "" : ".", g->name, g->permission);
  if (strcmp(g->name, "loadfile") != 0) return luaL_error(L, "%s", text);
  lua_pushnil(L);
  lua_insert(L, -2);
  return 2;
}

static void close_gates(lua_State *L, unsigned allow) {
  for (size_t k = 0; k < sizeof gates / sizeof *gates; k++) {
    if ((allow & gates[k].needs) != 0) continue;
    lua_getglobal(L, gates[k].table);
    lua_pushlightuserdata(L, (void *)&gates[k]);
    lua_pushcclosure(L, refuse, 1);
    lua_setfield(L, -2, gates[k].name);
    lua_pop(L, 1);
  }
}

static void remove_field(lua_State *L, const char *table, const char *name) {
  lua_getglobal(L, table);
  lua_pushnil(L);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

/* The last of package.searchers: why nothing else was looked for. Upvalue 1: what is allowed. */
static int refuse_search(lua_State *L) {
  unsigned allow = (unsigned)lua_tointeger(L, lua_upvalueindex(1));
  const char *name = luaL_checkstring(L, 1);
  bool closed = strcmp(name, "io") == 0 || strcmp(name, "debug") == 0;
  lua_pushfstring(L, "\n\tthe host of this state does not allow%s%s%s",
                  closed ? " LTRAIN_LUA_LIBRARIES" : "",
                  (allow & LTRAIN_READ_FILES) == 0 ? " LTRAIN_READ_FILES" : "",
                  (allow & LTRAIN_LOAD_LIBRARIES) == 0 ? " LTRAIN_LOAD_LIBRARIES" : "");
  return 1;
}

/* load(text, name, mode, env): never bytecode, nor under a name of the library's own chunks, which
   may run on when a call must end. Upvalue 1 is Lua's own. */
static int load_text(lua_State *L) {
  int n = lua_gettop(L);
  if (lua_type(L, 2) == LUA_TSTRING && lt_source_is_ours(lua_tostring(L, 2)))
    return luaL_error(L, "load: the name '%s' is the library's", lua_tostring(L, 2));
  if (n < 3) lua_settop(L, 3);
  lua_pushliteral(L, "t");
  lua_replace(L, 3);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

static int refuse_exit(lua_State *L) { return luaL_error(L, "os.exit: the host owns the process"); }

/* The package library: no path leads to files that may not be read. */
static void restrict_require(lua_State *L, unsigned allow) {
  static const char *const paths[] = {"path", "cpath"};
  lua_getglobal(L, "package");
  bool may[] = {(allow & LTRAIN_READ_FILES) != 0, (allow & LTRAIN_LOAD_LIBRARIES) != 0};
  for (int k = 0; k < 2; k++) {
    if (may[k]) continue;
    lua_pushliteral(L, "");
    lua_setfield(L, -2, paths[k]);
  }
  /* Without files a script could still write a path of its own: the searchers go. Ours stay. */
  lua_getfield(L, -1, "searchers");
  lua_Integer n = luaL_len(L, -1), kept = 0;
  for (lua_Integer k = 1; k <= n; k++) {
    lua_geti(L, -1, k);
    bool of_files = lua_iscfunction(L, -1) && k > 1 && k >= n - 2;
    bool is_c = k >= n - 1;
    if (of_files && !may[is_c ? 1 : 0])
      lua_pop(L, 1);
    else
      lua_seti(L, -2, ++kept);
  }
  for (lua_Integer k = kept + 1; k <= n; k++) {
    lua_pushnil(L);
    lua_seti(L, -2, k);
  }
  if (kept < n) {
    lua_pushinteger(L, allow);
    lua_pushcclosure(L, refuse_search, 1);
    lua_seti(L, -2, kept + 1);
  }
  lua_pop(L, 2);
}

/* The metatable on the top is not the script's. */
static void protect(lua_State *L) {
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
}

/* Strings share one metatable with the library. */
static void protect_strings(lua_State *L) {
  lua_pushliteral(L, "");
  if (lua_getmetatable(L, -1) != 0) {
    protect(L);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* print(...): to the host. Upvalue 1: the state. */
static int print(lua_State *L) {
  ltrain *l = lua_touserdata(L, lua_upvalueindex(1));
  if (l->config.print == NULL) return 0;
  int n = lua_gettop(L);
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (int k = 1; k <= n; k++) {
    if (k > 1) luaL_addchar(&text, '\t');
    luaL_tolstring(L, k, NULL);
    luaL_addvalue(&text);
  }
  luaL_addchar(&text, '\n');
  luaL_pushresult(&text);
  size_t length;
  const char *line = lua_tolstring(L, -1, &length);
  lua_State *before = lt_host_call_out(l, L);
  l->config.print(l->config.ud, line, length);
  lt_host_call_out(l, before);
  return 0;
}

void lt_host_give_print(lua_State *L, ltrain *l) {
  lua_pushlightuserdata(L, l);
  lua_pushcclosure(L, print, 1);
  lua_setglobal(L, "print");
}

/* With Lua's libraries: nothing that reaches the functions behind the bounded ones
   (bounded_functions.c), or the metatable of what has a finalizer, which would run without a
   hook. */
static void keep_budget(lua_State *L) {
  static const char *const ways[] = {"sethook",    "setmetatable", "getmetatable", "getregistry",
                                     "getupvalue", "setupvalue",   "upvaluejoin"};
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) remove_field(L, "debug", ways[k]);
  luaL_getmetatable(L, LUA_FILEHANDLE);
  protect(L);
  lua_pop(L, 1);
}

void lt_host_restrict(lua_State *L, const ltrain_config *config) {
  close_gates(L, config->allow);
  remove_field(L, "string", "dump");
  if ((config->allow & LTRAIN_LUA_LIBRARIES) != 0 && config->max_instructions > 0) keep_budget(L);
  lua_getglobal(L, "os");
  lua_pushcfunction(L, refuse_exit);
  lua_setfield(L, -2, "exit");
  lua_pop(L, 1);
  lua_getglobal(L, "load");
  lua_pushcclosure(L, load_text, 1);
  lua_setglobal(L, "load");
  restrict_require(L, config->allow);
  protect_strings(L);
}
