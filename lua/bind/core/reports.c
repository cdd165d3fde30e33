/* lua/bind/core/reports.c: lines and errors for the library's own Lua: `runtime.where`,
   `note_error` and the like, and lt.last_error. */
#include "base/script_lines.h"
#include "bind/core/current_line.h"
#include "bind/core/functions.h"
#include "bind/core/nearest_word.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "ltrain/version.h"

/* lt.last_error() -> {code, op, shapes, message, line, path} of the last error raised by us, or nil
 */
static int last_error(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->last_error_ref);
  if (!lua_istable(L, -1)) lua_pushnil(L);
  return 1;
}

/* runtime.error_text(error) -> its text */
static int error_text(lua_State *L) {
  luaL_checkany(L, 1);
  lt_push_error_text(L, 1);
  return 1;
}

/* runtime.status_of(error) -> the exit status that goes with it */
static int status_of(lua_State *L) {
  luaL_checkany(L, 1);
  lua_pushinteger(L, lt_status_of(L, 1));
  return 1;
}

/* runtime.mark_line([id]) -> id: a Module's call notes the script's line once for all ops below
   it; called with what it gave back before, it restores that. */
static int mark_line(lua_State *L) {
  lt_bind *b = lt_enter(L);
  uint32_t before = b->line_hint;
  if (lua_isnoneornil(L, 1)) {
    if (before == 0) b->line_hint = lt_script_line(L, b, 1);
  } else {
    b->line_hint = (uint32_t)luaL_checkinteger(L, 1);
  }
  lua_pushinteger(L, before);
  return 1;
}

/* runtime.line_text(id) -> "model.lua:14" */
static int line_text(lua_State *L) {
  char text[512];
  uint32_t id = (uint32_t)luaL_checkinteger(L, 1);
  lua_pushstring(L, lt_line_text(lt_enter(L)->c, id, text, sizeof text));
  return 1;
}

/* runtime.where() -> "model.lua:14: " of the script's innermost line, for errors of our own Lua */
static int where(lua_State *L) {
  lt_push_where(L);
  return 1;
}

void lt_bind_reports(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {{"mark_line", mark_line},
                                     {"line_text", line_text},
                                     {"where", where},
                                     {"parameters", lt_parameters},
                                     {"parameter_names", lt_parameter_names},
                                     {"arguments", lt_arguments},
                                     {"path_of", lt_path_of},
                                     {"origin", lt_function_origin},
                                     {"code", lt_function_code},
                                     {"note_error", lt_note_error},
                                     {"nearest", lt_nearest_word},
                                     {"printable", lt_printable},
                                     {"status_of", status_of},
                                     {"error_text", error_text},
                                     {NULL, NULL}};
  static const lt_function functions[] = {{"last_error", last_error, 0}, {NULL, NULL, 0}};
  lua_pushvalue(L, 1);
  lt_add_public(L, b, functions);
  lua_getfield(L, -1, "runtime");
  lt_add_functions(L, b, runtime);
  lt_add_places(L);
  lua_pop(L, 1);
  lua_pushliteral(L, LT_VERSION);
  lua_setfield(L, -2, "version");
  lua_pop(L, 1);
}
