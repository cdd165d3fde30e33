/* spec/c/update_test.c: optimizer steps and clipping against PyTorch's formulas in double, on the
   CPU; some of them also on fake and the devices that LT_TEST_DEVICES names. */
#include <stdio.h>

#include "tensor_test.h"

enum { TENSORS = 5, STEPS = 4 };
static const int64_t sizes[TENSORS] = {1, 7, 0, 515, 40000}; /* the last one is cut into chunks */

/* The lists of a step: groups of TENSORS tensors; gradients of step s are random_grad(s, k, i). */
typedef struct lists {
  lt_tensor *t[4 * TENSORS];
  double *v[4 * TENSORS]; /* the same in double */
} lists;

static lt_device where; /* the ops of the tests for all devices run there */

/* lt_apply on copies there, which come back. */
static bool apply(lt_ctx *c, lt_op op, int n, lt_tensor **t, const void *args, int n_out,
                  lt_tensor **out) {
  if (where.kind == 0) return lt_apply(c, op, n, t, args, n_out, out);
  lt_tensor *there[4 * TENSORS] = {0};
  bool grad = c->modes.grad;
  c->modes.grad = false;
  for (int k = 0; k < n; k++) there[k] = lt_to_device(c, t[k], where);
  bool ok = lt_apply(c, op, n, there, args, n_out, out);
  for (int k = 0; k < n && ok; k++) {
    ok = lt_tensor_read(c, there[k], lt_data(t[k]));
    if (there[k]->storage->version > 0) lt_storage_bump(c, t[k]->storage);
  }
  for (int k = 0; k < n_out && ok; k++) out[k] = lt_to_device(c, out[k], LT_CPU_DEVICE);
  c->modes.grad = grad;
  return ok && lt_ok(c);
}

static lt_tensor *apply1(lt_ctx *c, lt_op op, int n, lt_tensor **t, const void *args) {
  lt_tensor *out = NULL;
  return apply(c, op, n, t, args, 1, &out) ? out : NULL;
}

static double random_grad(int step, int k, int64_t i) {
  return test_random((uint64_t)(100 * step + k), (uint64_t)i) - 0.4;
}

static void fill(lt_tensor *t, const double *v) {
  for (int64_t i = 0; i < t->numel; i++) {
    if (t->dtype == LT_F32)
      ((float *)lt_data(t))[i] = (float)v[i];
    else
      ((double *)lt_data(t))[i] = v[i];
  }
}

static lists make(lt_ctx *c, lt_dtype dtype, int groups) {
  lists l = {.t = {NULL}};
  for (int k = 0; k < groups * TENSORS; k++) {
    int64_t n = sizes[k % TENSORS];
    double lo = k < TENSORS ? -1 : 0, hi = k < TENSORS ? 1 : 0;
    l.t[k] = tensor_random(c, dtype, SHAPE(n), (uint64_t)k, lo, hi);
    l.v[k] = values_of(c, l.t[k]);
    if (k < TENSORS) wants_grad(l.t[k]);
  }
  return l;
}

static void set_grads(lists *l, int step) {
  for (int k = TENSORS; k < 2 * TENSORS; k++) {
    for (int64_t i = 0; i < sizes[k - TENSORS]; i++) l->v[k][i] = random_grad(step, k, i);
    fill(l->t[k], l->v[k]);
    if (l->t[k]->dtype == LT_F32)
      for (int64_t i = 0; i < sizes[k - TENSORS]; i++) l->v[k][i] = (float)l->v[k][i];
  }
}

static void compare(lt_ctx *c, lists *l, int groups, double tolerance) {
  for (int k = 0; k < groups * TENSORS; k++) expect_values(c, l->t[k], l->v[k], tolerance);
}

static void release(lists *l) {
  for (int k = 0; k < 4 * TENSORS; k++) free(l->v[k]);
}

/* torch.optim.SGD, as its documentation writes it. */
static void sgd_reference(lists *l, const lt_args_sgd_step *a, bool first) {
  for (int k = 0; k < TENSORS; k++)
    for (int64_t i = 0; i < sizes[k]; i++) {
      double *p = &l->v[k][i], g = l->v[TENSORS + k][i];
      if (a->weight_decay != 0) g = g + a->weight_decay * *p;
      if (a->momentum != 0) {
        double *b = &l->v[2 * TENSORS + k][i];
        *b = first ? g : a->momentum * *b + (1 - a->dampening) * g;
        g = a->nesterov ? g + a->momentum * *b : *b;
      }
      *p = *p - a->lr * g;
    }
}

