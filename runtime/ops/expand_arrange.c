/* runtime/ops/expand_arrange.c: composite ops that repeat, move or cut out elements. */
#include "ops/expand.h"

/* x as [what is before a dim, n, what is after it]. */
static lt_shape around(const lt_tensor *x, int64_t dim, int64_t n) {
  lt_shape s = {.ndim = 3, .size = {1, n, 1}};
  for (int k = 0; k < x->ndim; k++)
    if (k != dim) s.size[k < dim ? 0 : 2] *= x->size[k];
  return s;
}

/* Each element of a dim n times (a a b b), or (`whole`) the dim as a whole n times (a b a b): a dim
   of size 1 is inserted after or before it, expanded to n without memory, and joined with it, which
   makes the one copy. The gradient is then a sum over the expanded dim. */
static lt_tensor *repeated(lt_ctx *c, lt_tensor *x, int64_t dim, int64_t n, bool whole) {
  if (x == NULL || n == 1) return x;
  lt_shape to = lt_tensor_shape(x), part = around(x, dim, x->size[dim]), all;
  if (__builtin_mul_overflow(to.size[dim], n, &to.size[dim])) {
    lt_fail(c, LT_ESHAPE, "dim %lld of shape %s, %lld times, has more elements than can be counted",
            (long long)dim + 1, LT_TENSOR_STR(x), (long long)n);
    return NULL;
  }
  part = (lt_shape){.ndim = 4, .size = {part.size[0], whole ? 1 : part.size[1],
                                        whole ? part.size[1] : 1, part.size[2]}};
  all = part;
  all.size[whole ? 1 : 2] = n;
  return lt_reshape(c, lt_expand_to(c, lt_reshape(c, x, part), all), to);
}

/* PyTorch's tile and Tensor.repeat: counts align with the last dims, missing ones of x are 1. The
   clone is for the case that all counts are 1, where the result must not share x's memory. */
bool lt_expand_tile(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_tile *a = call->args;
  lt_tensor *x = call->in[0];
  lt_shape s = {.ndim = x->ndim > a->dims.n ? x->ndim : a->dims.n};
  for (int k = 0; k < s.ndim; k++)
    s.size[k] = k < s.ndim - x->ndim ? 1 : x->size[k - (s.ndim - x->ndim)];
  x = lt_unary(c, LT_OP_clone, lt_reshape(c, x, s));
  for (int k = 0; k < a->dims.n; k++)
    x = repeated(c, x, s.ndim - a->dims.n + k, a->dims.size[k], true);
  *out = x;
  return x != NULL;
}

/* One count for all, or one for each position: then which position each result comes from is how
   many running counts it has passed. The sum of the counts is the size of the result, so the host
   waits for it. */
bool lt_expand_repeat_interleave(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_repeat_interleave *a = call->args;
  int64_t dim = a->dim == LT_NO_DIM ? 0 : a->dim;
  lt_tensor *x = a->dim == LT_NO_DIM ? lt_flat(c, call->in[0]) : call->in[0];
  lt_tensor *counts = call->in[1];
  lt_scalar n = {0}, least = {0};
  if (x == NULL) return false;
  if (counts->numel == 1) {
    if (!lt_item(c, counts, &n)) return false;
    if (n.i < 0) return lt_fail(c, LT_EARG, "repeat_interleave: %lld times", (long long)n.i);
    *out = repeated(c, x, dim, n.i, false);
    return *out != NULL;
  }
  if (counts->ndim != 1 || counts->numel != x->size[dim])
    return lt_fail(c, LT_ESHAPE, "repeat_interleave: counts of %s for dim %lld of %s",
                   LT_TENSOR_STR(counts), (long long)dim + 1, LT_TENSOR_STR(x));
  if (counts->numel > 0 && (!lt_item(c, lt_unary(c, LT_OP_sum, counts), &n) ||
                            !lt_item(c, lt_unary(c, LT_OP_amin, counts), &least)))
    return false;
  if (least.i < 0) return lt_fail(c, LT_EARG, "repeat_interleave: %lld times", (long long)least.i);
  lt_tensor *ends = lt_apply1(c, LT_OP_cumsum, 1, &counts, &(lt_args_scan){.dim = 0});
  lt_tensor *place = lt_counting(c, n.i, counts->storage->device);
  place = lt_apply1(c, LT_OP_searchsorted, LT_IN(ends, place),
                    &(lt_args_searchsorted){.right = true});
  *out = lt_taken(c, x, dim, place);
  return *out != NULL;
}

