/* runtime/ops/args.h: the arguments of each kind.

   LT_ARGS_<kind>(A): one A(type, name, default) an argument. It generates the C struct
   lt_args_<kind>, the Lua arguments, the checks of options and the docs. Types:
     INT, NUMBER, FLAG   plain values; a content, never shifted
     DIM                 a dimension: 1-based in Lua, 0-based in C; negative counts from the end
     DIMS                one or several dims; n = -1: none (all of them)
     POS                 a position along a dim: 1-based in Lua, 0-based in C; negative from the end
     SIZES               a shape
     PAIR                a number or {height, width}
     EACH                a number for all spatial dims, or a list of one for each; n = -1: absent
     PADDING             the same, or "valid" (0) or "same" (n = LT_SAME)
     SCALAR              a number with its category; kind LT_NO_SCALAR: absent
     DTYPE, DEVICE       by name in Lua; LT_DTYPE_NONE / kind -1: absent
     CHOICE              one of the names in LT_CHOICES_<argument>; its value is the position there
     RNG_KEY             hidden: the key of random numbers; set by the infer function
   Default REQUIRED: the argument is required (its C value is zero). */
#ifndef LT_OPS_ARGS_H
#define LT_OPS_ARGS_H

#include <math.h>

#include "base/random.h"
#include "ltrain/args.h"

#define LT_NO_DIMS ((lt_dims){.n = -1})
#define LT_ONE_DIM(d) ((lt_dims){.n = 1, .dim = {d}})
#define LT_NONE_SCALAR ((lt_scalar){.kind = LT_NO_SCALAR})
#define LT_NO_DEVICE ((lt_device){-1, 0})
#define LT_PAIR_OF(n) ((lt_pair){n, n})
#define LT_ALL_OF(v) ((lt_sizes){.n = 1, .size = {v}})
#define LT_NO_SIZES ((lt_sizes){.n = -1})
#define LT_SAME (-2)
#define LT_NO_DIM INT64_MIN /* a DIM that may be left out */
#define LT_NO_RNG_KEY ((lt_rng_key){0})

/* Names of choices, and the constants for C. */
#define LT_CHOICES_reduction "none|mean|sum|batchmean"
enum { LT_REDUCTION_none, LT_REDUCTION_mean, LT_REDUCTION_sum, LT_REDUCTION_batchmean };
#define LT_CHOICES_reduce "none|add|multiply|sum|prod|mean|amax|amin"
enum {
  LT_REDUCE_none, LT_REDUCE_add, LT_REDUCE_multiply, LT_REDUCE_sum, LT_REDUCE_prod, LT_REDUCE_mean,
  LT_REDUCE_amax, LT_REDUCE_amin
};
#define LT_CHOICES_interpolation "linear|lower|higher|midpoint|nearest"
enum {
  LT_INTERPOLATION_linear, LT_INTERPOLATION_lower, LT_INTERPOLATION_higher,
  LT_INTERPOLATION_midpoint, LT_INTERPOLATION_nearest
};
#define LT_CHOICES_nonlinearity "tanh|relu"
enum { LT_NONLINEARITY_tanh, LT_NONLINEARITY_relu };

enum { LT_FLOAT8_E4M3, LT_FLOAT8_E5M2 };
#define LT_CHOICES_format "e4m3|e5m2"
#define LT_CHOICES_format_a LT_CHOICES_format
#define LT_CHOICES_format_b LT_CHOICES_format

#define LT_CHOICES_mode "constant|reflect|replicate|circular"
enum { LT_PAD_constant, LT_PAD_reflect, LT_PAD_replicate, LT_PAD_circular };

