/* spec/c/matmul_test.c: matmul and linear against a triple loop, in every dtype and layout. */
#include "base/threads.h"
#include "cpu/cpu.h"
#include "tensor_test.h"

static lt_tensor *matmul(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_apply1(c, LT_OP_matmul, LT_IN(a, b), NULL);
}

static lt_tensor *linear(lt_ctx *c, lt_tensor *x, lt_tensor *w, lt_tensor *bias) {
  return lt_apply1(c, LT_OP_linear, LT_IN(x, w, bias), NULL);
}

/* a [.., M, K] x b [.., K, N] with equal batch shapes, in double. */
static void naive(lt_ctx *c, lt_tensor *a, lt_tensor *b, double **out, double **bound) {
  int64_t m = a->size[a->ndim - 2], k = a->size[a->ndim - 1], n = b->size[b->ndim - 1];
  int64_t batches = k > 0 ? a->numel / m / k : 1;
  double *x = values_of(c, a), *y = values_of(c, b);
  *out = calloc((size_t)(batches * m * n + 1), sizeof(double));
  *bound = calloc((size_t)(batches * m * n + 1), sizeof(double));
  for (int64_t t = 0; t < batches; t++)
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++) {
          double v = x[(t * m + i) * k + p] * y[(t * k + p) * n + j];
          (*out)[(t * m + i) * n + j] += v;
          (*bound)[(t * m + i) * n + j] += fabs(v);
        }
  free(x);
  free(y);
}

static double tolerance_of(lt_dtype d) {
  return d == LT_F64 ? 1e-14 : d == LT_F32 ? 1e-6 : d == LT_F16 ? 1e-3 : d == LT_BF16 ? 8e-3 : 0;
}

/* The product within rounding of what each element sums. */
static void expect_product(lt_ctx *c, lt_tensor *got, lt_tensor *a, lt_tensor *b) {
  double *wanted, *bound, *v = values_of(c, got), tolerance = tolerance_of((lt_dtype)got->dtype);
  naive(c, a, b, &wanted, &bound);
  for (int64_t i = 0; i < got->numel; i++)
    if (!(fabs(v[i] - wanted[i]) <= tolerance * bound[i]))
      fail_msg("%s x %s: element %lld is %.9g, wanted %.9g", LT_TENSOR_STR(a), LT_TENSOR_STR(b),
               (long long)i, v[i], wanted[i]);
  free(v);
  free(wanted);
  free(bound);
}

static const lt_dtype all[] = {LT_F32, LT_F64, LT_F16, LT_BF16, LT_I64, LT_I32};
enum { N_ALL = sizeof all / sizeof *all };

static lt_tensor *filled(lt_ctx *c, lt_dtype d, lt_shape s, uint64_t seed) {
  return lt_dtype_is_float(d) ? tensor_random(c, d, s, seed, -1, 1)
                              : tensor_random(c, d, s, seed, -9, 9);
}

static void every_size_and_dtype(void **state) {
  lt_ctx *c = *state;
  static const int64_t sizes[][3] = {{1, 1, 1},  {1, 7, 5},    {5, 1, 3},     {3, 4, 1},
                                     {7, 13, 9}, {33, 17, 65}, {64, 300, 10}, {130, 70, 200}};
  for (int d = 0; d < N_ALL; d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      const int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
      lt_tensor *a = filled(c, all[d], SHAPE(m, k), s), *b = filled(c, all[d], SHAPE(k, n), s + 50);
      lt_tensor *y = matmul(c, a, b);
      expect_ok(c);
      expect_shape(y, SHAPE(m, n));
      assert_int_equal(y->dtype, all[d]);
      expect_product(c, y, a, b);
    }
}

/* Transposed, sliced and scattered operands give what their contiguous copies give. */
static void any_layout(void **state) {
  lt_ctx *c = *state;
  for (int d = 0; d < N_ALL; d++) {
    lt_tensor *a = filled(c, all[d], SHAPE(20, 33), 1), *b = filled(c, all[d], SHAPE(33, 18), 2);
    lt_tensor *at = lt_transpose(c, lt_contiguous(c, lt_transpose(c, a, 0, 1)), 0, 1);
    lt_tensor *bt = lt_transpose(c, lt_contiguous(c, lt_transpose(c, b, 0, 1)), 0, 1);
    assert_int_equal(at->stride[0], 1);
    lt_tensor *as = tensor_strided(c, a), *bs = tensor_strided(c, b);
    lt_tensor *wide = filled(c, all[d], SHAPE(20, 50), 3);
    lt_tensor *aw = lt_slice(c, wide, 1, 4, 33, 1);
    expect_product(c, matmul(c, at, b), a, b);
    expect_product(c, matmul(c, a, bt), a, b);
    expect_product(c, matmul(c, at, bt), a, b);
    expect_product(c, matmul(c, as, bs), a, b);
    expect_product(c, matmul(c, aw, bt), aw, b);
    lt_tensor *row = filled(c, all[d], SHAPE(1, 33), 4); /* one row for all: stride 0 */
    lt_tensor *rows = lt_expand_to(c, row, SHAPE(20, 33));
    expect_product(c, matmul(c, rows, b), rows, b);
  }
}

