/* spec/c/device_conformance.c: whether a device does what ltrain/backend.h says.

     device_conformance NAME [PATH]

   PATH is that of its shared object; without it ltrain finds it by its name. Prints what failed and
   exits with 1, or says that it conforms. */
#include "device_conformance.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"
#include "device/plugin.h"
#include "device/stream.h"
#include "exhaustive.h"
#include "ops/op.h"
#include "registry.h"

enum { LIMIT_S = 280, MIB = 1 << 20, MOST = 50 /* failures */ };

const lt_device_ops *ops;
lt_device device;
int devices;
static int failures;

void fault(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  if (++failures < MOST) return;
  fputs("and no more is looked at\n", stderr);
  _exit(1);
}

/* What cannot be used cannot be tested further. */
static void give_up(const char *what, const char *text) {
  fault("%s: %s", what, text);
  fflush(NULL);
  _exit(1);
}

bool good(lt_ctx *c, bool ok, const char *what) {
  lt_failure f;
  if (lt_take_failure(c, &f))
    fault("%s: failed%s: %s", what, ok ? ", but returned no failure" : "", f.text);
  else if (!ok)
    fault("%s: failed, but left no failure in the ctx", what);
  else
    return true;
  return false;
}

void bad(lt_ctx *c, bool ok, const char *what) {
  bool failed = lt_take_failure(c, NULL);
  if (ok || !failed) fault("%s: %s", what, ok ? "did not fail" : "left no failure in the ctx");
}

/* Each byte by itself, so that the compiler makes many at once: there are many. */
static unsigned char byte_of(size_t k, unsigned seed) {
  unsigned x = ((unsigned)k + seed * 40503u) * 2654435761u;
  return (unsigned char)((x ^ x >> 15) >> 8);
}

void pattern(void *memory, size_t bytes, unsigned seed) {
  unsigned char *p = memory;
  for (size_t k = 0; k < bytes; k++) p[k] = byte_of(k, seed);
}

bool is_pattern(const void *memory, size_t bytes, unsigned seed) {
  const unsigned char *p = memory;
  unsigned differ = 0;
  for (size_t k = 0; k < bytes; k++) differ |= (unsigned)(p[k] ^ byte_of(k, seed));
  return differ == 0;
}

lt_stream *stream_of(lt_ctx *c, int index, int which) {
  static lt_stream *all[LT_MAX_DEVICES][STREAMS];
  if (ops->launch == NULL) return NULL;
  if (all[index][which] == NULL)
    all[index][which] = ops->stream_new(c, index, which == STREAM_URGENT);
  return good(c, all[index][which] != NULL, "stream_new") ? all[index][which] : NULL;
}

void *host_new(size_t bytes) {
  void *memory = ops->host_alloc != NULL ? ops->host_alloc(bytes) : malloc(bytes);
  if (memory == NULL) give_up("host_alloc", "no memory");
  return memory;
}

void host_free(void *memory, size_t bytes) {
  if (ops->host_free != NULL)
    ops->host_free(memory, bytes);
  else
    free(memory);
}

static lt_ctx *fresh(void) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  c->policy.dlopen = true;
  lt_frame_open(c);
  return c;
}

/* ---- tensors of the device ---- */

static lt_tensor *filled(lt_ctx *c, int64_t n, double value) {
  lt_tensor *t = lt_full(c, lt_shape_of(1, &n), lt_scalar_of(value), LT_F32, LT_CPU_DEVICE);
  return lt_to_device(c, t, device);
}

/* The only value that a tensor of f32 holds; NaN: it holds several. */
static float value_of(lt_ctx *c, lt_tensor *t) {
  float *v = malloc((size_t)t->numel * sizeof *v);
  float first = lt_tensor_read(c, t, v) ? v[0] : 0.0f / 0.0f;
  for (int64_t k = 1; k < t->numel; k++)
    if (v[k] != first) first = 0.0f / 0.0f;
  free(v);
  return first;
}

