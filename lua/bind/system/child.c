/* lua/bind/system/child.c: children of this process that run other programs.

   A child gets a process group of its own, so that whatever it starts on this machine ends with
   it. Nothing here is undone by an error: everything is read from the Lua stack before the fork. */
#include "bind/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/launch.h"

static const double GROUP_SECONDS = 2; /* between the last SIGTERM and SIGKILL */

extern char **environ;

double lt_seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Rounded up: a poll of 0 ms just before the deadline would spin. */
int lt_poll_until(double deadline) {
  double ms = (deadline - lt_seconds_now()) * 1e3;
  return ms <= 0 ? 0 : ms > INT_MAX - 1 ? INT_MAX - 1 : (int)ms + 1;
}

static int status_of(int status) {
  return WIFSIGNALED(status) ? LT_STATUS_OF_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

int lt_wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return status_of(status);
}

bool lt_may_start(lua_State *L, lt_bind *b, const char *who) {
  if (b->c->policy.fork) return true;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: this state may not start processes (LTRAIN_FORK)", who);
  return false;
}

/* Starting. */

/* In the child, up to the exec: only what is safe in a copy of a process with threads.
   PR_SET_PDEATHSIG is lost in a parent that died before the call: the second check catches that. An
   exec that fails sends errno through the pipe, which a successful one closes. */
static _Noreturn void become(char **argv, char **env, const sigset_t *mask, pid_t parent,
                             lt_guard guard, const lt_child_options *o, int output, int report) {
  setpgid(0, 0);
  lt_guard_this(guard);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(LT_STATUS_OF_SIGNAL + SIGTERM);
  if (o->captured || o->no_input) dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  if (o->captured) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  for (int k = 0; k < o->n_fds; k++) fcntl(o->fds[k], F_SETFD, 0); /* not closed by the exec */
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvpe(argv[0], argv, env);
  int reason = errno;
  ssize_t n = write(report, &reason, sizeof reason);
  _exit(n == sizeof reason ? 127 : 126);
}

/* Returns only when the exec has succeeded or failed, so that "not found" is a message here and not
   an exit status later. Both processes call setpgid: whichever runs first, the group exists before
   a signal is sent to it. */
lt_child lt_child_start(char **argv, char **env, const sigset_t *mask, const lt_child_options *o) {
  lt_child child = {.pid = -1, .output = -1};
  int report[2] = {-1, -1}, out[2] = {-1, -1};
  if (pipe2(report, O_CLOEXEC) != 0 || (o->captured && pipe2(out, O_CLOEXEC) != 0)) {
    child.error = errno;
    if (report[0] >= 0) {
      close(report[0]);
      close(report[1]);
    }
    return child;
  }
  pid_t parent = getpid();
  child.guard = lt_guard_start(o->grace_s);
  child.pid = fork();
  if (child.pid == 0) become(argv, env, mask, parent, child.guard, o, out[1], report[1]);
  child.error = child.pid < 0 ? errno : 0;
  close(report[1]);
  if (o->captured) close(out[1]);
  if (child.pid > 0) {
    setpgid(child.pid, child.pid); /* by the process that is first */
    if (read(report[0], &child.error, sizeof child.error) > 0) lt_wait_for(child.pid);
  }
  close(report[0]);
  if (child.error != 0) lt_guard_release(child.guard);
  if (child.error == 0)
    child.output = out[0];
  else if (o->captured)
    close(out[0]);
  return child;
}

/* The list of strings at `index`, with a NULL at its end, in memory of Lua's that it pushes. The
   strings are those of the table. */
static char **read_list(lua_State *L, int index, char *const *before) {
  size_t n = (size_t)lt_raw_length(L, index), m = 0;
  while (before != NULL && before[m] != NULL) m++;
  char **list = lua_newuserdatauv(L, (n + m + 1) * sizeof *list, 0);
  for (size_t k = 0; k < n; k++) {
    lt_raw_geti(L, index, (lua_Integer)k + 1);
    list[k] = (char *)luaL_checkstring(L, -1);
    lua_pop(L, 1);
  }
  for (size_t k = 0; k < m; k++) list[n + k] = before[k];
  list[n + m] = NULL;
  return list;
}

char **lt_read_argv(lua_State *L, int index) {
  luaL_checktype(L, index, LUA_TTABLE);
  luaL_argcheck(L, lt_raw_length(L, index) > 0, index, "an empty list");
  return read_list(L, index, NULL);
}

char **lt_read_env(lua_State *L, int index) {
  if (lua_isnoneornil(L, index)) return environ;
  luaL_checktype(L, index, LUA_TTABLE);
  return read_list(L, index, environ);
}

int lt_not_started(lua_State *L, const char *name, int reason) {
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", name, reason == ENOENT ? "not found" : strerror(reason));
  return 2;
}

/* Whether nothing is left of a group within `seconds`. Its orphans are ours to reap. Polled, since
   no system call waits for a group of which only some are our children. */
static bool group_gone(pid_t group, double seconds) {
  const struct timespec nap = {.tv_nsec = 10000000};
  for (double end = lt_seconds_now() + seconds; kill(-group, 0) == 0;) {
    while (waitpid(-group, NULL, WNOHANG) > 0) continue;
    if (lt_seconds_now() > end) return false;
    nanosleep(&nap, NULL);
  }
  return true;
}

/* SIGTERM first: mpirun and shells pass it on and clean up; what ignores it is killed. */
void lt_group_end(pid_t group) {
  if (kill(-group, SIGTERM) != 0 || group_gone(group, GROUP_SECONDS)) return;
  kill(-group, SIGKILL);
  group_gone(group, GROUP_SECONDS);
}
