/* spec/c/random_test.c: random tensors: the stated words, their distributions, keys. */
#include "tensor_test.h"

static lt_tensor *drawn(lt_ctx *c, lt_op op, lt_shape shape, lt_dtype dtype) {
  lt_args_random a = {.size = {.n = shape.ndim}, .dtype = dtype, .device = LT_NO_DEVICE};
  memcpy(a.size.size, shape.size, sizeof a.size.size);
  return lt_apply1(c, op, 0, NULL, &a);
}

static void seed(lt_ctx *c, uint64_t s) { c->rng = (lt_rng){.seed = s}; }

static void uniforms_are_the_words_of_the_stream(void **state) {
  lt_ctx *c = *state;
  seed(c, 1234);
  lt_rng copy = c->rng;
  lt_rng_key t = lt_rng_draw(&copy);
  lt_tensor *x = drawn(c, LT_OP_rand, SHAPE(3, 700), LT_F32);
  const float *v = lt_data(x);
  for (int64_t i = 0; i < x->numel; i++)
    assert_true(v[i] == lt_uniform_f32(lt_philox(t, (uint64_t)i / 4).word[i % 4]));
  t = lt_rng_draw(&copy);
  x = drawn(c, LT_OP_rand, SHAPE(701), LT_F64);
  const double *d = lt_data(x);
  for (int64_t i = 0; i < x->numel; i++) {
    lt_random4 r = lt_philox(t, (uint64_t)i / 2);
    assert_true(d[i] == lt_uniform_f64(r.word[i % 2 * 2], r.word[i % 2 * 2 + 1]));
  }
}

static void uniforms_never_reach_one(void **state) {
  lt_ctx *c = *state;
  const lt_dtype dtypes[] = {LT_F32, LT_F64, LT_F16, LT_BF16};
  for (int k = 0; k < 4; k++) {
    lt_tensor *x = drawn(c, LT_OP_rand, SHAPE(100000), dtypes[k]);
    double *v = values_of(c, x), sum = 0;
    for (int i = 0; i < 100000; i++) {
      assert_true(v[i] >= 0 && v[i] < 1);
      sum += v[i];
    }
    assert_true(fabs(sum / 100000 - 0.5) <
                0.004); /* 4 standard errors; bf16 is cut down by 1/512 */
    free(v);
  }
}

/* Against the formula in long double: 2 units in the last place. */
static void normals_are_exact_to_two_ulp(void **state) {
  lt_ctx *c = *state;
  seed(c, 77);
  lt_rng copy = c->rng;
  lt_rng_key t = lt_rng_draw(&copy);
  lt_tensor *x = drawn(c, LT_OP_randn, SHAPE(100001), LT_F32);
  const float *v = lt_data(x);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < x->numel; i++) {
    lt_random4 r = lt_philox(t, (uint64_t)i / 4);
    int pair = (int)(i % 4 / 2 * 2);
    long double u = ((long double)r.word[pair] + 1) * 0x1p-32L;
    long double a = 6.283185307179586476925286766559L * (long double)r.word[pair + 1] * 0x1p-32L;
    long double radius = sqrtl(-2 * logl(u));
    double wanted = (double)(radius * (i % 2 == 0 ? cosl(a) : sinl(a)));
    double ulp = fabs((double)nextafterf((float)wanted, INFINITY) - (double)(float)wanted);
    if (fabs((double)v[i] - wanted) > 2 * ulp)
      fail_msg("element %d is %.9g, wanted %.12g", (int)i, (double)v[i], wanted);
    sum += v[i];
    squares += (double)v[i] * v[i];
  }
  assert_true(fabs(sum / 100001) < 0.013);
  assert_true(fabs(squares / 100001 - 1) < 0.018);
  x = drawn(c, LT_OP_randn, SHAPE(50001), LT_F64);
  const double *d = lt_data(x);
  squares = 0;
  for (int64_t i = 0; i < x->numel; i++) squares += d[i] * d[i];
  assert_true(fabs(squares / 50001 - 1) < 0.026);
}

static lt_tensor *ints(lt_ctx *c, int64_t low, int64_t high, int64_t n, lt_dtype dtype) {
  const lt_args_random_int a = {.low = low,
                                .high = high,
                                .size = {.n = 1, .size = {n}},
                                .dtype = dtype,
                                .device = LT_NO_DEVICE};
  return lt_apply1(c, LT_OP_randint, 0, NULL, &a);
}

static void integers_stay_in_range(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = ints(c, -2, 5, 70000, LT_DTYPE_NONE);
  assert_int_equal(x->dtype, LT_I64);
  int64_t count[7] = {0};
  const int64_t *v = lt_data(x);
  for (int i = 0; i < 70000; i++) {
    assert_in_range(v[i] + 2, 0, 6);
    count[v[i] + 2]++;
  }
  for (int k = 0; k < 7; k++) assert_in_range(count[k], 9600, 10400);
  x = ints(c, INT64_MIN, INT64_MAX, 1000, LT_DTYPE_NONE);
  v = lt_data(x);
  int negative = 0;
  for (int i = 0; i < 1000; i++) negative += v[i] < 0;
  assert_in_range(negative, 430, 570);
  assert_null(ints(c, 3, 3, 1, LT_DTYPE_NONE));
  expect_failure(c, LT_EARG, "randint: nothing in 3..2: `high` is exclusive");
  assert_int_equal(ints(c, 0, 2, 5, LT_F32)->dtype, LT_F32);
}

