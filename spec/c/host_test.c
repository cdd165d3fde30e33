/* spec/c/host_test.c: ltrain.h as a host uses it: values, tensors, limits, steps, threads. */
/* tags: threads */
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host_counted.h"
#include "host_internals.h"

static void errors_name_the_line(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must_say(l, ltrain_dostring(l, "\nlocal x = nil + 1", "a.lua"), "a.lua:2: attempt to perform");
  must_say(l, ltrain_dostring(l, "x = = 1", "b.lua"), "b.lua:1: unexpected symbol");
  must_say(l,
           ltrain_dostring(l, "error(setmetatable({}, {__tostring = function() return 'hm' end}))",
                           NULL),
           "hm");
  must_say(l, ltrain_dofile(l, "/nowhere/no.lua"), "no.lua");
  must_say(l, ltrain_call(l, "absent", ""), "absent: expected a function, got nil");
  must_say(l, ltrain_call(l, "a.b.c", ""), "a.b.c: cannot index a nil with 'b'");
  must_say(l,
           ltrain_dostring(l, "local lt = require 'ltrain'\nlt.zeros(2, 3):matmul(lt.zeros(2, 3))",
                           "c.lua"),
           "c.lua:2: matmul:");
  must(l, ltrain_dostring(l, "return 1", "d.lua"));
  assert_string_equal(ltrain_errmsg(l), "");
  ltrain_close(l);
}

/* As the program says it; from the text of the script that runs, or of a file that may be read. */
static void errors_say_what_to_do(void **state) {
  (void)state;
  static const char in_file[] = "function hint() local shape = {} return shape.size.x, shap.y end\n"
                                "local function compute() end\ncomput()";
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = 200000;
  ltrain *l = open_with(&config);
  must_say(l, ltrain_dostring(l, "local compute = print\ncomput()", "a.lua"),
           "a.lua:2: attempt to call a nil value (global 'comput'); "
           "did you mean 'compute'? (line 1)");
  must_say(l, ltrain_dostring(l, "local compute = print\ncomput()", NULL),
           "host:2: attempt to call a nil value (global 'comput'); "
           "did you mean 'compute'? (line 1)");
  must_say(l, ltrain_dostring(l, "local x = {}\nlocal y = x[0] + x[0].z", "a.lua"),
           "(field 'integer index'); positions count from 1: the first is x[1]");
  must_say(l, ltrain_dostring(l, "if x != 1 then end", "a.lua"), "write ~=");
  must_say(l, ltrain_dostring(l, "local n = {} .. 'x'", "/etc/hostname"), "attempt to concatenate");
  must(l, ltrain_put_file(l, "memory:hint.lua", in_file, strlen(in_file)));
  must_say(l, ltrain_dofile(l, "memory:hint.lua"), "'comput'); did you mean 'compute'? (line 2)");
  must_say(l, ltrain_call(l, "hint", ""), "memory:hint.lua:1: attempt to index a nil value");
  must(l, ltrain_start(l, "hint", ""));
  assert_int_equal(ltrain_step(l, NULL), LTRAIN_FAILED);
  must_say(l, false, "memory:hint.lua:1: attempt to index a nil value (field 'size')");
  must_say(l, ltrain_dostring(l, "while true do end", "a.lua"),
           "ran more than 200000 instructions");
  must(l, ltrain_dostring(l, "assert(require 'ltrain'.last_error() == nil)", "a.lua"));
  ltrain_close(l);
}

/* What to do is looked for within bounds, whatever the script is: then the error is as it was. */
static void errors_of_long_scripts_end(void **state) {
  (void)state;
  static const char error[] = "local x\nlocal y = x.z --", word[] = "local ";
  enum { WORDS = 100000 };
  char *code = malloc(sizeof error + WORDS * strlen(word)), *end = code;
  end += sprintf(end, "%s", error);
  for (int k = 0; k < WORDS; k++) end += sprintf(end, "%s", word);
  ltrain_config config = LTRAIN_CONFIG_INIT;
  for (int k = 0; k < 2; k++) {
    config.max_instructions = k == 0 ? 0 : 100000;
    ltrain *l = open_with(&config);
    assert_false(ltrain_dostring(l, code, "a.lua"));
    assert_string_equal(ltrain_errmsg(l),
                        "a.lua:2: attempt to index a nil value (local 'x')");
    must(l, ltrain_dostring(l, "assert(#require 'ltrain'.ones(2):tolist() == 2)", "after"));
    ltrain_close(l);
  }
  free(code);
}

