/* spec/c/launch_test.c: forked worlds, as real processes: how they begin, end and are refused. */
/* tags: threads */
#include "forked_test.h"

#include <sys/resource.h>

static int entries(const char *path) {
  DIR *d = opendir(path);
  int n = 0;
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n;
}

/* Shared ones: what a world maps. Those of malloc come and go. */
static int shared_mappings(void) {
  FILE *f = fopen("/proc/self/maps", "r");
  char line[4096], mode[8];
  int n = 0;
  while (fgets(line, sizeof line, f) != NULL)
    n += sscanf(line, "%*s %7s", mode) == 1 && mode[3] == 's';
  fclose(f);
  return n;
}

static void add_up(void) {
  lt_ctx *c = fresh();
  lt_world *w = begin(c, 4, 10);
  const lt_world_info *i = lt_world_describe(w);
  CHECK(i->size == 4 && i->local_size == 4 && i->nodes == 1 && i->forked);
  CHECK(i->in_child == (i->rank > 0) && strcmp(i->backend, "shm") == 0);
  CHECK(i->pids[i->rank] == getpid());
  CHECK(lt_world_current(c) == w);
  for (int k = 0; k < 50; k++) CHECK(sum(c, w, i->rank + k) == 6 + 4 * k);
  if (i->rank > 0) dprintf(1, "rank %d is there\n", i->rank);
  CHECK(lt_world_leave(c, w, "model.lua", 40));
  lt_world_end(c, w);
  CHECK(lt_world_current(c) == NULL);
  CHECK(!has_children());
  lt_ctx_release(c);
}

static void ranks_add_up(void **state) {
  (void)state;
  outcome o = run_apart(add_up, 20);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "is there\n"), 3);
}

static void one_rank(void) {
  lt_ctx *c = fresh();
  lt_world *w = begin(c, 1, 10);
  CHECK(sum(c, w, 5) == 5);
  CHECK(strcmp(lt_world_describe(w)->backend, "self") == 0);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
  lt_ctx_release(c);
}

static void a_world_of_one_has_no_children(void **state) {
  (void)state;
  outcome o = run_apart(one_rank, 10);
  expect_end(&o, 0);
}

/* Worlds good and bad by turns, and nothing is left of them. */
static void twenty(void) {
  lt_ctx *c = fresh();
  int fds = 0, tasks = 0, maps = 0;
  for (int k = 0; k < 22; k++) {
    lt_world *w = begin(c, 3, 10);
    int rank = lt_world_describe(w)->rank;
    CHECK(sum(c, w, 1) == 3);
    if (k % 2 == 1) {
      if (rank == 2) raise_and_end(c, w, "model.lua:12: boom");
      CHECK(sum(c, w, 1) == -1);
      if (rank == 0)
        CHECK_TEXT(end_failed(c, w), "rank 2: model.lua:12: boom");
      else
        lt_world_end(c, w);
    } else {
      CHECK(lt_world_leave(c, w, "model.lua", 40));
      lt_world_end(c, w);
    }
    CHECK(!has_children());
    if (k == 1)
      fds = entries("/proc/self/fd"), tasks = entries("/proc/self/task"), maps = shared_mappings();
  }
  CHECK(entries("/proc/self/fd") == fds);
  CHECK(entries("/proc/self/task") == tasks);
  CHECK(shared_mappings() == maps);
  lt_ctx_release(c);
}

static void twenty_worlds_leave_nothing(void **state) {
  (void)state;
  outcome o = run_apart(twenty, 60);
  expect_end(&o, 0);
}

