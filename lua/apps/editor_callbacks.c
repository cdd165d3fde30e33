/* lua/apps/editor_callbacks.c: callbacks of the line editor, written in Lua: completion, hints,
   whether an entry is complete.

   While a key is waited for nothing may raise, and nothing may take long: a helper that fails, runs
   for too long (a metamethod of the script's) or is interrupted has no answer. */
#include "apps/editor_callbacks.h"

#include <lauxlib.h>
#include <string.h>

#include "cli/signals.h"

enum { HELPER = 2, INSTRUCTIONS = 20000, MOST = 1000 };

static int asked; /* how often the hook has run */

static void hurry(lua_State *L, lua_Debug *ar) {
  (void)ar;
  asked++;
  if (asked > MOST || lt_signals_pending() > 0) luaL_error(L, "too long");
}

static char *copy_of(lua_State *L, int index) {
  const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : NULL;
  return text != NULL ? strdup(text) : NULL;
}

void lt_ask_script(void *ud, lt_line_question question, const char *text, size_t length,
                   size_t cursor, char *answers[2]) {
  static const char *const names[] = {"enter", "complete", "look"};
  lua_State *L = ud;
  int top = lua_gettop(L), mask = lua_gethookmask(L), count = lua_gethookcount(L);
  lua_Hook hook = lua_gethook(L);
  if (!lua_checkstack(L, 8)) return;
  if (lua_getfield(L, HELPER, names[question]) == LUA_TFUNCTION) {
    asked = 0;
    lua_sethook(L, hurry, LUA_MASKCOUNT, INSTRUCTIONS);
    lua_pushvalue(L, HELPER);
    lua_pushlstring(L, text, length);
    lua_pushinteger(L, (lua_Integer)cursor + 1);
    if (lua_pcall(L, 3, 2, 0) == LUA_OK) {
      answers[0] = copy_of(L, -2);
      answers[1] = copy_of(L, -1);
    }
    lua_sethook(L, hook, mask, count);
  }
  lua_settop(L, top);
}
