/* runtime/launch/terminal.c: gives the terminal to one of several ranks at a time, for prompts.

   The others may come to their own questions meanwhile, and wait for their turn; in a collective
   they wait as for a rank that saves. A forked child has no standard input of its own: it takes its
   parent's for so long, and prints where its parent does. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <time.h>
#include <unistd.h>

#include "launch/world.h"

enum { LOOK_NS = 20000000, STREAMS = 3 };

/* Of a child: its parent's streams, and its own while it has those; -1: none. */
static int of_parent[STREAMS] = {-1, -1, -1}, own[STREAMS] = {-1, -1, -1};

/* What SIGINT and SIGTERM did before the prompt took them for itself. */
static const int signals[] = {SIGINT, SIGTERM};
static struct sigaction before[2];

void lt_child_keep_terminal(const lt_world *w) {
  of_parent[STDIN_FILENO] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STREAMS);
  of_parent[STDOUT_FILENO] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STREAMS);
  of_parent[STDERR_FILENO] = w->err_fd;
}

static void take_streams(void) {
  fflush(stdout);
  __fpurge(stdin);
  clearerr(stdin); /* it has been at the end of /dev/null */
  for (int k = 0; k < 2; k++) sigaction(signals[k], NULL, &before[k]);
  for (int fd = 0; fd < STREAMS; fd++) {
    if (of_parent[fd] < 0) continue;
    own[fd] = fcntl(fd, F_DUPFD_CLOEXEC, STREAMS);
    dup2(of_parent[fd], fd);
  }
}

static void give_streams(void) {
  fflush(stdout);
  for (int fd = 0; fd < STREAMS; fd++) {
    if (own[fd] < 0) continue;
    dup2(own[fd], fd);
    close(own[fd]);
    own[fd] = -1;
  }
  for (int k = 0; k < 2; k++) sigaction(signals[k], &before[k], NULL);
}

bool lt_world_take_terminal(lt_world *w) {
  const struct timespec nap = {.tv_nsec = LOOK_NS};
  int32_t mine = w->info.rank + 1, holder = 0;
  lt_world_span(w, true, false);
  while (!atomic_compare_exchange_strong(&w->shared->terminal, &holder, mine)) {
    if (lt_heartbeat_is_over(w->heartbeat)) {
      lt_world_span(w, false, false);
      return false;
    }
    holder = 0;
    nanosleep(&nap, NULL);
  }
  w->terminal_ns = lt_now_ns();
  if (w->info.in_child) take_streams();
  return true;
}

void lt_world_give_terminal(lt_world *w, bool fails) {
  if (w->info.in_child) give_streams();
  atomic_fetch_add(&w->shared->terminal_ns, lt_now_ns() - w->terminal_ns);
  if (!fails) atomic_store(&w->shared->terminal, 0);
  lt_world_span(w, false, false);
}

bool lt_world_terminal_is_elsewhere(const lt_world *w) {
  int32_t holder = atomic_load(&w->shared->terminal);
  return holder != 0 && holder != w->info.rank + 1;
}

int64_t lt_world_terminal_ns(const lt_world *w) { return atomic_load(&w->shared->terminal_ns); }