/* Each shift is one cat of two slices, the last `by` elements before the rest; without dims the
   flattened tensor is rolled. Shifts are reduced modulo the size first, C's % being negative for
   negative ones. */
bool lt_expand_roll(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_roll *a = call->args;
  lt_tensor *x = call->in[0];
  bool flat = a->dims.n <= 0;
  if (x->ndim == 0 || x->numel == 0) return (*out = lt_unary(c, LT_OP_clone, x)) != NULL;
  if (flat) x = lt_flat(c, x);
  for (int k = 0; k < a->shifts.n && x != NULL; k++) {
    int dim = flat ? 0 : (int)a->dims.dim[k];
    int64_t n = x->size[dim], by = (a->shifts.size[k] % n + n) % n;
    if (by != 0)
      x = lt_joined(c, lt_slice(c, x, dim, n - by, by, 1), lt_slice(c, x, dim, 0, n - by, 1), dim);
  }
  if (x != NULL && flat) x = lt_reshape(c, x, lt_tensor_shape(call->in[0]));
  *out = lt_unary(c, LT_OP_clone, x);
  return *out != NULL;
}

static lt_tensor *flipped(lt_ctx *c, lt_tensor *x, int64_t dim) {
  return lt_apply1(c, LT_OP_flip, 1, &x, &(lt_args_flip){.dims = LT_ONE_DIM(dim)});
}

/* k quarter turns from dim `from` toward dim `to` (k mod 4): a transpose and one flip, a half turn
   is two flips. The order of flip and transpose fixes the direction: flip(to) before it turns by
   +90 degrees, flip(from) by -90. */
bool lt_expand_rot90(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_rot90 *a = call->args;
  int from = (int)a->dims.dim[0], to = (int)a->dims.dim[1], k = (int)(a->k % 4 + 4) % 4;
  lt_tensor *x = call->in[0];
  if (k == 1 || k == 2) x = flipped(c, x, to);
  if (k == 2 || k == 3) x = flipped(c, x, from);
  if (k % 2 == 1 && x != NULL) x = lt_transpose(c, x, from, to);
  *out = k == 0 ? lt_unary(c, LT_OP_clone, x) : x;
  return *out != NULL;
}

/* Windows of a dim, which become a last one of `size`. PyTorch returns a view with overlapping
   strides; here it is a copy, index_select of all positions, since a view whose elements overlap
   could not be written in place (inplace.c). */
bool lt_expand_unfold(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_unfold *a = call->args;
  lt_tensor *x = call->in[0];
  if (x->ndim == 0) x = lt_flat(c, x);
  if (x == NULL) return false;
  lt_device device = x->storage->device;
  int64_t n = (x->size[a->dim] - a->size) / a->step + 1;
  lt_tensor *from = lt_reshape(c, lt_counting(c, n, device), (lt_shape){2, {n, 1}});
  from = lt_binary_scalar(c, LT_OP_mul, from, lt_scalar_int(a->step));
  lt_tensor *index = lt_flat(c, lt_binary(c, LT_OP_add, from, lt_counting(c, a->size, device)));
  lt_shape s = lt_tensor_shape(x);
  for (int k = s.ndim++; k > a->dim + 1; k--) s.size[k] = s.size[k - 1];
  s.size[a->dim] = n, s.size[a->dim + 1] = a->size;
  lt_tensor *y = lt_reshape(c, lt_taken(c, x, a->dim, index), s);
  const lt_args_movedim last = {.source = LT_ONE_DIM(a->dim + 1), .destination = LT_ONE_DIM(-1)};
  *out = call->in[0]->ndim == 0 ? lt_flat(c, y) : lt_apply1(c, LT_OP_movedim, 1, &y, &last);
  return *out != NULL;
}

/* A dim of an image: how many windows of `kernel` there are, PyTorch's floor((size + 2 padding -
   dilation (kernel - 1) - 1) / stride + 1). infer_arrange.c has checked that it is positive. */
static int64_t windows(int64_t size, int64_t kernel, int64_t dilation, int64_t padding,
                       int64_t stride) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

