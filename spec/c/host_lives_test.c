/* spec/c/host_lives_test.c: states that are opened and closed ten thousand times, that run in eight
   threads at once, that are refused any one allocation of theirs, or that have failed: what is left
   behind, and that the next call works. */
/* tags: threads */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_counted.h"
#include "host_test.h"

static long resident_pages(void) {
  long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
  fclose(file);
  return resident;
}

/* Each opens, computes and closes. The allocator's count is exact: none of its bytes stays. All
   ten thousand with LT_EXHAUSTIVE; then the process may have grown by 2 MiB. */
static void lives_leave_nothing(void **state) {
  (void)state;
  enum { FEW = 200, LIVES = 10000, WARM = 1000, PAGES = 512 };
  int lives = getenv("LT_EXHAUSTIVE") != NULL ? LIVES : FEW;
  counted n = {0};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.alloc = count_alloc;
  config.ud = &n;
  long before = 0;
  for (int k = 0; k < lives; k++) {
    if (k == WARM) before = resident_pages();
    ltrain *l = open_with(&config);
    if (k % 10 == 0)
      must(l, ltrain_dostring(l, "local lt = require 'ltrain' local x = lt.ones(8) + 1", "l.lua"));
    else if (k % 10 == 1)
      must_say(l, ltrain_dostring(l, "error('no')", "l.lua"), "no");
    ltrain_close(l);
    assert_int_equal(atomic_load(&n.live), 0);
  }
  long grown = lives > WARM ? resident_pages() - before : 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  (void)grown; /* a sanitizer keeps what is freed */
#else
  if (grown > PAGES) fail_msg("%ld pages more after %d lives", grown, lives);
#endif
}

static bool give_back(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)l;
  (void)ud;
  out[0].T = in[0].T;
  return true;
}

static void count_warning(void *ud, int level, const char *text) {
  counted *n = ud;
  (void)level;
  n->fails_at -= strstr(text, "the state is closing") != NULL; /* below 0 it is not a limit */
}

/* Lua finalizes nothing that is made while it closes. */
static void finalizers_at_the_end_leave_nothing(void **state) {
  (void)state;
  static const char *const scripts[] = {
      "kept = setmetatable({}, {__gc = function() x = lt.ones(64) end})",
      "kept = setmetatable({}, {__gc = function() x = old + 1 end})",
      "kept = setmetatable({}, {__gc = function() x = double(old) end})",
      "kept = setmetatable({}, {__gc = function() x = lt.load('memory:x') end})",
      "kept = setmetatable({}, {__gc = function() old:requires_grad_():sum():backward() end})",
      ("kept = coroutine.wrap(function()"
       " x = setmetatable({}, {__gc = function() x = lt.ones(64) end})"
       " coroutine.yield() end) kept()"),
  };
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
    counted n = {0};
    ltrain_config config = LTRAIN_CONFIG_INIT;
    config.alloc = count_alloc;
    config.log = count_warning;
    config.ud = &n;
    ltrain *l = open_with(&config);
    must(l, ltrain_dostring(l, "lt = require 'ltrain' old = lt.ones(64) lt.save('memory:x', old)",
                            "l.lua"));
    must(l, ltrain_register(l, "double", "T>T", give_back, NULL));
    must(l, ltrain_dostring(l, scripts[k], "l.lua"));
    ltrain_close(l);
    if (n.fails_at != -1) fail_msg("no warning: %s", scripts[k]);
    if (atomic_load(&n.live) != 0) fail_msg("%ld bytes: %s", atomic_load(&n.live), scripts[k]);
  }
}