static void check_sgd(lt_ctx *c, lt_dtype dtype, lt_args_sgd_step a) {
  int groups = a.momentum != 0 ? 3 : 2;
  lists l = make(c, dtype, groups);
  c->modes.grad = false;
  for (int step = 0; step < STEPS; step++) {
    set_grads(&l, step);
    a.first = step == 0;
    if (a.first && groups == 3) /* buffers that hold nothing yet are not read */
      for (int k = 2 * TENSORS; k < 3 * TENSORS; k++)
        memset(lt_data(l.t[k]), 0xff, (size_t)l.t[k]->numel * lt_item_size(l.t[k])); /* NaN */
    assert_true(apply(c, LT_OP_sgd_step, groups * TENSORS, l.t, &a, 0, NULL));
    sgd_reference(&l, &a, step == 0);
    compare(c, &l, groups, dtype == LT_F64 ? 1e-14 : 1e-6);
  }
  c->modes.grad = true;
  release(&l);
}

static void sgd_follows_the_formula(void **state) {
  lt_ctx *c = *state;
  for (int d = 0; d < 2; d++) {
    lt_dtype dtype = d == 0 ? LT_F32 : LT_F64;
    check_sgd(c, dtype, (lt_args_sgd_step){.lr = 0.1});
    check_sgd(c, dtype, (lt_args_sgd_step){.lr = 0.1, .weight_decay = 0.01});
    check_sgd(c, dtype, (lt_args_sgd_step){.lr = 0.1, .momentum = 0.9, .dampening = 0.3});
    check_sgd(c, dtype, (lt_args_sgd_step){.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05,
                                           .nesterov = true});
  }
}

/* torch.optim.Adam and AdamW. */
static void adam_reference(lists *l, const lt_args_adam_step *a) {
  double correction1 = 1, correction2 = 1;
  for (int64_t s = 0; s < a->step; s++) correction1 *= a->beta1, correction2 *= a->beta2;
  for (int k = 0; k < TENSORS; k++)
    for (int64_t i = 0; i < sizes[k]; i++) {
      double *p = &l->v[k][i], g = l->v[TENSORS + k][i];
      double *m = &l->v[2 * TENSORS + k][i], *v = &l->v[3 * TENSORS + k][i];
      if (a->decoupled)
        *p -= a->lr * a->weight_decay * *p;
      else
        g += a->weight_decay * *p;
      *m = a->beta1 * *m + (1 - a->beta1) * g;
      *v = a->beta2 * *v + (1 - a->beta2) * g * g;
      double m_hat = *m / (1 - correction1), v_hat = *v / (1 - correction2);
      *p -= a->lr * m_hat / (sqrt(v_hat) + a->eps);
    }
}

static void check_adam(lt_ctx *c, lt_dtype dtype, lt_args_adam_step a) {
  lists l = make(c, dtype, 4);
  c->modes.grad = false;
  for (int step = 0; step < STEPS; step++) {
    set_grads(&l, step);
    a.step = step + 1;
    assert_true(apply(c, LT_OP_adam_step, 4 * TENSORS, l.t, &a, 0, NULL));
    adam_reference(&l, &a);
    compare(c, &l, 4, dtype == LT_F64 ? 1e-13 : 2e-6);
  }
  c->modes.grad = true;
  release(&l);
}

static void adam_follows_the_formula(void **state) {
  lt_ctx *c = *state;
  const lt_args_adam_step usual = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  for (int d = 0; d < 2; d++) {
    lt_dtype dtype = d == 0 ? LT_F32 : LT_F64;
    lt_args_adam_step a = usual;
    check_adam(c, dtype, a);
    a.weight_decay = 0.1, a.lr = 0.05, a.eps = 1e-3;
    check_adam(c, dtype, a);
    a.decoupled = true;
    check_adam(c, dtype, a);
  }
}

