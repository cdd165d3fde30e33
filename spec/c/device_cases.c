/* spec/c/device_cases.c: part of device_conformance: calls to try, by kind of op.

   A kind without a function here is a fault of device_conformance: its kernels are not compared. */
#include "device_cases.h"

#include <math.h>

static double drawn(uint64_t seed, uint64_t k) { /* in [0, 1), the same everywhere */
  uint64_t x = (seed << 32) + k + 1;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

lt_tensor *values(lt_ctx *c, lt_dtype dtype, lt_shape s, uint64_t seed, double lo,
                  double hi) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F64, s.ndim, s.size);
  for (int64_t k = 0; t != NULL && k < t->numel; k++) {
    double v = lo + (hi - lo) * drawn(seed, (uint64_t)k);
    if (!lt_dtype_is_float(dtype)) v = floor(lt_dtype_row(dtype)->is_signed ? v : fabs(v));
    ((double *)lt_data(t))[k] = v;
  }
  return t == NULL ? NULL : lt_cast(c, t, dtype);
}

void put(lt_ctx *c, trial *t, int k, lt_shape s) {
  t->in[k] = values(c, t->dtype, s, (uint64_t)k + 1, -2, 2);
  t->n = k + 1;
}
void put_ids(lt_ctx *c, trial *t, int k, lt_shape s, int64_t below) {
  t->in[k] = values(c, LT_I64, s, (uint64_t)k + 11, 0, (double)below);
  t->n = k + 1;
}

/* ---- elementwise ---- */

lt_shape shape_of(int number) {
  switch (number) {
    case 0: return SHAPE(7);
    case 1: return SHAPE(3, 5);
    case 2: return SHAPE(17, 301);
    case 3: return SHAPE(2, 3, 4, 5);
    case 4: return SHAPE(0, 3);
    default: return (lt_shape){0};
  }
}

/* Where the row's function is defined; that of a derivative is its op's. */
static void put_in_domain(lt_ctx *c, trial *t, int n, lt_shape s) {
  const lt_op_info *row = &lt_ops[t->op];
  while (row->hidden && row > lt_ops) row--;
  double lo = row->lo < row->hi ? row->lo : -2, hi = row->lo < row->hi ? row->hi : 2;
  for (int k = 0; k < n; k++) t->in[k] = values(c, t->dtype, s, (uint64_t)k + 1, lo, hi);
  t->n = n;
}

static bool unary(lt_ctx *c, trial *t) {
  if (t->number >= SHAPES) return false;
  put_in_domain(c, t, lt_kinds[lt_ops[t->op].kind].max_in, shape_of(t->number));
  return true;
}

static bool clamp(lt_ctx *c, trial *t) {
  lt_args_clamp *a = (lt_args_clamp *)(void *)t->args;
  a->min = lt_scalar_int(-1);
  if (t->number % 2 == 0) a->max = lt_scalar_int(1);
  return unary(c, t);
}

/* Two of one shape, shapes that broadcast, a number on either side. */
static bool binary(lt_ctx *c, trial *t) {
  lt_args_binary *a = (lt_args_binary *)(void *)t->args;
  int k = t->number - SHAPES;
  if (k < 0) {
    put_in_domain(c, t, 2, shape_of(t->number));
    return true;
  }
  put_in_domain(c, t, 2, k == 1 ? SHAPE(3, 1) : SHAPE(3, 5));
  if (k == 0) t->in[1] = lt_select(c, t->in[1], 0, 1);
  if (k == 1) t->in[1] = lt_permute(c, t->in[1], (int[]){1, 0});
  if (k == 2) a->b = lt_scalar_int(1), t->n = 1;
  if (k == 3) a->a = lt_scalar_int(1), t->n = 1;
  if (k == 4 && lt_dtype_is_float(t->dtype)) a->b = lt_scalar_of(0.7), t->n = 1;
  return k <= 4;
}

static bool binary_backward(lt_ctx *c, trial *t) {
  if (t->number >= SHAPES) return false;
  put_in_domain(c, t, 4, shape_of(t->number));
  return true;
}

/* ---- making and moving ---- */

static bool create(lt_ctx *c, trial *t) {
  lt_args_create *a = (lt_args_create *)(void *)t->args;
  lt_shape s = shape_of(t->number);
  (void)c;
  a->size.n = s.ndim;
  memcpy(a->size.size, s.size, sizeof s.size);
  a->dtype = t->dtype;
  a->fill_value = lt_scalar_int(3);
  return t->number < SHAPES;
}

static bool cast(lt_ctx *c, trial *t) {
  ((lt_args_cast *)(void *)t->args)->dtype = (lt_dtype)(t->number / 2);
  put(c, t, 0, shape_of(t->number % 2 + 2));
  return t->number < 2 * LT_DTYPE_COUNT;
}

