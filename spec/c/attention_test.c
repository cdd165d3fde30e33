/* spec/c/attention_test.c: attention against the formula in double, its gradient against
 * differences. */
#include "tensor_test.h"

static lt_tensor *attend_with(lt_ctx *c, lt_tensor *const *in, const lt_args_attention *a) {
  lt_tensor *out[2] = {NULL};
  lt_tensor *args[4] = {in[0], in[1], in[2], in[3]};
  lt_apply(c, LT_OP_scaled_dot_product_attention, in[3] != NULL ? 4 : 3, args, a, 2, out);
  return out[0];
}

static lt_tensor *attend_scaled(lt_ctx *c, lt_tensor *const *in, bool causal, lt_scalar scale) {
  return attend_with(c, in, &(lt_args_attention){.causal = causal, .scale = scale});
}

static lt_tensor *attend(lt_ctx *c, lt_tensor *const *in, bool causal) {
  return attend_scaled(c, in, causal, LT_NONE_SCALAR);
}

static double bound_of(lt_dtype d) {
  return d == LT_F64 ? 1e-13 : d == LT_F32 ? 3e-6 : d == LT_F16 ? 2e-3 : 1.6e-2;
}

/* One row of the textbook: softmax of scores, times v. */
static void naive_row(const double *q, const double *k, const double *v, const double *mask,
                      bool added, int64_t keys, int64_t d, int64_t e, double scale, double *out) {
  double *p = malloc((size_t)(keys + 1) * sizeof *p), most = -INFINITY, sum = 0;
  for (int64_t s = 0; s < keys; s++) {
    p[s] = 0;
    for (int64_t i = 0; i < d; i++) p[s] += scale * q[i] * k[s * d + i];
    if (mask != NULL) p[s] = added ? p[s] + mask[s] : mask[s] != 0 ? p[s] : -INFINITY;
    if (p[s] > most) most = p[s];
  }
  for (int64_t s = 0; s < keys; s++) sum += p[s] = most == -INFINITY ? 0 : exp(p[s] - most);
  for (int64_t i = 0; i < e; i++) {
    out[i] = 0;
    for (int64_t s = 0; s < keys; s++) out[i] += sum > 0 ? p[s] / sum * v[s * e + i] : 0;
  }
  free(p);
}

static void expect_attention(lt_ctx *c, lt_tensor *got, lt_tensor *const *in, bool causal,
                             double scale) {
  expect_ok(c);
  int n = in[0]->ndim;
  int64_t t = in[0]->size[n - 2], d = in[0]->size[n - 1], s = in[1]->size[n - 2];
  int64_t e = in[2]->size[n - 1], heads = t * d > 0 ? in[0]->numel / (t * d) : 0;
  double *q = values_of(c, in[0]), *k = values_of(c, in[1]), *v = values_of(c, in[2]), *mask = NULL;
  double *y = values_of(c, got), *row = malloc((size_t)(e + 1) * sizeof *row);
  if (in[3] != NULL) {
    lt_shape full = lt_tensor_shape(in[0]);
    full.size[n - 1] = s;
    mask = values_of(c, lt_expand_to(c, in[3], full));
  }
  for (int64_t i = 0; i < heads * t; i++) {
    int64_t head = i / t, keys = causal && i % t + 1 < s ? i % t + 1 : s;
    naive_row(q + i * d, k + head * s * d, v + head * s * e, mask != NULL ? mask + i * s : NULL,
              in[3] != NULL && in[3]->dtype != LT_BOOL, keys, d, e, scale, row);
    for (int64_t a = 0; a < e; a++)
      if (!same_within(y[i * e + a], row[a], bound_of((lt_dtype)got->dtype)))
        fail_msg("q %s k %s: row %lld is %.9g, wanted %.9g", LT_TENSOR_STR(in[0]),
                 LT_TENSOR_STR(in[1]), (long long)i, y[i * e + a], row[a]);
  }
  free(q), free(k), free(v), free(mask), free(y), free(row);
}

static const lt_dtype floats[] = {LT_F32, LT_F64, LT_F16, LT_BF16};

