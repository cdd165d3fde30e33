/* lua/bind/core/current_line.c: finds the current line of the running script.

   A hook that ends in a tail call has no frame when what it called fails, and what it returned is
   read after it: the line of such errors is that of the function itself (runtime.places). */
#include "bind/core/current_line.h"

#include <stdio.h>
#include <string.h>

#include "base/script_lines.h"
#include "bind/core/state.h"

#define LT_PLACES "ltrain.places"
enum { MAX_LEVELS = 200 };

/* The line of the `return` of a function, of which `ar` has the source and the lines. Runs Lua. */
static int return_line(lua_State *L, const lua_Debug *ar) {
  int top = lua_gettop(L), line = ar->linedefined;
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.core.return_line");
  if (lua_pcall(L, 1, 1, 0) == LUA_OK) {
    lua_pushstring(L, ar->source);
    lua_pushinteger(L, ar->linedefined);
    lua_pushinteger(L, ar->lastlinedefined);
    if (lua_pcall(L, 3, 1, 0) == LUA_OK && lua_isinteger(L, -1)) line = (int)lua_tointeger(L, -1);
  }
  lua_settop(L, top);
  return line;
}

/* Whether runtime.places has a function of the script under the name: `ar` has its line then, its
   first or, with `ask`, that of its return. */
static bool find_place(lua_State *L, const char *name, lua_Debug *ar, bool ask) {
  if (lua_checkstack(L, 12) == 0) return false;
  int top = lua_gettop(L);
  bool found = lua_getfield(L, LUA_REGISTRYINDEX, LT_PLACES) == LUA_TTABLE &&
               lua_getfield(L, -1, name) == LUA_TFUNCTION;
  if (found) {
    lua_getinfo(L, ">S", ar);
    found = ar->linedefined >= 0 && !lt_source_is_ours(ar->source);
    if (found) ar->currentline = ask ? return_line(L, ar) : ar->linedefined;
  }
  lua_settop(L, top);
  return found;
}

/* The place of the function of the script whose work a frame of the library does, which is not a
   frame any more: a hook that ended in a tail call, one whose result is read; NULL: of none. */
static const char *place_of(const char *source) {
  if (strncmp(source, "=ltrain.trainer.", 16) != 0) return NULL;
  if (strcmp(source + 16, "hook_calls") == 0) return "hook";
  bool reads_result = strcmp(source + 16, "steps.batch") == 0 ||
                      strcmp(source + 16, "optimizers") == 0 ||
                      strcmp(source + 16, "data.sources") == 0;
  return reads_result ? "source" : NULL;
}

/* The innermost frame of the script, from `level` on. */
static bool find_script(lua_State *L, int level, lua_Debug *ar, bool ask) {
  for (; level < MAX_LEVELS && lua_getstack(L, level, ar) != 0; level++) {
    lua_getinfo(L, "S", ar);
    if (lt_source_is_ours(ar->source)) {
      const char *place = place_of(ar->source);
      if (place != NULL && find_place(L, place, ar, ask)) return true;
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

uint32_t lt_script_line(lua_State *L, lt_bind *b, int level) {
  lua_Debug ar;
  return find_script(L, level, &ar, false) ? intern(b, &ar) : 0;
}

uint32_t lt_find_line(void *ud) {
  lt_bind *b = ud;
  lua_Debug ar;
  if (b->line_hint != 0 && lua_getstack(b->L, 1, &ar) != 0) {
    lua_getinfo(b->L, "Sl", &ar);
    bool script = ar.currentline > 0 && !lt_source_is_ours(ar.source);
    return script ? intern(b, &ar) : b->line_hint;
  }
  return lt_script_line(b->L, b, 1);
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
  lua_Debug ar;
  if (find_script(L, 1, &ar, true) || find_place(L, "hook", &ar, true) ||
      find_place(L, "source", &ar, true) || find_place(L, "script", &ar, true))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else
    lua_pushliteral(L, "");
}

void lt_set_script(lua_State *L, int index) {
  lua_pushvalue(L, index);
  if (lua_getfield(L, LUA_REGISTRYINDEX, LT_PLACES) == LUA_TTABLE) {
    lua_insert(L, -2);
    lua_setfield(L, -2, "script");
  } else {
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

void lt_add_places(lua_State *L) {
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, LT_PLACES);
  lua_setfield(L, -2, "places");
}
