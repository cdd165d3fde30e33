/* spec/cuda/mma_test.cpp: fragments of runtime/cuda/mma.h against plain products of matrices.

   Matrices go to the lanes by the formulas of the PTX ISA, written here a second time, element by
   element; and by the loads of shared memory that feed them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}

#include "cuda/mma.h"

enum { M = 16, N = 8, K = 16 };
typedef struct matrices {
  alignas(16) uint16_t a[M * K], b[K * N], b_transposed[N * K];
  float c[M * N], got[M * N];
} matrices;

template <int DTYPE> static uint16_t half_of(float x) {
  return DTYPE == LT_F16 ? lt_f32_to_f16(x) : lt_f32_to_bf16(x);
}
template <int DTYPE> static float float_of(uint16_t h) {
  return DTYPE == LT_F16 ? lt_f16_to_f32(h) : lt_bf16_to_f32(h);
}

/* Small integers and quarters: products and sums are exact. */
template <int DTYPE> static matrices some() {
  matrices m = {};
  for (int i = 0; i < M * K; i++) m.a[i] = half_of<DTYPE>(static_cast<float>(i * 7 % 23 - 11));
  for (int i = 0; i < K * N; i++) {
    m.b[i] = half_of<DTYPE>(static_cast<float>(i * 5 % 19 - 9) / 4);
    m.b_transposed[i % N * K + i / N] = m.b[i];
  }
  for (int i = 0; i < M * N; i++) m.c[i] = static_cast<float>(i) / 2;
  return m;
}

template <int DTYPE> static void expect_product(const matrices *m) {
  for (int i = 0; i < M; i++)
    for (int n = 0; n < N; n++) {
      float sum = m->c[i * N + n];
      for (int k = 0; k < K; k++)
        sum += float_of<DTYPE>(m->a[i * K + k]) * float_of<DTYPE>(m->b[k * N + n]);
      assert_true(m->got[i * N + n] == sum);
    }
}

/* Element i of a lane's a, b and c (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point
   type"). */
static int a_at(int group, int thread, int i) {
  int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
  return row * K + thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
}
static int b_at(int group, int thread, int i) {
  return (thread * 2 + (i & 1) + (i >= 2 ? 8 : 0)) * N + group;
}
static int c_at(int group, int thread, int i) {
  return (i < 2 ? group : group + 8) * N + thread * 2 + (i & 1);
}

template <int DTYPE> static __global__ void by_formulas(matrices *m) {
  int group = static_cast<int>(threadIdx.x) / 4, thread = static_cast<int>(threadIdx.x) % 4;
  uint32_t a[4] = {}, b[2] = {};
  float c[4];
  for (int i = 0; i < 8; i++)
    a[i / 2] |= static_cast<uint32_t>(m->a[a_at(group, thread, i)]) << i % 2 * 16;
  for (int i = 0; i < 4; i++) {
    b[i / 2] |= static_cast<uint32_t>(m->b[b_at(group, thread, i)]) << i % 2 * 16;
    c[i] = m->c[c_at(group, thread, i)];
  }
  lt_mma<DTYPE>(c, a, b);
  for (int i = 0; i < 4; i++) m->got[c_at(group, thread, i)] = c[i];
}

/* The rows of A and, for lanes from 16 on, their second halves; B's rows, or those of B'. */
template <int DTYPE, bool TRANSPOSED> static __global__ void by_loads(matrices *m) {
  LT_DYNAMIC(uint16_t, room);
  int lane = static_cast<int>(threadIdx.x);
  uint16_t *b_room = room + M * K;
  const uint16_t *b_from = TRANSPOSED ? m->b_transposed : m->b;
  uint32_t a[4], b[4];
  float c[4];
  lt_copy_16(room + lane * 8, m->a + lane * 8, true);
  if (lane < 16) lt_copy_16(b_room + lane * 8, b_from + lane * 8, true);
  if (lane >= 16) lt_copy_16(b_room + lane * 8, b_from, false);
  lt_copies_wait();
  __syncthreads();
  for (int i = 0; i < 4; i++) c[i] = m->c[c_at(lane / 4, lane % 4, i)];
  lt_load_matrices(a, room + lane % 16 * K + lane / 16 * 8);
  if (TRANSPOSED) /* B' [8, 16]: its halves, then zeros */
    lt_load_matrices(b, b_room + (lane < 16 ? lane % 8 * K + lane / 8 * 8 : lane * 8));
  else
    lt_load_transposed(b, b_room + lane * N);
  lt_mma<DTYPE>(c, a, b);
  lt_mma<DTYPE>(c, a, b + 2); /* adds nothing */
  for (int i = 0; i < 4; i++) m->got[c_at(lane / 4, lane % 4, i)] = c[i];
}

/* One warp, now. */
template <class T> static void run(void (*kernel)(T *), size_t shared, T *data) {
  cudaStream_t stream;
  cudaSetDevice(0);
  assert_int_equal(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  lt_cuda_issue("mma", kernel, 1, 32, shared, stream, data);
  assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}

template <int DTYPE> static void check(void (*kernel)(matrices *)) {
  matrices m = some<DTYPE>();
  run(kernel, (M * K + 32 * 8) * sizeof(uint16_t), &m);
  expect_product<DTYPE>(&m);
}

static void test_fragments(void **state) {
  (void)state;
  check<LT_F16>(by_formulas<LT_F16>);
  check<LT_BF16>(by_formulas<LT_BF16>);
}

static void test_loads(void **state) {
  (void)state;
  check<LT_F16>(by_loads<LT_F16, false>);
  check<LT_BF16>(by_loads<LT_BF16, true>);
}

static __global__ void forgets_to_wait(uint16_t *data) {
  LT_DYNAMIC(uint16_t, room);
  int lane = static_cast<int>(threadIdx.x);
  lt_copy_16(room + lane * 8, data + lane * 8, true);
  __syncthreads();
  data[lane * 8] = room[lane * 8];
  lt_copies_wait();
}

static void test_copies_are_late(void **state) {
  (void)state;
  alignas(16) uint16_t data[32 * 8] = {};
  run(forgets_to_wait, sizeof data, data);
  for (int lane = 0; lane < 32; lane++) assert_int_equal(data[lane * 8], 0xffff);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fragments),
      cmocka_unit_test(test_loads),
      cmocka_unit_test(test_copies_are_late),
  };
  return cmocka_run_group_tests_name("mma", tests, NULL, NULL);
}
