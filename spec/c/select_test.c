/* spec/c/select_test.c: choosing elements by mask, by place and by order, against loops. */
#include "index_test.h"

/* Masks. */

static lt_tensor *fn_fill(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return lt_apply1(c, LT_OP_masked_fill, 2, in,
                   &(lt_args_masked_fill){.value = lt_scalar_of(-INFINITY)});
}
static lt_tensor *fn_where(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return lt_apply1(c, LT_OP_where, 3, in, NULL);
}
static lt_tensor *fn_mask(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return lt_apply1(c, LT_OP_masked_fill, 2, in,
                   &(lt_args_masked_fill){.value = lt_scalar_of(2.5)});
}

static void masks_choose(void **state) {
  lt_ctx *c = *state;
  lt_tensor *mask = TENSOR(c, LT_BOOL, SHAPE(3), 1, 0, 1);
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 1, 2, 3, 4, NAN, 6), *xs = tensor_strided(c, x);
  EXPECT(c, fn_fill(c, (lt_tensor *[]){x, mask}, NULL), 0, -INFINITY, 2, -INFINITY, -INFINITY, NAN,
         -INFINITY);
  expect_same_bits(c, fn_fill(c, (lt_tensor *[]){x, mask}, NULL),
                   fn_fill(c, (lt_tensor *[]){xs, tensor_strided(c, mask)}, NULL));
  lt_tensor *column = TENSOR(c, LT_F32, SHAPE(2, 1), 10, 20),
            *number = TENSOR(c, LT_F64, SHAPE0, -1);
  EXPECT(c, fn_where(c, (lt_tensor *[]){mask, column, x}, NULL), 0, 10, 2, 10, 20, NAN, 20);
  lt_tensor *y = fn_where(c, (lt_tensor *[]){mask, number, column}, NULL);
  EXPECT(c, y, 0, -1, 10, -1, -1, 20, -1);
  assert_int_equal(y->dtype, LT_F32); /* a 0-d tensor does not widen */
  y = fn_where(c, (lt_tensor *[]){mask, TENSOR(c, LT_I64, SHAPE(3), 1, 2, 3), xs}, NULL);
  EXPECT(c, y, 0, 1, 2, 3, 1, NAN, 3);
  lt_tensor *ids = TENSOR(c, LT_I64, SHAPE(3), 1, 2, 3), *into = ids;
  const lt_args_masked_fill nine = {.value = lt_scalar_int(9)};
  assert_true(lt_apply(c, LT_OP_masked_fill, LT_IN(ids, mask), &nine, 1, &into));
  EXPECT(c, ids, 0, 9, 2, 9);
  expect_shape(fn_where(c, (lt_tensor *[]){TENSOR(c, LT_BOOL, SHAPE0, 1), number, number}, NULL),
               SHAPE0);
}

static void masks_pass_gradients(void **state) {
  lt_ctx *c = *state;
  lt_tensor *mask = TENSOR(c, LT_BOOL, SHAPE(3), 1, 0, 1);
  lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(2, 3), 1, -1, 1), mask};
  check_gradient(c, fn_mask, NULL, 2, in, 0, 1e-7);
  lt_tensor *row[] = {tensor_random(c, LT_F64, SHAPE(3), 1, -1, 1),
                      TENSOR(c, LT_BOOL, SHAPE(2, 1), 0, 1)};
  check_gradient(c, fn_mask, NULL, 2, row, 0, 1e-7);
  lt_tensor *three[] = {mask, tensor_random(c, LT_F64, SHAPE(2, 1), 1, -1, 1),
                        tensor_random(c, LT_F64, SHAPE(2, 3), 2, -1, 1)};
  check_gradient(c, fn_where, NULL, 3, three, 0, 1e-7);
}