/* Enough to see whether the device works at all: bytes, and an op. */
static void use(void) {
  lt_ctx *c = fresh();
  lt_tensor *x = filled(c, 1000, 2);
  x = x != NULL ? lt_binary(c, LT_OP_add, x, x) : NULL;
  if (good(c, x != NULL, "a tensor of the device") && value_of(c, x) != 4)
    fault("add: 2 + 2 is not 4 on the device");
  good(c, true, "a tensor of the device");
  lt_ctx_release(c);
}

/* The same with work under way at the end: of the ctx, then of the process, which holds it still. */
static void leave_work_behind(void) {
  static lt_ctx *c;
  c = fresh();
  lt_tensor *x = filled(c, 30000, 2);
  for (int k = 0; k < 50 && x != NULL; k++) x = lt_binary(c, LT_OP_add, x, x);
  lt_ctx_release(c);
  c = fresh();
  x = filled(c, 30000, 2);
  for (int k = 0; k < 50 && x != NULL; k++) x = lt_binary(c, LT_OP_add, x, x);
}

/* In a child, which ends as programs do. */
static void in_child(void (*fn)(void), const char *what) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(LIMIT_S / 4);
    failures = 0;
    fn();
    exit(failures > 0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) give_up("fork", "no child");
  if (WIFSIGNALED(status))
    fault("%s: ended by signal %d", what, WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0)
    fault("%s: failed", what);
}

/* ---- the table ---- */

static int entries(const char *folder) {
  int n = 0;
  DIR *d = opendir(folder);
  while (d != NULL && readdir(d) != NULL) n++;
  if (d != NULL) closedir(d);
  return n;
}

static int threads, files; /* of the process before the backend was opened */

static void test_counting(void) {
  char why[LT_BACKEND_TEXT] = "";
  int n = ops->count(), again = ops->count();
  bool can = ops->available == NULL || ops->available(why, sizeof why);
  if (again != n) fault("count: %d, and then %d", n, again);
  if (entries("/proc/self/task") != threads) fault("count, available: a thread was started");
  if (entries("/proc/self/fd") != files) fault("count, available: a file was left open");
  if (!can) give_up("available", why[0] != '\0' ? why : "false without a reason");
  if (n <= 0) give_up("count", "there is no device");
  devices = lt_device_count(ops);
  in_child(use, "count, available: a child forked after them uses the device");
}

static void test_open(lt_ctx *c) {
  const int wrong[] = {-1, devices};
  for (int k = 0; k < 2 && ops->open != NULL; k++)
    bad(c, ops->open(c, wrong[k]), "open: a device that is not there");
  for (int k = 0; k < devices && ops->open != NULL; k++) good(c, ops->open(c, k), "open");
  lt_device_error e;
  for (int k = 0; k < devices && ops->take_error != NULL; k++)
    if (ops->take_error(c, k, &e)) fault("take_error: an error before any work");
  char text[64];
  lt_device d;
  snprintf(text, sizeof text, "%s:%d", ops->name, devices);
  bad(c, lt_device_parse(c, text, &d), text);
}

/* ---- memory ---- */

static void move(lt_ctx *c, int index, lt_copy way, void *dst, const void *src, size_t bytes) {
  lt_stream *s = stream_of(c, index, STREAM_A);
  if (ops->copy == NULL)
    memcpy(dst, src, bytes);
  else
    good(c, ops->copy(c, s, way, index, dst, index, src, bytes, LT_U8), "copy");
}

/* Blocks are apart, aligned, and there to their last byte. */
static void test_blocks(lt_ctx *c, int index) {
  static const size_t sizes[] = {1, 64, 1000, 4096, 65537, MIB, 2 * MIB, 512, 4 * MIB, 8};
  enum { N = sizeof sizes / sizeof *sizes };
  static char host[4 * MIB];
  void *block[N];
  for (int k = 0; k < N; k++) {
    block[k] = ops->alloc(index, sizes[k]);
    if (block[k] == NULL) give_up("alloc", "no memory");
    if ((uintptr_t)block[k] % 64 != 0) fault("alloc: %zu bytes are not 64-byte aligned", sizes[k]);
    pattern(host, sizes[k], (unsigned)k);
    move(c, index, LT_TO_DEVICE, block[k], host, sizes[k]);
  }
  for (int k = 0; k < N; k++) {
    move(c, index, LT_TO_HOST, host, block[k], sizes[k]);
    if (!is_pattern(host, sizes[k], (unsigned)k))
      fault("alloc: what a block of %zu bytes held was overwritten through another", sizes[k]);
  }
  for (int k = 0; k < N; k++) ops->free(index, block[k], sizes[k]);
}

