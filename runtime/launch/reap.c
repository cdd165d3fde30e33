/* runtime/launch/reap.c: how children ended, told in words; and their reaping, one by one.

   Never waitpid(-1): other children of this process are not ours. A host that reaps on its own, or
   ignores SIGCHLD, leaves us without a status, which is then not told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/world.h"

static size_t read_line(const char *path, char *text, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  text[strcspn(text, "\n")] = 0;
  return strlen(text);
}

/* core_pattern with its %p filled in; other % stand as they are. */
static void core_name(int pid, const char *pattern, char *text, size_t size) {
  size_t used = 0;
  bool has_pid = false;
  for (const char *at = pattern; *at != 0 && used + 16 < size; at++) {
    bool is_pid = at[0] == '%' && at[1] == 'p';
    if (is_pid)
      used += (size_t)snprintf(text + used, size - used, "%d", pid), at++;
    else
      text[used++] = *at;
    has_pid = has_pid || is_pid;
  }
  text[used] = 0;
  char uses_pid[8];
  read_line("/proc/sys/kernel/core_uses_pid", uses_pid, sizeof uses_pid);
  if (!has_pid && uses_pid[0] == '1') snprintf(text + used, size - used, ".%d", pid);
}

/* Where the core is, or why there is none. */
static void core_text(int pid, bool dumped, char *text, size_t size) {
  char pattern[256], name[512], here[1024] = "";
  read_line("/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
  struct rlimit limit;
  if (!dumped && getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0) {
    snprintf(text, size, "no core: its limit is 0, see ulimit -c");
  } else if (!dumped) {
    snprintf(text, size, "no core was written");
  } else if (pattern[0] == '|') {
    snprintf(text, size, "core given to %.200s", pattern + 1);
  } else {
    core_name(pid, pattern, name, sizeof name);
    if (name[0] != '/' && getcwd(here, sizeof here) == NULL) here[0] = 0;
    snprintf(text, size, "core in %.700s%s%.500s", here, here[0] != 0 ? "/" : "", name);
  }
}

static bool has_core(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP || signal == SIGQUIT;
}

/* Report the end that `info` describes; si_pid 0: unknown. */
static void report_end(lt_watchdog *d, int rank, const siginfo_t *info) {
  char how[1700], core[1400];
  int pid = d->info->pids[rank], number = info->si_status, status = 1;
  if (info->si_pid == 0) {
    snprintf(how, sizeof how, "(pid %d) ended without a word", pid);
  } else if (info->si_code == CLD_EXITED) {
    if (number > 0) status = number;
    snprintf(how, sizeof how, "(pid %d) exited with status %d before it had left %s", pid, number,
             d->world->what);
  } else {
    const char *name = sigabbrev_np(number), *said = sigdescr_np(number);
    core[0] = 0;
    if (has_core(number)) core_text(pid, info->si_code == CLD_DUMPED, core, sizeof core);
    snprintf(how, sizeof how, "(pid %d) was ended by SIG%s (%s)%s%s%s", pid,
             name != NULL ? name : "?", said != NULL ? said : "unknown", core[0] != 0 ? "; " : "",
             core, number == SIGKILL ? "; by hand, or because memory ran out" : "");
    status = LT_STATUS_OF_SIGNAL + number;
  }
  lt_coordinator_exited(d, rank, status, how);
}

void lt_children_turn(lt_watchdog *d) {
  if (!d->info->forked) return;
  for (int r = 1; r < d->n_peers; r++) {
    lt_peer *p = &d->peers[r];
    if (p->exited) continue;
    siginfo_t info = {.si_pid = 0};
    int status = waitid(P_PID, (id_t)d->info->pids[r], &info, WEXITED | WNOHANG | WNOWAIT);
    if (status == 0 && info.si_pid == 0) continue; /* alive */
    if (status != 0 && (errno != ECHILD || p->ended_ns == 0)) continue;
    lt_watchdog_receive(d, r); /* what it sent last */
    report_end(d, r, &info);
  }
}

/* Before the reaping, so the number is still its own. */
void lt_children_kill(const lt_world *w, int rank) {
  if (w->info.forked && w->info.pids[rank] > 0) kill(w->info.pids[rank], SIGKILL);
}

/* Past the last child: there are none in a child, or before the first fork. */
static int end_of(const lt_world *w) {
  return w->info.forked && !w->info.in_child && w->info.pids != NULL ? w->info.size : 0;
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

void lt_children_wait(lt_world *w, int64_t patience_ns) {
  int64_t start = lt_now_ns();
  for (int r = 1; r < end_of(w); r++) {
    while (!is_dead(w, r)) {
      bool late = lt_now_ns() - start >= patience_ns;
      if (late) lt_children_kill(w, r);
      struct pollfd end = {.fd = w->watchdog.peers[r].pidfd, .events = POLLIN};
      poll(&end, 1, end.fd >= 0 && !late ? 100 : 2);
    }
  }
}

void lt_children_reap(lt_world *w) {
  for (int r = 1; r < end_of(w); r++)
    while (w->info.pids[r] > 0 && waitpid(w->info.pids[r], NULL, 0) < 0 && errno == EINTR) {
    }
}
