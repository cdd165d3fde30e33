/* spec/c/softmax_test.c: softmax and losses against their formulas in double. */
#include "tensor_test.h"

static lt_tensor *apply_softmax(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const lt_op *op = ud;
  return lt_apply1(c, *op, 1, in, &(lt_args_softmax){.dim = 1});
}
static const lt_op softmaxes[] = {LT_OP_softmax, LT_OP_log_softmax};

/* x is [outer, n, inner]; softmax over the middle. */
static void reference(const double *x, int64_t outer, int64_t n, int64_t inner, bool logs,
                      double *y) {
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      const double *v = x + o * n * inner + i;
      double m = -INFINITY, sum = 0;
      for (int64_t k = 0; k < n; k++) m = fmax(m, v[k * inner]);
      for (int64_t k = 0; k < n; k++) sum += exp(v[k * inner] - m);
      for (int64_t k = 0; k < n; k++) {
        double l = v[k * inner] - m - log(sum);
        y[(o * n + k) * inner + i] = logs ? l : exp(l);
      }
    }
}

static void softmax_matches_its_formula(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  const int64_t shapes[][3] = {{7, 10, 1}, {3, 2000, 1}, {5, 9, 6}, {1, 40, 700}, {4, 1, 1}};
  for (int s = 0; s < 5; s++)
    for (int k = 0; k < 2; k++) {
      const int64_t *n = shapes[s];
      lt_op op = softmaxes[k];
      lt_tensor *x = tensor_random(c, LT_F32, SHAPE(n[0], n[1], n[2]), 3, -20, 20);
      double *v = values_of(c, x), *wanted = malloc((size_t)x->numel * sizeof *wanted);
      reference(v, n[0], n[1], n[2], k == 1, wanted);
      expect_values(c, apply_softmax(c, &x, &op), wanted, 2e-6);
      lt_tensor *z = lt_cast(c, x, LT_F64);
      expect_values(c, apply_softmax(c, &z, &op), wanted, 1e-14);
      z = tensor_strided(c, x);
      expect_values(c, apply_softmax(c, &z, &op), wanted, 2e-6);
      z = lt_cast(c, lt_cast(c, x, LT_BF16), LT_F32);
      lt_tensor *low = lt_cast(c, x, LT_BF16);
      expect_close(c, apply_softmax(c, &low, &op), apply_softmax(c, &z, &op), 4e-3);
      free(v), free(wanted);
    }
}

static void softmax_gradients_match_finite_differences(void **state) {
  lt_ctx *c = *state;
  for (int k = 0; k < 2; k++) {
    lt_op op = softmaxes[k];
    lt_tensor *x = tensor_random(c, LT_F64, SHAPE(3, 5), 3, -2, 2);
    check_gradient(c, apply_softmax, &op, 1, &x, 0, 1e-7);
    x = tensor_random(c, LT_F64, SHAPE(2, 4, 3), 4, -2, 2);
    check_gradient(c, apply_softmax, &op, 1, &x, 0, 1e-7);
    x = tensor_random(c, LT_F64, SHAPE(2, 70), 4, -2, 2);
    check_gradient(c, apply_softmax, &op, 1, &x, 0, 1e-7);
  }
}

static void softmax_of_extremes(void **state) {
  lt_ctx *c = *state;
  lt_op op = LT_OP_softmax;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 1e30, -INFINITY, 1e30, -300, -300, -INFINITY);
  EXPECT(c, apply_softmax(c, &x, &op), 1e-7, 0.5, 0, 0.5, 0.5, 0.5, 0);
  x = TENSOR(c, LT_F32, SHAPE(1, 2), NAN, 1);
  EXPECT(c, apply_softmax(c, &x, &op), 0, NAN, NAN);
  x = tensor_random(c, LT_F32, SHAPE(2, 0), 1, 0, 1);
  expect_shape(apply_softmax(c, &x, &op), SHAPE(2, 0));
  x = TENSOR(c, LT_F32, SHAPE0, 3);
  EXPECT(c, lt_apply1(c, op, 1, &x, &(lt_args_softmax){.dim = -1}), 0, 1);
  x = TENSOR(c, LT_I64, SHAPE(1, 2), 1, 2);
  assert_null(apply_softmax(c, &x, &op));
  expect_failure(c, LT_EDTYPE, "softmax: needs a floating tensor, got i64; write x:to('f32')");
}

