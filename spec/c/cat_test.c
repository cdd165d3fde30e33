/* spec/c/cat_test.c: cat, stack and the composite views against index arithmetic. */
#include "index_test.h"

/* Element `at` of t, by its coordinates. */
static double element(lt_ctx *c, lt_tensor *t, const int64_t *at) {
  int64_t k = 0;
  for (int d = 0; d < t->ndim; d++) k = k * t->size[d] + at[d];
  return value_at(c, t, k);
}

static lt_tensor *cat(lt_ctx *c, int n, lt_tensor *const *in, int64_t dim) {
  return lt_apply1(c, LT_OP_cat, n, in, &(lt_args_cat){.dim = dim});
}
static lt_tensor *stack(lt_ctx *c, int n, lt_tensor *const *in, int64_t dim) {
  return lt_apply1(c, LT_OP_stack, n, in, &(lt_args_stack){.dim = dim});
}

static void expect_cat(lt_ctx *c, lt_tensor *y, int n, lt_tensor *const *in, int dim) {
  for (int64_t k = 0; k < y->numel; k++) {
    int64_t at[LT_MAX_DIMS];
    coordinates(lt_tensor_shape(y), k, at);
    int which = 0;
    while (at[dim] >= in[which]->size[dim]) at[dim] -= in[which++]->size[dim];
    assert_true(which < n);
    assert_true(value_at(c, y, k) == element(c, in[which], at));
  }
}

static void cat_places_each_tensor(void **state) {
  lt_ctx *c = *state;
  for (int dim = 0; dim < 3; dim++) {
    lt_tensor *in[3];
    for (int k = 0; k < 3; k++) {
      lt_shape s = SHAPE(2, 3, 4);
      s.size[dim] = k == 1 ? 1 : 3 + k;
      in[k] = tensor_random(c, LT_F32, s, (uint64_t)k, -1, 1);
      if (k == 2) in[k] = tensor_strided(c, in[k]);
    }
    lt_tensor *y = cat(c, 3, in, dim), *same = cat(c, 3, in, dim - 3);
    expect_ok(c);
    expect_cat(c, y, 3, in, dim);
    expect_same_bits(c, y, same);
  }
}

static void cat_finds_the_common_dtype(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = TENSOR(c, LT_I64, SHAPE(2), 1, 2), *b = TENSOR(c, LT_BF16, SHAPE(1), 0.5);
  lt_tensor *y = cat(c, 2, (lt_tensor *[]){a, b}, 0);
  EXPECT(c, y, 0, 1, 2, 0.5);
  assert_int_equal(y->dtype, LT_BF16);
  y = cat(c, 2, (lt_tensor *[]){y, TENSOR(c, LT_F64, SHAPE(1), 3)}, 0);
  EXPECT(c, y, 0, 1, 2, 0.5, 3);
  assert_int_equal(y->dtype, LT_F64);
}

static void empty_parts_take_no_room(void **state) {
  lt_ctx *c = *state;
  lt_tensor *nothing = lt_full(c, SHAPE(0), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE);
  lt_tensor *none = lt_full(c, SHAPE(2, 0), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE);
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 2), 1, 2, 3, 4);
  lt_tensor *y = cat(c, 4, (lt_tensor *[]){nothing, none, x, none}, 1);
  EXPECT(c, y, 0, 1, 2, 3, 4);
  expect_shape(y, SHAPE(2, 2));
  expect_shape(cat(c, 2, (lt_tensor *[]){none, none}, 1), SHAPE(2, 0));
  expect_shape(cat(c, 2, (lt_tensor *[]){none, none}, 0), SHAPE(4, 0));
  expect_shape(cat(c, 1, &nothing, 0), SHAPE(0));
  expect_shape(stack(c, 2, (lt_tensor *[]){none, none}, 1), SHAPE(2, 2, 0));
}