/* Elementwise. */
#define LT_ARGS_unary(A)
#define LT_ARGS_unary_backward(A)
/* A row's own names and defaults stand in unary.def. */
#define LT_ARGS_unary_numbers(A) A(NUMBER, p, 0) A(NUMBER, q, 0)
#define LT_ARGS_unary_numbers_backward(A) LT_ARGS_unary_numbers(A)
#define LT_ARGS_clamp(A) A(SCALAR, min, LT_NONE_SCALAR) A(SCALAR, max, LT_NONE_SCALAR)
#define LT_ARGS_clamp_backward(A) LT_ARGS_clamp(A)
#define LT_ARGS_test(A)
/* The operand that is a number, if any; then the other operand is the only input. */
#define LT_ARGS_binary(A) A(SCALAR, a, LT_NONE_SCALAR) A(SCALAR, b, LT_NONE_SCALAR)
#define LT_ARGS_binary_backward(A) LT_ARGS_binary(A)
#define LT_ARGS_compare(A) LT_ARGS_binary(A)

/* Composite functions of elements. */
#define LT_ARGS_isclose(A) A(NUMBER, rtol, 1e-5) A(NUMBER, atol, 1e-8) A(FLAG, equal_nan, false)
#define LT_ARGS_nan_to_num(A) \
  A(NUMBER, nan, 0) A(SCALAR, posinf, LT_NONE_SCALAR) A(SCALAR, neginf, LT_NONE_SCALAR)
#define LT_ARGS_lerp(A)
#define LT_ARGS_addcmul(A) A(NUMBER, value, 1)
#define LT_ARGS_clamp_tensor(A)
#define LT_ARGS_masked_fill_tensor(A)
#define LT_ARGS_trunc_divide(A) LT_ARGS_binary(A)
#define LT_ARGS_prelu(A)
#define LT_ARGS_glu(A) A(DIM, dim, -1)
#define LT_ARGS_bitwise_not(A)
#define LT_ARGS_normalize(A) A(NUMBER, p, 2) A(DIM, dim, 1) A(NUMBER, eps, 1e-12)
#define LT_ARGS_cosine_similarity(A) A(DIM, dim, 1) A(NUMBER, eps, 1e-8)

/* Creation and copies. */
#define LT_MAKER_TAIL(A) A(DTYPE, dtype, LT_DTYPE_NONE) A(DEVICE, device, LT_NO_DEVICE)
#define LT_ARGS_linspace(A) \
  A(NUMBER, start, REQUIRED) A(NUMBER, stop, REQUIRED) A(INT, steps, REQUIRED) LT_MAKER_TAIL(A)
#define LT_ARGS_eye(A) A(INT, n, REQUIRED) A(INT, m, LT_NO_INDEX) LT_MAKER_TAIL(A)
#define LT_ARGS_create(A)                                                \
  A(SIZES, size, REQUIRED) A(SCALAR, fill_value, LT_NONE_SCALAR)         \
  A(DTYPE, dtype, LT_DTYPE_NONE) A(DEVICE, device, LT_NO_DEVICE)
#define LT_ARGS_cast(A) A(DTYPE, dtype, REQUIRED)
#define LT_ARGS_transfer(A) A(DEVICE, device, REQUIRED)
#define LT_ARGS_clone(A) A(FLAG, contiguous, false) /* row-major, whatever the input's strides */
#define LT_ARGS_copy(A)
#define LT_ARGS_fill(A) A(SCALAR, value, REQUIRED)
#define LT_ARGS_sum_to(A) A(SIZES, size, REQUIRED)

/* Views. as_strided takes a strided part of the input; offset and strides count elements of the
   input in row-major order. as_strided_zero returns a copy with that part set to zero,
   as_strided_backward a zero tensor with the input in that part. */
#define LT_ARGS_view(A) A(SIZES, size, REQUIRED)
#define LT_ARGS_permute(A) A(DIMS, dims, REQUIRED)
#define LT_ARGS_expand(A) A(SIZES, size, REQUIRED)
#define LT_ARGS_as_strided(A) A(SIZES, size, REQUIRED) A(SIZES, stride, REQUIRED) A(INT, offset, 0)
#define LT_ARGS_as_strided_scatter(A) LT_ARGS_as_strided(A)
#define LT_ARGS_as_strided_zero(A) LT_ARGS_as_strided(A)
#define LT_ARGS_as_strided_backward(A) A(SIZES, full, REQUIRED) LT_ARGS_as_strided(A)

