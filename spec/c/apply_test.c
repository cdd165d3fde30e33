/* spec/c/apply_test.c: lt_apply and what belongs to it: results to write, overlaps, autocast's
   cache, versions, sizes that cannot be, casts, walks within walks. */
#include "tensor_test.h"

static lt_tensor *autocast_sum(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  c->modes.autocast = true;
  lt_tensor *y = lt_apply1(c, LT_OP_matmul, LT_IN(a, b), NULL);
  c->modes.autocast = false;
  return y == NULL ? NULL : lt_apply1(c, LT_OP_sum, 1, &y, NULL);
}

/* The cache has 256 places, by storage id: these two inputs of one call want the same one. */
static void autocast_keeps_a_cast_that_its_neighbour_replaces(void **state) {
  lt_ctx *c = *state;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *a = wants_grad(TENSOR(c, LT_F32, SHAPE(1, 2), 1, 2)), *b = NULL;
  lt_retain(a);
  for (int k = 0; k < 1000 && (b == NULL || (b->storage->id - a->storage->id) % 256 != 0); k++)
    b = lt_full(c, SHAPE(2, 1), lt_scalar_of(3), LT_F32, LT_CPU_DEVICE);
  assert_int_equal((b->storage->id - a->storage->id) % 256, 0);
  lt_retain(wants_grad(b));
  lt_frame_close(c, frame, 0, NULL);
  for (int round = 0; round < 3; round++) {
    frame = lt_frame_open(c);
    c->modes.autocast = true; /* a's cast is cached, and nothing else holds it */
    assert_null(lt_apply1(c, LT_OP_matmul, LT_IN(a, a), NULL));
    assert_true(lt_take_failure(c, NULL));
    c->modes.autocast = false;
    lt_frame_close(c, frame, 0, NULL);
    frame = lt_frame_open(c);
    lt_tensor *y = autocast_sum(c, a, b); /* once: EXPECT evaluates its argument twice */
    EXPECT(c, y, 0, 9);
    lt_frame_close(c, frame, 0, NULL);
  }
  lt_release(c, a);
  lt_release(c, b);
}

static void autocast_gives_each_leaf_of_a_storage_its_own_gradient(void **state) {
  lt_ctx *c = *state;
  lt_tensor *a = wants_grad(TENSOR(c, LT_F32, SHAPE(1, 2), 1, 2));
  lt_tensor *b = wants_grad(lt_detach(c, a));
  c->modes.grad = false;
  lt_tensor *up = lt_permute(c, b, (int[]){1, 0}); /* the same elements in another shape */
  c->modes.grad = true;
  wants_grad(up);
  lt_tensor *two = TENSOR(c, LT_F32, SHAPE(2, 1), 5, 7), *row = TENSOR(c, LT_F32, SHAPE(1, 1), 1);
  assert_true(lt_backward(c, autocast_sum(c, a, two), &(lt_backward_options){0}));
  lt_tensor *sum = lt_binary(c, LT_OP_add, autocast_sum(c, a, two), autocast_sum(c, b, two));
  sum = lt_binary(c, LT_OP_add, sum, autocast_sum(c, up, row));
  assert_true(lt_backward(c, sum, &(lt_backward_options){0}));
  EXPECT(c, a->grad, 0, 10, 14);
  EXPECT(c, b->grad, 0, 5, 7);
  EXPECT(c, up->grad, 0, 1, 1);
}

/* Without gradients only its shape and strides distinguish a view from its base. */
static void autocast_knows_views_of_a_leaf_by_their_shape(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  lt_tensor *a = wants_grad(TENSOR(c, LT_F32, SHAPE(2, 2), 1, 2, 3, 4));
  lt_tensor *b = wants_grad(lt_permute(c, a, (int[]){1, 0}));
  lt_tensor *v = TENSOR(c, LT_F32, SHAPE(2, 1), 1, 0);
  c->modes.autocast = true;
  EXPECT(c, lt_apply1(c, LT_OP_matmul, LT_IN(a, v), NULL), 0, 1, 3);
  EXPECT(c, lt_apply1(c, LT_OP_matmul, LT_IN(b, v), NULL), 0, 1, 2);
}

