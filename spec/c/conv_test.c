/* spec/c/conv_test.c: convolution and max_window against loops written out here. */
#include "tensor_test.h"

static lt_tensor *conv(lt_ctx *c, lt_tensor *x, lt_tensor *w, lt_tensor *bias,
                       lt_args_convolution a) {
  return lt_apply1(c, LT_OP_convolution, LT_IN(x, w, bias), &a);
}

static lt_tensor *pool(lt_ctx *c, lt_tensor *x, const lt_args_max_window *a) {
  lt_tensor *out[2] = {NULL};
  return lt_apply(c, LT_OP_max_window, 1, &x, a, 2, out) ? out[0] : NULL;
}

static const lt_args_max_window halved = {
    .kernel_size = {2, 2}, .dilation = {1, 1}, .stride = {-1, -1}};

#define PLAIN                                                                                      \
  { .stride = {1, 1}, .dilation = {1, 1}, .groups = 1 }

typedef struct sample {
  int64_t n, c, h, w, o, kh, kw;
  lt_args_convolution a;
} sample;

static const sample samples[] = {
    {1, 1, 1, 1, 1, 1, 1, PLAIN},
    {2, 1, 9, 8, 5, 3, 3, PLAIN},
    {2, 3, 7, 7, 4, 3, 3, {.stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1}},
    {1, 16, 8, 6, 32, 3, 2, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 1}},
    {3, 8, 5, 5, 12, 1, 1, {.stride = {2, 2}, .dilation = {1, 1}, .groups = 4}},
    {2, 6, 9, 9, 6, 3, 3, {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 1}, .groups = 6}},
    {2, 20, 6, 6, 17, 5, 5, {.stride = {1, 1}, .padding = {2, 2}, .dilation = {1, 1}, .groups = 1}},
    {2, 4, 4, 4, 1, 4, 4, PLAIN},
};
enum { N_SAMPLES = sizeof samples / sizeof *samples };

static const lt_dtype floats[] = {LT_F32, LT_F64, LT_F16, LT_BF16};
static double tolerance_of(lt_dtype d) {
  return d == LT_F64 ? 1e-14 : d == LT_F32 ? 2e-6 : d == LT_F16 ? 2e-3 : 1.6e-2;
}

static lt_tensor *weight_of(lt_ctx *c, lt_dtype d, const sample *s) {
  return tensor_random(c, d, SHAPE(s->o, s->c / s->a.groups, s->kh, s->kw), 2, -1, 1);
}

/* The textbook sum, and the sum of its terms' sizes. */
static double naive(const sample *s, const double *x, const double *w, const int64_t *at,
                    double *bound) {
  int64_t in = s->c / s->a.groups, first = at[1] / (s->o / s->a.groups) * in;
  double sum = *bound = 0;
  for (int64_t i = 0; i < in; i++)
    for (int64_t kh = 0; kh < s->kh; kh++)
      for (int64_t kw = 0; kw < s->kw; kw++) {
        int64_t h = at[2] * s->a.stride.h - s->a.padding.h + kh * s->a.dilation.h;
        int64_t v = at[3] * s->a.stride.w - s->a.padding.w + kw * s->a.dilation.w;
        if (h < 0 || h >= s->h || v < 0 || v >= s->w) continue;
        double t = x[((at[0] * s->c + first + i) * s->h + h) * s->w + v] *
                   w[((at[1] * in + i) * s->kh + kh) * s->kw + kw];
        sum += t;
        *bound += fabs(t);
      }
  return sum;
}

