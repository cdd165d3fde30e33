/* runtime/ops/expand_norm.c: norms written as other ops.

   instance_norm: D. Ulyanov and others, Instance Normalization, 2016. For sources of the others:
   cpu/layer_norm.c, cpu/batch_norm.c. */
#include "ops/expand.h"

static lt_tensor *mean_of(lt_ctx *c, lt_tensor *x, const lt_dims *dims) {
  return lt_apply1(c, LT_OP_mean, 1, &x, &(lt_args_reduce){.dims = *dims, .keepdim = true});
}

/* d / sqrt(variance + eps) * weight + bias; both may be absent. The composite form, for devices
   without the kernel and for derivatives of derivatives. Means, variances and weights are in f32
   (f64): `lt_wide`. */
static lt_tensor *scaled(lt_ctx *c, lt_tensor *d, lt_tensor *variance, double eps,
                         lt_tensor *weight, lt_tensor *bias) {
  variance = lt_binary_scalar(c, LT_OP_add, variance, lt_scalar_of(eps));
  d = lt_binary(c, LT_OP_mul, d, lt_unary(c, LT_OP_rsqrt, variance));
  if (weight != NULL) d = lt_binary(c, LT_OP_mul, d, lt_wide(c, weight));
  return bias != NULL ? lt_binary(c, LT_OP_add, d, lt_wide(c, bias)) : d;
}

static lt_tensor *input(const lt_call *call, int k) { return k < call->n_in ? call->in[k] : NULL; }

/* J. Ba, J. Kiros, G. Hinton, Layer Normalization, 2016. The variance is that of the differences
   from the mean, a second pass: E[x^2] - mean^2 loses all digits where the mean is large (T. Chan,
   G. Golub, R. LeVeque, 1983). */
bool lt_expand_layer_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_layer_norm *a = call->args;
  lt_tensor *x = lt_wide(c, call->in[0]);
  if (x == NULL) return false;
  lt_dims dims = {.n = a->normalized_shape.n};
  for (int k = 0; k < dims.n; k++) dims.dim[k] = x->ndim - dims.n + k;
  lt_tensor *d = lt_binary(c, LT_OP_sub, x, mean_of(c, x, &dims));
  lt_tensor *variance = mean_of(c, lt_binary(c, LT_OP_mul, d, d), &dims);
  *out = scaled(c, d, variance, a->eps, input(call, 1), input(call, 2));
  *out = lt_cast(c, *out, (lt_dtype)call->in[0]->dtype);
  return *out != NULL;
}

/* B. Zhang and R. Sennrich, Root Mean Square Layer Normalization, 2019: no mean is taken away, so
   one pass over x suffices, and there is no bias. */
bool lt_expand_rms_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_rms_norm *a = call->args;
  lt_tensor *x = lt_wide(c, call->in[0]);
  if (x == NULL) return false;
  lt_dims dims = {.n = a->normalized_shape.n};
  for (int k = 0; k < dims.n; k++) dims.dim[k] = x->ndim - dims.n + k;
  lt_tensor *square = mean_of(c, lt_mul(c, x, x), &dims);
  *out = scaled(c, x, square, a->eps.f, input(call, 1), NULL);
  *out = lt_cast(c, *out, (lt_dtype)call->in[0]->dtype);
  return *out != NULL;
}

/* A value of each channel as [1, C, 1, ...]. */
static lt_tensor *of_channels(lt_ctx *c, lt_tensor *t, const lt_tensor *x) {
  lt_shape s = {.ndim = x->ndim};
  for (int k = 0; k < x->ndim; k++) s.size[k] = k == 1 ? x->size[1] : 1;
  return t == NULL ? NULL : lt_reshape(c, lt_wide(c, t), s);
}

/* Gives y, and the batch's mean and variance where they are not inputs. S. Ioffe and C. Szegedy,
   Batch Normalization, 2015. The variance here is the biased one (over n), which normalizes; the
   running estimate, over n - 1 in PyTorch, is the module's affair. */
