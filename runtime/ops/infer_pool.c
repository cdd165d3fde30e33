/* runtime/ops/infer_pool.c: shapes and arguments of pooling. Results of max_window lie as its
   input. */
#include "ops/infer.h"
#include "ops/spatial.h"

static bool not_bool(lt_ctx *c, const lt_infer *i) {
  if (i->in[0]->dtype != LT_BOOL) return true;
  return lt_fail(c, LT_EDTYPE, "%s: not defined for bool; write x:to('u8') first", i->op->name);
}

/* kernel_size, stride (none: kernel_size) and padding, with `dilation` of 1 if there is none. More
   padding than half a window would allow windows of padding alone, which have no maximum: PyTorch's
   condition. */
static bool check_windows(lt_ctx *c, const lt_infer *i, lt_sizes *kernel, lt_sizes *stride,
                          lt_sizes *padding, const lt_sizes *dilation, bool ceil) {
  const lt_tensor *x = i->in[0];
  int n = lt_spatial_dims(i->op);
  if (!lt_spatial_each(c, i, "kernel_size", kernel, 1)) return false;
  if (stride->n == 1 && stride->size[0] == LT_AS_KERNEL) *stride = *kernel;
  if (!lt_spatial_each(c, i, "stride", stride, 1) ||
      !lt_spatial_each(c, i, "padding", padding, 0))
    return false;
  for (int k = 0; k < n; k++) {
    int64_t apart = dilation != NULL ? dilation->size[k] : 1;
    int64_t covered = apart * (kernel->size[k] - 1) + 1;
    if (padding->size[k] > covered / 2)
      return lt_fail(c, LT_EARG, "%s: padding %s is more than half of kernel_size %s", i->op->name,
                     LT_EACH_STR(padding), LT_EACH_STR(kernel));
    if (lt_window_count(x->size[x->ndim - n + k], kernel->size[k], stride->size[k],
                        padding->size[k], apart, ceil) <= 0)
      return lt_fail(c, LT_ESHAPE, "%s: kernel_size %s is larger than x %s", i->op->name,
                     LT_EACH_STR(kernel), LT_TENSOR_STR(x));
  }
  return true;
}

bool lt_infer_max_pool(lt_ctx *c, lt_infer *i) {
  lt_args_max_pool *a = i->args;
  i->n_out = a->return_indices ? 2 : 1;
  return not_bool(c, i) && lt_spatial_input(c, i, false) &&
         lt_spatial_each(c, i, "dilation", &a->dilation, 1) &&
         check_windows(c, i, &a->kernel_size, &a->stride, &a->padding, &a->dilation, a->ceil_mode);
}

bool lt_infer_avg_pool(lt_ctx *c, lt_infer *i) {
  lt_args_avg_pool *a = i->args;
  if (a->divisor_override == 0) return lt_fail(c, LT_EARG, "%s: divisor_override is 0",
                                               i->op->name);
  return lt_spatial_input(c, i, true) &&
         check_windows(c, i, &a->kernel_size, &a->stride, &a->padding, NULL, a->ceil_mode);
}

bool lt_infer_lp_pool(lt_ctx *c, lt_infer *i) {
  lt_args_lp_pool *a = i->args;
  lt_sizes none = LT_ALL_OF(0);
  if (a->norm_type == 0) return lt_fail(c, LT_EARG, "%s: norm_type is 0", i->op->name);
  return lt_spatial_input(c, i, true) &&
         check_windows(c, i, &a->kernel_size, &a->stride, &none, NULL, a->ceil_mode);
}

/* A part of nothing has neither a mean nor a maximum. LT_NO_DIM: as many parts as elements. */
static bool check_parts(lt_ctx *c, const lt_infer *i, lt_sizes *parts) {
  const lt_tensor *x = i->in[0];
  int n = lt_spatial_dims(i->op);
  for (int k = 0; k < parts->n; k++)
    if (parts->size[k] == LT_NO_DIM) parts->size[k] = parts->n == n ? x->size[x->ndim - n + k] : -1;
  if (!lt_spatial_each(c, i, "output_size", parts, 0)) return false;
  for (int k = x->ndim - n; k < x->ndim; k++)
    if (x->size[k] == 0)
      return lt_fail(c, LT_ESHAPE, "%s: nothing to pool in x %s", i->op->name, LT_TENSOR_STR(x));
  return true;
}

bool lt_infer_adaptive_avg_pool(lt_ctx *c, lt_infer *i) {
  lt_args_adaptive_avg_pool *a = i->args;
  return lt_spatial_input(c, i, true) && check_parts(c, i, &a->output_size);
}

bool lt_infer_adaptive_max_pool(lt_ctx *c, lt_infer *i) {
  lt_args_adaptive_max_pool *a = i->args;
  i->n_out = a->return_indices ? 2 : 1;
  return not_bool(c, i) && lt_spatial_input(c, i, false) && check_parts(c, i, &a->output_size);
}

