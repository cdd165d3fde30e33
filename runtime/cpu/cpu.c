/* runtime/cpu/cpu.c: the cpu as a device: memory, and the choice of the instruction level.

   Every kernel is compiled once for each level of x86-64 (the System V ABI's micro-architecture
   levels v2, v3, v4) and once plainly; the best one that the processor runs is chosen at the start.
   LTRAIN_CPU_LEVEL chooses another one, for tests and for comparisons of machines. */
#include "cpu/cpu.h"

#if defined __x86_64__
#include <cpuid.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/onednn.h"
#include "ops/op.h"

#define LT_CPU_LEVEL(level)                                                                 \
  extern const lt_kernel lt_cpu_kernels_##level[LT_OP_COUNT];                               \
  bool lt_cpu_combine_##level(lt_ctx *c, int index, lt_stream *stream, void *dst,           \
                              const void *a, const void *b, int64_t n, lt_dtype dtype,      \
                              lt_comm_reduce reduce);                                       \
  bool lt_cpu_divide_##level(lt_ctx *c, int index, lt_stream *stream, void *data,           \
                             int64_t n, lt_dtype dtype, int by);                            \
  bool lt_cpu_scale_##level(lt_ctx *c, int index, lt_stream *stream, void *data,            \
                            int64_t n, lt_dtype dtype, double by);
#include "cpu/levels.def"
#undef LT_CPU_LEVEL

static int count(void) { return 1; }

/* oneDNN's convolutions are about twice as fast so. */
static lt_layout layout(int op, lt_dtype dtype) {
  (void)op, (void)dtype;
  return LT_CHANNELS_LAST;
}

/* Arenas of 2 MiB and more are aligned to huge pages: the first writes to 4, 20 and 200 MB take
   0.5, 2.5 and 80 ms then, with small pages 7, 24 and 146 ms (medians of fresh processes).
   Alignment of 64 bytes is a cache line and the widest vector. */
static void *allocate(int index, size_t bytes) {
  if (index != 0) return NULL;
  const size_t huge = (size_t)2 << 20;
  size_t align = bytes >= huge ? huge : 64;
  void *p = aligned_alloc(align, (bytes + align - 1) / align * align);
#ifdef MADV_HUGEPAGE
  if (p != NULL && bytes >= huge) madvise(p, bytes, MADV_HUGEPAGE);
#endif
  return p;
}

static void release(int index, void *ptr, size_t bytes) {
  (void)index, (void)bytes;
  free(ptr);
}

#define DEVICE(level)                                                                       \
  {.size = sizeof(lt_device_ops), .version = LT_BACKEND_VERSION, .name = "cpu",             \
   .host_memory = true, .forks = true, .kernels = lt_cpu_kernels_##level, .count = count,   \
   .layout = layout, .alloc = allocate, .free = release,                                    \
   .combine = lt_cpu_combine_##level,                                                       \
   .divide = lt_cpu_divide_##level, .scale = lt_cpu_scale_##level}

static const struct {
  const char *name;
  lt_device_ops device;
} levels[] = {
#define LT_CPU_LEVEL(level) {.name = #level, .device = DEVICE(level)},
#include "cpu/levels.def"
#undef LT_CPU_LEVEL
};
enum { N_LEVELS = sizeof levels / sizeof *levels };

#if defined __x86_64__
/* What of x86-64-v3 clang 14 knows no name for. CPUID itself is asked: F16C and MOVBE are bits of
   leaf 1, LZCNT of leaf 0x80000001. */
static bool has_rest_of_v3(void) {
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  if ((c & bit_F16C) == 0 || (c & bit_MOVBE) == 0) return false;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_LZCNT) != 0;
}
#endif

bool lt_cpu_runs(const char *level) {
#if defined __x86_64__ /* by features: clang 14 does not know "x86-64-v3" */
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_rest_of_v3();
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  if (strcmp(level, "v2") == 0) return v2;
  if (strcmp(level, "v3") == 0) return v3;
  if (strcmp(level, "v4") == 0) return v4;
#endif
  return strcmp(level, "plain") == 0;
}

/* The level that the environment asks for; NULL: none. */
static const char *wanted_level(void) {
  const char *wanted = getenv("LTRAIN_CPU_LEVEL");
  return wanted != NULL && *wanted != 0 ? wanted : NULL;
}

/* The levels are in ascending order: the last one that runs, or the one asked for. */
static int choose(void) {
  const char *wanted = wanted_level();
  int best = 0;
  for (int k = 0; k < N_LEVELS; k++) {
    if (!lt_cpu_runs(levels[k].name)) continue;
    best = k;
    if (wanted != NULL && strcmp(wanted, levels[k].name) == 0) break;
  }
  return best;
}

/* "v2, v3": the levels of this build, or those of them that this machine runs. */
static void list_levels(char *text, size_t size, bool runs) {
  size_t n = 0;
  text[0] = 0;
  for (int k = 0; k < N_LEVELS && n < size; k++)
    if (!runs || lt_cpu_runs(levels[k].name))
      n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "", levels[k].name);
}

bool lt_cpu_usable(char *text, size_t size) {
  const char *wanted = wanted_level();
  char names[64];
  list_levels(names, sizeof names, true);
  if (names[0] == 0) {
    snprintf(text, size,
             "this processor is below x86-64-%s, the least that ltrain needs (SSE4.2 "
             "and POPCNT)",
             levels[0].name);
    return false;
  }
  if (wanted == NULL || strcmp(wanted, levels[choose()].name) == 0) return true;
  bool known = false;
  for (int k = 0; k < N_LEVELS; k++) known = known || strcmp(wanted, levels[k].name) == 0;
  if (!known) list_levels(names, sizeof names, false);
  snprintf(text, size,
           known ? "LTRAIN_CPU_LEVEL=%.20s: this processor runs only %s"
                 : "LTRAIN_CPU_LEVEL=%.20s: no such level: this build has %s",
           wanted, names);
  return false;
}

/* op_hash lets a backend of another build be refused: its op numbers would mean other
   operations. */
const lt_device_ops *lt_cpu_device(void) {
  static lt_device_ops device;
  device = levels[choose()].device;
  device.op_hash = lt_op_hash();
  return &device;
}

const char *lt_cpu_level(void) { return levels[choose()].name; }
void lt_cpu_describe(char *text, size_t size) {
  char version[32];
  lt_onednn_version(version, sizeof version);
  snprintf(text, size, "instructions of level %s, bf16 %s, oneDNN %s", lt_cpu_level(),
           lt_onednn_has_bf16() ? "in hardware" : "through f32", version);
}

void lt_cpu_warm_up(lt_ctx *c) { lt_onednn_warm_up(c); }