static void masks_say_what_is_wrong(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_I64, SHAPE(3), 1, 2, 3), *mask = TENSOR(c, LT_BOOL, SHAPE(2), 1, 0);
  fn_mask(c, (lt_tensor *[]){x, x}, NULL);
  expect_failure(c, LT_EDTYPE, "masked_fill: 2.5 does not fit into a tensor of i64");
  fn_fill(c, (lt_tensor *[]){lt_cast(c, x, LT_F32), x}, NULL);
  expect_failure(c, LT_EDTYPE, "masked_fill: the mask must be bool, got i64; write x:ne(0), or x:gt(y)");
  fn_fill(c, (lt_tensor *[]){lt_cast(c, x, LT_F32), mask}, NULL);
  expect_failure(c, LT_ESHAPE, "masked_fill: shapes do not broadcast: [3] and [2]");
  fn_where(c, (lt_tensor *[]){mask, x, x}, NULL);
  expect_failure(c, LT_ESHAPE, "where: shapes do not broadcast: [2] and [3]");
}

/* Triangles. */

static lt_tensor *fn_tril(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_tril, 1, in, &(lt_args_triangle){.diagonal = *(int *)ud});
}
static lt_tensor *fn_triu(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_triu, 1, in, &(lt_args_triangle){.diagonal = *(int *)ud});
}

static void triangles_clear_the_rest(void **state) {
  lt_ctx *c = *state;
  lt_tensor *base = whole(c, SHAPE(2, 3, 4), 50, 1);
  for (int which = 0; which < VARIANTS; which++)
    for (int diagonal = -4; diagonal <= 4; diagonal++) {
      lt_tensor *x = variant(c, base, which);
      plain lower = plain_of(c, base), upper = plain_of(c, base);
      for (int64_t k = 0; k < 24; k++) {
        int64_t row = k / 4 % 3, column = k % 4;
        if (column > row + diagonal) lower.v[k] = 0;
        if (column < row + diagonal) upper.v[k] = 0;
      }
      expect_values(c, fn_tril(c, &x, &diagonal), lower.v, 0);
      expect_values(c, fn_triu(c, &x, &diagonal), upper.v, 0);
      free(lower.v), free(upper.v);
    }
  int diagonal = 1;
  lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(3, 4), 1, -1, 1)};
  check_gradient(c, fn_tril, &diagonal, 1, in, 0, 1e-7);
  lt_tensor *again[] = {tensor_random(c, LT_F64, SHAPE(3, 4), 1, -1, 1)};
  check_gradient(c, fn_triu, &diagonal, 1, again, 0, 1e-7);
  expect_shape(fn_tril(c, (lt_tensor *[]){lt_full(c, SHAPE(2, 0), lt_scalar_int(1), LT_F32,
                                                  LT_CPU_DEVICE)}, &diagonal), SHAPE(2, 0));
  fn_tril(c, (lt_tensor *[]){TENSOR(c, LT_F32, SHAPE(2), 1, 2)}, &diagonal);
  expect_failure(c, LT_ESHAPE, "tril: needs at least 2 dims, got [2]");
}

/* One-hot, nonzero, masks as lists. */

static lt_tensor *one_hot(lt_ctx *c, lt_tensor *ids, int64_t n) {
  return lt_apply1(c, LT_OP_one_hot, 1, &ids, &(lt_args_one_hot){.num_classes = n});
}

static void one_hot_marks_classes(void **state) {
  lt_ctx *c = *state;
  lt_tensor *ids = TENSOR(c, LT_I64, SHAPE(2), 2, 0), *none;
  EXPECT(c, one_hot(c, ids, -1), 0, 0, 0, 1, 1, 0, 0);
  EXPECT(c, one_hot(c, ids, 4), 0, 0, 0, 1, 0, 1, 0, 0, 0);
  expect_shape(one_hot(c, TENSOR(c, LT_I64, SHAPE0, 1), -1), SHAPE(2));
  EXPECT(c, one_hot(c, tensor_strided(c, lt_cast(c, ids, LT_U8)), -1), 0, 0, 0, 1, 1, 0, 0);
  one_hot(c, ids, 2);
  expect_failure(c, LT_EVALUE, "one_hot: id 2 is out of 0..1 (num_classes = 2)");
  none = lt_full(c, SHAPE(0), lt_scalar_int(0), LT_I64, LT_CPU_DEVICE);
  expect_shape(one_hot(c, none, 3), SHAPE(0, 3));
  one_hot(c, none, -1);
  expect_failure(c, LT_EARG, "one_hot: num_classes is needed for an empty tensor");
}

