/* spec/c/norm_test.c: layer norm and batch norm against their formulas in double. */
#include "tensor_test.h"

static lt_args_layer_norm over(int64_t n) {
  return (lt_args_layer_norm){.normalized_shape = {.n = 1, .size = {n}}, .eps = 1e-5};
}

static lt_tensor *apply_layer_norm(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_layer_norm, 3, in, ud);
}

static void layer_norm_matches_its_formula(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  const int64_t widths[] = {1, 5, 64, 700};
  for (int k = 0; k < 4; k++) {
    int64_t n = widths[k];
    lt_args_layer_norm a = over(n);
    lt_tensor *x = tensor_random(c, LT_F32, SHAPE(3, 2, n), 1, 90, 110);
    lt_tensor *w = tensor_random(c, LT_F32, SHAPE(n), 2, 0.5, 2);
    lt_tensor *b = tensor_random(c, LT_F32, SHAPE(n), 3, -1, 1);
    double *v = values_of(c, x), *wv = values_of(c, w), *bv = values_of(c, b);
    double *wanted = malloc((size_t)x->numel * sizeof *wanted);
    for (int64_t r = 0; r < 6; r++) {
      double mean = 0, var = 0;
      for (int64_t i = 0; i < n; i++) mean += v[r * n + i] / (double)n;
      for (int64_t i = 0; i < n; i++) var += pow(v[r * n + i] - mean, 2) / (double)n;
      for (int64_t i = 0; i < n; i++)
        wanted[r * n + i] = (v[r * n + i] - mean) / sqrt(var + 1e-5) * wv[i] + bv[i];
    }
    lt_tensor *in[3] = {x, w, b};
    expect_values(c, apply_layer_norm(c, in, &a), wanted, 3e-6);
    in[0] = tensor_strided(c, x);
    expect_values(c, apply_layer_norm(c, in, &a), wanted, 3e-6);
    in[0] = lt_cast(c, x, LT_F64);
    expect_values(c, apply_layer_norm(c, in, &a), wanted, 1e-11);
    in[0] = lt_cast(c, x, LT_F16);
    lt_tensor *y = apply_layer_norm(c, in, &a), *same[3] = {lt_cast(c, in[0], LT_F32), w, b};
    assert_int_equal(y->dtype, LT_F16);
    expect_close(c, y, apply_layer_norm(c, same, &a), 1e-3);
    free(v), free(wv), free(bv), free(wanted);
  }
}

static void layer_norm_gradients_match_finite_differences(void **state) {
  lt_ctx *c = *state;
  for (int present = 0; present < 4; present++) {
    lt_args_layer_norm a = {.normalized_shape = {.n = 2, .size = {3, 4}}, .eps = 1e-5};
    lt_tensor *in[3] = {tensor_random(c, LT_F64, SHAPE(5, 3, 4), 1, -2, 2),
                        (present & 1) != 0 ? tensor_random(c, LT_F64, SHAPE(3, 4), 2, 0, 2) : NULL,
                        (present & 2) != 0 ? tensor_random(c, LT_F64, SHAPE(3, 4), 3, 0, 2) : NULL};
    check_gradient(c, apply_layer_norm, &a, 3, in, 0, 1e-6);
  }
}

/* Gradients of weight and bias add up the chunks of many rows. */
static void layer_norm_gradients_over_many_rows(void **state) {
  lt_ctx *c = *state;
  lt_args_layer_norm a = over(7);
  lt_tensor *w[2], *b[2];
  for (int k = 0; k < 2; k++) {
    lt_dtype d = k == 0 ? LT_F32 : LT_F64;
    lt_tensor *in[3] = {tensor_random(c, d, SHAPE(20000, 7), 1, -2, 2),
                        w[k] = wants_grad(tensor_random(c, d, SHAPE(7), 2, 0, 2)),
                        b[k] = wants_grad(tensor_random(c, d, SHAPE(7), 3, 0, 2))};
    lt_tensor *y = apply_layer_norm(c, in, &a), *s = lt_unary(c, LT_OP_square, y);
    lt_backward(c, lt_unary(c, LT_OP_sum, s), &(lt_backward_options){0});
  }
  expect_close(c, w[0]->grad, w[1]->grad, 2e-6);
  expect_close(c, b[0]->grad, b[1]->grad, 2e-6);
}

