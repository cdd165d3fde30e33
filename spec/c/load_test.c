/* spec/c/load_test.c: where cores are shared the threads of loops sleep instead of spinning. */
/* tags: threads */
#include "base/cpu_load.h"

#include <dirent.h>
#include <omp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/threads.h"
#include "cpu/thread_invariance.h"
#include "tensor_test.h"

static lt_ctx *fresh(void) { return lt_ctx_new(lt_registry_here(), NULL); }

/* While no thread ends. */
static void time_in_the_queue_only_grows(void **state) {
  (void)state;
  double before = lt_load_delay();
  assert_true(before >= 0);
  assert_true(lt_load_delay() >= before);
}

enum { MANY = 40 };

static void look(lt_load_state *s, int times, double waiting) {
  for (int i = 0; i < times; i++) lt_load_judge(s, waiting);
}

/* How many looks end a shared time. */
static int interval(lt_load_state *s) {
  int n = 0;
  while (s->shared && n < 2 * MANY) lt_load_judge(s, 0), n++;
  return n;
}

static void a_load_is_seen_at_once_and_looked_for_again(void **state) {
  (void)state;
  lt_load_state s = {0};
  look(&s, MANY, 0.3);
  assert_false(s.shared);
  look(&s, 1, 0.5);
  assert_true(s.shared);
  look(&s, 4, 0); /* threads that sleep say nothing */
  assert_true(s.shared);
  look(&s, 1, 3);
  assert_false(s.shared);
}

static void a_load_that_is_still_there_is_left_alone_for_longer(void **state) {
  (void)state;
  lt_load_state s = {0};
  const int want[] = {5, 10, 20, 40, 40};
  for (int i = 0; i < 5; i++) {
    look(&s, 1, 2);
    assert_int_equal(interval(&s), want[i]);
  }
  look(&s, MANY, 0); /* long quiet: as at first */
  look(&s, 1, 2);
  assert_int_equal(interval(&s), 5);
}

static int count_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int n = 0;
  for (struct dirent *e; (e = readdir(tasks)) != NULL;) n += e->d_name[0] != '.';
  closedir(tasks);
  return n;
}

/* Who ran each of two chunks. */
static pid_t ran[2];
static void note(void *ud, int64_t chunk) {
  (void)ud;
  ran[chunk] = gettid();
}

static void a_small_team_leaves_loops_to_its_first(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  c->threads = 2;
  lt_parallel(c, 2, note, NULL);
  assert_true(ran[0] != ran[1]);
  if (!lt_load_share(c, true)) skip(); /* so many cores */
  assert_int_equal(lt_load_threads(c), 1);
  lt_parallel(c, 2, note, NULL);
  assert_true(ran[0] == ran[1]);
  lt_load_share(c, false);
  lt_parallel(c, 2, note, NULL);
  assert_true(ran[0] != ran[1]);
  lt_ctx_release(c);
}

