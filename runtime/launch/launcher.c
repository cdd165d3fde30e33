/* runtime/launch/launcher.c: monitors the launcher process (mpirun, srun) of joined ranks, and ends
   it when the connection to another rank is lost.

   When mpirun is killed, a thread of Open MPI ends each rank with _exit, one second after it lost
   the connection (measured), and standard error is a broken pipe: what the ranks have written to
   files by then is the message. So the watchdog polls the launcher as it polls children.

   mpirun and its daemons (orted) on the other machines end a job together: each waits for the
   other. Where the way between them is cut they wait as long as TCP does, a quarter of an hour
   (measured: the job was there 80 s after a cut with a timeout of 12 s), though no rank is left. So
   a rank that ends because of a cut ends its launcher. Where both ends answer (a rank was only
   stopped) they do it better themselves.

   A daemon sleeps between the signals that it ends its ranks with, for as long as ranks may need to
   save, also when they have ended (measured: 92 s after an error on two hosts). A signal that it
   handles takes a second off; on mpirun's own machine its supervisor sends them
   (lua/bind/system/supervise.c), on others the last of a rank. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launch/world.h"

enum { WAKE_S = 10, MOST_PARENTS = 8 };

static const char SEGMENT[] = "/dev/shm/vader_segment.";

/* Since Open MPI 5 mpirun becomes prterun, and its daemons are prted. */
static const char *const LAUNCHERS[] = {"mpirun",  "mpiexec", "orterun",   "orted",
                                        "prterun", "prted",   "slurmstepd"};

/* The name of a process and who started it; 0: it is not there. */
static pid_t parent_of(pid_t pid, char name[LT_PROCESS_NAME]) {
  char path[64];
  int parent = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  if (fscanf(file, "%*d (%15[^)]) %*c %d", name, &parent) != 2) parent = 0;
  fclose(file);
  return parent;
}

/* Distributions add to names: "mpirun.openmpi". */
static bool is_named(const char *name, const char *known) {
  return strlen(known) == strcspn(name, ".") && strncmp(known, name, strlen(known)) == 0;
}

static bool is_launcher(const char *name) {
  for (size_t k = 0; k < sizeof LAUNCHERS / sizeof *LAUNCHERS; k++)
    if (is_named(name, LAUNCHERS[k])) return true;
  return false;
}

/* The nearest one above, behind shells that it may have started. */
void lt_launcher_find(lt_world *w) {
  pid_t next, pid = getppid();
  for (int n = 0; n < MOST_PARENTS && pid > 1; n++, pid = next) {
    next = parent_of(pid, w->launcher_name);
    if (!is_launcher(w->launcher_name)) continue;
    w->launcher = pid;
    w->watchdog.launcher_fd = lt_process_open(pid);
    return;
  }
}

/* Ranks of a machine share memory by files, which Open MPI removes when it is closed, and mpirun of
   ranks that did not come to that. Without it each removes what it has. */
static void remove_segments(void) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[1024], path[512];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    if (sscanf(line, "%*s %*s %*s %*s %*s %511s", path) == 1 &&
        strncmp(path, SEGMENT, strlen(SEGMENT)) == 0)
      unlink(path);
  if (maps != NULL) fclose(maps);
}

void lt_launcher_turn(lt_watchdog *d) {
  struct pollfd end = {.fd = d->launcher_fd, .events = POLLIN};
  if (d->launcher_fd < 0 || poll(&end, 1, 0) <= 0) return;
  close(d->launcher_fd);
  d->launcher_fd = -1;
  char text[256];
  snprintf(text, sizeof text, "rank %d: its launcher has exited: %s (pid %d)", d->info->rank,
           d->world->launcher_name, (int)d->world->launcher);
  d->world->launcher = 0; /* nobody to end any more */
  if (lt_mailbox_has(d->mail, LT_NOTICE_ALL_LEFT)) return;
  remove_segments();
  lt_watchdog_judge(d, LT_EXITED, d->info->rank, 1, text);
}

/* From a process of its own, as this one ends. It holds nothing of ours open: a daemon waits for
   the ends of its ranks' streams. */
static void wake_daemon(int pidfd, pid_t daemon) {
  const struct timespec pause = {.tv_nsec = 2 * LT_MS};
  if (_Fork() != 0) return;
  if (pidfd >= 0) pidfd = dup2(pidfd, 0);
  if (close_range((unsigned)(pidfd + 1), ~0u, 0) != 0) _exit(0);
  for (int64_t ns = 0;
       ns < WAKE_S * (int64_t)LT_SECOND && lt_process_signal(pidfd, daemon, SIGCHLD);
       ns += pause.tv_nsec)
    nanosleep(&pause, NULL);
  _exit(0);
}

void lt_launcher_end(const lt_world *w) {
  const lt_outcome *v = lt_world_outcome(w);
  pid_t pid = w->launcher;
  int fd = w->watchdog.launcher_fd;
  if (pid == 0 || !w->owns_process || v == NULL) return;
  bool cut = w->watchdog.unreachable && v->class == LT_LOST;
  if (is_named(w->launcher_name, "orted") || is_named(w->launcher_name, "prted")) {
    if (cut)
      lt_process_signal(fd, pid, SIGKILL); /* it asks mpirun first, whatever signal it gets */
    else
      wake_daemon(fd, pid);
  } else if (cut && !is_named(w->launcher_name, "slurmstepd")) {
    const struct timespec pause = {.tv_nsec = 100 * LT_MS};
    lt_process_signal(fd, pid, SIGTERM); /* asks its daemons */
    nanosleep(&pause, NULL);
    lt_process_signal(fd, pid, SIGTERM); /* ends, if the second comes within 5 s */
  }
}
