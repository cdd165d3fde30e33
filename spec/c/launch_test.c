/* spec/c/launch_test.c: forked worlds: how they begin, fail and end, as real processes. */
#include "launch_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

/* ---- failures ---- */

/* Rank 0 waits in a collective and is told why it ends; others do what `what` says. */
static void expect_verdict(int ranks, double timeout, void (*other)(lt_ctx *, lt_world *),
                           lt_verdict_class class, int status, const char *part) {
  lt_ctx *c = fresh();
  lt_world *w = begin(c, ranks, timeout);
  CHECK(sum(c, w, 1) == ranks);
  if (lt_world_describe(w)->rank > 0) {
    lt_world_doing(w, "training_step", "model.lua", 12);
    other(c, w);
    lt_world_end(c, w);
  }
  CHECK(sum(c, w, 1) == -1);
  lt_failure f;
  CHECK(lt_take_failure(c, &f) && f.code == LT_ERANKS);
  CHECK_TEXT(f.text, part);
  const lt_verdict *v = lt_world_verdict(w);
  CHECK(v->class == class && v->status == status);
  CHECK(sum(c, w, 1) == -1); /* and again */
  lt_take_failure(c, NULL);
  CHECK_TEXT(end_failed(c, w), part);
  CHECK(!has_children());
  w = begin(c, 2, timeout); /* the parent may go on */
  CHECK(sum(c, w, 1) == 2);
  CHECK(lt_world_leave(c, w, NULL, 0));
  lt_world_end(c, w);
  lt_ctx_release(c);
}

static int rank_of(const lt_world *w) { return lt_world_describe(w)->rank; }

/* Wait in a collective until the verdict. */
static void stay(lt_ctx *c, lt_world *w) { CHECK(sum(c, w, 1) == -1); }

static void boom(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1)
    lt_world_raise(w, "model.lua:12: boom", "model.lua", 12);
  else
    stay(c, w);
}
static void raises(void) {
  expect_verdict(3, 30, boom, LT_RAISED, 1, "rank 1: model.lua:12: boom");
}

static void an_error_of_one_ends_all(void **state) {
  (void)state;
  outcome o = run_apart(raises, 20);
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
  assert_string_equal(o.said, ""); /* the parent's Lua tells it */
  assert_true(has_file(folder, "failure.rank0.txt", "rank 1: model.lua:12: boom"));
  assert_true(has_file(folder, "failure.rank2.txt", "rank 1: model.lua:12: boom"));
  assert_true(has_file(folder, "ring.rank2.jsonl", "\"op\":\"all_reduce\""));
}

static void kill_self(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 2) kill(getpid(), SIGKILL);
  stay(c, w);
}
static void is_killed(void) {
  expect_verdict(3, 30, kill_self, LT_EXITED, 128 + SIGKILL, "was ended by SIGKILL");
}

static void a_killed_rank_ends_all_and_its_ring_is_kept(void **state) {
  (void)state;
  outcome o = run_apart(is_killed, 20);
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
  assert_true(has_file(folder, "failure.rank1.txt",
                       "last known: rank 2: in training_step at model.lua:12"));
  assert_true(has_file(folder, "ring.rank2.jsonl", "\"rank\":2"));
}

static void fault(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would tell it otherwise */
    dprintf(2, "last words\nwithout an end");
    raise(SIGSEGV);
  }
  stay(c, w);
}
static void faults(void) {
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  expect_verdict(2, 30, fault, LT_EXITED, 128 + SIGSEGV,
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
static void tell_atexit(void) {
  dprintf(1, "atexit of %s\n", getppid() == getsid(0) ? "a child" : "the parent");
}
static void exits(void) {
  atexit(tell_atexit);
  expect_verdict(2, 30, leave_by_exit, LT_EXITED, 5,
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
  expect_verdict(2, 30, leave_by_underscore, LT_EXITED, 1,
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
  expect_verdict(3, 30, leave_early, LT_RAISED, 1,
                 "ranks disagree at collective 2: rank 0: all_reduce sum [] f64 at model.lua:31; "
                 "rank 1: left fit at model.lua:40; rank 2: all_reduce sum [] f64 at model.lua:31");
}

static void who_waits_for_a_rank_that_left_fails_at_once(void **state) {
  (void)state;
  outcome o = run_apart(one_leaves, 20);
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
}

static void stop_self(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1) raise(SIGSTOP);
  stay(c, w);
}
static void stops(void) {
  int64_t start = lt_now_ns();
  expect_verdict(3, 3, stop_self, LT_LOST, 1, "rank 1 (pid ");
  CHECK(seconds_since(start) >= 3);
}

static void a_stopped_rank_is_lost_and_killed(void **state) {
  (void)state;
  outcome o = run_apart(stops, 50);
  expect_end(&o, 0);
}

static void dawdle(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 1)
    while (!lt_pulse_over(lt_world_pulse(w))) pause_ms(10);
  else
    stay(c, w);
}
static void is_late(void) {
  expect_verdict(3, 3, dawdle, LT_LATE, 1,
                 "rank 1 is late: rank 0 has waited 3 s: rank 0: all_reduce");
}

static void a_late_rank_is_warned_of_and_then_an_error(void **state) {
  (void)state;
  outcome o = run_apart(is_late, 50);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "ltrain: rank 1 is late"), 1);
  expect_said(&o, "rank 1: in training_step at model.lua:12");
  expect_said(&o, "(an error at 3 s)\n");
}

