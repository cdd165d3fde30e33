/* spec/gpu/illegal_address.c: computes with a tensor at an address of a GPU that is nobody's; ./dev
   gpu looks at the error that the process ends with. */
#include <stdint.h>
#include <stdio.h>

#include "ltrain.h"
#include "ltrain/dlpack.h"

static const char SCRIPT[] =
  "function work(x)\n"
  "  local y = x:exp()\n"
  "  return y:sum():item()\n"
  "end\n";

static int64_t size = 1024;

static DLManagedTensor managed = {
  .dl_tensor = {.data = (void *)(uintptr_t)0x1000,
                .device = {kDLCUDA, 0},
                .ndim = 1,
                .dtype = {kDLFloat, 32, 1},
                .shape = &size},
};

int main(void) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.allow = LTRAIN_LOAD_LIBRARIES;
  ltrain *l = ltrain_open(&config);
  lt_tensor *x = ltrain_from_dlpack_unversioned(l, &managed);
  double sum = 0;
  if (x != NULL && ltrain_dostring(l, SCRIPT, "work.lua") &&
      ltrain_call(l, "work", "T>d", x, &sum)) {
    printf("no error: %g\n", sum);
    return 0;
  }
  fprintf(stderr, "%s\n", ltrain_errmsg(l));
  return 1;
}
