/* spec/c/timeouts_test.c: ranks that stop, come late, compute on or save: what time they are
   given. */
/* tags: threads, waits */
#include "forked_test.h"

/* All cases wait most of the time: they do it together, begun before the first. */
enum { STOPS, IS_LATE, COMPUTES, SAVES, WAITS_LONG, SAVING, CASES };
static apart running[CASES];

static void stop_self(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1) raise(SIGSTOP);
  stay(c, w);
}
static void stops(void) {
  int64_t start = lt_now_ns();
  expect_outcome(3, 3, stop_self, LT_LOST, 1, "rank 1 (pid ");
  CHECK(seconds_since(start) >= 3);
}

static void a_stopped_rank_is_lost_and_killed(void **state) {
  (void)state;
  outcome o = end_apart(running[STOPS]);
  expect_end(&o, 0);
}

static void dawdle(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1)
    while (!lt_heartbeat_is_over(lt_world_heartbeat(w))) pause_ms(10);
  else
    stay(c, w);
}
static void is_late(void) {
  expect_outcome(3, 3, dawdle, LT_LATE, 1,
                 "rank 1 is late: rank 0 has waited 3 s: ranks 0, 2: all_reduce");
}

static void a_late_rank_is_warned_of_and_then_an_error(void **state) {
  (void)state;
  outcome o = end_apart(running[IS_LATE]);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "ltrain: rank 1 is late"), 1);
  expect_said(&o, "rank 1: in training_step at model.lua:12");
  expect_said(&o, "(an error at 3 s)\n");
}

/* A kernel that does not end: its process is ended 2 s after the outcome. */
static void compute(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 2)
    for (volatile int64_t i = 0; i >= 0; i++) {
    }
  boom(c, w);
}
static void computes(void) {
  expect_outcome(3, 30, compute, LT_RAISED, 1, "rank 1: model.lua:12: boom");
}

static void a_rank_that_does_not_come_back_is_ended(void **state) {
  (void)state;
  outcome o = end_apart(running[COMPUTES]);
  expect_end(&o, 0);
}

static void saves(void) {
  lt_ctx *c = fresh();
  lt_world *w = begin(c, 2, 3);
  CHECK(sum(c, w, 1) == 2);
  if (rank_of(w) == 0) {
    lt_world_span(w, true, true);
    pause_ms(7000);
    lt_world_span(w, false, true);
    pause_ms(1000);
  }
  CHECK(sum(c, w, 1) == 2);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
}

static void a_declared_span_is_never_late(void **state) {
  (void)state;
  outcome o = end_apart(running[SAVES]);
  expect_end(&o, 0);
  assert_string_equal(o.said, "");
}

/* Stops all of its ranks for twice the timeout, from outside of their session. */
static void waits_long(void) {
  int ready[2];
  CHECK(pipe(ready) == 0);
  pid_t group = fork();
  if (group == 0) {
    setpgid(0, 0);
    lt_ctx *c = fresh();
    lt_world *w = begin(c, 3, 3);
    for (int k = 0; k < 300; k++) {
      CHECK(sum(c, w, 1) == 3);
      if (k == 20 && rank_of(w) == 0) CHECK(write(ready[1], "x", 1) == 1);
      pause_ms(5);
    }
    CHECK(lt_world_leave(c, w, NULL, 0));
    lt_world_end(c, w);
    _exit(0);
  }
  char x;
  CHECK(read(ready[0], &x, 1) == 1);
  kill(-group, SIGSTOP);
  pause_ms(6500);
  kill(-group, SIGCONT);
  int status;
  CHECK(waitpid(group, &status, 0) == group && status == 0);
}

static void a_job_that_is_stopped_for_long_goes_on(void **state) {
  (void)state;
  outcome o = end_apart(running[WAITS_LONG]);
  expect_end(&o, 0);
}

/* A save takes longer than a rank has to unwind. */
static void save_on(lt_world *w) {
  lt_world_span(w, true, true);
  while (!lt_heartbeat_is_over(lt_world_heartbeat(w))) pause_ms(1);
  pause_ms(4000);
  dprintf(1, "saved\n");
  lt_world_span(w, false, true);
}
static void saving(void) {
  lt_ctx *c = fresh();
  lt_world *w = begin(c, 3, 20);
  CHECK(sum(c, w, 1) == 3);
  if (rank_of(w) == 2) lt_world_raise(w, "boom", NULL, 0);
  if (rank_of(w) == 1) save_on(w);
  while (!lt_heartbeat_is_over(lt_world_heartbeat(w))) pause_ms(1);
  lt_world_end(c, w);
}

static void a_save_may_come_to_its_end(void **state) {
  (void)state;
  outcome o = end_apart(running[SAVING]);
  expect_end(&o, 0);
  assert_string_equal(o.said, "saved\n");
}

static int start_all(void **state) {
  static void (*const cases[CASES])(void) = {stops, is_late, computes, saves, waits_long, saving};
  if (make_folder(state) != 0) return -1;
  for (int k = 0; k < CASES; k++) running[k] = start_apart(cases[k], 60);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stopped_rank_is_lost_and_killed),
      cmocka_unit_test(a_late_rank_is_warned_of_and_then_an_error),
      cmocka_unit_test(a_rank_that_does_not_come_back_is_ended),
      cmocka_unit_test(a_declared_span_is_never_late),
      cmocka_unit_test(a_job_that_is_stopped_for_long_goes_on),
      cmocka_unit_test(a_save_may_come_to_its_end),
  };
  return cmocka_run_group_tests(tests, start_all, drop_folder);
}