static void vectors(void **state) {
  lt_ctx *c = *state;
  lt_tensor *v = TENSOR(c, LT_F32, SHAPE(3), 1, 2, 3), *w = TENSOR(c, LT_F32, SHAPE(3), 4, 5, 6);
  lt_tensor *a = TENSOR(c, LT_F32, SHAPE(2, 3), 1, 0, 2, 0, 3, 1);
  lt_tensor *dot = matmul(c, v, w);
  assert_int_equal(dot->ndim, 0);
  EXPECT(c, dot, 1e-7, 32);
  lt_tensor *y = matmul(c, a, v);
  expect_shape(y, SHAPE(2));
  EXPECT(c, y, 1e-7, 7, 9);
  lt_tensor *u = TENSOR(c, LT_F32, SHAPE(2), 1, -1);
  y = matmul(c, u, a);
  expect_shape(y, SHAPE(3));
  EXPECT(c, y, 1e-7, 1, -3, 1);
  lt_tensor *stack = lt_expand_to(c, a, SHAPE(4, 2, 3));
  y = matmul(c, stack, v);
  expect_ok(c);
  expect_shape(y, SHAPE(4, 2));
  y = matmul(c, u, stack);
  expect_ok(c);
  expect_shape(y, SHAPE(4, 3));
  EXPECT(c, lt_select(c, y, 0, 3), 1e-7, 1, -3, 1);
}

/* A tensor of integers wraps as integers do. */
static void integers_wrap(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = TENSOR(c, LT_U8, SHAPE(1, 2), 200, 100), *b = TENSOR(c, LT_U8, SHAPE(2, 1), 2, 3);
  lt_tensor *y = matmul(c, a, b);
  assert_int_equal(y->dtype, LT_U8);
  EXPECT(c, y, 0, (200 * 2 + 100 * 3) % 256);
}

static void batches_broadcast(void **state) {
  lt_ctx *c = *state;
  for (int d = 0; d < N_ALL; d++) {
    lt_dtype t = all[d];
    lt_tensor *a = filled(c, t, SHAPE(2, 1, 5, 4), 1), *b = filled(c, t, SHAPE(3, 4, 6), 2);
    lt_tensor *aa = lt_expand_to(c, a, SHAPE(2, 3, 5, 4));
    lt_tensor *bb = lt_expand_to(c, b, SHAPE(2, 3, 4, 6));
    lt_tensor *y = matmul(c, a, b);
    expect_shape(y, SHAPE(2, 3, 5, 6));
    expect_product(c, y, aa, bb);
    expect_product(c, matmul(c, aa, bb), aa, bb);
    lt_tensor *m = filled(c, t, SHAPE(5, 4), 3);
    expect_product(c, matmul(c, m, b), lt_expand_to(c, m, SHAPE(3, 5, 4)), b);
    lt_tensor *x = filled(c, t, SHAPE(3, 7, 4), 4), *w = filled(c, t, SHAPE(4, 6), 5);
    expect_product(c, matmul(c, x, w), x, lt_expand_to(c, w, SHAPE(3, 4, 6)));
    /* heads of one projection, as attention sees them: [B, T, 3, H, D] */
    lt_tensor *qkv = filled(c, t, SHAPE(2, 9, 3, 4, 8), 6);
    const int dims[] = {0, 2, 1, 3};
    lt_tensor *q = lt_permute(c, lt_select(c, qkv, 2, 0), dims);
    lt_tensor *k = lt_transpose(c, lt_permute(c, lt_select(c, qkv, 2, 1), dims), 2, 3);
    y = matmul(c, q, k);
    expect_shape(y, SHAPE(2, 4, 9, 9));
    expect_product(c, y, q, k);
  }
}