static void nonzero_lists_coordinates(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 0, NAN, -0.0, 3, 0, 1e-30), *y;
  for (int strided = 0; strided < 2; strided++) {
    lt_tensor *in = strided ? tensor_strided(c, x) : x;
    y = lt_apply1(c, LT_OP_nonzero, 1, &in, NULL);
    EXPECT(c, y, 0, 0, 1, 1, 0, 1, 2);
    expect_shape(y, SHAPE(3, 2));
  }
  lt_tensor *one = TENSOR(c, LT_BOOL, SHAPE0, 1), *zero = TENSOR(c, LT_I64, SHAPE(2), 0, 0);
  expect_shape(lt_apply1(c, LT_OP_nonzero, 1, &one, NULL), SHAPE(1, 0));
  expect_shape(lt_apply1(c, LT_OP_nonzero, 1, &zero, NULL), SHAPE(0, 1));
}

static lt_tensor *fn_masked(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return lt_apply1(c, LT_OP_masked_select, 2, in, NULL);
}
static lt_tensor *fn_put_masked(lt_ctx *c, lt_tensor *const *in, void *ud) {
  (void)ud;
  return lt_apply1(c, LT_OP_masked_put, 3, in, NULL);
}

static void masks_make_lists(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
  lt_tensor *rows = TENSOR(c, LT_BOOL, SHAPE(2), 0, 1);
  lt_tensor *some = TENSOR(c, LT_BOOL, SHAPE(2, 3), 1, 0, 0, 0, 1, 1);
  EXPECT(c, fn_masked(c, (lt_tensor *[]){x, some}, NULL), 0, 1, 5, 6);
  lt_tensor *y = fn_masked(c, (lt_tensor *[]){x, TENSOR(c, LT_BOOL, SHAPE(2, 1), 0, 1)}, NULL);
  EXPECT(c, y, 0, 4, 5, 6);
  expect_shape(y, SHAPE(3));
  y = fn_masked(c, (lt_tensor *[]){x, TENSOR(c, LT_BOOL, SHAPE(3), 0, 0, 0)}, NULL);
  expect_shape(y, SHAPE(0));
  expect_shape(fn_masked(c, (lt_tensor *[]){x, TENSOR(c, LT_BOOL, SHAPE0, 1)}, NULL), SHAPE(6));
  lt_tensor *list = TENSOR(c, LT_F32, SHAPE(3), 7, 8, 9), *number = TENSOR(c, LT_F32, SHAPE0, -1);
  EXPECT(c, fn_put_masked(c, (lt_tensor *[]){x, some, list}, NULL), 0, 7, 2, 3, 4, 8, 9);
  EXPECT(c, fn_put_masked(c, (lt_tensor *[]){x, rows, list}, NULL), 0, 1, 2, 3, 7, 8, 9);
  EXPECT(c, fn_put_masked(c, (lt_tensor *[]){x, rows, number}, NULL), 0, 1, 2, 3, -1, -1, -1);
  lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(2, 3), 1, -1, 1), some,
                     tensor_random(c, LT_F64, SHAPE(3), 2, -1, 1)};
  check_gradient(c, fn_put_masked, NULL, 3, in, 0, 1e-7);
  in[0] = tensor_random(c, LT_F64, SHAPE(2, 3), 1, -1, 1);
  check_gradient(c, fn_masked, NULL, 2, in, 0, 1e-7);
  fn_masked(c, (lt_tensor *[]){x, rows}, NULL);
  expect_failure(c, LT_ESHAPE, "masked_select: shapes do not broadcast: [2, 3] and [2]");
}

/* In order. */

static lt_tensor *fn_topk(lt_ctx *c, lt_tensor *const *in, void *ud) {
  lt_tensor *out[2] = {NULL};
  lt_apply(c, LT_OP_topk, 1, in, ud, 2, out);
  return out[0];
}

/* Whether b must come before a. */
static bool wrong_order(bool largest, double a, int64_t i, double b, int64_t j) {
  if (isnan(a) && isnan(b)) return j < i;
  if (isnan(a) || isnan(b)) return isnan(b) == largest;
  return a == b ? j < i : largest ? b > a : b < a;
}

