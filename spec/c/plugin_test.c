/* spec/c/plugin_test.c: opening backends that are shared objects: what is refused, in which words;
   and that a small one from outside does what all must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/plugin.h"
#include "conformance.h"
#include "exhaustive.h"
#include "registry.h"
#include "tensor_test.h"

static char path[1200];

static const char *beside(const char *name) {
  snprintf(path, sizeof path, "%s/backends/%s", own_folder(), name);
  return path;
}

static int open_all(void **state) {
  int status = open_ctx(state);
  if (status == 0) ((lt_ctx *)*state)->policy.dlopen = true;
  return status;
}
#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_ctx)

static void refused(lt_ctx *c, int odd, const char *text) {
  char name[32];
  snprintf(name, sizeof name, "odd_%d.so", odd);
  assert_null(lt_backend_comm(c, "odd", beside(name)));
  expect_failure(c, LT_EIO, text);
}

static void test_refuses_odd_ones(void **state) {
  lt_ctx *c = *state;
  char text[1400];
  refused(c, 1, "odd: made for backends of version 4, this ltrain has version 3");
  refused(c, 2, "odd: built with other operations than this ltrain 0.1.0: build it again");
  snprintf(text, sizeof text,
           "odd: its collectives are of version %d (%zu bytes), this ltrain has "
           "version %d (%zu bytes)",
           LT_COMM_VERSION + 1, sizeof(lt_comm_ops), LT_COMM_VERSION, sizeof(lt_comm_ops));
  refused(c, 3, text);
  refused(c, 4, "odd: its table lacks `open`");
  refused(c, 5, "odd: no wire in the wall");
  refused(c, 6, "odd: has neither collectives nor devices");
  snprintf(text, sizeof text, "odd: not a backend: no lt_backend_open in %s", beside("odd_7.so"));
  refused(c, 7, text);
  refused(c, 8, "odd: libodd_needed.so not found");
}

static void test_says_what_is_not_there(void **state) {
  lt_ctx *c = *state;
  setenv("LTRAIN_BACKENDS", "/nowhere", 1);
  assert_null(lt_backend_comm(c, "mpi", NULL));
  expect_failure(c, LT_EIO, "mpi: no ltrain_mpi.so in /nowhere (LTRAIN_BACKENDS)");
  unsetenv("LTRAIN_BACKENDS");
  assert_null(lt_backend_comm(c, "pigeon", NULL));
  expect_failure(c, LT_EIO, "pigeon: no such backend: neither built in nor as ltrain_pigeon.so");
  assert_null(lt_backend_comm(c, "pigeon", "/nowhere/pigeon.so"));
  expect_failure(c, LT_EIO, "pigeon: cannot open /nowhere/pigeon.so: No such file or directory");
  assert_null(lt_backend_comm(c, "../pigeon", NULL));
  expect_failure(c, LT_EARG, "backend: not a name of lower case letters: '../pigeon'");
}

static void test_asks_the_policy(void **state) {
  lt_ctx *c = *state;
  c->policy.dlopen = false;
  assert_null(lt_backend_comm(c, "files", beside("ltrain_files.so")));
  expect_failure(c, LT_EIO, "files: this state may not open libraries (LTRAIN_LOAD_LIBRARIES)");
  assert_null(lt_backend_about("files"));
}

static void test_opens_once(void **state) {
  lt_ctx *c = *state;
  const lt_comm_ops *ops = lt_backend_comm(c, "files", beside("ltrain_files.so"));
  expect_ok(c);
  assert_string_equal(ops->name, "files");
  assert_string_equal(lt_backend_about("files"), "files in a folder");
  assert_ptr_equal(lt_backend_comm(c, "files", beside("ltrain_files.so")), ops);
  assert_ptr_equal(lt_backend_comm(c, "files", NULL), ops);
  assert_null(lt_backend_comm(c, "files", beside("odd_4.so")));
  char text[2600];
  snprintf(text, sizeof text, "files: a backend of this name is open already, from %s",
           beside("ltrain_files.so"));
  expect_failure(c, LT_EARG, text);
}

/* One that has collectives alone is not a device. */
static void test_has_no_devices(void **state) {
  lt_ctx *c = *state;
  char folder[2100];
  snprintf(folder, sizeof folder, "%s", beside("ltrain_files.so"));
  *strrchr(folder, '/') = 0;
  setenv("LTRAIN_BACKENDS", folder, 1);
  lt_device d;
  assert_false(lt_device_parse(c, "files", &d));
  unsetenv("LTRAIN_BACKENDS");
  expect_failure(c, LT_EDEVICE, "device: unknown device 'files'; devices here: cpu, meta");
}

/* N processes over one folder: a link of hosts, and one of devices; every day the first of 1 and 3,
   the second of 2. */
static void test_conformance(void **state) {
  (void)state;
  static const char *const names[] = {"files", "files_device"};
  for (int k = 0; k < 6; k++) {
    if (k % 2 != (k / 2) % 2 && !is_exhaustive()) continue;
    assert_int_equal(
        shell("export TMPDIR=$(mktemp -d); cd '%s'; p=; bad=0; for r in $(seq 0 %d); do timeout "
              "-k 1 60 ./comm_conformance %s backends/ltrain_%s.so $r %d $TMPDIR & p=\"$p $!\"; "
              "done; for q in $p; do wait $q || bad=1; done; rm -rf $TMPDIR; exit $bad",
              own_folder(), k / 2, names[k % 2], names[k % 2], k / 2 + 1),
        0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_refuses_odd_ones), TEST(test_says_what_is_not_there),
      TEST(test_asks_the_policy),  TEST(test_opens_once),
      TEST(test_has_no_devices),
      TEST(test_conformance),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
