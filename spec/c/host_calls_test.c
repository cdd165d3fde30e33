/* spec/c/host_calls_test.c: drawn arguments for each function that C gives the library, those that
   scripts do not find too: a call returns or raises, whatever it is given, and the state works.

   `./dev fuzz calls [RUNS] [SEED]` sets the number of calls and the seed; LT_FUZZ_TRACE=1 prints
   each function's name before its call. With sanitizers it looks for what they find. */
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "bind/open.h"
#include "host_test.h"

enum { RUNS = 2000, RUNS_OF_A_STATE = 400, HANGS_AFTER = 60 };

static uint64_t drawn;

static int draw(lua_State *L) {
  drawn += 0x9E3779B97F4A7C15u;
  uint64_t x = drawn;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  lua_pushinteger(L, (lua_Integer)((x ^ x >> 31) % (uint64_t)luaL_checkinteger(L, 1)));
  return 1;
}

static int note(lua_State *L) {
  if (getenv("LT_FUZZ_TRACE") != NULL) fprintf(stderr, "%s\n", luaL_checkstring(L, 1));
  return 0;
}

static long number_of(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text != NULL ? atol(text) : otherwise;
}

/* Push the metatables of the library's kinds of userdata, by name. */
static void push_types(lua_State *L) {
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, LUA_REGISTRYINDEX) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || !lua_istable(L, -1)) continue;
    if (strncmp(lua_tostring(L, -2), "ltrain.", 7) != 0) continue;
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_settable(L, -5);
  }
}

static ltrain *open_calls(void) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.memory_cap = 64 << 20;
  config.max_instructions = 200000;
  ltrain *l = open_with(&config);
  lua_State *L = ltrain_lua(l);
  if (luaL_loadfile(L, LT_DRAWN_CALLS) != LUA_OK) fail_msg("%s", lua_tostring(L, -1));
  lt_bind_open(L, NULL);
  push_types(L);
  lua_pushcfunction(L, draw);
  lua_pushcfunction(L, note);
  if (lua_pcall(L, 4, 1, 0) != LUA_OK) fail_msg("%s", lua_tostring(L, -1));
  if (lua_tointeger(L, -1) < 500) fail_msg("%lld functions", lua_tointeger(L, -1));
  lua_pop(L, 1);
  return l;
}

static void any_call_returns_or_raises(void **state) {
  (void)state;
  long runs = number_of("LT_FUZZ_RUNS", RUNS), seed = number_of("LT_FUZZ_SEED", 1);
  ltrain *l = NULL;
  for (long k = 0; k < runs; k++) {
    drawn = (uint64_t)seed * 15485863 + (uint64_t)k;
    if (k % RUNS_OF_A_STATE == 0) {
      ltrain_close(l);
      l = open_calls();
    }
    alarm(HANGS_AFTER);
    ltrain_call(l, "call", "");
  }
  alarm(0);
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_call_returns_or_raises)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
