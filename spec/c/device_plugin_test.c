/* spec/c/device_plugin_test.c: devices out of tree: device_conformance passes those that are sound
   and sees each that is not. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conformance.h"
#include "exhaustive.h"

static void conform(const char *device) {
  assert_int_equal(shell("cd '%s' && %s timeout -k 1 200 ./device_conformance %s >/dev/null",
                         own_folder(), is_exhaustive() ? "" : "LT_TEST_SOME=1/3", device),
                   0);
}

static void the_fake_device_conforms(void **state) {
  (void)state;
  conform("fake");
}

static void the_fake_device_conforms_where_it_records(void **state) {
  (void)state;
  setenv("LT_FAKE_RECORDS", "1", 1);
  conform("fake");
  unsetenv("LT_FAKE_RECORDS");
}

static void a_device_of_ten_kernels_conforms(void **state) {
  (void)state;
  conform("ten backends/ltrain_ten.so");
}

/* What is broken, and what device_conformance says of it. */
static const struct {
  const char *what, *text;
} broken[] = {
    {"stream_wait", "stream_wait: work ran before the event of the other stream"},
    {"event_wait", "event_wait: came back before the work had run"},
    {"event_done", "event_done: said done before the work had run"},
    {"event_record", "event_record: position"},
    {"synchronize", "synchronize: came back before all work had run"},
    {"synchronize_index", "synchronize: a device that is not there: did not fail"},
    {"stream_new_reason", "stream_new: a device that is not there: left no failure"},
    {"launch", "embedding of f32, case 0"},
    {"exit", "a process that ends with work under way: ended by signal 6"},
    {"count", "alloc: no memory"},
    {"count_again", ", and then "},
    {"count_file", "count, available: a file was left open"},
    {"count_starts", "count, available: a child forked after them uses the device: failed"},
    {"open_index", "open: a device that is not there: did not fail"},
    {"alloc_overlap", "alloc: what a block of 65537 bytes held was overwritten"},
    {"alloc_odd", "are not 64-byte aligned"},
    {"free", "33554432 more in use"},
    {"memory_info", "33554432 more in use"},
    {"host_alloc", "host_alloc: two blocks are one"},
    {"copy_unstaged", "copy: a source that is not pinned was read after the call"},
    {"copy_early", "came back before the bytes were there"},
    {"copy_less", "copy: LT_WITHIN"},
    {"copy_more", "bytes after them changed"},
    {"copy_peer", "copy: LT_PEER"},
    {"combine", "combine: reduction 0 of 1 elements of f32"},
    {"error_lost", "take_error: embedding of row 10 of 10: no failure after a wait"},
    {"error_stays", "take_error: the error is there again"},
    {"error_line", "at line 0"},
    {"supports", "of f64"},
    {"kernel_strides", "strided"},
    {"kernel_value", "add of f32"},
    {"kernel_again", "add of f32, case 0, row-major: the same call twice"},
};

/* Starts device_conformance on the broken device, in a process group; `out` reads what it says. */
static pid_t judge(const char *what, int *out) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    setenv("BROKEN", what, 1);
    if (chdir(own_folder()) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[1], 2) == 2 &&
        close(ends[0]) == 0 && close(ends[1]) == 0)
      execl("./device_conformance", "device_conformance", "ten", "backends/ltrain_broken.so",
            (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  assert_true(child > 0);
  *out = ends[0];
  return child;
}

/* Whether `text` is said; what comes after it is not waited for. */
static bool says(const char *what, const char *text) {
  char said[1 << 16];
  size_t n = 0;
  int from;
  pid_t child = judge(what, &from);
  bool found = false;
  for (ssize_t got; !found && n < sizeof said - 1; n += (size_t)got) {
    got = read(from, said + n, sizeof said - 1 - n);
    if (got <= 0) break;
    said[n + (size_t)got] = '\0';
    found = strstr(said, text) != NULL;
  }
  close(from);
  kill(-child, SIGKILL);
  waitpid(child, NULL, 0);
  return found;
}

/* Those whose number is odd, or even, every day a third of them; how many are not seen. */
static int count_unseen(size_t first) {
  int unseen = 0;
  for (size_t k = first; k < sizeof broken / sizeof *broken; k += 2) {
    if (k / 2 % 3 != 0 && !is_exhaustive()) continue;
    if (says(broken[k].what, broken[k].text)) continue;
    print_error("%s: '%s' was not said\n", broken[k].what, broken[k].text);
    unseen++;
  }
  return unseen;
}

/* Two at a time. */
static void every_broken_one_is_seen(void **state) {
  (void)state;
  int status = 0;
  pid_t odd = fork();
  if (odd == 0) _exit(count_unseen(1));
  int unseen = count_unseen(0);
  assert_int_equal(waitpid(odd, &status, 0), odd);
  assert_int_equal(status, 0);
  assert_int_equal(unseen, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_fake_device_conforms),
      cmocka_unit_test(the_fake_device_conforms_where_it_records),
      cmocka_unit_test(a_device_of_ten_kernels_conforms),
      cmocka_unit_test(every_broken_one_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
