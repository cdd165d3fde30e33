/* spec/c/fork_test.c: the fork of a world: files, buffers, threads and signals of before. */
/* tags: threads */
#include "forked_test.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "base/cores.h"
#include "base/threads.h"

enum { RECORD = 64, RECORDS = 2000 };

/* Every rank reads all records in an order of its own, through a handle of before the fork. */
static void reads(void) {
  char record[RECORD];
  FILE *f = tmpfile();
  for (int k = 0; k < RECORDS; k++) {
    memset(record, 'a' + k % 26, sizeof record);
    fwrite(record, 1, sizeof record, f);
  }
  fflush(f);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(f));
  FILE *in = fopen(path, "r");
  setvbuf(in, NULL, _IONBF, 0);
  CHECK(fseek(in, 7 * RECORD, SEEK_SET) == 0 && fread(record, 1, RECORD, in) == RECORD);
  lt_ctx *c = fresh();
  lt_world *w = begin(c, 4, 20);
  int rank = rank_of(w);
  CHECK(sum(c, w, 1) == 4);
  CHECK(fread(record, 1, RECORD, in) == RECORD && record[0] == 'a' + 8); /* at the same place */
  for (int k = 0; k < RECORDS; k++) {
    int at = (k * 7 + rank * 11) % RECORDS;
    CHECK(fseek(in, (long)at * RECORD, SEEK_SET) == 0);
    if (k < 20) CHECK(sum(c, w, 1) == 4); /* all have sought before one reads */
    CHECK(fread(record, 1, RECORD, in) == RECORD);
    CHECK(record[0] == 'a' + at % 26 && record[RECORD - 1] == 'a' + at % 26);
  }
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
}

static void a_file_opened_before_is_read_by_each_for_itself(void **state) {
  (void)state;
  outcome o = run_apart(reads, 30);
  expect_end(&o, 0);
}

static void writes(void) {
  printf("before the fork\n"); /* into a pipe: stays in the buffer */
  lt_ctx *c = fresh();
  lt_world *w = begin(c, 3, 20);
  if (rank_of(w) > 0) printf("rank %d\n", rank_of(w));
  if (rank_of(w) > 0) CHECK(getchar() == EOF);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
  fflush(stdout);
}

static void what_was_written_before_comes_once_and_children_flush(void **state) {
  (void)state;
  outcome o = run_apart(writes, 20);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "before the fork\n"), 1);
  assert_int_equal(count_of(o.said, "rank 1\n"), 1);
  assert_int_equal(count_of(o.said, "rank 2\n"), 1);
}

static void count_chunk(void *ud, int64_t chunk) {
  (void)chunk;
  __atomic_fetch_add((int *)ud, 1, __ATOMIC_RELAXED);
}

static int count_in_parallel(lt_ctx *c) {
  int n = 0;
  lt_parallel(c, 64, count_chunk, &n);
  return n;
}

static void is_parallel(void) {
  lt_ctx *c = fresh();
  c->threads = 4;
  CHECK(count_in_parallel(c) == 64);
  lt_world *w = begin(c, 2, 20);
  int cores = lt_core_count(), share = cores / 2 > 0 ? cores / 2 : 1;
  CHECK(c->threads == (share < 4 ? share : 4));
  c->threads = 3; /* whatever the share is, the pool works in all */
  CHECK(count_in_parallel(c) == 64);
  CHECK(sum(c, w, 1) == 2);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
  CHECK(c->threads == 4);
  CHECK(count_in_parallel(c) == 64);
  lt_ctx_release(c);
}

static void threads_are_shared_out_and_parallel_loops_run_in_all_ranks(void **state) {
  (void)state;
  outcome o = run_apart(is_parallel, 20);
  expect_end(&o, 0);
}

static void *sleep_on(void *named) {
  prctl(PR_SET_NAME, "sleeper");
  atomic_store((atomic_bool *)named, true);
  pause_ms(60000);
  return NULL;
}

static void has_thread(void) {
  pthread_t thread;
  static atomic_bool named;
  lt_ctx *c = fresh();
  pthread_create(&thread, NULL, sleep_on, &named);
  while (!atomic_load(&named)) pause_ms(1);
  lt_launch_options o = options(2, 10);
  CHECK(lt_world_fork(c, &o) == NULL);
  lt_failure f;
  CHECK(lt_take_failure(c, &f));
  CHECK_TEXT(f.text, "fit: cannot fork while 1 other thread runs: \"sleeper\" (fork_with_threads");
  CHECK(!has_children());
  o.fork_with_threads = true;
  lt_world *w = lt_world_fork(c, &o);
  CHECK(w != NULL && sum(c, w, 1) == 2 && lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
}

static void other_threads_are_named(void **state) {
  (void)state;
  outcome o = run_apart(has_thread, 20);
  expect_end(&o, 0);
}

static void *launch_here(void *unused) {
  (void)unused;
  lt_ctx *c = fresh();
  c->threads = 2;
  CHECK(count_in_parallel(c) == 64);
  lt_launch_options o = options(3, 10);
  o.fork_with_threads = true;
  lt_world *w = lt_world_fork(c, &o);
  CHECK(w != NULL && sum(c, w, 1) == 3);
  c->threads = 2;
  CHECK(count_in_parallel(c) == 64);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
  lt_ctx_release(c);
  return NULL;
}
static void threads_launch(void) {
  for (int k = 0; k < 3; k++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, launch_here, NULL) == 0);
    pthread_join(thread, NULL);
  }
}

static void a_thread_that_ends_may_launch(void **state) {
  (void)state;
  outcome o = run_apart(threads_launch, 20);
  expect_end(&o, 0);
}

static void is_interrupted(void) {
  lt_ctx *c = fresh();
  lt_launch_options o = options(3, 10);
  signal(SIGINT, SIG_DFL);
  lt_world *w = lt_world_fork(c, &o);
  CHECK(w != NULL && sum(c, w, 1) == 3);
  if (rank_of(w) == 0) {
    signal(SIGINT, SIG_IGN);
    kill(0, SIGINT); /* as a terminal does */
  }
  CHECK(sum(c, w, 1) == 3);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
}

static void children_leave_an_interrupt_to_the_parent(void **state) {
  (void)state;
  outcome o = run_apart(is_interrupted, 20);
  expect_end(&o, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_opened_before_is_read_by_each_for_itself),
      cmocka_unit_test(what_was_written_before_comes_once_and_children_flush),
      cmocka_unit_test(threads_are_shared_out_and_parallel_loops_run_in_all_ranks),
      cmocka_unit_test(other_threads_are_named),
      cmocka_unit_test(a_thread_that_ends_may_launch),
      cmocka_unit_test(children_leave_an_interrupt_to_the_parent),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