/* Reductions. */
#define LT_ARGS_reduce(A) A(DIMS, dims, LT_NO_DIMS) A(FLAG, keepdim, false)
#define LT_ARGS_variance(A) LT_ARGS_reduce(A) A(NUMBER, correction, 1)
#define LT_ARGS_norm(A) A(NUMBER, p, 2) LT_ARGS_reduce(A)
#define LT_ARGS_arg_reduce(A) A(DIM, dim, LT_NO_DIM) A(FLAG, keepdim, false)
#define LT_ARGS_extremum(A) LT_ARGS_arg_reduce(A)
#define LT_ARGS_extremum_backward(A) A(DIM, dim, REQUIRED) A(INT, size, REQUIRED)
#define LT_ARGS_moments(A) LT_ARGS_variance(A)
#define LT_ARGS_aminmax(A) LT_ARGS_arg_reduce(A)
#define LT_ARGS_mode(A) A(DIM, dim, -1) A(FLAG, keepdim, false)
#define LT_ARGS_quantile(A) \
  A(DIM, dim, LT_NO_DIM) A(FLAG, keepdim, false) A(CHOICE, interpolation, LT_INTERPOLATION_linear)
#define LT_ARGS_cummax(A) A(DIM, dim, REQUIRED)
#define LT_ARGS_scan(A) A(DIM, dim, REQUIRED)
#define LT_ARGS_scan_backward(A) LT_ARGS_scan(A)

/* Norms. batch_norm uses running_mean and running_var if they are passed; it updates none, so that
   `training` goes without them and `momentum` has no effect. `fixed`: statistics that were passed,
   so that x has no gradient through them. */
#define LT_ARGS_layer_norm(A) A(SIZES, normalized_shape, REQUIRED) A(NUMBER, eps, 1e-5)
#define LT_ARGS_layer_norm_backward(A) LT_ARGS_layer_norm(A)
#define LT_ARGS_rms_norm(A) \
  A(SIZES, normalized_shape, REQUIRED) A(SCALAR, eps, LT_NONE_SCALAR) /* of the compute type */
#define LT_ARGS_rms_norm_backward(A) LT_ARGS_rms_norm(A)
#define LT_ARGS_group_norm(A) A(INT, num_groups, REQUIRED) A(NUMBER, eps, 1e-5)
#define LT_ARGS_group_norm_backward(A) LT_ARGS_group_norm(A)
#define LT_ARGS_batch_norm(A) \
  A(NUMBER, eps, 1e-5) A(FLAG, training, false) A(NUMBER, momentum, 0.1)
#define LT_ARGS_batch_norm_backward(A) LT_ARGS_batch_norm(A) A(FLAG, fixed, false)

/* Softmax and losses. */
#define LT_ARGS_softmax(A) A(DIM, dim, REQUIRED)
#define LT_ARGS_softmax_backward(A) LT_ARGS_softmax(A)
#define LT_ARGS_cross_entropy(A)                                                     \
  A(INT, ignore_index, -100) A(CHOICE, reduction, LT_REDUCTION_mean)                 \
  A(NUMBER, label_smoothing, 0)
#define LT_ARGS_cross_entropy_backward(A) LT_ARGS_cross_entropy(A)
#define LT_ARGS_nll_loss(A) \
  A(INT, ignore_index, -100) A(CHOICE, reduction, LT_REDUCTION_mean)

/* Losses; all begin with `reduction`. batchmean, the sum divided by the first size, is kl_div's. */
#define LT_ARGS_loss(A) A(CHOICE, reduction, LT_REDUCTION_mean)
#define LT_ARGS_weighted_loss(A) LT_ARGS_loss(A)
#define LT_ARGS_logits_loss(A) LT_ARGS_loss(A)
#define LT_ARGS_huber_loss(A) LT_ARGS_loss(A) A(NUMBER, delta, 1)
#define LT_ARGS_smooth_l1_loss(A) LT_ARGS_loss(A) A(NUMBER, beta, 1)
#define LT_ARGS_sigmoid_focal_loss(A) \
  A(CHOICE, reduction, LT_REDUCTION_none) A(NUMBER, alpha, 0.25) A(NUMBER, gamma, 2)