static void permutations_hold_each_number_once(void **state) {
  lt_ctx *c = *state;
  for (int64_t n = 0; n < 200; n += 67) {
    lt_args_permutation a = {.n = n, .dtype = LT_DTYPE_NONE, .device = LT_NO_DEVICE};
    lt_tensor *x = lt_apply1(c, LT_OP_randperm, 0, NULL, &a);
    expect_ok(c);
    assert_int_equal(x->numel, n);
    bool seen[200] = {false};
    for (int64_t i = 0; i < n; i++) {
      int64_t v = ((const int64_t *)lt_data(x))[i];
      assert_true(v >= 0 && v < n && !seen[v]);
      seen[v] = true;
    }
  }
  int first[6] = {0}; /* each of the 6 orders of 3 comes up */
  for (int k = 0; k < 600; k++) {
    lt_args_permutation a = {.n = 3, .dtype = LT_DTYPE_NONE, .device = LT_NO_DEVICE};
    const int64_t *v = lt_data(lt_apply1(c, LT_OP_randperm, 0, NULL, &a));
    first[v[0] * 2 + (v[1] > v[2])]++;
  }
  for (int k = 0; k < 6; k++) assert_in_range(first[k], 60, 140);
}

static void samples_follow_their_probabilities(void **state) {
  lt_ctx *c = *state;
  lt_tensor *p = TENSOR(c, LT_F32, SHAPE(2, 4), 1, 0, 2, 1, 0, 0, 0, 3);
  lt_args_multinomial a = {.num_samples = 20000, .replacement = true};
  lt_tensor *x = lt_apply1(c, LT_OP_multinomial, 1, &p, &a);
  expect_shape(x, SHAPE(2, 20000));
  const int64_t *v = lt_data(x);
  int count[4] = {0};
  for (int i = 0; i < 20000; i++) {
    count[v[i]]++;
    assert_int_equal(v[20000 + i], 3);
  }
  assert_in_range(count[0], 4700, 5300);
  assert_int_equal(count[1], 0);
  assert_in_range(count[2], 9650, 10350);
  /* Without replacement: first draws follow the probabilities, none comes twice. */
  p = TENSOR(c, LT_F64, SHAPE(3), 1, 2, 1);
  int firsts[3] = {0};
  for (int k = 0; k < 4000; k++) {
    lt_frame f = lt_frame_open(c);
    a = (lt_args_multinomial){.num_samples = 3};
    v = lt_data(lt_apply1(c, LT_OP_multinomial, 1, &p, &a));
    assert_int_equal(1 << v[0] | 1 << v[1] | 1 << v[2], 7);
    firsts[v[0]]++;
    lt_frame_close(c, f, 0, NULL);
  }
  assert_in_range(firsts[0], 880, 1120);
  assert_in_range(firsts[1], 1870, 2130);
}

static void impossible_distributions_are_named(void **state) {
  lt_ctx *c = *state;
  lt_tensor *p = TENSOR(c, LT_F32, SHAPE(2, 2), 1, 1, 1, -1);
  lt_args_multinomial a = {.num_samples = 1};
  assert_null(lt_apply1(c, LT_OP_multinomial, 1, &p, &a));
  expect_failure(c, LT_EVALUE, "multinomial: no probability: -1 at 1 (row 2)");
  p = TENSOR(c, LT_F32, SHAPE(2), 0, 0);
  assert_null(lt_apply1(c, LT_OP_multinomial, 1, &p, &a));
  expect_failure(c, LT_EVALUE, "multinomial: all probabilities are 0 (row 1)");
  p = TENSOR(c, LT_F32, SHAPE(2), 0, 4);
  a.num_samples = 2;
  assert_null(lt_apply1(c, LT_OP_multinomial, 1, &p, &a));
  expect_failure(
      c, LT_EVALUE,
      "multinomial: 2 samples without replacement from 1 elements that are not 0 (row 1)");
  a.num_samples = 3;
  assert_null(lt_apply1(c, LT_OP_multinomial, 1, &p, &a));
  expect_failure(c, LT_EARG, "multinomial: 3 samples without replacement from [2]");
}

static lt_tensor *drop(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_dropout, 1, in, ud);
}

