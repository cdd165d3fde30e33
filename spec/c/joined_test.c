/* spec/c/joined_test.c: ranks that were started by somebody else and join a world: over shm in a
   file, each with its place, and under mpirun. joined_ranks.c is what runs.
   tags: waits */
#include "launch_test.h"

#include <sys/mman.h>

#include "device/plugin.h"

enum { MOST = 4 };
static struct {
  const char *name, *folder;
  int ranks, missing; /* `missing` is not started; -1: all are */
  int grace;          /* seconds that mpirun gives the others */
} job;

/* In the process of the test: start the ranks, wait for them, print how they ended. */
static void start(void) {
  char file[128], program[1200], rank[16], ranks[16];
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 20);
  CHECK(n > 0);
  program[n] = 0;
  strcpy(strrchr(program, '/'), "/joined_ranks");
  snprintf(file, sizeof file, "/dev/shm/joined_test_%d", (int)getpid());
  int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  size_t bytes = lt_shm_bytes(job.ranks);
  CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(memory != MAP_FAILED);
  lt_shm_init(memory, bytes, job.ranks);
  snprintf(ranks, sizeof ranks, "%d", job.ranks);
  pid_t pids[MOST];
  for (int r = 0; r < job.ranks; r++) {
    snprintf(rank, sizeof rank, "%d", r);
    pids[r] = r == job.missing ? 0 : fork();
    if (pids[r] == 0 && r != job.missing) {
      execl(program, program, job.name, job.folder, file, rank, ranks, NULL);
      _exit(127);
    }
  }
  bool stops = strcmp(job.name, "stop") == 0; /* nobody but its user may end a launcher's process */
  char ended[64] = "ended:";
  for (int r = 0, status; r < job.ranks; r++) {
    if (r == job.missing) continue;
    if (stops && r == 1) kill(pids[1], SIGKILL); /* rank 0 has ended by now */
    waitpid(pids[r], &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    snprintf(ended + strlen(ended), sizeof ended - strlen(ended), " %d", code);
  }
  dprintf(1, "%s\n", ended);
  unlink(file);
}

static apart begin(const char *name, int ranks, int missing, double limit) {
  job.name = name;
  job.ranks = ranks;
  job.missing = missing;
  return start_apart(start, limit);
}

static outcome join(const char *name, int ranks, int missing, double limit) {
  return end_apart(begin(name, ranks, missing, limit));
}

/* Cases that wait for long do it while the others run. */
static apart stopped, stuck, incomplete;

static int begin_all(void **state) {
  if (make_folder(state) != 0) return -1;
  job.folder = "/dev/null"; /* no files: they are the others' */
  stopped = begin("stop", 3, -1, 60);
  stuck = begin("stuck", 3, -1, 60);
  incomplete = begin("good", 3, 1, 60);
  job.folder = folder;
  return 0;
}

static void ranks_join_and_leave(void **state) {
  (void)state;
  outcome o = join("good", 3, -1, 30);
  expect_end(&o, 0);
  expect_said(&o, "shm 1 3 1 3 1 1\n");
  expect_said(&o, "ended: 0 0 0\n");
}

static void an_error_of_one_is_reported_once(void **state) {
  (void)state;
  outcome o = join("raise", 3, -1, 30);
  expect_end(&o, 0);
  assert_string_equal(o.said, "reported by rank 0: rank 1: model.lua:12: boom\n"
                              "ended: 1 1 1\n");
  assert_true(has_file("failure.rank2.txt", "rank 1: model.lua:12: boom"));
  assert_true(o.seconds < 10);
}

static void a_killed_rank_ends_all(void **state) {
  (void)state;
  outcome o = join("kill", 3, -1, 30);
  expect_end(&o, 0);
  expect_said(&o, "reported by rank 0: rank 2 (pid ");
  expect_said(&o, ") ended without an error message; last known: rank 2: ");
  expect_said(&o, "ended: 1 1 137\n");
  assert_true(o.seconds < 10);
}

static void where_a_killed_rank_was_is_known(void **state) {
  (void)state;
  outcome o = join("later", 3, -1, 30);
  expect_end(&o, 0);
  expect_said(&o, "last known: rank 2: in training_step at model.lua:12\n");
  expect_said(&o, "ended: 1 1 137\n");
}

static void the_lowest_survivor_tells_of_rank_0(void **state) {
  (void)state;
  outcome o = join("first", 3, -1, 30);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "reported by rank "), 1);
  expect_said(&o, "reported by rank 1: rank 0 ended without an error message; rank 1: all_reduce");
  expect_said(&o, "ended: 137 1 1\n");
  assert_true(has_file("failure.rank2.txt", "rank 0 ended without an error message"));
}

static void exit_5_of_one_is_a_failure(void **state) {
  (void)state;
  outcome o = join("exit5", 2, -1, 30);
  expect_end(&o, 0);
  expect_said(
      &o, "reported by rank 0: rank 1 called exit(5) before it had left the script; "
              "last known: "
          "rank 1: in training_step at model.lua:12\n");
  expect_said(&o, "ended: 5 5\n");
}

static void exit_0_of_all_is_an_end(void **state) {
  (void)state;
  outcome o = join("exit0", 3, -1, 30);
  expect_end(&o, 0);
  assert_string_equal(o.said, "ended: 0 0 0\n");
}