#define LT_ARGS_kl_div(A) LT_ARGS_loss(A) A(FLAG, log_target, false)
#define LT_ARGS_poisson_nll_loss(A) \
  LT_ARGS_loss(A) A(FLAG, log_input, true) A(FLAG, full, false) A(NUMBER, eps, 1e-8)
#define LT_ARGS_gaussian_nll_loss(A) LT_ARGS_loss(A) A(FLAG, full, false) A(NUMBER, eps, 1e-6)
#define LT_ARGS_dice_loss(A) LT_ARGS_loss(A) A(NUMBER, smooth, 1e-5)
#define LT_ARGS_hinge_embedding_loss(A) LT_ARGS_loss(A) A(NUMBER, margin, 1)
#define LT_ARGS_cosine_embedding_loss(A) LT_ARGS_loss(A) A(NUMBER, margin, 0)
#define LT_ARGS_margin_ranking_loss(A) LT_ARGS_loss(A) A(NUMBER, margin, 0)
#define LT_ARGS_triplet_margin_loss(A)                                            \
  LT_ARGS_loss(A) A(NUMBER, margin, 1) A(NUMBER, p, 2) A(NUMBER, eps, 1e-6)       \
  A(FLAG, swap, false)
#define LT_ARGS_multilabel_soft_margin_loss(A) LT_ARGS_loss(A)
#define LT_ARGS_multilabel_margin_loss(A) LT_ARGS_loss(A)
#define LT_ARGS_multi_margin_loss(A) LT_ARGS_loss(A) A(INT, p, 1) A(NUMBER, margin, 1)

/* Random numbers. `high` is exclusive. */
#define LT_RANDOM_TAIL(A) \
  A(DTYPE, dtype, LT_DTYPE_NONE) A(DEVICE, device, LT_NO_DEVICE) A(RNG_KEY, rng_key, LT_NO_RNG_KEY)
#define LT_ARGS_random(A) A(SIZES, size, REQUIRED) LT_RANDOM_TAIL(A)
#define LT_ARGS_random_int(A) \
  A(INT, low, REQUIRED) A(INT, high, REQUIRED) A(SIZES, size, REQUIRED) LT_RANDOM_TAIL(A)
#define LT_ARGS_permutation(A) A(INT, n, REQUIRED) LT_RANDOM_TAIL(A)
#define LT_ARGS_multinomial(A) \
  A(INT, num_samples, REQUIRED) A(FLAG, replacement, false) A(RNG_KEY, rng_key, LT_NO_RNG_KEY)
/* Limits of multinomial's error word, whose value is the row; others are num_samples. */
enum { LT_NOT_PROBABLE = 0, LT_ALL_ZERO = -1 };
#define LT_ARGS_bernoulli(A) A(RNG_KEY, rng_key, LT_NO_RNG_KEY)
#define LT_ARGS_dropout(A) \
  A(NUMBER, p, 0.5) A(FLAG, training, true) A(RNG_KEY, rng_key, LT_NO_RNG_KEY)

/* Composite views. The end of a range of positions is inclusive. */
#define LT_ARGS_transpose(A) A(DIM, dim0, REQUIRED) A(DIM, dim1, REQUIRED)
#define LT_ARGS_t(A)
#define LT_ARGS_squeeze(A) A(DIMS, dims, LT_NO_DIMS)
#define LT_ARGS_unsqueeze(A) A(DIM, dim, REQUIRED)
#define LT_ARGS_flatten(A) A(DIM, start_dim, 0) A(DIM, end_dim, -1)
#define LT_ARGS_movedim(A) A(DIMS, source, REQUIRED) A(DIMS, destination, REQUIRED)
#define LT_ARGS_flip(A) A(DIMS, dims, REQUIRED)
#define LT_ARGS_select(A) A(DIM, dim, REQUIRED) A(POS, index, REQUIRED)
#define LT_ARGS_narrow(A) A(DIM, dim, REQUIRED) A(POS, start, REQUIRED) A(INT, length, REQUIRED)
#define LT_ARGS_slice(A) A(DIM, dim, REQUIRED) A(POS, from, 0) A(POS, to, -1) A(INT, step, 1)