static void softmax_does_not_depend_on_threads(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  for (int k = 0; k < 2; k++) {
    lt_op op = softmaxes[k];
    lt_tensor *x = tensor_random(c, LT_F32, SHAPE(300, 101), 3, -2, 2);
    check_threads(c, apply_softmax, &op, &x);
    x = tensor_random(c, LT_F32, SHAPE(3, 11, 1100), 3, -2, 2);
    check_threads(c, apply_softmax, &op, &x);
  }
}

/* Cross-entropy. */

typedef struct losses {
  lt_args_cross_entropy args;
  lt_tensor *target;
} losses;

static lt_tensor *apply_loss(lt_ctx *c, lt_tensor *const *in, void *ud) {
  losses *l = ud;
  lt_tensor *out[3] = {NULL};
  lt_tensor *inputs[] = {in[0], l->target != NULL ? l->target : in[1],
                         in[l->target != NULL ? 1 : 2]};
  int n = inputs[2] != NULL ? 3 : 2;
  return lt_apply(c, LT_OP_cross_entropy, n, inputs, &l->args, 3, out) ? out[0] : NULL;
}

/* Rows of C logits with ids, as the documentation of PyTorch states it. */
static void loss_reference(const double *x, const int64_t *ids, const double *w, int64_t n,
                           int64_t classes, const lt_args_cross_entropy *a, double *out) {
  double sum = 0, weights = 0;
  for (int64_t r = 0; r < n; r++) {
    double m = -INFINITY, s = 0, loss = 0;
    for (int64_t i = 0; i < classes; i++) m = fmax(m, x[r * classes + i]);
    for (int64_t i = 0; i < classes; i++) s += exp(x[r * classes + i] - m);
    if (ids[r] != a->ignore_index) {
      for (int64_t i = 0; i < classes; i++) {
        double q =
            a->label_smoothing / (double)classes + (i == ids[r] ? 1 - a->label_smoothing : 0);
        loss -= q * w[i] * (x[r * classes + i] - m - log(s));
      }
      weights += w[ids[r]];
    }
    sum += loss;
    if (a->reduction == LT_REDUCTION_none) out[r] = loss;
  }
  if (a->reduction == LT_REDUCTION_mean) out[0] = sum / weights;
  if (a->reduction == LT_REDUCTION_sum) out[0] = sum;
}

static void cross_entropy_matches_its_formula(void **state) {
  lt_ctx *c = *state;
  const int64_t ids[5] = {3, 0, 69, -1, 7};
  const double idsf[5] = {3, 0, 69, -1, 7};
  for (int variant = 0; variant < 12; variant++) {
    losses l = {.args = {.ignore_index = -1,
                         .reduction = variant % 3,
                         .label_smoothing = variant / 3 % 2 == 0 ? 0 : 0.1}};
    bool weighted = variant >= 6;
    lt_tensor *x = tensor_random(c, LT_F32, SHAPE(5, 70), 8, -9, 9);
    lt_tensor *w = tensor_random(c, LT_F32, SHAPE(70), 9, 0.2, 3),
              *in[2] = {x, weighted ? w : NULL};
    double *v = values_of(c, x), *wv = values_of(c, w), wanted[5];
    for (int i = 0; i < 70 && !weighted; i++) wv[i] = 1;
    loss_reference(v, ids, wv, 5, 70, &l.args, wanted);
    l.target = TENSOR(c, LT_I64, SHAPE(5), idsf[0], idsf[1], idsf[2], idsf[3], idsf[4]);
    expect_values(c, apply_loss(c, in, &l), wanted, 2e-6);
    l.target = lt_cast(c, l.target, LT_I32);
    expect_values(c, apply_loss(c, in, &l), wanted, 2e-6);
    in[0] = lt_cast(c, x, LT_F64), in[1] = weighted ? lt_cast(c, w, LT_F64) : NULL;
    expect_values(c, apply_loss(c, in, &l), wanted, 1e-12);
    lt_tensor *d = lt_contiguous(c, lt_detach(c, in[0]));
    lt_tensor *small[2] = {d, in[1]};
    if (in[1] != NULL) small[1] = lt_detach(c, in[1]);
    check_gradient(c, apply_loss, &l, 1, small, 1, 1e-6);
    free(v), free(wv);
  }
}