static void topk_finds_them_in_order(void **state) {
  lt_ctx *c = *state;
  lt_tensor *base = whole(c, SHAPE(3, 17, 2), 9, 1); /* many ties */
  plain from = plain_of(c, base);
  for (int which = 0; which < VARIANTS; which++)
    for (int mode = 0; mode < 6; mode++) {
      int dim = mode % 3;
      lt_args_topk a = {.k = dim == 1 ? 5 : base->size[dim], .dim = dim, .largest = mode < 3};
      lt_tensor *x = variant(c, base, which), *out[2] = {NULL};
      assert_true(lt_apply(c, LT_OP_topk, 1, &x, &a, 2, out));
      assert_int_equal(out[0]->dtype, x->dtype);
      plain value = plain_of(c, out[0]), index = plain_of(c, out[1]);
      for (int64_t k = 0; k < out[0]->numel; k++) {
        int64_t at[LT_MAX_DIMS], line[LT_MAX_DIMS];
        coordinates(value.shape, k, at);
        memcpy(line, at, sizeof line);
        line[dim] = (int64_t)index.v[k];
        assert_true(value.v[k] == get(&from, line));
        int64_t better = 0; /* as many come before it as its place says */
        for (int64_t e = 0; e < base->size[dim]; e++) {
          line[dim] = e;
          if (e != (int64_t)index.v[k])
            better += wrong_order(a.largest, value.v[k], (int64_t)index.v[k], get(&from, line), e);
        }
        assert_int_equal(better, at[dim]);
      }
      free(value.v), free(index.v);
    }
  free(from.v);
}

static void topk_of_few_and_of_nan(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(4), 1, NAN, INFINITY, -1), *out[2] = {NULL};
  EXPECT(c, fn_topk(c, &x, &(lt_args_topk){.k = 3, .largest = true}), 0, NAN, INFINITY, 1);
  EXPECT(c, fn_topk(c, &x, &(lt_args_topk){.k = 4}), 0, -1, 1, INFINITY, NAN);
  expect_shape(fn_topk(c, &x, &(lt_args_topk){.k = 0}), SHAPE(0));
  fn_topk(c, &x, &(lt_args_topk){.k = 5});
  expect_failure(c, LT_EARG, "topk: k = 5 is out of 0..4 (dim 1 of [4])");
  lt_tensor *number = TENSOR(c, LT_F32, SHAPE0, 3);
  EXPECT(c, fn_topk(c, &number, &(lt_args_topk){.k = 1}), 0, 3);
  assert_true(lt_apply(c, LT_OP_sort, 1, &x, NULL, 2, out));
  EXPECT(c, out[0], 0, -1, 1, INFINITY, NAN);
  EXPECT(c, out[1], 0, 3, 0, 2, 1);
  EXPECT(c, lt_apply1(c, LT_OP_argsort, 1, &x, &(lt_args_argsort){.descending = true}), 0, 1, 2, 0,
         3);
}

static void topk_passes_gradients(void **state) {
  lt_ctx *c = *state;
  for (int dim = 0; dim < 2; dim++) {
    lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(4, 5), 1, -1, 1)};
    check_gradient(c, fn_topk, &(lt_args_topk){.k = 2, .dim = dim, .largest = true}, 1, in, 0,
                   1e-7);
  }
  lt_tensor *big[] = {tensor_random(c, LT_F32, SHAPE(2000, 50), 1, -1, 1)};
  check_threads(c, fn_topk, &(lt_args_topk){.k = 7, .dim = 1, .largest = true}, big);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(masks_choose),
      OP_TEST(masks_pass_gradients),
      OP_TEST(masks_say_what_is_wrong),
      OP_TEST(triangles_clear_the_rest),
      OP_TEST(one_hot_marks_classes),
      OP_TEST(nonzero_lists_coordinates),
      OP_TEST(masks_make_lists),
      OP_TEST(topk_finds_them_in_order),
      OP_TEST(topk_of_few_and_of_nan),
      OP_TEST(topk_passes_gradients),
  };
  return cmocka_run_group_tests_name("selecting", tests, NULL, NULL);
}
