/* runtime/ops/infer_arrange.c: arguments of composite ops that make, repeat, move or cut out. */
#include "ops/infer.h"

/* As in infer_composite.c: resolved dims replace those of the script in the args, which parts and
   derivatives read. */
static bool resolve(lt_ctx *c, const lt_infer *i, int64_t *dim) {
  int d;
  if (!lt_shape_dim(c, lt_tensor_shape(i->in[0]), *dim, &d)) return false;
  *dim = d;
  return true;
}

/* Floating only: steps between integers are arange's. */
bool lt_infer_linspace(lt_ctx *c, lt_infer *i) {
  const lt_args_linspace *a = i->args;
  if (a->dtype != LT_DTYPE_NONE && !lt_dtype_is_float(a->dtype))
    return lt_fail(c, LT_EDTYPE, "linspace: needs a floating dtype, got %s",
                   lt_dtype_name(a->dtype));
  return a->steps >= 0 || lt_fail(c, LT_EARG, "linspace: steps must be 0 or more, got %lld",
                                  (long long)a->steps);
}

bool lt_infer_eye(lt_ctx *c, lt_infer *i) {
  lt_args_eye *a = i->args;
  if (a->m == LT_NO_INDEX) a->m = a->n;
  return (a->n >= 0 && a->m >= 0) || lt_fail(c, LT_ESHAPE, "eye: impossible shape [%lld, %lld]",
                                             (long long)a->n, (long long)a->m);
}

bool lt_infer_tile(lt_ctx *c, lt_infer *i) {
  const lt_args_tile *a = i->args;
  for (int k = 0; k < a->dims.n; k++)
    if (a->dims.size[k] < 0)
      return lt_fail(c, LT_EARG, "tile: %lld times", (long long)a->dims.size[k]);
  return true;
}

/* (x, repeats) A number has no dim to repeat along: it counts as a list of one, and the result is
   flat. */
bool lt_infer_repeat_interleave(lt_ctx *c, lt_infer *i) {
  lt_args_repeat_interleave *a = i->args;
  lt_dtype d = (lt_dtype)i->in[1]->dtype;
  if (!lt_dtype_is_int(d))
    return lt_fail(c, LT_EDTYPE, "repeat_interleave: repeats must be integers, got %s",
                   lt_dtype_name(d));
  if (i->in[0]->ndim == 0) a->dim = LT_NO_DIM;
  return a->dim == LT_NO_DIM || resolve(c, i, &a->dim);
}

/* Without dims the tensor is rolled as if it were flat, by one shift. */
bool lt_infer_roll(lt_ctx *c, lt_infer *i) {
  lt_args_roll *a = i->args;
  int wanted = a->dims.n > 0 ? a->dims.n : 1;
  if (a->shifts.n != wanted)
    return lt_fail(c, LT_EARG, "roll: %d shifts for %d dims of %s", a->shifts.n,
                   a->dims.n > 0 ? a->dims.n : 0, LT_TENSOR_STR(i->in[0]));
  for (int k = 0; k < a->dims.n; k++)
    if (!resolve(c, i, &a->dims.dim[k])) return false;
  return true;
}

/* The default plane is the first two dims, as in torch.rot90 and numpy.rot90; only their order
   gives the sense of the turn, so the same dim twice has no meaning. */
bool lt_infer_rot90(lt_ctx *c, lt_infer *i) {
  lt_args_rot90 *a = i->args;
  if (a->dims.n < 0) a->dims = (lt_dims){.n = 2, .dim = {0, 1}};
  if (a->dims.n != 2 || i->in[0]->ndim < 2)
    return lt_fail(c, LT_EARG, "rot90: needs 2 dims to turn in, got %d of %s", a->dims.n,
                   LT_TENSOR_STR(i->in[0]));
  return resolve(c, i, &a->dims.dim[0]) && resolve(c, i, &a->dims.dim[1]) &&
         (a->dims.dim[0] != a->dims.dim[1] ||
          lt_fail(c, LT_EARG, "rot90: dim %lld is given twice", (long long)a->dims.dim[0] + 1));
}

