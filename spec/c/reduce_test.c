/* spec/c/reduce_test.c: reductions against loops in double, their gradients, their errors. */
#include "tensor_test.h"

/* The reference: x reduced over `dims` (bits) by `fold`, in double, in logical order. */
typedef double (*fold)(const double *v, int64_t n);

static void reference(const double *x, lt_shape s, unsigned dims, fold f, double *out) {
  int64_t n = lt_shape_numel(s), rows = 1;
  for (int k = 0; k < s.ndim; k++)
    if ((dims >> k & 1) == 0) rows *= s.size[k];
  double *line = malloc((size_t)(n + 1) * sizeof *line);
  for (int64_t r = 0; r < rows; r++) {
    int64_t filled = 0;
    for (int64_t i = 0; i < n; i++) {
      int64_t rest = i, row = 0, scale = 1;
      for (int k = s.ndim - 1; k >= 0; k--) {
        int64_t index = rest % s.size[k];
        rest /= s.size[k];
        if ((dims >> k & 1) == 0) row += index * scale, scale *= s.size[k];
      }
      if (row == r) line[filled++] = x[i];
    }
    out[r] = f(line, filled);
  }
  free(line);
}

static double fold_sum(const double *v, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) s += v[i];
  return s;
}

static double fold_mean(const double *v, int64_t n) { return fold_sum(v, n) / (double)n; }
static double fold_prod(const double *v, int64_t n) {
  double p = 1;
  for (int64_t i = 0; i < n; i++) p *= v[i];
  return p;
}
static double fold_max(const double *v, int64_t n) {
  double m = v[0];
  for (int64_t i = 1; i < n; i++) m = v[i] > m ? v[i] : m;
  return m;
}
static double fold_min(const double *v, int64_t n) {
  double m = v[0];
  for (int64_t i = 1; i < n; i++) m = v[i] < m ? v[i] : m;
  return m;
}
static double fold_any(const double *v, int64_t n) {
  bool any = false;
  for (int64_t i = 0; i < n; i++) any = any || v[i] != 0;
  return any;
}
static double fold_all(const double *v, int64_t n) {
  bool all = true;
  for (int64_t i = 0; i < n; i++) all = all && v[i] != 0;
  return all;
}
static double fold_logsumexp(const double *v, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) s += exp(v[i]);
  return log(s);
}

static const struct {
  lt_op op;
  fold fold;
  bool differentiable;
} folds[] = {
    {LT_OP_sum, fold_sum, true},   {LT_OP_mean, fold_mean, true},
    {LT_OP_prod, fold_prod, true}, {LT_OP_amax, fold_max, true},
    {LT_OP_amin, fold_min, true},  {LT_OP_logsumexp, fold_logsumexp, true},
    {LT_OP_any, fold_any, false},  {LT_OP_all, fold_all, false},
};
enum { N_FOLDS = sizeof folds / sizeof *folds };

static lt_dims dims_of(unsigned bits) {
  lt_dims d = {0};
  for (int k = 0; k < LT_MAX_DIMS; k++)
    if ((bits >> k & 1) != 0) d.dim[d.n++] = k;
  return d;
}

static void compare(lt_ctx *c, int which, lt_tensor *x, unsigned bits, double tolerance) {
  lt_shape s = lt_tensor_shape(x);
  double *v = values_of(c, x), *wanted = malloc((size_t)(x->numel + 1) * sizeof *wanted);
  reference(v, s, bits, folds[which].fold, wanted);
  for (int keep = 0; keep < 2; keep++) {
    const lt_args_reduce args = {.dims = dims_of(bits), .keepdim = keep != 0};
    lt_tensor *y = lt_apply1(c, folds[which].op, 1, &x, &args);
    expect_ok(c);
    assert_int_equal(y->ndim, keep != 0 ? x->ndim : x->ndim - args.dims.n);
    expect_values(c, y, wanted, tolerance);
  }
  free(v);
  free(wanted);
}