static void layer_norm_edges(void **state) {
  lt_ctx *c = *state;
  lt_args_layer_norm a = over(4);
  lt_tensor *in[3] = {tensor_random(c, LT_F32, SHAPE(0, 4), 1, 0, 1), NULL, NULL};
  expect_shape(apply_layer_norm(c, in, &a), SHAPE(0, 4));
  in[0] = tensor_random(c, LT_F32, SHAPE(2, 3), 1, 0, 1);
  assert_null(apply_layer_norm(c, in, &a));
  expect_failure(c, LT_ESHAPE,
                 "layer_norm: the last dims of [2, 3] are not the normalized shape [4]");
  in[0] = tensor_random(c, LT_F32, SHAPE(2, 4), 1, 0, 1);
  in[1] = tensor_random(c, LT_F32, SHAPE(2), 1, 0, 1);
  assert_null(apply_layer_norm(c, in, &a));
  expect_failure(c, LT_ESHAPE, "layer_norm: weight of [2] for the normalized shape [4]");
  c->modes.grad = false;
  in[0] = tensor_random(c, LT_F32, SHAPE(900, 65), 1, 0, 1);
  in[1] = NULL;
  a = over(65);
  check_threads(c, apply_layer_norm, &a, in);
}

/* Batch norm. */

static const lt_args_batch_norm batch_args = {.eps = 1e-5};

static lt_tensor *apply_batch_norm(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  lt_tensor *out[3] = {NULL};
  return lt_apply(c, LT_OP_batch_norm, 5, in, &batch_args, 3, out) ? out[0] : NULL;
}

/* [N, C, S] */
static void moments(const double *x, int64_t n, int64_t channels, int64_t s, double *mean,
                    double *var) {
  double m = (double)(n * s);
  for (int64_t k = 0; k < channels; k++) {
    mean[k] = var[k] = 0;
    for (int64_t i = 0; i < n * s; i++) mean[k] += x[(i / s * channels + k) * s + i % s] / m;
    for (int64_t i = 0; i < n * s; i++)
      var[k] += pow(x[(i / s * channels + k) * s + i % s] - mean[k], 2) / m;
  }
}

/* The same values with channels-last strides. */
static lt_tensor *channels_last(lt_ctx *c, lt_tensor *x) {
  int to[LT_MAX_DIMS] = {0}, back[LT_MAX_DIMS] = {0};
  for (int k = 2; k < x->ndim; k++) to[k - 1] = k, back[k] = k - 1;
  to[x->ndim - 1] = 1, back[1] = x->ndim - 1;
  return lt_permute(c, lt_contiguous(c, lt_permute(c, x, to)), back);
}

