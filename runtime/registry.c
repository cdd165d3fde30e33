/* runtime/registry.c: the devices, comm backends and libraries of this build. The only file with
   #if LT_WITH_*. */
#include "registry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "cpu/cpu.h"
#include "device/fake.h"
#include "device/host.h"
#include "device/meta.h"
#include "device/plugin.h"
#include "image/libraries.h"
#include "ops/host.h"
#include "ops/op.h"

static lt_registry registry;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *op_name(int op) { return lt_ops[op].name; }

/* Only what is compiled in: backends in shared objects (CUDA, MPI, NCCL) are opened when a script
   names them, so that start-up does not load their libraries. Layers below get functions of the
   layers above as pointers here, which keeps the arrows of the architecture one-way. */
static void fill(void) {
  const lt_device_ops *cpu = lt_cpu_device();
  char why[LT_BACKEND_TEXT];
  lt_device_add(cpu, why, sizeof why);
  lt_device_add(lt_fake_ops(cpu), why, sizeof why);
  lt_device_add(lt_meta_ops(cpu), why, sizeof why);
  registry.value_error = lt_value_error;
  registry.op_name = op_name;
  lt_host_extend(lt_ops_offer);
  lt_cpu_usable(registry.refusal, sizeof registry.refusal);
}

/* Once a process: several states may be opened by several threads at the same time. */
const lt_registry *lt_registry_here(void) {
  pthread_once(&once, fill);
  return &registry;
}

/* Takes the failure of a backend that cannot be opened: "mpi: this ltrain was built without ...",
   for a row of that name. */
static void say_why(lt_ctx *c, lt_part *part) {
  lt_failure f;
  size_t n = strlen(part->name);
  if (!lt_take_failure(c, &f)) return;
  bool named = strncmp(f.text, part->name, n) == 0 && strncmp(f.text + n, ": ", 2) == 0;
  snprintf(part->text, sizeof part->text, "%.*s", (int)sizeof part->text - 1,
           named ? f.text + n + 2 : f.text);
}

/* What moves bytes between ranks, by opening its backend: what is there but cannot be opened is not
   present. */
static lt_part comm_part(lt_ctx *c, const char *name) {
  lt_part part = {.name = name};
  part.present = lt_backend_comm(c, name, NULL) != NULL;
  if (part.present)
    snprintf(part.text, sizeof part.text, "%s", lt_backend_about(name));
  else
    say_why(c, &part);
  return part;
}

/* Devices of a backend, `unit` to users: it is there, and so is one that it can use. */
static lt_part device_part(lt_ctx *c, const char *name, const char *unit) {
  lt_part part = {.name = name};
  const lt_backend *b = lt_backend_load(c, name, NULL);
  if (b == NULL) {
    say_why(c, &part);
    return part;
  }
  char why[LT_BACKEND_TEXT] = "there is none", first[96] = "";
  int n = lt_device_count(b->device);
  bool available = b->device->available == NULL || b->device->available(why, sizeof why);
  part.present = n > 0 && available;
  if (part.present && b->device->describe != NULL)
    b->device->describe(0, first, sizeof first);
  if (part.present)
    snprintf(part.text, sizeof part.text, "%s, %d %s%s: %s", b->about, n, unit,
             n == 1 ? "" : "s", first);
  else
    snprintf(part.text, sizeof part.text, "%s: %.250s", b->about, why);
  return part;
}

/* A format of image files, by the library that is opened for it. */
static lt_part image_part(lt_ctx *c, const char *name, const char *library, bool present) {
  lt_part part = {.name = name, .present = present};
  snprintf(part.text, sizeof part.text, "%s", library);
  say_why(c, &part);
  return part;
}

int lt_registry_parts(lt_ctx *c, lt_part parts[LT_PARTS]) {
  parts[0] = (lt_part){.name = "cpu", .present = true};
  lt_cpu_describe(parts[0].text, sizeof parts[0].text);
  parts[1] = device_part(c, "cuda", "GPU");
  parts[2] = device_part(c, "xla", "plugin");
  parts[3] = comm_part(c, "mpi");
  parts[4] = comm_part(c, "ucx");
  parts[5] = comm_part(c, "nccl");
  parts[6] = image_part(c, "jpeg", "libturbojpeg", lt_turbojpeg_open(c, "jpeg") != NULL);
  parts[7] = image_part(c, "png", "libspng", lt_spng_open(c, "png") != NULL);
  parts[8] = image_part(c, "webp", "libwebp", lt_webp_open(c, "webp") != NULL);
  return LT_PARTS;
}