/* Steps without a gradient until nothing normal can be left of the moments. */
static void check_fading(lt_ctx *c, lt_op op, int groups, void *args, int64_t *step) {
  lists l = make(c, LT_F32, groups);
  c->modes.grad = false;
  for (int k = TENSORS; k < 2 * TENSORS; k++)
    memset(lt_data(l.t[k]), 0, (size_t)sizes[k - TENSORS] * sizeof(float));
  float *moment = lt_data(l.t[2 * TENSORS + 1]);
  moment[0] = 1, moment[1] = -1;
  for (int k = 0; k < 1500; k++) {
    if (step != NULL) *step = k + 1;
    assert_true(lt_apply(c, op, groups * TENSORS, l.t, args, 0, NULL));
    for (int i = 0; i < 2; i++) assert_true(moment[i] == 0 || isnormal(moment[i]));
  }
  assert_true(moment[0] == 0 && moment[1] == 0);
  c->modes.grad = true;
  release(&l);
}

static void moments_fade_to_zero(void **state) {
  lt_ctx *c = *state;
  lt_args_adam_step a = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  check_fading(c, LT_OP_adam_step, 4, &a, &a.step);
  lt_args_sgd_step s = {.lr = 0.1, .momentum = 0.9};
  check_fading(c, LT_OP_sgd_step, 3, &s, NULL);
}

static void strides_of_parameters_do_not_matter(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  lt_tensor *dense[4], *wide[4];
  for (int k = 0; k < 4; k++) {
    dense[k] = tensor_random(c, LT_F32, SHAPE(33, 65), (uint64_t)k, 0.1, 1);
    wide[k] = k == 2 ? lt_apply1(c, LT_OP_clone, 1, &dense[k], NULL)
                     : tensor_strided(c, dense[k]);
  }
  const lt_args_adam_step a = {.lr = 0.1, .step = 3, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-8,
                               .weight_decay = 0.1};
  assert_true(lt_apply(c, LT_OP_adam_step, 4, dense, &a, 0, NULL));
  assert_true(lt_apply(c, LT_OP_adam_step, 4, wide, &a, 0, NULL));
  for (int k = 0; k < 4; k++) expect_close(c, wide[k], dense[k], 1e-7);
  const lt_args_sgd_step s = {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1};
  assert_true(lt_apply(c, LT_OP_sgd_step, 3, dense, &s, 0, NULL));
  assert_true(lt_apply(c, LT_OP_sgd_step, 3, wide, &s, 0, NULL));
  for (int k = 0; k < 3; k++) expect_close(c, wide[k], dense[k], 1e-7);
}

static void steps_bump_versions_of_what_they_write(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  lt_tensor *t[4];
  uint64_t version[4];
  for (int k = 0; k < 4; k++) {
    t[k] = tensor_random(c, LT_F32, SHAPE(3), (uint64_t)k, 0, 1);
    version[k] = t[k]->storage->version;
  }
  const lt_args_adam_step a = {.lr = 0.1, .step = 1, .beta1 = 0.9, .beta2 = 0.9, .eps = 1};
  assert_true(lt_apply(c, LT_OP_adam_step, 4, t, &a, 0, NULL));
  for (int k = 0; k < 4; k++) assert_int_equal(t[k]->storage->version - version[k], k != 1);
}

static void steps_are_not_taken_where_the_check_says_so(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  const lt_args_adam_step a = {.lr = 0.1, .step = 1, .beta1 = 0.9, .beta2 = 0.9, .eps = 1,
                               .checked = true};
  const lt_args_sgd_step s = {.lr = 0.1, .momentum = 0.9, .checked = true};
  const double found[] = {1, NAN, 0};
  for (int f = 0; f < 3; f++)
    for (int steps = 0; steps < 2; steps++) {
      int n = steps == 0 ? 4 : 3;
      lt_tensor *t[5], *before[4];
      for (int k = 0; k < n; k++) {
        t[k] = tensor_random(c, LT_F32, SHAPE(5, 7), (uint64_t)k, 0.5, 1);
        before[k] = lt_apply1(c, LT_OP_clone, 1, &t[k], NULL);
      }
      t[n] = TENSOR(c, f == 1 ? LT_F32 : LT_BOOL, SHAPE(1), found[f]);
      uint64_t version = t[n]->storage->version;
      lt_op op = steps == 0 ? LT_OP_adam_step : LT_OP_sgd_step;
      assert_true(lt_apply(c, op, n + 1, t, steps == 0 ? (const void *)&a : &s, 0, NULL));
      assert_int_equal(version, t[n]->storage->version);
      for (int k = 0; k < n; k++) {
        size_t bytes = (size_t)t[k]->numel * sizeof(float);
        bool same = memcmp(lt_data(t[k]), lt_data(before[k]), bytes) == 0;
        assert_int_equal(same, f < 2 || k == 1);
      }
    }
  lt_tensor *p = TENSOR(c, LT_F32, SHAPE(2), 1, 2);
  const lt_args_sgd_step plain = {.lr = 0.1, .checked = true};
  lt_apply(c, LT_OP_sgd_step, LT_IN(p, p, p), &plain, 0, NULL);
  expect_failure(c, LT_ESHAPE, "sgd_step: the input `checked` must have one element, got [2]");
  assert_true(lt_apply(c, LT_OP_sgd_step, 0, NULL, &plain, 0, NULL));
}

