/* lua/bind/system/system.c: what stdlib uses instead of os: clocks, the terminal, threads,
   cancelling. Files are in io.c. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/script_lines.h"
#include "base/locale.h"
#include "base/threads.h"
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/system/process.h"
#include "cpu/cpu.h"
#include "bind/system/embedded.h"
#include "registry.h"

#define LOCALE_NAME "ltrain.Locale"

static int clock_now(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (double)t.tv_sec + (double)t.tv_nsec * 1e-9);
  return 1;
}

static int time_now(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  lua_pushnumber(L, (double)t.tv_sec + (double)t.tv_nsec * 1e-9);
  return 1;
}

/* sleep(seconds): not longer, and until a signal comes */
static int sleep_for(lua_State *L) {
  lua_Number ms = luaL_checknumber(L, 1) * 1e3;
  luaL_argcheck(L, ms <= INT_MAX, 1, "too long");
  if (ms > 0) poll(NULL, 0, (int)ms);
  return 0;
}

/* For a state that may not look it is as if nothing was set: nil, and why. */
static bool may_look(lua_State *L, const char *who) {
  if (lt_enter(L)->c->policy.environment) return true;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: this state may not read the environment (LTRAIN_ENVIRONMENT)", who);
  return false;
}

static int get_env(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (!may_look(L, "getenv")) return 2;
  lua_pushstring(L, getenv(name));
  return 1;
}

static int stream_of(lua_State *L) {
  static const char *const streams[] = {"stdin", "stdout", "stderr", NULL};
  return luaL_checkoption(L, 1, "stdout", streams);
}

static int is_tty(lua_State *L) {
  lua_pushboolean(L, isatty(stream_of(L)));
  return 1;
}

/* terminal_width([stream]) -> columns, or nil when it is not a terminal */
static int terminal_width(lua_State *L) {
  struct winsize w;
  if (ioctl(stream_of(L), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
    lua_pushinteger(L, w.ws_col);
  else
    lua_pushnil(L);
  return 1;
}

static int write_stream(lua_State *L, int fd) {
  size_t size;
  const char *data = luaL_checklstring(L, 1, &size);
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return luaL_fileresult(L, 0, NULL);
    data += n;
    size -= (size_t)n;
  }
  lua_pushboolean(L, true);
  return 1;
}

static int write_stdout(lua_State *L) { return write_stream(L, STDOUT_FILENO); }
static int write_stderr(lua_State *L) { return write_stream(L, STDERR_FILENO); }

static int host_name(lua_State *L) {
  char name[256] = "";
  if (!may_look(L, "hostname")) return 2;
  gethostname(name, sizeof name - 1);
  lua_pushstring(L, name);
  return 1;
}

static int process_id(lua_State *L) {
  lua_pushinteger(L, getpid());
  return 1;
}

static int cpu_count(lua_State *L) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  lua_pushinteger(L, n > 0 ? n : 1);
  return 1;
}

static int get_threads(lua_State *L) {
  lua_pushinteger(L, lt_enter(L)->c->threads);
  return 1;
}

static int set_threads(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_Integer n = luaL_checkinteger(L, 1);
  if (n < 1 || n > LT_MAX_THREADS)
    lt_raise(L, b, LT_EARG, "set_threads: must be 1 to %d, got %lld", LT_MAX_THREADS,
             (long long)n);
  if (b->limits.threads > 0 && n > b->limits.threads)
    lt_raise(L, b, LT_EARG, "set_threads: the host of this state allows %d, got %lld",
             b->limits.threads, (long long)n);
  b->c->threads = (int)n;
  return 0;
}

/* warm_up(): prepare aside what the first large product would wait for */
static int warm_up(lua_State *L) {
  lt_cpu_warm_up(lt_enter(L)->c);
  return 0;
}

/* function_line(fn) -> "model.lua:14", where it is defined; nil for one of C */
static int function_line(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_Debug info;
  lua_getinfo(L, ">S", &info);
  if (info.linedefined < 0) return 0;
  lua_pushfstring(L, "%s:%d", info.short_src, info.linedefined);
  return 1;
}

/* Ending early. */

static int cancel(lua_State *L) {
  lt_cancel(lt_enter(L)->c, lua_isnone(L, 1) || lua_toboolean(L, 1));
  return 0;
}

static int cancelled(lua_State *L) {
  lua_pushboolean(L, atomic_load(lt_enter(L)->c->cancel));
  return 1;
}

/* interrupted() -> how often Ctrl-C was pressed since clear_interrupt(), and the number of the
   signal that it was last (0: none yet) */
