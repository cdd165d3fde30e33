/* spec/c/host_isolate_test.c: scripts in a process of their own; whatever that does, the host's
   call ends. A test that hangs is ended by the alarm. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/isolate/seccomp.h"
#include "host_test.h"
#include "launch/world.h"
#include "odd_worker.h"

enum { HANGS_AFTER = 120 };

static ltrain *open_isolated(ltrain_config config) {
  alarm(HANGS_AFTER);
  config.isolate = 1;
  if (config.worker == NULL) config.worker = LT_WORKER;
  ltrain *l = ltrain_open(&config);
  if (l == NULL) fail_msg("%s", ltrain_errmsg(NULL));
  return l;
}

static ltrain *open_plain(void) { return open_isolated((ltrain_config)LTRAIN_CONFIG_INIT); }

static ltrain *open_script(const char *code) {
  ltrain *l = open_plain();
  must(l, ltrain_dostring(l, code, "s.lua"));
  return l;
}

static void values_go_both_ways(void **state) {
  (void)state;
  ltrain *l = open_script(
      "function f(i, d, b, s, t) return i + 1, d / 2, not b, s .. '!', t * 2 end\n"
      "function none() return nil end");
  float data[] = {1, 2, 3, 4, 5, 6};
  lt_tensor *x = ltrain_wrap(l, data, LT_F32, 2, (int64_t[]){3, 2}, NULL, NULL), *y = NULL;
  int64_t i = 0;
  double d = 0;
  int b = 1;
  const char *s = NULL;
  must(l, ltrain_call(l, "f", "idbsT>idbsT", INT64_MAX - 1, 5.0, 1, "text", x, &i, &d, &b, &s, &y));
  assert_true(i == INT64_MAX && d == 2.5 && b == 0);
  assert_string_equal(s, "text!");
  assert_int_equal(lt_tensor_ndim(y), 2);
  assert_int_equal(lt_tensor_size(y, 0), 3);
  const float *doubled = ltrain_data(l, y, 0);
  for (int k = 0; k < 6; k++) assert_true(doubled[k] == 2 * data[k]);
  must(l, ltrain_call(l, "none", ">s", &s));
  assert_null(s);
  ltrain_release(l, x);
  ltrain_release(l, y);
  ltrain_close(l);
}

static void names_are_read_and_written(void **state) {
  (void)state;
  ltrain *l = open_script("a = {b = {}, c = {10, 20}}");
  int64_t n = 0;
  must(l, ltrain_set(l, "a.b.x", "i", INT64_C(7)));
  must(l, ltrain_get(l, "a.b.x", "i", &n));
  assert_int_equal(n, 7);
  must(l, ltrain_get(l, "a.c.2", "i", &n));
  assert_int_equal(n, 20);
  must_say(l, ltrain_get(l, "a.c", "i", &n), "a.c: an integer wanted, got table");
  must_say(l, ltrain_call(l, "a.b", ""), "a.b: expected a function, got table");
  ltrain_close(l);
}

static void it_trains_as_in_the_host(void **state) {
  (void)state;
  ltrain *here = open_line(NULL), *there = open_script(script);
  double a = 0, b = 1;
  must(here, ltrain_call(here, "train", "i>d", INT64_C(3), &a));
  must(there, ltrain_call(there, "train", "i>d", INT64_C(3), &b));
  assert_true(a == b);
  ltrain_close(here);
  ltrain_close(there);
}

static void errors_have_lines_and_the_state_lives_on(void **state) {
  (void)state;
  ltrain *l = open_plain();
  must_say(l, ltrain_dostring(l, "\n\npint(1)", "s.lua"), "s.lua:3: attempt to call a nil value");
  must_say(l, ltrain_dostring(l, "\n\npint(1)", "s.lua"), "did you mean 'print'?");
  must_say(l, ltrain_dostring(l, "x =", "s.lua"), "s.lua:1: unexpected symbol near <eof>");
  must(l, ltrain_dostring(l, "x = 1", "s.lua"));
  assert_string_equal(ltrain_errmsg(l), "");
  ltrain_close(l);
}

static void the_host_reads_the_script(void **state) {
  (void)state;
  char path[] = "/tmp/ltrain_isolate_XXXXXX";
  int fd = mkstemp(path);
  static const char code[] = "#!/usr/bin/ltrain\nx = 1\nerror 'here'\n";
  assert_int_equal(write(fd, code, sizeof code - 1), sizeof code - 1);
  ltrain *l = open_plain();
  char line[100];
  snprintf(line, sizeof line, "%s:3: here", path);
  must_say(l, ltrain_dofile(l, path), line);
  assert_int_equal(write(fd, "", 1), 1);
  must_say(l, ltrain_dofile(l, path), "a script must not contain bytes that are 0");
  close(fd);
  unlink(path);
  must_say(l, ltrain_dofile(l, path), "No such file or directory");
  must_say(l, ltrain_dofile(l, "/"), "dofile: cannot read /:");
  ltrain_close(l);
}

static void files_in_memory_are_passed(void **state) {
  (void)state;
  size_t n = 0;
  ltrain *l = open_script("lt = require 'ltrain'");
  must(l, ltrain_put_file(l, "memory:m.lua", "y = 5", 5));
  must(l, ltrain_dofile(l, "memory:m.lua"));
  must(l, ltrain_dostring(l, "lt.save('memory:a.pt', {a = lt.ones(y)})", "s"));
  const char *bytes = ltrain_get_file(l, "memory:a.pt", &n);
  assert_true(bytes != NULL && n > 100);
  assert_memory_equal(bytes, "PK", 2);
  must(l, ltrain_put_file(l, "memory:b.pt", bytes, n));
  must(l, ltrain_dostring(l, "assert(lt.load('memory:b.pt').a:sum():item() == 5)", "s"));
  must(l, ltrain_remove_file(l, "memory:a.pt"));
  assert_null(ltrain_get_file(l, "memory:a.pt", &n));
  assert_non_null(strstr(ltrain_errmsg(l), "no such file"));
  ltrain_close(l);
}

static void keep_text(void *ud, const char *text, size_t n) {
  snprintf(ud, 100, "%.*s", (int)n, text);
}

static void print_arrives(void **state) {
  (void)state;
  char text[100] = "";
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = keep_text;
  config.ud = text;
  ltrain *l = open_isolated(config);
  must(l, ltrain_dostring(l, "print('a', 1)", "s"));
  assert_string_equal(text, "a\t1\n");
  ltrain_close(l);
}

/* A callback cannot ask while its call is answered. */
static ltrain *called;

