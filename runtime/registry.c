/* runtime/registry.c: THE list of what this build contains. The only file with #if LT_WITH_*. */
#include "registry.h"

#include <pthread.h>

#include "cpu/cpu.h"

static lt_registry registry;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void) {
  const lt_device_ops *cpu = lt_cpu_device();
  registry.devices[registry.n_devices++] = cpu;
  registry.devices[registry.n_devices++] = lt_fake_ops(cpu);
}

const lt_registry *lt_registry_here(void) {
  pthread_once(&once, fill);
  return &registry;
}
