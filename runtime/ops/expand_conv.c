/* runtime/ops/expand_conv.c: convolutions of 1 to 3 dims, made of one of images.

   One of sequences has a height of 1. One of volumes is one of images too: each takes KD slices of
   depth as so many channels, and a weight [O, C / G, KD, KH, KW] is then [O, KD C / G, KH, KW]. A
   transposed convolution is the gradient of a convolution by its input.
   N batch, C channels, G groups, D depth, H height, W width.

   Transposed convolution: M. Zeiler and others, Deconvolutional Networks, 2010; V. Dumoulin and
   F. Visin, A Guide to Convolution Arithmetic for Deep Learning, 2016, has the sizes. */
#include <string.h>

#include "ops/expand.h"
#include "ops/spatial.h"

/* lt_permute that passes NULL on, for chains that are checked once at their end. */
static lt_tensor *permuted(lt_ctx *c, lt_tensor *x, const int *dims) {
  return x == NULL ? NULL : lt_permute(c, x, dims);
}

/* `before` and `after` zeros around a dim. */
static lt_tensor *padded(lt_ctx *c, lt_tensor *x, int dim, int64_t before, int64_t after) {
  if (x == NULL || (before == 0 && after == 0)) return x;
  lt_args_pad a = {.pad = {.n = 2 * (x->ndim - dim)}};
  a.pad.size[a.pad.n - 2] = before, a.pad.size[a.pad.n - 1] = after;
  return lt_apply1(c, LT_OP_pad, 1, &x, &a);
}

/* PyTorch's "same": dilation (kernel - 1) zeros in all, the odd one at the end. A convolution pads
   both ends alike, so this one zero is added to x beforehand, at the cost of a copy; odd kernels,
   the usual ones, need none. */
static bool same(lt_ctx *c, const lt_call *call, int n, lt_tensor **out) {
  lt_args_conv a = *(const lt_args_conv *)call->args;
  lt_tensor *x = call->in[0], *w = call->in[1], *bias = call->n_in > 2 ? call->in[2] : NULL;
  for (int k = a.padding.n = 0; k < n; k++) {
    int64_t all = a.dilation.size[k] * (w->size[k + 2] - 1);
    a.padding.size[a.padding.n++] = all / 2;
    x = padded(c, x, k + 2, 0, all % 2);
  }
  return lt_apply(c, (lt_op)call->op, LT_IN(x, w, bias), &a, 1, out);
}

/* [N, C, D, H, W] as [N D', G KD C / G, H, W] of D' windows: in planes, which are copied whole, or,
   of so many channels that a copy of those beside each other is as quick, channels last. KD times
   the memory of x is the price of the form. */
static lt_tensor *slices(lt_ctx *c, lt_tensor *x, int64_t kernel, const lt_args_conv *a) {
  static const int depth_first[] = {0, 2, 1, 3, 4}, planes[] = {0, 1, 3, 2, 4, 5, 6};
  static const int last[] = {0, 2, 3, 4, 1}, inside[] = {0, 1, 3, 4, 5, 2, 6};
  static const int first[] = {0, 3, 1, 2};
  const int64_t *s = x->size, stride = a->stride.size[0], pad = a->padding.size[0];
  int64_t n = lt_window_count(s[2], kernel, stride, pad, a->dilation.size[0], false);
  int64_t groups = a->groups, per = s[1] / groups;
  bool few = per < (kernel > 1 ? 64 : 16);
  lt_device device = x->storage->device;
  x = padded(c, permuted(c, x, few ? depth_first : last), 1, pad, pad);
  if (kernel > 1 || stride > 1)
    x = lt_taken(c, x, 1, lt_flat(c, lt_window_places(c, n, stride, kernel, a->dilation.size[0],
                                                      device)));
  if (few) {
    x = lt_reshape(c, x, (lt_shape){7, {s[0], n, kernel, groups, per, s[3], s[4]}});
    return lt_reshape(c, permuted(c, x, planes),
                      (lt_shape){4, {s[0] * n, s[1] * kernel, s[3], s[4]}});
  }
  x = lt_reshape(c, x, (lt_shape){7, {s[0], n, kernel, s[3], s[4], groups, per}});
  x = lt_reshape(c, permuted(c, x, inside), (lt_shape){4, {s[0] * n, s[3], s[4], s[1] * kernel}});
  return permuted(c, x, first);
}

/* [O, C / G, KD, KH, KW] as [O, KD C / G, KH, KW] */
static lt_tensor *slice_weight(lt_ctx *c, lt_tensor *w) {
  static const int depth_first[] = {0, 2, 1, 3, 4};
  const int64_t *s = w->size;
  return lt_reshape(c, permuted(c, w, depth_first),
                    (lt_shape){4, {s[0], s[1] * s[2], s[3], s[4]}});
}

