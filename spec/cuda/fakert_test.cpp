/* spec/cuda/fakert_test.cpp: what the fake runtime and the emulator of kernels find.

   Each case runs in a child, since a finding ends the program: with a mistake it must end so, and
   say a sentence; without it must be silent and compute what is right. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "cuda/kernel.h"

enum { N = 4096, BLOCK = 256 };
static const size_t BYTES = N * sizeof(float);

static __global__ void fill(float *p, float v) { p[blockIdx.x * BLOCK + threadIdx.x] = v; }
static __global__ void add(const float *a, float *b) {
  unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  b[i] += a[i];
}

/* What a case works with: two streams, an event, two blocks of a device, one of pinned memory. */
typedef struct room {
  cudaStream_t s, q;
  cudaEvent_t e;
  float *a, *b, *pinned;
} room;

static void issue_fill(cudaStream_t on, float *p, float v) {
  fakert_touch(on, p, BYTES, true, "fill");
  lt_cuda_issue("fill", fill, N / BLOCK, BLOCK, 0, on, p, v);
}
static void issue_add(cudaStream_t on, float *a, float *b) {
  fakert_touch(on, a, BYTES, false, "add"), fakert_touch(on, b, BYTES, true, "add");
  lt_cuda_issue("add", add, N / BLOCK, BLOCK, 0, on, a, b);
}

/* Cases: with a mistake or without; the result is whether the value is right. */

static bool reads_what_another_stream_makes(room *r, bool mistake) {
  issue_fill(r->s, r->a, 2), issue_fill(r->q, r->b, 1);
  cudaEventRecord(r->e, r->s);
  if (!mistake) cudaStreamWaitEvent(r->q, r->e, 0);
  issue_add(r->q, r->a, r->b);
  cudaStreamSynchronize(r->q);
  return r->b[0] == 3;
}

static bool records_an_event_before_the_work(room *r, bool mistake) {
  issue_fill(r->q, r->b, 3);
  if (mistake) cudaEventRecord(r->e, r->s);
  issue_fill(r->s, r->a, 5);
  if (!mistake) cudaEventRecord(r->e, r->s);
  cudaStreamWaitEvent(r->q, r->e, 0);
  issue_add(r->q, r->a, r->b);
  cudaStreamSynchronize(r->q);
  return r->b[0] == 8;
}

static bool reads_pinned_memory_before_the_copy(room *r, bool mistake) {
  issue_fill(r->s, r->a, 7);
  memset(r->pinned, 0, BYTES);
  cudaMemcpyAsync(r->pinned, r->a, BYTES, cudaMemcpyDeviceToHost, r->s);
  if (!mistake) cudaStreamSynchronize(r->s);
  fakert_host_touch(r->pinned, BYTES, false, "item()");
  return r->pinned[5] == 7;
}

static bool refills_a_pinned_batch_too_early(room *r, bool mistake) {
  for (int i = 0; i < N; i++) r->pinned[i] = 1;
  cudaMemcpyAsync(r->a, r->pinned, BYTES, cudaMemcpyHostToDevice, r->s);
  cudaEventRecord(r->e, r->s);
  if (!mistake) cudaEventSynchronize(r->e);
  fakert_host_touch(r->pinned, BYTES, true, "the loader");
  for (int i = 0; i < N; i++) r->pinned[i] = 9;
  cudaStreamSynchronize(r->s);
  return r->a[5] == 1;
}

static bool reuses_a_block_that_another_stream_reads(room *r, bool mistake) {
  issue_fill(r->s, r->a, 3), issue_fill(r->q, r->b, 1);
  cudaEventRecord(r->e, r->s);
  cudaStreamWaitEvent(r->q, r->e, 0);
  issue_add(r->q, r->a, r->b);
  cudaEventRecord(r->e, r->q);
  if (!mistake) cudaStreamWaitEvent(r->s, r->e, 0);
  issue_fill(r->s, r->a, 100);
  cudaStreamSynchronize(r->s), cudaStreamSynchronize(r->q);
  return r->b[0] == 4;
}

