/* lua/bind/system/process.c: runs other programs (mpirun, scontrol) for the library's own Lua
   (`c.runtime.process`). */
#include "bind/system/process.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cores.h"
#include "bind/core/types.h"
#include "launch/launch.h"

enum { LONGEST_OUTPUT = 1 << 20 };

/* Read what the child says until it ends; false at the deadline. */
static bool collect(luaL_Buffer *text, int fd, double deadline) {
  for (size_t got = 0;;) {
    struct pollfd look = {.fd = fd, .events = POLLIN};
    int ready = poll(&look, 1, lt_poll_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char part[4096];
    ssize_t n = read(fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    if (got < LONGEST_OUTPUT) luaL_addlstring(text, part, (size_t)n);
    got += (size_t)n;
  }
}

/* Whether a child that is not waited for yet ends before the deadline. */
static bool ends_before(pid_t pid, double deadline) {
  struct pollfd look = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
  int ready;
  if (look.fd < 0) return false;
  while ((ready = poll(&look, 1, lt_poll_until(deadline))) < 0 && errno == EINTR) continue;
  close(look.fd);
  return ready > 0;
}

/* process.capture({program, ...}, seconds [, {"NAME=value", ...}]) -> status, what it wrote; nil
   and a reason (with what it wrote) when it could not start or took longer. */
static int capture(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 3);
  char **argv = lt_read_argv(L, 1), **env = lt_read_env(L, 3);
  double seconds = luaL_checknumber(L, 2);
  if (!lt_may_start(L, b, argv[0])) return 2;
  luaL_Buffer text;
  luaL_buffinitsize(L, &text, LONGEST_OUTPUT + 4096); /* no error between fork and wait */
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  lt_child child = lt_child_start(argv, env, &mask, &(lt_child_options){.captured = true});
  if (child.error != 0) return lt_not_started(L, argv[0], child.error);
  double deadline = lt_seconds_now() + seconds;
  bool ended = collect(&text, child.output, deadline) && ends_before(child.pid, deadline);
  close(child.output);
  kill(-child.pid, SIGKILL); /* what it left, when it has ended */
  int status = lt_wait_for(child.pid);
  lt_guard_release(child.guard);
  luaL_pushresult(&text);
  if (ended) {
    lua_pushinteger(L, status);
    lua_insert(L, -2);
    return 2;
  }
  lua_pushnil(L);
  lua_pushfstring(L, "%s: took longer than %f s", argv[0], seconds);
  lua_pushvalue(L, -3);
  return 3;
}

/* Questions. */

/* process.find(name) -> the program's path, by PATH; nil, and why when the state may not look */
static int find(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *name = luaL_checkstring(L, 1), *path = getenv("PATH");
  if (!lt_may_start(L, b, "find")) return 2;
  if (path == NULL) path = "/usr/local/bin:/usr/bin:/bin";
  while (*path != 0) {
    size_t n = strcspn(path, ":");
    lua_pushlstring(L, path, n);
    lua_pushfstring(L, "%s/%s", n == 0 ? "." : lua_tostring(L, -1), name);
    if (access(lua_tostring(L, -1), X_OK) == 0) return 1;
    lua_pop(L, 2);
    path += path[n] == 0 ? n : n + 1;
  }
  return 0;
}

/* process.executable() -> the path of the program that runs */
static int executable(lua_State *L) {
  char path[PATH_MAX];
  if (!lt_may_start(L, lt_enter(L), "executable")) return 2;
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) return 0;
  lua_pushlstring(L, path, (size_t)n);
  return 1;
}

/* process.cores() -> how many this process may use */
static int cores(lua_State *L) {
  lua_pushinteger(L, lt_core_count());
  return 1;
}

/* process.is_root() -> whether this is user 0 */
static int is_root(lua_State *L) {
  lua_pushboolean(L, geteuid() == 0);
  return 1;
}

void lt_bind_process(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"capture", capture},
                                       {"cores", cores},
                                       {"probe", lt_process_probe},
                                       {"local_address", lt_process_local_address},
                                       {"executable", executable},
                                       {"find", find},
                                       {"is_root", is_root},
                                       {"lock", lt_job_lock},
                                       {"signal", lt_job_signal},
                                       {"start", lt_job_start},
                                       {"supervise", lt_process_supervise},
                                       {"wait_any", lt_job_wait_any},
                                       {NULL, NULL}};
  lt_bind_jobs(L, b);
  lua_getfield(L, 1, "runtime");
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_setfield(L, -2, "process");
  lua_pop(L, 1);
}