/* A kernel that does not end: its process is ended 2 s after the verdict. */
static void compute(lt_ctx *c, lt_world *w) {
  if (rank_of(w) == 2)
    for (volatile int64_t i = 0; i >= 0; i++) {
    }
  boom(c, w);
}
static void computes(void) {
  expect_verdict(3, 30, compute, LT_RAISED, 1, "rank 1: model.lua:12: boom");
}

static void a_rank_that_does_not_come_back_is_ended(void **state) {
  (void)state;
  outcome o = run_apart(computes, 30);
  expect_end(&o, 0);
}

/* ---- what is no failure ---- */

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
  outcome o = run_apart(saves, 60);
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
  outcome o = run_apart(waits_long, 60);
  expect_end(&o, 0);
}

/* ---- the parent ---- */

/* Ended; a stopped parent keeps the remains of its children. */
static bool is_over(int pid) {
  char path[64], text[128];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  waitpid(pid, NULL, WNOHANG);
  int fd = open(path, O_RDONLY);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  return n <= 0 || strstr(text, ") Z") != NULL;
}

/* Rank 0 is a process of its own, which `fate` befalls; its children shall end soon. */
static void parent_and(void (*fate)(pid_t parent), void (*work)(lt_ctx *, lt_world *)) {
  int pids[2];
  CHECK(pipe(pids) == 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* its orphans become ours, to be waited for */
  pid_t parent = fork();
  if (parent == 0) {
    close(pids[0]);
    lt_ctx *c = fresh();
    lt_world *w = begin(c, 3, 3);
    CHECK(sum(c, w, 1) == 3);
    if (rank_of(w) == 0) {
      const lt_world_info *i = lt_world_describe(w);
      CHECK(write(pids[1], i->pids, 3 * sizeof *i->pids) == 3 * sizeof *i->pids);
    }
    close(pids[1]);
    work(c, w);
    if (rank_of(w) == 0) dprintf(1, "the parent was told: %s\n", lt_world_verdict(w)->text);
    lt_world_end(c, w);
    _exit(0);
  }
  int all[3];
  close(pids[1]);
  CHECK(read(pids[0], all, sizeof all) == sizeof all);
  fate(parent);
  int64_t start = lt_now_ns();
  for (int r = 1; r < 3; r++)
    while (!is_over(all[r])) pause_ms(10);
  dprintf(1, "children gone after %.1f s\n", seconds_since(start));
  kill(parent, SIGCONT);
  waitpid(parent, NULL, 0);
}

/* The parent does not come to where its children wait. */
static void stay_on(lt_ctx *c, lt_world *w) {
  if (rank_of(w) > 0) stay(c, w);
  while (!lt_pulse_over(lt_world_pulse(w))) pause_ms(1);
}
static void kill_parent(pid_t parent) { kill(parent, SIGKILL); }
static void loses_parent(void) { parent_and(kill_parent, stay_on); }

static double gone_after(const outcome *o) {
  const char *at = strstr(o->said, "gone after ");
  return at != NULL ? strtod(at + 11, NULL) : 1e9;
}

static void children_end_with_their_parent_and_one_speaks(void **state) {
  (void)state;
  outcome o = run_apart(loses_parent, 40);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "ltrain: rank 0 ended without a word"), 1);
  assert_true(gone_after(&o) < 10);
  assert_true(has_file(folder, "failure.rank1.txt", "rank 0 ended without a word"));
}

static void spin(lt_ctx *c, lt_world *w) {
  (void)c;
  (void)w;
  for (volatile int64_t i = 0; i >= 0; i++) {
  }
}
static void loses_parent_in_a_kernel(void) { parent_and(kill_parent, spin); }

static void children_in_a_kernel_end_with_their_parent(void **state) {
  (void)state;
  outcome o = run_apart(loses_parent_in_a_kernel, 40);
  expect_end(&o, 0);
  assert_true(gone_after(&o) < 10);
}

static void stop_parent(pid_t parent) { kill(parent, SIGSTOP); }
static void stops_parent(void) { parent_and(stop_parent, stay_on); }

static void children_of_a_stopped_parent_give_it_up(void **state) {
  (void)state;
  outcome o = run_apart(stops_parent, 60);
  expect_end(&o, 0);
  assert_int_equal(count_of(o.said, "ltrain: rank 0 is lost: not heard for "), 1);
  expect_said(&o, "the parent was told: rank 0 is lost: not heard for ");
  assert_true(gone_after(&o) < 30);
}

