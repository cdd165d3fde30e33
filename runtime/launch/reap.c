/* runtime/launch/reap.c: exit statuses of children as text, and their reaping (waitpid).

   Never waitpid(-1): other children of this process are not ours. A host that reaps on its own, or
   ignores SIGCHLD, leaves us without a status, which is then not reported. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/world.h"

static bool has_core(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP || signal == SIGQUIT;
}

/* What a signal that dumps core left, or why it left nothing. */
static const char *core_text(const siginfo_t *info) {
  struct rlimit limit;
  if (info->si_code == CLD_DUMPED) return "; core dumped";
  if (!has_core(info->si_status)) return "";
  bool none = getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0;
  return none ? "; no core: its limit is 0, see ulimit -c" : "; no core was written";
}

void lt_signal_text(const siginfo_t *info, char *how, size_t size) {
  int number = info->si_status;
  const char *name = sigabbrev_np(number), *meaning = sigdescr_np(number);
  snprintf(how, size, "was ended by SIG%s (%s)%s%s", name != NULL ? name : "?",
           meaning != NULL ? meaning : "unknown", core_text(info),
           number == SIGKILL ? "; was it killed by a user, or out of memory?" : "");
}

int lt_end_text(const lt_world *w, const siginfo_t *info, char *how, size_t size) {
  int number = info->si_status;
  if (info->si_pid == 0) {
    snprintf(how, size, "ended without an error message");
  } else if (info->si_code == CLD_EXITED) {
    snprintf(how, size, "exited with status %d before it had left %s", number, w->what);
    return number > 0 ? number : 1;
  } else {
    lt_signal_text(info, how, size);
    return LT_STATUS_OF_SIGNAL + number;
  }
  return 1;
}

int lt_process_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

bool lt_process_signal(int pidfd, pid_t pid, int number) {
  if (pidfd < 0) return kill(pid, number) == 0;
  return syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) == 0;
}

/* Past the last child: there are none in a child, or before the first fork. */
static int end_of(const lt_world *w) {
  return w->info.forked && !w->info.in_child && w->info.pids != NULL ? w->info.size : 0;
}

void lt_children_kill(const lt_world *w, int rank) {
  if (rank < end_of(w) && w->info.pids[rank] > 0)
    lt_process_signal(w->watchdog.peers[rank].pidfd, w->info.pids[rank], SIGKILL);
}

void lt_children_kill_all(const lt_world *w) {
  for (int r = 1; r < end_of(w); r++) lt_children_kill(w, r);
}

static bool is_dead(const lt_world *w, int rank) {
  siginfo_t info = {.si_pid = 0};
  if (w->info.pids[rank] <= 0) return true;
  int status = waitid(P_PID, (id_t)w->info.pids[rank], &info, WEXITED | WNOHANG | WNOWAIT);
  return status != 0 || info.si_pid != 0;
}

void lt_children_await(const lt_world *w, int64_t grace_ns) {
  int64_t until = lt_now_ns() + grace_ns;
  for (int r = 1; r < end_of(w); r++) {
    while (!is_dead(w, r)) {
      if (lt_now_ns() >= until) lt_children_kill_all(w);
      struct pollfd end = {.fd = w->watchdog.peers[r].pidfd, .events = POLLIN};
      poll(&end, 1, end.fd >= 0 ? 100 : 2);
    }
  }
}

void lt_children_reap(const lt_world *w) {
  for (int r = 1; r < end_of(w); r++)
    while (w->info.pids[r] > 0 && waitpid(w->info.pids[r], NULL, 0) < 0 && errno == EINTR) {
    }
}