/* [kernel, n]: the positions in a padded dim of which window n is made. */
static lt_tensor *positions(lt_ctx *c, int64_t kernel, int64_t n, int64_t dilation, int64_t stride,
                            lt_device device) {
  lt_tensor *k = lt_reshape(c, lt_counting(c, kernel, device), (lt_shape){2, {kernel, 1}});
  k = lt_binary_scalar(c, LT_OP_mul, k, lt_scalar_int(dilation));
  lt_tensor *at = lt_binary_scalar(c, LT_OP_mul, lt_counting(c, n, device), lt_scalar_int(stride));
  return lt_binary(c, LT_OP_add, k, at);
}

/* The place in a padded image [H, W] of each element of [kh, kw, rows, columns], as a list: place =
   (kh dilation + row stride) W + (kw dilation + column stride), a sum of two broadcast lines. One
   list serves im2col (index_select) and col2im (its gradient, which adds). */
static lt_tensor *patches(lt_ctx *c, const lt_args_im2col *a, lt_pair padded, lt_pair n,
                          lt_device device) {
  lt_tensor *h = positions(c, a->kernel_size.h, n.h, a->dilation.h, a->stride.h, device);
  lt_tensor *w = positions(c, a->kernel_size.w, n.w, a->dilation.w, a->stride.w, device);
  h = lt_reshape(c, h, (lt_shape){4, {a->kernel_size.h, 1, n.h, 1}});
  w = lt_reshape(c, w, (lt_shape){4, {1, a->kernel_size.w, 1, n.w}});
  h = lt_binary_scalar(c, LT_OP_mul, h, lt_scalar_int(padded.w));
  return lt_flat(c, lt_binary(c, LT_OP_add, h, w));
}

/* Where an image [B, H, W] is in its padded form, as a strided part: as_strided_backward puts it
   into zeros, as_strided takes it out again. */
static lt_args_as_strided_backward frame_of(int64_t n, lt_pair size, lt_pair padding) {
  int64_t h = size.h + 2 * padding.h, w = size.w + 2 * padding.w;
  return (lt_args_as_strided_backward){.full = {3, {n, h, w}}, .size = {3, {n, size.h, size.w}},
                                       .stride = {3, {h * w, w, 1}},
                                       .offset = padding.h * w + padding.w};
}

/* PyTorch's nn.functional.unfold: [N, C, H, W] to [N, C kh kw, L], the matrix whose product with
   the filters is a convolution (K. Chellapilla and others, High Performance Convolutional Neural
   Networks for Document Processing, 2006). Batch and channels are one dim: the positions are the
   same for all of them. kh kw times the memory of x. */
bool lt_expand_im2col(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_im2col *a = call->args;
  lt_tensor *x = call->in[0];
  int h = x->ndim - 2;
  lt_pair size = {x->size[h], x->size[h + 1]}, pad = a->padding;
  lt_pair n = {windows(size.h, a->kernel_size.h, a->dilation.h, pad.h, a->stride.h),
               windows(size.w, a->kernel_size.w, a->dilation.w, pad.w, a->stride.w)};
  int64_t images = 1, kernel = a->kernel_size.h * a->kernel_size.w;
  for (int k = 0; k < h; k++) images *= x->size[k];
  lt_args_as_strided_backward frame = frame_of(images, size, pad);
  lt_pair padded = {size.h + 2 * pad.h, size.w + 2 * pad.w};
  lt_shape result = {.ndim = h + 1};
  for (int k = 0; k < h; k++) result.size[k] = x->size[k];
  result.size[h - 1] *= kernel, result.size[h] = n.h * n.w;
  x = lt_reshape(c, x, lt_shape_of(3, frame.size.size));
  if (pad.h > 0 || pad.w > 0) x = lt_apply1(c, LT_OP_as_strided_backward, 1, &x, &frame);
  x = lt_reshape(c, x, (lt_shape){2, {images, padded.h * padded.w}});
  if (x == NULL) return false;
  x = lt_taken(c, x, 1, patches(c, a, padded, n, x->storage->device));
  *out = lt_reshape(c, x, result);
  return *out != NULL;
}

/* PyTorch's nn.functional.fold: each element added to its place, so that where windows overlap the
   result is a sum. It is the derivative of im2col, not its inverse; in a fixed order, unlike atomic
   adds. */