static void check_batch_norm(lt_ctx *c, lt_shape shape, lt_dtype dtype, double tolerance) {
  int64_t channels = shape.size[1], s = 1, n = shape.size[0];
  for (int k = 2; k < shape.ndim; k++) s *= shape.size[k];
  lt_tensor *x = tensor_random(c, dtype, shape, 1, 40, 60);
  lt_tensor *w = tensor_random(c, LT_F32, SHAPE(channels), 2, 0.5, 2);
  lt_tensor *b = tensor_random(c, LT_F32, SHAPE(channels), 3, -1, 1);
  double *v = values_of(c, x), *wv = values_of(c, w), *bv = values_of(c, b);
  double *wanted = malloc((size_t)x->numel * sizeof *wanted);
  double *mean = malloc((size_t)channels * sizeof *mean),
         *var = malloc((size_t)channels * sizeof *var);
  moments(v, n, channels, s, mean, var);
  for (int64_t i = 0; i < x->numel; i++) {
    int64_t k = i / s % channels;
    wanted[i] = (v[i] - mean[k]) / sqrt(var[k] + 1e-5) * wv[k] + bv[k];
  }
  lt_tensor *layouts[] = {x, channels_last(c, x), tensor_strided(c, x)};
  for (int k = 0; k < (shape.ndim > 2 ? 3 : 1); k++) {
    lt_tensor *in[5] = {layouts[k], w, b}, *out[3] = {NULL};
    assert_true(lt_apply(c, LT_OP_batch_norm, 5, in, &batch_args, 3, out));
    expect_values(c, out[0], wanted, tolerance);
    expect_values(c, out[1], mean, 1e-6);
    expect_values(c, out[2], var, 1e-6);
    if (k == 1) assert_memory_equal(out[0]->stride, layouts[1]->stride, 8 * (size_t)shape.ndim);
    /* With these statistics as inputs the result is the same, and the only one. */
    lt_tensor *inputs[5] = {layouts[k], w, b, out[1], out[2]}, *again[3] = {NULL};
    assert_true(lt_apply(c, LT_OP_batch_norm, 5, inputs, &batch_args, 3, again));
    expect_values(c, again[0], wanted, tolerance);
    assert_null(again[1]);
  }
  free(v), free(wv), free(bv), free(wanted), free(mean), free(var);
}

static void batch_norm_matches_its_formula(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  check_batch_norm(c, SHAPE(3, 5, 4, 6), LT_F32, 3e-5); /* mean 50 costs digits of x */
  check_batch_norm(c, SHAPE(3, 5, 4, 6), LT_F64, 1e-6);
  check_batch_norm(c, SHAPE(2, 3, 40, 50), LT_F32, 3e-5);
  check_batch_norm(c, SHAPE(2, 600, 3, 2), LT_F32, 3e-5);
  check_batch_norm(c, SHAPE(1500, 6), LT_F32, 3e-5);
  check_batch_norm(c, SHAPE(4, 3, 9), LT_F32, 3e-5);
}

static void batch_norm_gradients_match_finite_differences(void **state) {
  lt_ctx *c = *state;
  for (int variant = 0; variant < 8; variant++) {
    lt_shape shape = variant % 2 == 0 ? SHAPE(3, 2, 2, 3) : SHAPE(6, 3);
    int64_t channels = shape.size[1];
    lt_tensor *in[5] = {tensor_random(c, LT_F64, shape, 1, -2, 2)};
    if ((variant & 2) != 0) in[1] = tensor_random(c, LT_F64, SHAPE(channels), 2, 0.5, 2);
    if ((variant & 2) != 0) in[2] = tensor_random(c, LT_F64, SHAPE(channels), 3, -1, 1);
    if ((variant & 4) != 0) in[3] = tensor_random(c, LT_F64, SHAPE(channels), 4, -1, 1);
    if ((variant & 4) != 0) in[4] = tensor_random(c, LT_F64, SHAPE(channels), 5, 0.5, 2);
    check_gradient(c, apply_batch_norm, NULL, 5, in, 7, 1e-6);
  }
}

/* Channels-last strides give the gradients of planes, over blocks of many rows. */
static void batch_norm_gradients_do_not_depend_on_strides(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x[2], *w[2], *b[2];
  for (int k = 0; k < 2; k++) {
    x[k] = wants_grad(tensor_random(c, LT_F32, SHAPE(4, 3, 20, 25), 1, -2, 2));
    w[k] = wants_grad(tensor_random(c, LT_F32, SHAPE(3), 2, 0.5, 2));
    b[k] = wants_grad(tensor_random(c, LT_F32, SHAPE(3), 3, -1, 1));
    lt_tensor *in[5] = {k == 0 ? x[k] : channels_last(c, x[k]), w[k], b[k]};
    lt_backward(c, weighed(c, apply_batch_norm(c, in, NULL)), &(lt_backward_options){0});
    expect_ok(c);
  }
  expect_close(c, x[1]->grad, x[0]->grad, 1e-6);
  expect_close(c, w[1]->grad, w[0]->grad, 1e-5);
  expect_close(c, b[1]->grad, b[0]->grad, 1e-5);
}