#define LT_ARGS_tile(A) A(SIZES, dims, REQUIRED)
#define LT_ARGS_repeat_interleave(A) A(DIM, dim, LT_NO_DIM)
#define LT_ARGS_roll(A) A(SIZES, shifts, REQUIRED) A(DIMS, dims, LT_NO_DIMS)
#define LT_ARGS_rot90(A) A(INT, k, 1) A(DIMS, dims, LT_NO_DIMS)
#define LT_ARGS_unfold(A) A(DIM, dim, REQUIRED) A(INT, size, REQUIRED) A(INT, step, REQUIRED)
#define LT_WINDOWS(A)                                                         \
  A(PAIR, kernel_size, REQUIRED) A(PAIR, dilation, LT_PAIR_OF(1))             \
  A(PAIR, padding, LT_PAIR_OF(0)) A(PAIR, stride, LT_PAIR_OF(1))
#define LT_ARGS_im2col(A) LT_WINDOWS(A)
#define LT_ARGS_col2im(A) A(PAIR, output_size, REQUIRED) LT_WINDOWS(A)
#define LT_ARGS_pad(A)                                                        \
  A(SIZES, pad, REQUIRED) A(CHOICE, mode, LT_PAD_constant)                    \
  A(SCALAR, value, LT_NONE_SCALAR)
#define LT_ARGS_diagonal(A) A(INT, offset, 0) A(DIM, dim1, 0) A(DIM, dim2, 1)
#define LT_ARGS_diag(A) A(INT, diagonal, 0)

/* Composite products. */
#define LT_ARGS_product(A)
#define LT_ARGS_cdist(A) A(NUMBER, p, 2)
#define LT_ARGS_addmm(A) A(NUMBER, beta, 1) A(NUMBER, alpha, 1)

/* Indexing. index_select_backward adds rows back to where index_select took them from; row `skip`
   gets none. index_get (x, indices...) and index_put (x, values, indices...) take one index tensor
   for each of `dims`, in ascending order; absent: the first dims. */
#define LT_NO_INDEX INT64_MIN
#define LT_ARGS_index_select(A) A(DIM, dim, REQUIRED)
#define LT_ARGS_index_select_backward(A) \
  A(DIM, dim, REQUIRED) A(INT, size, REQUIRED) A(INT, skip, LT_NO_INDEX)
#define LT_ARGS_index_add(A) A(DIM, dim, REQUIRED) A(NUMBER, alpha, 1)
#define LT_ARGS_gather(A) A(DIM, dim, REQUIRED)
#define LT_ARGS_scatter_add(A) A(DIM, dim, REQUIRED)
#define LT_ARGS_scatter(A) A(DIM, dim, REQUIRED) A(CHOICE, reduce, LT_REDUCE_none)
#define LT_ARGS_scatter_reduce(A) \
  A(DIM, dim, REQUIRED) A(CHOICE, reduce, REQUIRED) A(FLAG, include_self, true)
