/* spec/c/cores_test.c: cores that quotas of control groups leave, from files as the system's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cores.h"

static char folder[64];

static const char *path_of(char out[128], const char *name) {
  snprintf(out, 128, "%s/%s", folder, name);
  return out;
}
#define PATH(name) path_of((char[128]){0}, name)

static int make_folders(void **state) {
  static const char *const names[] = {"cgroup", "cgroup/a", "cgroup/a/b", "cgroup/cpu",
                                      "cgroup/cpu/a"};
  (void)state;
  strcpy(folder, "/tmp/lt_cores_XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (mkdir(PATH(names[i]), 0700) != 0) return -1;
  return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)info, (void)type, (void)at;
  return remove(path);
}

static int remove_folders(void **state) {
  (void)state;
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void set_file(const char *name, const char *text) {
  FILE *file = fopen(PATH(name), "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

/* With these groups of the process, once a file has this text. */
static int quota(const char *groups, const char *file, const char *text) {
  set_file("groups", groups);
  set_file(file, text);
  return lt_quota_of(PATH("groups"), PATH("cgroup"));
}

static void a_quota_is_read_in_whole_cores(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int cores;
  } cases[] = {{"max 100000\n", INT_MAX}, {"400000 100000\n", 4}, {"399999 100000\n", 3},
               {"50000 100000\n", 1},     {"30000 10000\n", 3},   {"200000\n", INT_MAX},
               {"", INT_MAX},             {"0 100000\n", INT_MAX}, {"nonsense\n", INT_MAX},
               {"9223372036854775807 1\n", INT_MAX}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(quota("0::/a\n", "cgroup/a/cpu.max", cases[i].text), cases[i].cores);
}

static void the_least_of_a_group_and_those_above_counts(void **state) {
  (void)state;
  quota("0::/a/b\n", "cgroup/a/cpu.max", "300000 100000\n");
  assert_int_equal(quota("0::/a/b\n", "cgroup/a/b/cpu.max", "max 100000\n"), 3);
  assert_int_equal(quota("0::/a/b\n", "cgroup/a/b/cpu.max", "200000 100000\n"), 2);
  assert_int_equal(quota("0::/a/b\n", "cgroup/a/b/cpu.max", "500000 100000\n"), 3);
  /* A container's own mount, and a path that is the machine's. */
  assert_int_equal(quota("0::/docker/abc\n", "cgroup/cpu.max", "600000 100000\n"), 6);
  assert_int_equal(quota("0::/\n", "cgroup/cpu.max", "700000 100000\n"), 7);
}

static void version_1_has_a_file_for_each_number(void **state) {
  (void)state;
  static const char groups[] = "5:memory:/a\n4:cpu,cpuacct:/a\n3:cpuset:/\n";
  assert_int_equal(quota(groups, "cgroup/cpu/a/cpu.cfs_quota_us", "250000\n"), INT_MAX);
  assert_int_equal(quota(groups, "cgroup/cpu/a/cpu.cfs_period_us", "100000\n"), 2);
  assert_int_equal(quota(groups, "cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"), INT_MAX);
  quota(groups, "cgroup/cpu/cpu.cfs_period_us", "100000\n");
  assert_int_equal(quota(groups, "cgroup/cpu/cpu.cfs_quota_us", "100000\n"), 1);
  assert_int_equal(quota("4:cpuacct:/a\n", "cgroup/cpu/a/cpu.cfs_quota_us", "100000\n"), INT_MAX);
}

static void without_groups_there_is_no_limit(void **state) {
  (void)state;
  assert_int_equal(lt_quota_of(PATH("none"), PATH("cgroup")), INT_MAX);
  assert_int_equal(quota("\n:\nnonsense\n0::/no/such/group\n", "other", ""), INT_MAX);
  assert_true(lt_core_count() >= 1 && lt_core_count() <= lt_cpu_count());
}

static void lists_of_cores_are_read_and_kept_to(void **state) {
  char before[4096], after[4096], one[16];
  (void)state;
  assert_true(lt_cores_list(before, sizeof before));
  assert_false(lt_cores_list(before, 1));
  assert_true(lt_cores_list(before, sizeof before));
  snprintf(one, sizeof one, "%ld", strtol(before, NULL, 10));
  static const char *const wrong[] = {"", "\n", "x", "0-", "0 1", "-1", "9999", "3-1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(lt_cores_keep(wrong[i]));
  assert_true(lt_cores_keep(one));
  assert_true(lt_cores_list(after, sizeof after));
  assert_string_equal(after, one);
  assert_int_equal(lt_cpu_count(), 1);
  assert_true(lt_cores_set(before));
  assert_true(lt_cores_list(after, sizeof after));
  assert_string_equal(after, before);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folders, remove_folders)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_quota_is_read_in_whole_cores),
      TEST(the_least_of_a_group_and_those_above_counts),
      TEST(version_1_has_a_file_for_each_number),
      TEST(without_groups_there_is_no_limit),
      TEST(lists_of_cores_are_read_and_kept_to),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