static void any_dims_and_any_strides_match_a_loop(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  for (int which = 0; which < N_FOLDS; which++)
    for (unsigned bits = 1; bits < 8; bits++) {
      lt_tensor *x = tensor_random(c, LT_F32, SHAPE(3, 5, 7), bits, -2, 2);
      compare(c, which, x, bits, 1e-6);
      compare(c, which, tensor_strided(c, x), bits, 1e-6);
      compare(c, which, lt_cast(c, x, LT_F64), bits, 1e-14);
    }
}

static void long_lines_and_long_columns_match_a_loop(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  for (int which = 0; which < N_FOLDS; which++) {
    compare(c, which, tensor_random(c, LT_F32, SHAPE(100003), 1, -1, 1), 1, 2e-6);
    compare(c, which, tensor_random(c, LT_F32, SHAPE(5, 1031), 2, -1, 1), 1, 1e-6);
    compare(c, which, tensor_random(c, LT_F32, SHAPE(5, 1031), 3, -1, 1), 2, 1e-6);
    compare(c, which, tensor_random(c, LT_F32, SHAPE(20011, 3), 4, -1, 1), 1, 2e-6);
    compare(c, which, tensor_random(c, LT_BF16, SHAPE(37, 600), 5, -1, 1), 2, 4e-3);
    compare(c, which, tensor_random(c, LT_F16, SHAPE(37, 600), 6, -1, 1), 1, 1e-3);
  }
}

static void a_sum_of_a_million_floats_keeps_its_digits(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = lt_full(c, SHAPE(1 << 20), lt_scalar_of(0.1f), LT_F32, LT_CPU_DEVICE);
  /* A lane adds 16 values of a tile in f32: at most 16 half units in the last place. */
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, NULL), 16 * 0x1p-25, (double)0.1f * (1 << 20));
}

static void integers_and_truth_values_sum_to_i64(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_BOOL, SHAPE(2, 3), 1, 0, 1, 1, 1, 1);
  lt_tensor *y = lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(-1)});
  EXPECT(c, y, 0, 2, 3);
  assert_int_equal(y->dtype, LT_I64);
  x = TENSOR(c, LT_U8, SHAPE(3), 200, 200, 200);
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, NULL), 0, 600);
}

static void nothing_sums_to_zero(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(2, 0, 3), 1, 0, 1);
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, NULL), 0, 0);
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(1)}), 0, 0, 0, 0, 0, 0,
         0);
  expect_shape(lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(0)}), SHAPE(0, 3));
  x = TENSOR(c, LT_F32, SHAPE0, 5);
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, NULL), 0, 5);
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(-1)}), 0, 5);
}

static lt_tensor *reduce1(lt_ctx *c, lt_op op, lt_tensor *x, lt_dims dims) {
  return lt_apply1(c, op, 1, &x, &(lt_args_reduce){.dims = dims});
}

static void reductions_of_nothing(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(2, 0), 1, 0, 1);
  EXPECT(c, reduce1(c, LT_OP_mean, x, DIMS(1)), 0, NAN, NAN);
  EXPECT(c, reduce1(c, LT_OP_prod, x, DIMS(1)), 0, 1, 1);
  EXPECT(c, reduce1(c, LT_OP_any, x, DIMS(1)), 0, 0, 0);
  EXPECT(c, reduce1(c, LT_OP_all, x, DIMS(1)), 0, 1, 1);
  EXPECT(c, reduce1(c, LT_OP_logsumexp, x, DIMS(1)), 0, -INFINITY, -INFINITY);
  expect_shape(reduce1(c, LT_OP_amax, x, DIMS(0)), SHAPE(0));
  assert_null(reduce1(c, LT_OP_amax, x, DIMS(1)));
  expect_failure(c, LT_ESHAPE, "amax: no elements along dim 2 of [2, 0]");
}