/* B, H, T, S, D, E; H 0: three dims. */
static const int64_t sizes[][6] = {
    {1, 1, 1, 1, 1, 1},    {2, 3, 5, 5, 8, 8},      {2, 0, 7, 9, 4, 6}, {1, 2, 64, 64, 16, 16},
    {1, 1, 65, 130, 8, 3}, {1, 2, 150, 70, 16, 20}, {2, 2, 1, 33, 5, 5}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static lt_shape shape_of(const int64_t *z, int64_t rows, int64_t cols) {
  return z[1] == 0 ? SHAPE(z[0], rows, cols) : SHAPE(z[0], z[1], rows, cols);
}

static void inputs(lt_ctx *c, lt_dtype d, const int64_t *z, lt_tensor **in) {
  in[0] = tensor_random(c, d, shape_of(z, z[2], z[4]), 1, -2, 2);
  in[1] = tensor_random(c, d, shape_of(z, z[3], z[4]), 2, -2, 2);
  in[2] = tensor_random(c, d, shape_of(z, z[3], z[5]), 3, -2, 2);
  in[3] = NULL;
}

static void every_size_and_dtype(void **state) {
  lt_ctx *c = *state;
  for (size_t d = 0; d < 4; d++)
    for (int k = 0; k < N_SIZES; k++)
      for (int causal = 0; causal < 2; causal++) {
        lt_tensor *in[4];
        inputs(c, floats[d], sizes[k], in);
        lt_tensor *y = attend(c, in, causal);
        expect_ok(c);
        expect_shape(y, shape_of(sizes[k], sizes[k][2], sizes[k][5]));
        assert_int_equal(y->dtype, floats[d]);
        expect_attention(c, y, in, causal, 1 / sqrt((double)sizes[k][4]));
        lt_tensor *strided[4] = {tensor_strided(c, in[0]), tensor_strided(c, in[1]),
                                 tensor_strided(c, in[2]), NULL};
        expect_close(c, attend(c, strided, causal), y, bound_of(floats[d]));
      }
}

static void scale_and_masks(void **state) {
  lt_ctx *c = *state;
  for (size_t d = 0; d < 4; d++) {
    lt_tensor *in[4];
    inputs(c, floats[d], (int64_t[]){2, 3, 70, 40, 8, 8}, in);
    expect_attention(c, attend_scaled(c, in, false, lt_scalar_of(0.25)), in, false, 0.25);
    lt_tensor *random = tensor_random(c, LT_F64, SHAPE(70, 40), 5, -1, 1);
    in[3] = lt_binary_scalar(c, LT_OP_gt, random, lt_scalar_of(-0.3));
    expect_attention(c, attend(c, in, false), in, false, 1 / sqrt(8));
    expect_attention(c, attend(c, in, true), in, true, 1 / sqrt(8));
    in[3] = tensor_random(c, floats[d], SHAPE(2, 1, 1, 40), 6, -3, 3);
    expect_attention(c, attend(c, in, false), in, false, 1 / sqrt(8));
    in[3] = tensor_random(c, LT_F32, SHAPE(3, 70, 1), 6, -3, 3); /* one number a row: no effect */
    lt_tensor *y = attend(c, in, false);
    in[3] = NULL;
    expect_close(c, y, lt_cast(c, attend(c, in, false), (lt_dtype)y->dtype),
                 2 * bound_of(floats[d]));
  }
}

/* A row that sees nothing gives 0 and takes no gradient; NaN stays visible. */
static void rows_without_keys(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[4];
  inputs(c, LT_F32, (int64_t[]){1, 0, 2, 3, 4, 2}, in);
  for (int k = 0; k < 3; k++) wants_grad(in[k]);
  in[3] = TENSOR(c, LT_BOOL, SHAPE(2, 3), 0, 0, 0, 1, 0, 1);
  lt_tensor *y = attend(c, in, false);
  expect_attention(c, y, in, false, 0.5);
  assert_true(value_at(c, y, 0) == 0 && value_at(c, y, 1) == 0);
  lt_backward(c, lt_apply1(c, LT_OP_sum, LT_IN(y), NULL), &(lt_backward_options){0});
  expect_ok(c);
  for (int i = 0; i < 4; i++) assert_true(value_at(c, in[0]->grad, i) == 0);
  for (int i = 0; i < 12; i++) assert_true(isfinite(value_at(c, in[1]->grad, i)));
  c->modes.grad = false;
  for (int i = 0; i < 12; i++) ((float *)lt_data(in[1]))[i] = NAN;
  assert_true(isnan(value_at(c, attend(c, in, false), 2)));
  in[3] = NULL;
  assert_true(isnan(value_at(c, attend(c, in, false), 0)));
}

/* Heads of one projection [B, T, 3, H, D] are read in place; the result joins without a copy. */
static void heads_of_a_projection(void **state) {
  lt_ctx *c = *state;
  lt_tensor *qkv = tensor_random(c, LT_F32, SHAPE(2, 80, 3, 4, 16), 1, -1, 1);
  const int dims[] = {0, 2, 1, 3};
  lt_tensor *in[4] = {NULL}, *copies[4] = {NULL};
  for (int k = 0; k < 3; k++) {
    in[k] = lt_permute(c, lt_select(c, qkv, 2, k), dims);
    copies[k] = lt_contiguous(c, in[k]);
  }
  lt_tensor *y = attend(c, in, true);
  expect_attention(c, y, in, true, 0.25);
  expect_same_bits(c, y, attend(c, copies, true));
  assert_true(lt_permute(c, y, dims)->contiguous);
}

typedef struct options {
  bool causal;
  lt_tensor *mask;
} options;

static lt_tensor *call_attention(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const options *o = ud;
  return attend(c, (lt_tensor *[]){in[0], in[1], in[2], o->mask}, o->causal);
}

static lt_tensor *call_turned(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const int dims[] = {0, 2, 1, 3};
  lt_tensor *turned[3];
  for (int k = 0; k < 3; k++) turned[k] = lt_permute(c, in[k], dims);
  return lt_permute(c, call_attention(c, turned, ud), dims);
}

static void gradients(void **state) {
  lt_ctx *c = *state;
  static const int64_t small[][6] = {{1, 2, 4, 4, 3, 3}, {2, 0, 3, 5, 4, 2}, {1, 1, 67, 3, 2, 1}};
  for (size_t k = 0; k < 3; k++)
    for (int causal = 0; causal < 2; causal++) {
      lt_tensor *in[4];
      inputs(c, LT_F64, small[k], in);
      check_gradient(c, call_attention, &(options){.causal = causal}, 3, in, 0, 1e-6);
    }
  lt_tensor *in[4];
  inputs(c, LT_F64, (int64_t[]){2, 3, 4, 5, 2, 3}, in); /* as [B, T, H, D] */
  in[1] = tensor_random(c, LT_F64, SHAPE(2, 3, 4, 2), 5, -1, 1);
  in[2] = tensor_random(c, LT_F64, SHAPE(2, 3, 4, 3), 6, -1, 1);
  check_gradient(c, call_turned, &(options){.causal = true}, 3, in, 0, 1e-6);
  options o = {.mask = TENSOR(c, LT_BOOL, SHAPE(3, 3), 1, 0, 1, 0, 0, 0, 1, 1, 0)};
  inputs(c, LT_F64, (int64_t[]){2, 1, 3, 3, 2, 2}, in);
  check_gradient(c, call_attention, &o, 3, in, 0, 1e-6);
  o.mask = tensor_random(c, LT_F64, SHAPE(2, 1, 3, 3), 8, -1, 1);
  inputs(c, LT_F64, (int64_t[]){2, 2, 3, 3, 2, 2}, in);
  check_gradient(c, call_attention, &o, 3, in, 0, 1e-6);
}

static lt_tensor *call_with(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return attend_with(c, (lt_tensor *[]){in[0], in[1], in[2], in[3]}, ud);
}

/* Shapes of the mask, broadcast in different dims; causal rows too. */
static void gradient_of_a_mask(void **state) {
  lt_ctx *c = *state;
  const lt_shape masks[] = {SHAPE(2, 2, 3, 4), SHAPE(3, 4), SHAPE(2, 1, 1, 4), SHAPE(2, 3, 1)};
  for (int k = 0; k < 4; k++)
    for (int causal = 0; causal < 2; causal++) {
      lt_tensor *in[4];
      inputs(c, LT_F64, (int64_t[]){2, 2, 3, 4, 2, 3}, in);
      in[3] = tensor_random(c, LT_F64, masks[k], 8, -1, 1);
      check_gradient(c, call_with, &(lt_args_attention){.causal = causal}, 4, in, 0, 1e-6);
    }
}

/* Heads of k and v repeated by hand; two dims as one batch of one head. */
static void shared_heads_and_two_dims(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[4], *wide[4] = {NULL}, *flat[4] = {NULL}, *kept[4] = {NULL};
  inputs(c, LT_F64, (int64_t[]){2, 6, 70, 9, 4, 5}, in);
  kept[0] = in[0];
  for (int k = 1; k < 3; k++) {
    kept[k] = lt_slice(c, in[k], 1, 0, 2, 1);
    lt_shape s = lt_tensor_shape(kept[k]);
    lt_tensor *x = lt_reshape(c, kept[k], SHAPE(2, 2, 1, s.size[2], s.size[3]));
    x = lt_expand_to(c, x, SHAPE(2, 2, 3, s.size[2], s.size[3]));
    wide[k] = lt_reshape(c, x, SHAPE(2, 6, s.size[2], s.size[3]));
  }
  wide[0] = in[0];
  lt_args_attention gqa = {.enable_gqa = true};
  for (int causal = 0; causal < 2; causal++) {
    gqa.causal = causal;
    expect_same_bits(c, attend_with(c, kept, &gqa), attend(c, wide, causal));
  }
  for (int k = 0; k < 3; k++) flat[k] = lt_select(c, lt_select(c, in[k], 0, 1), 0, 2);
  lt_tensor *y = lt_select(c, lt_select(c, attend(c, in, false), 0, 1), 0, 2);
  expect_same_bits(c, attend(c, flat, false), y);
  inputs(c, LT_F64, (int64_t[]){1, 4, 3, 3, 2, 2}, in);
  for (int k = 1; k < 3; k++) in[k] = tensor_random(c, LT_F64, SHAPE(1, 2, 3, 2), 9, -1, 1);
  in[3] = tensor_random(c, LT_F64, SHAPE(4, 3, 3), 8, -1, 1);
  check_gradient(c, call_with, &gqa, 4, in, 0, 1e-6);
  for (int k = 0; k < 3; k++) in[k] = tensor_random(c, LT_F64, SHAPE(3, 2), (uint64_t)k, -1, 1);
  in[3] = tensor_random(c, LT_F64, SHAPE(3, 3), 8, -1, 1);
  check_gradient(c, call_with, &(lt_args_attention){.causal = true}, 4, in, 0, 1e-6);
}

/* The same as softmax, dropout by that key, product. */
static lt_tensor *written_out(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const lt_args_attention *a = ud;
  lt_tensor *p = lt_binary(c, LT_OP_matmul, in[0], lt_transpose(c, in[1], 2, 3));
  p = lt_binary_scalar(c, LT_OP_mul, p, a->scale);
  p = lt_apply1(c, LT_OP_softmax, 1, &p, &(lt_args_softmax){.dim = 3});
  const lt_args_dropout drop = {.p = a->dropout_p, .training = true, .rng_key = a->rng_key};
  return lt_binary(c, LT_OP_matmul, lt_apply1(c, LT_OP_dropout, 1, &p, &drop), in[2]);
}

static void dropout_of_the_weights(void **state) {
  lt_ctx *c = *state;
  lt_args_attention a = {.scale = lt_scalar_of(0.5),
                         .dropout_p = 0.4,
                         .rng_key = {.drawn = true, .seed = 77, .position = 5}};
  static const int64_t some[][6] = {{2, 3, 5, 7, 4, 3}, {1, 2, 70, 2100, 4, 4}};
  for (int k = 0; k < 2; k++) {
    lt_tensor *in[4];
    inputs(c, LT_F64, some[k], in);
    expect_close(c, attend_with(c, in, &a), written_out(c, in, &a), 1e-13);
  }
  lt_tensor *in[4];
  inputs(c, LT_F64, (int64_t[]){1, 2, 3, 5, 2, 2}, in);
  in[3] = tensor_random(c, LT_F64, SHAPE(3, 5), 8, -1, 1);
  check_gradient(c, call_with, &a, 4, in, 0, 1e-6);
  a.dropout_p = 1;
  expect_close(c, attend_with(c, in, &a),
               lt_full(c, SHAPE(1, 2, 3, 2), lt_scalar_of(0), LT_F64, LT_CPU_DEVICE), 0);
  /* A key is drawn for each call, and for none without dropout. */
  uint32_t before = c->rng.ordinal;
  a.dropout_p = 0, a.rng_key = LT_NO_RNG_KEY;
  attend_with(c, in, &a);
  assert_int_equal(c->rng.ordinal, before);
  a.dropout_p = 0.5;
  attend_with(c, in, &a);
  assert_int_equal(c->rng.ordinal, before + 1);
}

/* Some heads of a module drop what they drop among all of them. */
static void dropout_of_some_heads(void **state) {
  lt_ctx *c = *state;
  const lt_rng_key key = {.drawn = true, .seed = 77, .position = 5};
  static const int64_t some[][6] = {{2, 4, 5, 7, 4, 3}, {2, 4, 70, 9, 4, 4}};
  for (int k = 0; k < 2; k++)
    for (int shared = 1; shared < 3; shared++) {
      lt_tensor *in[4], *part[4] = {NULL};
      inputs(c, LT_F64, some[k], in);
      for (int n = 1; n < 3; n++) in[n] = lt_slice(c, in[n], 1, 0, 4 / shared, 1);
      lt_args_attention a = {.dropout_p = 0.4, .enable_gqa = true, .rng_key = key};
      lt_tensor *whole = attend_with(c, in, &a);
      part[0] = lt_slice(c, in[0], 1, 2, 2, 1);
      for (int n = 1; n < 3; n++) part[n] = lt_slice(c, in[n], 1, 2 / shared, 2 / shared, 1);
      a.first_head = 2, a.all_heads = 4;
      expect_same_bits(c, attend_with(c, part, &a), lt_slice(c, whole, 1, 2, 2, 1));
    }
  lt_tensor *in[4];
  inputs(c, LT_F64, (int64_t[]){2, 2, 3, 5, 2, 2}, in);
  lt_args_attention a = {.dropout_p = 0.4, .first_head = 1, .all_heads = 4, .rng_key = key};
  check_gradient(c, call_with, &a, 4, in, 0, 1e-6);
  a.first_head = 3;
  attend_with(c, in, &a);
  expect_failure(c, LT_EARG, "scaled_dot_product_attention: heads 3 to 4 of q [2, 2, 3, 2] are not "
                             "among all_heads = 4");
}

/* f32, f16 and bf16 against f64; 1 and 2 threads and a second run give the same bits. */
static void low_precision_gradients(void **state) {
  lt_ctx *c = *state;
  lt_tensor *exact[3] = {NULL}, *first[3] = {NULL};
  static const lt_dtype order[] = {LT_F64, LT_F32, LT_F32, LT_F16, LT_BF16};
  for (int round = 0; round < 5; round++) {
    lt_tensor *in[4];
    c->threads = round == 2 ? 2 : 1;
    inputs(c, order[round], (int64_t[]){2, 3, 150, 150, 16, 8}, in);
    for (int k = 0; k < 3; k++) wants_grad(in[k]);
    lt_tensor *y = attend(c, in, true);
    expect_ok(c);
    lt_tensor *seed = tensor_random(c, order[round], lt_tensor_shape(y), 9, -1, 1);
    lt_backward(c, y, &(lt_backward_options){.seed = seed});
    expect_ok(c);
    for (int k = 0; k < 3; k++) {
      if (round == 0) exact[k] = in[k]->grad;
      if (round == 1) first[k] = in[k]->grad;
      if (round == 2) expect_same_bits(c, in[k]->grad, first[k]);
      if (round > 0)
        expect_close(c, lt_cast(c, in[k]->grad, LT_F64), exact[k], 10 * bound_of(order[round]));
    }
  }
}

static void threads_do_not_matter(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[4];
  inputs(c, LT_F32, (int64_t[]){1, 3, 200, 200, 16, 16}, in);
  check_threads(c, call_attention, &(options){.causal = true}, in);
}

static void without_elements(void **state) {
  lt_ctx *c = *state;
  static const int64_t odd[][6] = {{0, 2, 3, 3, 4, 4},
                                   {1, 2, 0, 3, 4, 4},
                                   {1, 2, 3, 0, 4, 4},
                                   {1, 2, 3, 3, 4, 0},
                                   {1, 2, 3, 3, 0, 4}};
  for (int k = 0; k < 5; k++) {
    lt_tensor *in[4];
    inputs(c, LT_F32, odd[k], in);
    for (int i = 0; i < 3; i++) wants_grad(in[i]);
    lt_tensor *y = attend(c, in, false);
    expect_ok(c);
    expect_shape(y, SHAPE(odd[k][0], 2, odd[k][2], odd[k][5]));
    if (odd[k][3] == 0) EXPECT(c, lt_select(c, lt_select(c, y, 1, 0), 1, 0), 0, 0, 0, 0, 0);
    if (odd[k][4] == 0) expect_attention(c, y, in, false, 1);
    lt_backward(c, lt_apply1(c, LT_OP_sum, LT_IN(y), NULL), &(lt_backward_options){0});
    expect_ok(c);
    expect_shape(in[0]->grad, lt_tensor_shape(in[0]));
  }
}

static void wrong_calls(void **state) {
  lt_ctx *c = *state;
  lt_tensor *in[4], *good[4];
  inputs(c, LT_F32, (int64_t[]){2, 3, 5, 5, 8, 8}, good);
  memcpy(in, good, sizeof in);
  in[1] = tensor_random(c, LT_F32, SHAPE(2, 3, 5, 4), 1, -1, 1);
  attend(c, in, false);
  expect_failure(
      c, LT_ESHAPE,
      "scaled_dot_product_attention: needs q [.., T, D], k [.., S, D], v [.., S, E] of 2 "
      "to 4 dims, got [2, 3, 5, 8], [2, 3, 5, 4], [2, 3, 5, 8]");
  memcpy(in, good, sizeof in);
  in[3] = TENSOR(c, LT_BOOL, SHAPE(2, 1), 1, 1);
  attend(c, in, false);
  expect_failure(c, LT_ESHAPE,
                 "scaled_dot_product_attention: mask [2, 1] does not fit the scores [2, 3, 5, 5]");
  in[3] = TENSOR(c, LT_I64, SHAPE(1), 1);
  attend(c, in, false);
  expect_failure(c, LT_EDTYPE,
                 "scaled_dot_product_attention: mask must be bool (true takes part) or floating "
                 "(added to the scores), got i64");
  memcpy(in, good, sizeof in);
  in[1] = tensor_random(c, LT_F32, SHAPE(2, 1, 5, 8), 1, -1, 1), in[2] = in[1];
  attend(c, in, false);
  expect_failure(
      c, LT_ESHAPE,
      "scaled_dot_product_attention: needs q [.., T, D], k [.., S, D], v [.., S, E] of 2 to 4 "
      "dims, got [2, 3, 5, 8], [2, 1, 5, 8], [2, 1, 5, 8]; enable_gqa = true shares heads");
  in[1] = tensor_random(c, LT_F32, SHAPE(2, 2, 5, 8), 1, -1, 1), in[2] = in[1];
  attend_with(c, in, &(lt_args_attention){.enable_gqa = true});
  expect_failure(
      c, LT_ESHAPE,
      "scaled_dot_product_attention: needs q [.., T, D], k [.., S, D], v [.., S, E] of 2 to 4 "
      "dims, heads of q a multiple of those of k and v, got [2, 3, 5, 8], [2, 2, 5, 8], "
      "[2, 2, 5, 8]");
  attend_with(c, good, &(lt_args_attention){.dropout_p = 1.5});
  expect_failure(c, LT_EARG, "scaled_dot_product_attention: dropout_p must be in 0..1: got 1.5");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(every_size_and_dtype),
      OP_TEST(scale_and_masks),
      OP_TEST(rows_without_keys),
      OP_TEST(heads_of_a_projection),
      OP_TEST(gradients),
      OP_TEST(low_precision_gradients),
      OP_TEST(threads_do_not_matter),
      OP_TEST(without_elements),
      OP_TEST(wrong_calls),
      OP_TEST(gradient_of_a_mask),
      OP_TEST(shared_heads_and_two_dims),
      OP_TEST(dropout_of_the_weights),
      OP_TEST(dropout_of_some_heads),
  };
  return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
