/* lua/cli/shell.c: os.execute and io.popen of the binary.

   system(3) ignores SIGINT while it waits: a script whose steps wait for programs would not see
   Ctrl-C. And what a rank or a worker of a DataLoader waits for ends with it, however it ends, a
   shell with all that it has started (bind/system/guard_process.c); popen(3) would leave it
   behind. */
#include "cli/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "bind/dist/dist.h"
#include "bind/system/process.h"
#include "launch/worker_pool.h"

enum { NOT_FOUND = 127 }; /* the shell's status of a command that it cannot start */

typedef struct command {
  const char *text;
  int end, stream; /* the stream that is the end of a pipe; -1: none */
  bool tied;       /* it ends with this process, by its guard if there is one */
  lt_guard guard;
} command;

/* In the child, which shares our memory up to the exec: no handler of ours may run there. */
static _Noreturn void become(const command *cmd, pid_t parent, const sigset_t *mask) {
  struct sigaction action;
  for (int n = 1; n < NSIG; n++) {
    if (sigaction(n, NULL, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    signal(n, SIG_DFL);
  }
  lt_guard_this(cmd->guard);
  if (cmd->tied && cmd->guard.pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (cmd->tied && getppid() != parent) _exit(NOT_FOUND);
  if (cmd->end >= 0 && cmd->end != cmd->stream) dup2(cmd->end, cmd->stream);
  if (cmd->end == cmd->stream) fcntl(cmd->end, F_SETFD, 0);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execl("/bin/sh", "sh", "-c", cmd->text, (char *)NULL);
  _exit(NOT_FOUND);
}

/* All signals are blocked around the vfork: a handler that ran in the child would write into the
   memory of this process. */
static pid_t start(lua_State *L, command *cmd) {
  const lt_bind *b = lt_bind_get(L);
  sigset_t all, before;
  pid_t parent = getpid();
  if (lt_worker_here() || (b != NULL && b->c != NULL && lt_world_current(b->c) != NULL)) {
    cmd->tied = true;
    cmd->guard = lt_guard_start(0);
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = vfork(); /* a fork would copy the tables of all pages */
  if (pid == 0) become(cmd, parent, &before);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (pid < 0) lt_guard_release(cmd->guard);
  return pid;
}

/* Pushes what os.execute and file:close give. waitpid is repeated after a signal: the handler has
   noted it, and the script sees it at its next line, when the child is known to have ended. */
static int finish(lua_State *L, pid_t pid, lt_guard guard) {
  int status = -1, error = 0;
  while (waitpid(pid, &status, 0) < 0 && (error = errno) == EINTR) error = 0;
  lt_guard_release(guard);
  errno = error; /* the status is not an error of ours */
  return luaL_execresult(L, error != 0 ? -1 : status);
}

/* os.execute. Upvalue: Lua's own. */
static int execute(lua_State *L) {
  const char *text = luaL_optstring(L, 1, NULL);
  if (text == NULL) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_call(L, 0, 1);
    return 1;
  }
  command cmd = {.text = text, .end = -1, .stream = -1};
  pid_t pid = start(L, &cmd);
  return pid < 0 ? luaL_execresult(L, -1) : finish(L, pid, cmd.guard);
}

/* A file of io.popen, which Lua's functions for files take. */
typedef struct piped {
  luaL_Stream stream;
  pid_t pid;
  lt_guard guard;
} piped;

static int close_piped(lua_State *L) {
  piped *p = luaL_checkudata(L, 1, LUA_FILEHANDLE);
  fclose(p->stream.f);
  return finish(L, p->pid, p->guard);
}

/* io.popen */
static int open_piped(lua_State *L) {
  const char *text = luaL_checkstring(L, 1), *mode = luaL_optstring(L, 2, "r");
  bool reads = strcmp(mode, "r") == 0;
  luaL_argcheck(L, reads || strcmp(mode, "w") == 0, 2, "invalid mode");
  piped *p = lua_newuserdatauv(L, sizeof *p, 0);
  p->stream.closef = NULL; /* closed */
  luaL_setmetatable(L, LUA_FILEHANDLE);
  int ends[2], ours = reads ? 0 : 1, file = lua_gettop(L);
  fflush(NULL); /* as Lua's does */
  if (pipe2(ends, O_CLOEXEC) != 0) return luaL_fileresult(L, 0, text);
  command cmd = {.text = text, .end = ends[1 - ours],
                 .stream = reads ? STDOUT_FILENO : STDIN_FILENO};
  p->stream.f = fdopen(ends[ours], mode);
  p->pid = p->stream.f != NULL ? start(L, &cmd) : -1;
  p->guard = cmd.guard;
  int error = errno;
  lua_settop(L, file);
  close(ends[1 - ours]);
  if (p->pid > 0) {
    p->stream.closef = close_piped;
    return 1;
  }
  if (p->stream.f != NULL)
    fclose(p->stream.f);
  else
    close(ends[ours]);
  errno = error;
  return luaL_fileresult(L, 0, text);
}

void lt_shell_install(lua_State *L) {
  lua_getglobal(L, "os");
  lua_getfield(L, -1, "execute");
  lua_pushcclosure(L, execute, 1);
  lua_setfield(L, -2, "execute");
  lua_getglobal(L, "io");
  lua_pushcfunction(L, open_piped);
  lua_setfield(L, -2, "popen");
  lua_pop(L, 2);
}