/* What holds each other among tensors is not garbage that Lua could find. */
static void gradients_that_hold_their_tensors_are_freed(void **state) {
  (void)state;
  static const char *const scripts[] = {
      "x.grad = x",
      "x.grad = y y.grad = x",
      "(x * x):sum():backward(nil, {create_graph = true})",
      "(x * y):sum():backward(nil, {create_graph = true}) y.grad:register_hook(print)",
      ("x:register_hook(function(g) return y * x end); (x * x):sum():backward()"
       " x.grad = (x * y) y.grad = x:clone()"),
      "x:register_hook(print) kept = x * 2",
      "for _ = 1, 50 do local z = lt.ones(8):requires_grad_() z.grad = z * z end",
  };
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
    counted n = {0};
    ltrain_config config = LTRAIN_CONFIG_INIT;
    config.alloc = count_alloc;
    config.ud = &n;
    ltrain *l = open_with(&config);
    must(l, ltrain_dostring(l,
                            "lt = require 'ltrain' x, y = lt.ones(2):requires_grad_(),"
                            " lt.ones(2):requires_grad_()",
                            "l.lua"));
    must(l, ltrain_dostring(l, scripts[k], "l.lua"));
    must(l, ltrain_dostring(l, "x, y = nil, nil for _ = 1, 100 do local z = {} end", "l.lua"));
    ltrain_close(l);
    if (atomic_load(&n.live) != 0) fail_msg("%ld bytes: %s", atomic_load(&n.live), scripts[k]);
  }
}

/* Deeper than ever before Lua has no frame for a finalizer, and would never call it again. */
static void deep_calls_end_without_memory(void **state) {
  (void)state;
  enum { LAST = 120 };
  ltrain_config config = LTRAIN_CONFIG_INIT;
  counted n = {0};
  config.alloc = count_alloc;
  config.ud = &n;
  for (int k = 0; k < LAST; k++) {
    n = (counted){0};
    ltrain *l = open_with(&config);
    must(l, ltrain_dostring(l,
                            "lt = require 'ltrain' lt.ones(8):add(1)\n"
                            "function deep(n)\n"
                            "  if n > 0 then return deep(n - 1), 1 end\n"
                            "  for k = 1, 20 do local x = lt.ones(k * 200) x = x + 1 end\n"
                            "end",
                            "deep.lua"));
    n.fails_at = atomic_load(&n.asked) + 1 + k;
    ltrain_call(l, "deep", "i", INT64_C(20));
    n.fails_at = 0;
    must(l, ltrain_call(l, "deep", "i", INT64_C(20)));
    ltrain_close(l);
    if (atomic_load(&n.live) != 0) fail_msg("%ld bytes after %d", atomic_load(&n.live), k);
  }
}

enum { THREADS = 8 };

static void eight_threads_train_what_one_does(void **state) {
  (void)state;
  double weight[THREADS + 1] = {0};
  pthread_t thread[THREADS];
  train_alone(&weight[THREADS]);
  assert_true(weight[THREADS] > 0);
  for (int k = 0; k < THREADS; k++)
    assert_int_equal(pthread_create(&thread[k], NULL, train_alone, &weight[k]), 0);
  for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
  for (int k = 0; k < THREADS; k++) assert_true(weight[k] == weight[THREADS]);
}

/* A state that is handed from thread to thread, one step each; and one that others cancel. */
typedef struct relay {
  ltrain *l;
  ltrain_state state;
} relay;

static void *one_step(void *ud) {
  relay *r = ud;
  r->state = ltrain_step_for(r->l, 0, NULL);
  return NULL;
}

static void a_state_goes_from_thread_to_thread(void **state) {
  (void)state;
  double alone = 0, passed = 0;
  train_alone(&alone);
  relay r = {open_line(NULL), LTRAIN_PAUSED};
  must(r.l, ltrain_start(r.l, "train", "i", INT64_C(5)));
  for (int k = 0; r.state == LTRAIN_PAUSED && k < 200; k++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, one_step, &r), 0);
    pthread_join(thread, NULL);
  }
  while (r.state == LTRAIN_PAUSED) one_step(&r);
  assert_int_equal(r.state, LTRAIN_FINISHED);
  must(r.l, ltrain_call(r.l, "line.layer.weight:item", ">d", &passed));
  assert_true(passed == alone);
  ltrain_close(r.l);
}