static void dtypes_of_results(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_I32, SHAPE(4), 1, 2, 3, 5);
  lt_tensor *y = reduce1(c, LT_OP_mean, x, LT_NO_DIMS);
  EXPECT(c, y, 0, 2.75);
  assert_int_equal(y->dtype, LT_F32);
  y = reduce1(c, LT_OP_amax, x, LT_NO_DIMS);
  EXPECT(c, y, 0, 5);
  assert_int_equal(y->dtype, LT_I32);
  assert_int_equal(reduce1(c, LT_OP_any, x, LT_NO_DIMS)->dtype, LT_BOOL);
  assert_int_equal(reduce1(c, LT_OP_prod, x, LT_NO_DIMS)->dtype, LT_I64);
}

static void nan_wins(void **state) {
  lt_ctx *c = *state;
  for (int place = 0; place < 70; place++) {
    lt_tensor *x = tensor_random(c, LT_F32, SHAPE(70), 1, -1, 1);
    ((float *)lt_data(x))[place] = NAN;
    EXPECT(c, reduce1(c, LT_OP_amax, x, LT_NO_DIMS), 0, NAN);
    EXPECT(c, reduce1(c, LT_OP_amin, x, LT_NO_DIMS), 0, NAN);
    EXPECT(c, lt_apply1(c, LT_OP_argmax, 1, &x, NULL), 0, place);
    lt_tensor *z = lt_reshape(c, x, SHAPE(70, 1));
    EXPECT(c, reduce1(c, LT_OP_amax, z, DIMS(0)), 0, NAN);
  }
}

static void logsumexp_of_infinities(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(4, 2), -INFINITY, -INFINITY, 1, INFINITY, 1000, 1000,
                        -1000, -INFINITY);
  EXPECT(c, reduce1(c, LT_OP_logsumexp, x, DIMS(1)), 1e-7, -INFINITY, INFINITY, 1000 + log(2),
         -1000);
}

static void equal_extremes_share_the_gradient(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = wants_grad(TENSOR(c, LT_F32, SHAPE(4), 3, 1, 3, 2));
  assert_true(lt_backward(c, reduce1(c, LT_OP_amax, x, LT_NO_DIMS), &(lt_backward_options){0}));
  EXPECT(c, x->grad, 0, 0.5, 0, 0.5, 0);
}

static void product_gradients_pass_zeros(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = wants_grad(TENSOR(c, LT_F32, SHAPE(3, 3), 2, 0, 4, 0, 0, 5, 1, 2, 3));
  lt_tensor *y = reduce1(c, LT_OP_prod, x, DIMS(1));
  assert_true(lt_backward(c, reduce1(c, LT_OP_sum, y, LT_NO_DIMS), &(lt_backward_options){0}));
  EXPECT(c, x->grad, 1e-6, 0, 8, 0, 0, 0, 0, 6, 3, 2);
}

static void extremes_know_where_they_are(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 1, 7, 7, 9, -2, 3), *out[2] = {NULL};
  assert_true(lt_apply(c, LT_OP_max, 1, &x, &(lt_args_extremum){.dim = 1}, 2, out));
  EXPECT(c, out[0], 0, 7, 9);
  EXPECT(c, out[1], 0, 1, 0);
  assert_int_equal(out[1]->dtype, LT_I64);
  out[0] = out[1] = NULL;
  assert_true(
      lt_apply(c, LT_OP_min, 1, &x, &(lt_args_extremum){.dim = -2, .keepdim = true}, 2, out));
  EXPECT(c, out[0], 0, 1, -2, 3);
  EXPECT(c, out[1], 0, 0, 1, 1);
  expect_shape(out[1], SHAPE(1, 3));
  out[0] = out[1] = NULL;
  assert_true(lt_apply(c, LT_OP_max, 1, &x, NULL, 2, out));
  EXPECT(c, out[0], 0, 9);
  assert_null(out[1]);
  EXPECT(c, lt_apply1(c, LT_OP_argmax, 1, &x, NULL), 0, 3);
  EXPECT(c, lt_apply1(c, LT_OP_argmin, 1, &x, &(lt_args_arg_reduce){.dim = 0}), 0, 0, 1, 1);
  x = TENSOR(c, LT_F32, SHAPE(0), 0);
  assert_null(lt_apply1(c, LT_OP_argmax, 1, &x, NULL));
  expect_failure(c, LT_ESHAPE, "argmax: no elements along dim 1 of [0]");
}

