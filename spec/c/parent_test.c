/* spec/c/parent_test.c: what becomes of children whose rank 0 is killed, stopped or hung up. */
#include "forked_test.h"

#include <sys/prctl.h>

/* Ended; a stopped parent keeps the remains of its children. */
static bool is_over(int pid) {
  char path[64], text[128];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  waitpid(pid, NULL, WNOHANG);
  int fd = open(path, O_RDONLY);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  return n <= 0 || strstr(text, ") Z") != NULL;
}

/* Rank 0 is a process of its own, which `fate` befalls; its children shall end soon. */
static void parent_and(void (*fate)(const int *pids), void (*work)(lt_ctx *, lt_world *)) {
  int pids[2];
  CHECK(pipe(pids) == 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* its orphans become ours, to be waited for */
  pid_t parent = fork();
  if (parent == 0) {
    close(pids[0]);
    lt_ctx *c = fresh();
    lt_world *w = begin(c, 3, 3);
    CHECK(sum(c, w, 1) == 3);
    if (rank_of(w) == 0) {
      const lt_world_info *i = lt_world_describe(w);
      CHECK(write(pids[1], i->pids, 3 * sizeof *i->pids) == 3 * sizeof *i->pids);
    }
    close(pids[1]);
    work(c, w);
    if (rank_of(w) == 0) dprintf(1, "reported to the parent: %s\n", lt_world_outcome(w)->text);
    lt_world_end(c, w);
    _exit(0);
  }
  int all[3];
  close(pids[1]);
  CHECK(read(pids[0], all, sizeof all) == sizeof all);
  fate(all);
  int64_t start = lt_now_ns();
  for (int r = 1; r < 3; r++)
    while (!is_over(all[r])) pause_ms(10);
  dprintf(1, "children gone after %.1f s\n", seconds_since(start));
  kill(parent, SIGCONT);
  waitpid(parent, NULL, 0);
}

/* The parent does not come to where its children wait. */
static void stay_on(lt_ctx *c, lt_world *w) {
  if (rank_of(w) > 0) stay(c, w);
  while (!lt_heartbeat_is_over(lt_world_heartbeat(w))) pause_ms(1);
}
static void kill_parent(const int *pids) { kill(pids[0], SIGKILL); }
static void loses_parent(void) { parent_and(kill_parent, stay_on); }

static double gone_after(const outcome *o) {
  const char *at = strstr(o->said, "gone after ");
  return at != NULL ? strtod(at + 11, NULL) : 1e9;
}

static void children_end_with_their_parent_and_one_speaks(void **state) {
  (void)state;
  outcome o = run_apart(loses_parent, 40);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "ltrain: rank 0 ended without an error message"), 1);
  assert_true(gone_after(&o) < 10);
  assert_true(has_file("failure.rank1.txt", "rank 0 ended without an error message"));
}

static void spin(lt_ctx *c, lt_world *w) {
  (void)c;
  (void)w;
  for (volatile int64_t i = 0; i >= 0; i++) {
  }
}
static void loses_parent_in_a_kernel(void) { parent_and(kill_parent, spin); }

static void children_in_a_kernel_end_with_their_parent(void **state) {
  (void)state;
  outcome o = run_apart(loses_parent_in_a_kernel, 40);
  expect_end(&o, 0);
  assert_true(gone_after(&o) < 10);
}

static void stop_parent(const int *pids) { kill(pids[0], SIGSTOP); }
static void stops_parent(void) { parent_and(stop_parent, stay_on); }

static void children_of_a_stopped_parent_give_it_up(void **state) {
  (void)state;
  outcome o = run_apart(stops_parent, 60);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "ltrain: rank 0 is lost: no heartbeat for "), 1);
  expect_said(&o, "reported to the parent: rank 0 is lost: no heartbeat for ");
  assert_true(gone_after(&o) < 30);
}

/* Nobody is left to end it. It stays as who stopped it left it, and fails when it continues. */
static void stop_parent_and_kill_children(const int *pids) {
  kill(pids[0], SIGSTOP);
  pause_ms(100);
  for (int r = 1; r < 3; r++) kill(pids[r], SIGKILL);
}
static void stops_parent_alone(void) { parent_and(stop_parent_and_kill_children, stay_on); }

static void a_stopped_parent_without_children_fails_when_it_goes_on(void **state) {
  (void)state;
  outcome o = run_apart(stops_parent_alone, 40);
  expect_end(&o, 0);
  /* Of two that are killed together either may be found first. */
  expect_said(&o, "reported to the parent: rank ");
  expect_said(&o, ") was ended by SIGKILL (Killed)");
}

static void hang_up(const int *pids) { kill(-getpgid(pids[0]), SIGHUP); }
static void hangs_up(void) {
  signal(SIGHUP, SIG_IGN);
  if (fork() == 0) {
    signal(SIGHUP, SIG_DFL);
    setpgid(0, 0);
    parent_and(hang_up, stay_on);
    _exit(0);
  }
  int status;
  wait(&status);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

static void a_hangup_ends_the_job(void **state) {
  (void)state;
  outcome o = run_apart(hangs_up, 20); /* which reads until the last process has ended */
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(children_end_with_their_parent_and_one_speaks),
      cmocka_unit_test(children_in_a_kernel_end_with_their_parent),
      cmocka_unit_test(children_of_a_stopped_parent_give_it_up),
      cmocka_unit_test(a_stopped_parent_without_children_fails_when_it_goes_on),
      cmocka_unit_test(a_hangup_ends_the_job),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