static bool copy(lt_ctx *c, trial *t) {
  if (t->number > SHAPES) return false;
  put(c, t, 0, t->number == SHAPES ? SHAPE(3, 5) : shape_of(t->number));
  put(c, t, 1, t->number == SHAPES ? SHAPE(5) : shape_of(t->number));
  return true;
}

static bool fill(lt_ctx *c, trial *t) {
  ((lt_args_fill *)(void *)t->args)->value = lt_scalar_int(t->number);
  return unary(c, t);
}

/* ---- along dims ---- */

static bool reduce(lt_ctx *c, trial *t) {
  static const lt_dims dims[] = {{.n = -1}, {.n = 1}, {.n = 1, .dim = {1}}, {.n = 1, .dim = {2}},
                                 {.n = 2, .dim = {0, 2}}};
  lt_args_reduce *a = (lt_args_reduce *)(void *)t->args;
  if (t->number >= 11) return false;
  a->dims = dims[t->number % 5];
  a->keepdim = t->number >= 5;
  put(c, t, 0, t->number == 10 ? SHAPE(3, 2501) : SHAPE(4, 7, 6));
  if (t->number == 10) a->dims = dims[2];
  t->slack = 20;
  return true;
}

/* Kinds whose first argument is the dim. */
static bool along(lt_ctx *c, trial *t) {
  *(int64_t *)(void *)t->args = t->number % 2;
  if (t->number >= 4) return false;
  for (int k = 0; k < lt_kinds[lt_ops[t->op].kind].max_in; k++)
    put(c, t, k, t->number < 2 ? SHAPE(4, 7, 6) : SHAPE(33, 1001));
  t->slack = 20;
  return true;
}

/* ---- updates ---- */

/* Groups of two parameters, one of them long; second moments are not negative. */
static void groups(lt_ctx *c, trial *t, int n) {
  for (int k = 0; k < 2 * n; k++) {
    put(c, t, k, k % 2 == 0 ? SHAPE(3, 5) : SHAPE(5000));
    if (k >= 2 && k / 2 == n - 1)
      t->in[k] = values(c, t->dtype, lt_tensor_shape(t->in[k]), 7, 0, 1);
  }
}

static bool adam_step(lt_ctx *c, trial *t) {
  lt_args_adam_step *a = (lt_args_adam_step *)(void *)t->args;
  a->lr = 0.1;
  a->step = 1 + t->number * 10;
  a->weight_decay = t->number > 0 ? 0.1 : 0;
  a->decoupled = t->number == 2;
  groups(c, t, 4);
  return t->number < 3;
}