/* A view: one more dim, that of the window, with the stride of the dim that is cut. A number counts
   as one element. */
bool lt_infer_unfold(lt_ctx *c, lt_infer *i) {
  lt_args_unfold *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!resolve(c, i, &a->dim)) return false;
  int64_t n = x->ndim > 0 ? x->size[a->dim] : 1;
  if (x->ndim == LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "unfold: %s cannot have one more dim", LT_TENSOR_STR(x));
  if (a->size < 0 || a->size > n || a->step < 1)
    return lt_fail(c, LT_EARG, "unfold: windows of %lld, %lld apart, in dim %lld of %s",
                   (long long)a->size, (long long)a->step, (long long)a->dim + 1,
                   LT_TENSOR_STR(x));
  return true;
}

static bool is_within(lt_pair p, int64_t least) {
  const int64_t most = INT32_MAX;
  return p.h >= least && p.h <= most && p.w >= least && p.w <= most;
}

/* How many windows fit into an image of `size`; 0 is a failure. Limits of INT32_MAX keep all
   products below 2^63; padding is checked as part of a shape, so that the padded image can be
   made. */
static int64_t windows(lt_ctx *c, const lt_infer *i, lt_pair size, lt_pair kernel, lt_pair dilation,
                       lt_pair padding, lt_pair stride) {
  bool right = is_within(kernel, 1) && is_within(dilation, 1) && is_within(padding, 0) &&
               is_within(stride, 1) && is_within(size, 0);
  if (right) {
    lt_pair padded = {size.h + 2 * padding.h, size.w + 2 * padding.w};
    if (!lt_shape_check(c, 2, (int64_t[]){padded.h, padded.w})) return 0;
    int64_t h = padded.h - dilation.h * (kernel.h - 1), w = padded.w - dilation.w * (kernel.w - 1);
    if (h > 0 && w > 0) return ((h - 1) / stride.h + 1) * ((w - 1) / stride.w + 1);
  }
  lt_fail(c, LT_EARG,
          "%s: no window of [%lld, %lld] fits into [%lld, %lld] (padding [%lld, %lld], dilation "
          "[%lld, %lld], stride [%lld, %lld])", i->op->name, (long long)kernel.h,
          (long long)kernel.w, (long long)size.h, (long long)size.w, (long long)padding.h,
          (long long)padding.w, (long long)dilation.h, (long long)dilation.w, (long long)stride.h,
          (long long)stride.w);
  return 0;
}

bool lt_infer_im2col(lt_ctx *c, lt_infer *i) {
  const lt_args_im2col *a = i->args;
  const lt_tensor *x = i->in[0];
  if (x->ndim != 3 && x->ndim != 4)
    return lt_fail(c, LT_ESHAPE, "im2col: needs images [N, C, H, W] or [C, H, W], got %s",
                   LT_TENSOR_STR(x));
  lt_pair size = {x->size[x->ndim - 2], x->size[x->ndim - 1]};
  return windows(c, i, size, a->kernel_size, a->dilation, a->padding, a->stride) > 0;
}

/* L columns must be exactly the windows that im2col would cut out of `output_size`: with fewer or
   more an element would be added at a place that no window has. */
bool lt_infer_col2im(lt_ctx *c, lt_infer *i) {
  const lt_args_col2im *a = i->args;
  const lt_tensor *x = i->in[0];
  if (x->ndim != 2 && x->ndim != 3)
    return lt_fail(c, LT_ESHAPE, "col2im: needs columns [N, C * height * width, L], got %s",
                   LT_TENSOR_STR(x));
  int64_t n = windows(c, i, a->output_size, a->kernel_size, a->dilation, a->padding, a->stride);
  int64_t each = a->kernel_size.h * a->kernel_size.w;
  if (n == 0) return false;
  if (x->size[x->ndim - 1] != n || x->size[x->ndim - 2] % each != 0)
    return lt_fail(c, LT_ESHAPE, "col2im: needs %lld columns of a multiple of %lld, got %s",
                   (long long)n, (long long)each, LT_TENSOR_STR(x));
  return true;
}

