/* lua/apps/prompt_services.c: the prompt's functions for stdlib/apps: reading entries, their
   history. */
#include "apps/apps.h"

#include <lauxlib.h>

#include "apps/editor_callbacks.h"
#include "apps/prompt_input.h"

/* read_line(prompt[, helper]) -> an entry; nil at the end; false when Ctrl-C threw it away. The
   helper is asked while it is edited: editor_callbacks.c. */
static int read_line(lua_State *L) {
  const char *prompt = luaL_checkstring(L, 1), *text;
  size_t length;
  lua_settop(L, 2);
  lt_line_helper helper = {.ask = lt_ask_script, .ud = L};
  switch (lt_line_read(prompt, lua_isnil(L, 2) ? NULL : &helper, &text, &length)) {
    case LT_LINE_READ: lua_pushlstring(L, text, length); break;
    case LT_LINE_INTERRUPTED: lua_pushboolean(L, false); break;
    case LT_LINE_END: lua_pushnil(L); break;
  }
  return 1;
}

static int remember(lua_State *L) {
  lt_line_remember(luaL_checkstring(L, 1));
  return 0;
}

void lt_apps_add_services(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"read_line", read_line}, {"remember", remember}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
  lua_pushboolean(L, lt_line_is_edited());
  lua_setfield(L, -2, "edits");
}

void lt_apps_close(void) { lt_line_close(); }
