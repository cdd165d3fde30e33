/* spec/c/mpi_test.c: the MPI backend under mpirun, on 1 to 4 ranks: all that a backend must do. */
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

static bool built(lt_ctx *c) {
  c->policy.dlopen = true;
  if (lt_backend_comm(c, "mpi", NULL) != NULL) return true;
  expect_failure(c, LT_EIO, "mpi: this ltrain was built without MPI: install Open MPI's headers "
                            "(Debian: apt-get install libopenmpi-dev) and build it with "
                            "-DLT_MPI=ON");
  return false;
}

/* N processes under mpirun; every day 2 or 3. */
static void conforms(void **state) {
  if (!built(*state) || shell("command -v mpirun >/dev/null") != 0) {
    print_message("# no MPI here: skipped\n");
    skip();
  }
  for (int ranks = 1; ranks <= 4; ranks++) {
    if (ranks != 2 + everyday_of(2) && !is_exhaustive()) continue;
    assert_int_equal(
        shell("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 1 100 "
              "mpirun --oversubscribe -n %d '%s/comm_conformance' mpi",
              ranks, own_folder()),
        0);
  }
}

static void test_says_what_it_is(void **state) {
  lt_ctx *c = *state;
  if (!built(c)) skip();
  const char *about = lt_backend_about("mpi");
  assert_non_null(strstr(about, "MPI"));
  assert_null(strchr(about, ','));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(conforms),
      OP_TEST(test_says_what_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