static void extremes_of_specials(void **state) {
  lt_ctx *c = *state;
  for (int k = 0; k < 3; k++) {
    lt_tensor *x = TENSOR(c,
                          k == 0   ? LT_F32
                          : k == 1 ? LT_F64
                                   : LT_BF16,
                          SHAPE(5, 4), -0.0, 0, -1, -1, -INFINITY, -2, -3, -2, INFINITY, NAN, 1,
                          NAN, -1, -2, -1, -2, 0, -0.0, 0, 3);
    lt_tensor *t = lt_contiguous(c, lt_transpose(c, x, 0, 1));
    lt_args_arg_reduce a = {.dim = 1}, b = {.dim = 0};
    EXPECT(c, lt_apply1(c, LT_OP_argmax, 1, &x, &a), 0, 0, 1, 1, 0, 3);
    EXPECT(c, lt_apply1(c, LT_OP_argmin, 1, &x, &a), 0, 2, 0, 1, 1, 0);
    EXPECT(c, lt_apply1(c, LT_OP_argmax, 1, &t, &b), 0, 0, 1, 1, 0, 3);
    EXPECT(c, lt_apply1(c, LT_OP_argmin, 1, &t, &b), 0, 2, 0, 1, 1, 0);
  }
  lt_tensor *ints = TENSOR(c, LT_I64, SHAPE(3), 5, -7, 5);
  EXPECT(c, lt_apply1(c, LT_OP_argmin, 1, &ints, NULL), 0, 1);
  EXPECT(c, lt_apply1(c, LT_OP_argmax, 1, &ints, NULL), 0, 0);
}

/* Also over dims that are not the last, over strides, over lines longer than a tile. */
static void extremes_match_a_loop(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  for (int dim = 0; dim < 2; dim++) {
    lt_tensor *x = tensor_random(c, LT_F32, SHAPE(37, 1200), 3, -1, 1), *out[2] = {NULL};
    if (dim == 0) x = tensor_strided(c, x);
    assert_true(lt_apply(c, LT_OP_max, 1, &x, &(lt_args_extremum){.dim = dim}, 2, out));
    double *v = values_of(c, x), *best = values_of(c, out[0]), *at = values_of(c, out[1]);
    int64_t n = dim == 0 ? 37 : 1200, lines = 37 * 1200 / n;
    for (int64_t i = 0; i < lines; i++) {
      int64_t k = 0;
      for (int64_t j = 1; j < n; j++)
        if (v[dim == 0 ? j * 1200 + i : i * 1200 + j] > v[dim == 0 ? k * 1200 + i : i * 1200 + k])
          k = j;
      assert_int_equal((int64_t)at[i], k);
      assert_true(best[i] == v[dim == 0 ? k * 1200 + i : i * 1200 + k]);
    }
    free(v), free(best), free(at);
  }
}

static lt_tensor *apply_max(lt_ctx *c, lt_tensor *const *in, void *ud) {
  lt_tensor *out[2] = {NULL};
  lt_apply(c, LT_OP_max, 1, in, ud, 2, out);
  return out[0];
}

static void gradients_of_max_match_finite_differences(void **state) {
  lt_ctx *c = *state;
  const int64_t dims[] = {0, 1, -1, LT_NO_DIM};
  for (int k = 0; k < 8; k++) {
    lt_args_extremum args = {.dim = dims[k % 4], .keepdim = k < 4};
    lt_tensor *x = tensor_random(c, LT_F64, SHAPE(3, 4, 2), 5, -1, 1);
    check_gradient(c, apply_max, &args, 1, &x, 0, 1e-7);
  }
}

static lt_tensor *apply_spread(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const void **call = ud;
  return lt_apply1(c, *(const lt_op *)call[0], 1, in, call[1]);
}

