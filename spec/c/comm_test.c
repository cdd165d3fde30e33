/* spec/c/comm_test.c: marks, tables, rings, heartbeats, and the group of one. */
/* tags: threads */
#include "comm_test.h"

#include <time.h>

#include "comm/fingerprint.h"
#include "comm/ring.h"

static lt_plan plan_of(lt_comm_op op) {
  return (lt_plan){.op = op,
                   .reduce = LT_COMM_NO_REDUCE,
                   .dtype = LT_F32,
                   .seq = 1204,
                   .shape = {.ndim = 2, .size = {8, 10}},
                   .root = -1,
                   .root_world = -1};
}

static lt_mark mark_of(lt_comm_op op, const char *file, int line, const char *hook) {
  lt_plan plan = plan_of(op);
  if (op == LT_COMM_ALL_REDUCE) plan.reduce = LT_COMM_SUM;
  if (op == LT_COMM_BROADCAST || op == LT_COMM_GATHER) plan.root = plan.root_world = 2;
  if (op == LT_COMM_BARRIER) plan.form = LT_FORM_VALUE;
  return lt_mark_of(&plan, (lt_origin){.file = file, .line = line, .hook = hook});
}

static void expect_mark(const lt_mark *m, int number, const char *wanted) {
  char text[256];
  int n = lt_mark_text(m, number, text, sizeof text);
  assert_string_equal(text, wanted);
  assert_int_equal(n, strlen(wanted));
}

static void marks_say_what_a_rank_does(void **state) {
  (void)state;
  lt_mark m = mark_of(LT_COMM_ALL_GATHER, "model.lua", 31, "validation_step");
  expect_mark(&m, 0, "rank 0: all_gather [8, 10] f32 at model.lua:31 (validation_step)");
  m = mark_of(LT_COMM_ALL_REDUCE, "gradients", 0, NULL);
  expect_mark(&m, 3, "rank 3: all_reduce sum [8, 10] f32 at gradients");
  m = mark_of(LT_COMM_BROADCAST, "model.lua", 7, NULL);
  expect_mark(&m, 1, "rank 1: broadcast [8, 10] f32 from 2 at model.lua:7");
  m = mark_of(LT_COMM_GATHER, NULL, 0, NULL);
  expect_mark(&m, 1, "rank 1: gather [8, 10] f32 to 2");
  m = mark_of(LT_COMM_BARRIER, "a.lua", 1, "");
  expect_mark(&m, 1, "rank 1: barrier at a.lua:1");
  lt_plan plan = plan_of(LT_COMM_ALL_GATHER);
  plan.form = LT_FORM_CAT;
  plan.shape = (lt_shape){.ndim = 6, .size = {1, 2, 3, 4, 5, 6}};
  m = lt_mark_of(&plan, (lt_origin){0});
  expect_mark(&m, 0, "rank 0: all_gather {cat = true} [1, 2, 3, 4, ...] f32");
  plan.form = LT_FORM_VALUE;
  m = lt_mark_of(&plan, (lt_origin){.file = "x.lua", .line = 2});
  expect_mark(&m, 0, "rank 0: all_gather of a value at x.lua:2");
  m = (lt_mark){.kind = LT_MARK_LEFT, .line = 40, .file = "model.lua", .hook = "fit"};
  expect_mark(&m, 1, "rank 1: left fit at model.lua:40");
  m = (lt_mark){.kind = LT_MARK_LEFT};
  expect_mark(&m, 1, "rank 1: left the script");
  m = (lt_mark){.kind = LT_MARK_RUNNING, .line = 4, .file = "m.lua", .hook = "training_step"};
  expect_mark(&m, 2, "rank 2: in training_step at m.lua:4");
  m = (lt_mark){.kind = LT_MARK_GONE, .status = 139};
  expect_mark(&m, 2, "rank 2: ended by signal 11");
  m = (lt_mark){.kind = LT_MARK_GONE, .status = 3};
  expect_mark(&m, 2, "rank 2: ended with status 3");
  m = (lt_mark){0};
  expect_mark(&m, 2, "rank 2: unknown");
}