static void steps_say_what_is_wrong(void **state) {
  lt_ctx *c = *state;
  lt_tensor *p = TENSOR(c, LT_F32, SHAPE(2), 1, 2), *g = TENSOR(c, LT_F32, SHAPE(1), 1);
  lt_tensor *half = TENSOR(c, LT_F16, SHAPE(2), 1, 2), *d = TENSOR(c, LT_F64, SHAPE(2), 1, 2);
  lt_tensor *whole = TENSOR(c, LT_I64, SHAPE(2), 1, 2);
  const lt_args_sgd_step a = {.lr = 0.1}, m = {.lr = 0.1, .momentum = 0.9};
  lt_apply(c, LT_OP_sgd_step, LT_IN(p, g, p), &a, 0, NULL);
  expect_failure(c, LT_EARG, "sgd_step: 3 tensors do not make 2 lists of one length");
  lt_apply(c, LT_OP_sgd_step, LT_IN(p, g), &a, 0, NULL);
  expect_failure(c, LT_ESHAPE,
                 "sgd_step: tensor 1 of the gradients has shape [1], its parameter [2]");
  lt_apply(c, LT_OP_sgd_step, LT_IN(whole, whole), &a, 0, NULL);
  expect_failure(c, LT_EDTYPE, "sgd_step: parameter 1 is i64; updates need a floating dtype");
  lt_apply(c, LT_OP_sgd_step, LT_IN(p, d), &a, 0, NULL);
  expect_failure(c, LT_EDTYPE,
                 "sgd_step: tensor 1 of the gradients is f64; that of a parameter of f32 must be f32");
  lt_apply(c, LT_OP_sgd_step, LT_IN(half, half, half), &m, 0, NULL);
  expect_failure(c, LT_EDTYPE,
                 "sgd_step: tensor 1 of the first states is f16; that of a parameter of f16 must be f32");
  lt_apply(c, LT_OP_sgd_step, LT_IN(p, p), &(lt_args_sgd_step){.lr = -1}, 0, NULL);
  expect_failure(c, LT_EARG, "sgd_step: lr must not be negative, got -1");
  lt_apply(c, LT_OP_sgd_step, LT_IN(p, p), &(lt_args_sgd_step){.nesterov = true}, 0, NULL);
  expect_failure(c, LT_EARG, "sgd_step: nesterov needs a momentum and no dampening, got 0 and 0");
  const lt_args_adam_step b = {.lr = 0.1, .beta1 = 0.9, .beta2 = 1, .step = 1};
  lt_apply(c, LT_OP_adam_step, LT_IN(p, p, p, p), &b, 0, NULL);
  expect_failure(c, LT_EARG, "adam_step: beta2 must be in 0..1 without 1, got 1");
  wants_grad(p);
  lt_apply(c, LT_OP_sgd_step, LT_IN(p, d), &a, 0, NULL);
  expect_failure(
      c, LT_EVERSION,
      "sgd_step: in-place write into a leaf that requires grad; do it under lt.no_grad()");
  assert_true(lt_apply(c, LT_OP_sgd_step, 0, NULL, &a, 0, NULL)); /* nothing to update is fine */
}

/* Norms and clipping. */

static double norm_reference(lists *l, double p) {
  double total = 0;
  for (int k = TENSORS; k < 2 * TENSORS; k++)
    for (int64_t i = 0; i < sizes[k - TENSORS]; i++) {
      double x = fabs(l->v[k][i]);
      total = isinf(p) ? fmax(total, x) : total + pow(x, p);
    }
  return isinf(p) ? total : pow(total, 1 / p);
}