#define LT_ARGS_take_along_dim(A) A(DIM, dim, LT_NO_DIM)
#define LT_ARGS_masked_scatter(A)
#define LT_ARGS_unique_consecutive(A) A(FLAG, return_inverse, false) A(FLAG, return_counts, false)
#define LT_ARGS_unique(A) A(FLAG, sorted, true) LT_ARGS_unique_consecutive(A)
#define LT_ARGS_bincount(A) A(INT, minlength, 0)
#define LT_ARGS_histc(A) A(INT, bins, 100) A(NUMBER, min, 0) A(NUMBER, max, 0)
#define LT_ARGS_searchsorted(A) A(FLAG, right, false)
#define LT_ARGS_embedding(A) A(INT, padding_idx, LT_NO_INDEX)
#define LT_ARGS_embedding_bag(A) A(FLAG, mean, false) LT_ARGS_embedding(A)
#define LT_ARGS_masked_fill(A) A(SCALAR, value, REQUIRED)
#define LT_ARGS_where(A)
#define LT_ARGS_triangle(A) A(INT, diagonal, 0)
#define LT_ARGS_one_hot(A) A(INT, num_classes, -1)
#define LT_ARGS_nonzero(A)
#define LT_ARGS_mask_positions(A)
#define LT_ARGS_masked_select(A)
#define LT_ARGS_masked_put(A)
#define LT_ARGS_index_get(A) A(DIMS, dims, LT_NO_DIMS)
#define LT_ARGS_index_put(A) A(DIMS, dims, LT_NO_DIMS) A(FLAG, accumulate, false)
#define LT_ARGS_index_flatten(A) A(DIMS, dims, REQUIRED) A(SIZES, full, REQUIRED)
#define LT_ARGS_rows_put(A) A(FLAG, accumulate, false)
#define LT_ARGS_topk(A) \
  A(INT, k, REQUIRED) A(DIM, dim, -1) A(FLAG, largest, true) A(FLAG, sorted, true)
#define LT_ARGS_sort(A) A(DIM, dim, -1) A(FLAG, descending, false)
#define LT_ARGS_argsort(A) LT_ARGS_sort(A)

/* Optimizer steps. Inputs of sgd_step: parameters, gradients and, with a momentum, its buffers
   (`first`: not initialised yet); of adam_step: parameters, gradients, first and second moments,
   with `step` counting from 1 and `decoupled` weight decay for AdamW; of an update (a row of
   updates.def): parameters, gradients and `states` kinds of state. `maximize` steps along the
   gradient. With `checked` the last input
   is one number, and nothing is changed if it is not 0: so a device skips a step with gradients
   that are not finite, without the host waiting for it. The first input of grads_scale is the
   factor. clip_grad_norm with `keep_nonfinite` leaves the gradients unchanged if their norm is not
   finite, so that these gradients can be reported. */
#define LT_ARGS_sgd_step(A)                                                        \
  A(NUMBER, lr, REQUIRED) A(NUMBER, momentum, 0) A(NUMBER, dampening, 0)           \
  A(NUMBER, weight_decay, 0) A(FLAG, nesterov, false) A(FLAG, first, false)        \
  A(FLAG, maximize, false) A(FLAG, checked, false)
#define LT_ARGS_adam_step(A)                                                       \
  A(NUMBER, lr, REQUIRED) A(INT, step, REQUIRED) A(NUMBER, beta1, 0.9)             \
  A(NUMBER, beta2, 0.999) A(NUMBER, eps, 1e-8) A(NUMBER, weight_decay, 0)          \
  A(FLAG, decoupled, false) A(FLAG, maximize, false) A(FLAG, checked, false)
/* What the rows of updates.def are made of; `shrink` is a factor of the parameter, `root` of the
   root of a mean of squares. */
#define LT_UPDATE_NUMBERS(A)                                                       \
  A(NUMBER, lr, REQUIRED) A(NUMBER, weight_decay, 0) A(NUMBER, shrink, 1)          \
  A(NUMBER, momentum, 0) A(NUMBER, beta1, 0) A(NUMBER, beta2, 0) A(NUMBER, eps, 0) \
  A(NUMBER, root, 1) A(NUMBER, by_grad, 0) A(NUMBER, by_mean, 0)
#define LT_ARGS_update(A)                                                          \
  LT_UPDATE_NUMBERS(A)                                                             \
  A(INT, states, 0) A(FLAG, maximize, false) A(FLAG, checked, false)
#define LT_ARGS_grads_norm(A) A(NUMBER, p, 2)
#define LT_ARGS_grads_scale(A)
#define LT_ARGS_clip_grad_norm(A) \
  A(NUMBER, max_norm, REQUIRED) A(NUMBER, norm_type, 2) A(FLAG, error_if_nonfinite, false) \
  A(FLAG, keep_nonfinite, false)