static void long_names_are_cut_in_the_middle(void **state) {
  (void)state;
  lt_mark m = mark_of(LT_COMM_BARRIER, "a/very/long/path/of/folders/down/to/the/model.lua", 5,
                      "on_validation_epoch_end");
  expect_mark(&m, 0, "rank 0: barrier at a/very...n/to/the/model.lua:5 (on_validation_epoch_end)");
  m = mark_of(LT_COMM_BARRIER,
              "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
              "/down/to/the/model.lua",
              5, NULL);
  expect_mark(&m, 0, "rank 0: barrier at \xc3\xa4\xc3\xa4\xc3\xa4...n/to/the/model.lua:5");
  m = mark_of(LT_COMM_BARRIER, "/home/somebody/runs/train_the_model.lua", 5, NULL);
  expect_mark(&m, 0, "rank 0: barrier at /hom.../train_the_model.lua:5");
  m = mark_of(LT_COMM_BARRIER, "a\x1b[2J\nb.lua", 5, NULL);
  expect_mark(&m, 0, "rank 0: barrier at a?[2J?b.lua:5");
}

static void tables_name_all_ranks(void **state) {
  (void)state;
  char text[512];
  lt_mark marks[3] = {mark_of(LT_COMM_ALL_GATHER, "model.lua", 31, "validation_step"),
                      {.kind = LT_MARK_LEFT, .line = 40, .file = "model.lua", .hook = "fit"},
                      mark_of(LT_COMM_BARRIER, "model.lua", 50, NULL)};
  int n = lt_disagreement_text(marks, NULL, 3, text, sizeof text);
  const char *wanted =
      "ranks disagree at collective 1,204: rank 0: all_gather [8, 10] f32 at model.lua:31 "
      "(validation_step); rank 1: left fit at model.lua:40; rank 2: barrier at model.lua:50";
  assert_string_equal(text, wanted);
  assert_int_equal(n, strlen(wanted));
  for (int k = 0; k < 3; k++) marks[k].group = 77, marks[k].seq = 1234567;
  lt_disagreement_text(marks, (const int[]){0, 2, 5}, 3, text, sizeof text);
  wanted = "ranks disagree at collective 1,234,567 of the group of ranks 0, 2, 5: rank 0: ";
  assert_memory_equal(text, wanted, strlen(wanted));
  assert_non_null(strstr(text, "; rank 5: barrier"));
  char small[20];
  assert_int_equal(lt_disagreement_text(marks, NULL, 3, small, sizeof small),
                   lt_disagreement_text(marks, NULL, 3, NULL, 0));
  assert_string_equal(small, "ranks disagree a...");
}

static void tables_join_ranks_that_do_the_same(void **state) {
  (void)state;
  enum { N = 64 };
  static lt_mark marks[N];
  char text[256];
  for (int k = 0; k < N; k++) marks[k] = mark_of(LT_COMM_BARRIER, "model.lua", 31, NULL);
  lt_disagreement_text(marks, NULL, N, text, sizeof text);
  assert_string_equal(
      text, "ranks disagree at collective 1,204: ranks 0-63: barrier at model.lua:31");
  marks[5].line = marks[40].line = 7;
  marks[63] = (lt_mark){.kind = LT_MARK_RUNNING, .hook = "training_step"};
  lt_marks_text(marks, NULL, N, text, sizeof text);
  assert_string_equal(text,
                      "ranks 0-4, 6-39, 41-62: barrier at model.lua:31; ranks 5, 40: barrier at "
                      "model.lua:7; rank 63: in training_step");
}

static void ranks_are_named_by_runs(void **state) {
  (void)state;
  char text[64];
  lt_ranks_text((const int[]){3}, 1, text, sizeof text);
  assert_string_equal(text, "rank 3");
  lt_ranks_text((const int[]){0, 1}, 2, text, sizeof text);
  assert_string_equal(text, "ranks 0, 1");
  lt_ranks_text((const int[]){5, 0, 1, 2, 4, 3}, 6, text, sizeof text);
  assert_string_equal(text, "ranks 5, 0-2, 4, 3");
}

