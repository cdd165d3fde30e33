/* spec/c/joined_ranks.c: a rank of a joined world, for joined_test.

     joined_ranks CASE FOLDER               under mpirun, over MPI
     joined_ranks CASE FOLDER FILE RANK N   over shm in a file that all ranks map

   It does what CASE says and what the binding does then: raise, leave, report, exit. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/plugin.h"
#include "one_sum.h"
#include "registry.h"

static lt_ctx *c;
static lt_world *w;
static int rank, size;

/* The end of a script that failed: one rank prints why. */
static _Noreturn void fail(void) {
  const lt_outcome *v = lt_world_outcome(w);
  if (v == NULL) {
    fprintf(stderr, "rank %d: no outcome: %s\n", rank, c->failure.text);
    _exit(98);
  }
  if (lt_world_may_print(w)) fprintf(stderr, "reported by rank %d: %s\n", rank, v->text);
  exit(lt_world_exit(c, w, 1));
}

static void check(bool so) {
  if (!so) fail();
}

static void orderly(void) {
  check(lt_world_leave(c, w, "model.lua", 40));
  exit(lt_world_exit(c, w, 0));
}

static void run_good(void) {
  for (int k = 0; k < 20; k++) check(sum(c, w, rank + k) == size * (size - 1) / 2 + size * k);
  const lt_world_info *i = lt_world_describe(w);
  if (rank == 1)
    printf("%s %d %d %d %d %d %d\n", i->backend, i->rank, i->size, i->local_rank, i->local_size,
           i->nodes, i->pids[1] == getpid());
  orderly();
}

static void run_raise(void) {
  if (rank == 1) {
    lt_world_raise(w, "model.lua:12: boom", "model.lua", 12);
    fail();
  }
  for (;;) check(sum(c, w, 1) > 0);
}

static void run_kill(void) {
  if (rank == size - 1) kill(getpid(), SIGKILL);
  for (;;) check(sum(c, w, 1) > 0);
}

/* Its watchdog sends where it is within a tenth of a second. */
static void run_kill_later(void) {
  lt_world_set_activity(w, "training_step", "model.lua", 12);
  if (rank == size - 1) {
    usleep(400000);
    kill(getpid(), SIGKILL);
  }
  for (;;) check(sum(c, w, 1) > 0);
}

static void run_kill_first(void) {
  if (rank == 0) kill(getpid(), SIGKILL);
  for (;;) check(sum(c, w, 1) > 0);
}

static void run_exit_5(void) {
  lt_world_set_activity(w, "training_step", "model.lua", 12);
  if (rank == 1) exit(5);
  for (;;) check(sum(c, w, 1) > 0);
}

static void run_exit_0(void) {
  check(sum(c, w, 1) == size);
  exit(0);
}

static void run_leave(void) {
  if (rank == 1) orderly();
  check(sum(c, w, 1) > 0);
  orderly();
}

static void run_stop(void) {
  if (rank == 1) raise(SIGSTOP);
  for (;;) check(sum(c, w, 1) > 0);
}

/* A kernel that does not end, beside an error. */
static void run_stuck(void) {
  if (rank == 0)
    for (volatile int64_t i = 0; i >= 0; i++) {
    }
  run_raise();
}

static const struct {
  const char *name;
  void (*run)(void);
} cases[] = {{"good", run_good},        {"raise", run_raise},  {"kill", run_kill},
             {"first", run_kill_first}, {"exit5", run_exit_5}, {"exit0", run_exit_0},
             {"leave", run_leave},      {"stop", run_stop},    {"stuck", run_stuck},
             {"later", run_kill_later}};

/* A backend and a place without a launcher: a file that all map. */
static const lt_comm_ops *from_file(char **arguments, lt_comm_place *place) {
  place->rank = place->local_rank = atoi(arguments[1]);
  place->size = place->local_size = atoi(arguments[2]);
  place->memory_bytes = lt_shm_bytes(place->size);
  int fd = open(arguments[0], O_RDWR);
  if (fd < 0) return NULL;
  place->memory = mmap(NULL, place->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return place->memory != MAP_FAILED ? lt_shm_ops() : NULL;
}

int main(int n_arguments, char **arguments) {
  alarm(100);
  c = lt_ctx_new(lt_registry_here(), NULL);
  c->policy = (lt_policy){.read_files = true, .write_files = true, .dlopen = true};
  lt_comm_place place = {.rank = -1};
  const lt_comm_ops *ops =
      n_arguments > 5 ? from_file(arguments + 3, &place) : lt_backend_comm(c, "mpi", NULL);
  lt_launch_options o = {.timeout = 3,
                         .launch_timeout = 4,
                         .what = "the script",
                         .folder = arguments[2],
                         .owns_process = true};
  if (getenv("LT_TIMEOUT") != NULL) o.timeout = 0;
  w = ops != NULL ? lt_world_join(c, ops, &place, &o) : NULL;
  if (w == NULL) {
    fprintf(stderr, "%s\n", c->failure.text);
    return 97;
  }
  rank = lt_world_describe(w)->rank;
  size = lt_world_describe(w)->size;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(arguments[1], cases[i].name) == 0) cases[i].run();
  return 96;
}
