/* spec/c/watchdog_test.c: watchdogs, the coordinator and the timeouts, with ranks that are threads
   of this process: for the thread sanitizer. */
/* tags: threads, waits */
#include "watchdog_test.h"

static void connect_pairs(void) {
  for (int k = 1; k < world.n; k++) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
                     0);
    lt_channel_open(&world.ranks[0].w->watchdog.peers[k].link, ends[0], false);
    lt_channel_open(&world.ranks[k].w->watchdog.peers[0].link, ends[1], false);
  }
}

/* Ranks of a host: all run `run` to its end, with their watchdogs. */
static void play(int n, double timeout, const char *files, void (*run)(rank *r)) {
  open_world(n, timeout, files);
  connect_pairs();
  watch_all();
  run_all(run);
}

/* ---- the coordinator ---- */

static void report_by_rank(rank *r) {
  static const lt_outcome_class class[MOST] = {LT_LATE, LT_LOST, LT_RAISED, LT_EXITED};
  char text[64];
  snprintf(text, sizeof text, "rank %d fails", r->number);
  lt_world_report(r->w, class[r->number], r -> number, 10 + r -> number, text);
}

static void the_gravest_of_several_is_reported(void **state) {
  (void)state;
  play(4, 20, NULL, report_by_rank);
  const lt_outcome *v = common_outcome();
  assert_int_equal(v->class, LT_RAISED);
  assert_int_equal(v->rank, 2);
  assert_int_equal(v->status, 12);
  assert_string_equal(v->text, "rank 2 fails");
  close_world();
}

static void the_first_of_a_class_is_reported(void **state) {
  (void)state;
  play(4, 20, NULL, raise_in_order);
  assert_string_equal(common_outcome()->text, "rank 3: boom 3");
  close_world();
}

/* Rank 0 saves for longer than reports are collected; the signal came to rank 1, and rank 2 makes
   an error of it. */
static void end_together(rank *r) {
  static atomic_bool saves;
  if (r->number == 0) {
    lt_world_span(r->w, true, true);
    atomic_store(&saves, true);
    pause_ms(400);
    if (lt_heartbeat_is_over(r->w->heartbeat)) abort();
    lt_world_span(r->w, false, true);
    lt_world_stop(r->w, "interrupted: saved a.ckpt", 1);
    return;
  }
  while (!atomic_load(&saves)) pause_ms(1);
  if (r->number == 1) lt_world_stop(r->w, "interrupted", 143);
  pause_ms(100);
  if (r->number == 2) lt_world_raise(r->w, "cancelled", "model.lua", 12);
}

static void an_interrupted_run_is_reported_by_rank_0_when_it_is_saved(void **state) {
  (void)state;
  play(3, 20, NULL, end_together);
  const lt_outcome *v = common_outcome();
  assert_int_equal(v->class, LT_INTERRUPTED);
  assert_int_equal(v->status, 143);
  assert_string_equal(v->text, "interrupted: saved a.ckpt");
  close_world();
}

/* Nobody asks the main threads: they wait for ever. */
static void wait_interrupted(rank *r) {
  if (r->number == 1) lt_world_interrupt(r->w, SIGTERM);
  wait_outcome(r);
}

static void a_signal_ends_all_wherever_they_are(void **state) {
  (void)state;
  play(3, 20, NULL, wait_interrupted);
  const lt_outcome *v = common_outcome();
  assert_int_equal(v->class, LT_INTERRUPTED);
  assert_int_equal(v->rank, 1);
  assert_int_equal(v->status, 128 + SIGTERM);
  close_world();
}

static void waits_end_with_the_outcome(void **state) {
  (void)state;
  play(3, 20, folder, collect_and_fail);
  assert_string_equal(common_outcome()->text, "rank 1: boom");
  for (int k = 0; k < 3; k += 2) {
    lt_failure f;
    assert_true(lt_take_failure(world.ranks[k].c, &f));
    assert_int_equal(f.code, LT_ERANKS);
    assert_string_equal(f.text, "rank 1: boom");
  }
  close_world();
  assert_true(has_file("failure.rank2.txt", "rank 1: boom"));
  assert_true(has_file("ring.rank0.jsonl", "\"op\":\"all_reduce\""));
}