static void expect_conv(lt_ctx *c, const sample *s, lt_tensor *y, lt_tensor *x, lt_tensor *w,
                        lt_tensor *bias) {
  double *xv = values_of(c, x), *wv = values_of(c, w), *got = values_of(c, y);
  double *bv = bias != NULL ? values_of(c, bias) : NULL;
  for (int64_t i = 0, rest = 0; i < y->numel; i++) {
    int64_t at[4];
    rest = i;
    for (int d = 3; d >= 0; rest /= y->size[d--]) at[d] = rest % y->size[d];
    double bound, wanted = naive(s, xv, wv, at, &bound);
    if (bv != NULL) wanted += bv[at[1]];
    if (!(fabs(got[i] - wanted) <= tolerance_of((lt_dtype)y->dtype) * (bound + 1)))
      fail_msg("x %s, w %s: element %lld is %.9g, wanted %.9g", LT_TENSOR_STR(x), LT_TENSOR_STR(w),
               (long long)i, got[i], wanted);
  }
  free(xv);
  free(wv);
  free(got);
  free(bv);
}

static void every_geometry_and_dtype(void **state) {
  lt_ctx *c = *state;
  for (size_t d = 0; d < 4; d++)
    for (int k = 0; k < N_SAMPLES; k++) {
      const sample *s = &samples[k];
      lt_tensor *x = tensor_random(c, floats[d], SHAPE(s->n, s->c, s->h, s->w), 1, -1, 1);
      lt_tensor *w = weight_of(c, floats[d], s);
      lt_tensor *bias = tensor_random(c, floats[d], SHAPE(s->o), 3, -1, 1);
      lt_tensor *y = conv(c, x, w, bias, s->a);
      expect_ok(c);
      assert_int_equal(y->dtype, floats[d]);
      expect_conv(c, s, y, x, w, bias);
      expect_conv(c, s, conv(c, tensor_strided(c, x), tensor_strided(c, w), NULL, s->a), x, w,
                  NULL);
    }
}

static void results_lie_channels_last(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(2, 3, 6, 6), 1, -1, 1);
  lt_tensor *w = tensor_random(c, LT_F32, SHAPE(4, 3, 3, 3), 1, -1, 1);
  lt_tensor *y = conv(c, x, w, NULL, (lt_args_convolution)PLAIN);
  expect_shape(y, SHAPE(2, 4, 4, 4));
  assert_int_equal(y->stride[1], 1);
  assert_int_equal(y->stride[0], 4 * 4 * 4);
  lt_tensor *p = pool(c, y, &halved);
  expect_shape(p, SHAPE(2, 4, 2, 2));
  assert_int_equal(p->stride[1], 1);
  /* a chain of convolutions reads what it is given in place, and gives the same */
  lt_tensor *w2 = tensor_random(c, LT_F32, SHAPE(5, 4, 2, 2), 4, -1, 1);
  lt_tensor *z = conv(c, y, w2, NULL, (lt_args_convolution)PLAIN);
  expect_same_bits(c, z, conv(c, lt_contiguous(c, y), w2, NULL, (lt_args_convolution)PLAIN));
}

static lt_tensor *call_conv(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return conv(c, in[0], in[1], in[2], *(lt_args_convolution *)ud);
}

static void gradients(void **state) {
  lt_ctx *c = *state;
  static const sample small[] = {
      {2, 1, 5, 4, 2, 3, 2, PLAIN},
      {1, 4, 5, 6, 6, 3, 2, {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}, .groups = 2}},
      {1, 3, 6, 6, 2, 2, 3, {.stride = {3, 4}, .padding = {0, 2}, .dilation = {1, 1}, .groups = 1}},
  };
  for (size_t k = 0; k < sizeof small / sizeof *small; k++) {
    const sample *s = &small[k];
    lt_args_convolution a = s->a;
    lt_tensor *in[3] = {tensor_random(c, LT_F64, SHAPE(s->n, s->c, s->h, s->w), 1, -1, 1),
                        weight_of(c, LT_F64, s), tensor_random(c, LT_F64, SHAPE(s->o), 3, -1, 1)};
    check_gradient(c, call_conv, &a, 3, in, 0, 1e-7);
    lt_tensor *plain[3] = {tensor_random(c, LT_F64, SHAPE(s->n, s->c, s->h, s->w), 1, -1, 1),
                           weight_of(c, LT_F64, s), NULL};
    check_gradient(c, call_conv, &a, 2, plain, 0, 1e-7);
    lt_tensor *bias_only[3] = {plain[0], plain[1], tensor_random(c, LT_F64, SHAPE(s->o), 3, -1, 1)};
    plain[0]->flags = plain[1]->flags = 0;
    check_gradient(c, call_conv, &a, 3, bias_only, 1u << 2, 1e-7);
  }
}

