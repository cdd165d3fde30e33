/* runtime/launch/fork_safety.c: checks that a process may be forked: threads, locks, devices.

   A fork copies one thread. What others held (locks, half-written buffers) stays held forever in
   the child, so they must be gone: our helpers by name, OpenMP's pool by its own call, and then
   /proc says whether other threads run. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"
#include "device/device.h"
#include "launch/world.h"

enum { POLLS = 50 };

/* The kernel's name of a thread of this process. */
static void thread_name(const char *id, char *name, size_t size) {
  char path[320];
  snprintf(path, sizeof path, "/proc/self/task/%.64s/comm", id);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, name, size - 1) : 0;
  if (fd >= 0) close(fd);
  name[n > 0 ? n : 0] = 0;
  name[strcspn(name, "\n")] = 0;
}

/* ThreadSanitizer's own threads, which block all signals, need not be gone. */
static bool is_sanitizers(const char *id) {
#if defined(__SANITIZE_THREAD__)
  char path[320], text[4096];
  snprintf(path, sizeof path, "/proc/self/task/%.64s/status", id);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  return strstr(text, "SigBlk:\tfffffff") != NULL;
#else
  (void)id;
  return false;
#endif
}

/* How many threads there are beside this one; their names, when `names` is given. */
static int count_others(char *names, size_t size) {
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 0; /* no /proc: nothing can be known */
  char own[32];
  snprintf(own, sizeof own, "%d", (int)gettid());
  int n = 0;
  size_t used = 0;
  for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
    if (!isdigit((unsigned char)e->d_name[0]) || strcmp(e->d_name, own) == 0) continue;
    if (is_sanitizers(e->d_name)) continue;
    if (names != NULL && used + 40 < size) {
      char name[32];
      thread_name(e->d_name, name, sizeof name);
      used += (size_t)snprintf(names + used, size - used, "%s\"%s\"", n > 0 ? ", " : "", name);
    }
    n++;
  }
  closedir(tasks);
  return n;
}

/* A thread that was just joined may be seen for some more milliseconds. */
static bool is_alone(void) {
  for (int i = 0; i < POLLS; i++) {
    if (count_others(NULL, 0) == 0) return true;
    nanosleep(&(struct timespec){.tv_nsec = LT_MS}, NULL);
  }
  return false;
}

void lt_fork_flush(void) {
  if (ftrylockfile(stdin) == 0) {
    fflush(NULL);
    funlockfile(stdin);
  } else {
    fflush(stdout);
    fflush(stderr);
  }
}

static bool refuse(lt_ctx *c, const char *what, int n, const char *names) {
  const char *device = lt_device_used_without_forks();
  if (device != NULL)
    return lt_fail(c, LT_EARG,
                   "%s: cannot fork: %s has been used and has threads (%s), so it cannot be used "
                   "after a fork: use it only in the ranks",
                   what, device, names);
  return lt_fail(c, LT_EARG,
                 "%s: cannot fork while %d other thread%s: %s (fork_with_threads = true accepts "
                 "the risk that they hold locks)",
                 what, n, n == 1 ? " runs" : "s run", names);
}

/* Asked for a number, LLVM's OpenMP begins again, without threads: a child of a process in which it
   has been ended does not come through its first parallel region. */
void lt_fork_end_team(void) {
  omp_pause_resource_all(omp_pause_hard);
  omp_get_max_threads();
}

bool lt_fork_prepare(lt_ctx *c, const lt_launch_options *o) {
  const char *what = o->what != NULL ? o->what : "launch";
  if (!c->root->policy.fork)
    return lt_fail(c, LT_EARG, "%s: this state may not fork (LTRAIN_FORK)", what);
  if (o->ranks < 1 || o->ranks > LT_COMM_MAX_RANKS)
    return lt_fail(c, LT_EARG, "%s: ranks must be 1 to %d: %d", what, LT_COMM_MAX_RANKS, o->ranks);
  if (lt_world_current(c) != NULL)
    return lt_fail(c, LT_EARG, "%s: ranks are already running: one world at a time", what);
  lt_quiesce(c->root);
  lt_fork_end_team();
  char names[512] = "";
  int n = o->fork_with_threads || is_alone() ? 0 : count_others(names, sizeof names);
  if (n > 0) return refuse(c, what, n, names);
  lt_fork_flush();
  return true;
}
