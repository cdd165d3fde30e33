/* lua/bind/core/current_line.c: finds the current line of the running script. */
#include "bind/core/current_line.h"

#include <stdio.h>
#include <string.h>

#include "base/script_lines.h"
#include "bind/core/state.h"

enum { MAX_LEVELS = 200 };

/* Frames of the library, and the function of the script whose work they do, which is not a frame
   any more: a hook that ended in a tail call, one whose result is read. */
static const struct {
  const char *source, *places[2];
} gone[] = {
    {"=ltrain.trainer.hook_calls", {"hook", NULL}},
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
