/* runtime/launch/child.c: set-up of a forked child, before anything else runs there. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/worker_pool.h"
#include "launch/world.h"

/* A file opened before the fork shares its position with the parent: each would read what the other
   left. Opened again through /proc it has a position of its own, at the same place. */
static bool reopen(lt_ctx *c, int fd) {
  struct stat is;
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || (flags & O_PATH) != 0) return true;
  if (fstat(fd, &is) != 0) return true;
  if (!S_ISREG(is.st_mode) && !S_ISDIR(is.st_mode) && !S_ISBLK(is.st_mode)) return true;
  off_t at = lseek(fd, 0, SEEK_CUR);
  if (at < 0) return true;
  char path[64], name[512];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  int keep = O_RDONLY | O_CLOEXEC | (flags & (O_DIRECT | O_NONBLOCK | O_NOATIME | O_DIRECTORY));
  int own = open(path, keep);
  if (own < 0) {
    int why = errno;
    ssize_t n = readlink(path, name, sizeof name - 1);
    name[n > 0 ? n : 0] = 0;
    return lt_fail(c, LT_EIO, "launch: a rank cannot open its own %s: %s", name, strerror(why));
  }
  bool stays = (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
  bool good = lseek(own, at, SEEK_SET) == at && dup3(own, fd, stays ? 0 : O_CLOEXEC) == fd;
  close(own);
  return good || lt_fail(c, LT_EIO, "launch: descriptor %d: %s", fd, strerror(errno));
}

bool lt_child_reopen(lt_ctx *c) {
  DIR *all = opendir("/proc/self/fd");
  if (all == NULL) return true;
  for (struct dirent *e; (e = readdir(all)) != NULL;) {
    int fd = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : -1;
    if (fd > STDIN_FILENO && fd != dirfd(all) && !reopen(c, fd)) break;
  }
  closedir(all);
  return lt_ok(c);
}

void lt_child_silence(int fd) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || null == fd) return;
  dup2(null, fd);
  close(null);
}

/* Where the program does not handle signals itself: a terminal's Ctrl-C goes to all processes, and
   the parent decides; one that somebody sent to this rank ends the job. */
static lt_world *own;

static void on_interrupt(int number, siginfo_t *info, void *unused) {
  (void)unused;
  if (info->si_code != SI_USER && info->si_code != SI_QUEUE && info->si_code != SI_TKILL) return;
  int before = errno;
  lt_world_interrupt(own, number);
  errno = before;
}

static bool take_interrupts(lt_ctx *c, lt_world *w) {
  struct sigaction before, action = {.sa_sigaction = on_interrupt,
                                     .sa_flags = SA_SIGINFO | SA_RESTART};
  sigemptyset(&action.sa_mask);
  own = w;
  if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return true;
  return sigaction(SIGINT, &action, NULL) == 0 ||
         lt_fail(c, LT_EIO, "%s: cannot handle SIGINT: %s", w->what, strerror(errno));
}

bool lt_child_set_up(lt_ctx *c, lt_world *w, const lt_launch_options *o) {
  if (!o->takes_signals && !take_interrupts(c, w)) return false;
  /* Its watchdog sees the end of rank 0, reports it and ends the process; not in one that is
     stopped, so the kernel continues it then. */
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  lt_child_keep_terminal(w);
  lt_child_silence(STDIN_FILENO);
  __fpurge(stdin); /* what was read ahead belongs to the parent */
  if (w->child_stderr != NULL) lt_stderr_become(w->child_stderr, w->info.rank);
  lt_worker_pools_forked();
  return lt_child_reopen(c);
}
