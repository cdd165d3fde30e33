/* spec/c/ready_test.c: groups of leaves whose gradients are complete: when each is reported, and in
   which order. */
#include "tensor_test.h"

#include "autograd/gradient_buckets.h"

enum { LEAVES = 4 };

typedef struct seen {
  lt_gradient_buckets *ready;
  lt_tensor *leaf[LEAVES];
  int group[8], n; /* as they were reported */
  int had[8];      /* leaves that had a gradient then */
  bool refuse;
} seen;

static bool note(lt_ctx *c, void *ud, int group) {
  seen *s = ud;
  for (int k = 0; k < LEAVES; k++) s->had[s->n] += s->leaf[k]->grad != NULL;
  s->group[s->n++] = group;
  return !s->refuse || lt_fail(c, LT_EARG, "refused");
}

static void watch(lt_ctx *c, const int *group, seen *s) {
  for (int k = 0; k < LEAVES; k++) {
    s->leaf[k] = lt_full(c, lt_shape_of(0, NULL), lt_scalar_of(k + 2), LT_F64, LT_CPU_DEVICE);
    s->leaf[k]->flags |= LT_REQUIRES_GRAD;
  }
  s->ready = lt_gradient_buckets_new(c, LEAVES, s->leaf, group, note, s);
  assert_non_null(s->ready);
}

static lt_tensor *times(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_binary(c, LT_OP_mul, a, b);
}

/* ((l3 * l2) * l1) * l0, whose backward completes l0 first and l3 and l2 last. */
static lt_tensor *chain(lt_ctx *c, lt_tensor **l) {
  return times(c, times(c, times(c, l[3], l[2]), l[1]), l[0]);
}

static bool backward(lt_ctx *c, lt_tensor *y) {
  return lt_backward(c, y, &(lt_backward_options){0});
}

static void groups_are_reported_while_backward_runs(void **state) {
  lt_ctx *c = *state;
  seen s = {0};
  watch(c, (int[]){0, 1, 1, 2}, &s);
  lt_gradient_buckets_arm(c, s.ready);
  assert_true(backward(c, chain(c, s.leaf)));
  assert_int_equal(s.n, 3);
  for (int k = 0; k < 3; k++) assert_int_equal(s.group[k], k);
  assert_int_equal(s.had[0], 1);
  assert_int_equal(s.had[2], LEAVES);
  const int *order;
  assert_int_equal(lt_gradient_buckets_order(s.ready, &order), LEAVES);
  assert_int_equal(order[0], 0);
  assert_int_equal(order[1], 1);
  lt_gradient_buckets_free(c, s.ready);
}

static void a_group_waits_for_those_before_it(void **state) {
  lt_ctx *c = *state;
  seen s = {0};
  /* Leaf 3, the last to be complete, is in the first group. */
  watch(c, (int[]){0, 1, 2, 3}, &s);
  lt_gradient_buckets_arm(c, s.ready);
  lt_tensor *turned[] = {s.leaf[3], s.leaf[2], s.leaf[1], s.leaf[0]};
  assert_true(backward(c, chain(c, turned)));
  assert_int_equal(s.n, LEAVES);
  assert_int_equal(s.group[0], 0);
  assert_true(s.had[0] >= LEAVES - 1);
  lt_gradient_buckets_free(c, s.ready);
}

static void a_leaf_is_complete_after_its_last_use(void **state) {
  lt_ctx *c = *state;
  seen s = {0};
  watch(c, (int[]){0, 1, 1, 1}, &s);
  /* Leaf 0 is used at the end and at the beginning, with leaf 3. */
  lt_tensor *y = times(c, times(c, times(c, times(c, s.leaf[3], s.leaf[0]), s.leaf[2]), s.leaf[1]),
                       s.leaf[0]);
  lt_gradient_buckets_arm(c, s.ready);
  assert_true(backward(c, y));
  double grad;
  assert_true(lt_tensor_read(c, s.leaf[0]->grad, &grad));
  assert_float_equal(grad, 2 * 2 * 3 * 4 * 5, 1e-12);
  assert_int_equal(s.n, 2);
  assert_true(s.had[0] >= 3); /* leaves 1 and 2 were complete before */
  lt_gradient_buckets_free(c, s.ready);
}

static void leaves_that_are_not_reached_hold_nothing_up(void **state) {
  lt_ctx *c = *state;
  seen s = {0};
  watch(c, (int[]){0, 1, 2, 3}, &s);
  lt_gradient_buckets_arm(c, s.ready);
  assert_true(backward(c, times(c, s.leaf[2], s.leaf[3])));
  assert_int_equal(s.n, LEAVES);
  assert_null(s.leaf[0]->grad);
  const int *order;
  assert_int_equal(lt_gradient_buckets_order(s.ready, &order), 2);
  assert_int_equal(order[0] + order[1], 5);
  lt_gradient_buckets_free(c, s.ready);
}

static void only_an_armed_backward_is_watched(void **state) {
  lt_ctx *c = *state;
  seen s = {0};
  watch(c, (int[]){0, 0, 0, 0}, &s);
  assert_true(backward(c, chain(c, s.leaf)));
  lt_gradient_buckets_arm(c, s.ready);
  lt_gradient_buckets_arm(c, s.ready); /* counts anew */
  lt_gradient_buckets_disarm(c, s.ready);
  assert_int_equal(c->hooks_after, 0);
  assert_true(backward(c, chain(c, s.leaf)));
  assert_int_equal(s.n, 0);
  for (int k = 1; k <= 3; k++) {
    lt_gradient_buckets_arm(c, s.ready);
    assert_true(backward(c, chain(c, s.leaf)));
    assert_int_equal(s.n, k);
  }
  lt_gradient_buckets_free(c, s.ready);
  assert_int_equal(c->hooks_after, 0);
  assert_null(s.leaf[0]->hooks);
}

static void a_failure_ends_the_backward(void **state) {
  lt_ctx *c = *state;
  seen s = {.refuse = true};
  watch(c, (int[]){0, 1, 2, 3}, &s);
  lt_gradient_buckets_arm(c, s.ready);
  assert_false(backward(c, chain(c, s.leaf)));
  expect_failure(c, LT_EARG, "refused");
  assert_int_equal(s.n, 1);
  lt_gradient_buckets_free(c, s.ready);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(groups_are_reported_while_backward_runs),
      OP_TEST(a_group_waits_for_those_before_it),
      OP_TEST(a_leaf_is_complete_after_its_last_use),
      OP_TEST(leaves_that_are_not_reached_hold_nothing_up),
      OP_TEST(only_an_armed_backward_is_watched),
      OP_TEST(a_failure_ends_the_backward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