static __global__ void barrier_for_half(float *p, bool all) {
  if (all || threadIdx.x < 32) __syncthreads();
  p[threadIdx.x] = 1;
}
static bool some_threads_miss_a_barrier(room *r, bool mistake) {
  lt_cuda_issue("barrier_for_half", barrier_for_half, 1, 64, 0, r->s, r->a, !mistake);
  cudaStreamSynchronize(r->s);
  return r->a[0] == 1 && r->a[63] == 1;
}

static __global__ void shuffle(float *p, int n) {
  int i = static_cast<int>(threadIdx.x);
  if (i < n) p[i] = __shfl_xor_sync(0xffffffffu, static_cast<float>(i), 1);
}
static bool part_of_a_warp_shuffles(room *r, bool mistake) {
  lt_cuda_issue("shuffle", shuffle, 1, 64, 0, r->s, r->a, mistake ? 50 : 64);
  cudaStreamSynchronize(r->s);
  return r->a[0] == 1 && r->a[63] == 62;
}

static __global__ void write_at(float *p, int at) { p[at] = 1; }
static bool a_grid_writes_beyond_its_block(room *r, bool mistake) {
  lt_cuda_issue("write_at", write_at, 1, 32, 0, r->s, r->a, mistake ? N : N - 1);
  cudaStreamSynchronize(r->s);
  return r->a[N - 1] == 1;
}

static __global__ void read_shared(float *p, bool waits) {
  LT_SHARED(float, shared, 64);
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (waits) __syncthreads();
  p[threadIdx.x] = shared[63 - threadIdx.x];
}
static bool shared_memory_is_read_without_a_barrier(room *r, bool mistake) {
  lt_cuda_issue("read_shared", read_shared, 1, 64, 0, r->s, r->a, !mistake);
  cudaStreamSynchronize(r->s);
  for (int i = 0; i < 64; i++)
    if (!(r->a[i] == static_cast<float>(63 - i))) return false;
  return true;
}

static __global__ void use_shared(float *p) {
  LT_SHARED(float, mine, 4096);
  LT_DYNAMIC(float, more);
  mine[threadIdx.x] = 1, more[threadIdx.x] = 2;
  p[threadIdx.x] = mine[threadIdx.x] + more[threadIdx.x];
}
static bool a_block_takes_too_much_shared_memory(room *r, bool mistake) {
  lt_cuda_issue("use_shared", use_shared, 1, 32, mistake ? 33 << 10 : 32 << 10, r->s, r->a);
  cudaStreamSynchronize(r->s);
  return r->a[31] == 3;
}

/* Children. */

typedef bool (*body)(room *r, bool mistake);
enum { RIGHT = 0, WRONG = 3 };

static int run_body(body b, bool mistake) {
  room r;
  cudaSetDevice(0);
  cudaStreamCreateWithPriority(&r.s, cudaStreamNonBlocking, 0);
  cudaStreamCreateWithPriority(&r.q, cudaStreamNonBlocking, 0);
  cudaEventCreateWithFlags(&r.e, cudaEventDisableTiming);
  cudaMalloc(reinterpret_cast<void **>(&r.a), BYTES);
  cudaMalloc(reinterpret_cast<void **>(&r.b), BYTES);
  cudaHostAlloc(reinterpret_cast<void **>(&r.pinned), BYTES, cudaHostAllocPortable);
  return b(&r, mistake) ? RIGHT : WRONG;
}

/* Runs a case in a child; `said` gets what it wrote on stderr. */
static int run_apart(body b, bool mistake, const char *mode, char *said, size_t size) {
  int ends[2], status = 0;
  size_t have = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]), close(ends[1]);
    setenv("FAKERT", mode, 1);
    _exit(run_body(b, mistake));
  }
  close(ends[1]);
  for (ssize_t n; have < size - 1 && (n = read(ends[0], said + have, size - 1 - have)) > 0;)
    have += static_cast<size_t>(n);
  said[have] = '\0';
  close(ends[0]);
  waitpid(child, &status, 0);
  return status;
}

