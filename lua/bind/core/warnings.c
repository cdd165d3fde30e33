/* lua/bind/core/warnings.c: passes warnings of the runtime, while an operation runs, to the console
   of the Trainer, or to stderr. */
#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/state.h"

static const char parts; /* its address is the registry's key of the table `runtime` */

/* Pushes a function of `runtime`: `warn` when the Trainer's console is loaded, which knows of bars
   and ranks, else the one that it writes with. Whether it is the former. */
static bool push_teller(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &parts);
  bool warns = lua_getfield(L, -1, "warn") == LUA_TFUNCTION;
  if (!warns) {
    lua_pop(L, 1);
    lua_getfield(L, -1, "write_stderr");
  }
  lua_remove(L, -2);
  return warns;
}

/* The ctx's hook: warnings come from the root ctx alone, in the thread that runs the script. */
static void on_log(void *ud, int level, const char *text) {
  lt_bind *b = ud;
  lua_State *L = b->L;
  if (level < LT_WARN || !lua_checkstack(L, 8)) return;
  if (push_teller(L))
    lua_pushstring(L, text);
  else
    lua_pushfstring(L, "ltrain: warning: %s\n", text);
  lt_callback(b, "warning", 1, 0);
}

void lt_bind_warnings(lua_State *L, lt_bind *b) {
  lua_getfield(L, 1, "runtime");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &parts);
  b->c->log = on_log;
  b->c->log_ud = b;
}
