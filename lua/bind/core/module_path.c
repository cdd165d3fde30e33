/* lua/bind/core/module_path.c: the path of the Module in which a script is running: "Net.head".

   A Module's frame is one whose first local is a `self` with a function `forward`. */
#include <string.h>

#include "bind/core/current_line.h"

enum { MAX_LEVELS = 200, MAX_DEPTH = 6 };

/* Push the class name of the module at `index`. */
static void push_class_name(lua_State *L, int index) {
  index = lua_absindex(L, index);
  if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING) return;
  lua_getfield(L, index, "_class_name");
  if (lua_type(L, -1) == LUA_TSTRING) return;
  lua_pop(L, 1);
  lua_pushliteral(L, "Module");
}

static bool skipped_key(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TSTRING) return !lua_isinteger(L, index);
  const char *key = lua_tostring(L, index);
  return key[0] == '_' || strcmp(key, "trainer") == 0;
}

/* Search the fields of the table at `parent` for the module at `child`; push ".net[1]". */
static bool push_path_between(lua_State *L, int parent, int child, int depth) {
  if (depth == 0 || lua_checkstack(L, 8) == 0) return false;
  for (lua_pushnil(L); lt_raw_next(L, parent) != 0; lua_pop(L, 1)) {
    if (!lua_istable(L, -1) || skipped_key(L, -2)) continue;
    int key = lua_gettop(L) - 1;
    bool found = lua_rawequal(L, -1, child);
    if (found)
      lua_pushliteral(L, "");
    else
      found = push_path_between(L, key + 1, child, depth - 1);
    if (!found) continue;
    if (lua_isinteger(L, key))
      lua_pushfstring(L, "[%I]%s", lua_tointeger(L, key), lua_tostring(L, -1));
    else
      lua_pushfstring(L, ".%s%s", lua_tostring(L, key), lua_tostring(L, -1));
    lua_replace(L, key);
    lua_settop(L, key);
    return true;
  }
  return false;
}

/* Whether the value on top is a Module. Of anything else no field is read: its __index may raise,
   and what it raises would be checked here again. */
static bool is_module(lua_State *L) {
  if (!lua_istable(L, -1) || luaL_getmetafield(L, -1, "__module") == LUA_TNIL) return false;
  lua_pop(L, 1);
  bool found = lua_getfield(L, -1, "forward") == LUA_TFUNCTION;
  lua_pop(L, 1);
  return found;
}

/* Push the `self` of the frame at `level` if that is a Module's. */
static bool push_self(lua_State *L, int level) {
  lua_Debug ar;
  if (lua_getstack(L, level, &ar) == 0) return false;
  const char *name = lua_getlocal(L, &ar, 1);
  if (name == NULL) return false;
  if (strcmp(name, "self") == 0 && is_module(L)) return true;
  lua_pop(L, 1);
  return false;
}

static int levels_of(lua_State *L) {
  lua_Debug ar;
  int n = 0;
  while (n < MAX_LEVELS && lua_getstack(L, n, &ar) != 0) n++;
  return n;
}

/* Runs protected: fields of the script's tables may have metamethods that fail. */
static int find_module_path(lua_State *L) {
  lua_settop(L, 0);
  lua_pushnil(L); /* 1: path so far */
  lua_pushnil(L); /* 2: the module it names */
  for (int level = levels_of(L) - 1; level > 0; level--) {
    if (!push_self(L, level)) continue;
    if (lua_rawequal(L, 2, 3)) {
      lua_settop(L, 2);
      continue;
    }
    if (lua_getfield(L, 3, "_path") == LUA_TFUNCTION) {
      lua_pushvalue(L, 3);
      lua_call(L, 1, 1);
    }
    if (lua_type(L, -1) != LUA_TSTRING) {
      lua_settop(L, 3);
      if (lua_istable(L, 2) && push_path_between(L, 2, 3, MAX_DEPTH)) {
        lua_pushvalue(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
      } else {
        push_class_name(L, 3);
      }
    }
    lua_replace(L, 1);
    lua_replace(L, 2);
    lua_settop(L, 2);
  }
  lua_settop(L, 1);
  return 1;
}

void lt_push_module_path(lua_State *L) {
  lua_pushcfunction(L, find_module_path);
  if (lua_pcall(L, 0, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING) return;
  lua_pop(L, 1);
  lua_pushnil(L);
}