/* The longest call there is, by each of as many ranks as a table shall hold. */
static void long_tables_fit_into_outcomes_and_failures(void **state) {
  (void)state;
  enum { N = 64 };
  static char text[2 * LT_OUTCOME_TEXT];
  static lt_outcome outcome;
  static lt_mark marks[N];
  int numbers[N];
  for (int k = 0; k < N; k++) {
    numbers[k] = LT_COMM_MAX_RANKS - N + k;
    marks[k] = mark_of(LT_COMM_REDUCE_SCATTER, "/folders/of/many/letters/to/model.lua", 1000000,
                       "on_validation_epoch_end");
    marks[k].ndim = 8;
    for (int d = 0; d < LT_MARK_DIMS; d++) marks[k].size[d] = 1000000000000 + k;
    marks[k].reduce = LT_COMM_PROD;
    marks[k].dtype = LT_BF16;
    marks[k].group = 7;
  }
  int n = lt_disagreement_text(marks, numbers, N, text, sizeof text);
  assert_in_range(n, 150 * N, sizeof text);
  lt_outcome_set(&outcome, LT_RAISED, -1, 1, text);
  assert_string_equal(outcome.text, text);
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_failure f;
  lt_fail(c, LT_ERANKS, "%s", outcome.text);
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, text);
  lt_ctx_release(c);
}

/* Whether two plans that differ in one thing are distinguished. */
static void fingerprints_see_what_must_agree(void **state) {
  (void)state;
  lt_plan base = plan_of(LT_COMM_ALL_REDUCE), p;
  base.reduce = LT_COMM_SUM;
  uint64_t h = lt_mark_of(&base, (lt_origin){.file = "a", .line = 1}).hash;
  assert_true(lt_mark_of(&base, (lt_origin){.file = "b", .line = 2, .hook = "x"}).hash == h);
#define DIFFERS(change) (p = base, change, assert_true(lt_mark_of(&p, (lt_origin){0}).hash != h))
  DIFFERS(p.op = LT_COMM_BROADCAST);
  DIFFERS(p.reduce = LT_COMM_MEAN);
  DIFFERS(p.form = LT_FORM_VALUE);
  DIFFERS(p.of = 3);
  DIFFERS(p.dtype = LT_F64);
  DIFFERS(p.root = 1);
  DIFFERS(p.group = 5);
  DIFFERS(p.seq = 1205);
  DIFFERS(p.shape.size[0] = 16);
  DIFFERS(p.shape.size[1] = 16);
  DIFFERS(p.shape.ndim = 1);
#undef DIFFERS
  p = base = plan_of(LT_COMM_ALL_GATHER);
  h = lt_mark_of(&base, (lt_origin){0}).hash;
  p.shape.size[0] = 9; /* travels with the fingerprint */
  assert_true(lt_mark_of(&p, (lt_origin){0}).hash == h);
  p.shape.size[1] = 9;
  assert_true(lt_mark_of(&p, (lt_origin){0}).hash != h);
  lt_plan out = plan_of(LT_COMM_SEND), in = plan_of(LT_COMM_RECV);
  out.from = in.from = 3, out.to = in.to = 4, out.root = 4, in.root = 3;
  h = lt_mark_of(&out, (lt_origin){0}).hash;
  assert_true(lt_mark_of(&in, (lt_origin){0}).hash == h);
  in.from = 4, in.to = 3;
  assert_true(lt_mark_of(&in, (lt_origin){0}).hash != h);
}

static void outcomes_are_set_once(void **state) {
  (void)state;
  lt_heartbeat *p = calloc(1, sizeof *p);
  assert_false(lt_heartbeat_is_over(p));
  lt_outcome_set(&p->outcome, LT_LATE, 3, 1, "first");
  lt_outcome_set(&p->outcome, LT_RAISED, 4, 2, "second");
  assert_true(lt_heartbeat_is_over(p));
  assert_string_equal(p->outcome.text, "first");
  assert_int_equal(p->outcome.rank, 3);
  free(p);
}

static void *says_much(void *argument) {
  lt_heartbeat *p = argument;
  for (uint64_t k = 1; k <= 20000; k++) {
    lt_mark m = {.hash = k, .seq = k, .line = (int32_t)k, .size = {(int64_t)k, 0, 0, (int64_t)k}};
    lt_heartbeat_set_activity(p, &m);
    for (volatile int i = 0; i < 300; i++) continue; /* no script is faster than that */
  }
  return NULL;
}

