/* spec/c/tensor_test.h: what tests of ops share: a context, tensors from numbers, comparisons,
   gradients against finite differences. Included after the system headers that cmocka wants. */
#ifndef LT_SPEC_C_TENSOR_TEST_H
#define LT_SPEC_C_TENSOR_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "autograd/backward.h"
#include "ops/op.h"
#include "registry.h"

/* A test's fixture: `*state` is a fresh ctx with one frame open. Use with
   cmocka_unit_test_setup_teardown(test, open_ctx, close_ctx), or OP_TEST(test). */
static inline int open_ctx(void **state) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  if (c == NULL) return -1;
  c->modes.grad = true;
  lt_frame_open(c);
  *state = c;
  return 0;
}
static inline int close_ctx(void **state) {
  lt_ctx *c = *state;
  lt_frame_close(c, 0, 0, NULL);
  lt_ctx_release(c);
  return 0;
}
#define OP_TEST(test) cmocka_unit_test_setup_teardown(test, open_ctx, close_ctx)

/* Fail the test with the ctx's message. */
static inline void expect_ok(lt_ctx *c) {
  lt_failure f;
  if (lt_take_failure(c, &f)) fail_msg("%s", f.text);
}

/* The call before must have failed with exactly this text. */
static inline void expect_failure(lt_ctx *c, lt_code code, const char *text) {
  lt_failure f;
  if (!lt_take_failure(c, &f)) fail_msg("no failure, wanted: %s", text);
  assert_string_equal(f.text, text);
  assert_int_equal(f.code, code);
}

/* SHAPE(2, 3); SHAPE0 is the shape of a 0-d tensor. */
#define SHAPE(...)                                                        \
  lt_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),  \
              (int64_t[]){__VA_ARGS__})
#define SHAPE0 ((lt_shape){0})
#define DIMS(...) \
  ((lt_dims){.n = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = {__VA_ARGS__}})

/* A contiguous tensor of `dtype` with these values, without history. */
static inline lt_tensor *tensor_of(lt_ctx *c, lt_dtype dtype, lt_shape shape,
                                   const double *values) {
  bool grad = c->modes.grad;
  c->modes.grad = false;
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F64, shape.ndim, shape.size);
  assert_non_null(t);
  memcpy(lt_data(t), values, (size_t)t->numel * sizeof *values);
  t = lt_cast(c, t, dtype);
  c->modes.grad = grad;
  expect_ok(c);
  return t;
}
/* TENSOR(c, LT_F32, SHAPE(2, 2), 1, 2, 3, 4) */
#define TENSOR(c, dtype, shape, ...) tensor_of(c, dtype, shape, (const double[]){__VA_ARGS__})

/* Number k of a fixed series in [0, 1): good enough to fill tensors, the same everywhere. */
static inline double test_random(uint64_t seed, uint64_t k) {
  uint64_t x = (seed << 32) + k + 1;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* Values in [lo, hi). */
static inline lt_tensor *tensor_random(lt_ctx *c, lt_dtype dtype, lt_shape shape, uint64_t seed,
                                       double lo, double hi) {
  int64_t n = lt_shape_numel(shape);
  double *v = malloc((size_t)(n + 1) * sizeof *v);
  assert_non_null(v);
  for (int64_t k = 0; k < n; k++) v[k] = lo + (hi - lo) * test_random(seed, (uint64_t)k);
  lt_tensor *t = tensor_of(c, dtype, shape, v);
  free(v);
  return t;
}

/* All elements in logical order, as doubles. Free it with free(). */
static inline double *values_of(lt_ctx *c, lt_tensor *t) {
  expect_ok(c);
  assert_non_null(t);
  double *v = malloc((size_t)(t->numel + 1) * sizeof *v);
  assert_non_null(v);
  bool grad = c->modes.grad;
  c->modes.grad = false;
  t = lt_contiguous(c, lt_cast(c, t, LT_F64));
  expect_ok(c);
  memcpy(v, lt_data(t), (size_t)t->numel * sizeof *v);
  c->modes.grad = grad;
  return v;
}
static inline double value_at(lt_ctx *c, lt_tensor *t, int64_t k) {
  double *v = values_of(c, t), x = v[k];
  free(v);
  return x;
}

static inline bool same_within(double a, double b, double tolerance) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  if (isinf(a) || isinf(b)) return a == b;
  return fabs(a - b) <= tolerance * (1 + fabs(b));
}

static inline void expect_shape(lt_tensor *t, lt_shape shape) {
  assert_non_null(t);
  assert_string_equal(LT_TENSOR_STR(t), LT_SHAPE_STR(shape));
}

/* |value - wanted| <= tolerance (1 + |wanted|) for each element; NaN equals NaN. */
static inline void expect_values(lt_ctx *c, lt_tensor *t, const double *wanted, double tolerance) {
  double *v = values_of(c, t);
  for (int64_t k = 0; k < t->numel; k++)
    if (!same_within(v[k], wanted[k], tolerance))
      fail_msg("element %lld of %s is %.17g, wanted %.17g", (long long)k, LT_TENSOR_STR(t), v[k],
               wanted[k]);
  free(v);
}
/* EXPECT(c, t, 1e-6, 1, 2, 3): as many values as elements. */
#define EXPECT(c, t, tolerance, ...)                                                   \
  do {                                                                                 \
    const double wanted_[] = {__VA_ARGS__};                                            \
    expect_ok(c);                                                                      \
    assert_int_equal((t)->numel, (int64_t)(sizeof wanted_ / sizeof *wanted_));         \
    expect_values(c, t, wanted_, tolerance);                                           \
  } while (0)