static void norms_are_those_of_all_elements(void **state) {
  lt_ctx *c = *state;
  const double powers[] = {2, 1, 3, 0.5, INFINITY};
  for (int d = 0; d < 2; d++) {
    lists l = make(c, d == 0 ? LT_F32 : LT_F64, 2);
    set_grads(&l, 1);
    for (int k = 0; k < 5; k++) {
      lt_tensor *n = apply1(c, LT_OP_grads_norm, TENSORS, l.t + TENSORS,
                            &(lt_args_grads_norm){.p = powers[k]});
      EXPECT(c, n, 1e-6, norm_reference(&l, powers[k]));
      expect_shape(n, SHAPE0);
      assert_int_equal(n->dtype, d == 0 ? LT_F32 : LT_F64);
    }
    release(&l);
  }
  EXPECT(c, lt_apply1(c, LT_OP_grads_norm, 0, NULL, NULL), 0, 0);
  lt_tensor *nan = TENSOR(c, LT_F32, SHAPE(3), 1, NAN, 2), *big = TENSOR(c, LT_F32, SHAPE(1), 3e38);
  for (int k = 0; k < 5; k++)
    EXPECT(c,
           lt_apply1(c, LT_OP_grads_norm, LT_IN(nan, big), &(lt_args_grads_norm){.p = powers[k]}),
           0, NAN);
  EXPECT(c, lt_apply1(c, LT_OP_grads_norm, 1, &big, NULL), 1e-6, 3e38); /* its square: no float */
  lt_tensor *huge = TENSOR(c, LT_F64, SHAPE(1), 1e300); /* no f32, and no infinity */
  EXPECT(c, lt_apply1(c, LT_OP_grads_norm, 1, &huge, &(lt_args_grads_norm){.p = INFINITY}), 1e-9,
         1e300);
  lt_tensor *inf = TENSOR(c, LT_F32, SHAPE(3), 1, -INFINITY, 2);
  EXPECT(c, lt_apply1(c, LT_OP_grads_norm, 1, &inf, &(lt_args_grads_norm){.p = INFINITY}), 0,
         INFINITY);
  lt_tensor *half = tensor_strided(c, TENSOR(c, LT_BF16, SHAPE(2, 2), 1, 2, 4, 2));
  EXPECT(c, lt_apply1(c, LT_OP_grads_norm, 1, &half, NULL), 1e-6, 5);
}

static lt_tensor *clip(lt_ctx *c, lists *l, double most) {
  return apply1(c, LT_OP_clip_grad_norm, TENSORS, l->t + TENSORS,
                &(lt_args_clip_grad_norm){.max_norm = most, .norm_type = 2});
}

static void clipping_scales_to_the_norm(void **state) {
  lt_ctx *c = *state;
  lists l = make(c, LT_F32, 2);
  set_grads(&l, 1);
  double norm = norm_reference(&l, 2);
  lt_tensor *before = clip(c, &l, 2 * norm);
  EXPECT(c, before, 1e-6, norm);
  compare(c, &l, 2, 0); /* short enough: untouched */
  uint64_t version = l.t[TENSORS]->storage->version;
  before = clip(c, &l, 0.5);
  EXPECT(c, before, 1e-6, norm);
  for (int k = TENSORS; k < 2 * TENSORS; k++)
    for (int64_t i = 0; i < sizes[k - TENSORS]; i++) l.v[k][i] *= 0.5 / (norm + 1e-6);
  compare(c, &l, 2, 1e-6);
  assert_true(l.t[TENSORS]->storage->version > version);
  assert_true(apply(c, LT_OP_clip_grad_value, TENSORS, l.t + TENSORS,
                    &(lt_args_clip_grad_value){.clip_value = 1e-3}, 0, NULL));
  for (int k = TENSORS; k < 2 * TENSORS; k++)
    for (int64_t i = 0; i < sizes[k - TENSORS]; i++)
      l.v[k][i] = fmax(-1e-3, fmin(1e-3, l.v[k][i]));
  compare(c, &l, 2, 1e-6);
  release(&l);
  expect_shape(lt_apply1(c, LT_OP_clip_grad_norm, 0, NULL,
                         &(lt_args_clip_grad_norm){.max_norm = 1, .norm_type = 2}), SHAPE0);
}

static void __attribute__((noinline)) litter_the_stack(void) {
  volatile char waste[16384];
  for (size_t k = 0; k < sizeof waste; k++) waste[k] = 0x55;
}

static void clipping_nothing_does_nothing(void **state) {
  lt_ctx *c = *state;
  lt_args_clip_grad_value args = {.clip_value = 1};
  litter_the_stack();
  assert_true(lt_apply(c, LT_OP_clip_grad_value, 0, NULL, &args, 0, NULL));
}