/* Reflected elements come from the other side of the first or last one, circular ones from the
   other end: so many there must be. */
bool lt_infer_pad(lt_ctx *c, lt_infer *i) {
  const lt_args_pad *a = i->args;
  const lt_tensor *x = i->in[0];
  if (a->pad.n % 2 != 0 || a->pad.n > 2 * x->ndim)
    return lt_fail(c, LT_EARG, "pad: needs 2 numbers for each dim, at most %d for %s, got %d",
                   2 * x->ndim, LT_TENSOR_STR(x), a->pad.n);
  lt_shape padded = lt_tensor_shape(x);
  for (int k = 0; k < a->pad.n; k += 2) {
    int64_t n = x->size[x->ndim - 1 - k / 2], b = a->pad.size[k], e = a->pad.size[k + 1];
    int64_t more = b > e ? b : e, *size = &padded.size[x->ndim - 1 - k / 2];
    bool fits = b > INT64_MIN && e > INT64_MIN && !__builtin_add_overflow(n, b, size) &&
                !__builtin_add_overflow(*size, e, size) && *size >= 0;
    if (a->mode == LT_PAD_reflect) fits = fits && more < n;
    if (a->mode == LT_PAD_circular)
      fits = fits && more <= n && n + (b < 0 ? b : 0) + (e < 0 ? e : 0) > 0;
    if (a->mode != LT_PAD_constant) fits = fits && n > 0 && n + b >= 0 && n + e >= 0;
    if (!fits)
      return lt_fail(c, LT_ESHAPE, "pad: {%lld, %lld} does not fit dim %d of %s%s", (long long)b,
                     (long long)e, x->ndim - k / 2, LT_TENSOR_STR(x),
                     a->mode == LT_PAD_reflect    ? ", of which it reflects elements"
                     : a->mode == LT_PAD_circular ? ", whose elements it repeats"
                                                  : "");
  }
  return lt_shape_check(c, padded.ndim, padded.size);
}

/* The offset needs no check: beyond the edge the diagonal is empty, as in PyTorch. */
bool lt_infer_diagonal(lt_ctx *c, lt_infer *i) {
  lt_args_diagonal *a = i->args;
  if (i->in[0]->ndim < 2)
    return lt_fail(c, LT_ESHAPE, "diagonal: needs at least 2 dims, got %s",
                   LT_TENSOR_STR(i->in[0]));
  return resolve(c, i, &a->dim1) && resolve(c, i, &a->dim2) &&
         (a->dim1 != a->dim2 ||
          lt_fail(c, LT_EARG, "diagonal: dim %lld is given twice", (long long)a->dim1 + 1));
}

/* The bound keeps the addition from overflowing; the check of the shape refuses n * n. */
bool lt_infer_diag(lt_ctx *c, lt_infer *i) {
  const lt_args_diag *a = i->args;
  const lt_tensor *x = i->in[0];
  if (x->ndim == 2) return true;
  if (x->ndim != 1)
    return lt_fail(c, LT_ESHAPE, "diag: needs a vector or a matrix, got %s", LT_TENSOR_STR(x));
  if (a->diagonal < -INT32_MAX || a->diagonal > INT32_MAX)
    return lt_fail(c, LT_EARG, "diag: diagonal must be in -%d..%d, got %lld", INT32_MAX, INT32_MAX,
                   (long long)a->diagonal);
  int64_t n = x->numel + (a->diagonal < 0 ? -a->diagonal : a->diagonal);
  return lt_shape_check(c, 2, (int64_t[]){n, n});
}
