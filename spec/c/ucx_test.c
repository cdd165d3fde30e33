/* spec/c/ucx_test.c: the UCX backend on 2 to 4 ranks that meet at an address: all that a backend must
   do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/plugin.h"
#include "conformance.h"
#include "exhaustive.h"
#include "registry.h"
#include "tensor_test.h"

static bool built(lt_ctx *c) {
  c->policy.dlopen = true;
  if (lt_backend_comm(c, "ucx", NULL) != NULL) return true;
  expect_failure(c, LT_EIO, "ucx: this ltrain was built without UCX: install its headers (Debian: "
                            "apt-get install libucx-dev) and build it with -DLT_UCX=ON");
  return false;
}

/* A process for each rank; every day 2 or 3. Fails when one of them does. */
static void conforms(void **state) {
  if (!built(*state)) skip();
  for (int ranks = 2; ranks <= 4; ranks++) {
    if (ranks != 2 + everyday_of(2) && !is_exhaustive()) continue;
    int port = 20000 + (int)getpid() % 10000 + ranks;
    assert_int_equal(shell("n=%d; for r in $(seq $n); do timeout -k 1 100 '%s/comm_conformance' ucx "
                           "- $((r - 1)) $n 127.0.0.1:%d & p=\"$p $!\"; done; "
                           "for one in $p; do wait $one || exit 1; done",
                           ranks, own_folder(), port),
                     0);
  }
}

static void test_says_what_it_is(void **state) {
  lt_ctx *c = *state;
  if (!built(c)) skip();
  assert_memory_equal("UCX ", lt_backend_about("ucx"), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(conforms),
      OP_TEST(test_says_what_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
