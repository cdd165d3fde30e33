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

static const struct {
  lt_op op;
  fold fold;
} folds[] = {{LT_OP_sum, fold_sum}};
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
    compare(c, which, tensor_random(c, LT_F32, SHAPE(100003), 1, -1, 1), 1, 1e-6);
    compare(c, which, tensor_random(c, LT_F32, SHAPE(5, 1031), 2, -1, 1), 1, 1e-6);
    compare(c, which, tensor_random(c, LT_F32, SHAPE(5, 1031), 3, -1, 1), 2, 1e-6);
    compare(c, which, tensor_random(c, LT_F32, SHAPE(20011, 3), 4, -1, 1), 1, 1e-6);
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
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(1)}), 0, 0, 0, 0, 0, 0, 0);
  expect_shape(lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(0)}), SHAPE(0, 3));
  x = TENSOR(c, LT_F32, SHAPE0, 5);
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, NULL), 0, 5);
  EXPECT(c, lt_apply1(c, LT_OP_sum, 1, &x, &(lt_args_reduce){.dims = DIMS(-1)}), 0, 5);
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
  for (int which = 0; which < N_FOLDS; which++)
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
      OP_TEST(results_do_not_depend_on_threads),
      OP_TEST(broadcasting_sums_back),
  };
  return cmocka_run_group_tests_name("reductions", tests, NULL, NULL);
}