/* The gradients' own derivatives. */
static lt_tensor *call_by_input(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_convolution_backward_input, LT_IN(in[0], in[1]), ud);
}

static lt_tensor *call_by_weight(lt_ctx *c, lt_tensor *const *in, void *ud) {
  lt_tensor *out[2] = {NULL};
  lt_apply(c, LT_OP_convolution_backward_weight, LT_IN(in[0], in[1]), ud, 2, out);
  expect_ok(c);
  lt_tensor *w = lt_reshape(c, out[0], SHAPE(out[0]->numel));
  return lt_apply1(c, LT_OP_cat, LT_IN(w, out[1]), NULL);
}

static void second_gradients(void **state) {
  lt_ctx *c = *state;
  lt_args_conv_input a = {.stride = {2, 1},
                          .padding = {1, 0},
                          .dilation = {1, 1},
                          .groups = 1,
                          .size = {.n = 4, .size = {1, 2, 5, 4}}};
  lt_tensor *in[2] = {tensor_random(c, LT_F64, SHAPE(1, 3, 3, 3), 1, -1, 1),
                      tensor_random(c, LT_F64, SHAPE(3, 2, 3, 2), 2, -1, 1)};
  check_gradient(c, call_by_input, &a, 2, in, 0, 1e-7);
  lt_args_conv_weight b = {.stride = {2, 1},
                           .padding = {1, 0},
                           .dilation = {1, 1},
                           .groups = 1,
                           .size = {.n = 4, .size = {3, 2, 3, 2}}};
  lt_tensor *in2[2] = {tensor_random(c, LT_F64, SHAPE(1, 3, 3, 3), 1, -1, 1),
                       tensor_random(c, LT_F64, SHAPE(1, 2, 5, 4), 2, -1, 1)};
  check_gradient(c, call_by_weight, &b, 2, in2, 0, 1e-7);
}

/* oneDNN's gradients against the loops in f64, and the same bits again. */
static void low_precision_gradients(void **state) {
  lt_ctx *c = *state;
  static const lt_dtype order[] = {LT_F64, LT_F32, LT_F16, LT_BF16, LT_F32};
  for (int k = 0; k < N_SAMPLES; k++) {
    const sample *s = &samples[k];
    lt_tensor *exact[3] = {NULL}, *first[3] = {NULL};
    for (int d = 0; d < 5; d++) {
      lt_tensor *in[3] = {tensor_random(c, order[d], SHAPE(s->n, s->c, s->h, s->w), 1, -1, 1),
                          weight_of(c, order[d], s),
                          tensor_random(c, order[d], SHAPE(s->o), 3, -1, 1)};
      for (int i = 0; i < 3; i++) wants_grad(in[i]);
      lt_tensor *y = conv(c, in[0], in[1], in[2], s->a);
      expect_ok(c);
      lt_tensor *seed = tensor_random(c, order[d], lt_tensor_shape(y), 9, -1, 1);
      lt_backward(c, y, &(lt_backward_options){.seed = seed});
      expect_ok(c);
      for (int i = 0; i < 3; i++) {
        assert_int_equal(in[i]->grad->dtype, order[d]);
        if (d == 0) exact[i] = in[i]->grad;
        double scale = 10; /* sums of up to a few hundred terms */
        if (d > 0)
          expect_close(c, lt_cast(c, in[i]->grad, LT_F64), exact[i],
                       scale * tolerance_of(order[d]));
        if (d == 1) first[i] = in[i]->grad;
        if (d == 4) expect_same_bits(c, in[i]->grad, first[i]);
      }
    }
  }
}

