/* lua/host/install.c: creates Lua states with ltrain loaded, and loads ltrain into states that
   another program created.

   The library's chunks come from memory (LTRAIN_STDLIB=folder: from files), each run once a state
   with an environment of its own that was captured before a host could close anything off. They are
   kept apart from package.loaded, so that clearing that does not make a second Module class. */
#include "host/install.h"

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/open.h"
#include "bind/system/embedded.h"

static const char loaded_key;
static const char environment_key;

static bool is_ours(const char *name) {
  return strncmp(name, "ltrain", 6) == 0 && (name[6] == 0 || name[6] == '.');
}

/* Chunks. */

/* "folder/nn/Linear.lua" or "folder/nn/init.lua" for ltrain.nn; pushes nothing on failure. */
static int load_file(lua_State *L, const char *folder, const char *name, const char *suffix) {
  const char *rest = name[6] == '.' ? name + 7 : "";
  luaL_gsub(L, rest, ".", "/");
  lua_pushfstring(L, "%s/%s%s.lua", folder, lua_tostring(L, -1), suffix);
  lua_remove(L, -2);
  FILE *file = fopen(lua_tostring(L, -1), "rb");
  lua_pop(L, 1);
  if (file == NULL) return -1;
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  size_t n;
  do {
    char *buffer = luaL_prepbuffer(&text);
    n = fread(buffer, 1, LUAL_BUFFERSIZE, file);
    luaL_addsize(&text, n);
  } while (n > 0);
  fclose(file);
  luaL_pushresult(&text);
  size_t size;
  const char *source = lua_tolstring(L, -1, &size);
  lua_pushfstring(L, "=%s", name);
  int status = luaL_loadbufferx(L, source, size, lua_tostring(L, -1), "t");
  lua_insert(L, -3);
  lua_pop(L, 2);
  return status;
}

/* lua_ident names the release of the Lua that runs; not declared by its headers. */
extern const char lua_ident[] __attribute__((weak));

/* 5.1 has no lua_version, 5.2, 5.3 and LuaJIT return the address of the number. */
const char *lt_host_lua_fault(void) {
  static const char ours[] = "$LuaVersion: " LUA_VERSION;
  bool fits = lua_version(NULL) == LUA_VERSION_NUM &&
              (lua_ident == NULL || strncmp(lua_ident, ours, sizeof ours - 1) == 0);
  return fits ? NULL
              : "a Lua that is linked into the program takes the place of " LUA_VERSION
                ": link the program with a shared library of Lua, or load libltrain.so with dlopen "
                "and RTLD_DEEPBIND";
}

/* The chunk k of stdlib/: as it was compiled if this release of Lua did it, else its source. */
static int load_embedded(lua_State *L, int k) {
  bool compiled = lua_ident != NULL && strcmp(lua_ident, lt_stdlib_lua) == 0;
  if (compiled)
    return luaL_loadbufferx(L, lt_stdlib_code[k].code, lt_stdlib_code[k].size, "=?", "b");
  lua_pushfstring(L, "=%s", lt_stdlib[k].name);
  int status =
      luaL_loadbufferx(L, lt_stdlib[k].source, lt_stdlib[k].size, lua_tostring(L, -1), "t");
  lua_remove(L, -2);
  return status;
}

static int find_embedded(lua_State *L, const char *name) {
  int k = lt_embedded_find(lt_stdlib, lt_stdlib_count, name);
  return k >= 0 ? load_embedded(L, k) : -1;
}

/* Push the chunk `name`, or raise why it cannot be loaded; false when there is none. */
static bool push_chunk(lua_State *L, const char *name) {
  const char *folder = getenv("LTRAIN_STDLIB");
  int status = -1;
  if (folder != NULL && folder[0] != 0) {
    if (name[6] == '.') status = load_file(L, folder, name, "");
    if (status == -1) status = load_file(L, folder, name, name[6] == '.' ? "/init" : "init");
  } else {
    status = find_embedded(L, name);
  }
  if (status == -1) return false;
  if (status != LUA_OK) lua_error(L);
  return true;
}

/* Push what the module `name` returned, running its chunk the first time; false: no such chunk. */
static bool push_module(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded_key);
  if (lua_getfield(L, -1, name) != LUA_TNIL) {
    lua_remove(L, -2);
    return true;
  }
  lua_pop(L, 1);
  if (!push_chunk(L, name)) {
    lua_pop(L, 1);
    return false;
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &environment_key);
  if (lua_setupvalue(L, -2, 1) == NULL) lua_pop(L, 1);
  lua_pushstring(L, name);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_pushboolean(L, true);
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, name);
  lua_remove(L, -2);
  return true;
}

/* `require` as our own chunks know it. */
static int require_ours(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (push_module(L, name)) return 1;
  return luaL_error(L, "ltrain: there is no part '%s' in this build", name);
}

/* Scripts of a host find the library itself, and by `lt` what that gives them: not the functions in
   C behind it, nor chunks that take any argument for one of the library's own. */
