/* spec/c/launch_test.c: forked worlds: how they begin, fail and end, as real processes. */
#include "launch_test.h"

#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/threads.h"
#include "device/device.h"

static const char *folder;

static lt_launch_options options(int ranks, double timeout) {
  return (lt_launch_options){.ranks = ranks, .timeout = timeout, .what = "fit", .folder = folder};
}

static lt_world *begin(lt_ctx *c, int ranks, double timeout) {
  lt_launch_options o = options(ranks, timeout);
  lt_world *w = lt_world_fork(c, &o);
  if (w == NULL) dprintf(2, "%s\n", c->failure.text);
  CHECK(w != NULL);
  return w;
}

/* Sum of a number over the ranks. */
static double sum(lt_ctx *c, lt_world *w, double x) {
  double out = -1;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F64, 0, NULL);
  *(double *)lt_tensor_ptr(c, t, LT_WRITE) = x;
  lt_work *work = lt_comm_all_reduce(c, lt_world_group(w), t, t, LT_COMM_SUM,
                                     (lt_origin){.file = "model.lua", .line = 31});
  if (work != NULL && lt_work_wait(c, work)) out = *(double *)lt_tensor_ptr(c, t, LT_READ);
  if (work != NULL) lt_work_release(c, work);
  lt_frame_close(c, frame, 0, NULL);
  return out;
}

/* A rank's script raised: what the binding does. */
static void raise_and_end(lt_ctx *c, lt_world *w, const char *text) {
  lt_world_raise(w, text, "model.lua", 12);
  lt_world_end(c, w);
}

/* Rank 0's end of a failed world; what it was told. */
static char *end_failed(lt_ctx *c, lt_world *w) {
  static char text[LT_VERDICT_TEXT];
  const lt_verdict *v = lt_world_verdict(w);
  CHECK(v != NULL);
  snprintf(text, sizeof text, "%s", v->text);
  lt_world_end(c, w);
  lt_take_failure(c, NULL);
  return text;
}

static int entries(const char *path) {
  DIR *d = opendir(path);
  int n = 0;
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n;
}

static int mappings(void) {
  FILE *f = fopen("/proc/self/maps", "r");
  int n = 0;
  for (int ch; (ch = fgetc(f)) != EOF;) n += ch == '\n';
  fclose(f);
  return n;
}

static bool has_children(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* ---- good worlds ---- */

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
      fds = entries("/proc/self/fd"), tasks = entries("/proc/self/task"), maps = mappings();
  }
  CHECK(entries("/proc/self/fd") == fds);
  CHECK(entries("/proc/self/task") == tasks);
  CHECK(mappings() <= maps + 1); /* the heap of malloc may be cut in two */
  lt_ctx_release(c);
}

static void twenty_worlds_leave_nothing(void **state) {
  (void)state;
  outcome o = run_apart(twenty, 60);
  expect_end(&o, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_add_up),
      cmocka_unit_test(a_world_of_one_has_no_children),
      cmocka_unit_test(twenty_worlds_leave_nothing),
  };
  folder = new_folder();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  remove_folder(folder);
  return failed;
}