static void stack_makes_a_dim(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[3];
  for (int k = 0; k < 3; k++) in[k] = tensor_random(c, LT_F32, SHAPE(2, 4), (uint64_t)k, -1, 1);
  in[1] = tensor_strided(c, in[1]);
  for (int dim = 0; dim < 3; dim++) {
    lt_tensor *y = stack(c, 3, in, dim);
    expect_ok(c);
    assert_int_equal(y->size[dim], 3);
    for (int64_t k = 0; k < y->numel; k++) {
      int64_t at[LT_MAX_DIMS], rest[LT_MAX_DIMS];
      coordinates(lt_tensor_shape(y), k, at);
      for (int d = 0, n = 0; d < 3; d++)
        if (d != dim) rest[n++] = at[d];
      assert_true(value_at(c, y, k) == element(c, in[at[dim]], rest));
    }
  }
  lt_tensor *numbers[2] = {TENSOR(c, LT_F32, SHAPE0, 3), TENSOR(c, LT_F32, SHAPE0, 4)};
  EXPECT(c, stack(c, 2, numbers, 0), 0, 3, 4);
}

static void joining_says_what_does_not_fit(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = TENSOR(c, LT_F32, SHAPE(1, 2), 1, 2), *b = TENSOR(c, LT_F32, SHAPE(1, 3), 1, 2, 3);
  lt_tensor *number = TENSOR(c, LT_F32, SHAPE0, 1);
  cat(c, 2, (lt_tensor *[]){a, b}, 0);
  expect_failure(c, LT_ESHAPE, "cat: shapes differ outside dim 1: [1, 2] and [1, 3] (tensor 2)");
  cat(c, 2, (lt_tensor *[]){a, b}, 2);
  expect_failure(c, LT_EARG, "cat: dim 3 is out of range for shape [1, 2] (1..2 or -1..-2)");
  cat(c, 1, &number, 0);
  expect_failure(c, LT_ESHAPE, "cat: tensors without dims cannot be joined; stack makes one");
  cat(c, 0, NULL, 0);
  expect_failure(c, LT_EARG, "cat: the list is empty");
  stack(c, 2, (lt_tensor *[]){a, b}, 0);
  expect_failure(c, LT_ESHAPE, "stack: shapes differ: [1, 2] and [1, 3] (tensor 2)");
}

static lt_tensor *fn_cat(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return cat(c, 3, in, *(int *)ud);
}
static lt_tensor *fn_stack(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return stack(c, 3, in, *(int *)ud);
}

static void gradients_are_the_parts(void **state) {
  lt_ctx *c = *state;
  for (int dim = 0; dim < 2; dim++) {
    lt_tensor *in[3], *same[3];
    for (int k = 0; k < 3; k++) {
      lt_shape s = SHAPE(2, 2);
      s.size[dim] = k + 1;
      in[k] = tensor_random(c, LT_F64, s, (uint64_t)k, -1, 1);
      same[k] = tensor_random(c, LT_F64, SHAPE(2, 3), (uint64_t)k, -1, 1);
    }
    check_gradient(c, fn_cat, &dim, 3, in, 0, 1e-7);
    check_gradient(c, fn_stack, &dim, 3, same, 0, 1e-7);
  }
}

static void threads_change_nothing(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[3];
  int dim = 1;
  for (int k = 0; k < 3; k++)
    in[k] = tensor_strided(c, tensor_random(c, LT_F32, SHAPE(301, 257), (uint64_t)k, -1, 1));
  check_threads(c, fn_cat, &dim, in);
  check_threads(c, fn_stack, &dim, in);
}

/* Views. */

static lt_tensor *apply(lt_ctx *c, lt_op op, lt_tensor *x, const void *args) {
  return lt_apply1(c, op, 1, &x, args);
}

/* Element k of y is element from(coordinates of k) of x. */
static void expect_places(lt_ctx *c, lt_tensor *y, lt_tensor *x,
                          void (*from)(const int64_t *y_at, int64_t *x_at)) {
  expect_ok(c);
  for (int64_t k = 0; k < y->numel; k++) {
    int64_t at[LT_MAX_DIMS] = {0}, source[LT_MAX_DIMS] = {0};
    coordinates(lt_tensor_shape(y), k, at);
    from(at, source);
    assert_true(value_at(c, y, k) == element(c, x, source));
  }
  assert_ptr_equal(y->storage, x->storage);
}