static void batch_norm_edges(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[5] = {tensor_random(c, LT_F32, SHAPE(1, 3, 1, 1), 1, 0, 1)};
  assert_null(apply_batch_norm(c, in, NULL));
  expect_failure(c, LT_ESHAPE, "batch_norm: needs more than one value per channel: [1, 3, 1, 1]");
  in[0] = tensor_random(c, LT_F32, SHAPE(4), 1, 0, 1);
  assert_null(apply_batch_norm(c, in, NULL));
  expect_failure(c, LT_ESHAPE, "batch_norm: needs x [N, C, ...], got [4]");
  in[0] = tensor_random(c, LT_F32, SHAPE(4, 2), 1, 0, 1);
  in[1] = tensor_random(c, LT_F32, SHAPE(3), 1, 0, 1);
  assert_null(apply_batch_norm(c, in, NULL));
  expect_failure(c, LT_ESHAPE, "batch_norm: weight of [3] for the 2 channels of [4, 2]");
  in[1] = NULL, in[3] = tensor_random(c, LT_F32, SHAPE(2), 1, 0, 1);
  assert_null(apply_batch_norm(c, in, NULL));
  expect_failure(c, LT_EARG, "batch_norm: running_var is missing");
  in[3] = NULL, in[0] = tensor_random(c, LT_F32, SHAPE(0, 2, 3), 1, 0, 1);
  expect_shape(apply_batch_norm(c, in, NULL), SHAPE(0, 2, 3));
  c->modes.grad = false;
  in[0] = tensor_random(c, LT_F32, SHAPE(9, 30, 11, 13), 1, -1, 1);
  check_threads(c, apply_batch_norm, NULL, in);
  in[0] = channels_last(c, in[0]);
  check_threads(c, apply_batch_norm, NULL, in);
}

/* One loss of y, mean and variance, and of mean and variance alone. */
static lt_tensor *with_statistics(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const int *first = ud;
  lt_tensor *out[3] = {NULL}, *sum = NULL;
  lt_apply(c, LT_OP_batch_norm, 3, in, &batch_args, 3, out);
  for (int k = *first; k < 3; k++) {
    lt_tensor *s = weighed(c, out[k]);
    sum = sum == NULL ? s : lt_binary(c, LT_OP_add, sum, s);
  }
  return sum;
}

static void statistics_pass_gradients_on(void **state) {
  lt_ctx *c = *state;
  for (int first = 0; first < 2; first++) {
    lt_tensor *in[3] = {tensor_random(c, LT_F64, SHAPE(3, 2, 2, 3), 1, -2, 2),
                        tensor_random(c, LT_F64, SHAPE(2), 2, 0.5, 2),
                        tensor_random(c, LT_F64, SHAPE(2), 3, -1, 1)};
    check_gradient(c, with_statistics, &first, 3, in, first == 0 ? 7 : 1, 1e-6);
  }
  lt_tensor *in[5] = {tensor_random(c, LT_F32, SHAPE(4, 2), 1, 0, 1), NULL, NULL,
                      wants_grad(tensor_random(c, LT_F32, SHAPE(2), 1, 0, 1)),
                      tensor_random(c, LT_F32, SHAPE(2), 1, 0.5, 1)};
  lt_backward(c, weighed(c, apply_batch_norm(c, in, NULL)), &(lt_backward_options){0});
  expect_failure(c, LT_EARG, "batch_norm: has no derivative by running statistics; detach them");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(layer_norm_matches_its_formula),
      OP_TEST(layer_norm_gradients_match_finite_differences),
      OP_TEST(layer_norm_gradients_over_many_rows),
      OP_TEST(layer_norm_edges),
      OP_TEST(batch_norm_matches_its_formula),
      OP_TEST(batch_norm_gradients_match_finite_differences),
      OP_TEST(batch_norm_gradients_do_not_depend_on_strides),
      OP_TEST(batch_norm_edges),
      OP_TEST(statistics_pass_gradients_on),
  };
  return cmocka_run_group_tests_name("norms", tests, NULL, NULL);
}