/* Whether each channel has a filter of its own, and that has a depth. Not of 16-bit dtypes: the
   partial sums over depth below would be rounded to 8 or 11 bits after each term, where one kernel
   sums in f32. */
static bool is_depthwise(const lt_tensor *x, const lt_tensor *w, const lt_args_conv *a) {
  return a->groups > 1 && w->size[0] == a->groups && w->size[1] == 1 && w->size[2] > 1 &&
         lt_item_size(x) > 2;
}

/* x [N, C, D, H, W] as [D, N, H, W, C], with zeros before and behind. */
static lt_tensor *by_depth(lt_ctx *c, lt_tensor *x, int64_t padding) {
  static const int dims[] = {2, 0, 3, 4, 1};
  x = permuted(c, x, dims);
  if (x == NULL) return NULL;
  if (padding == 0) return lt_contiguous(c, x);
  lt_shape s = lt_tensor_shape(x);
  s.size[0] = padding;
  lt_tensor *zeros = lt_full(c, s, lt_scalar_int(0), (lt_dtype)x->dtype, x->storage->device);
  return lt_apply1(c, LT_OP_cat, LT_IN(zeros, x, zeros), &(lt_args_cat){.dim = 0});
}

/* Slices of depth as so many channels would be groups of KD, for which libraries are slow: so one
   convolution of images for each k of the depth, and their sum, KD passes over y in f32 or f64. The
   bias goes with the first, so that it is added once. */
static bool depthwise(lt_ctx *c, lt_tensor *x, lt_tensor *w, lt_tensor *bias, const lt_args_conv *a,
                      const lt_args_convolution *of, lt_tensor **out) {
  static const int channels[] = {0, 3, 1, 2}, back[] = {1, 2, 0, 3, 4};
  lt_shape from = lt_tensor_shape(x);
  int64_t stride = a->stride.size[0], dilation = a->dilation.size[0], pad = a->padding.size[0];
  int64_t n = lt_window_count(from.size[2], w->size[2], stride, pad, dilation, false);
  lt_shape image = {4, {n * from.size[0], from.size[3], from.size[4], from.size[1]}};
  lt_tensor *all = by_depth(c, x, pad), *y = NULL;
  for (int64_t k = 0; k < w->size[2] && lt_ok(c); k++) {
    lt_tensor *part = lt_reshape(c, lt_slice(c, all, 0, k * dilation, n, stride), image);
    lt_tensor *z = lt_apply1(c, LT_OP_convolution,
                             LT_IN(permuted(c, part, channels), lt_select(c, w, 2, k),
                                   k == 0 ? bias : NULL),
                             of);
    y = k == 0 ? z : lt_add(c, y, z);
  }
  if (!lt_ok(c)) return false;
  lt_shape to = {5, {n, from.size[0], y->size[1], y->size[2], y->size[3]}};
  *out = permuted(c, lt_reshape(c, y, to), back);
  return *out != NULL;
}

/* The common path: [N, C, D, H, W] becomes images, the convolution of images runs, and the result
   is viewed back. Errors have been reported by infer_conv.c: shapes fit here. */
static bool convolve(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  static const int channels_first[] = {0, 2, 1, 3, 4};
  const lt_args_conv *a = call->args;
  int n = lt_spatial_dims(&lt_ops[call->op]);
  if (lt_spatial_unbatched(c, call, out)) return lt_ok(c);
  if (a->padding.n == LT_SAME) return same(c, call, n, out);
  lt_tensor *x = call->in[0], *w = call->in[1], *bias = call->n_in > 2 ? call->in[2] : NULL;
  int64_t images = x->size[0];
  const lt_args_convolution of = {.stride = lt_image_pair(&a->stride, 1),
                                  .padding = lt_image_pair(&a->padding, 0),
                                  .dilation = lt_image_pair(&a->dilation, 1),
                                  .groups = a->groups};
  if (n == 3 && is_depthwise(x, w, a)) return depthwise(c, x, w, bias, a, &of, out);
  x = n == 3 ? slices(c, x, w->size[2], a) : lt_as_image(c, x);
  w = n == 3 ? slice_weight(c, w) : lt_as_image(c, w);
  lt_tensor *y = lt_apply1(c, LT_OP_convolution, LT_IN(x, w, bias), &of);
  if (y == NULL) return false;
  const int64_t *s = y->size;
  if (n == 1) y = lt_reshape(c, y, (lt_shape){3, {s[0], s[1], s[3]}});
  if (n == 3) {
    int64_t depth = lt_window_count(call->in[0]->size[2], call->in[1]->size[2], a->stride.size[0],
                                    a->padding.size[0], a->dilation.size[0], false);
    y = lt_reshape(c, y, (lt_shape){5, {images, depth, s[1], s[2], s[3]}});
    y = permuted(c, y, channels_first);
  }
  *out = y;
  return y != NULL;
}