static void swapped(const int64_t *y, int64_t *x) { x[0] = y[2], x[1] = y[1], x[2] = y[0]; }
static void moved(const int64_t *y, int64_t *x) { x[0] = y[1], x[1] = y[2], x[2] = y[0]; }
static void third(const int64_t *y, int64_t *x) { x[0] = y[0], x[1] = 2, x[2] = y[1]; }
static void odd(const int64_t *y, int64_t *x) { x[0] = y[0], x[1] = y[1], x[2] = 1 + 2 * y[2]; }
static void tail(const int64_t *y, int64_t *x) { x[0] = y[0], x[1] = y[1] + 1, x[2] = y[2]; }

static void views_show_the_right_elements(void **state) {
  lt_ctx *c = *state;
  lt_tensor *dense = tensor_random(c, LT_F32, SHAPE(2, 3, 5), 1, -1, 1);
  for (int strided = 0; strided < 2; strided++) {
    lt_tensor *x = strided ? tensor_strided(c, dense) : dense;
    lt_tensor *y = apply(c, LT_OP_transpose, x, &(lt_args_transpose){.dim0 = 0, .dim1 = -1});
    expect_places(c, y, x, swapped);
    y = apply(c, LT_OP_movedim, x, &(lt_args_movedim){.source = DIMS(2), .destination = DIMS(0)});
    expect_shape(y, SHAPE(5, 2, 3));
    expect_places(c, y, x, moved);
    y = apply(c, LT_OP_select, x, &(lt_args_select){.dim = 1, .index = -1});
    expect_shape(y, SHAPE(2, 5));
    expect_places(c, y, x, third);
    y = apply(c, LT_OP_slice, x, &(lt_args_slice){.dim = -1, .from = 1, .to = -1, .step = 2});
    expect_shape(y, SHAPE(2, 3, 2));
    expect_places(c, y, x, odd);
    y = apply(c, LT_OP_narrow, x, &(lt_args_narrow){.dim = 1, .start = -2, .length = 2});
    expect_shape(y, SHAPE(2, 2, 5));
    expect_places(c, y, x, tail);
  }
}

static void dims_of_one_come_and_go(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(1, 3, 1, 2), 1, -1, 1);
  expect_shape(apply(c, LT_OP_squeeze, x, NULL), SHAPE(3, 2));
  expect_shape(apply(c, LT_OP_squeeze, x, &(lt_args_squeeze){.dims = DIMS(-2)}), SHAPE(1, 3, 2));
  expect_shape(apply(c, LT_OP_squeeze, x, &(lt_args_squeeze){.dims = DIMS(1)}), SHAPE(1, 3, 1, 2));
  expect_shape(apply(c, LT_OP_unsqueeze, x, &(lt_args_unsqueeze){.dim = -1}),
               SHAPE(1, 3, 1, 2, 1));
  expect_shape(apply(c, LT_OP_unsqueeze, x, &(lt_args_unsqueeze){.dim = 1}), SHAPE(1, 1, 3, 1, 2));
  expect_shape(apply(c, LT_OP_flatten, x, &(lt_args_flatten){.end_dim = -1}), SHAPE(6));
  expect_shape(apply(c, LT_OP_flatten, x, &(lt_args_flatten){.start_dim = 1, .end_dim = 2}),
               SHAPE(1, 3, 2));
  lt_tensor *number = TENSOR(c, LT_F32, SHAPE0, 1);
  expect_shape(apply(c, LT_OP_flatten, number, NULL), SHAPE(1));
  expect_shape(apply(c, LT_OP_unsqueeze, number, &(lt_args_unsqueeze){.dim = 0}), SHAPE(1));
  expect_shape(apply(c, LT_OP_t, number, NULL), SHAPE0);
  expect_shape(apply(c, LT_OP_t, TENSOR(c, LT_F32, SHAPE(1, 2), 1, 2), NULL), SHAPE(2, 1));
  lt_tensor *y = apply(c, LT_OP_flatten, tensor_strided(c, x), &(lt_args_flatten){.end_dim = -1});
  expect_close(c, y, lt_reshape(c, x, SHAPE(6)), 0);
}

