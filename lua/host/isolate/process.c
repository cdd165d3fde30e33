/* lua/host/isolate/process.c: starts and ends the worker process of an isolated state.

   posix_spawn and not fork: a host with threads and gigabytes of memory is not copied, and between
   fork and exec a child may call async-signal-safe functions only. The child is handled by a pidfd
   where signals and waiting are concerned: a process id may belong to another process once the
   worker is gone. */
#include "host/isolate/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/world.h"

enum { ENDS_MS = 1000 }; /* after it has closed its socket */

/* The file that this code is in: the library, or the program that it is linked into. */
static bool find_self(char *path, size_t size) {
  Dl_info info;
  struct link_map *map = NULL;
  const void *here = (const void *)(uintptr_t)lt_worker_start;
  if (dladdr1(here, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) return false;
  ssize_t n;
  if (map->l_name[0] != 0) n = snprintf(path, size, "%s", map->l_name);
  else n = readlink("/proc/self/exe", path, size); /* argv[0] may be any text */
  if (n <= 0 || (size_t)n >= size) return false;
  path[n] = 0;
  return true;
}

/* Where the worker's program is: beside that file, or in its folder `ltrain`. */
static bool find_program(char *path, size_t size) {
  static const char *const folders[] = {"", "ltrain/"};
  char self[4096];
  if (!find_self(self, sizeof self)) return false;
  const char *slash = strrchr(self, '/');
  int length = slash == NULL ? 0 : (int)(slash - self + 1);
  for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
    int n = snprintf(path, size, "%.*s%sltrain-worker", length, self, folders[k]);
    if (n > 0 && (size_t)n < size && access(path, X_OK) == 0) return true;
  }
  return false;
}

/* Its environment is the dynamic linker's alone: the host's may contain secrets.
   Signals are put back to their defaults and unblocked, as exec passes ignored ones and the mask
   on; a process group of its own keeps Ctrl-C at a terminal from reaching it. Standard streams are
   /dev/null: a script can write to the host through events only. */
static int spawn(pid_t *pid, const char *path, int fd) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t all, none;
  char libraries[4096], *env[] = {NULL, NULL}, *argv[] = {(char *)"ltrain-worker", NULL};
  const char *given = getenv("LD_LIBRARY_PATH");
  int n = snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", given == NULL ? "" : given);
  if (given != NULL && (size_t)n < sizeof libraries) env[0] = libraries;
  sigfillset(&all);
  sigemptyset(&none);
  if (posix_spawn_file_actions_init(&files) != 0) return ENOMEM;
  if (posix_spawnattr_init(&attr) != 0) {
    posix_spawn_file_actions_destroy(&files);
    return ENOMEM;
  }
  posix_spawnattr_setflags(
      &attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigdefault(&attr, &all);
  posix_spawnattr_setsigmask(&attr, &none);
  int error = posix_spawn_file_actions_adddup2(&files, fd, 3);
  for (int k = 0; k < 3 && error == 0; k++)
    error = posix_spawn_file_actions_addopen(&files, k, "/dev/null", O_RDWR, 0);
  if (error == 0) error = posix_spawn(pid, path, &files, &attr, argv, env);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

static bool connect_worker(lt_worker *w, const char *path, char *text, size_t size) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    snprintf(text, size, "open: no socket for the worker process: %s", strerror(errno));
    return false;
  }
  int error = spawn(&w->pid, path, pair[1]);
  close(pair[1]);
  w->fd = pair[0];
  w->owner = getpid();
  if (error == 0) w->pidfd = lt_process_open(w->pid);
  if (error == 0 && w->pidfd >= 0) return true;
  snprintf(text, size, "open: the worker process cannot be started: %s: %s", path,
           strerror(error != 0 ? error : errno));
  if (error == 0) {
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
  }
  close(w->fd);
  return false;
}

bool lt_worker_start(lt_worker *w, const char *path, char *text, size_t size) {
  char found[4096];
  if (path == NULL && find_program(found, sizeof found)) path = found;
  if (path != NULL) return connect_worker(w, path, text, size);
  snprintf(text, size, "open: the program ltrain-worker is not beside the library: give its path "
                       "in worker");
  return false;
}

void lt_worker_kill(const lt_worker *w) { lt_process_signal(w->pidfd, 0, SIGKILL); }

/* Ends it in any case: SIGKILL cannot be caught, and waitpid leaves no zombie. Without a reason of
   ours it had ended by itself, and its status is the reason; it has ENDS_MS to get there after its
   socket closed. */
const char *lt_worker_end(lt_worker *w, const char *why) {
  int status = 0;
  if (w->ended[0] != 0) return w->ended;
  struct pollfd exit = {.fd = w->pidfd, .events = POLLIN};
  if (why == NULL) poll(&exit, 1, ENDS_MS);
  lt_worker_kill(w);
  while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {}
  if (why != NULL) snprintf(w->ended, sizeof w->ended, "%s", why);
  else if (WIFSIGNALED(status))
    snprintf(w->ended, sizeof w->ended, "was ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  else snprintf(w->ended, sizeof w->ended, "has ended with status %d", WEXITSTATUS(status));
  return w->ended;
}

/* A host that forked has the struct twice: only the process that started the worker may end it. */
void lt_worker_close(lt_worker *w) {
  if (w->owner == getpid()) lt_worker_end(w, "was closed");
  close(w->fd);
  close(w->pidfd);
}
