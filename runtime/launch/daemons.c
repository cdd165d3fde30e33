/* runtime/launch/daemons.c: what started the ranks ends with them, when a link is cut.

   mpirun and its daemons (orted) on the other machines end a job together: each waits for the
   others' word. Where the way between them is cut they wait as long as TCP does, a quarter of an
   hour, though no rank is left. So a rank that ends because of a cut ends what has started it.
   Where both ends are heard (a rank was only stopped) they do it better themselves. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launch/world.h"

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

void lt_daemons_end(const lt_world *w) {
  const lt_verdict *v = lt_world_verdict(w);
  if (!w->cut_off || !w->owns_process || v == NULL || v->class != LT_LOST) return;
  pid_t parent = getppid();
  if (is_named(parent, "orted")) { /* it asks mpirun first, whatever signal it gets */
    kill(parent, SIGKILL);
  } else if (is_named(parent, "mpirun") || is_named(parent, "orterun")) {
    const struct timespec pause = {.tv_nsec = 100 * LT_MS};
    kill(parent, SIGTERM); /* asks its daemons */
    nanosleep(&pause, NULL);
    kill(parent, SIGTERM); /* ends, if the second comes within 5 s */
  }
}