static void who_waits_for_a_rank_that_left_fails_at_once(void **state) {
  (void)state;
  outcome o = join("leave", 2, -1, 30);
  expect_end(&o, 0);
  expect_said(
      &o, "reported by rank 0: ranks disagree at collective 1: "
              "rank 0: all_reduce sum [] f64 at "
          "model.lua:31; rank 1: left the script at model.lua:40\n");
  assert_true(o.seconds < 10);
}

static void a_stopped_rank_is_lost(void **state) {
  (void)state;
  outcome o = end_apart(stopped);
  expect_end(&o, 0);
  expect_said(&o, "reported by rank 0: rank 1 (pid ");
  expect_said(&o, " is lost: no heartbeat for ");
  expect_said(&o, "ended: 1 137 1\n");
}

static void a_rank_that_computes_on_is_ended(void **state) {
  (void)state;
  outcome o = end_apart(stuck);
  expect_end(&o, 0);
  expect_said(&o, "ltrain: rank 1: model.lua:12: boom\n");
  expect_said(&o, "ended: 1 1 1\n");
}

static void a_rank_that_does_not_come_is_reported(void **state) {
  (void)state;
  outcome o = end_apart(incomplete);
  expect_end(&o, 0);
  expect_said(&o, "the script: rank 0: not all ranks connected in time (launch_timeout)");
  assert_int_equal(count_of(o.said, "not all ranks connected"), 1);
  expect_said(&o, "ended: 1 1\n");
}

/* ---- under mpirun ---- */

static bool has_mpi(void) {
  lt_ctx *c = fresh();
  c->policy.dlopen = true;
  bool there =
      lt_backend_comm(c, "mpi", NULL) != NULL && system("command -v mpirun >/dev/null") == 0;
  lt_ctx_release(c);
  if (!there) print_message("# no MPI here: skipped\n");
  return there;
}

static void start_mpi(void) {
  char command[3000], program[1200];
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 20);
  program[n > 0 ? n : 0] = 0;
  strcpy(strrchr(program, '/'), "/joined_ranks");
  snprintf(command, sizeof command,
           "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; exec timeout -k 1 90 "
           "mpirun -q --oversubscribe --mca odls_base_sigkill_timeout %d -n %d '%s' %s %s",
           job.grace, job.ranks, program, job.name, job.folder);
  execl("/bin/sh", "sh", "-c", command, NULL);
}

/* mpirun need give the others no time after the first end, but where it is the first to know. */
static outcome mpirun(const char *name, int ranks) {
  job.name = name;
  job.grace = strcmp(name, "kill") == 0 ? 1 : 0;
  job.ranks = ranks;
  return run_apart(start_mpi, 100);
}

static void mpi_ranks_join_and_leave(void **state) {
  (void)state;
  if (!has_mpi()) skip();
  outcome o = mpirun("good", 3);
  expect_end(&o, 0);
  expect_said(&o, "mpi 1 3 1 3 1 1\n");
}

static void mpi_an_error_of_one_is_reported_once(void **state) {
  (void)state;
  if (!has_mpi()) skip();
  outcome o = mpirun("raise", 3);
  expect_end(&o, 1);
  assert_int_equal(count_of(o.said, "reported by rank 0: rank 1: model.lua:12: boom\n"), 1);
  assert_int_equal(count_of(o.said, "boom"), 1);
}

static void mpi_a_killed_rank_ends_all(void **state) {
  (void)state;
  if (!has_mpi()) skip();
  outcome o = mpirun("kill", 3);
  assert_int_not_equal(o.status, -1);
  assert_int_equal(count_of(o.said, ") ended without an error message"), 1);
}

static void mpi_a_rank_that_left_is_named(void **state) {
  (void)state;
  if (!has_mpi()) skip();
  outcome o = mpirun("leave", 2);
  expect_end(&o, 1);
  expect_said(&o, "rank 1: left the script at model.lua:40");
}

static void mpi_exit_0_of_all_is_an_end(void **state) {
  (void)state;
  if (!has_mpi()) skip();
  outcome o = mpirun("exit0", 2);
  expect_end(&o, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_join_and_leave),
      cmocka_unit_test(an_error_of_one_is_reported_once),
      cmocka_unit_test(a_killed_rank_ends_all),
      cmocka_unit_test(where_a_killed_rank_was_is_known),
      cmocka_unit_test(the_lowest_survivor_tells_of_rank_0),
      cmocka_unit_test(exit_5_of_one_is_a_failure),
      cmocka_unit_test(exit_0_of_all_is_an_end),
      cmocka_unit_test(who_waits_for_a_rank_that_left_fails_at_once),
      cmocka_unit_test(a_stopped_rank_is_lost),
      cmocka_unit_test(a_rank_that_computes_on_is_ended),
      cmocka_unit_test(a_rank_that_does_not_come_is_reported),
      cmocka_unit_test(mpi_ranks_join_and_leave),
      cmocka_unit_test(mpi_an_error_of_one_is_reported_once),
      cmocka_unit_test(mpi_a_killed_rank_ends_all),
      cmocka_unit_test(mpi_a_rank_that_left_is_named),
      cmocka_unit_test(mpi_exit_0_of_all_is_an_end),
  };
  return cmocka_run_group_tests(tests, begin_all, drop_folder);
}