static lt_progress never_move(lt_comm_link *link, lt_comm_move *m) {
  (void)link;
  (void)m;
  return LT_PENDING;
}

static void sum_in_vain(rank *r) {
  if (sum(r->c, r->w, 1) != -1) abort();
}

/* All have issued it, and agreed on it; the transport does nothing. */
static void who_is_there_in_vain_is_stalled(void **state) {
  (void)state;
  lt_comm_ops ops = *lt_shm_ops();
  ops.move = never_move;
  world.ops = &ops;
  int64_t start = lt_now_ns();
  play(3, 3, NULL, sum_in_vain);
  const lt_outcome *v = common_outcome();
  assert_int_equal(v->class, LT_STALLED);
  assert_int_equal(v->rank, -1);
  assert_non_null(strstr(v->text, "stalled: all ranks have arrived and no data has moved for "));
  assert_non_null(strstr(v->text, " s: ranks 0-2: all_reduce sum [] f64 at model.lua:31"));
  assert_true(lt_now_ns() - start >= 6ll * LT_SECOND);
  close_world();
  world.ops = NULL;
}

static void all_leave_and_all_are_reported(void **state) {
  (void)state;
  play(3, 20, NULL, leave_unevenly);
  for (int k = 0; k < 3; k++) assert_null(world.ranks[k].run);
  close_world();
}

/* Rank 0 leaves; 1 and 2 continue in a group of theirs, which concerns no other rank. */
static void split_and_leave(rank *r) {
  lt_group *g = lt_group_split(r->c, r->w->group, r->number > 0 ? 1 : -1, 0);
  assert_true(lt_ok(r->c));
  for (int k = 0; k < 20 && r->number > 0; k++) {
    lt_work *work = lt_comm_barrier(r->c, g, (lt_origin){.file = "model.lua", .line = 7});
    assert_non_null(work);
    if (r->number == 2) pause_ms(80);
    assert_true(lt_work_wait(r->c, work));
    lt_work_release(r->c, work);
  }
  assert_true(lt_world_leave(r->c, r->w, "model.lua", 40));
  if (g != NULL) lt_group_release(r->c, g);
}

static void who_left_is_not_missed_where_it_is_no_member(void **state) {
  (void)state;
  play(3, 20, NULL, split_and_leave);
  close_world();
}

/* Rank 1 waits for rank 2, which is late; rank 0 waits for rank 1. Rank 2 is named. */
static void wait_in_a_row(rank *r) {
  lt_group *g = lt_group_split(r->c, r->w->group, r->number > 0 ? 1 : -1, 0);
  if (r->number == 2)
    wait_outcome(r);
  else if (r->number == 1) {
    lt_work *work = lt_comm_barrier(r->c, g, (lt_origin){.file = "model.lua", .line = 7});
    lt_work_wait(r->c, work);
    lt_work_release(r->c, work);
  } else {
    sum(r->c, r->w, 1);
  }
  if (g != NULL) lt_group_release(r->c, g);
}

static void of_a_row_of_waits_the_last_is_to_blame(void **state) {
  (void)state;
  play(3, 3, NULL, wait_in_a_row);
  const lt_outcome *v = common_outcome();
  assert_int_equal(v->class, LT_LATE);
  assert_int_equal(v->rank, 2);
  assert_non_null(strstr(v->text, "rank 2 is late"));
  close_world();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_gravest_of_several_is_reported),
      cmocka_unit_test(the_first_of_a_class_is_reported),
      cmocka_unit_test(an_interrupted_run_is_reported_by_rank_0_when_it_is_saved),
      cmocka_unit_test(a_signal_ends_all_wherever_they_are),
      cmocka_unit_test(waits_end_with_the_outcome),
      cmocka_unit_test(who_is_there_in_vain_is_stalled),
      cmocka_unit_test(all_leave_and_all_are_reported),
      cmocka_unit_test(who_left_is_not_missed_where_it_is_no_member),
      cmocka_unit_test(of_a_row_of_waits_the_last_is_to_blame),
  };
  alarm(120); /* nothing here may hang the suite */
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