static bool may_find(lua_State *L, const char *name) {
  return strcmp(name, "ltrain") == 0 || lt_bind_get(L)->guard == NULL;
}

/* A searcher for package.searchers: (name) -> loader. */
static int run_loader(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (!is_ours(name) || !may_find(L, name) || !push_module(L, name))
    return luaL_error(L, "ltrain: the part was removed");
  return 1;
}

static int search(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (!is_ours(name)) return 0;
  if (!may_find(L, name)) {
    lua_pushfstring(L, "\n\t'%s' is not for scripts of a host: use require \"ltrain\"", name);
    return 1;
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded_key);
  bool there = lua_getfield(L, -1, name) != LUA_TNIL;
  if (!there) {
    int top = lua_gettop(L);
    there = push_chunk(L, name);
    lua_settop(L, top);
  }
  if (!there) {
    lua_pushfstring(L, "\n\tno part '%s' in ltrain", name);
    return 1;
  }
  lua_pushcfunction(L, run_loader);
  lua_pushstring(L, name);
  return 2;
}

/* The environment of our chunks. */

static void copy_table(lua_State *L, int from) {
  from = lua_absindex(L, from);
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, from) != 0;) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
}

static void push_environment(lua_State *L) {
  static const char *const names[] = {
      "assert",   "collectgarbage", "coroutine", "error",    "getmetatable", "ipairs",
      "load",     "math",           "next",      "pairs",    "pcall",        "print",
      "rawequal", "rawget",         "rawlen",    "rawset",   "select",       "setmetatable",
      "string",   "table",          "tonumber",  "tostring", "type",         "utf8",
      "warn",     "xpcall"};
  lua_createtable(L, 0, 32);
  lua_pushglobaltable(L);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    if (lua_getfield(L, -1, names[k]) == LUA_TTABLE) {
      copy_table(L, -1);
      lua_remove(L, -2);
    }
    lua_setfield(L, -3, names[k]);
  }
  lua_pop(L, 1);
  lua_pushcfunction(L, require_ours);
  lua_setfield(L, -2, "require");
}

/* Methods of strings stay Lua's, whatever becomes of the script's table `string`; what a script
   adds to that are methods too. */
static void keep_string_methods(lua_State *L) {
  lua_pushliteral(L, "");
  if (lua_getmetatable(L, -1) != 0) {
    lua_getglobal(L, "string");
    copy_table(L, -1);
    lua_pushnil(L);
    lua_setfield(L, -2, "dump"); /* none of a string's */
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_setfield(L, -3, "__index");
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
}

static void add_searcher(lua_State *L) {
  if (lua_getglobal(L, "package") == LUA_TTABLE && lua_getfield(L, -1, "searchers") == LUA_TTABLE) {
    lua_Integer n = luaL_len(L, -1);
    for (lua_Integer k = n; k >= 2; k--) { /* after package.preload */
      lua_rawgeti(L, -1, k);
      lua_rawseti(L, -2, k + 1);
    }
    lua_pushcfunction(L, search);
    lua_rawseti(L, -2, n >= 1 ? 2 : 1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

void lt_host_install(lua_State *L, const lt_bind_options *options) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded_key) == LUA_TTABLE) {
    lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  luaL_checkstack(L, 10, "ltrain");
  lua_newtable(L);
  lt_bind_open(L, options);
  lua_getfield(L, -1, "runtime");
  lua_setfield(L, -3, "ltrain.runtime");
  lua_setfield(L, -2, "ltrain.c");
  push_environment(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &environment_key);
  if (options->owned) keep_string_methods(L);
  lt_set_require(L, require_ours);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &loaded_key);
  add_searcher(L);
}

/* States. */

static void *lua_allocate(void *ud, void *ptr, size_t old_size, size_t new_size) {
  const lt_allocator *a = ud;
  return a->fn(a->ud, ptr, ptr == NULL ? 0 : old_size, new_size);
}

static int install_protected(lua_State *L) {
  const lt_bind_options *options = lua_touserdata(L, 1);
  luaL_openlibs(L);
  lt_host_install(L, options);
  return 0;
}

lua_State *lt_host_new(const lt_bind_options *options) {
  lua_State *L = options->allocator != NULL ? lua_newstate(lua_allocate, (void *)options->allocator)
                                            : luaL_newstate();
  if (L == NULL) return NULL;
  lt_bind_options owned = *options;
  owned.owned = true;
  lua_pushcfunction(L, install_protected);
  lua_pushlightuserdata(L, &owned);
  if (lua_pcall(L, 1, 0, 0) == LUA_OK) return L;
  lua_close(L);
  return NULL;
}

int luaopen_ltrain(lua_State *L) {
  if (lt_host_lua_fault() != NULL) return luaL_error(L, "ltrain: %s", lt_host_lua_fault());
  const lt_bind_options guest = {
      .policy = {.read_files = true, .write_files = true, .environment = true}};
  lt_host_install(L, &guest);
  if (!push_module(L, "ltrain")) return luaL_error(L, "ltrain: the library is not in this build");
  return 1;
}
