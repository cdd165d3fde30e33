/* runtime/ops/expand_avg_pool.c: means of windows of 1 to 3 dims, and of parts.

   A mean of windows is a convolution of each channel with equal weights; one of volumes goes plane
   by plane, then along depth. N batch, C channels.

   The convolution has groups = C and one filter for each channel, so that its kernels (and their
   gradients) serve pooling too: a window's sum is a product with 1 / elements. Windows that are cut
   off by the border divide by fewer elements; they are corrected afterwards by one factor for each
   window, which is a product of one factor a dim. */
#include "ops/expand.h"
#include "ops/spatial.h"

/* The sums of the windows of an image times `scale`; windows may reach beyond its end. */
static lt_tensor *sums(lt_ctx *c, lt_tensor *x, lt_pair kernel, lt_pair stride, lt_pair padding,
                       bool ceil, double scale) {
  if (x == NULL || (kernel.h * kernel.w == 1 && stride.h * stride.w == 1))
    return lt_scaled(c, x, scale);
  int64_t rows = lt_window_count(x->size[2], kernel.h, stride.h, padding.h, 1, ceil);
  int64_t columns = lt_window_count(x->size[3], kernel.w, stride.w, padding.w, 1, ceil);
  lt_pair more = {(rows - 1) * stride.h + kernel.h - x->size[2] - 2 * padding.h,
                  (columns - 1) * stride.w + kernel.w - x->size[3] - 2 * padding.w};
  lt_shape s = {4, {x->size[1], 1, kernel.h, kernel.w}};
  lt_tensor *w = lt_full(c, s, lt_scalar_of(scale), (lt_dtype)x->dtype, x->storage->device);
  lt_args_pad a = {.pad = {4, {0, more.w > 0 ? more.w : 0, 0, more.h > 0 ? more.h : 0}}};
  const lt_args_convolution of = {.stride = stride, .padding = padding, .dilation = {1, 1},
                                  .groups = x->size[1]};
  if (more.h > 0 || more.w > 0) x = lt_apply1(c, LT_OP_pad, 1, &x, &a);
  return lt_apply1(c, LT_OP_convolution, LT_IN(x, w, NULL), &of);
}

/* [N, C, D, H, W]: a sum over a box is a sum over its planes, then over depth; KH KW + KD products
   an element instead of KD KH KW, and no three-dimensional kernel is needed. `scale` goes into the
   first step; the second adds with weight 1. */
static lt_tensor *of_volumes(lt_ctx *c, lt_tensor *x, const lt_args_avg_pool *a, double scale) {
  lt_tensor *y = sums(c, lt_planes(c, x), lt_image_pair(&a->kernel_size, 1),
                      lt_image_pair(&a->stride, 1), lt_image_pair(&a->padding, 0), a->ceil_mode,
                      scale);
  y = lt_volumes(c, y, x);
  if (y == NULL) return NULL;
  const int64_t *s = x->size, h = y->size[3], w = y->size[4];
  y = lt_reshape(c, y, (lt_shape){4, {s[0], s[1], s[2], h * w}});
  y = sums(c, y, (lt_pair){a->kernel_size.size[0], 1}, (lt_pair){a->stride.size[0], 1},
           (lt_pair){a->padding.size[0], 0}, a->ceil_mode, 1);
  return y == NULL ? NULL : lt_reshape(c, y, (lt_shape){5, {s[0], s[1], y->size[2], h, w}});
}

/* The scaled sums of windows of x of 3 to 5 dims; a sequence [N, C, L] is an image of height 1. */
static lt_tensor *of_windows(lt_ctx *c, lt_tensor *x, const lt_args_avg_pool *a, double scale) {
  if (x->ndim == 5) return of_volumes(c, x, a, scale);
  lt_tensor *y = sums(c, lt_as_image(c, x), lt_image_pair(&a->kernel_size, 1),
                      lt_image_pair(&a->stride, 1), lt_image_pair(&a->padding, 0), a->ceil_mode,
                      scale);
  if (y == NULL || x->ndim == 4) return y;
  return lt_reshape(c, y, (lt_shape){3, {y->size[0], y->size[1], y->size[3]}});
}

/* The size of a window of dim k over how much of it counts, as [windows]: NULL where all of each
   does. With count_include_pad the padding counts as elements, but what ceil_mode adds beyond it
   never does: PyTorch's rule, whose windows end at size + padding at most. Windows that lie wholly
   inside need no correction, which is the usual case: NULL. */