/* [N, C, d] is the same as [N d, C]. */
static void dims_after_the_classes_count_as_rows(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F64, SHAPE(2, 4, 3), 8, -3, 3);
  lt_tensor *rows = lt_contiguous(c, lt_transpose(c, x, 1, 2));
  rows = lt_reshape(c, rows, SHAPE(6, 4));
  losses a = {.args = {.ignore_index = -100, .reduction = LT_REDUCTION_none},
              .target = TENSOR(c, LT_I64, SHAPE(2, 3), 0, 1, 2, 3, 3, 1)};
  losses b = {.args = a.args, .target = lt_reshape(c, a.target, SHAPE(6))};
  lt_tensor *in_a[2] = {x, NULL}, *in_b[2] = {rows, NULL};
  lt_tensor *flat = apply_loss(c, in_b, &b);
  expect_close(c, apply_loss(c, in_a, &a), lt_reshape(c, flat, SHAPE(2, 3)), 1e-14);
  in_a[0] = tensor_strided(c, x);
  expect_close(c, apply_loss(c, in_a, &a), lt_reshape(c, flat, SHAPE(2, 3)), 1e-14);
  a.args.reduction = LT_REDUCTION_mean;
  in_a[0] = x;
  check_gradient(c, apply_loss, &a, 1, in_a, 1, 1e-7);
  /* One sample without a batch. */
  losses one = {.args = {.reduction = LT_REDUCTION_mean, .ignore_index = -100},
                .target = TENSOR(c, LT_I64, SHAPE0, 1)};
  lt_tensor *in[2] = {TENSOR(c, LT_F64, SHAPE(2), 0, 0), NULL};
  EXPECT(c, apply_loss(c, in, &one), 1e-12, log(2));
}

/* A one-hot distribution gives what its id gives; gradients by both inputs. */
static void probabilities_as_targets(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F64, SHAPE(3, 4), 8, -3, 3);
  losses ids = {
      .args = {.reduction = LT_REDUCTION_mean, .ignore_index = -100, .label_smoothing = 0.2},
      .target = TENSOR(c, LT_I64, SHAPE(3), 1, 0, 3)};
  losses hot = {.args = ids.args};
  lt_tensor *in[3] = {x, NULL, NULL};
  lt_tensor *wanted = apply_loss(c, in, &ids);
  in[1] = TENSOR(c, LT_F64, SHAPE(3, 4), 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1);
  expect_close(c, apply_loss(c, in, &hot), wanted, 1e-13);
  for (int reduction = 0; reduction < 3; reduction++)
    for (int weighted = 0; weighted < 2; weighted++) {
      hot.args.reduction = reduction;
      lt_tensor *leaves[3] = {tensor_random(c, LT_F64, SHAPE(2, 3, 2), 4, -2, 2),
                              tensor_random(c, LT_F64, SHAPE(2, 3, 2), 5, 0, 1),
                              weighted ? tensor_random(c, LT_F64, SHAPE(3), 6, 0.5, 2) : NULL};
      check_gradient(c, apply_loss, &hot, 3, leaves, 3, 1e-6);
    }
}

static void wrong_targets_are_named(void **state) {
  lt_ctx *c = *state;
  losses l = {.args = {.reduction = LT_REDUCTION_mean, .ignore_index = -100},
              .target = TENSOR(c, LT_I64, SHAPE(3), 1, 9, 10)};
  lt_tensor *in[3] = {tensor_random(c, LT_F32, SHAPE(3, 10), 1, 0, 1), NULL, NULL};
  assert_null(apply_loss(c, in, &l));
  expect_failure(c, LT_EVALUE, "cross_entropy: targets are ids 0..9; got 10 with C = 10 (row 3)");
  l.target = TENSOR(c, LT_I64, SHAPE(2), 1, 1);
  assert_null(apply_loss(c, in, &l));
  expect_failure(c, LT_ESHAPE, "cross_entropy: logits of [3, 10] need targets of [3], got [2]");
  l.target = TENSOR(c, LT_F32, SHAPE(3), 1, 1, 1);
  assert_null(apply_loss(c, in, &l));
  expect_failure(c, LT_ESHAPE,
                 "cross_entropy: floating targets are probabilities in the shape of the logits: "
                 "[3, 10] and [3] (ids must be integers)");
  l.target = TENSOR(c, LT_I64, SHAPE(3), 1, 1, 1);
  in[1] = TENSOR(c, LT_F32, SHAPE(2), 1, 1);
  assert_null(apply_loss(c, in, &l));
  expect_failure(c, LT_ESHAPE, "cross_entropy: needs a weight for each of 10 classes, got [2]");
  in[1] = NULL;
  l.target = TENSOR(c, LT_I64, SHAPE(3), -100, -100, -100);
  EXPECT(c, apply_loss(c, in, &l), 0, NAN); /* a mean over no row */
}

