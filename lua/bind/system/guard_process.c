/* lua/bind/system/guard_process.c: a guard process that kills a child and its descendants when this
   process ends, however it ends.

   A signal at a parent's death (prctl) reaches the child alone: of `sleep 9; echo` the shell. The
   guard waits for the end of a socket that this process has the other end of. It is a shell, since
   a fork of ours would keep all of our memory. It stops what it ends first, parents before their
   children, twice: none can start another one unseen. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bind/system/process.h"

/* $1: seconds that the child has to end by itself after a signal that it may have got. A line says
   which process it is, another one that it has ended. */
static const char SCRIPT[] =
    "end() {\n"
    "  kill -STOP $2\n"
    "  for task in /proc/$2/task/*/children; do\n"
    "    all=\n"
    "    read -r all <$task\n"
    "    for child in $all; do end $1 $child; done\n"
    "  done\n"
    "  kill -$1 $2\n"
    "}\n"
    "read -r pid && ! read -r ended || exit 0\n"
    "left=$1\n"
    "[ $left = 0 ] || kill -CONT $pid\n"
    "while [ $left -gt 0 ] && kill -0 $pid; do sleep 1; left=$((left - 1)); done\n"
    "end STOP $pid\n"
    "end KILL $pid\n"
    "kill -KILL -- -$pid\n";

/* In the child, which shares our memory up to the exec. Signals of a terminal or to our group are
   not for it. */
static _Noreturn void become(int fd, const char *seconds, const sigset_t *mask) {
  char *argv[] = {"sh", "-c", (char *)SCRIPT, "ltrain-guard", (char *)seconds, NULL};
  setsid();
  for (int n = 1; n < NSIG; n++) signal(n, n == SIGCHLD ? SIG_DFL : SIG_IGN);
  int nothing = open("/dev/null", O_RDWR);
  dup2(fd, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0u, 0);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execv("/bin/sh", argv);
  _exit(127);
}

static pid_t start(int fd, int seconds) {
  char limit[16];
  sigset_t all, before, none;
  snprintf(limit, sizeof limit, "%d", seconds);
  sigfillset(&all);
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = vfork();
  if (pid == 0) become(fd, limit, &none);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return pid;
}

lt_guard lt_guard_start(int seconds) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return (lt_guard){0};
  lt_guard g = {.fd = ends[1], .owner = getpid(), .pid = start(ends[0], seconds)};
  close(ends[0]);
  if (g.pid > 0) return g;
  close(ends[1]);
  return (lt_guard){0};
}

void lt_guard_this(lt_guard g) {
  char digits[16], *at = digits + sizeof digits;
  *--at = '\n';
  for (pid_t pid = getpid(); pid > 0; pid /= 10) *--at = (char)('0' + pid % 10);
  if (g.pid > 0) send(g.fd, at, (size_t)(digits + sizeof digits - at), MSG_NOSIGNAL);
}

void lt_guard_release(lt_guard g) {
  if (g.pid <= 0) return;
  bool ours = g.owner == getpid(); /* and not that of who forked us */
  if (ours) send(g.fd, "\n\n", 2, MSG_NOSIGNAL);
  close(g.fd);
  while (ours && waitpid(g.pid, NULL, 0) < 0 && errno == EINTR) continue;
}