static void call_again(void *ud, const char *text, size_t n) {
  (void)text, (void)n;
  bool *refused = ud;
  *refused = !ltrain_dostring(called, "x = 2", "again") &&
             ltrain_get_file(called, "memory:x", NULL) == NULL;
}

static void callbacks_cannot_call_it(void **state) {
  (void)state;
  bool refused = false;
  int64_t x = 0;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = call_again;
  config.ud = &refused;
  called = open_isolated(config);
  must(called, ltrain_dostring(called, "x = 1 print(1)", "s"));
  must(called, ltrain_get(called, "x", "i", &x));
  assert_true(refused && x == 1);
  ltrain_close(called);
}

static void limits_end_a_call_and_not_the_worker(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = 1000000;
  config.memory_cap = 64 << 20;
  ltrain *l = open_isolated(config);
  must_say(l, ltrain_dostring(l, "while true do end", "s"),
           "s:1: the script ran more than 1000000");
  must_say(l, ltrain_dostring(l, "t = {} for k = 1, 1e9 do t[k] = ('x'):rep(1e6) .. k end", "s"),
           "");
  must_say(l, ltrain_dostring(l, "t = require 'ltrain'.ones(1 << 40)", "s"), "memory");
  must(l, ltrain_dostring(l, "x = 1", "s"));
  ltrain_close(l);
}