static void values_go_in_and_out(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must(l, ltrain_dostring(l,
                          "function all(i, d, b, s)\n"
                          "  return i + 1, d / 2, not b, s .. '!', nil\n"
                          "end\n"
                          "o = {n = 40, add = function(self, k) return self.n + k end}\n"
                          "list = {{7, 8}, {9}}\n",
                          "v.lua"));
  int64_t i = 0;
  double d = 0;
  int b = 1;
  const char *s = NULL, *none = "x";
  must(l,
       ltrain_call(l, "all", "idbs>idbss", INT64_C(1) << 60, 5.0, 1, "hi", &i, &d, &b, &s, &none));
  assert_true(i == (INT64_C(1) << 60) + 1);
  assert_true(d == 2.5);
  assert_int_equal(b, 0);
  assert_string_equal(s, "hi!");
  assert_null(none);
  must(l, ltrain_call(l, "o:add", "i>i", INT64_C(2), &i));
  assert_true(i == 42);
  must(l, ltrain_get(l, "list.1.2", "i", &i));
  assert_true(i == 8);
  must(l, ltrain_set(l, "o.n", "d", 0.5));
  must(l, ltrain_get(l, "o.n", "d", &d));
  assert_true(d == 0.5);
  must(l, ltrain_set(l, "fresh", "s", "text"));
  must(l, ltrain_get(l, "fresh", "s", &s));
  assert_string_equal(s, "text");
  must_say(l, ltrain_get(l, "o.n", "i", &i), "o.n: an integer wanted, got number");
  must_say(l, ltrain_get(l, "o.n", "T", NULL), "a tensor wanted, got number");
  must_say(l, ltrain_call(l, "all", "x"), "unknown letter 'x'");
  ltrain_close(l);
}

static void count_drop(void *ud) { ++*(int *)ud; }