static void two_threads(void **state) {
  lt_ctx *c = *state;
  lt_args_convolution a = PLAIN;
  lt_tensor *in[3] = {tensor_random(c, LT_F64, SHAPE(3, 4, 9, 9), 1, -1, 1),
                      tensor_random(c, LT_F64, SHAPE(6, 4, 3, 3), 2, -1, 1), NULL};
  check_threads(c, call_conv, &a, in);
  for (int i = 0; i < 2; i++) in[i] = lt_cast(c, in[i], LT_F32);
  c->threads = 1;
  lt_tensor *one = conv(c, in[0], in[1], NULL, a);
  c->threads = 2;
  expect_close(c, conv(c, in[0], in[1], NULL, a), one, 1e-5);
  expect_same_bits(c, conv(c, in[0], in[1], NULL, a), conv(c, in[0], in[1], NULL, a));
}

static void empty_batches(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = wants_grad(tensor_random(c, LT_F32, SHAPE(0, 2, 5, 5), 1, -1, 1));
  lt_tensor *w = wants_grad(tensor_random(c, LT_F32, SHAPE(3, 2, 2, 2), 1, -1, 1));
  lt_tensor *bias = wants_grad(tensor_random(c, LT_F32, SHAPE(3), 1, -1, 1));
  lt_tensor *y = conv(c, x, w, bias, (lt_args_convolution)PLAIN);
  y = pool(c, y, &halved);
  expect_ok(c);
  expect_shape(y, SHAPE(0, 3, 2, 2));
  lt_backward(c, lt_apply1(c, LT_OP_sum, LT_IN(y), NULL), &(lt_backward_options){0});
  expect_ok(c);
  EXPECT(c, bias->grad, 0, 0, 0, 0);
  assert_true(value_at(c, w->grad, 23) == 0);
  expect_shape(x->grad, SHAPE(0, 2, 5, 5));
}

/* Pooling. */

static const lt_args_max_window pools[] = {
    {.kernel_size = {2, 2}, .dilation = {1, 1}, .stride = {-1, -1}},
    {.kernel_size = {3, 2}, .dilation = {1, 1}, .stride = {1, 2}, .padding = {1, 1}},
    {.kernel_size = {1, 1}, .dilation = {1, 1}, .stride = {2, 3}},
    {.kernel_size = {5, 7}, .dilation = {1, 1}, .stride = {2, 1}, .padding = {2, 3}},
    /* over 256 positions */
    {.kernel_size = {17, 17}, .dilation = {1, 1}, .stride = {1, 2}, .padding = {8, 8}},
    {.kernel_size = {2, 3}, .dilation = {3, 2}, .stride = {1, 2}, .padding = {1, 2}},
};
enum { N_POOLS = sizeof pools / sizeof *pools };

static void expect_pool(lt_ctx *c, lt_tensor *y, lt_tensor *x, lt_args_max_window a) {
  expect_ok(c);
  double *xv = values_of(c, x), *got = values_of(c, y);
  if (a.stride.h < 0) a.stride = a.kernel_size;
  int64_t h = x->size[2], w = x->size[3];
  lt_pair last = {(a.kernel_size.h - 1) * a.dilation.h, (a.kernel_size.w - 1) * a.dilation.w};
  assert_int_equal(y->size[2], (h + 2 * a.padding.h - last.h - 1) / a.stride.h + 1);
  assert_int_equal(y->size[3], (w + 2 * a.padding.w - last.w - 1) / a.stride.w + 1);
  for (int64_t i = 0; i < y->numel; i++) {
    int64_t plane = i / (y->size[2] * y->size[3]), oh = i / y->size[3] % y->size[2];
    int64_t ow = i % y->size[3];
    double best = -INFINITY;
    for (int64_t p = 0; p < h; p++)
      for (int64_t q = 0; q < w; q++) {
        int64_t dh = p - (oh * a.stride.h - a.padding.h), dw = q - (ow * a.stride.w - a.padding.w);
        bool inside = dh >= 0 && dh <= last.h && dh % a.dilation.h == 0 && dw >= 0 &&
                      dw <= last.w && dw % a.dilation.w == 0;
        if (inside && xv[(plane * h + p) * w + q] > best) best = xv[(plane * h + p) * w + q];
      }
    if (got[i] != best) fail_msg("element %lld is %g, wanted %g", (long long)i, got[i], best);
  }
  free(xv);
  free(got);
}

