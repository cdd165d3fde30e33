/* spec/dist/busy.c: a Lua module whose one function computes in C for some seconds and looks at
   nothing: what a long kernel is to whoever wants to end the job. */
#include <time.h>

#include <lauxlib.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* busy(seconds) */
static int busy(lua_State *L) {
  double end = now() + luaL_checknumber(L, 1);
  volatile double sum = 0;
  while (now() < end)
    for (int k = 0; k < 10000; k++) sum = sum + k;
  return 0;
}

__attribute__((visibility("default"))) int luaopen_busy(lua_State *L);
int luaopen_busy(lua_State *L) {
  lua_pushcfunction(L, busy);
  return 1;
}