static void test_limits(int index) {
  if (ops->alloc(index, (size_t)1 << 55) != NULL) fault("alloc: 2^55 bytes");
  if (ops->alloc(-1, 64) != NULL || ops->alloc(devices, 64) != NULL)
    fault("alloc: memory of a device that is not there");
}

static void test_memory_info(int index) {
  enum { BLOCK = 32 * MIB };
  int64_t before, during, after, total;
  if (ops->memory_info == NULL) return;
  if (ops->memory_info(-1, &before, &total) || ops->memory_info(devices, &before, &total))
    fault("memory_info: of a device that is not there");
  if (!ops->memory_info(index, &before, &total)) return; /* it does not know */
  if (before < 0 || before > total || total <= 0)
    fault("memory_info: %lld bytes free of %lld", (long long)before, (long long)total);
  void *p = ops->alloc(index, BLOCK);
  ops->memory_info(index, &during, &total);
  if (p != NULL) ops->free(index, p, BLOCK);
  ops->memory_info(index, &after, &total);
  if (before - during < BLOCK / 2 || after - during < BLOCK / 2)
    fault("memory_info: %lld bytes free, %lld with %d more in use, %lld without",
          (long long)before, (long long)during, BLOCK, (long long)after);
}

static void test_pinned(void) {
  if (ops->host_alloc == NULL) return;
  char *a = ops->host_alloc(1000003), *b = ops->host_alloc(64);
  if (a == NULL || b == NULL) return fault("host_alloc: no memory");
  memset(b, 7, 64);
  pattern(a, 1000003, 1);
  for (int k = 0; k < 64; k++)
    if (b[k] != 7) return fault("host_alloc: two blocks are one");
  ops->host_free(a, 1000003);
  ops->host_free(b, 64);
}

/* ---- what ltrain makes of it ---- */

/* A side stream reads what the home stream writes, and the other way round. */
static void test_order(lt_ctx *c) {
  if (ops->launch == NULL) return;
  lt_stream *side = lt_stream_of(c, device, LT_STREAM_COMM);
  if (!good(c, side != NULL, "stream_new")) return;
  lt_tensor *x = filled(c, MIB / 4, 5), *y = lt_binary(c, LT_OP_add, x, x);
  lt_stream_set(c, device, side);
  lt_tensor *z = lt_binary(c, LT_OP_add, y, y);
  lt_copy_into(c, y, x);
  lt_stream_set(c, device, NULL);
  lt_tensor *w = lt_binary(c, LT_OP_add, z, y);
  if (good(c, w != NULL, "add") && (value_of(c, z) != 20 || value_of(c, w) != 25))
    fault("streams: %g and %g where 20 and 25 are right", (double)value_of(c, z),
          (double)value_of(c, w));
}

typedef struct helper {
  lt_ctx *c;
  float got;
} helper;

static void compute(void *ud) {
  helper *h = ud;
  lt_tensor *x = filled(h->c, 1000, 0), *one = filled(h->c, 1000, 1);
  for (int k = 0; k < 200 && lt_ok(h->c); k++) x = lt_binary(h->c, LT_OP_add, x, one);
  h->got = lt_ok(h->c) ? value_of(h->c, x) : -1;
}

/* Each thread with a ctx of its own. */
static void test_threads(lt_ctx *c) {
  helper h[3];
  lt_thread t[3];
  for (int k = 0; k < 3; k++) {
    h[k] = (helper){.c = lt_ctx_child(c)};
    t[k] = (lt_thread){.name = "adder", .fn = compute, .ud = &h[k]};
    lt_frame_open(h[k].c);
    lt_thread_start(c, &t[k]);
  }
  for (int k = 0; k < 3; k++) {
    lt_thread_join(c, &t[k]);
    if (good(h[k].c, true, "a thread") && h[k].got != 200)
      fault("threads: 200 times 1 is %g", (double)h[k].got);
    lt_ctx_release(h[k].c);
  }
}

