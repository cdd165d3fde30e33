/* spec/c/outcome_test.c: a rank raises, is killed, exits or leaves: what the others get. */
/* tags: threads */
#include "forked_test.h"

#include <sys/resource.h>

static void raises(void) {
  expect_outcome(3, 30, boom, LT_RAISED, 1, "rank 1: model.lua:12: boom");
}

static void an_error_of_one_ends_all(void **state) {
  (void)state;
  outcome o = run_apart(raises, 20);
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
  assert_string_equal(o.said, ""); /* the parent's Lua prints it */
  assert_true(has_file("failure.rank0.txt", "rank 1: model.lua:12: boom"));
  assert_true(has_file("failure.rank2.txt", "rank 1: model.lua:12: boom"));
  assert_true(has_file("ring.rank2.jsonl", "\"op\":\"all_reduce\""));
}

static void kill_self(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 2) kill(getpid(), SIGKILL);
  stay(c, w);
}
static void is_killed(void) {
  expect_outcome(3, 30, kill_self, LT_EXITED, 128 + SIGKILL, "was ended by SIGKILL");
}

static void a_killed_rank_ends_all_and_its_ring_is_kept(void **state) {
  (void)state;
  outcome o = run_apart(is_killed, 20);
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
  assert_true(
      has_file("failure.rank1.txt", "last known: rank 2: in training_step at model.lua:12"));
  assert_true(has_file("ring.rank2.jsonl", "\"rank\":2"));
}

static void fault(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would report it otherwise */
    dprintf(2, "last words\nwithout an end");
    raise(SIGSEGV);
  }
  stay(c, w);
}
static void faults(void) {
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  expect_outcome(2, 30, fault, LT_EXITED, 128 + SIGSEGV,
                 "was ended by SIGSEGV (Segmentation fault); no core: its limit is 0");
}

static void a_fault_says_where_the_core_is_and_words_have_their_rank(void **state) {
  (void)state;
  outcome o = run_apart(faults, 20);
  expect_end(&o, 0);
  assert_string_equal(o.said, "[rank 1] last words\n[rank 1] without an end\n");
}

static void leave_by_exit(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1) exit(5);
  stay(c, w);
}
static void print_atexit(void) {
  dprintf(1, "atexit of %s\n", getppid() == getsid(0) ? "a child" : "the parent");
}
static void exits(void) {
  atexit(print_atexit);
  expect_outcome(2, 30, leave_by_exit, LT_EXITED, 5,
                 "rank 1 called exit(5) before it had left fit; last known: rank 1: in "
                 "training_step at model.lua:12");
  _exit(0);
}

static void exit_in_a_child_is_a_failure_that_names_the_line(void **state) {
  (void)state;
  outcome o = run_apart(exits, 20);
  expect_end(&o, 0);
  assert_string_equal(o.said, "");
}

static void leave_by_underscore(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1) _exit(0);
  stay(c, w);
}
static void ends_quietly(void) {
  expect_outcome(2, 30, leave_by_underscore, LT_EXITED, 1,
                 "exited with status 0 before it had left fit");
}

static void an_end_with_status_0_is_a_failure_too(void **state) {
  (void)state;
  outcome o = run_apart(ends_quietly, 20);
  expect_end(&o, 0);
}

static void leave_early(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1) CHECK(!lt_world_leave(c, w, "model.lua", 40));
  if (rank_of(w) == 2) stay(c, w);
}
static void one_leaves(void) {
  expect_outcome(3, 30, leave_early, LT_RAISED, 1,
                 "ranks disagree at collective 2: ranks 0, 2: all_reduce sum [] f64 at "
                 "model.lua:31; rank 1: left fit at model.lua:40");
}

static void who_waits_for_a_rank_that_left_fails_at_once(void **state) {
  (void)state;
  outcome o = run_apart(one_leaves, 20);
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_error_of_one_ends_all),
      cmocka_unit_test(a_killed_rank_ends_all_and_its_ring_is_kept),
      cmocka_unit_test(a_fault_says_where_the_core_is_and_words_have_their_rank),
      cmocka_unit_test(exit_in_a_child_is_a_failure_that_names_the_line),
      cmocka_unit_test(an_end_with_status_0_is_a_failure_too),
      cmocka_unit_test(who_waits_for_a_rank_that_left_fails_at_once),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
