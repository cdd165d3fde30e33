/* runtime/xla/partitions.c: how many of the plugin's devices the device stands for.

   One script runs on the whole batch, as with one device. The plugin's compiler divides each
   program among the devices (SPMD) by the annotations that program.c writes: leaves are whole on
   each device or sharded, and results are whole but where their storage is sharded. */
#include <stdio.h>
#include <string.h>

#include "xla/plugin.h"

static int first, partitions = 1;

int lt_xla_partitions(void) { return partitions; }

pjrt_device *lt_xla_device(int k) { return lt_xla_devices(NULL)[first + k]; }

bool lt_xla_memory(int k, pjrt_memory_stats *out) {
  if (lt_xla_client() == NULL || !lt_xla_has(PJRT_DEVICE_MEMORY_STATS)) return false;
  *out = (pjrt_memory_stats){.head = {.size = sizeof *out}, .device = lt_xla_device(k)};
  return lt_xla_passed(lt_xla_call(PJRT_DEVICE_MEMORY_STATS, out));
}

static bool fail_count(lt_ctx *c, int wanted, size_t there) {
  char text[200];
  bool cpu = strcmp(lt_xla_platform(), "cpu") == 0;
  snprintf(text, sizeof text, "xla: there %s %zu device%s, and %d %s wanted%s",
           there == 1 ? "is" : "are", there, there == 1 ? "" : "s", wanted,
           wanted == 1 ? "is" : "are",
           cpu ? ": the CPU plugin has more with LTRAIN_PJRT_OPTIONS=cpu_device_count=N" : "");
  return lt_xla_host->fail(c, LT_EDEVICE, text);
}

bool lt_xla_may_partition(lt_ctx *c, int *from, int *n) {
  size_t there = 0;
  lt_xla_devices(&there);
  if (*n == 0) *n = there < LT_PARTITIONS ? (int)there : LT_PARTITIONS;
  if (*n == 1) *from %= (int)there; /* ranks share what there is */
  return (*n <= LT_PARTITIONS && (size_t)(*from + *n) <= there) ||
         fail_count(c, *from + *n, there);
}

bool lt_xla_partition(int from, int n) {
  bool moves = from != first || n != partitions;
  first = from;
  partitions = n;
  return moves;
}

static size_t put_varint(unsigned char *out, uint64_t value) {
  size_t n = 0;
  for (; value > 127; value >>= 7) out[n++] = (unsigned char)(value | 128);
  out[n++] = (unsigned char)value;
  return n;
}

/* A field of bytes, or of a message. */
static size_t put_field(unsigned char *out, int field, const unsigned char *value, size_t size) {
  size_t n = put_varint(out, (uint64_t)field << 3 | 2);
  n += put_varint(out + n, size);
  memcpy(out + n, value, size);
  return n + size;
}

static size_t put_number(unsigned char *out, int field, uint64_t value) {
  size_t n = put_varint(out, (uint64_t)field << 3);
  return n + put_varint(out + n, value);
}

static uint64_t device_id(int k) {
  pjrt_device_description d = {.head = {.size = sizeof d}, .device = lt_xla_device(k)};
  lt_xla_call(PJRT_DEVICE_DESCRIPTION, &d);
  pjrt_description_id id = {.head = {.size = sizeof id}, .description = d.description};
  lt_xla_call(PJRT_DESCRIPTION_ID, &id);
  return (uint64_t)id.id;
}

/* DeviceAssignmentProto: replica_count (1), computation_count (2), and for each partition a
   ComputationDevice (3) with its replica_device_ids (1). */
static size_t put_assignment(unsigned char *out) {
  size_t n = put_number(out, 1, 1);
  n += put_number(out + n, 2, (uint64_t)partitions);
  for (int k = 0; k < partitions; k++) {
    unsigned char ids[16], id[10];
    size_t size = put_field(ids, 1, id, put_varint(id, device_id(k)));
    n += put_field(out + n, 3, ids, size);
  }
  return n;
}

/* CompileOptionsProto: executable_build_options (3): num_replicas (4), num_partitions (5),
   use_spmd_partitioning (6), device_assignment (9). */
size_t lt_xla_compile_options(char out[LT_COMPILE_OPTIONS]) {
  unsigned char build[LT_COMPILE_OPTIONS], assignment[LT_COMPILE_OPTIONS / 2];
  size_t n = put_number(build, 4, 1);
  n += put_number(build + n, 5, (uint64_t)partitions);
  if (partitions > 1) n += put_number(build + n, 6, 1);
  if (partitions > 1 || first > 0)
    n += put_field(build + n, 9, assignment, put_assignment(assignment));
  return put_field((unsigned char *)out, 3, build, n);
}

pjrt_error *lt_xla_compile(const char *text, size_t size, pjrt_loaded **out) {
  char options[LT_COMPILE_OPTIONS];
  pjrt_program p = {.head = {.size = sizeof p}, .code = text, .code_size = size, .format = "mlir",
                    .format_size = 4};
  pjrt_compile a = {.head = {.size = sizeof a}, .client = lt_xla_client(), .program = &p,
                    .options = options, .options_size = lt_xla_compile_options(options)};
  pjrt_error *error = lt_xla_call(PJRT_CLIENT_COMPILE, &a);
  *out = error == NULL ? a.loaded : NULL;
  return error;
}