static void a_result_may_lie_on_an_input(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 2), 1, 2, 3, 4), *out = x;
  assert_true(lt_apply(c, LT_OP_matmul, LT_IN(x, x), NULL, 1, &out));
  EXPECT(c, x, 0, 7, 10, 15, 22);
  lt_tensor *in[10];
  for (int k = 0; k < 10; k++) in[k] = lt_slice(c, x, 0, k % 2, 1, 1);
  out = lt_full(c, SHAPE(10, 2), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE);
  lt_tensor *part[10];
  for (int k = 0; k < 10; k++) part[k] = lt_slice(c, out, 0, 9 - k, 1, 1);
  assert_true(lt_apply(c, LT_OP_cat, 10, in, NULL, 1, &out));
  assert_true(lt_apply(c, LT_OP_cat, 10, part, NULL, 1, &out)); /* the rows, backwards */
  EXPECT(c, out, 0, 15, 22, 7, 10, 15, 22, 7, 10, 15, 22, 7, 10, 15, 22, 7, 10, 15, 22, 7, 10);
}

static void a_view_takes_no_result(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2), 1, 2), *out = x;
  const lt_args_view args = {.size = {.n = 1, .size = {2}}};
  assert_false(lt_apply(c, LT_OP_view, 1, &x, &args, 1, &out));
  expect_failure(c, LT_EARG, "view: a view has no memory to write its result to");
}

static void sizes_that_cannot_be_counted_are_errors(void **state) {
  lt_ctx *c = *state;
  const int64_t big = (int64_t)1 << 32;
  lt_tensor *one = TENSOR(c, LT_F32, SHAPE(1, 1), 1);
  assert_null(lt_full(c, SHAPE(big, big), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE));
  expect_failure(c, LT_ESHAPE,
                 "full: impossible shape [4294967296, 4294967296] (too many elements)");
  assert_null(lt_expand_to(c, one, SHAPE(big, big)));
  expect_failure(c, LT_ESHAPE,
                 "expand: impossible shape [4294967296, 4294967296] (too many elements)");
  assert_null(lt_full(c, SHAPE(0, big, big), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE));
  expect_failure(c, LT_ESHAPE,
                 "full: impossible shape [0, 4294967296, 4294967296] (too many elements)");
  lt_tensor *none = lt_full(c, SHAPE(0), lt_scalar_of(0), LT_F32, LT_CPU_DEVICE);
  assert_null(lt_reshape(c, none, SHAPE(big, big)));
  expect_failure(c, LT_ESHAPE,
                 "reshape: shape [4294967296, 4294967296] does not hold the 0 elements of [0]");
  lt_device_set_limit(c, 1 << 30);
  lt_tensor *wide = lt_expand_to(c, one, SHAPE(big, 1 << 16)); /* can be counted, not held */
  assert_null(lt_binary(c, LT_OP_add, wide, wide));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(f.code, LT_EMEMORY);
}