bool lt_expand_col2im(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_col2im *a = call->args;
  const lt_args_im2col of = {.kernel_size = a->kernel_size, .dilation = a->dilation,
                             .padding = a->padding, .stride = a->stride};
  lt_tensor *x = call->in[0];
  lt_pair size = a->output_size, pad = a->padding;
  lt_pair n = {windows(size.h, a->kernel_size.h, a->dilation.h, pad.h, a->stride.h),
               windows(size.w, a->kernel_size.w, a->dilation.w, pad.w, a->stride.w)};
  int64_t kernel = a->kernel_size.h * a->kernel_size.w, each = kernel * n.h * n.w;
  lt_shape result = lt_tensor_shape(x);
  int64_t images = result.size[result.ndim - 2] / kernel;
  result.size[result.ndim - 2] = images;
  for (int k = 0; k < result.ndim - 2; k++) images *= result.size[k];
  result.size[result.ndim - 1] = size.h, result.size[result.ndim++] = size.w;
  lt_args_as_strided_backward frame = frame_of(images, size, pad);
  const lt_args_as_strided inner = {
      .size = frame.size, .stride = frame.stride, .offset = frame.offset};
  lt_pair padded = {size.h + 2 * pad.h, size.w + 2 * pad.w};
  x = lt_reshape(c, x, (lt_shape){2, {images, each}});
  if (x == NULL) return false;
  x = lt_apply1(c, LT_OP_index_select_backward,
                LT_IN(x, patches(c, &of, padded, n, x->storage->device)),
                &(lt_args_index_select_backward){
                    .dim = 1, .size = padded.h * padded.w, .skip = LT_NO_INDEX});
  if (pad.h > 0 || pad.w > 0) {
    x = lt_reshape(c, x, lt_shape_of(3, frame.full.size));
    x = lt_apply1(c, LT_OP_as_strided, 1, &x, &inner);
  }
  *out = lt_reshape(c, x, result);
  return *out != NULL;
}

/* The diagonal is a strided view: one step is a step along both dims together, stride[dim1] +
   stride[dim2]; a positive offset starts to the right, a negative one below. Strides are those of
   the row-major shape: as_strided carries them over to what x really has. */
bool lt_expand_diagonal(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_diagonal *a = call->args;
  lt_shape from = lt_tensor_shape(call->in[0]);
  lt_args_as_strided w = {0};
  int64_t stride[LT_MAX_DIMS], rows = from.size[a->dim1], columns = from.size[a->dim2];
  lt_shape_strides(from, stride);
  for (int k = 0; k < from.ndim; k++)
    if (k != a->dim1 && k != a->dim2)
      w.size.size[w.size.n] = from.size[k], w.stride.size[w.size.n++] = stride[k];
  if (a->offset >= 0) columns -= a->offset;
  else rows += a->offset;
  int64_t n = rows < columns ? rows : columns;
  if (n > 0)
    w.offset = a->offset >= 0 ? a->offset * stride[a->dim2] : -a->offset * stride[a->dim1];
  w.size.size[w.size.n] = n > 0 ? n : 0;
  w.stride.size[w.size.n++] = stride[a->dim1] + stride[a->dim2];
  w.stride.n = w.size.n;
  *out = lt_apply1(c, LT_OP_as_strided, 1, call->in, &w);
  return *out != NULL;
}

/* Of a matrix its diagonal, of a vector the matrix that has it: a vector of stride n + 1 put into
   n^2 zeros. PyTorch's diag copies in both cases, unlike `diagonal`. */
bool lt_expand_diag(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_diag *a = call->args;
  const lt_tensor *x = call->in[0];
  if (x->ndim == 2) {
    const lt_args_diagonal whole = {.offset = a->diagonal, .dim1 = 0, .dim2 = 1};
    lt_tensor *y = lt_apply1(c, LT_OP_diagonal, 1, call->in, &whole);
    *out = lt_unary(c, LT_OP_clone, y);
    return *out != NULL;
  }
  int64_t off = a->diagonal, n = x->numel + (off < 0 ? -off : off);
  const lt_args_as_strided_backward put = {.full = {2, {n, n}}, .size = {1, {x->numel}},
                                           .stride = {1, {n + 1}},
                                           .offset = off >= 0 ? off : -off * n};
  *out = lt_apply1(c, LT_OP_as_strided_backward, 1, call->in, &put);
  return *out != NULL;
}