#define LT_ARGS_clip_grad_value(A) A(NUMBER, clip_value, REQUIRED)

/* Concatenation. */
#define LT_ARGS_cat(A) A(DIM, dim, 0)
#define LT_ARGS_stack(A) A(DIM, dim, 0)

/* Matrix products. */
#define LT_ARGS_matmul(A)
#define LT_ARGS_linear(A)
#define LT_ARGS_quantize_float8(A) A(CHOICE, format, LT_FLOAT8_E4M3)
#define LT_ARGS_dequantize_float8(A) A(CHOICE, format, LT_FLOAT8_E4M3)
#define LT_ARGS_scaled_mm(A)                                                         \
  A(CHOICE, format_a, LT_FLOAT8_E4M3) A(CHOICE, format_b, LT_FLOAT8_E4M3)            \
  A(DTYPE, dtype, LT_DTYPE_NONE)

/* Convolutions of 1 to 3 dims. convolution is the kernel that they are made of. */
#define LT_ARGS_conv(A)                                                      \
  A(EACH, stride, LT_ALL_OF(1)) A(PADDING, padding, LT_ALL_OF(0))            \
  A(EACH, dilation, LT_ALL_OF(1)) A(INT, groups, 1)
#define LT_ARGS_conv_transpose(A)                                            \
  A(EACH, stride, LT_ALL_OF(1)) A(EACH, padding, LT_ALL_OF(0))               \
  A(EACH, output_padding, LT_ALL_OF(0)) A(INT, groups, 1)                    \
  A(EACH, dilation, LT_ALL_OF(1))
#define LT_ARGS_convolution(A)                                               \
  A(PAIR, stride, LT_PAIR_OF(1)) A(PAIR, padding, LT_PAIR_OF(0))             \
  A(PAIR, dilation, LT_PAIR_OF(1)) A(INT, groups, 1)
#define LT_ARGS_conv_input(A) LT_ARGS_convolution(A) A(SIZES, size, REQUIRED)
#define LT_ARGS_conv_weight(A) LT_ARGS_convolution(A) A(SIZES, size, REQUIRED)

/* Pooling; the default stride is kernel_size. max_window is the kernel of max_pool, with `out`
   windows (0: as many as fit). */
#define LT_AS_KERNEL INT64_MIN
#define LT_POOLS(A)                                                          \
  A(EACH, kernel_size, REQUIRED) A(EACH, stride, LT_ALL_OF(LT_AS_KERNEL))      \
  A(EACH, padding, LT_ALL_OF(0))
#define LT_ARGS_max_pool(A)                                                  \
  LT_POOLS(A) A(EACH, dilation, LT_ALL_OF(1)) A(FLAG, ceil_mode, false)      \
  A(FLAG, return_indices, false)
#define LT_NO_DIVISOR INT64_MIN
#define LT_ARGS_avg_pool(A)                                                  \
  LT_POOLS(A) A(FLAG, ceil_mode, false) A(FLAG, count_include_pad, true)     \
  A(INT, divisor_override, LT_NO_DIVISOR)
#define LT_ARGS_lp_pool(A)                                                   \
  A(NUMBER, norm_type, REQUIRED) A(EACH, kernel_size, REQUIRED)              \
  A(EACH, stride, LT_ALL_OF(LT_AS_KERNEL)) A(FLAG, ceil_mode, false)
#define LT_ARGS_adaptive_avg_pool(A) A(EACH, output_size, REQUIRED)
#define LT_ARGS_adaptive_max_pool(A)                                         \
  A(EACH, output_size, REQUIRED) A(FLAG, return_indices, false)
#define LT_ARGS_max_unpool(A) LT_POOLS(A) A(SIZES, output_size, LT_NO_SIZES)
#define LT_ARGS_max_window(A)                                                \
  A(PAIR, kernel_size, REQUIRED) A(PAIR, stride, LT_PAIR_OF(-1))             \
  A(PAIR, padding, LT_PAIR_OF(0)) A(PAIR, dilation, LT_PAIR_OF(1))           \
  A(PAIR, out, LT_PAIR_OF(0))