static void too_long_a_call_kills_the_worker(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_seconds = 0.2;
  ltrain *l = open_isolated(config);
  must_say(l, ltrain_dostring(l, "while true do end", "s"),
           "the worker process was ended: it took longer than max_seconds");
  must_say(l, ltrain_dostring(l, "x = 1", "s"), "it took longer than max_seconds");
  ltrain_close(l);
}

static void *cancel_soon(void *l) {
  usleep(50000);
  ltrain_cancel(l);
  return NULL;
}

static void another_thread_cancels(void **state) {
  (void)state;
  ltrain *l = open_plain();
  pthread_t thread;
  pthread_create(&thread, NULL, cancel_soon, l);
  must_say(l, ltrain_dostring(l, "while true do end", "s"), "cancelled");
  pthread_join(thread, NULL);
  must_say(l, ltrain_dostring(l, "x = 1", "s"), "the worker process was ended by signal 9");
  ltrain_close(l);
}

static void scripts_reach_nothing(void **state) {
  (void)state;
  ltrain *l = open_plain();
  must_say(l, ltrain_dostring(l, "assert(require 'ltrain'.load '/etc/passwd')", "s"),
           "LTRAIN_READ_FILES");
  must(l, ltrain_dostring(l, "assert(io == nil and debug == nil)", "s"));
  must_say(l, ltrain_dostring(l, "os.getenv 'HOME'", "s"), "LTRAIN_ENVIRONMENT");
  ltrain_close(l);
}

static void what_does_not_work_says_so(void **state) {
  (void)state;
  ltrain *l = open_plain();
  assert_null(ltrain_lua(l));
  assert_non_null(strstr(ltrain_errmsg(l), "lua: not in an isolated state"));
  must_say(l, ltrain_start(l, "f", ""), "start: not in an isolated state");
  must_say(l, ltrain_register(l, "f", ">", NULL, NULL), "register: not in an isolated state");
  ltrain_close(l);
}

static void must_not_open(ltrain_config config, const char *why) {
  alarm(HANGS_AFTER);
  assert_null(ltrain_open(&config));
  if (strstr(ltrain_errmsg(NULL), why) == NULL)
    fail_msg("'%s' is not in '%s'", why, ltrain_errmsg(NULL));
}

static void wrong_configs_are_refused(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.worker = "/nowhere/ltrain-worker";
  must_not_open(config, "max_seconds and worker are for isolated states");
  config.isolate = 1;
  must_not_open(config, "/nowhere/ltrain-worker: No such file or directory");
  config.worker = "/bin/true";
  must_not_open(config, "open: the worker process has ended with status 0");
  config.worker = ODD_WORKER;
  config.max_instructions = ODD_OPEN;
  must_not_open(config, "open: the worker process was ended: it sent an invalid message");
  config.allow = LTRAIN_READ_FILES;
  must_not_open(config, "allow must be 0");
  config.allow = 0;
  config.threads = 2;
  must_not_open(config, "threads must be 0 or 1");
  config.threads = 1;
  config.max_seconds = -1;
  must_not_open(config, "max_seconds is negative");
}

static ltrain *open_odd(int mode) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.worker = ODD_WORKER;
  config.max_instructions = mode;
  config.max_seconds = mode == ODD_FLOOD || mode == ODD_DEAF ? 0.2 : 60;
  config.memory_cap = 32 << 20;
  return open_isolated(config);
}

static void garbage_in_the_pipe_is_an_error(void **state) {
  (void)state;
  for (int mode = ODD_OPEN + 1; mode < ODD_INVALID_END; mode++) {
    lt_tensor *t = NULL;
    ltrain *l = open_odd(mode);
    must_say(l, ltrain_get(l, "x", "T", &t),
             "the worker process was ended: it sent an invalid message");
    assert_null(t);
    ltrain_close(l);
  }
}