static lt_tensor *share(lt_ctx *c, const lt_tensor *x, const lt_args_avg_pool *a, int k) {
  int64_t size = x->size[k + 2], kernel = a->kernel_size.size[k], stride = a->stride.size[k];
  int64_t pad = a->padding.size[k];
  int64_t n = lt_window_count(size, kernel, stride, pad, 1, a->ceil_mode);
  int64_t edge = a->count_include_pad ? pad : 0;
  if ((n - 1) * stride + kernel <= size + pad + edge && pad == edge) return NULL;
  lt_tensor *from = lt_binary_scalar(c, LT_OP_mul, lt_counting(c, n, x->storage->device),
                                     lt_scalar_int(stride));
  from = lt_binary_scalar(c, LT_OP_sub, from, lt_scalar_int(pad));
  lt_tensor *to = lt_binary_scalar(c, LT_OP_add, from, lt_scalar_int(kernel));
  from = lt_apply1(c, LT_OP_clamp, 1, &from, &(lt_args_clamp){.min = lt_scalar_int(-edge)});
  to = lt_apply1(c, LT_OP_clamp, 1, &to, &(lt_args_clamp){.max = lt_scalar_int(size + edge)});
  lt_tensor *counts = lt_cast(c, lt_sub(c, to, from), (lt_dtype)x->dtype);
  return lt_scaled(c, lt_unary(c, LT_OP_reciprocal, counts), (double)kernel);
}

/* The mean over all places: a reduction, which reads x once, in place of a convolution with a
   filter as large as the image. */
static lt_tensor *over_all(lt_ctx *c, lt_tensor *x) {
  lt_args_reduce all = {.keepdim = true};
  for (int d = 2; d < x->ndim; d++) all.dims.dim[all.dims.n++] = d;
  return lt_apply1(c, LT_OP_mean, 1, &x, &all);
}

/* Three ways: the mean over everything, windows that are all full, and windows with corrections,
   whose factor broadcasts as [.., 1, 1] along the dims after its own. */
static bool avg_pool(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_avg_pool *a = call->args;
  if (lt_spatial_unbatched(c, call, out)) return lt_ok(c);
  lt_tensor *x = call->in[0], *shares = NULL;
  bool over = a->divisor_override != LT_NO_DIVISOR, whole = !over;
  double elements = 1;
  for (int k = 0; k < a->kernel_size.n; k++) {
    elements *= (double)a->kernel_size.size[k];
    whole = whole && a->kernel_size.size[k] == x->size[k + 2] && a->padding.size[k] == 0 &&
            lt_window_count(x->size[k + 2], x->size[k + 2], a->stride.size[k], 0, 1,
                            a->ceil_mode) == 1;
  }
  if (whole) return (*out = over_all(c, x)) != NULL;
  lt_tensor *y = of_windows(c, x, a, 1 / (over ? (double)a->divisor_override : elements));
  for (int k = 0; k < a->kernel_size.n && !over && y != NULL; k++) {
    lt_tensor *one = share(c, x, a, k);
    lt_shape s = {.ndim = a->kernel_size.n - k, .size = {y->size[k + 2], 1, 1}};
    if (one != NULL) one = lt_reshape(c, one, s);
    shares = shares == NULL || one == NULL ? (one == NULL ? shares : one) : lt_mul(c, shares, one);
  }
  *out = shares == NULL ? y : lt_mul(c, y, shares);
  return *out != NULL && lt_ok(c);
}

bool lt_expand_avg_pool1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return avg_pool(c, call, out);
}
bool lt_expand_avg_pool2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return avg_pool(c, call, out);
}
bool lt_expand_avg_pool3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return avg_pool(c, call, out);
}

/* [parts, n]: row p has 1 / length at the elements of part p and 0 elsewhere, so that its product
   with a dim of n elements gives the means. PyTorch's parts: from floor(p n / parts) to ceil((p +
   1) n / parts), which overlap where parts does not divide n. */
static lt_tensor *shares_of_parts(lt_ctx *c, int64_t n, int64_t parts, lt_dtype dtype,
                                  lt_device device) {
  lt_tensor *from, *to, *k = lt_counting(c, n, device);
  lt_part_bounds(c, n, parts, device, &from, &to);
  lt_tensor *in = lt_binary(c, LT_OP_logical_and, lt_binary(c, LT_OP_ge, k, from),
                            lt_binary(c, LT_OP_lt, k, to));
  return lt_binary(c, LT_OP_div, lt_cast(c, in, dtype), lt_cast(c, lt_sub(c, to, from), dtype));
}