static void a_large_team_stays_and_sleeps(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  c->threads = lt_cpu_count() > 2 ? lt_cpu_count() : 3;
  lt_parallel(c, 2, note, NULL);
  int before = count_threads();
  assert_true(lt_load_share(c, true));
  assert_true(lt_load_share(c, true)); /* once more changes nothing */
  assert_int_equal(lt_load_threads(c), c->threads);
  /* more threads than cores sleep by themselves */
  assert_int_equal(count_threads() > before, lt_cpu_count() > 2);
  assert_true(lt_load_share(c, false));
  for (int i = 0; i < 1000 && count_threads() > before; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  assert_true(count_threads() <= before);
  lt_ctx_release(c);
}

/* What the second thread of a team that libgomp runs has slept, in 20 pauses of half a millisecond:
   those that spin do so for milliseconds. */
static long sleeps_in_pauses(void) {
  long slept[2] = {0};
  for (int i = 0; i <= 20; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
#pragma omp parallel num_threads(2)
    {
      struct rusage r;
      getrusage(RUSAGE_THREAD, &r);
      if (omp_get_thread_num() == 1) slept[i > 0] = r.ru_nvcsw;
    }
  }
  return slept[1] - slept[0];
}

static void threads_sleep_between_loops(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  c->threads = lt_cpu_count();
  lt_load_share(c, true);
  assert_true(sleeps_in_pauses() > 0);
  lt_ctx_release(c);
}

/* The product of random numbers before the cores are shared, and twice after. */
static void expect_product_stays(lt_ctx *c, lt_dtype dtype, int64_t m, int64_t k, int64_t n) {
  lt_tensor *a = tensor_random(c, dtype, lt_shape_of(2, (int64_t[]){k, m}), 1, -1, 1);
  lt_tensor *b = tensor_random(c, dtype, lt_shape_of(2, (int64_t[]){k, n}), 2, -1, 1);
  lt_tensor *t = lt_transpose(c, a, 0, 1), *y[3];
  for (int i = 0; i < 3; i++) {
    lt_load_share(c, i > 0);
    y[i] = lt_apply1(c, LT_OP_matmul, LT_IN(t, b), NULL);
    expect_ok(c);
    expect_same_bits(c, y[0], y[i]);
  }
}

static void products_give_the_same_bits(void **state) {
  lt_ctx *c = *state;
  c->threads = 2;
  expect_product_stays(c, LT_F32, 64, 100, 64);
  expect_product_stays(c, LT_F32, 17, 9216, 31); /* which oneDNN adds up by thread */
  expect_product_stays(c, LT_BF16, 64, 256, 100);
}

/* A product that adds up by thread, and one that does not. */
static bool by_thread(lt_ctx *c, const lt_product *p, int threads) {
  (void)c;
  for (int64_t i = 0; i < p->m * p->n; i++)
    ((float *)p->out.data)[i] = ((const float *)p->a.data)[i] + (float)(threads - 1) * 1e-3f;
  return true;
}
static bool in_order(lt_ctx *c, const lt_product *p, int threads) {
  (void)threads;
  return by_thread(c, p, 1);
}

static void a_trial_tells_what_threads_change(void **state) {
  lt_ctx *c = *state;
  c->threads = 2;
  lt_product p = {.dtype = LT_F32, .m = 4, .n = 4, .k = 4,
                  .a = {.row = 4, .col = 1}, .b = {.row = 4, .col = 1}};
  assert_true(lt_product_trial(c, &p, in_order));
  assert_false(lt_product_trial(c, &p, by_thread));
  p.m = p.n = p.k = 1 << 11; /* too large to be tried */
  assert_false(lt_product_trial(c, &p, in_order));
}

static void sleepers_end_before_a_fork_and_with_their_context(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  c->threads = lt_cpu_count();
  lt_load_share(c, true);
  lt_quiesce(c);
  lt_load_share(c, true);
  lt_ctx_release(c); /* the leak checker looks */
}

static void few_threads_on_many_cores_and_the_users_word_change_nothing(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  if (lt_cpu_count() > 2) {
    c->threads = 1;
    assert_false(lt_load_share(c, true));
  }
  c->threads = lt_cpu_count();
  setenv("OMP_WAIT_POLICY", "active", 1);
  assert_false(lt_load_share(c, true));
  unsetenv("OMP_WAIT_POLICY");
  lt_ctx_release(c);
}

int main(int argc, char **argv) {
  (void)argc;
  if (getenv("OMP_WAIT_POLICY") != NULL) { /* libgomp has read it */
    unsetenv("OMP_WAIT_POLICY");
    execv("/proc/self/exe", argv);
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(time_in_the_queue_only_grows),
      cmocka_unit_test(a_load_is_seen_at_once_and_looked_for_again),
      cmocka_unit_test(a_load_that_is_still_there_is_left_alone_for_longer),
      cmocka_unit_test(a_small_team_leaves_loops_to_its_first),
      cmocka_unit_test(a_large_team_stays_and_sleeps),
      cmocka_unit_test(threads_sleep_between_loops),
      OP_TEST(products_give_the_same_bits),
      OP_TEST(a_trial_tells_what_threads_change),
      cmocka_unit_test(sleepers_end_before_a_fork_and_with_their_context),
      cmocka_unit_test(few_threads_on_many_cores_and_the_users_word_change_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