static void a_view_made_before_a_recorded_write_is_stale(void **state) {
  lt_ctx *c = *state;
  lt_tensor *w = wants_grad(TENSOR(c, LT_F32, SHAPE(2), 5, 6));
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2), 1, 2), *out = x;
  lt_tensor *part = lt_slice(c, x, 0, 0, 1, 1), *apart = lt_detach(c, x);
  lt_tensor *of_apart = lt_slice(c, apart, 0, 0, 1, 1);
  c->modes.grad = false; /* a write that the tape does not know hurts nobody */
  assert_true(lt_apply(c, LT_OP_add, LT_IN(x, x), NULL, 1, &out));
  c->modes.grad = true;
  EXPECT(c, lt_binary(c, LT_OP_add, part, part), 0, 4);
  assert_true(lt_apply(c, LT_OP_mul, LT_IN(x, w), NULL, 1, &out));
  lt_tensor *turned = lt_tensor_make(c, x->storage, LT_F32, 1, x->size, NULL, 0);
  turned->flags |= LT_IS_VIEW; /* one that does not know its base */
  turned->view_version = 0;
  assert_null(lt_binary(c, LT_OP_add, turned, turned)); /* would have no gradient */
  expect_failure(
      c, LT_EVERSION,
      "add: this view of [2] was written in place since by mul at ?; make the view again "
      "after the write");
  lt_tensor *again = lt_binary(c, LT_OP_add, part, part); /* history of x as it is now */
  EXPECT(c, again, 0, 20);
  lt_backward(c, lt_apply1(c, LT_OP_sum, LT_IN(again), NULL), &(lt_backward_options){0});
  expect_ok(c);
  EXPECT(c, w->grad, 0, 4, 0);
  EXPECT(c, lt_binary(c, LT_OP_add, apart, apart), 0, 20, 48); /* detached: none is wanted */
  EXPECT(c, lt_binary(c, LT_OP_add, of_apart, of_apart), 0, 20);
  EXPECT(c, lt_binary(c, LT_OP_add, lt_slice(c, x, 0, 0, 1, 1), lt_slice(c, x, 0, 1, 1, 1)), 0, 34);
}

static void integers_keep_their_bits_through_casts(void **state) {
  lt_ctx *c = *state;
  const int64_t one = 1;
  lt_tensor *x = lt_tensor_empty(c, LT_CPU_DEVICE, LT_I64, 1, &one);
  const int64_t value =
      ((int64_t)1 << 54) + ((int64_t)1 << 30) + 1; /* above half of an f32's last bit */
  memcpy(lt_data(x), &value, sizeof value);
  lt_tensor *y = lt_cast(c, x, LT_F32);
  expect_ok(c);
  assert_true(*(float *)lt_data(y) == (float)value);
  lt_tensor *small = TENSOR(c, LT_U8, SHAPE(3), 0, 1, 255);
  EXPECT(c, lt_cast(c, small, LT_F32), 0, 0, 1, 255);
  EXPECT(c, lt_cast(c, small, LT_BF16), 0, 0, 1, 255);
  EXPECT(c, lt_cast(c, small, LT_F64), 0, 0, 1, 255);
}

static void integers_wrap(void **state) {
  lt_ctx *c = *state;
  lt_tensor *least = lt_full(c, SHAPE(3), lt_scalar_int(INT64_MIN), LT_I64, LT_CPU_DEVICE);
  const int64_t *y = lt_data(lt_unary(c, LT_OP_abs, least));
  assert_true(y[0] == INT64_MIN);
  y = lt_data(lt_unary(c, LT_OP_neg, least));
  assert_true(y[0] == INT64_MIN);
  y = lt_data(lt_binary(c, LT_OP_add, least, least));
  assert_true(y[0] == 0);
  y = lt_data(lt_binary_scalar(c, LT_OP_mul, least, lt_scalar_int(3)));
  assert_true(y[0] == INT64_MIN);
  y = lt_data(lt_apply1(c, LT_OP_sum, 1, &least, NULL));
  assert_true(y[0] == INT64_MIN);
  y = lt_data(lt_apply1(c, LT_OP_cumsum, 1, &least, NULL));
  assert_true(y[1] == 0);
  lt_tensor *index = lt_full(c, SHAPE(3), lt_scalar_int(0), LT_I64, LT_CPU_DEVICE);
  y = lt_data(lt_apply1(c, LT_OP_scatter_add, LT_IN(least, index, least), NULL));
  assert_true(y[0] == 0 && y[1] == INT64_MIN);
  y = lt_data(lt_apply1(c, LT_OP_index_add, LT_IN(least, index, least), NULL));
  assert_true(y[0] == 0 && y[1] == INT64_MIN);
  lt_tensor *square = lt_expand_to(c, least, SHAPE(3, 3));
  y = lt_data(lt_apply1(c, LT_OP_matmul, LT_IN(square, square), NULL));
  assert_true(y[0] == 0);
}

