/* lua/bind/system/jobs.c: children that run beside each other, for the library's own Lua
   (`c.runtime.process`), and locks that end with the process that holds them.

   A job gets SIGTERM when this process ends, however it ends, and later SIGKILL (lt_child_start).
   */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bind/core/option_fields.h"
#include "bind/core/types.h"
#include "bind/system/process.h"
#include "launch/launch.h"

static const double LOOK_SECONDS = 0.02; /* between looks at the children */

static const char GUARDS[] = "ltrain.jobs"; /* in the registry: of each job, by its number */

/* The table at `index`, or nothing, as options. The list of descriptors is in memory of Lua's, that
   is pushed. */
static lt_child_options read_options(lua_State *L, int index) {
  lt_child_options o = {.grace_s = LT_CHILD_GRACE_S};
  if (lua_isnoneornil(L, index)) return o;
  luaL_checktype(L, index, LUA_TTABLE);
  o.no_input = lt_field_flag(L, index, "no_input");
  o.grace_s = (int)lt_field_int(L, index, "grace", LT_CHILD_GRACE_S);
  if (lua_getfield(L, index, "fds") != LUA_TTABLE) return o;
  o.n_fds = (int)lt_raw_length(L, -1);
  int *fds = lua_newuserdatauv(L, (size_t)o.n_fds * sizeof *fds + 1, 0);
  for (int k = 0; k < o.n_fds; k++) {
    lt_raw_geti(L, -2, k + 1);
    fds[k] = (int)luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  o.fds = fds;
  return o;
}

/* process.start({program, ...} [, {"NAME=value", ...} [, {no_input =, grace =, fds =}]]) -> its
   process number; nil and a reason. It has our streams (`no_input`: not the first), and a process
   group of its own. `grace`: seconds from SIGTERM to SIGKILL when this process ends (40); `fds`: a
   list of descriptors that it inherits, under the same numbers. */
int lt_job_start(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 3);
  char **argv = lt_read_argv(L, 1), **env = lt_read_env(L, 2);
  const lt_child_options options = read_options(L, 3);
  if (!lt_may_start(L, b, argv[0])) return 2;
  luaL_getsubtable(L, LUA_REGISTRYINDEX, GUARDS);
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  lt_guard *guard = lua_newuserdatauv(L, sizeof *guard, 0);
  lt_child child = lt_child_start(argv, env, &mask, &options);
  if (child.error != 0) return lt_not_started(L, argv[0], child.error);
  *guard = child.guard;
  lt_raw_seti(L, -2, child.pid);
  lua_pushinteger(L, child.pid);
  return 1;
}

static void release_guard(lua_State *L, pid_t pid) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, GUARDS);
  lt_raw_geti(L, -1, pid);
  const lt_guard *guard = lua_touserdata(L, -1);
  if (guard != NULL) lt_guard_release(*guard);
  lua_pushnil(L);
  lt_raw_seti(L, -3, pid);
  lua_pop(L, 2);
}

/* Whether the job has ended, and its status: 128 + n for a signal. What it left ends with it. */
static bool ended(lua_State *L, pid_t pid, int *status) {
  int raw;
  if (waitpid(pid, &raw, WNOHANG) != pid) return false;
  kill(-pid, SIGKILL);
  release_guard(L, pid);
  *status = WIFSIGNALED(raw) ? LT_STATUS_OF_SIGNAL + WTERMSIG(raw) : WEXITSTATUS(raw);
  return true;
}

/* process.wait_any({pid, ...}, seconds) -> pid, status of one that has ended; nothing when none has
   by then, or a signal has come. */
int lt_job_wait_any(lua_State *L) {
  if (!lt_may_start(L, lt_enter(L), "wait_any")) return 2;
  luaL_checktype(L, 1, LUA_TTABLE);
  double deadline = lt_seconds_now() + luaL_checknumber(L, 2);
  for (;;) {
    lua_Integer n = lt_raw_length(L, 1);
    for (lua_Integer k = 1; k <= n; k++) {
      int status;
      lt_raw_geti(L, 1, k);
      pid_t pid = (pid_t)luaL_checkinteger(L, -1);
      lua_pop(L, 1);
      if (!ended(L, pid, &status)) continue;
      lua_pushinteger(L, pid);
      lua_pushinteger(L, status);
      return 2;
    }
    if (lt_seconds_now() >= deadline) return 0;
    if (poll(NULL, 0, (int)(LOOK_SECONDS * 1e3)) < 0 && errno == EINTR) return 0;
  }
}

/* process.signal(pid, "INT" or "TERM" or "KILL" or "USR1"): to a job and what it has started; USR1,
   which ends programs that do not expect it, to the job alone */
int lt_job_signal(lua_State *L) {
  if (!lt_may_start(L, lt_enter(L), "signal")) return 2;
  static const char *const names[] = {"INT", "TERM", "KILL", "USR1", NULL};
  static const int numbers[] = {SIGINT, SIGTERM, SIGKILL, SIGUSR1};
  pid_t pid = (pid_t)luaL_checkinteger(L, 1);
  luaL_argcheck(L, pid > 1, 1, "a process number");
  int number = numbers[luaL_checkoption(L, 2, NULL, names)];
  kill(number == SIGUSR1 ? pid : -pid, number);
  return 0;
}

#define LOCK_NAME "ltrain.Lock"

static int lock_close(lua_State *L) {
  int *fd = luaL_checkudata(L, 1, LOCK_NAME);
  if (*fd >= 0) close(*fd);
  *fd = -1;
  return 0;
}

/* Whether `path` leads to the file that is open: who held it before may have removed it. */
static bool is_still(const char *path, int fd) {
  struct stat open_file;
  struct stat named;
  return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

/* process.lock(path) -> a lock, held until it is closed or this process ends; false where another
   process holds it; nil and a reason. Who holds it may remove the file. */
int lt_job_lock(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = luaL_checkstring(L, 1);
  if (!lt_may_start(L, b, "lock")) return 2;
  int *fd = lua_newuserdatauv(L, sizeof *fd, 0);
  *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (*fd < 0) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, strerror(errno));
    return 2;
  }
  luaL_setmetatable(L, LOCK_NAME);
  if (flock(*fd, LOCK_EX | LOCK_NB) == 0 && is_still(path, *fd)) return 1;
  lua_pushboolean(L, false);
  return 1;
}

void lt_bind_jobs(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__close", lock_close}, {"__gc", lock_close}, {NULL, NULL}};
  lt_new_type(L, b, LOCK_NAME, meta, NULL);
}