#define LT_ARGS_max_window_backward(A) LT_ARGS_max_window(A) A(SIZES, size, REQUIRED)

/* Recurrent layers. `reverse`: from the last step to the first. The nonlinearity is rnn_layer's. */
#define LT_ARGS_recurrent(A) \
  A(FLAG, reverse, false) A(CHOICE, nonlinearity, LT_NONLINEARITY_tanh)
#define LT_ARGS_recurrent_backward(A) LT_ARGS_recurrent(A)

/* Attention. The default scale is 1 / sqrt(D). The rng key is set only with dropout. The heads of q
   are number first_head and on of all_heads (0: as many as q has), which dropout numbers elements
   by. `of_mask`: also compute the gradient of the mask. */
#define LT_ARGS_attention(A)                         \
  A(FLAG, causal, false)                             \
  A(SCALAR, scale, LT_NONE_SCALAR)                   \
  A(NUMBER, dropout_p, 0) A(FLAG, enable_gqa, false) \
  A(INT, first_head, 0) A(INT, all_heads, 0) A(RNG_KEY, rng_key, LT_NO_RNG_KEY)
#define LT_ARGS_attention_backward(A) LT_ARGS_attention(A) A(FLAG, of_mask, false)

/* Linear algebra. */
#define LT_ARGS_linalg_cholesky(A)
#define LT_ARGS_linalg_det(A)
#define LT_ARGS_linalg_slogdet(A)
#define LT_ARGS_linalg_eigh(A)
#define LT_ARGS_linalg_qr(A) A(FLAG, complete, false)
#define LT_ARGS_linalg_svd(A) A(FLAG, full_matrices, true)
#define LT_ARGS_linalg_solve(A)
#define LT_ARGS_linalg_solve_triangular(A) A(FLAG, upper, REQUIRED) A(FLAG, unitriangular, false)

/* Fourier transforms; results are multiplied with `scale`. */
#define LT_ARGS_fft_complex(A) A(FLAG, inverse, false) A(NUMBER, scale, 1)
#define LT_ARGS_fft_real(A) A(NUMBER, scale, 1)
#define LT_ARGS_fft_real_inverse(A) A(INT, n, REQUIRED) A(NUMBER, scale, 1)

/* Connectionist temporal classification. */
#define LT_ARGS_ctc_loss(A) \
  A(INT, blank, 0) A(CHOICE, reduction, LT_REDUCTION_mean) A(FLAG, zero_infinity, false)
#define LT_ARGS_ctc_paths(A) A(INT, blank, 0) A(FLAG, zero_infinity, false)
#define LT_ARGS_ctc_paths_backward(A) LT_ARGS_ctc_paths(A)

/* The C structs. */
#define LT_CTYPE_INT int64_t
#define LT_CTYPE_NUMBER double
#define LT_CTYPE_FLAG bool
#define LT_CTYPE_DIM int64_t
#define LT_CTYPE_DIMS lt_dims
#define LT_CTYPE_POS int64_t
#define LT_CTYPE_SIZES lt_sizes
#define LT_CTYPE_PAIR lt_pair
#define LT_CTYPE_EACH lt_sizes
#define LT_CTYPE_PADDING lt_sizes
#define LT_CTYPE_SCALAR lt_scalar
#define LT_CTYPE_DTYPE lt_dtype
#define LT_CTYPE_DEVICE lt_device
#define LT_CTYPE_CHOICE int64_t
#define LT_CTYPE_RNG_KEY lt_rng_key
#define LT_ARG_FIELD(type, name, default_value) LT_CTYPE_##type name;

#define LT_KIND(name, ...)                                        \
  typedef struct lt_args_##name {                                 \
    LT_ARGS_##name(LT_ARG_FIELD) char end_of_args;                \
  } lt_args_##name;
#include "ops/kinds.def"
#undef LT_ARG_FIELD

#endif