bool lt_expand_conv1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return convolve(c, call, out);
}
bool lt_expand_conv2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return convolve(c, call, out);
}
bool lt_expand_conv3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return convolve(c, call, out);
}

/* Transposed. */

/* The size of what comes out of n elements of a dim. */
static int64_t made_of(int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                       int64_t more) {
  return (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 + more;
}

/* x [N, C, H, W] to [N, channels, H', W']. As many zeros behind x as output_padding has strides
   let the convolution that this is the gradient of have windows for all of x. */
static lt_tensor *transposed(lt_ctx *c, lt_tensor *x, lt_tensor *w,
                             const lt_args_conv_transpose *a) {
  if (x == NULL || w == NULL) return NULL;
  lt_pair stride = lt_image_pair(&a->stride, 1), padding = lt_image_pair(&a->padding, 0);
  lt_pair dilation = lt_image_pair(&a->dilation, 1), more = lt_image_pair(&a->output_padding, 0);
  const lt_args_conv_input of = {
      .stride = stride, .padding = padding, .dilation = dilation, .groups = a->groups,
      .size = {4, {x->size[0], w->size[1] * a->groups,
                   made_of(x->size[2], w->size[2], stride.h, padding.h, dilation.h, more.h),
                   made_of(x->size[3], w->size[3], stride.w, padding.w, dilation.w, more.w)}}};
  x = padded(c, padded(c, x, 2, 0, more.h / stride.h), 3, 0, more.w / stride.w);
  return lt_apply1(c, LT_OP_convolution_backward_input, LT_IN(x, w), &of);
}

/* Each slice of depth gives KD slices, which are added up where they overlap: the two-dimensional
   part is one transposed convolution with KD times the channels, the sum along depth is the
   gradient of taking slices, index_select_backward, in a fixed order. Padding then cuts slices away
   at both ends; output_padding may ask for more at the end than any window reaches: those stay 0
   (and get the bias). */
static lt_tensor *transposed_volumes(lt_ctx *c, lt_tensor *x, lt_tensor *w,
                                     const lt_args_conv_transpose *a) {
  static const int depth_first[] = {0, 2, 1, 3, 4}, inside[] = {0, 1, 3, 2, 4, 5, 6};
  const int64_t *s = x->size, kernel = w->size[2], per = w->size[1], g = a->groups;
  int64_t stride = a->stride.size[0], dilation = a->dilation.size[0], pad = a->padding.size[0];
  int64_t all = (s[2] - 1) * stride + dilation * (kernel - 1) + 1;
  int64_t depth = all - 2 * pad + a->output_padding.size[0];
  lt_device device = x->storage->device;
  x = lt_reshape(c, permuted(c, x, depth_first), (lt_shape){4, {s[0] * s[2], s[1], s[3], s[4]}});
  lt_tensor *y = transposed(c, x, slice_weight(c, w), a);
  if (y == NULL) return NULL;
  int64_t h = y->size[2], width = y->size[3];
  y = lt_reshape(c, y, (lt_shape){7, {s[0], s[2], g, kernel, per, h, width}});
  y = lt_reshape(c, permuted(c, y, inside), (lt_shape){5, {s[0], s[2] * kernel, g * per, h,
                                                           width}});
  lt_tensor *at = lt_flat(c, lt_window_places(c, s[2], stride, kernel, dilation, device));
  const lt_args_index_select_backward add = {
      .dim = 1, .size = all > pad + depth ? all : pad + depth, .skip = LT_NO_INDEX};
  y = lt_apply1(c, LT_OP_index_select_backward, LT_IN(y, at), &add);
  if (y != NULL && y->size[1] != depth) y = lt_slice(c, y, 1, pad, depth, 1);
  return permuted(c, y, depth_first);
}

/* The bias is added here, by a broadcast: convolution_backward_input has none. */
static bool transpose(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_conv_transpose *a = call->args;
  int n = lt_spatial_dims(&lt_ops[call->op]);
  if (lt_spatial_unbatched(c, call, out)) return lt_ok(c);
  lt_tensor *x = call->in[0], *w = call->in[1], *bias = call->n_in > 2 ? call->in[2] : NULL;
  lt_tensor *y = n == 3 ? transposed_volumes(c, x, w, a)
                        : transposed(c, lt_as_image(c, x), lt_as_image(c, w), a);
  if (y != NULL && n == 1)
    y = lt_reshape(c, y, (lt_shape){3, {y->size[0], y->size[1], y->size[3]}});
  if (y != NULL && bias != NULL) {
    lt_shape s = {.ndim = n + 1, .size = {bias->size[0], 1, 1, 1}};
    y = lt_add(c, y, lt_reshape(c, bias, s));
  }
  *out = y;
  return y != NULL;
}

bool lt_expand_conv_transpose1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return transpose(c, call, out);
}
bool lt_expand_conv_transpose2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return transpose(c, call, out);
}
bool lt_expand_conv_transpose3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return transpose(c, call, out);
}
