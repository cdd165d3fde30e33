/* runtime/launch/daemons.c: what started the ranks ends with them, when a link is cut.

   mpirun and its daemons (orted) on the other machines end a job together: each waits for the
   others' word. Where the way between them is cut they wait as long as TCP does, a quarter of an
   hour, though no rank is left. So a rank that ends because of a cut ends what has started it.
   Where both ends are heard (a rank was only stopped) they do it better themselves.

   A daemon sleeps between the signals that it ends its ranks with, as long as mpirun was told that
   ranks may need, also when they are gone. A signal that it handles takes a second off; on mpirun's
   own machine its supervisor sends them (lua/bind/supervise.c), on others the last of a rank. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launch/world.h"

enum { WAKE_S = 10 };

/* Whether a process has this name. */
static bool is_named(pid_t pid, const char *name) {
  char path[64], text[32] = "";
  snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  char *line = fgets(text, sizeof text, file);
  fclose(file);
  if (line == NULL) return false;
  text[strcspn(text, "\n")] = 0;
  return strcmp(text, name) == 0;
}

/* From a process of its own, as this one ends. It holds nothing of ours open: a daemon waits for
   the ends of its ranks' streams. */
static void wake_daemon(pid_t daemon) {
  const struct timespec pause = {.tv_nsec = 2 * LT_MS};
  if (_Fork() != 0) return;
  if (close_range(0, ~0u, 0) != 0) _exit(0);
  for (int64_t ns = 0; ns < WAKE_S * (int64_t)LT_SECOND && kill(daemon, SIGCHLD) == 0;
       ns += pause.tv_nsec)
    nanosleep(&pause, NULL);
  _exit(0);
}

void lt_daemons_end(const lt_world *w) {
  const lt_verdict *v = lt_world_verdict(w);
  if (w->info.forked || !w->owns_process || v == NULL) return;
  bool cut = w->watchdog.unreachable && v->class == LT_LOST;
  pid_t parent = getppid();
  if (is_named(parent, "orted")) {
    if (cut)
      kill(parent, SIGKILL); /* it asks mpirun first, whatever signal it gets */
    else
      wake_daemon(parent);
  } else if (cut && (is_named(parent, "mpirun") || is_named(parent, "orterun"))) {
    const struct timespec pause = {.tv_nsec = 100 * LT_MS};
    kill(parent, SIGTERM); /* asks its daemons */
    nanosleep(&pause, NULL);
    kill(parent, SIGTERM); /* ends, if the second comes within 5 s */
  }
}