/* With the fewest kinds of state that the row takes, and with the most; no state is negative. */
static bool update(lt_ctx *c, trial *t) {
  int fewest = 0, most = 0;
#define LT_UPDATE(name, fewest_, most_, ...) \
  if (t->op == LT_OP_##name##_step) fewest = (fewest_), most = (most_);
#include "ops/updates.def"
  lt_args_update *a = (lt_args_update *)(void *)t->args;
  *a = (lt_args_update){.lr = 0.1, .shrink = 1, .beta1 = 0.9, .beta2 = 0.99, .eps = 0.1, .root = 2,
                        .by_grad = 0.1, .by_mean = 0.2, .momentum = 0.5};
  a->states = t->number == 0 ? fewest : most;
  if (t->number == 1) a->weight_decay = 0.1, a->shrink = 0.9, a->maximize = true, a->by_mean = 0;
  int n = 2 + (int)a->states;
  groups(c, t, n);
  for (int k = 4; k < 2 * n; k++)
    t->in[k] = values(c, t->dtype, lt_tensor_shape(t->in[k]), (uint64_t)k, k < 6 ? 1 : 0.2,
                      k < 6 ? 2 : 0.8);
  return t->number < 2;
}

static bool sgd_step(lt_ctx *c, trial *t) {
  lt_args_sgd_step *a = (lt_args_sgd_step *)(void *)t->args;
  a->lr = 0.1;
  a->momentum = t->number == 1 ? 0.9 : 0;
  groups(c, t, t->number == 1 ? 3 : 2);
  return t->number < 2;
}

static bool gradients(lt_ctx *c, trial *t) { /* grads_scale takes a factor first */
  if (t->number > 0) return false;
  put(c, t, 0, lt_ops[t->op].kind == LT_KIND_grads_scale ? (lt_shape){0} : SHAPE(4));
  put(c, t, 1, SHAPE(3, 5));
  put(c, t, 2, SHAPE(5000));
  t->slack = 20;
  return true;
}

/* ---- random ---- */

static bool random(lt_ctx *c, trial *t) {
  lt_args_random *a = (lt_args_random *)(void *)t->args;
  (void)c;
  a->size = (lt_sizes){.n = 2, .size = {3, t->number == 0 ? 5 : 5001}};
  a->dtype = t->dtype;
  return t->number < 2;
}

static bool random_int(lt_ctx *c, trial *t) {
  lt_args_random_int *a = (lt_args_random_int *)(void *)t->args;
  (void)c;
  a->low = 0;
  a->high = 100;
  a->size = (lt_sizes){.n = 1, .size = {5001}};
  a->dtype = t->dtype;
  return t->number < 1;
}

static bool permutation(lt_ctx *c, trial *t) {
  (void)c;
  lt_args_permutation *a = (lt_args_permutation *)(void *)t->args;
  a->n = t->number == 0 ? 7 : 5001;
  a->dtype = t->dtype;
  return t->number < 2;
}

static bool multinomial(lt_ctx *c, trial *t) {
  lt_args_multinomial *a = (lt_args_multinomial *)(void *)t->args;
  if (t->number > 3 || !lt_dtype_is_float(t->dtype)) return false;
  a->replacement = t->number % 2 == 1;
  a->num_samples = 6;
  t->in[0] = values(c, t->dtype, t->number < 2 ? SHAPE(3, 9) : SHAPE(1300), 3, 0.5, 1);
  t->n = 1;
  return true;
}

static bool bernoulli(lt_ctx *c, trial *t) {
  t->in[0] = values(c, t->dtype, SHAPE(3, 501), 3, 0, 1);
  t->n = 1;
  return t->number == 0;
}

static bool dropout(lt_ctx *c, trial *t) {
  put(c, t, 0, SHAPE(3, 501));
  return t->number == 0;
}

/* Bits of positive numbers up to 120, which both formats have, and their scales. */
static lt_tensor *float8(lt_ctx *c, lt_shape s, uint64_t seed) {
  return values(c, LT_U8, s, seed, 0, 120);
}
static lt_tensor *scale(lt_ctx *c) { return values(c, LT_F32, SHAPE(), 5, 0.5, 3); }

static bool quantize_float8(lt_ctx *c, trial *t) {
  if (t->number > 1 || !lt_dtype_is_float(t->dtype)) return false;
  ((lt_args_quantize_float8 *)(void *)t->args)->format = t->number;
  put(c, t, 0, SHAPE(3, 501));
  t->in[1] = scale(c);
  t->n = 2;
  return true;
}

static bool dequantize_float8(lt_ctx *c, trial *t) {
  if (t->number > 1 || t->dtype != LT_U8) return false;
  ((lt_args_dequantize_float8 *)(void *)t->args)->format = t->number;
  t->in[0] = float8(c, SHAPE(3, 501), 1);
  t->n = 1;
  return true;
}

/* Dims that 16 divides, and others; e4m3 and e5m2. */
static bool scaled_mm(lt_ctx *c, trial *t) {
  lt_args_scaled_mm *a = (lt_args_scaled_mm *)(void *)t->args;
  if (t->number > 3 || t->dtype != LT_U8) return false;
  a->format_a = t->number / 2;
  t->in[0] = float8(c, t->number % 2 == 0 ? SHAPE(32, 64) : SHAPE(33, 21), 1);
  t->in[1] = float8(c, t->number % 2 == 0 ? SHAPE(48, 64) : SHAPE(5, 21), 2);
  t->in[2] = scale(c), t->in[3] = scale(c);
  t->n = 4;
  t->slack = 10;
  return true;
}

static bool (*const makers[LT_KIND_COUNT])(lt_ctx *, trial *) = {
    [LT_KIND_unary] = unary,
    [LT_KIND_unary_backward] = unary,
    [LT_KIND_unary_numbers] = unary,
    [LT_KIND_unary_numbers_backward] = unary,
    [LT_KIND_test] = unary,
    [LT_KIND_clone] = unary,
    [LT_KIND_clamp] = clamp,
    [LT_KIND_clamp_backward] = clamp,
    [LT_KIND_binary] = binary,
    [LT_KIND_compare] = binary,
    [LT_KIND_binary_backward] = binary_backward,
    [LT_KIND_create] = create,
    [LT_KIND_cast] = cast,
    [LT_KIND_copy] = copy,
    [LT_KIND_fill] = fill,
    [LT_KIND_reduce] = reduce,
    [LT_KIND_arg_reduce] = along,
    [LT_KIND_extremum] = along,
    [LT_KIND_scan] = along,
    [LT_KIND_scan_backward] = along,
    [LT_KIND_softmax] = along,
    [LT_KIND_softmax_backward] = along,
    [LT_KIND_layer_norm] = layer_norm_trial,
    [LT_KIND_layer_norm_backward] = layer_norm_trial,
    [LT_KIND_rms_norm] = rms_norm_trial,
    [LT_KIND_rms_norm_backward] = rms_norm_trial,
    [LT_KIND_group_norm] = group_norm_trial,
    [LT_KIND_group_norm_backward] = group_norm_trial,
    [LT_KIND_batch_norm] = batch_norm_trial,
    [LT_KIND_batch_norm_backward] = batch_norm_backward_trial,
    [LT_KIND_cross_entropy] = cross_entropy_trial,
    [LT_KIND_cross_entropy_backward] = cross_entropy_backward_trial,
    [LT_KIND_ctc_paths] = ctc_trial,
    [LT_KIND_ctc_paths_backward] = ctc_backward_trial,
    [LT_KIND_embedding] = embedding_trial,
    [LT_KIND_embedding_bag] = embedding_bag_trial,
    [LT_KIND_index_select] = index_select_trial,
    [LT_KIND_index_select_backward] = index_select_backward_trial,
    [LT_KIND_gather] = gather_trial,
    [LT_KIND_scatter_add] = scatter_add_trial,
    [LT_KIND_extremum_backward] = extremum_backward_trial,
    [LT_KIND_topk] = topk_trial,
    [LT_KIND_one_hot] = one_hot_trial,
    [LT_KIND_mask_positions] = mask_positions_trial,
    [LT_KIND_index_flatten] = index_flatten_trial,
    [LT_KIND_rows_put] = rows_put_trial,
    [LT_KIND_as_strided_scatter] = as_strided_trial,
    [LT_KIND_as_strided_zero] = as_strided_trial,
    [LT_KIND_as_strided_backward] = as_strided_backward_trial,
    [LT_KIND_where] = where_trial,
    [LT_KIND_masked_fill] = masked_fill_trial,
    [LT_KIND_triangle] = triangle_trial,
    [LT_KIND_cat] = join_trial,
    [LT_KIND_stack] = join_trial,
    [LT_KIND_recurrent] = recurrent_trial,
    [LT_KIND_recurrent_backward] = recurrent_backward_trial,
    [LT_KIND_matmul] = matmul_trial,
    [LT_KIND_linear] = linear_trial,
    [LT_KIND_quantize_float8] = quantize_float8,
    [LT_KIND_dequantize_float8] = dequantize_float8,
    [LT_KIND_scaled_mm] = scaled_mm,
    [LT_KIND_convolution] = conv_trial,
    [LT_KIND_conv_input] = conv_backward_trial,
    [LT_KIND_conv_weight] = conv_backward_trial,
    [LT_KIND_max_window] = pool_trial,
    [LT_KIND_max_window_backward] = pool_backward_trial,
    [LT_KIND_attention] = attention_trial,
    [LT_KIND_attention_backward] = attention_backward_trial,
    [LT_KIND_fft_complex] = fft_trial,
    [LT_KIND_fft_real] = fft_real_trial,
    [LT_KIND_fft_real_inverse] = fft_real_inverse_trial,
    [LT_KIND_linalg_cholesky] = linalg_trial,
    [LT_KIND_linalg_det] = linalg_trial,
    [LT_KIND_linalg_slogdet] = linalg_trial,
    [LT_KIND_linalg_eigh] = linalg_trial,
    [LT_KIND_linalg_qr] = linalg_trial,
    [LT_KIND_linalg_svd] = linalg_trial,
    [LT_KIND_linalg_solve] = linalg_trial,
    [LT_KIND_linalg_solve_triangular] = linalg_trial,
    [LT_KIND_adam_step] = adam_step,
    [LT_KIND_sgd_step] = sgd_step,
    [LT_KIND_update] = update,
    [LT_KIND_grads_norm] = gradients,
    [LT_KIND_grads_scale] = gradients,
    [LT_KIND_random] = random,
    [LT_KIND_random_int] = random_int,
    [LT_KIND_dropout] = dropout,
    [LT_KIND_permutation] = permutation,
    [LT_KIND_multinomial] = multinomial,
    [LT_KIND_bernoulli] = bernoulli,
};

bool make_trial(lt_ctx *c, trial *t) {
  lt_kind kind = lt_ops[t->op].kind;
  if (lt_ops[t->op].hidden && !lt_dtype_is_float(t->dtype)) return false; /* a row's derivative */
  lt_op_defaults(t->op, t->args);
  return makers[kind] != NULL && makers[kind](c, t);
}