static void expect_silent(body b, const char *mode) {
  char said[1024];
  int status = run_apart(b, false, mode, said, sizeof said);
  assert_string_equal(said, "");
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), RIGHT);
}

/* The right form is silent; the mistake ends the program with these words. */
static void expect_found(body b, const char *words) {
  static const char *const modes[] = {"late", "threads"};
  char said[16384];
  for (int k = 0; k < 2; k++) {
    expect_silent(b, modes[k]);
    int status = run_apart(b, true, modes[k], said, sizeof said);
    if (strstr(said, words) == nullptr) fail_msg("%s: '%s' without '%s'", modes[k], said, words);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != RIGHT));
  }
}

#define FINDS(name, words) \
  [[maybe_unused]] static void name##_test(void **state) { (void)state, expect_found(name, words); }
FINDS(reads_what_another_stream_makes,
      "the read by add on stream 1 is not ordered after the write by fill on stream 0")
FINDS(records_an_event_before_the_work,
      "the read by add on stream 1 is not ordered after the write by fill on stream 0")
FINDS(reads_pinned_memory_before_the_copy,
      "the read by item() on the host is not ordered after the write by copy on stream 0")
FINDS(refills_a_pinned_batch_too_early,
      "the write by the loader on the host is not ordered after the read by copy on stream 0")
FINDS(reuses_a_block_that_another_stream_reads,
      "the write by fill on stream 0 is not ordered after the read by add on stream 1")
FINDS(some_threads_miss_a_barrier, "barrier_for_half: block 0 thread 0: waits for threads that")
FINDS(part_of_a_warp_shuffles, "shuffle: block 0 thread 32: waits for threads that never come")
FINDS(a_block_takes_too_much_shared_memory, "use_shared: block 0 thread 0: more than 48 KiB of")
FINDS(a_grid_writes_beyond_its_block,
      "a block of 16384 bytes was written beyond its end, by write_at or what ran before it")

/* This one says nothing, but computes what no spec takes for right. */
static void a_forgotten_barrier_gives_wrong_values(void **state) {
  char said[1024];
  (void)state;
  expect_silent(shared_memory_is_read_without_a_barrier, "late");
  int status = run_apart(shared_memory_is_read_without_a_barrier, true, "late", said, sizeof said);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), WRONG);
}

/* In late mode the order is the worst that is allowed: values are wrong, whoever looks for races. */
static void mistakes_of_order_give_wrong_values(void **state) {
  static const body bodies[] = {reads_what_another_stream_makes, records_an_event_before_the_work,
                                reads_pinned_memory_before_the_copy,
                                refills_a_pinned_batch_too_early,
                                reuses_a_block_that_another_stream_reads};
  char said[1024];
  (void)state;
  setenv("FAKERT_RACES", "0", 1);
  for (int k = 0; k < 5; k++) {
    int status = run_apart(bodies[k], true, "late", said, sizeof said);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != WRONG) fail_msg("case %d: the value is right", k);
  }
  unsetenv("FAKERT_RACES");
}

/* ---- graphs ---- */

/* Of a child: whether all of it is as on a GPU. */
static bool launches_what_was_captured(room *r, bool) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t *last = nullptr;
  size_t n = 0;
  float value = 2;
  issue_fill(r->s, r->a, 1), issue_fill(r->s, r->b, 0);
  bool ok = cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed) == cudaSuccess;
  issue_fill(r->s, r->a, value);
  ok = ok && cudaStreamGetCaptureInfo(r->s, &status, nullptr, nullptr, &last, nullptr, &n) ==
                 cudaSuccess && n == 1 && status == cudaStreamCaptureStatusActive;
  cudaGraphNode_t node = ok ? last[0] : nullptr;
  value = 9;
  issue_add(r->s, r->a, r->b);
  ok = ok && cudaStreamEndCapture(r->s, &graph) == cudaSuccess &&
       cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
  cudaStreamSynchronize(r->s);
  ok = ok && r->a[0] == 1 && r->b[0] == 0; /* nothing has run but what was issued before */
  for (int k = 0; k < 3 && ok; k++) ok = cudaGraphLaunch(exec, r->s) == cudaSuccess;
  cudaStreamSynchronize(r->s);
  ok = ok && r->a[0] == 2 && r->b[N - 1] == 6;
  ok = ok && cudaGraphLaunch(exec, r->s) == cudaSuccess;
  lt_cuda_reissue("fill", fill, N / BLOCK, BLOCK, 0, exec, node, r->a, 5.0f);
  ok = ok && cudaGraphLaunch(exec, r->s) == cudaSuccess; /* later launches alone see it */
  cudaStreamSynchronize(r->s);
  ok = ok && r->b[0] == 13;
  return cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess && ok;
}