static void what_a_rank_does_is_never_torn(void **state) {
  (void)state;
  lt_heartbeat *p = calloc(1, sizeof *p);
  pthread_t thread;
  pthread_create(&thread, NULL, says_much, p);
  for (uint64_t last = 0; last < 20000;) {
    lt_mark m = lt_heartbeat_activity(p);
    if (m.hash != m.seq || m.size[0] != (int64_t)m.seq || m.size[3] != m.size[0] ||
        m.line != (int32_t)m.seq || m.seq < last)
      fail_msg("torn at %d", (int)m.seq);
    last = m.seq;
  }
  pthread_join(thread, NULL);
  free(p);
}

/* All of a file's text, to be freed. */
static char *text_of(FILE *f) {
  long n = ftell(f);
  char *text = calloc(1, (size_t)n + 1);
  rewind(f);
  assert_int_equal(fread(text, 1, (size_t)n, f), n);
  return text;
}

static void rings_keep_the_last_thousand(void **state) {
  (void)state;
  lt_heartbeat *p = calloc(1, sizeof *p);
  p->rank = 3;
  for (int k = 1; k <= 1500; k++) {
    lt_plan plan = plan_of(LT_COMM_BROADCAST);
    plan.seq = (uint64_t)k;
    lt_mark m = lt_mark_of(&plan, (lt_origin){.file = "a \"b\"\n.lua", .line = k, .hook = "fit"});
    uint64_t number = lt_ring_issue(p, &m, 320);
    assert_int_equal(number, k);
    if (k < 1500) lt_ring_arrived(p, number), lt_ring_done(p, number, 64);
  }
  lt_ring_done(p, 400, 1); /* overwritten since: must not touch entry 1400 */
  FILE *f = tmpfile();
  assert_true(lt_ring_write(p, fileno(f)));
  fseek(f, 0, SEEK_END);
  char *text = text_of(f), *rest = text;
  int lines = 0;
  for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != 0; lines++) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "{\"rank\":3,\"number\":%d,\"group\":0,\"seq\":%d,",
             lines + 501, lines + 501);
    assert_memory_equal(line, wanted, strlen(wanted));
    assert_non_null(strstr(line, "\"op\":\"broadcast\",\"reduce\":\"\",\"dtype\":\"f32\""));
    assert_non_null(strstr(line, "\"shape\":[8,10]"));
    assert_non_null(strstr(line, "\"file\":\"a \\u0022b\\u0022\\u000a.lua\""));
    assert_true((strstr(line, "\"done_ns\":0}") != NULL) == (lines == 999));
    assert_true((strstr(line, "\"bytes\":64,") != NULL) == (lines != 999));
  }
  assert_int_equal(lines, 1000);
  free(text);
  fclose(f);
  free(p);
}

/* The group of one: everything is the identity, and wrong use is as wrong as elsewhere. */
static void one_rank_alone(void **state) {
  (void)state;
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_frame frame = lt_frame_open(c);
  lt_group *g = lt_group_self(c, NULL);
  assert_int_equal(lt_group_size(g), 1);
  assert_string_equal(lt_group_backend(g), "self");
  lt_tensor *a = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 1, (int64_t[]){3});
  lt_tensor *b = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, (int64_t[]){1, 3});
  memcpy(lt_data(a), (float[]){1, 2, 3}, 12);
  lt_work *works[] = {lt_comm_barrier(c, g, HERE),
                      lt_comm_broadcast(c, g, a, 0, HERE),
                      lt_comm_all_reduce(c, g, a, a, LT_COMM_MEAN, HERE),
                      lt_comm_all_gather(c, g, a, b, HERE),
                      lt_comm_gather(c, g, a, b, 0, HERE),
                      lt_comm_reduce_scatter(c, g, a, a, LT_COMM_SUM, HERE),
                      lt_comm_scatter(c, g, a, a, 0, HERE),
                      lt_comm_all_gather_cat(c, g, a, HERE)};
  for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
    assert_true(lt_work_test(c, works[k]) && lt_work_wait(c, works[k]));
    if (k == 7) assert_memory_equal(lt_data(lt_work_result(works[k])), lt_data(a), 12);
    lt_work_release(c, works[k]);
  }
  assert_memory_equal(lt_data(b), lt_data(a), 12);
  lt_comm_op ops[] = {LT_COMM_BROADCAST, LT_COMM_ALL_GATHER, LT_COMM_GATHER, LT_COMM_SCATTER};
  for (int k = 0; k < 4; k++) {
    int64_t n;
    lt_work *w =
        lt_comm_bytes(c, g, ops[k], 0, "abc", 3, (const void *[]){"abc"}, (int64_t[]){3}, HERE);
    assert_true(lt_work_wait(c, w));
    assert_memory_equal(lt_work_bytes(w, 0, &n), "abc", 3);
    assert_int_equal(n, 3);
    lt_work_release(c, w);
  }
  lt_group *part = lt_group_split(c, g, 5, 0);
  assert_int_equal(lt_group_size(part), 1);
  assert_null(lt_group_split(c, g, -1, 0));
  assert_true(lt_ok(c));
  lt_group_close(c, g);
  assert_null(lt_comm_barrier(c, part, HERE));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "barrier: the ranks of this group have ended");
  lt_group_release(c, g);
  lt_group_release(c, part); /* after its world */
  lt_frame_close(c, frame, 0, NULL);
  lt_ctx_release(c);
}