static inline void expect_close(lt_ctx *c, lt_tensor *a, lt_tensor *b, double tolerance) {
  expect_ok(c);
  expect_shape(a, lt_tensor_shape(b));
  double *wanted = values_of(c, b);
  expect_values(c, a, wanted, tolerance);
  free(wanted);
}

/* Same dtype, same bits. */
static inline void expect_same_bits(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  expect_ok(c);
  expect_shape(a, lt_tensor_shape(b));
  assert_int_equal(a->dtype, b->dtype);
  bool grad = c->modes.grad;
  c->modes.grad = false;
  a = lt_contiguous(c, a), b = lt_contiguous(c, b);
  c->modes.grad = grad;
  assert_memory_equal(lt_data(a), lt_data(b), (size_t)a->numel * lt_item_size(a));
}

/* The same values over other strides: the dims laid out backwards, with every second element of
   a wider row in between. */
static inline lt_tensor *tensor_strided(lt_ctx *c, lt_tensor *t) {
  bool grad = c->modes.grad;
  c->modes.grad = false;
  lt_shape back = {.ndim = t->ndim};
  int dims[LT_MAX_DIMS];
  for (int k = 0; k < t->ndim; k++) {
    dims[k] = t->ndim - 1 - k;
    back.size[k] = t->size[dims[k]] * (k == t->ndim - 1 ? 2 : 1);
  }
  lt_tensor *wide = lt_full(c, back, lt_scalar_int(0), (lt_dtype)t->dtype, LT_CPU_DEVICE);
  if (t->ndim > 0) wide = lt_slice(c, wide, t->ndim - 1, 0, t->size[0], 2);
  wide = lt_permute(c, wide, dims);
  assert_true(lt_copy_into(c, wide, t));
  c->modes.grad = grad;
  expect_ok(c);
  return wide;
}

/* Ask for a gradient of a leaf. */
static inline lt_tensor *wants_grad(lt_tensor *t) {
  t->flags |= LT_REQUIRES_GRAD;
  return t;
}

/* A function of tensors under test; all inputs are f64. */
typedef lt_tensor *(*tensor_fn)(lt_ctx *c, lt_tensor *const *in, void *ud);

/* sum of y times fixed weights: a scalar that depends on each element of y differently. */
static inline lt_tensor *weighed(lt_ctx *c, lt_tensor *y) {
  expect_ok(c);
  lt_tensor *w = tensor_random(c, LT_F64, lt_tensor_shape(y), 99, 0.5, 1.5);
  lt_tensor *s = lt_apply1(c, LT_OP_sum, LT_IN(lt_binary(c, LT_OP_mul, y, w)), NULL);
  expect_ok(c);
  return s;
}

/* Compare the gradients of fn by every element of its f64 inputs (those of floating dtype that
   `which` names by bit; 0: all floating ones) with central differences. */
static inline void check_gradient(lt_ctx *c, tensor_fn fn, void *ud, int n, lt_tensor **in,
                                  unsigned which, double tolerance) {
  const double step = 1e-5;
  for (int k = 0; k < n; k++)
    if (in[k] != NULL && in[k]->dtype == LT_F64 && (which == 0 || (which >> k & 1) != 0))
      wants_grad(in[k]);
  lt_backward(c, weighed(c, fn(c, in, ud)), &(lt_backward_options){0});
  expect_ok(c);
  c->modes.grad = false;
  for (int k = 0; k < n; k++) {
    if (in[k] == NULL || (in[k]->flags & LT_REQUIRES_GRAD) == 0) continue;
    if (in[k]->numel > 0 && in[k]->grad == NULL) fail_msg("input %d got no gradient", k);
    assert_true(in[k]->contiguous);
    for (int64_t i = 0; i < in[k]->numel; i++) {
      lt_frame f = lt_frame_open(c);
      double *x = (double *)lt_data(in[k]) + i, old = *x;
      *x = old + step;
      double up = value_at(c, weighed(c, fn(c, in, ud)), 0);
      *x = old - step;
      double down = value_at(c, weighed(c, fn(c, in, ud)), 0);
      *x = old;
      double wanted = (up - down) / (2 * step), got = value_at(c, in[k]->grad, i);
      if (!same_within(got, wanted, tolerance))
        fail_msg("gradient of input %d, element %lld of %s is %.12g, wanted %.12g", k,
                 (long long)i, LT_TENSOR_STR(in[k]), got, wanted);
      lt_frame_close(c, f, 0, NULL);
    }
  }
  c->modes.grad = true;
}

/* fn on 1 and on 2 threads gives the same bits. */
static inline void check_threads(lt_ctx *c, tensor_fn fn, void *ud, lt_tensor *const *in) {
  c->threads = 1;
  lt_tensor *one = fn(c, in, ud);
  c->threads = 2;
  lt_tensor *two = fn(c, in, ud);
  expect_same_bits(c, one, two);
}

#endif