static int interrupted(lua_State *L) {
  const lt_bind *b = lt_enter(L);
  lua_pushinteger(L, atomic_load(&b->interrupts));
  lua_pushinteger(L, atomic_load(&b->signal));
  return 2;
}

/* interrupt(): as if Ctrl-C had been pressed */
static int interrupt(lua_State *L) {
  lt_bind *b = lt_enter(L);
  atomic_store(&b->signal, SIGINT);
  atomic_fetch_add(&b->interrupts, 1);
  return 0;
}

static int clear_interrupt(lua_State *L) {
  atomic_store(&lt_enter(L)->interrupts, 0);
  return 0;
}

/* stdlib() -> names of all chunks of the library, sorted */
static int list_stdlib(lua_State *L) {
  lua_createtable(L, lt_stdlib_count, 0);
  for (int k = 0; k < lt_stdlib_count; k++) {
    lua_pushstring(L, lt_stdlib[k].name);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* in_stdlib(name) -> whether the library has that chunk */
static int in_stdlib(lua_State *L) {
  lua_pushboolean(L, lt_embedded_find(lt_stdlib, lt_stdlib_count, luaL_checkstring(L, 1)) >= 0);
  return 1;
}

/* (name): the text of that file among the n of a list; nil: no such */
static int push_embedded(lua_State *L, const lt_embedded *list, int n) {
  int k = lt_embedded_find(list, n, luaL_checkstring(L, 1));
  if (k >= 0)
    lua_pushlstring(L, list[k].source, list[k].size);
  else
    lua_pushnil(L);
  return 1;
}

/* stdlib_source(name) -> the text of that chunk, as it is compiled into this build; nil: no such */
static int stdlib_source(lua_State *L) { return push_embedded(L, lt_stdlib, lt_stdlib_count); }

/* asset(name) -> the bytes of a file of the dashboard's page, or of tensor.md; nil: no such */
static int find_asset(lua_State *L) { return push_embedded(L, lt_assets, lt_assets_count); }

/* parts() -> {{name =, present =, text =}, ...} of this build */
static int list_parts(lua_State *L) {
  lt_part parts[LT_PARTS];
  int n = lt_registry_parts(lt_enter(L)->c, parts);
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    lua_createtable(L, 0, 3);
    lua_pushstring(L, parts[k].name);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, parts[k].present);
    lua_setfield(L, -2, "present");
    lua_pushstring(L, parts[k].text);
    lua_setfield(L, -2, "text");
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* runtime.plain_locale(): until what it returns is closed, numbers have a point and names the order
   of their bytes, whatever locale the host of this state has chosen. */
static int plain_locale(lua_State *L) {
  void **before = lua_newuserdatauv(L, sizeof *before, 0);
  *before = NULL;
  luaL_setmetatable(L, LOCALE_NAME);
  *before = lt_locale_enter();
  return 1;
}

static int locale_close(lua_State *L) {
  void **before = luaL_checkudata(L, 1, LOCALE_NAME);
  if (*before != NULL) lt_locale_leave(*before);
  *before = NULL;
  return 0;
}

void lt_bind_system(lua_State *L, lt_bind *b) {
  static const luaL_Reg locale[] = {{"__close", locale_close}, {NULL, NULL}};
  lt_new_type(L, b, LOCALE_NAME, locale, NULL);
  static const luaL_Reg runtime[] = {{"clock", clock_now},
                                     {"time", time_now},
                                     {"sleep", sleep_for},
                                     {"getenv", get_env},
                                     {"isatty", is_tty},
                                     {"terminal_width", terminal_width},
                                     {"write_stdout", write_stdout},
                                     {"write_stderr", write_stderr},
                                     {"plain_locale", plain_locale},
                                     {"hostname", host_name},
                                     {"pid", process_id},
                                     {"cpu_count", cpu_count},
                                     {"get_threads", get_threads},
                                     {"set_threads", set_threads},
                                     {"warm_up", warm_up},
                                     {"function_line", function_line},
                                     {"cancel", cancel},
                                     {"cancelled", cancelled},
                                     {"interrupt", interrupt},
                                     {"interrupted", interrupted},
                                     {"clear_interrupt", clear_interrupt},
                                     {"stdlib", list_stdlib},
                                     {"in_stdlib", in_stdlib},
                                     {"stdlib_source", stdlib_source},
                                     {"asset", find_asset},
                                     {"parts", list_parts},
                                     {NULL, NULL}};
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
  lt_bind_process(L, b);
}