bool lt_expand_batch_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_batch_norm *a = call->args;
  lt_tensor *x = lt_wide(c, call->in[0]);
  if (x == NULL) return false;
  bool fixed = input(call, 3) != NULL;
  lt_dims dims = {0};
  for (int k = 0; k < x->ndim; k++)
    if (k != 1) dims.dim[dims.n++] = k;
  lt_tensor *mean = fixed ? of_channels(c, call->in[3], x) : mean_of(c, x, &dims);
  lt_tensor *d = lt_binary(c, LT_OP_sub, x, mean);
  lt_tensor *variance = fixed ? of_channels(c, call->in[4], x)
                              : mean_of(c, lt_binary(c, LT_OP_mul, d, d), &dims);
  lt_tensor *y = scaled(c, d, variance, a->eps, of_channels(c, input(call, 1), x),
                        of_channels(c, input(call, 2), x));
  out[0] = lt_cast(c, y, (lt_dtype)call->in[0]->dtype);
  lt_shape channels = lt_shape_of(1, &x->size[1]);
  if (!fixed) out[1] = lt_reshape(c, mean, channels);
  if (!fixed) out[2] = lt_reshape(c, variance, channels);
  return lt_ok(c);
}

/* Layer norm of each group; weight and bias are of channels. Y. Wu and K. He, Group Normalization,
   2018. A group's channels and places are one row of the reshaped x, which is contiguous in [N, C,
   ...]. */
bool lt_expand_group_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_group_norm *a = call->args;
  lt_tensor *x = call->in[0], *weight = input(call, 1), *bias = input(call, 2);
  int64_t groups = x->size[0] * a->num_groups;
  int64_t width = x->size[0] > 0 ? x->numel / groups : x->size[1] / a->num_groups;
  lt_tensor *rows = lt_reshape(c, x, (lt_shape){.ndim = 2, .size = {groups, width}});
  const lt_args_layer_norm args = {.normalized_shape = {.n = 1, .size = {width}}, .eps = a->eps};
  lt_tensor *y = lt_apply1(c, LT_OP_layer_norm, 1, &rows, &args);
  y = lt_reshape(c, y, lt_tensor_shape(x));
  if (weight != NULL || bias != NULL) y = lt_wide(c, y);
  if (weight != NULL) y = lt_mul(c, y, of_channels(c, weight, x));
  if (bias != NULL) y = lt_add(c, y, of_channels(c, bias, x));
  *out = lt_cast(c, y, (lt_dtype)x->dtype);
  return *out != NULL;
}

/* A value of each channel for each element of the batch, [N * C]. */
static lt_tensor *of_batch(lt_ctx *c, lt_tensor *t, const lt_tensor *x) {
  if (t == NULL) return NULL;
  t = lt_expand_to(c, t, (lt_shape){.ndim = 2, .size = {x->size[0], x->size[1]}});
  return lt_reshape(c, t, (lt_shape){.ndim = 1, .size = {x->size[0] * x->size[1]}});
}

/* Batch norm of [1, N * C, ...]; with given statistics that of x as it is. D. Ulyanov and others,
   Instance Normalization, 2016: each sample's channel is a channel of its own, so weights are
   repeated N times. */
bool lt_expand_instance_norm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0];
  if (input(call, 3) != NULL)
    return lt_apply(c, LT_OP_batch_norm, call->n_in, call->in, call->args, 1, out);
  lt_shape shape = lt_tensor_shape(x), pair = {.ndim = 2, .size = {x->size[0], x->size[1]}};
  lt_shape joined = shape;
  joined.size[0] = 1;
  joined.size[1] = x->size[0] * x->size[1];
  lt_tensor *in[3] = {lt_reshape(c, x, joined), of_batch(c, input(call, 1), x),
                      of_batch(c, input(call, 2), x)};
  lt_tensor *of[3] = {NULL};
  if (!lt_apply(c, LT_OP_batch_norm, 3, in, call->args, 3, of)) return false;
  out[0] = lt_reshape(c, of[0], shape);
  out[1] = lt_reshape(c, of[1], pair);
  out[2] = lt_reshape(c, of[2], pair);
  return lt_ok(c);
}