static void refused(lt_ctx *c, lt_work *w, const char *text) {
  lt_failure f;
  assert_null(w);
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, text);
}

static void wrong_use_is_reported(void **state) {
  (void)state;
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_frame frame = lt_frame_open(c);
  lt_group *g = lt_group_self(c, NULL);
  lt_tensor *a = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 1, (int64_t[]){6});
  lt_tensor *i = lt_tensor_empty(c, LT_CPU_DEVICE, LT_I64, 1, (int64_t[]){6});
  lt_tensor *s = lt_tensor_make(c, a->storage, LT_F32, 1, (int64_t[]){3}, (int64_t[]){2}, 0);
  lt_tensor *o = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 0, NULL);
  refused(c, lt_comm_all_reduce(c, g, s, s, LT_COMM_SUM, HERE),
          "all_reduce: the tensor is not contiguous: [3]");
  refused(c, lt_comm_all_reduce(c, g, i, i, LT_COMM_MEAN, HERE),
          "all_reduce: no mean of i64: use sum, or convert it");
  refused(c, lt_comm_all_reduce(c, g, a, i, LT_COMM_SUM, HERE),
          "all_reduce: the result does not fit: [6] and [6]");
  refused(c, lt_comm_broadcast(c, g, a, 1, HERE), "broadcast: there is no rank 1 among 1");
  refused(c, lt_comm_broadcast(c, g, a, -1, HERE), "broadcast: there is no rank -1 among 1");
  refused(c, lt_comm_send(c, g, a, 0, HERE), "send: rank 0 is this rank itself");
  refused(c, lt_comm_all_gather(c, g, a, o, HERE), "all_gather: [] is not 1 times [6]");
  refused(c, lt_comm_all_gather_cat(c, g, o, HERE),
          "all_gather: a tensor [] has no first dim to concatenate along");
  refused(c, lt_comm_gather(c, g, a, NULL, 0, HERE),
          "gather: rank 0 is the root and passes no result tensor");
  assert_null(lt_group_split(c, g, -2, 0));
  lt_take_failure(c, &(lt_failure){0});
  lt_group_close(c, g);
  lt_group_release(c, g);
  lt_frame_close(c, frame, 0, NULL);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(marks_say_what_a_rank_does),
      cmocka_unit_test(long_names_are_cut_in_the_middle),
      cmocka_unit_test(tables_name_all_ranks),
      cmocka_unit_test(tables_join_ranks_that_do_the_same),
      cmocka_unit_test(ranks_are_named_by_runs),
      cmocka_unit_test(long_tables_fit_into_outcomes_and_failures),
      cmocka_unit_test(fingerprints_see_what_must_agree),
      cmocka_unit_test(outcomes_are_set_once),
      cmocka_unit_test(what_a_rank_does_is_never_torn),
      cmocka_unit_test(rings_keep_the_last_thousand),
      cmocka_unit_test(one_rank_alone),
      cmocka_unit_test(wrong_use_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