static lt_tensor *channels_last(lt_ctx *c, lt_tensor *x) {
  const int last[] = {0, 2, 3, 1}, first[] = {0, 3, 1, 2};
  return lt_permute(c, lt_contiguous(c, lt_permute(c, x, last)), first);
}

static void pooling_takes_the_maximum(void **state) {
  lt_ctx *c = *state;
  for (size_t d = 0; d < 4; d++)
    for (int k = 0; k < N_POOLS; k++) {
      lt_tensor *x = tensor_random(c, floats[d], SHAPE(2, 19, 7, 9), (uint64_t)k, -1, 1);
      expect_pool(c, pool(c, x, &pools[k]), x, pools[k]);
      expect_pool(c, pool(c, channels_last(c, x), &pools[k]), x, pools[k]);
      expect_pool(c, pool(c, tensor_strided(c, x), &pools[k]), x, pools[k]);
    }
}

static lt_tensor *call_pool(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return pool(c, in[0], ud);
}

static lt_tensor *call_pool_last(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return pool(c, channels_last(c, in[0]), ud);
}

static void pooling_gradients(void **state) {
  lt_ctx *c = *state;
  for (int k = 0; k < N_POOLS; k++)
    for (int last = 0; last < 2; last++) {
      lt_args_max_window a = pools[k];
      lt_tensor *in[1] = {tensor_random(c, LT_F64, SHAPE(1, 3, 5, 6), (uint64_t)k, -1, 1)};
      if (k == 3) in[0] = tensor_random(c, LT_F64, SHAPE(2, 2, 6, 7), 8, -1, 1);
      if (k == 4) in[0] = tensor_random(c, LT_F64, SHAPE(1, 2, 4, 5), 8, -1, 1);
      check_gradient(c, last ? call_pool_last : call_pool, &a, 1, in, 0, 1e-7);
      lt_tensor *f32[2];
      for (int t = 0; t < 2; t++) {
        c->threads = t + 1;
        f32[t] = wants_grad(tensor_random(c, LT_F32, SHAPE(3, 4, 7, 8), 8, -1, 1));
        lt_tensor *y = (last ? call_pool_last : call_pool)(c, &f32[t], &a);
        lt_backward(c, lt_apply1(c, LT_OP_sum, LT_IN(y), NULL), &(lt_backward_options){0});
        expect_ok(c);
      }
      expect_same_bits(c, f32[0]->grad, f32[1]->grad);
    }
}

static void pooling_passes_nan_and_infinity(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = wants_grad(TENSOR(c, LT_F32, SHAPE(1, 1, 2, 4), 1, NAN, -INFINITY, -INFINITY, 2, 5,
                                   -INFINITY, -INFINITY));
  lt_tensor *y = pool(c, x, &pools[0]);
  EXPECT(c, y, 0, NAN, -INFINITY);
  lt_backward(c, y, &(lt_backward_options){.seed = TENSOR(c, LT_F32, SHAPE(1, 1, 1, 2), 3, 7)});
  EXPECT(c, x->grad, 0, 0, 3, 7, 0, 0, 0, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(every_geometry_and_dtype),
      OP_TEST(results_lie_channels_last),
      OP_TEST(gradients),
      OP_TEST(second_gradients),
      OP_TEST(low_precision_gradients),
      OP_TEST(two_threads),
      OP_TEST(empty_batches),
      OP_TEST(pooling_takes_the_maximum),
      OP_TEST(pooling_gradients),
      OP_TEST(pooling_passes_nan_and_infinity),
  };
  return cmocka_run_group_tests_name("conv", tests, NULL, NULL);
}