static void a_worker_that_ends_is_an_error(void **state) {
  (void)state;
  static const struct {
    int mode;
    const char *says;
  } rows[] = {{ODD_CUT, "has ended with status 7"},
              {ODD_CRASH, "was ended by signal 9"},
              {ODD_FLOOD, "it took longer than max_seconds"},
              {ODD_DEAF, "it took longer than max_seconds"}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    double d;
    ltrain *l = open_odd(rows[k].mode);
    must_say(l, ltrain_get(l, "x", "d", &d), rows[k].says);
    must_say(l, ltrain_get(l, "x", "d", &d), rows[k].says);
    ltrain_close(l);
  }
}

static void booleans_are_0_or_1(void **state) {
  (void)state;
  lt_tensor *t = NULL;
  ltrain *l = open_odd(ODD_BOOLEAN);
  must(l, ltrain_get(l, "x", "T", &t));
  const unsigned char *bytes = ltrain_data(l, t, 0);
  for (int k = 0; k < 8; k++) assert_int_equal(bytes[k], 1);
  ltrain_close(l);
}

/* In a child that is sealed: 0, or the number of the first row that was possible all the same. */
static int try_everything(void) {
  char text[200];
  int pair[2];
  if (!lt_isolate_seal(64 << 20, text, sizeof text)) return 100;
  if (open("/etc/passwd", O_RDONLY) >= 0) return 1;
  if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
    return 2;
  if (fork() >= 0) return 3;
  if (kill(getppid(), 0) == 0) return 4;
  if (mmap(NULL, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
      MAP_FAILED)
    return 5;
  if (memfd_create("x", 0) >= 0) return 6;
  execl("/bin/true", "true", (char *)NULL);
  return errno == EPERM ? 0 : 7;
}

/* Forked processes close what they inherit. */
static void a_fork_does_not_end_it(void **state) {
  (void)state;
  ltrain *l = open_plain();
  int status = 1;
  pid_t pid = fork();
  if (pid == 0) {
    ltrain_close(l);
    _exit(0);
  }
  waitpid(pid, &status, 0);
  assert_int_equal(status, 0);
  must(l, ltrain_dostring(l, "x = 1", "x.lua"));
  ltrain_close(l);
}

/* A program that writes its process id to a file, and becomes the worker. */
typedef struct noted_worker {
  char folder[40], program[60], id[60];
} noted_worker;

static noted_worker write_noted_worker(void) {
  noted_worker w = {.folder = "/tmp/ltrain_isolate_XXXXXX"};
  assert_non_null(mkdtemp(w.folder));
  snprintf(w.program, sizeof w.program, "%s/worker", w.folder);
  snprintf(w.id, sizeof w.id, "%s/id", w.folder);
  FILE *file = fopen(w.program, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\necho $$ >%s\nexec %s\n", w.id, LT_WORKER);
  fclose(file);
  assert_int_equal(chmod(w.program, 0700), 0);
  return w;
}

static pid_t read_id(const noted_worker *w) {
  int id = 0;
  FILE *file = fopen(w->id, "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%d", &id), 1);
  fclose(file);
  return id;
}

static void remove_noted_worker(const noted_worker *w) {
  unlink(w->program);
  unlink(w->id);
  rmdir(w->folder);
}

/* A host whose script never ends. */
static _Noreturn void be_a_host(const char *program, int ready) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.isolate = 1;
  config.worker = program;
  ltrain *l = ltrain_open(&config);
  if (l == NULL || write(ready, "", 1) != 1) _exit(1);
  ltrain_dostring(l, "while true do end", "s");
  _exit(1);
}

static void the_worker_ends_with_its_host(void **state) {
  (void)state;
  int ready[2];
  char byte;
  noted_worker w = write_noted_worker();
  assert_int_equal(pipe(ready), 0);
  alarm(HANGS_AFTER);
  pid_t host = fork();
  if (host == 0) be_a_host(w.program, ready[1]);
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  int worker = lt_process_open(read_id(&w));
  assert_true(worker >= 0);
  struct pollfd end = {.fd = worker, .events = POLLIN};
  assert_int_equal(poll(&end, 1, 0), 0);
  kill(host, SIGKILL);
  waitpid(host, NULL, 0);
  assert_int_equal(poll(&end, 1, 1000 * HANGS_AFTER), 1);
  close(worker);
  remove_noted_worker(&w);
}