/* Equal parts are windows. Others are products with their shares, dim by dim. The matrices are
   separable: a dim at a time costs n parts products for each line, which for the usual output sizes
   (7 x 7 and less) is little beside the convolutions before it. The last dim is a linear layer as
   it is; others are moved to the middle of [outer, n, inner]. */
static bool adaptive(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_adaptive_avg_pool *a = call->args;
  if (lt_spatial_unbatched(c, call, out)) return lt_ok(c);
  lt_tensor *x = call->in[0];
  bool equal = true, one = true;
  int n = a->output_size.n;
  lt_args_avg_pool w = {.kernel_size = {.n = n}, .padding = {.n = n}};
  double elements = 1;
  for (int k = 0; k < n; k++) {
    int64_t parts = a->output_size.size[k], size = x->size[k + 2];
    one = one && parts == 1;
    equal = equal && parts > 0 && size % parts == 0;
    w.kernel_size.size[k] = equal ? size / parts : 1;
    elements *= (double)w.kernel_size.size[k];
  }
  w.stride = w.kernel_size;
  if (one) return (*out = over_all(c, x)) != NULL;
  if (equal) return (*out = of_windows(c, x, &w, 1 / elements)) != NULL;
  lt_shape s = lt_tensor_shape(x);
  bool autocast = c->modes.autocast; /* the shares are in x's dtype, and so is the result */
  c->modes.autocast = false;
  for (int k = n - 1; k >= 0 && x != NULL; k--) {
    int64_t size = s.size[k + 2], parts = a->output_size.size[k], inner = 1;
    lt_tensor *shares = shares_of_parts(c, size, parts, (lt_dtype)x->dtype, x->storage->device);
    for (int d = k + 3; d < s.ndim; d++) inner *= s.size[d];
    s.size[k + 2] = parts;
    if (inner == 1 && k == n - 1) {
      x = lt_apply1(c, LT_OP_linear, LT_IN(x, shares, NULL), NULL);
      continue;
    }
    int64_t outer = 1;
    for (int d = 0; d < k + 2; d++) outer *= s.size[d];
    x = lt_reshape(c, x, (lt_shape){3, {outer, size, inner}});
    x = lt_reshape(c, lt_apply1(c, LT_OP_matmul, LT_IN(shares, x), NULL), s);
  }
  c->modes.autocast = autocast;
  *out = x;
  return x != NULL;
}

bool lt_expand_adaptive_avg_pool1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return adaptive(c, call, out);
}
bool lt_expand_adaptive_avg_pool2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return adaptive(c, call, out);
}
bool lt_expand_adaptive_avg_pool3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return adaptive(c, call, out);
}

/* (sum of x^p over a window)^(1 / p), as the mean times the number of elements. PyTorch takes
   x^p, not |x|^p: a negative sum of odd powers has no root and gives NaN, as there. */
static bool lp_pool(lt_ctx *c, const lt_call *call, lt_op avg, lt_tensor **out) {
  const lt_args_lp_pool *a = call->args;
  const lt_args_avg_pool of = {.kernel_size = a->kernel_size, .stride = a->stride,
                               .padding = LT_ALL_OF(0), .ceil_mode = a->ceil_mode,
                               .count_include_pad = true, .divisor_override = LT_NO_DIVISOR};
  double elements = 1;
  for (int k = 0; k < a->kernel_size.n; k++) elements *= (double)a->kernel_size.size[k];
  lt_tensor *y = lt_binary_scalar(c, LT_OP_pow, call->in[0], lt_scalar_of(a->norm_type));
  y = lt_scaled(c, lt_apply1(c, avg, 1, &y, &of), elements);
  *out = lt_binary_scalar(c, LT_OP_pow, y, lt_scalar_of(1 / a->norm_type));
  return *out != NULL;
}

bool lt_expand_lp_pool1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return lp_pool(c, call, LT_OP_avg_pool1d, out);
}
bool lt_expand_lp_pool2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return lp_pool(c, call, LT_OP_avg_pool2d, out);
}
bool lt_expand_lp_pool3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return lp_pool(c, call, LT_OP_avg_pool3d, out);
}