/* ---- the fork itself ---- */

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
  CHECK(fread(record, 1, RECORD, in) == RECORD && record[0] == 'a' + 8); /* goes on where it was */
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

static void *sleep_on(void *unused) {
  (void)unused;
  prctl(PR_SET_NAME, "sleeper");
  pause_ms(60000);
  return NULL;
}

static void has_thread(void) {
  pthread_t thread;
  lt_ctx *c = fresh();
  pthread_create(&thread, NULL, sleep_on, NULL);
  pause_ms(50);
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

static void asks_too_much(void) {
  lt_ctx *c = fresh();
  lt_failure f;
  lt_launch_options o = options(2000, 10);
  CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
  CHECK_TEXT(f.text, "fit: ranks must be 1 to 1024: 2000");
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){20, 20});
  o.ranks = 16;
  CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
  CHECK_TEXT(f.text, "fit: no control channel for rank");
  CHECK_TEXT(f.text, "of 16: Too many open files");
  o.ranks = 2;
  lt_world *w = lt_world_fork(c, &o);
  CHECK(w != NULL);
  if (rank_of(w) == 0) {
    CHECK(lt_world_fork(c, &o) == NULL && lt_take_failure(c, &f));
    CHECK_TEXT(f.text, "fit: ranks run already: one world at a time");
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

/* ---- signals ---- */

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

static void hang_up(pid_t parent) { kill(-getpgid(parent), SIGHUP); }
static void hangs_up(void) {
  signal(SIGHUP, SIG_IGN);
  if (fork() == 0) {
    signal(SIGHUP, SIG_DFL);
    setpgid(0, 0);
    parent_and(hang_up, stay_on);
    _exit(0);
  }
  int status;
  wait(&status);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

static void a_hangup_ends_the_job(void **state) {
  (void)state;
  outcome o = run_apart(hangs_up, 20); /* which reads until the last process has ended */
  expect_end(&o, 0);
  assert_true(o.seconds < 10);
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

/* A save takes longer than a rank has to unwind. */
static void save_on(lt_world *w) {
  lt_world_span(w, true, true);
  while (!lt_pulse_over(lt_world_pulse(w))) pause_ms(1);
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
  while (!lt_pulse_over(lt_world_pulse(w))) pause_ms(1);
  lt_world_end(c, w);
}

static void a_save_may_come_to_its_end(void **state) {
  (void)state;
  outcome o = run_apart(saving, 30);
  expect_end(&o, 0);
  assert_string_equal(o.said, "saved\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_add_up),
      cmocka_unit_test(a_world_of_one_has_no_children),
      cmocka_unit_test(twenty_worlds_leave_nothing),
      cmocka_unit_test(an_error_of_one_ends_all),
      cmocka_unit_test(a_killed_rank_ends_all_and_its_ring_is_kept),
      cmocka_unit_test(a_fault_says_where_the_core_is_and_words_have_their_rank),
      cmocka_unit_test(exit_in_a_child_is_a_failure_that_names_the_line),
      cmocka_unit_test(an_end_with_status_0_is_a_failure_too),
      cmocka_unit_test(who_waits_for_a_rank_that_left_fails_at_once),
      cmocka_unit_test(a_stopped_rank_is_lost_and_killed),
      cmocka_unit_test(a_late_rank_is_warned_of_and_then_an_error),
      cmocka_unit_test(a_rank_that_does_not_come_back_is_ended),
      cmocka_unit_test(a_declared_span_is_never_late),
      cmocka_unit_test(a_job_that_is_stopped_for_long_goes_on),
      cmocka_unit_test(children_end_with_their_parent_and_one_speaks),
      cmocka_unit_test(children_in_a_kernel_end_with_their_parent),
      cmocka_unit_test(children_of_a_stopped_parent_give_it_up),
      cmocka_unit_test(a_file_opened_before_is_read_by_each_for_itself),
      cmocka_unit_test(what_was_written_before_comes_once_and_children_flush),
      cmocka_unit_test(threads_are_shared_out_and_parallel_loops_run_in_all_ranks),
      cmocka_unit_test(other_threads_are_named),
      cmocka_unit_test(a_thread_that_ends_may_launch),
      cmocka_unit_test(what_cannot_be_is_refused_with_a_sentence),
      cmocka_unit_test(the_last_act_of_a_forked_world_frees_it_once),
      cmocka_unit_test(a_context_that_ends_takes_its_ranks_with_it),
      cmocka_unit_test(children_leave_an_interrupt_to_the_parent),
      cmocka_unit_test(a_hangup_ends_the_job),
      cmocka_unit_test(the_main_thread_is_woken_again_and_again),
      cmocka_unit_test(a_save_may_come_to_its_end),
  };
  folder = new_folder();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  remove_folder(folder);
  return failed;
}
