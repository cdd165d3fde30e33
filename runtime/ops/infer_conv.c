/* runtime/ops/infer_conv.c: shapes and arguments of convolutions.

   Results lie channels last (shape [N, C, H, W] all the same) where their device wishes it. */
#include "ops/infer.h"
#include "ops/spatial.h"

static lt_meta as_wished(lt_ctx *c, const lt_infer *i, lt_shape s, lt_dtype dtype) {
  const lt_device_ops *ops = lt_device_table(c, i->device);
  bool last = ops->layout != NULL && ops->layout((int)(i->op - lt_ops), dtype) == LT_CHANNELS_LAST;
  return last ? lt_meta_channels_last(s, dtype) : (lt_meta){.shape = s, .dtype = dtype};
}

/* (x, weight, bias): `in` and `out` are the channels that the weight's first dims stand for. */
static bool check_weight(lt_ctx *c, const lt_infer *i, int64_t groups, bool transposed) {
  static const char *const sizes[] = {"length", "height, width", "depth, height, width"};
  const lt_tensor *x = i->in[0], *w = i->in[1], *bias = i->n_in > 2 ? i->in[2] : NULL;
  int n = lt_spatial_dims(i->op);
  const char *name = i->op->name, *size = sizes[n - 1];
  const char *channels = transposed ? "in, out / groups" : "out, in / groups";
  int64_t given = x->size[x->ndim - n - 1];
  if (w->ndim != n + 2 || w->numel == 0)
    return lt_fail(c, LT_ESHAPE, "%s: weight must be [%s, %s], got %s", name, channels, size,
                   LT_TENSOR_STR(w));
  bool fits = groups >= 1 && w->size[0] % groups == 0 &&
              given == (transposed ? w->size[0] : w->size[1] * groups);
  bool is_last = x->ndim > 2 && !transposed && x->size[x->ndim - 1] == w->size[1] * groups;
  if (!fits)
    return lt_fail(c, LT_ESHAPE,
                   "%s: channels do not fit: x %s, weight %s [%s, %s], groups %lld%s", name,
                   LT_TENSOR_STR(x), LT_TENSOR_STR(w), channels, size, (long long)groups,
                   is_last ? ": the channels of x come last: write x:movedim(-1, 2)" : "");
  int64_t made = transposed ? w->size[1] * groups : w->size[0];
  if (bias != NULL && (bias->ndim != 1 || bias->size[0] != made))
    return lt_fail(c, LT_ESHAPE, "%s: bias has shape %s, weight %s", name, LT_TENSOR_STR(bias),
                   LT_TENSOR_STR(w));
  return true;
}

/* "same" becomes numbers where both sides get as much. An odd sum of both sides stays "same": one
   side gets an element more, which the definition in parts does by a pad. */
static bool resolve_padding(lt_ctx *c, lt_infer *i, lt_args_conv *a) {
  const lt_tensor *w = i->in[1];
  int n = lt_spatial_dims(i->op);
  lt_sizes half = {.n = n};
  bool even = true;
  if (a->padding.n != LT_SAME) return lt_spatial_each(c, i, "padding", &a->padding, 0);
  for (int k = 0; k < n; k++) {
    int64_t all = a->dilation.size[k] * (w->size[k + 2] - 1);
    if (a->stride.size[k] != 1)
      return lt_fail(c, LT_EARG, "%s: padding 'same' needs a stride of 1, got %s", i->op->name,
                     LT_EACH_STR(&a->stride));
    half.size[k] = all / 2;
    even = even && all % 2 == 0;
  }
  if (even) a->padding = half;
  return true;
}

bool lt_infer_conv(lt_ctx *c, lt_infer *i) {
  lt_args_conv *a = i->args;
  const lt_tensor *x = i->in[0], *w = i->in[1];
  int n = lt_spatial_dims(i->op);
  if (!lt_spatial_input(c, i, true) || !check_weight(c, i, a->groups, false) ||
      !lt_spatial_each(c, i, "stride", &a->stride, 1) ||
      !lt_spatial_each(c, i, "dilation", &a->dilation, 1) || !resolve_padding(c, i, a))
    return false;
  for (int k = 0; k < n && a->padding.n != LT_SAME; k++)
    if (lt_window_count(x->size[x->ndim - n + k], w->size[k + 2], a->stride.size[k],
                        a->padding.size[k], a->dilation.size[k], false) == 0)
      return lt_fail(c, LT_ESHAPE, "%s: weight %s is larger than x %s with padding %s%s",
                     i->op->name, LT_TENSOR_STR(w), LT_TENSOR_STR(x), LT_EACH_STR(&a->padding),
                     a->dilation.size[k] > 1 ? " and its dilation" : "");
  return true;
}

/* A convolution of stride s makes the same size of s sizes of input; output_padding says which of
   them comes back, so it is smaller than s (V. Dumoulin, F. Visin, A guide to convolution
   arithmetic for deep learning, 2016). */
bool lt_infer_conv_transpose(lt_ctx *c, lt_infer *i) {
  lt_args_conv_transpose *a = i->args;
  const lt_tensor *x = i->in[0], *w = i->in[1];
  int n = lt_spatial_dims(i->op);
  if (!lt_spatial_input(c, i, true) || !check_weight(c, i, a->groups, true) ||
      !lt_spatial_each(c, i, "stride", &a->stride, 1) ||
      !lt_spatial_each(c, i, "padding", &a->padding, 0) ||
      !lt_spatial_each(c, i, "dilation", &a->dilation, 1) ||
      !lt_spatial_each(c, i, "output_padding", &a->output_padding, 0))
    return false;
  for (int k = 0; k < n; k++) {
    int64_t s = a->stride.size[k], d = a->dilation.size[k];
    if (a->output_padding.size[k] >= (s > d ? s : d))
      return lt_fail(c, LT_EARG,
                     "%s: output_padding %s must be smaller than stride %s or dilation %s",
                     i->op->name, LT_EACH_STR(&a->output_padding), LT_EACH_STR(&a->stride),
                     LT_EACH_STR(&a->dilation));
    int64_t made = (x->size[x->ndim - n + k] - 1) * s - 2 * a->padding.size[k] +
                   d * (w->size[k + 2] - 1) + a->output_padding.size[k] + 1;
    if (made < 1)
      return lt_fail(c, LT_ESHAPE, "%s: padding %s leaves nothing of x %s with weight %s",
                     i->op->name, LT_EACH_STR(&a->padding), LT_TENSOR_STR(x), LT_TENSOR_STR(w));
  }
  return true;
}

/* (x, weight, bias), (g, weight) and (g, x): called by convolutions and derivatives, with shapes
   that fit. */
bool lt_infer_convolution(lt_ctx *c, lt_infer *i) {
  const lt_args_convolution *a = i->args;
  const lt_tensor *x = i->in[0], *w = i->in[1];
  lt_shape s = {.ndim = 4, .size = {x->size[0], w->size[0]}};
  s.size[2] = lt_window_count(x->size[2], w->size[2], a->stride.h, a->padding.h, a->dilation.h,
                              false);
  s.size[3] = lt_window_count(x->size[3], w->size[3], a->stride.w, a->padding.w, a->dilation.w,
                              false);
  i->out[0] = as_wished(c, i, s, lt_dtype_promote((lt_dtype)x->dtype, (lt_dtype)w->dtype));
  return lt_assert(c, x->ndim == 4 && w->ndim == 4 && x->size[1] == w->size[1] * a->groups);
}

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