static void without_elements(void **state) {
  lt_ctx *c = *state;
  for (int d = 0; d < N_ALL; d++) {
    lt_tensor *a = filled(c, all[d], SHAPE(2, 0), 1), *b = filled(c, all[d], SHAPE(0, 3), 1);
    EXPECT(c, matmul(c, a, b), 0, 0, 0, 0, 0, 0, 0);
    expect_shape(matmul(c, b, filled(c, all[d], SHAPE(3, 2), 1)), SHAPE(0, 2));
    lt_tensor *bias = TENSOR(c, all[d], SHAPE(3), 1, 2, 3);
    lt_tensor *w = filled(c, all[d], SHAPE(3, 0), 1);
    EXPECT(c, linear(c, a, w, bias), 0, 1, 2, 3, 1, 2, 3);
  }
}

static void linear_is_a_product_with_bias(void **state) {
  lt_ctx *c = *state;
  for (int d = 0; d < N_ALL; d++) {
    lt_dtype t = all[d];
    lt_tensor *x = filled(c, t, SHAPE(3, 5, 40), 1), *w = filled(c, t, SHAPE(17, 40), 2);
    lt_tensor *bias = filled(c, t, SHAPE(17), 3);
    lt_tensor *y = linear(c, x, w, bias);
    expect_shape(y, SHAPE(3, 5, 17));
    lt_tensor *exact = linear(c, lt_cast(c, x, LT_F64), lt_cast(c, w, LT_F64), NULL);
    expect_product(c, exact, x, lt_expand_to(c, lt_transpose(c, w, 0, 1), SHAPE(3, 40, 17)));
    exact = lt_binary(c, LT_OP_add, exact, lt_cast(c, bias, LT_F64));
    expect_close(c, lt_cast(c, y, LT_F64), exact, 10 * tolerance_of(t));
    expect_close(c, linear(c, tensor_strided(c, x), tensor_strided(c, w), bias), y,
                 10 * tolerance_of(t));
    expect_shape(linear(c, lt_select(c, lt_select(c, x, 0, 0), 0, 0), w, bias), SHAPE(17));
  }
}

static lt_tensor *call_matmul(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return matmul(c, in[0], in[1]);
}

static lt_tensor *call_transposed(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return matmul(c, lt_transpose(c, in[0], 0, 1), lt_transpose(c, in[1], 0, 1));
}

static lt_tensor *call_linear(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return linear(c, in[0], in[1], ud != NULL ? NULL : in[2]);
}

static void gradients(void **state) {
  lt_ctx *c = *state;
  const lt_shape pairs[][2] = {
      {SHAPE(3, 4), SHAPE(4, 2)},
      {SHAPE(4), SHAPE(4)},
      {SHAPE(3, 4), SHAPE(4)},
      {SHAPE(4), SHAPE(4, 2)},
      {SHAPE(2, 3, 4), SHAPE(4, 5)},
      {SHAPE(2, 3, 4), SHAPE(4)},
      {SHAPE(4), SHAPE(2, 4, 3)},
      {SHAPE(3, 4), SHAPE(2, 4, 5)},
      {SHAPE(2, 1, 3, 4), SHAPE(3, 4, 2)},
      {SHAPE(1, 3, 4), SHAPE(2, 4, 2)},
  };
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
    lt_tensor *in[2] = {filled(c, LT_F64, pairs[k][0], k), filled(c, LT_F64, pairs[k][1], k + 20)};
    check_gradient(c, call_matmul, NULL, 2, in, 0, 1e-7);
  }
  lt_tensor *in[2] = {filled(c, LT_F64, SHAPE(4, 3), 1), filled(c, LT_F64, SHAPE(2, 4), 2)};
  check_gradient(c, call_transposed, NULL, 2, in, 0, 1e-7);
}

static void gradients_of_linear(void **state) {
  lt_ctx *c = *state;
  const lt_shape shapes[] = {SHAPE(4), SHAPE(3, 4), SHAPE(2, 3, 4), SHAPE(0, 4)};
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    lt_tensor *in[3] = {filled(c, LT_F64, shapes[k], k), filled(c, LT_F64, SHAPE(5, 4), 8),
                        filled(c, LT_F64, SHAPE(5), 9)};
    check_gradient(c, call_linear, NULL, 3, in, 0, 1e-7);
  }
  lt_tensor *in[3] = {filled(c, LT_F64, SHAPE(2, 4), 1), filled(c, LT_F64, SHAPE(5, 4), 8), NULL};
  check_gradient(c, call_linear, "no bias", 2, in, 0, 1e-7);
}