static void tensors_share_the_hosts_memory(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  float host[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[] = {2, 3};
  int drops = 0;
  lt_tensor *in = ltrain_wrap(l, host, LT_F32, 2, shape, count_drop, &drops);
  assert_non_null(in);
  must(l,
       ltrain_dostring(l,
                       "function double(x) kept = x; x:mul_(2); return x[{1, lt and 1 or 3}] end\n"
                       "function rows(x) return x:sum(2) end\n",
                       "t.lua"));
  lt_tensor *out = NULL;
  must(l, ltrain_call(l, "double", "T>T", in, &out));
  assert_true(host[0] == 2 && host[5] == 12);
  host[2] = 100; /* seen through the result: a view of the same memory */
  const float *seen = ltrain_data(l, out, 0);
  assert_non_null(seen);
  assert_ptr_equal(seen, &host[2]);
  ltrain_release(l, out);
  must(l, ltrain_call(l, "rows", "T>T", in, &out));
  assert_int_equal(lt_tensor_ndim(out), 1);
  assert_int_equal(lt_tensor_size(out, 0), 2);
  const float *sums = ltrain_data(l, out, 0);
  assert_true(sums[0] == 106 && sums[1] == 30);
  ltrain_release(l, out);
  ltrain_release(l, in);
  assert_int_equal(drops, 0); /* the script keeps it */
  must(l, ltrain_dostring(l, "kept = nil", "t.lua"));
  ltrain_close(l);
  assert_int_equal(drops, 1);
}

/* What the callbacks saw. */
typedef struct seen {
  char printed[200], logged[400];
  int train_batches;
  int64_t last_epoch, batches;
} seen;

static void see_print(void *ud, const char *text, size_t length) {
  strncat(((seen *)ud)->printed, text, length);
}

static void see_log(void *ud, int level, const char *text) {
  (void)level;
  seen *s = ud;
  snprintf(s->logged + strlen(s->logged), sizeof s->logged - strlen(s->logged), "%s\n", text);
}

static void see_progress(void *ud, const char *stage, int64_t epoch, int64_t batch,
                         int64_t batches) {
  seen *s = ud;
  (void)batch;
  if (strcmp(stage, "train") == 0) s->train_batches++;
  s->last_epoch = epoch;
  s->batches = batches;
}

static void the_host_hears_what_is_printed_logged_and_done(void **state) {
  (void)state;
  seen s = {0};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = see_print;
  config.log = see_log;
  config.progress = see_progress;
  config.ud = &s;
  ltrain *l = open_line(&config);
  must(l, ltrain_dostring(l, "print('a', 1, nil) warn('@on') warn('care', 'ful')", "p.lua"));
  assert_string_equal(s.printed, "a\t1\tnil\n");
  assert_string_equal(s.logged, "careful\n");
  must(l, ltrain_call(l, "train", "i", INT64_C(3)));
  assert_int_equal(s.train_batches, 12);
  assert_int_equal(s.last_epoch, 2);
  assert_int_equal(s.batches, 4);
  ltrain_close(l);
}

static void a_breakpoint_has_no_prompt_here_and_says_so_once(void **state) {
  (void)state;
  seen s = {0};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.log = see_log;
  config.ud = &s;
  ltrain *l = open_inside(&config);
  must(l, ltrain_dostring(l,
                          "local lt = require 'ltrain'\n"
                          "for i = 1, 2 do lt.breakpoint() end\n"
                          "after = 5",
                          "b.lua"));
  assert_non_null(strstr(s.logged, "b.lua:2: breakpoint: no prompt in this program"));
  assert_ptr_equal(strchr(s.logged, '\n'), strrchr(s.logged, '\n')); /* one line */
  must(l, ltrain_dostring(l, "assert(after == 5 and debug == nil)\n"
                          "assert(internals.runtime.frames.set == nil)", "c.lua"));
  ltrain_close(l);
}

static void a_pointer_into_a_parameter_is_reported_by_its_optimizer(void **state) {
  (void)state;
  seen s = {0};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.log = see_log;
  config.ud = &s;
  ltrain *l = open_line(&config);
  must(l, ltrain_dostring(l,
                          "local lt = require 'ltrain'\n"
                          "local w = lt.parameter(lt.ones(2))\n"
                          "local optimizer = lt.optim.SGD({w}, {lr = 1})\n"
                          "function weights() return w end\n"
                          "function step() optimizer:step() end\n",
                          "h.lua"));
  lt_tensor *w = NULL;
  must(l, ltrain_call(l, "weights", ">T", &w));
  must(l, ltrain_call(l, "step", ""));
  assert_non_null(ltrain_data(l, w, 0));
  must(l, ltrain_call(l, "step", ""));
  assert_string_equal(s.logged, "");
  assert_non_null(ltrain_data(l, w, 1));
  must(l, ltrain_call(l, "step", ""));
  assert_non_null(strstr(s.logged, "parameter 0 was changed by the host program, not by its opti"));
  ltrain_release(l, w);
  ltrain_close(l);
}

static void nothing_is_written_unless_asked(void **state) {
  (void)state;
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(NULL);
  int out = dup(1), err = dup(2);
  dup2(fileno(file), 1);
  dup2(fileno(file), 2);
  ltrain *l = open_line(NULL);
  bool ok = ltrain_dostring(l, "print('x') warn('@on') warn('y')", "p.lua") &&
            ltrain_call(l, "train", "i", INT64_C(1));
  fflush(NULL);
  dup2(out, 1);
  dup2(err, 2);
  close(out);
  close(err);
  assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
  fclose(file);
  must(l, ok);
  ltrain_close(l);
}

static void instructions_have_a_budget(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = 1000000;
  ltrain *l = open_with(&config);
  must_say(l, ltrain_dostring(l, "while true do end", "i.lua"), "more than 1000000 instructions");
  must_say(l,
           ltrain_dostring(l, "while true do pcall(function() while true do end end) end", "i.lua"),
           "more than 1000000 instructions");
  must_say(l, ltrain_dostring(l, "coroutine.wrap(function() while true do end end)()", "i.lua"),
           "more than 1000000 instructions");
  for (int k = 0; k < 30; k++) /* each call has a budget of its own */
    must(l, ltrain_dostring(l, "for i = 1, 100000 do end", "i.lua"));
  ltrain_close(l);
}

static void *cancel_soon(void *l) {
  usleep(50000);
  ltrain_cancel(l);
  return NULL;
}

static void another_thread_cancels(void **state) {
  (void)state;
  ltrain *l = open_line(NULL);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, l), 0);
  must_say(l, ltrain_call(l, "train", "i", INT64_C(-1)), "cancelled");
  pthread_join(thread, NULL);
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  ltrain_cancel(l); /* nothing runs: the next call gets it, once */
  must_say(l, ltrain_call(l, "train", "i", INT64_C(1)), "cancelled");
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  ltrain_close(l);
}

static void a_fit_goes_step_by_step(void **state) {
  (void)state;
  ltrain *l = open_line(NULL), *whole = open_line(NULL);
  must(l, ltrain_start(l, "train", "i", INT64_C(2)));
  must_say(l, ltrain_start(l, "train", "i", INT64_C(2)), "has not ended");
  int batches = 0;
  const char *where = NULL;
  ltrain_state s;
  while ((s = ltrain_step(l, &where)) == LTRAIN_PAUSED)
    if (strcmp(where, "batch") == 0) batches++;
  if (s != LTRAIN_FINISHED) fail_msg("%s", ltrain_errmsg(l));
  assert_int_equal(batches, 8);
  assert_int_equal(ltrain_step(l, NULL), LTRAIN_FAILED);
  double stepped = 0, at_once = 1;
  must(whole, ltrain_call(whole, "train", "i>d", INT64_C(2), &at_once));
  must(l, ltrain_call(l, "line.layer.weight:item", ">d", &stepped));
  assert_true(stepped == at_once);
  must(l, ltrain_start(l, "train", "i", INT64_C(2))); /* closed in mid-fit */
  assert_int_equal(ltrain_step(l, NULL), LTRAIN_PAUSED);
  ltrain_close(l);
  ltrain_close(whole);
}