static void *cancel_often(void *ud) {
  relay *r = ud;
  for (int k = 0; k < 200; k++) {
    ltrain_cancel(r->l);
    for (volatile int spin = 0; spin < 20000; spin++) {
    }
  }
  return NULL;
}

static void cancels_from_another_thread_end_no_state(void **state) {
  (void)state;
  relay r = {open_line(NULL), LTRAIN_PAUSED};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_often, &r), 0);
  for (int k = 0; k < 50; k++)
    if (!ltrain_call(r.l, "train", "i", INT64_C(1))) must_say(r.l, false, "cancelled");
  pthread_join(thread, NULL);
  ltrain_dostring(r.l, "", "last");
  must(r.l, ltrain_call(r.l, "train", "i", INT64_C(1)));
  ltrain_close(r.l);
}

static bool refuse(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud;
  (void)in;
  (void)out;
  return ltrain_fail(l, "refused");
}

/* Each way to fail, and after it every entry. */
static void every_call_works_after_every_error(void **state) {
  (void)state;
  static const char *const errors[] = {
      "error('x')",
      "error(nil)",
      "error({})",
      "local x = nil + 1",
      "x = = 1",
      "lt.ones(2):add(lt.ones(3))",
      "lt.ones(2, 3):matmul(lt.ones(2, 3))",
      "lt.zeros(1 << 40)",
      "local function f() return f() + 1 end f()",
      "coroutine.wrap(function() error('in') end)()",
      "refuse()",
      "lt.ones(1):requires_grad_():sum():backward(lt.ones(3))",
      "local s = ('x'):rep(1 << 30)",
      "string.rep()",
      "assert(lt.load('memory:none'))",
      "require 'nothing.there'",
      "lt.Trainer{max_epoch = 1}",
      "coroutine.yield(1)",
      "setmetatable({}, {__close = 1}) local y <close> = {}",
      "while true do end",
      "line.training_step = error train(1)",
  };
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.memory_cap = 64 << 20;
  config.max_instructions = 3000000;
  ltrain *l = open_line(&config);
  must(l, ltrain_dostring(l, "lt = require 'ltrain' function id(x) return x end", "l.lua"));
  must(l, ltrain_register(l, "refuse", "", refuse, NULL));
  const int64_t shape[] = {2};
  float memory[2] = {1, 2};
  for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
    if (ltrain_dostring(l, errors[k], "e.lua")) fail_msg("no error: %s", errors[k]);
    assert_true(strlen(ltrain_errmsg(l)) > 0);
    must(l, ltrain_dostring(l, "line.training_step = nil x = lt.ones(3) + 1", "after.lua"));
    lt_tensor *in = ltrain_wrap(l, memory, LT_F32, 1, shape, NULL, NULL), *out = NULL;
    assert_non_null(in);
    must(l, ltrain_call(l, "id", "T>T", in, &out));
    assert_true(((const float *)ltrain_data(l, out, 0))[1] == 2);
    ltrain_release(l, out);
    ltrain_release(l, in);
    must(l, ltrain_set(l, "v", "d", 2.5));
    double v = 0;
    must(l, ltrain_get(l, "v", "d", &v));
    assert_true(v == 2.5);
    must(l, ltrain_put_file(l, "memory:v", "v = 7", 5));
    must(l, ltrain_dofile(l, "memory:v"));
    must(l, ltrain_start(l, "train", "i", INT64_C(1)));
    ltrain_state s;
    while ((s = ltrain_step_for(l, 0.001, NULL)) == LTRAIN_PAUSED) {
    }
    if (s != LTRAIN_FINISHED) fail_msg("after %s: %s", errors[k], ltrain_errmsg(l));
  }
  ltrain_close(l);
}