/* Large products take other calls; the f32 gradient stays near the f64 one, and each number of
   threads repeats itself bit for bit, in whatever order shapes come. */
static void large_gradients_repeat(void **state) {
  lt_ctx *c = *state;
  lt_tensor *grad[3][3] = {{NULL}};
  for (int round = 0; round < 5; round++) {
    lt_dtype t = round == 2 ? LT_F64 : LT_F32;
    c->threads = round > 2 ? 2 : 1;
    lt_tensor *in[3] = {tensor_random(c, t, SHAPE(420, 300), 1, -1, 1),
                        tensor_random(c, t, SHAPE(290, 300), 2, -1, 1),
                        tensor_random(c, t, SHAPE(290), 3, -1, 1)};
    for (int k = 0; k < 3; k++) wants_grad(in[k]);
    lt_tensor *y = linear(c, in[0], in[1], in[2]);
    lt_backward_options o = {.seed = tensor_random(c, t, SHAPE(420, 290), 4, -1, 1)};
    lt_backward(c, y, &o);
    expect_ok(c);
    for (int k = 0; k < 3; k++) {
      if (round == 0 || round >= 2) expect_ok(c);
      if (round == 1 || round == 4) expect_same_bits(c, in[k]->grad, grad[round == 1 ? 0 : 2][k]);
      if (round == 2) expect_close(c, lt_cast(c, grad[0][k], LT_F64), in[k]->grad, 3e-5);
      if (round == 3) expect_close(c, in[k]->grad, grad[0][k], 3e-5);
      if (round == 0) grad[0][k] = in[k]->grad;
      if (round == 3) grad[2][k] = in[k]->grad;
    }
    c->modes.grad = false;
    for (int64_t n = 1; n < 40; n += 13) /* other shapes in between */
      matmul(c, tensor_random(c, t, SHAPE(n, 70), 1, -1, 1),
             tensor_random(c, t, SHAPE(70, n + 1), 1, -1, 1));
    c->modes.grad = true;
  }
}

/* More shapes than the table of primitives holds. */
static void many_shapes(void **state) {
  lt_ctx *c = *state;
  for (int64_t n = 1; n <= 1100; n++) {
    lt_frame f = lt_frame_open(c);
    lt_tensor *a = lt_full(c, SHAPE(1, n), lt_scalar_of(1), LT_F32, LT_CPU_DEVICE);
    assert_true(value_at(c, matmul(c, a, lt_transpose(c, a, 0, 1)), 0) == (double)n);
    lt_frame_close(c, f, 0, NULL);
  }
}

static void own_loops_ignore_threads(void **state) {
  lt_ctx *c = *state;
  for (int d = 0; d < N_ALL; d++) {
    if (all[d] != LT_F64 && lt_dtype_is_float(all[d])) continue;
    lt_tensor *in[2] = {filled(c, all[d], SHAPE(2, 150, 90), 1),
                        filled(c, all[d], SHAPE(90, 140), 2)};
    check_threads(c, call_matmul, NULL, in);
  }
}

static void autocast_takes_bf16(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = filled(c, LT_F32, SHAPE(3, 4), 1), *b = filled(c, LT_F32, SHAPE(4, 2), 2);
  c->modes.autocast = true;
  c->modes.autocast_dtype = LT_BF16;
  lt_tensor *y = matmul(c, a, b);
  c->modes.autocast = false;
  expect_ok(c);
  assert_int_equal(y->dtype, LT_BF16);
  expect_close(c, lt_cast(c, y, LT_F32), matmul(c, a, b), 3e-2);
}

/* An allocator whose n-th call fails. */
static void *failing(void *ud, void *ptr, size_t old_size, size_t new_size) {
  (void)old_size;
  int64_t *left = ud;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  return (*left)-- == 0 ? NULL : realloc(ptr, new_size);
}