/* output_size may be the whole shape; it ends up with the spatial sizes. Sizes that pool to x's are
   an interval of the stride's length: kernel_size, stride and padding alone name its usual
   member. */
bool lt_infer_max_unpool(lt_ctx *c, lt_infer *i) {
  lt_args_max_unpool *a = i->args;
  const lt_tensor *x = i->in[0], *at = i->in[1];
  int n = lt_spatial_dims(i->op);
  lt_sizes *s = &a->output_size;
  if (!lt_spatial_input(c, i, false) ||
      !lt_spatial_each(c, i, "kernel_size", &a->kernel_size, 1))
    return false;
  if (a->stride.n == 1 && a->stride.size[0] == LT_AS_KERNEL) a->stride = a->kernel_size;
  if (!lt_spatial_each(c, i, "stride", &a->stride, 1) ||
      !lt_spatial_each(c, i, "padding", &a->padding, 0))
    return false;
  if (!lt_dtype_is_int((lt_dtype)at->dtype) ||
      !lt_shape_equal(lt_tensor_shape(x), lt_tensor_shape(at)))
    return lt_fail(c, LT_ESHAPE, "%s: indices must be integers of the shape of x: %s, got %s of %s",
                   i->op->name, LT_TENSOR_STR(x), lt_dtype_name((lt_dtype)at->dtype),
                   LT_TENSOR_STR(at));
  bool given = s->n >= 0;
  if (given && s->n != n && s->n != x->ndim)
    return lt_fail(c, LT_ESHAPE, "%s: output_size %s for x %s", i->op->name, LT_EACH_STR(s),
                   LT_TENSOR_STR(x));
  for (int k = 0, skip = s->n - n; k < n; k++) {
    int64_t step = a->stride.size[k], size = x->size[x->ndim - n + k];
    int64_t made = (size - 1) * step - 2 * a->padding.size[k] + a->kernel_size.size[k];
    if (given) s->size[k] = s->size[k + skip];
    if (given && (s->size[k] <= made - step || s->size[k] >= made + step))
      return lt_fail(c, LT_ESHAPE, "%s: output_size %lld of dim %d must be between %lld and %lld",
                     i->op->name, (long long)s->size[k], x->ndim - n + k + 1,
                     (long long)(made - step), (long long)(made + step));
    if (!given) s->size[k] = made;
    if (s->size[k] < 1)
      return lt_fail(c, LT_ESHAPE, "%s: padding %s leaves nothing of x %s", i->op->name,
                     LT_EACH_STR(&a->padding), LT_TENSOR_STR(x));
  }
  s->n = n;
  return true;
}

/* The kernel of max_pool: called with what fits. */

static bool is_channels_last(const lt_tensor *t) {
  return !t->contiguous && t->size[1] > 1 && t->stride[1] == 1 && lt_is_dense(t);
}

/* Positions in a window fit in a byte for windows of up to 256 elements: what is saved for backward
   is then a quarter of an f32 output. channels-last x gives channels-last results. */
bool lt_infer_max_window(lt_ctx *c, lt_infer *i) {
  lt_args_max_window *a = i->args;
  const lt_tensor *x = i->in[0];
  lt_pair k = a->kernel_size;
  lt_shape s = lt_tensor_shape(x);
  lt_dtype d = (lt_dtype)x->dtype;
  if (a->stride.h < 0) a->stride = k;
  if (a->out.h == 0) {
    a->out.h = lt_window_count(s.size[2], k.h, a->stride.h, a->padding.h, a->dilation.h, false);
    a->out.w = lt_window_count(s.size[3], k.w, a->stride.w, a->padding.w, a->dilation.w, false);
  }
  s.size[2] = a->out.h, s.size[3] = a->out.w;
  i->out[0] =
      is_channels_last(x) ? lt_meta_channels_last(s, d) : (lt_meta){.shape = s, .dtype = d};
  i->out[1] = i->out[0];
  i->out[1].dtype = k.h * k.w <= 256 ? LT_U8 : LT_I32;
  return lt_assert(c, x->ndim == 4 && i->n_out == 2);
}

/* (g, positions in the windows) */
bool lt_infer_max_window_backward(lt_ctx *c, lt_infer *i) {
  const lt_args_max_window_backward *a = i->args;
  lt_shape s = lt_shape_of(a->size.n, a->size.size);
  lt_dtype d = (lt_dtype)i->in[0]->dtype;
  i->out[0] = is_channels_last(i->in[1]) ? lt_meta_channels_last(s, d)
                                           : (lt_meta){.shape = s, .dtype = d};
  return lt_assert(c, s.ndim == 4);
}