static void cross_entropy_does_not_depend_on_threads(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  lt_tensor *in[2] = {tensor_random(c, LT_F32, SHAPE(2000, 65), 1, -4, 4), NULL};
  losses l = {.args = {.reduction = LT_REDUCTION_mean, .ignore_index = -100}};
  double *ids = malloc(2000 * sizeof *ids);
  for (int i = 0; i < 2000; i++) ids[i] = i * 7 % 65;
  l.target = tensor_of(c, LT_I64, SHAPE(2000), ids);
  free(ids);
  check_threads(c, apply_loss, &l, in);
  /* bf16 logits against f32. */
  lt_tensor *low[2] = {lt_cast(c, in[0], LT_BF16), NULL};
  lt_tensor *same[2] = {lt_cast(c, low[0], LT_F32), NULL};
  expect_close(c, apply_loss(c, low, &l), apply_loss(c, same, &l), 4e-3);
}

/* Elementwise losses. */

static lt_tensor *apply_pair(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const int64_t *call = ud;
  return lt_apply1(c, (lt_op)call[0], 2, in, &(lt_args_loss){.reduction = call[1]});
}

static void pair_losses_match_their_formulas(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(3), 1, -2, 3), *y = TENSOR(c, LT_F32, SHAPE(3), 0.5, 1, 1);
  lt_tensor *in[2] = {x, y};
  int64_t call[2] = {LT_OP_mse_loss, LT_REDUCTION_mean};
  EXPECT(c, apply_pair(c, in, call), 1e-6, (0.25 + 9 + 4) / 3);
  call[1] = LT_REDUCTION_sum;
  EXPECT(c, apply_pair(c, in, call), 1e-6, 13.25);
  call[1] = LT_REDUCTION_none;
  EXPECT(c, apply_pair(c, in, call), 1e-6, 0.25, 9, 4);
  call[0] = LT_OP_l1_loss;
  EXPECT(c, apply_pair(c, in, call), 1e-6, 0.5, 3, 2);
  call[0] = LT_OP_binary_cross_entropy_with_logits;
  EXPECT(c, apply_pair(c, in, call), 1e-6, log1p(exp(1)) - 0.5, log1p(exp(-2)) + 2, log1p(exp(-3)));
  const lt_op ops[] = {LT_OP_mse_loss, LT_OP_l1_loss, LT_OP_binary_cross_entropy_with_logits};
  for (int k = 0; k < 9; k++) {
    call[0] = ops[k / 3], call[1] = k % 3;
    lt_tensor *leaves[2] = {tensor_random(c, LT_F64, SHAPE(2, 3), 4, -2, -1),
                            tensor_random(c, LT_F64, SHAPE(2, 3), 5, 0, 1)};
    check_gradient(c, apply_pair, call, 2, leaves, 0, 1e-6);
  }
  in[1] = tensor_random(c, LT_F32, SHAPE(3, 1), 1, 0, 1);
  call[0] = LT_OP_mse_loss;
  assert_null(apply_pair(c, in, call));
  expect_failure(c, LT_ESHAPE, "mse_loss: shapes differ: [3] and [3, 1]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(softmax_matches_its_formula),
      OP_TEST(softmax_gradients_match_finite_differences),
      OP_TEST(softmax_of_extremes),
      OP_TEST(softmax_does_not_depend_on_threads),
      OP_TEST(cross_entropy_matches_its_formula),
      OP_TEST(dims_after_the_classes_count_as_rows),
      OP_TEST(probabilities_as_targets),
      OP_TEST(wrong_targets_are_named),
      OP_TEST(cross_entropy_does_not_depend_on_threads),
      OP_TEST(pair_losses_match_their_formulas),
  };
  return cmocka_run_group_tests_name("softmax and losses", tests, NULL, NULL);
}