/* One life in which everything happens; false as soon as something is refused. */
static bool live(ltrain *l, const char *line) {
  const int64_t shape[] = {2};
  float memory[2] = {1, 2};
  bool ok = ltrain_dostring(l, line, "line.lua") &&
            ltrain_register(l, "refuse", "", refuse, NULL) &&
            ltrain_call(l, "train", "i", INT64_C(1)) &&
            ltrain_put_file(l, "memory:v", "v = 7", 5) && ltrain_dofile(l, "memory:v");
  lt_tensor *in = ok ? ltrain_wrap(l, memory, LT_F32, 1, shape, NULL, NULL) : NULL;
  ok = in != NULL && ltrain_set(l, "held", "T", in);
  ltrain_release(l, in);
  ok = ok && ltrain_start(l, "train", "i", INT64_C(1));
  ltrain_state s = ok ? LTRAIN_PAUSED : LTRAIN_FAILED;
  while (s == LTRAIN_PAUSED) s = ltrain_step_for(l, 0, NULL);
  return s == LTRAIN_FINISHED;
}

/* With one allocation refused, or all from there on: a sentence, then all works, nothing stays.
   Batches are gathered ahead by another thread. */
static void it_survives_failing_allocations(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  counted n = {0};
  config.alloc = count_alloc;
  config.ud = &n;
  ltrain *l = open_with(&config);
  assert_true(live(l, script));
  ltrain_close(l);
  long all = atomic_load(&n.asked), stride = getenv("LT_EXHAUSTIVE") != NULL ? 97 : all / 40 + 1;
  long refused = 0;
  for (long k = 1; k <= all; k += stride) {
    n = (counted){.fails_at = k, .once = k / stride % 2 == 0};
    l = ltrain_open(&config);
    if (l != NULL && !live(l, script)) {
      refused++;
      assert_true(strlen(ltrain_errmsg(l)) > 0);
      n.fails_at = 0;
      while (ltrain_step_for(l, 0, NULL) == LTRAIN_PAUSED) { /* what had been started */
      }
      if (!live(l, script)) fail_msg("after allocation %ld: %s", k, ltrain_errmsg(l));
    }
    ltrain_close(l); /* also with an allocator that still refuses */
    if (atomic_load(&n.live) != 0)
      fail_msg("%ld bytes after allocation %ld", atomic_load(&n.live), k);
  }
  assert_true(refused > 10);
}

/* Where a call that is stepped begins and ends all memory is refused: the next trains as ever. */
static void steps_end_without_memory(void **state) {
  (void)state;
  enum { LAST = 60 };
  counted n = {0};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.alloc = count_alloc;
  config.ud = &n;
  long whole = 0;
  for (int k = -1; k < 2 * LAST; k++) {
    ltrain *l = open_line(&config);
    must(l, ltrain_call(l, "train", "i", INT64_C(1)));
    long before = atomic_load(&n.asked);
    if (k >= 0) n.fails_at = k < LAST ? before + 1 + k : before + whole - (k - LAST);
    if (ltrain_start(l, "train", "i", INT64_C(1))) ltrain_step_for(l, INFINITY, NULL);
    whole = k < 0 ? atomic_load(&n.asked) - before : whole;
    n.fails_at = 0;
    while (ltrain_step_for(l, INFINITY, NULL) == LTRAIN_PAUSED) {
    }
    if (!ltrain_call(l, "train", "i", INT64_C(1))) fail_msg("%d: %s", k, ltrain_errmsg(l));
    ltrain_close(l);
  }
}

/* An allocator at whose requests the process forks: in the child that one is refused. How often in
   a row decides who notices: the host's allocator asks twice, Lua after a collection once more. */
typedef struct forking {
  counted count;
  long next, stride; /* the request at which it forks */
  bool is_child;
  long refuse;       /* in a child: how many more; negative: all */
  long refused, failed;
} forking;

static const long in_a_row[] = {2, 4, -1};
enum { REFUSED = 10, FINISHED = 11 };

/* Refuse the request that runs, in a child; true there. */
static bool fork_child(forking *f) {
  fflush(stdout);
  long in_row = in_a_row[f->next / f->stride % 3];
  pid_t child = fork();
  if (child == 0) {
    f->is_child = true;
    f->refuse = in_row;
    return true;
  }
  int status = 0;
  waitpid(child, &status, 0);
  bool refused = WIFEXITED(status) && WEXITSTATUS(status) == REFUSED;
  bool ok = refused || (WIFEXITED(status) && WEXITSTATUS(status) == FINISHED);
  f->refused += refused;
  f->failed += !ok;
  if (!ok) print_error("request %ld, refused %ld times: wait status %d\n", f->next, in_row, status);
  return false;
}