static void clipping_says_what_is_wrong(void **state) {
  lt_ctx *c = *state;
  lt_tensor *g = TENSOR(c, LT_F32, SHAPE(2), 1, INFINITY), *n = TENSOR(c, LT_I64, SHAPE(1), 1);
  lt_apply1(c, LT_OP_clip_grad_norm, 1, &g,
            &(lt_args_clip_grad_norm){.max_norm = 1, .norm_type = 2, .error_if_nonfinite = true});
  expect_failure(c, LT_EVALUE, "clip_grad_norm: the total norm of 1 gradients is inf");
  lt_apply1(c, LT_OP_clip_grad_norm, 1, &g, &(lt_args_clip_grad_norm){.max_norm = -1});
  expect_failure(c, LT_EARG, "clip_grad_norm: max_norm must not be negative, got -1");
  lt_apply1(c, LT_OP_grads_norm, LT_IN(g, n), NULL);
  expect_failure(c, LT_EDTYPE, "grads_norm: tensor 2 is i64, no gradient");
  lt_apply1(c, LT_OP_grads_norm, 1, &g, &(lt_args_grads_norm){.p = 0});
  expect_failure(c, LT_EARG, "grads_norm: the norm's power must be positive, got 0");
}

static void threads_change_nothing(void **state) {
  lt_ctx *c = *state;
  c->modes.grad = false;
  lists l[2];
  lt_tensor *norm[2];
  for (int k = 0; k < 2; k++) {
    c->threads = 1 + k;
    l[k] = make(c, LT_F32, 4);
    set_grads(&l[k], 1);
    norm[k] = clip(c, &l[k], 0.1);
    const lt_args_adam_step a = {.lr = 0.1, .step = 1, .beta1 = 0.9, .beta2 = 0.9, .eps = 1e-8};
    assert_true(lt_apply(c, LT_OP_adam_step, 4 * TENSORS, l[k].t, &a, 0, NULL));
    const lt_args_sgd_step s = {.lr = 0.1, .momentum = 0.5};
    assert_true(lt_apply(c, LT_OP_sgd_step, 3 * TENSORS, l[k].t, &s, 0, NULL));
  }
  expect_same_bits(c, norm[0], norm[1]);
  for (int k = 0; k < 4 * TENSORS; k++) expect_same_bits(c, l[0].t[k], l[1].t[k]);
  release(&l[0]), release(&l[1]);
}

/* Whether there are updates on the device of this name, which ops then run on. */
static bool find_device(const char *name) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  c->policy.dlopen = true;
  bool found = lt_device_parse(c, name, &where) && where.kind > 0;
  lt_ctx_release(c);
  return found && lt_device_kinds[where.kind]->kernels[LT_OP_sgd_step] != NULL;
}

/* The next of "cuda,pigeon". */
static void next_name(const char **list, char *name, size_t size) {
  size_t n = *list != NULL ? strcspn(*list, ",") : 0;
  snprintf(name, size, "%.*s", (int)n, n > 0 ? *list : "");
  if (n > 0) *list += n + ((*list)[n] == ',');
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(sgd_follows_the_formula),
      OP_TEST(adam_follows_the_formula),
      OP_TEST(moments_fade_to_zero),
      OP_TEST(strides_of_parameters_do_not_matter),
      OP_TEST(steps_bump_versions_of_what_they_write),
      OP_TEST(steps_are_not_taken_where_the_check_says_so),
      OP_TEST(steps_say_what_is_wrong),
      OP_TEST(norms_are_those_of_all_elements),
      OP_TEST(clipping_scales_to_the_norm),
      OP_TEST(clipping_nothing_does_nothing),
      OP_TEST(clipping_says_what_is_wrong),
      OP_TEST(threads_change_nothing),
  };
  const struct CMUnitTest on_devices[] = {
      OP_TEST(sgd_follows_the_formula),
      OP_TEST(adam_follows_the_formula),
      OP_TEST(norms_are_those_of_all_elements),
      OP_TEST(clipping_scales_to_the_norm),
  };
  int failed = cmocka_run_group_tests_name("updates", tests, NULL, NULL);
  char name[64] = "fake";
  const char *others = getenv("LT_TEST_DEVICES");
  while (name[0] != 0) {
    if (find_device(name))
      failed += cmocka_run_group_tests_name(name, on_devices, NULL, NULL);
    next_name(&others, name, sizeof name);
  }
  return failed;
}
