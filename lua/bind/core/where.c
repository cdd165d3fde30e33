/* lua/bind/core/where.c: which line of the script is running, and in which Module. */
#include <stdio.h>
#include <string.h>

#include "base/lines.h"
#include "bind/core/state.h"

enum { MAX_LEVELS = 200, MAX_DEPTH = 6 };

/* Chunks of ours have names that no file can have: "=ltrain" and "=ltrain.nn.Linear". */
bool lt_source_is_ours(const char *source) {
  return strncmp(source, "=ltrain", 7) == 0 && (source[7] == '.' || source[7] == 0);
}

/* Frames of the library, and the function of the script whose work they do, which is no frame any
   more: a hook that ended in a tail call, one whose result is read. */
static const struct {
  const char *source, *places[2];
} gone[] = {
    {"=ltrain.trainer.call", {"hook", NULL}},
    {"=ltrain.trainer.steps.batch", {"source", NULL}},
    {"=ltrain.trainer.optimizers", {"source", NULL}},
    {"=ltrain.trainer.data.sources", {"source", NULL}},
};

/* Whether the frame of the library is one of those: then `ar` is the place of that function. */
static bool is_gone(lua_State *L, lua_Debug *ar, bool ask) {
  if (strncmp(ar->source, "=ltrain.trainer.", 16) != 0) return false;
  for (size_t k = 0; k < sizeof gone / sizeof *gone; k++)
    if (strcmp(ar->source, gone[k].source) == 0)
      return lt_find_place(L, gone[k].places, ar, ask);
  return false;
}

/* The innermost frame of the script, from `level` on. */
static bool find_script(lua_State *L, int level, lua_Debug *ar, bool ask) {
  for (; level < MAX_LEVELS && lua_getstack(L, level, ar) != 0; level++) {
    lua_getinfo(L, "S", ar);
    if (lt_source_is_ours(ar->source)) {
      if (is_gone(L, ar, ask)) return true;
      continue;
    }
    lua_getinfo(L, "l", ar);
    if (ar->currentline > 0) return true;
  }
  return false;
}

/* Without memory to keep it in, a line is not known: nothing fails of that. */
static uint32_t intern(lt_bind *b, const lua_Debug *ar) {
  size_t at = ((size_t)ar->source / 16 + (size_t)ar->currentline * 31) % LT_LINE_CACHE;
  lt_seen_line *seen = &b->lines[at];
  if (seen->source == ar->source && seen->line == ar->currentline &&
      strcmp(seen->short_src, ar->short_src) == 0)
    return seen->id;
  bool was_ok = lt_ok(b->c);
  uint32_t id = lt_line_id(b->c, ar->short_src, ar->currentline);
  if (id == 0) {
    if (was_ok) lt_take_failure(b->c, NULL);
    return 0;
  }
  seen->source = ar->source;
  seen->line = ar->currentline;
  seen->id = id;
  snprintf(seen->short_src, sizeof seen->short_src, "%s", ar->short_src);
  return id;
}

uint32_t lt_script_line(lua_State *L, lt_bind *b) {
  lua_Debug ar;
  return find_script(L, 1, &ar, false) ? intern(b, &ar) : 0;
}

uint32_t lt_hooked_line(lua_State *L, lt_bind *b) {
  lua_Debug ar;
  return find_script(L, 0, &ar, false) ? intern(b, &ar) : 0;
}

uint32_t lt_find_line(void *ud) {
  lt_bind *b = ud;
  lua_Debug ar;
  if (b->line_hint != 0 && lua_getstack(b->L, 1, &ar) != 0) {
    lua_getinfo(b->L, "Sl", &ar);
    bool script = ar.currentline > 0 && !lt_source_is_ours(ar.source);
    return script ? intern(b, &ar) : b->line_hint;
  }
  return lt_script_line(b->L, b);
}

/* runtime.parameters(fn[, any]) -> how many a function of the library's Lua names, and whether it
   is a method; nil of any other but with `any`, of one that takes all, of the asking file's own */
int lt_parameters(lua_State *L) {
  lua_Debug ar, asking;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  bool any = lua_toboolean(L, 2);
  lua_pushvalue(L, 1);
  lua_getinfo(L, ">Su", &ar);
  if ((!any && !lt_source_is_ours(ar.source)) || ar.isvararg || ar.what[0] == 'C') return 0;
  if (lua_getstack(L, 1, &asking) != 0 && lua_getinfo(L, "S", &asking) != 0 &&
      strcmp(asking.source, ar.source) == 0)
    return 0;
  lua_pushvalue(L, 1);
  const char *first = lua_getlocal(L, NULL, 1);
  lua_pushinteger(L, ar.nparams);
  lua_pushboolean(L, first != NULL && strcmp(first, "self") == 0);
  return 2;
}

/* runtime.parameter_names(fn) -> a list of the names of a Lua function's parameters */
int lt_parameter_names(lua_State *L) {
  const char *name;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_newtable(L);
  lua_insert(L, 1); /* lua_getlocal asks the function on top */
  for (int k = 1; (name = lua_getlocal(L, NULL, k)) != NULL; k++) {
    lua_pushstring(L, name);
    lt_raw_seti(L, 1, k);
  }
  lua_settop(L, 1);
  return 1;
}

/* runtime.arguments(level) -> {[name] = value} of the parameters of a running Lua function, as they
   are now */
int lt_arguments(lua_State *L) {
  lua_Debug ar;
  const char *name;
  int level = (int)luaL_checkinteger(L, 1);
  lua_settop(L, 1);
  lua_newtable(L);
  if (lua_getstack(L, level, &ar) == 0 || lua_getinfo(L, "u", &ar) == 0) return 1;
  for (int k = 1; k <= ar.nparams && (name = lua_getlocal(L, &ar, k)) != NULL; k++)
    lua_setfield(L, 2, name);
  return 1;
}

int lt_script_place(lua_State *L, lt_bind *b, char *file, size_t size) {
  lua_Debug ar;
  bool found = find_script(L, 1, &ar, false);
  if (found) lt_ctx_set_line(b->c, intern(b, &ar));
  snprintf(file, size, "%s", found ? ar.short_src : "");
  return found ? ar.currentline : 0;
}

/* runtime.path_of(file) -> the path of a file that messages name: Lua leaves out the beginning of
   long ones, and the functions that are running know it; `file` of others */
int lt_path_of(lua_State *L) {
  const lt_bind *b = lt_enter(L);
  const char *file = luaL_checkstring(L, 1);
  const lt_resumed *outer = b->resumed;
  lua_Debug ar;
  for (lua_State *thread = L; strncmp(file, "...", 3) == 0; outer = outer->outer) {
    for (int level = 0; level < MAX_LEVELS && lua_getstack(thread, level, &ar) != 0; level++) {
      lua_getinfo(thread, "S", &ar);
      if (ar.source[0] != '@' || strcmp(ar.short_src, file) != 0) continue;
      lua_pushstring(L, ar.source + 1);
      return 1;
    }
    if (outer == NULL) break;
    thread = outer->thread;
  }
  lua_settop(L, 1);
  return 1;
}

void lt_push_where(lua_State *L) {
  static const char *const places[] = {"hook", "source", "script", NULL};
  lua_Debug ar;
  if (find_script(L, 1, &ar, true) || lt_find_place(L, places, &ar, true))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else
    lua_pushliteral(L, "");
}

/* Module paths. A Module's frame is one whose first local is a `self` with a function `forward`. */

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
   and what it raises would be looked at here again. */
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