/* The soft limit in a line of /proc/PID/limits; -1: there is none. */
static long long limit_of(pid_t pid, const char *name) {
  char path[40], line[200];
  long long most = -1;
  snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name), "%lld", &most);
  fclose(file);
  return most;
}

static void the_worker_has_limits(void **state) {
  (void)state;
  noted_worker w = write_noted_worker();
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.worker = w.program;
  config.memory_cap = 64 << 20;
  ltrain *l = open_isolated(config);
  pid_t pid = read_id(&w);
#ifndef __SANITIZE_ADDRESS__ /* which has an address space of many TB */
  long long memory = limit_of(pid, "Max address space");
  assert_true(memory > 4 * (64 << 20) && memory < (1LL << 40));
#endif
  assert_int_equal(limit_of(pid, "Max processes"), 0);
  assert_int_equal(limit_of(pid, "Max file size"), 0);
  ltrain_close(l);
  remove_noted_worker(&w);
}

/* What a loader that reads ahead elsewhere gives. */
static void loaders_read_without_threads(void **state) {
  (void)state;
  ltrain *l = open_script(
      "lt = require 'ltrain'\n"
      "local set = lt.data.TensorDataset(lt.arange(10))\n"
      "function sum(prefetch, workers)\n"
      "  local loader = lt.data.DataLoader(set, {batch_size = 4, prefetch = prefetch,\n"
      "    num_workers = workers})\n"
      "  local n = 0\n"
      "  for batch in loader:batches() do n = n + batch[1]:sum():item() end\n"
      "  return n\n"
      "end\n"
      "function images()\n"
      "  local set = lt.data.Images{paths = {'a.png'}, transform = lt.transforms.Resize(4)}\n"
      "  for _ in lt.data.DataLoader(set):batches() do end\n"
      "end");
  for (int64_t k = 1; k <= 4; k *= 2) {
    int64_t n = 0;
    must(l, ltrain_call(l, "sum", "ii>i", k, INT64_C(0), &n));
    assert_int_equal(n, 45);
  }
  int64_t n = 0;
  must_say(l, ltrain_call(l, "images", ""), "images: the system cannot create more threads");
  must_say(l, ltrain_dostring(l, "lt.linalg.svdvals(lt.ones(2, 2))", "s"), "needs LAPACKE");
  must(l, ltrain_call(l, "sum", "ii>i", INT64_C(2), INT64_C(2), &n));
  assert_int_equal(n, 45);
  ltrain_close(l);
}

static void a_sealed_process_can_do_nothing(void **state) {
  (void)state;
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) _exit(try_everything());
  waitpid(pid, &status, 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sealed_process_can_do_nothing),
      cmocka_unit_test(values_go_both_ways),
      cmocka_unit_test(names_are_read_and_written),
      cmocka_unit_test(it_trains_as_in_the_host),
      cmocka_unit_test(errors_have_lines_and_the_state_lives_on),
      cmocka_unit_test(the_host_reads_the_script),
      cmocka_unit_test(files_in_memory_are_passed),
      cmocka_unit_test(print_arrives),
      cmocka_unit_test(callbacks_cannot_call_it),
      cmocka_unit_test(limits_end_a_call_and_not_the_worker),
      cmocka_unit_test(too_long_a_call_kills_the_worker),
      cmocka_unit_test(another_thread_cancels),
      cmocka_unit_test(scripts_reach_nothing),
      cmocka_unit_test(what_does_not_work_says_so),
      cmocka_unit_test(wrong_configs_are_refused),
      cmocka_unit_test(garbage_in_the_pipe_is_an_error),
      cmocka_unit_test(a_worker_that_ends_is_an_error),
      cmocka_unit_test(booleans_are_0_or_1),
      cmocka_unit_test(a_fork_does_not_end_it),
      cmocka_unit_test(the_worker_ends_with_its_host),
      cmocka_unit_test(the_worker_has_limits),
      cmocka_unit_test(loaders_read_without_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
