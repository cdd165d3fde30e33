/* runtime/ops/infer_conv.c: shapes of convolutions and pooling.

   Results of convolutions lie channels last (shape [N, C, H, W] all the same) where their device
   wishes it; those of pooling lie as their input. */
#include "ops/infer.h"

/* The meta of a channels-last result; plain strides where both mean the same. */
static lt_meta channels_last(lt_shape s, lt_dtype dtype) {
  lt_meta m = {.shape = s, .dtype = dtype};
  m.strided = s.size[1] > 1 && s.size[2] * s.size[3] > 1;
  if (m.strided) lt_shape_channels_last(s, m.stride);
  return m;
}

static lt_meta as_wished(lt_ctx *c, const lt_infer *i, lt_shape s, lt_dtype dtype) {
  const lt_device_ops *ops = lt_device_table(c, i->device);
  bool last = ops->layout != NULL && ops->layout((int)(i->op - lt_ops), dtype) == LT_CHANNELS_LAST;
  return last ? channels_last(s, dtype) : (lt_meta){.shape = s, .dtype = dtype};
}

static bool lies_channels_last(const lt_tensor *t) {
  return !t->contiguous && t->size[1] > 1 && t->stride[1] == 1 && lt_is_dense(t);
}

/* How often a window of `kernel` fits, rounded down. */
static int64_t steps(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  int64_t room = size + 2 * padding - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

static bool check_pair(lt_ctx *c, const lt_infer *i, const char *name, lt_pair p, int64_t least) {
  const int64_t most = INT32_MAX; /* what the kernels count with */
  if (p.h > most || p.w > most)
    return lt_fail(c, LT_EARG, "%s: %s must be at most %lld, got {%lld, %lld}", i->op->name, name,
                   (long long)most, (long long)p.h, (long long)p.w);
  if (p.h >= least && p.w >= least) return true;
  return lt_fail(c, LT_EARG, "%s: %s must be at least %lld, got {%lld, %lld}", i->op->name, name,
                 (long long)least, (long long)p.h, (long long)p.w);
}

static bool check_four_dims(lt_ctx *c, const lt_infer *i, const lt_tensor *x) {
  if (x->ndim == 4) return true;
  return lt_fail(c, LT_ESHAPE, "%s: x must be [N, C, H, W], got %s", i->op->name, LT_TENSOR_STR(x));
}

static bool check_float(lt_ctx *c, const lt_infer *i) {
  lt_dtype d = i->out[0].dtype;
  if (lt_dtype_is_float(d)) return true;
  return lt_fail(c, LT_EDTYPE, "%s: not defined for %s; write x:to('f32') first", i->op->name,
                 lt_dtype_name(d));
}

static bool check_conv(lt_ctx *c, lt_infer *i, const lt_args_conv *a) {
  const lt_tensor *x = i->in[0], *w = i->in[1], *bias = i->n_in > 2 ? i->in[2] : NULL;
  i->out[0].dtype = lt_dtype_promote((lt_dtype)x->dtype, (lt_dtype)w->dtype);
  if (!check_four_dims(c, i, x) || !check_float(c, i)) return false;
  if (w->ndim != 4 || w->numel == 0)
    return lt_fail(c, LT_ESHAPE, "conv2d: weight must be [out, in / groups, height, width], got %s",
                   LT_TENSOR_STR(w));
  if (a->groups < 1 || w->size[0] % a->groups != 0 || x->size[1] != w->size[1] * a->groups)
    return lt_fail(c, LT_ESHAPE,
                   "conv2d: channels do not fit: x %s, weight %s [out, in / groups, height, "
                   "width], groups %lld",
                   LT_TENSOR_STR(x), LT_TENSOR_STR(w), (long long)a->groups);
  if (bias != NULL && (bias->ndim != 1 || bias->size[0] != w->size[0]))
    return lt_fail(c, LT_ESHAPE, "conv2d: bias has shape %s, weight %s", LT_TENSOR_STR(bias),
                   LT_TENSOR_STR(w));
  return check_pair(c, i, "stride", a->stride, 1) && check_pair(c, i, "dilation", a->dilation, 1) &&
         check_pair(c, i, "padding", a->padding, 0);
}

bool lt_infer_conv(lt_ctx *c, lt_infer *i) {
  const lt_args_conv *a = i->args;
  const lt_tensor *x = i->in[0], *w = i->in[1];
  if (!check_conv(c, i, a)) return false;
  lt_shape s = {.ndim = 4, .size = {x->size[0], w->size[0]}};
  s.size[2] = steps(x->size[2], a->dilation.h * (w->size[2] - 1) + 1, a->stride.h, a->padding.h);
  s.size[3] = steps(x->size[3], a->dilation.w * (w->size[3] - 1) + 1, a->stride.w, a->padding.w);
  if (s.size[2] == 0 || s.size[3] == 0)
    return lt_fail(c, LT_ESHAPE, "conv2d: weight %s is larger than x %s with padding {%lld, %lld}",
                   LT_TENSOR_STR(w), LT_TENSOR_STR(x), (long long)a->padding.h,
                   (long long)a->padding.w);
  i->out[0] = as_wished(c, i, s, i->out[0].dtype);
  return true;
}

/* (g, weight) and (g, x): called by derivatives, with shapes that fit. */
bool lt_infer_conv_input(lt_ctx *c, lt_infer *i) {
  const lt_args_conv_input *a = i->args;
  i->out[0] = as_wished(c, i, lt_shape_of(a->size.n, a->size.size), (lt_dtype)i->in[0]->dtype);
  return lt_assert(c, a->size.n == 4);
}

bool lt_infer_conv_weight(lt_ctx *c, lt_infer *i) {
  const lt_args_conv_weight *a = i->args;
  lt_dtype d = (lt_dtype)i->in[0]->dtype;
  i->out[0] = (lt_meta){.shape = lt_shape_of(a->size.n, a->size.size), .dtype = d};
  i->out[1] = (lt_meta){.shape = lt_shape_of(1, a->size.size), .dtype = d};
  return lt_assert(c, a->size.n == 4);
}

bool lt_infer_pool(lt_ctx *c, lt_infer *i) {
  lt_args_pool *a = i->args;
  const lt_tensor *x = i->in[0];
  if (a->stride.h < 0) a->stride = a->kernel_size;
  i->out[0].dtype = (lt_dtype)x->dtype;
  if (x->dtype == LT_BOOL)
    return lt_fail(c, LT_EDTYPE, "%s: not defined for bool; write x:to('u8') first", i->op->name);
  if (!check_four_dims(c, i, x) || !check_pair(c, i, "kernel_size", a->kernel_size, 1) ||
      !check_pair(c, i, "stride", a->stride, 1) || !check_pair(c, i, "padding", a->padding, 0))
    return false;
  if (a->padding.h > a->kernel_size.h / 2 || a->padding.w > a->kernel_size.w / 2)
    return lt_fail(c, LT_EARG,
                   "%s: padding {%lld, %lld} is more than half of kernel_size {%lld, %lld}",
                   i->op->name, (long long)a->padding.h, (long long)a->padding.w,
                   (long long)a->kernel_size.h, (long long)a->kernel_size.w);
  lt_shape s = lt_tensor_shape(x);
  s.size[2] = steps(x->size[2], a->kernel_size.h, a->stride.h, a->padding.h);
  s.size[3] = steps(x->size[3], a->kernel_size.w, a->stride.w, a->padding.w);
  if (s.size[2] == 0 || s.size[3] == 0)
    return lt_fail(c, LT_ESHAPE, "%s: kernel_size {%lld, %lld} is larger than x %s", i->op->name,
                   (long long)a->kernel_size.h, (long long)a->kernel_size.w, LT_TENSOR_STR(x));
  lt_dtype d = (lt_dtype)x->dtype;
  i->out[0] = lies_channels_last(x) ? channels_last(s, d) : (lt_meta){.shape = s, .dtype = d};
  i->out[1] = i->out[0];
  i->out[1].dtype = a->kernel_size.h * a->kernel_size.w <= 256 ? LT_U8 : LT_I32;
  return lt_assert(c, i->n_out == 2);
}

/* (g, positions in the windows) */
bool lt_infer_pool_backward(lt_ctx *c, lt_infer *i) {
  const lt_args_pool_backward *a = i->args;
  lt_shape s = lt_shape_of(a->size.n, a->size.size);
  lt_dtype d = (lt_dtype)i->in[0]->dtype;
  i->out[0] =
      lies_channels_last(i->in[1]) ? channels_last(s, d) : (lt_meta){.shape = s, .dtype = d};
  return lt_assert(c, s.ndim == 4);
}