static void asks_too_much(void) {
  lt_ctx *c = fresh();
  lt_failure f;
  lt_launch_options o = options(2000, 10);
  CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
  CHECK_TEXT(f.text, "fit: ranks must be 1 to 1024: 2000");
  o.ranks = 16;
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){50, 50});
  CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
  CHECK_TEXT(f.text, "fit: cannot open a control channel for rank"); /* some ranks are forked, and end */
  CHECK_TEXT(f.text, "of 16: Too many open files");
  CHECK(!has_children());
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){20, 20});
  CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
  CHECK_TEXT(f.text, "launch: cannot open pipes for 16 ranks: Too many open files");
  o.ranks = 2;
  lt_world *w = lt_world_fork(c, &o);
  CHECK(w != NULL);
  if (rank_of(w) == 0) {
    CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
    CHECK_TEXT(f.text, "fit: ranks are already running: one world at a time");
  }
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
  c->policy.fork = false;
  CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
  CHECK_TEXT(f.text, "fit: this state may not fork");
  lt_ctx_release(c);
}

static void what_cannot_be_is_refused_with_a_sentence(void **state) {
  (void)state;
  outcome o = run_apart(asks_too_much, 20);
  expect_end(&o, 0);
}

/* Nothing that was freed still says what it said. */
static void *allocate_and_wipe(void *ud, void *ptr, size_t old_size, size_t new_size) {
  (void)ud;
  if (new_size > 0) return realloc(ptr, new_size);
  if (ptr != NULL) explicit_bzero(ptr, old_size);
  free(ptr);
  return NULL;
}

static void exits_in_order(void) {
  lt_allocator wiping = {.fn = allocate_and_wipe};
  lt_ctx *c = lt_ctx_new(lt_registry_here(), &wiping);
  c->policy.fork = true;
  lt_world *w = begin(c, 2, 20);
  CHECK(lt_world_leave(c, w, NULL, 0));
  CHECK(lt_world_exit(c, w, 7) == 7);
  CHECK(lt_world_current(c) == NULL && !has_children());
  lt_ctx_release(c);
}

static void the_last_act_of_a_forked_world_frees_it_once(void **state) {
  (void)state;
  outcome o = run_apart(exits_in_order, 20);
  expect_end(&o, 0);
}

static void forgets(void) {
  lt_ctx *c = fresh();
  lt_world *w = begin(c, 3, 20);
  if (rank_of(w) > 0) stay(c, w);
  CHECK(rank_of(w) == 0);
  lt_ctx_release(c);
  CHECK(!has_children());
}

static void a_context_that_ends_takes_its_ranks_with_it(void **state) {
  (void)state;
  outcome o = run_apart(forgets, 20);
  expect_end(&o, 0);
}

static volatile sig_atomic_t woken;
static void wake(void *ud) {
  (void)ud;
  woken = woken + 1;
}

/* The main thread sleeps or computes: it is signalled, again and again. */
static void wakes(void) {
  lt_ctx *c = fresh();
  lt_launch_options o = options(2, 20);
  struct sigaction before, after;
  sigaction(SIGRTMIN + 6, NULL, &before);
  o.wake = wake;
  lt_world *w = lt_world_fork(c, &o);
  CHECK(w != NULL && sum(c, w, 1) == 2);
  if (rank_of(w) == 1) raise_and_end(c, w, "boom");
  int64_t start = lt_now_ns();
  while (woken < 3) pause_ms(10000);
  CHECK(seconds_since(start) < 9);
  end_failed(c, w);
  sigaction(SIGRTMIN + 6, NULL, &after);
  CHECK(before.sa_handler == after.sa_handler);
}

static void the_main_thread_is_woken_again_and_again(void **state) {
  (void)state;
  outcome o = run_apart(wakes, 30);
  expect_end(&o, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_add_up),
      cmocka_unit_test(a_world_of_one_has_no_children),
      cmocka_unit_test(twenty_worlds_leave_nothing),
      cmocka_unit_test(what_cannot_be_is_refused_with_a_sentence),
      cmocka_unit_test(the_last_act_of_a_forked_world_frees_it_once),
      cmocka_unit_test(a_context_that_ends_takes_its_ranks_with_it),
      cmocka_unit_test(the_main_thread_is_woken_again_and_again),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