static bool ends_invalid(cudaStream_t s) {
  cudaGraph_t graph;
  bool ended = cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated;
  return ended && graph == nullptr && cudaStreamSynchronize(s) == cudaSuccess;
}

static bool refuses_what_a_capture_forbids(room *r, bool) {
  const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
  void *p = nullptr;
  float there[4];
  cudaGraph_t graph;
  bool ok = true;
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeGlobal);
  ok = ok && cudaMalloc(&p, 64) == unsupported && ends_invalid(r->s);
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed);
  ok = ok && cudaMalloc(&p, 64) == cudaSuccess && cudaStreamSynchronize(r->q) == cudaSuccess &&
       cudaStreamEndCapture(r->s, &graph) == cudaSuccess;
  cudaGraphDestroy(graph);
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed);
  ok = ok && cudaStreamSynchronize(r->s) == unsupported && ends_invalid(r->s);
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed);
  ok = ok && cudaDeviceSynchronize() == unsupported && ends_invalid(r->s);
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed);
  ok = ok && cudaStreamQuery(r->s) == unsupported && ends_invalid(r->s);
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed);
  ok = ok && cudaMemcpyAsync(r->a, there, sizeof there, cudaMemcpyHostToDevice, r->s) ==
                 unsupported && ends_invalid(r->s);
  cudaEventRecord(r->e, r->q);
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed);
  ok = ok && cudaStreamWaitEvent(r->s, r->e, 0) == cudaErrorStreamCaptureIsolation &&
       ends_invalid(r->s);
  cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed);
  cudaEventRecord(r->e, r->s);
  ok = ok && cudaEventQuery(r->e) == cudaErrorCapturedEvent &&
       cudaEventSynchronize(r->e) == cudaErrorCapturedEvent;
  ok = ok && cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed) == cudaErrorIllegalState;
  cudaStreamEndCapture(r->s, &graph);
  cudaGetLastError();
  return ok;
}

static void launches_what_was_captured_test(void **) {
  expect_silent(launches_what_was_captured, "late");
}
static void refuses_what_a_capture_forbids_test(void **) {
  expect_silent(refuses_what_a_capture_forbids, "late");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_what_another_stream_makes_test),
      cmocka_unit_test(records_an_event_before_the_work_test),
      cmocka_unit_test(reads_pinned_memory_before_the_copy_test),
      cmocka_unit_test(refills_a_pinned_batch_too_early_test),
      cmocka_unit_test(reuses_a_block_that_another_stream_reads_test),
      cmocka_unit_test(some_threads_miss_a_barrier_test),
      cmocka_unit_test(part_of_a_warp_shuffles_test),
      cmocka_unit_test(a_block_takes_too_much_shared_memory_test),
#if !defined __SANITIZE_ADDRESS__ /* which finds it by itself, and writes a report */
      cmocka_unit_test(a_grid_writes_beyond_its_block_test),
#endif
      cmocka_unit_test(a_forgotten_barrier_gives_wrong_values),
      cmocka_unit_test(mistakes_of_order_give_wrong_values),
      cmocka_unit_test(launches_what_was_captured_test),
      cmocka_unit_test(refuses_what_a_capture_forbids_test),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
