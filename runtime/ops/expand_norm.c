/* runtime/ops/expand_norm.c: layer norm and batch norm written as other ops. */
#include "ops/expand.h"

static lt_tensor *mean_of(lt_ctx *c, lt_tensor *x, const lt_dims *dims) {
  return lt_apply1(c, LT_OP_mean, 1, &x, &(lt_args_reduce){.dims = *dims, .keepdim = true});
}

/* d / sqrt(variance + eps) * weight + bias; both may be absent. */
static lt_tensor *scaled(lt_ctx *c, lt_tensor *d, lt_tensor *variance, double eps,
                         lt_tensor *weight, lt_tensor *bias) {
  variance = lt_binary_scalar(c, LT_OP_add, variance, lt_scalar_of(eps));
  d = lt_binary(c, LT_OP_mul, d, lt_unary(c, LT_OP_rsqrt, variance));
  if (weight != NULL) d = lt_binary(c, LT_OP_mul, d, lt_wide(c, weight));
  return bias != NULL ? lt_binary(c, LT_OP_add, d, lt_wide(c, bias)) : d;
}

static lt_tensor *input(const lt_call *call, int k) { return k < call->n_in ? call->in[k] : NULL; }

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

/* A value of each channel as [1, C, 1, ...]. */
static lt_tensor *of_channels(lt_ctx *c, lt_tensor *t, const lt_tensor *x) {
  lt_shape s = {.ndim = x->ndim};
  for (int k = 0; k < x->ndim; k++) s.size[k] = k == 1 ? x->size[1] : 1;
  return t == NULL ? NULL : lt_reshape(c, lt_wide(c, t), s);
}

/* Gives y, and the batch's mean and variance where they are not inputs. */
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