static void variance_and_deviation(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 1, 2, 4, 1000001, 1000002, 1000004);
  lt_args_variance args = {.dims = DIMS(1), .correction = 1};
  EXPECT(c, lt_apply1(c, LT_OP_var, 1, &x, &args), 1e-3, 7.0 / 3, 7.0 / 3);
  args.correction = 0;
  EXPECT(c, lt_apply1(c, LT_OP_std, 1, &x, &args), 1e-3, sqrt(14.0 / 9), sqrt(14.0 / 9));
  args = (lt_args_variance){.dims = LT_NO_DIMS, .correction = 1};
  lt_tensor *one = TENSOR(c, LT_F32, SHAPE(1), 5);
  EXPECT(c, lt_apply1(c, LT_OP_var, 1, &one, &args), 0, NAN);
  lt_tensor *ints = TENSOR(c, LT_I64, SHAPE(2), 1, 2);
  assert_null(lt_apply1(c, LT_OP_var, 1, &ints, &args));
  expect_failure(c, LT_EDTYPE, "var: needs a floating tensor, got i64; write x:to('f32')");
  const lt_op ops[] = {LT_OP_var, LT_OP_std};
  for (int k = 0; k < 2; k++) {
    args = (lt_args_variance){.dims = DIMS(0, 2), .correction = 1};
    const void *call[] = {&ops[k], &args};
    x = tensor_random(c, LT_F64, SHAPE(3, 2, 4), 9, -1, 1);
    check_gradient(c, apply_spread, call, 1, &x, 0, 1e-6);
  }
}

static void norms(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 2), 3, -4, 0, 2);
  const double p[] = {2, 1, INFINITY, 0, 3};
  const double wanted[] = {5, 2, 7, 2, 4, 2, 2, 1, cbrt(91), 2};
  const lt_op op = LT_OP_norm;
  for (int k = 0; k < 5; k++) {
    lt_args_norm args = {.p = p[k], .dims = DIMS(1)};
    expect_values(c, lt_apply1(c, LT_OP_norm, 1, &x, &args), wanted + 2 * k, 1e-6);
    if (k == 3) continue;
    const void *call[] = {&op, &args};
    lt_tensor *z = tensor_random(c, LT_F64, SHAPE(2, 3), 4, 0.5, 1);
    check_gradient(c, apply_spread, call, 1, &z, 0, 1e-6);
  }
  x = wants_grad(TENSOR(c, LT_F32, SHAPE(2), 0, 0));
  lt_backward(c, lt_apply1(c, LT_OP_norm, 1, &x, NULL), &(lt_backward_options){0});
  EXPECT(c, x->grad, 0, 0, 0);
}

static void running_sums(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 1, 2, 3, 10, 20, 30);
  EXPECT(c, lt_apply1(c, LT_OP_cumsum, 1, &x, &(lt_args_scan){.dim = 1}), 0, 1, 3, 6, 10, 30, 60);
  EXPECT(c, lt_apply1(c, LT_OP_cumsum, 1, &x, &(lt_args_scan){.dim = 0}), 0, 1, 2, 3, 11, 22, 33);
  lt_tensor *b = TENSOR(c, LT_BOOL, SHAPE(3), 1, 1, 0);
  lt_tensor *y = lt_apply1(c, LT_OP_cumsum, 1, &b, &(lt_args_scan){.dim = 0});
  EXPECT(c, y, 0, 1, 2, 2);
  assert_int_equal(y->dtype, LT_I64);
  lt_tensor *s = TENSOR(c, LT_F32, SHAPE0, 4);
  EXPECT(c, lt_apply1(c, LT_OP_cumsum, 1, &s, &(lt_args_scan){.dim = -1}), 0, 4);
  x = tensor_random(c, LT_F32, SHAPE(3, 1500), 1, -1, 1);
  lt_tensor *one = lt_apply1(c, LT_OP_cumsum, 1, &x, &(lt_args_scan){.dim = 1});
  lt_tensor *z = tensor_strided(c, x);
  expect_close(c, lt_apply1(c, LT_OP_cumsum, 1, &z, &(lt_args_scan){.dim = 1}), one, 0);
  double *v = values_of(c, x), *got = values_of(c, one), sum = 0;
  for (int k = 0; k < 1500; k++) {
    sum += v[k];
    assert_true(same_within(got[k], sum, 1e-6));
  }
  free(v), free(got);
  const lt_op op = LT_OP_cumsum;
  for (int dim = 0; dim < 3; dim++) {
    lt_args_scan args = {.dim = dim};
    const void *call[] = {&op, &args};
    x = tensor_random(c, LT_F64, SHAPE(2, 3, 4), 4, -1, 1);
    check_gradient(c, apply_spread, call, 1, &x, 0, 1e-7);
  }
}