static void an_error_in_a_step_ends_the_call(void **state) {
  (void)state;
  ltrain *l = open_line(NULL);
  must(l, ltrain_dostring(l,
                          "function line:on_train_batch_start(_, k)\n"
                          "  if k == 1 then error('enough') end\nend",
                          "e.lua"));
  must(l, ltrain_start(l, "train", "i", INT64_C(2)));
  ltrain_state s;
  while ((s = ltrain_step(l, NULL)) == LTRAIN_PAUSED) {
  }
  assert_int_equal(s, LTRAIN_FAILED);
  must_say(l, false, "e.lua:2: enough");
  must(l, ltrain_dostring(l, "line.on_train_batch_start = nil", "e.lua"));
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  ltrain_close(l);
}

static void everything_comes_from_the_hosts_allocator(void **state) {
  (void)state;
  counted n = {0};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.alloc = count_alloc;
  config.ud = &n;
  ltrain *l = open_line(&config);
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  assert_true(atomic_load(&n.live) > 100000);
  ltrain_close(l);
  assert_int_equal(atomic_load(&n.live), 0);
}

static void opening_survives_each_failing_allocation(void **state) {
  (void)state;
  long refused = 0, stride = getenv("LT_EXHAUSTIVE") != NULL ? 1 : 61;
  for (long k = 1;; k += stride) {
    counted n = {.fails_at = k};
    ltrain_config config = LTRAIN_CONFIG_INIT;
    config.alloc = count_alloc;
    config.ud = &n;
    ltrain *l = ltrain_open(&config);
    bool all_passed = atomic_load(&n.asked) < k;
    n.fails_at = 0;
    if (l == NULL) refused++;
    if (all_passed) must(l, ltrain_dostring(l, "local lt = require 'ltrain' lt.zeros(3)", "o.lua"));
    ltrain_close(l);
    assert_int_equal(atomic_load(&n.live), 0);
    if (all_passed) break;
  }
  assert_true(refused > 10);
}

static void two_states_run_in_two_threads(void **state) {
  (void)state;
  double weight[3] = {0};
  pthread_t thread[2];
  train_alone(&weight[2]);
  for (int k = 0; k < 2; k++)
    assert_int_equal(pthread_create(&thread[k], NULL, train_alone, &weight[k]), 0);
  for (int k = 0; k < 2; k++) pthread_join(thread[k], NULL);
  assert_true(weight[2] != -1 && weight[2] != 0);
  assert_true(weight[0] == weight[2] && weight[1] == weight[2]);
}

/* What the host's thread goes by is put aside while scripts run, and there again after. */
static void the_hosts_locale_stays_its_own(void **unused) {
  (void)unused;
  ltrain *l = open_with(NULL);
  locale_t own = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
  assert_true(own != (locale_t)0);
  locale_t before = uselocale(own);
  assert_true(ltrain_dostring(l, "x = ('%.1f'):format(0.5)", "here"));
  assert_true(uselocale((locale_t)0) == own);
  assert_false(ltrain_dostring(l, "error('no')", "here"));
  assert_true(uselocale((locale_t)0) == own);
  uselocale(before);
  freelocale(own);
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_name_the_line),
      cmocka_unit_test(errors_say_what_to_do),
      cmocka_unit_test(errors_of_long_scripts_end),
      cmocka_unit_test(values_go_in_and_out),
      cmocka_unit_test(tensors_share_the_hosts_memory),
      cmocka_unit_test(the_host_hears_what_is_printed_logged_and_done),
      cmocka_unit_test(a_breakpoint_has_no_prompt_here_and_says_so_once),
      cmocka_unit_test(a_pointer_into_a_parameter_is_reported_by_its_optimizer),
      cmocka_unit_test(nothing_is_written_unless_asked),
      cmocka_unit_test(instructions_have_a_budget),
      cmocka_unit_test(another_thread_cancels),
      cmocka_unit_test(a_fit_goes_step_by_step),
      cmocka_unit_test(an_error_in_a_step_ends_the_call),
      cmocka_unit_test(everything_comes_from_the_hosts_allocator),
      cmocka_unit_test(opening_survives_each_failing_allocation),
      cmocka_unit_test(the_hosts_locale_stays_its_own),
      cmocka_unit_test(two_states_run_in_two_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