static void ranges_may_be_empty(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(3), 1, 2, 3);
  const lt_args_slice none[] = {{.from = 2, .to = 1, .step = 1}, {.from = 3, .to = 2, .step = 5}};
  for (int k = 0; k < 2; k++) expect_shape(apply(c, LT_OP_slice, x, &none[k]), SHAPE(0));
  lt_tensor *empty = lt_full(c, SHAPE(0), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE);
  expect_shape(apply(c, LT_OP_slice, empty, &(lt_args_slice){.to = -1, .step = 1}), SHAPE(0));
  expect_shape(apply(c, LT_OP_narrow, x, &(lt_args_narrow){.start = 3, .length = 0}), SHAPE(0));
  EXPECT(c, apply(c, LT_OP_slice, x, &(lt_args_slice){.to = -1, .step = 9}), 0, 1);
}

static void views_say_what_is_wrong(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(2, 3), 1, -1, 1), *n = TENSOR(c, LT_F32, SHAPE0, 1);
  apply(c, LT_OP_select, x, &(lt_args_select){.dim = 1, .index = 3});
  expect_failure(c, LT_EARG, "select: position 4 is out of 1..3 (dim 2 of [2, 3])");
  apply(c, LT_OP_select, x, &(lt_args_select){.dim = 1, .index = -4});
  expect_failure(c, LT_EARG, "select: position -4 is out of 1..3 (dim 2 of [2, 3])");
  apply(c, LT_OP_select, n, &(lt_args_select){.dim = 0, .index = 0});
  expect_failure(c, LT_ESHAPE, "select: a tensor without dims has no positions");
  apply(c, LT_OP_narrow, x, &(lt_args_narrow){.dim = 0, .start = 1, .length = 2});
  expect_failure(c, LT_EARG, "narrow: 2 positions from 2 are out of 1..2 (dim 1 of [2, 3])");
  apply(c, LT_OP_slice, x, &(lt_args_slice){.dim = 1, .from = 1, .to = 3, .step = 1});
  expect_failure(c, LT_EARG, "slice: the range 2..4 is out of 1..3 (dim 2 of [2, 3])");
  apply(c, LT_OP_slice, x, &(lt_args_slice){.dim = 1, .from = 2, .to = 0, .step = 1});
  expect_failure(c, LT_EARG, "slice: the range 3..1 is out of 1..3 (dim 2 of [2, 3])");
  apply(c, LT_OP_slice, x, &(lt_args_slice){.dim = 1, .to = 1, .step = 0});
  expect_failure(c, LT_EARG, "slice: the step must be 1 or more, got 0");
  apply(c, LT_OP_transpose, x, &(lt_args_transpose){.dim0 = 0, .dim1 = 2});
  expect_failure(c, LT_EARG, "transpose: dim 3 is out of range for shape [2, 3] (1..2 or -1..-2)");
  apply(c, LT_OP_unsqueeze, x, &(lt_args_unsqueeze){.dim = 3});
  expect_failure(c, LT_EARG, "unsqueeze: dim 4 is out of range for shape [2, 3] (1..3 or -1..-3)");
  apply(c, LT_OP_flatten, x, &(lt_args_flatten){.start_dim = 1, .end_dim = 0});
  expect_failure(c, LT_EARG, "flatten: start_dim 2 comes after end_dim 1 (shape [2, 3])");
  apply(c, LT_OP_movedim, x, &(lt_args_movedim){.source = DIMS(0, 0), .destination = DIMS(0, 1)});
  expect_failure(c, LT_EARG, "movedim: a dim is given twice (shape [2, 3])");
}

static lt_tensor *fn_views(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  lt_tensor *x = apply(c, LT_OP_transpose, in[0], &(lt_args_transpose){.dim0 = 0, .dim1 = 1});
  x = apply(c, LT_OP_slice, x, &(lt_args_slice){.dim = 0, .from = 0, .to = 2, .step = 2});
  x = apply(c, LT_OP_unsqueeze, x, &(lt_args_unsqueeze){.dim = 1});
  x = apply(c, LT_OP_narrow, x, &(lt_args_narrow){.dim = 2, .start = 1, .length = 1});
  x = apply(c, LT_OP_squeeze, x, NULL);
  return apply(c, LT_OP_select, x, &(lt_args_select){.dim = 0, .index = 1});
}

static lt_tensor *fn_flip(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return apply(c, LT_OP_flip, in[0], &(lt_args_flip){.dims = DIMS(0, -1)});
}