static void dropout_zeroes_and_scales(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = lt_full(c, SHAPE(50000), lt_scalar_of(3), LT_F32, LT_CPU_DEVICE);
  lt_args_dropout a = {.p = 0.25, .training = true};
  const float *v = lt_data(drop(c, &x, &a));
  int zeros = 0;
  for (int i = 0; i < 50000; i++) {
    assert_true(v[i] == 0 || v[i] == 4);
    zeros += v[i] == 0;
  }
  assert_in_range(zeros, 12100, 12900);
  a.p = 1;
  lt_tensor *y = drop(c, &x, &a);
  EXPECT(c, lt_apply1(c, LT_OP_amax, 1, &y, NULL), 0, 0);
  a.p = 1.5;
  assert_null(drop(c, &x, &a));
  expect_failure(c, LT_EARG, "dropout: p must be in 0..1: got 1.5");
  x = TENSOR(c, LT_I64, SHAPE(1), 1);
  a.p = 0.5;
  assert_null(drop(c, &x, &a));
  expect_failure(c, LT_EDTYPE, "dropout: needs a floating tensor, got i64; write x:to('f32')");
}

/* Backward drops what forward dropped, also with the very first rng_key of seed 0. */
static void the_gradient_is_dropped_alike(void **state) {
  lt_ctx *c = *state;
  for (uint64_t s = 0; s < 3; s++) {
    seed(c, s);
    lt_tensor *x = wants_grad(lt_full(c, SHAPE(40, 33), lt_scalar_of(1), LT_F32, LT_CPU_DEVICE));
    lt_args_dropout a = {.p = 0.5, .training = true};
    lt_tensor *y = drop(c, &x, &a);
    lt_backward(c, lt_apply1(c, LT_OP_sum, 1, &y, NULL), &(lt_backward_options){0});
    expect_same_bits(c, x->grad, lt_detach(c, y));
  }
}

static void dropout_knows_strides_threads_and_types(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  seed(c, 5);
  lt_rng copy = c->rng;
  lt_args_dropout a = {.p = 0.4, .rng_key = lt_rng_draw(&copy)};
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(130, 517), 3, -1, 1);
  check_threads(c, drop, &a, &x);
  lt_tensor *y = drop(c, &x, &a), *z = tensor_strided(c, x);
  expect_close(c, drop(c, &z, &a), y, 0);
  z = lt_cast(c, x, LT_F64);
  expect_close(c, drop(c, &z, &a), y, 1e-6);
  z = lt_cast(c, x, LT_BF16);
  expect_close(c, drop(c, &z, &a), y, 8e-3);
  z = TENSOR(c, LT_F32, SHAPE0, 1);
  assert_int_equal(drop(c, &z, &a)->ndim, 0);
  z = tensor_random(c, LT_F32, SHAPE(0, 3), 1, 0, 1);
  expect_shape(drop(c, &z, &a), SHAPE(0, 3));
}

static void draws_follow_seed_and_order(void **state) {
  lt_ctx *c = *state;
  seed(c, 9);
  lt_tensor *a = drawn(c, LT_OP_randn, SHAPE(8), LT_F32),
            *b = drawn(c, LT_OP_randn, SHAPE(8), LT_F32);
  assert_memory_not_equal(lt_data(a), lt_data(b), 32);
  seed(c, 9);
  expect_same_bits(c, drawn(c, LT_OP_randn, SHAPE(8), LT_F32), a);
  expect_same_bits(c, drawn(c, LT_OP_randn, SHAPE(8), LT_F32), b);
  assert_null(drawn(c, LT_OP_randn, SHAPE(8), LT_I64));
  expect_failure(c, LT_EDTYPE, "randn: makes floating tensors, not i64 (use randint for integers)");
  assert_null(drawn(c, LT_OP_rand, SHAPE(2, -8), LT_F32));
  expect_failure(c, LT_ESHAPE, "rand: impossible shape [2, -8] (sizes are at least 0)");
}

static void bernoulli_follows_its_probabilities(void **state) {
  lt_ctx *c = *state;
  lt_tensor *p = lt_full(c, SHAPE(3, 10000), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE);
  for (int i = 0; i < 10000; i++)
    ((float *)lt_data(p))[10000 + i] = 0.3f, ((float *)lt_data(p))[20000 + i] = 1;
  lt_tensor *x = lt_apply1(c, LT_OP_bernoulli, 1, &p, NULL);
  double *n = values_of(c, lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(1)}));
  assert_true(n[0] == 0 && n[2] == 10000 && n[1] > 2800 && n[1] < 3200);
  free(n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(uniforms_are_the_words_of_the_stream),
      OP_TEST(uniforms_never_reach_one),
      OP_TEST(normals_are_exact_to_two_ulp),
      OP_TEST(integers_stay_in_range),
      OP_TEST(permutations_hold_each_number_once),
      OP_TEST(samples_follow_their_probabilities),
      OP_TEST(impossible_distributions_are_named),
      OP_TEST(dropout_zeroes_and_scales),
      OP_TEST(the_gradient_is_dropped_alike),
      OP_TEST(dropout_knows_strides_threads_and_types),
      OP_TEST(draws_follow_seed_and_order),
      OP_TEST(bernoulli_follows_its_probabilities),
  };
  return cmocka_run_group_tests_name("random numbers", tests, NULL, NULL);
}