static void dims_out_of_range_or_twice_are_named(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(2, 3), 1, 0, 1);
  assert_null(lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(1, -1)}));
  expect_failure(c, LT_EARG, "sum: dim 2 is given twice for [2, 3]");
}

static lt_tensor *apply_reduce(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const void **call = ud;
  return lt_apply1(c, *(const lt_op *)call[0], 1, in, call[1]);
}

static void gradients_match_finite_differences(void **state) {
  lt_ctx *c = *state;
  for (int which = 0; which < N_FOLDS && folds[which].differentiable; which++)
    for (unsigned bits = 0; bits < 8; bits++) {
      const lt_args_reduce args = {.dims = dims_of(bits), .keepdim = bits % 2 == 0};
      const void *call[] = {&folds[which].op, &args};
      lt_tensor *x = tensor_random(c, LT_F64, SHAPE(2, 3, 2), 7 + bits, -2, 2);
      check_gradient(c, apply_reduce, call, 1, &x, 0, 1e-6);
    }
}

static void results_do_not_depend_on_threads(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(700, 301), 1, -1, 1);
  for (int which = 0; which < N_FOLDS; which++)
    for (unsigned bits = 0; bits < 4; bits++) {
      const lt_args_reduce args = {.dims = dims_of(bits)};
      const void *call[] = {&folds[which].op, &args};
      check_threads(c, apply_reduce, call, &x);
    }
}

/* The tape and elementwise rows through reductions: y = sum((a + b) a), broadcast. */
static lt_tensor *broadcast_product(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  lt_tensor *s = lt_binary(c, LT_OP_add, in[0], in[1]);
  return lt_apply1(c, LT_OP_sum, LT_IN(lt_binary(c, LT_OP_mul, s, in[0])), NULL);
}

static void broadcasting_sums_back(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(4, 1, 3), 1, -1, 1),
                     tensor_random(c, LT_F64, SHAPE(5, 1), 2, -1, 1)};
  check_gradient(c, broadcast_product, NULL, 2, in, 0, 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(any_dims_and_any_strides_match_a_loop),
      OP_TEST(long_lines_and_long_columns_match_a_loop),
      OP_TEST(a_sum_of_a_million_floats_keeps_its_digits),
      OP_TEST(integers_and_truth_values_sum_to_i64),
      OP_TEST(nothing_sums_to_zero),
      OP_TEST(dims_out_of_range_or_twice_are_named),
      OP_TEST(gradients_match_finite_differences),
      OP_TEST(reductions_of_nothing),
      OP_TEST(dtypes_of_results),
      OP_TEST(nan_wins),
      OP_TEST(logsumexp_of_infinities),
      OP_TEST(equal_extremes_share_the_gradient),
      OP_TEST(product_gradients_pass_zeros),
      OP_TEST(extremes_know_where_they_are),
      OP_TEST(extremes_of_specials),
      OP_TEST(extremes_match_a_loop),
      OP_TEST(gradients_of_max_match_finite_differences),
      OP_TEST(variance_and_deviation),
      OP_TEST(norms),
      OP_TEST(running_sums),
      OP_TEST(results_do_not_depend_on_threads),
      OP_TEST(broadcasting_sums_back),
  };
  return cmocka_run_group_tests_name("reductions", tests, NULL, NULL);
}
