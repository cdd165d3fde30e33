/* runtime/registry.c: THE list of what this build contains. The only file with #if LT_WITH_*. */
#include "registry.h"

#include <pthread.h>

#include "comm/comm.h"
#include "cpu/cpu.h"

enum { PARTS = 8, TEXT = 160 };

static lt_registry registry;
static lt_part parts[PARTS];
static int n_parts;
static char cpu_text[TEXT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void) {
  const lt_device_ops *cpu = lt_cpu_device();
  registry.devices[registry.n_devices++] = cpu;
  registry.devices[registry.n_devices++] = lt_fake_ops(cpu);
  lt_comm_host_use(cpu);
}

const lt_registry *lt_registry_here(void) {
  pthread_once(&once, fill);
  return &registry;
}

static void add_part(const char *name, bool present, const char *text) {
  parts[n_parts++] = (lt_part){.name = name, .present = present, .text = text};
}

/* Apart from the tables: nobody's start waits for it. */
static void describe(void) {
  lt_cpu_describe(cpu_text, sizeof cpu_text);
  add_part("cpu", true, cpu_text);
  add_part("cuda", false, "not in this version");
  add_part("mpi", false, "not in this version");
  add_part("nccl", false, "not in this version");
}

const lt_part *lt_registry_parts(int *n) {
  static pthread_once_t described = PTHREAD_ONCE_INIT;
  pthread_once(&described, describe);
  *n = n_parts;
  return parts;
}
