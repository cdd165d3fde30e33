/* lua/host/restrict.c: what scripts of a host's state find among Lua's own functions.

   Damage control, not a boundary against hostile code. Chunks of ours captured what they need
   before, so that nothing here reaches them. */
#include <string.h>

#include <lauxlib.h>

#include "host/open.h"

static void remove_fields(lua_State *L, const char *table, const char *const *names) {
  if (lua_getglobal(L, table) == LUA_TTABLE) {
    for (; *names != NULL; names++) {
      lua_pushnil(L);
      lua_setfield(L, -2, *names);
    }
  }
  lua_pop(L, 1);
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
  static const char *const loaders[] = {"loadlib", NULL};
  static const char *const probes[] = {"searchpath", NULL};
  lua_getglobal(L, "package");
  bool may[] = {(allow & LTRAIN_READ_FILES) != 0, (allow & LTRAIN_LOAD_LIBRARIES) != 0};
  for (int k = 0; k < 2; k++) {
    if (may[k]) continue;
    lua_pushliteral(L, "");
    lua_setfield(L, -2, paths[k]);
  }
  if (!may[1]) remove_fields(L, "package", loaders);
  if (!may[0]) remove_fields(L, "package", probes);
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
  lua_pop(L, 2);
}

/* Strings share one metatable with the library. */
static void protect_strings(lua_State *L) {
  lua_pushliteral(L, "");
  if (lua_getmetatable(L, -1) != 0) {
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
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
  const char *whole = lua_tolstring(L, -1, &length);
  l->config.print(l->config.ud, whole, length);
  return 0;
}

void lt_host_give_print(lua_State *L, ltrain *l) {
  lua_pushlightuserdata(L, l);
  lua_pushcclosure(L, print, 1);
  lua_setglobal(L, "print");
}

void lt_host_restrict(lua_State *L, const ltrain_config *config) {
  static const char *const files[] = {"dofile", "loadfile", NULL};
  static const char *const collector[] = {"collectgarbage", NULL};
  static const char *const dump[] = {"dump", NULL};
  static const char *const hooks[] = {"sethook", "setmetatable", NULL};
  static const char *const os_rest[] = {"execute",   "getenv",  "remove", "rename",
                                        "setlocale", "tmpname", NULL};
  bool libraries = (config->allow & LTRAIN_LUA_LIBRARIES) != 0;
  if ((config->allow & LTRAIN_READ_FILES) == 0) remove_fields(L, LUA_GNAME, files);
  remove_fields(L, "string", dump);
  if (!libraries) {
    remove_fields(L, LUA_GNAME, collector);
    remove_fields(L, "os", os_rest);
  }
  if (libraries && config->max_instructions > 0) remove_fields(L, "debug", hooks);
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