static bool walk_again(lt_ctx *c, void *ud, lt_tensor *grad, lt_tensor **replacement) {
  (void)grad, (void)replacement;
  return lt_backward(c, ud, &(lt_backward_options){.retain_graph = true});
}

/* y has one gradient of two when the hook of b walks to y again. */
static void a_walk_through_nodes_of_an_open_walk_is_an_error(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = wants_grad(TENSOR(c, LT_F32, SHAPE(1), 3));
  lt_tensor *y = lt_unary(c, LT_OP_exp, x), *a = lt_unary(c, LT_OP_neg, y);
  lt_tensor *b = lt_unary(c, LT_OP_neg, y), *sum = lt_binary(c, LT_OP_sub, b, a);
  lt_hook *hook = lt_alloc(c, sizeof *hook);
  *hook = (lt_hook){.fn = walk_again, .ud = a};
  ((lt_node *)a->node)->hooks = hook;
  assert_false(lt_backward(c, sum, &(lt_backward_options){0}));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_non_null(strstr(f.text, "backward: called within a backward that is still running on"));
}

/* d(3 a + 5 b), by hand. */
static bool weigh(lt_ctx *c, void *ud, lt_tensor *const *grad_out, lt_tensor **grad_in) {
  ++*(int *)ud;
  grad_in[0] = lt_binary_scalar(c, LT_OP_mul, grad_out[0], lt_scalar_of(3));
  grad_in[1] = lt_binary_scalar(c, LT_OP_mul, grad_out[0], lt_scalar_of(5));
  return lt_ok(c);
}
static void forget(lt_ctx *c, void *ud) {
  (void)c;
  *(int *)ud += 100;
}

static void a_function_with_a_derivative_of_its_own_joins_the_tape(void **state) {
  lt_ctx *c = *state;
  int calls = 0;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *a = wants_grad(TENSOR(c, LT_F32, SHAPE(2), 1, 2));
  lt_tensor *b = wants_grad(TENSOR(c, LT_F32, SHAPE(2), 3, 4));
  lt_tensor *y = TENSOR(c, LT_F32, SHAPE(2), 18, 26);
  assert_true(lt_record_custom(c, LT_IN(a, b), 1, &y, (lt_custom){"weigh", weigh, forget, &calls}));
  lt_tensor *sum = lt_apply1(c, LT_OP_sum, 1, &y, NULL);
  assert_true(lt_backward(c, sum, &(lt_backward_options){0}));
  EXPECT(c, a->grad, 0, 3, 3);
  EXPECT(c, b->grad, 0, 5, 5);
  assert_int_equal(calls, 1);
  lt_frame_close(c, frame, 0, NULL);
  assert_int_equal(calls, 101);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(autocast_keeps_a_cast_that_its_neighbour_replaces),
      OP_TEST(autocast_gives_each_leaf_of_a_storage_its_own_gradient),
      OP_TEST(autocast_knows_views_of_a_leaf_by_their_shape),
      OP_TEST(a_result_may_lie_on_an_input),
      OP_TEST(a_view_takes_no_result),
      OP_TEST(sizes_that_cannot_be_counted_are_errors),
      OP_TEST(a_view_made_before_a_recorded_write_is_stale),
      OP_TEST(integers_keep_their_bits_through_casts),
      OP_TEST(integers_wrap),
      OP_TEST(a_function_with_a_derivative_of_its_own_joins_the_tape),
      OP_TEST(a_walk_through_nodes_of_an_open_walk_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