static void flip_reads_backwards(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F64, SHAPE(3, 2, 4), 1, -1, 1), *xs = tensor_strided(c, x);
  lt_tensor *y = fn_flip(c, &x, NULL);
  for (int64_t k = 0; k < 24; k++) {
    int64_t at[LT_MAX_DIMS];
    coordinates(SHAPE(3, 2, 4), k, at);
    at[0] = 2 - at[0], at[2] = 3 - at[2];
    assert_true(value_at(c, y, k) == element(c, x, at));
  }
  expect_same_bits(c, y, fn_flip(c, &xs, NULL));
  check_gradient(c, fn_flip, NULL, 1, &x, 0, 1e-7);
  lt_tensor *empty = lt_full(c, SHAPE(0, 3), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE);
  expect_shape(fn_flip(c, &empty, NULL), SHAPE(0, 3));
}

static lt_tensor *fn_outer(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return lt_apply1(c, LT_OP_outer, 2, in, NULL);
}
static lt_tensor *fn_addmm(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return lt_apply1(c, LT_OP_addmm, 3, in, &(lt_args_addmm){.beta = 0.5, .alpha = -2});
}

static void products_are_composed(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = TENSOR(c, LT_F64, SHAPE(2), 1, 2), *b = TENSOR(c, LT_F64, SHAPE(3), 3, 4, 5);
  EXPECT(c, fn_outer(c, (lt_tensor *[]){a, b}, NULL), 0, 3, 4, 5, 6, 8, 10);
  check_gradient(c, fn_outer, NULL, 2, (lt_tensor *[]){a, b}, 0, 1e-7);
  lt_tensor *m = TENSOR(c, LT_F64, SHAPE(1, 2), 1, 2),
            *n = TENSOR(c, LT_F64, SHAPE(2, 2), 1, 2, 3, 4);
  lt_tensor *in[] = {TENSOR(c, LT_F64, SHAPE(2), 10, 20), m, n};
  EXPECT(c, fn_addmm(c, in, NULL), 1e-14, 5 - 2 * 7, 10 - 2 * 10);
  check_gradient(c, fn_addmm, NULL, 3, in, 0, 1e-6);
  fn_outer(c, (lt_tensor *[]){a, n}, NULL);
  expect_failure(c, LT_ESHAPE, "outer: needs two vectors, got [2] and [2, 2]");
  fn_addmm(c, (lt_tensor *[]){b, m, n}, NULL);
  expect_failure(c, LT_ESHAPE, "addmm: [3] does not fit into the product [1, 2]");
}

static void views_pass_gradients(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(2, 3), 1, -1, 1)};
  check_gradient(c, fn_views, NULL, 1, in, 0, 1e-7);
}

static void a_composite_writes_into_the_passed_result(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 2), 1, 2, 3, 4),
            *y = TENSOR(c, LT_F64, SHAPE(2, 2), 0, 0, 0, 0);
  uint64_t version = y->storage->version;
  lt_tensor *out = y, *whole = TENSOR(c, LT_I64, SHAPE(2, 2), 0, 0, 0, 0);
  assert_true(lt_apply(c, LT_OP_t, 1, &x, NULL, 1, &out));
  assert_ptr_equal(out, y);
  EXPECT(c, y, 0, 1, 3, 2, 4);
  assert_true(y->storage->version > version);
  out = whole;
  assert_false(lt_apply(c, LT_OP_t, 1, &x, NULL, 1, &out));
  expect_failure(c, LT_EDTYPE, "t: a result of f32 does not fit into a tensor of i64");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(cat_places_each_tensor),        OP_TEST(cat_finds_the_common_dtype),
      OP_TEST(empty_parts_take_no_room),      OP_TEST(stack_makes_a_dim),
      OP_TEST(joining_says_what_does_not_fit), OP_TEST(gradients_are_the_parts),
      OP_TEST(threads_change_nothing),        OP_TEST(views_show_the_right_elements),
      OP_TEST(dims_of_one_come_and_go),       OP_TEST(ranges_may_be_empty),
      OP_TEST(views_say_what_is_wrong),       OP_TEST(views_pass_gradients),
      OP_TEST(a_composite_writes_into_the_passed_result),
      OP_TEST(flip_reads_backwards),
      OP_TEST(products_are_composed),
  };
  return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