static void *fork_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
  forking *f = ud;
  if (new_size > old_size && !f->is_child && f->count.asked + 1 == f->next && !fork_child(f))
    f->next += f->stride;
  if (new_size > old_size && f->is_child && f->refuse != 0) {
    f->refuse -= f->refuse > 0;
    return NULL;
  }
  return count_alloc(&f->count, ptr, old_size, new_size);
}

/* The script without a thread that gathers batches ahead: a child would not have it. */
static const char *line_alone(void) {
  static char text[sizeof script + 20];
  const char *at = strstr(script, "{batch_size = 4");
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s{prefetch = 0, %s", (int)(at - script), script, at + 1);
  return text;
}

/* After a refusal: a sentence, then all works, nothing stays. */
static void end_child(forking *f, ltrain *l, bool finished) {
  const char *wrong = NULL;
  if (l != NULL && !finished && ltrain_errmsg(l)[0] == 0) wrong = "no message";
  bool whole = f->next / f->stride % 16 == 0, refuses = f->refuse < 0 && f->next % 2 == 0;
  if (!refuses) f->refuse = 0; /* else it is closed with an allocator that still refuses */
  if (l != NULL && !finished && !refuses) {
    while (ltrain_step_for(l, 0, NULL) == LTRAIN_PAUSED) { /* what had been started */
    }
    bool ok = whole ? live(l, line_alone())
                    : ltrain_dostring(l, "v = train and train(1)", "after");
    if (!ok) wrong = ltrain_errmsg(l);
  }
  if (wrong != NULL) print_error("request %ld: %s\n", f->next, wrong);
  ltrain_close(l);
  if (f->count.live != 0) print_error("request %ld: %ld bytes\n", f->next, f->count.live);
  _exit(wrong != NULL || f->count.live != 0 ? 1 : finished ? FINISHED : REFUSED);
}

/* LT_EXHAUSTIVE=1: each request of a life, from open to close. */
static void it_survives_each_failing_allocation(void **state) {
  (void)state;
  const char *line = line_alone();
  forking f = {.next = -1};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.alloc = fork_alloc;
  config.ud = &f;
  for (int k = 0; k < 2; k++) { /* counted, then forked */
    long all = f.count.asked;
    const char *each = getenv("LT_EXHAUSTIVE"); /* 7: every 7th */
    long stride = each != NULL ? atol(each) : all / 120 + 1;
    if (k == 1) f = (forking){.stride = stride > 0 ? stride : 1};
    if (k == 1) f.next = f.stride;
    ltrain *l = ltrain_open(&config);
    bool finished = l != NULL && live(l, line);
    if (f.is_child) end_child(&f, l, finished);
    assert_true(finished);
    ltrain_close(l);
    if (f.is_child) end_child(&f, NULL, true);
    assert_int_equal(f.count.live, 0);
  }
  print_message("# %ld requests: forked at every %ld., %ld refused, %ld failed\n", f.count.asked,
                f.stride, f.refused, f.failed);
  assert_true(f.refused > 10);
  assert_int_equal(f.failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lives_leave_nothing),
      cmocka_unit_test(finalizers_at_the_end_leave_nothing),
      cmocka_unit_test(gradients_that_hold_their_tensors_are_freed),
      cmocka_unit_test(deep_calls_end_without_memory),
      cmocka_unit_test(eight_threads_train_what_one_does),
      cmocka_unit_test(a_state_goes_from_thread_to_thread),
      cmocka_unit_test(cancels_from_another_thread_end_no_state),
      cmocka_unit_test(every_call_works_after_every_error),
      cmocka_unit_test(steps_end_without_memory),
      cmocka_unit_test(it_survives_failing_allocations),
      cmocka_unit_test(it_survives_each_failing_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