/* Rows of a table, of which there are 10. */
static lt_tensor *rows(lt_ctx *c, int64_t id, uint32_t line) {
  c->line = line;
  lt_tensor *table = lt_reshape(c, filled(c, 60, 3), lt_shape_of(2, (int64_t[]){10, 6}));
  lt_tensor *ids = lt_full(c, lt_shape_of(1, (int64_t[]){4}), lt_scalar_int(id), LT_I64,
                           LT_CPU_DEVICE);
  return lt_apply1(c, LT_OP_embedding, LT_IN(table, lt_to_device(c, ids, device)), NULL);
}

/* A value that a kernel cannot take is a failure by the next wait, of the line that issued the
   first such op; then the word is empty again. */
static void test_values(lt_ctx *c) {
  static const int64_t wrong[] = {10, -1, 123456789012};
  lt_failure f;
  for (int k = 0; k < 3; k++) {
    char value[32];
    snprintf(value, sizeof value, "%lld", (long long)wrong[k]);
    rows(c, wrong[k], 11);
    if (lt_ok(c)) rows(c, 77, 12);
    if (lt_ok(c)) lt_device_synchronize(c, device);
    if (!lt_take_failure(c, &f))
      fault("take_error: embedding of row %s of 10: no failure after a wait", value);
    else if (strstr(f.text, value) == NULL || f.line != 11 || strncmp(f.text, "embedding", 9) != 0)
      fault("take_error: embedding of row %s at line 11: '%s' at line %u", value, f.text, f.line);
    if (!lt_device_synchronize(c, device))
      fault("take_error: the error is there again after it was taken");
    lt_take_failure(c, NULL);
  }
  lt_tensor *fine = rows(c, 9, 13);
  if (good(c, fine != NULL && lt_device_synchronize(c, device), "embedding") &&
      value_of(c, fine) != 3)
    fault("embedding: not the row that was asked for");
}

/* Each root has its own errors: it alone knows the lines, and waits for its work. */
static void test_roots(lt_ctx *c) {
  lt_ctx *other = fresh();
  lt_failure f;
  rows(other, 77, 21);
  rows(c, 9, 22);
  if (!lt_device_synchronize(c, device) && lt_take_failure(c, &f))
    fault("take_error: a root has the error of another: '%s'", f.text);
  lt_device_synchronize(other, device);
  if (!lt_take_failure(other, &f) || f.line != 21)
    fault("take_error: the error of the second of two roots is lost");
  lt_ctx_release(other);
}

static lt_ctx *find(int argc, char **argv) {
  lt_ctx *c = fresh();
  lt_failure f;
  threads = entries("/proc/self/task");
  files = entries("/proc/self/fd");
  bool ok = argc < 3 || lt_backend_load(c, argv[1], argv[2]) != NULL;
  if (!ok || !lt_device_parse(c, argv[1], &device)) {
    lt_take_failure(c, &f);
    give_up("load", f.text);
  }
  ops = lt_device_table(c, device);
  return c;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: device_conformance NAME [PATH]\n", stderr);
    return 2;
  }
  const char *limit = getenv("LT_TEST_LIMIT");
  alarm(limit != NULL ? (unsigned)atoi(limit) : is_exhaustive() ? 20 * LIMIT_S : LIMIT_S);
  lt_ctx *c = find(argc, argv);
  test_counting();
  in_child(leave_work_behind, "a process that ends with work under way");
  test_open(c);
  for (int index = 0; index < devices; index++) {
    test_streams(c, index);
    test_blocks(c, index);
    test_limits(index);
    test_memory_info(index);
    test_copies(c, index);
    test_reductions(c, index);
  }
  test_pinned();
  test_order(c);
  test_threads(c);
  test_values(c);
  test_roots(c);
  test_kernels(c);
  if (ops->forks) in_child(use, "forks: a child of a process that used the device uses it");
  good(c, lt_device_synchronize(c, device), "synchronize");
  lt_ctx_release(c);
  if (failures == 0) printf("%s conforms: %d devices\n", ops->name, devices);
  return failures == 0 ? 0 : 1;
}