/* One forward and backward through everything that oneDNN serves. */
static void run_all(lt_ctx *c) {
  const lt_args_convolution conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  lt_tensor *in[5];
  const lt_shape shapes[] = {SHAPE(2, 3, 6, 6), SHAPE(4, 3, 3, 3), SHAPE(4), SHAPE(8, 16),
                             SHAPE(8)};
  for (int k = 0; k < 5; k++) {
    in[k] = lt_full(c, shapes[k], lt_scalar_of(0.5), LT_F32, LT_CPU_DEVICE);
    if (in[k] == NULL) return;
    in[k]->flags |= LT_REQUIRES_GRAD;
  }
  lt_tensor *h = lt_apply1(c, LT_OP_convolution, LT_IN(in[0], in[1], in[2]), &conv), *out[2] = {NULL};
  if (h == NULL || (h = lt_reshape(c, h, SHAPE(2, 4, 16))) == NULL) return;
  if ((h = linear(c, h, in[3], in[4])) == NULL) return;
  if (!lt_apply(c, LT_OP_scaled_dot_product_attention, 3, (lt_tensor *[]){h, h, h}, NULL, 2, out))
    return;
  lt_backward(c, out[0], &(lt_backward_options){.seed = out[0]});
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  bool whole = false;
  int failed = 0;
  for (int64_t n = 0; n < 2000 && !whole; n++) {
    int64_t left = n;
    lt_ctx *c = lt_ctx_new(lt_registry_here(), &(lt_allocator){.fn = failing, .ud = &left});
    if (c == NULL) continue;
    lt_frame_open(c);
    run_all(c);
    whole = left >= 0;
    bool again = lt_ok(c); /* the pool empties its cache and asks once more */
    assert_true(again || (!whole && c->failure.code == LT_EMEMORY));
    failed += !again;
    lt_frame_close(c, 0, 0, NULL);
    lt_ctx_release(c);
  }
  assert_true(whole && failed > 50);
}

static void wrong_shapes(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = filled(c, LT_F32, SHAPE(32, 784), 1), *b = filled(c, LT_F32, SHAPE(256, 10), 1);
  matmul(c, a, b);
  expect_failure(c, LT_ESHAPE, "matmul: inner sizes differ: [32, 784] x [256, 10]");
  matmul(c, filled(c, LT_F32, SHAPE(2, 3, 4), 1), filled(c, LT_F32, SHAPE(5, 4, 3), 1));
  expect_failure(c, LT_ESHAPE, "matmul: batch sizes do not broadcast: [2, 3, 4] x [5, 4, 3]");
  matmul(c, filled(c, LT_F32, SHAPE0, 1), a);
  expect_failure(c, LT_ESHAPE, "matmul: needs at least one dim each: [] x [32, 784]");
  linear(c, a, b, NULL);
  expect_failure(c, LT_ESHAPE,
                 "linear: the last dim of x is not weight's: [32, 784] x [256, 10] [out, in]");
  linear(c, a, filled(c, LT_F32, SHAPE(1, 1, 784), 1), NULL);
  expect_failure(c, LT_ESHAPE, "linear: weight must be [out, in] or [in], got [1, 1, 784]");
  linear(c, a, filled(c, LT_F32, SHAPE(2, 784), 1), filled(c, LT_F32, SHAPE(3), 1));
  expect_failure(c, LT_ESHAPE, "linear: bias has shape [3], weight [2, 784] [out, in]");
  lt_tensor *p = TENSOR(c, LT_BOOL, SHAPE(1, 1), 1);
  matmul(c, p, p);
  expect_failure(c, LT_EDTYPE, "matmul: not defined for bool; write x:to('f32') first");
}

/* A product may come while the kernels of sgemm are being made. First of all tests: a process makes
   them once. */
static void arrives_while_warming_up(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = lt_full(c, SHAPE(320, 330), lt_scalar_of(0.5), LT_F32, LT_CPU_DEVICE);
  lt_tensor *b = lt_full(c, SHAPE(330, 340), lt_scalar_int(2), LT_F32, LT_CPU_DEVICE);
  lt_cpu_warm_up(c);
  lt_cpu_warm_up(c);
  lt_tensor *y = matmul(c, a, b);
  expect_ok(c);
  expect_shape(y, SHAPE(320, 340));
  for (int64_t i = 0; i < y->numel; i++) assert_true(((const float *)lt_data(y))[i] == 330);
  lt_quiesce(c);
  lt_cpu_warm_up(c);
  expect_ok(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(arrives_while_warming_up),
      OP_TEST(every_size_and_dtype),
      OP_TEST(any_layout),
      OP_TEST(vectors),
      OP_TEST(integers_wrap),
      OP_TEST(batches_broadcast),
      OP_TEST(without_elements),
      OP_TEST(linear_is_a_product_with_bias),
      OP_TEST(gradients),
      OP_TEST(gradients_of_linear),
      OP_TEST(large_gradients_repeat),
      OP_TEST(many_shapes),
      OP_TEST(own_loops_ignore_threads),
      OP_TEST(autocast_takes_bf16),
      OP_TEST(wrong_shapes),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
