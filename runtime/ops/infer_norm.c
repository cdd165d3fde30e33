/* runtime/ops/infer_norm.c: shapes of norms. */
#include <float.h>

#include "ops/infer.h"

/* Norms over the last dims: weight and bias have their shape. */
static bool infer_last_dims(lt_ctx *c, lt_infer *i, const lt_sizes *normalized) {
  const lt_tensor *x = i->in[0];
  lt_shape shape = lt_shape_of(normalized->n, normalized->size);
  bool fits = shape.ndim > 0 && shape.ndim <= x->ndim;
  for (int k = 0; k < shape.ndim && fits; k++)
    fits = shape.size[k] == x->size[x->ndim - shape.ndim + k];
  if (!lt_infer_float(c, i, 0)) return false;
  if (!fits)
    return lt_fail(c, LT_ESHAPE, "%s: the last dims of %s are not the normalized shape %s",
                   i->op->name, LT_TENSOR_STR(x), LT_SHAPE_STR(shape));
  for (int k = 1; k < i->n_in; k++)
    if (i->in[k] != NULL && !lt_shape_equal(lt_tensor_shape(i->in[k]), shape))
      return lt_fail(c, LT_ESHAPE, "%s: %s of %s for the normalized shape %s", i->op->name,
                     k == 1 ? "weight" : "bias", LT_TENSOR_STR(i->in[k]), LT_SHAPE_STR(shape));
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(x), .dtype = (lt_dtype)x->dtype};
  return true;
}

bool lt_infer_layer_norm(lt_ctx *c, lt_infer *i) {
  const lt_args_layer_norm *a = i->args;
  return infer_last_dims(c, i, &a->normalized_shape);
}

/* eps defaults to the epsilon of the dtype that is computed in, as torch.nn.RMSNorm's (f32 for
   16-bit x). */
bool lt_infer_rms_norm(lt_ctx *c, lt_infer *i) {
  lt_args_rms_norm *a = i->args;
  if (a->eps.kind == LT_NO_SCALAR)
    a->eps = lt_scalar_of(i->in[0]->dtype == LT_F64 ? DBL_EPSILON : (double)FLT_EPSILON);
  return infer_last_dims(c, i, &a->normalized_shape);
}

/* (gradient, x, weight) to gradients of x and, with a weight, of weight and bias. Gradients of
   weights are sums over all rows: they stay in f32 until they are added to .grad. */
static bool infer_backward(lt_ctx *c, lt_infer *i, const lt_sizes *normalized, int n_out) {
  lt_dtype dtype = (lt_dtype)i->in[1]->dtype;
  i->n_out = i->n_in > 2 && i->in[2] != NULL ? n_out : 1;
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[1]), .dtype = dtype};
  for (int k = 1; k < n_out; k++)
    i->out[k] = (lt_meta){.shape = lt_shape_of(normalized->n, normalized->size),
                          .dtype = dtype == LT_F64 ? LT_F64 : LT_F32};
  return lt_ok(c);
}

bool lt_infer_layer_norm_backward(lt_ctx *c, lt_infer *i) {
  const lt_args_layer_norm_backward *a = i->args;
  return infer_backward(c, i, &a->normalized_shape, 3);
}

bool lt_infer_rms_norm_backward(lt_ctx *c, lt_infer *i) {
  const lt_args_rms_norm_backward *a = i->args;
  return infer_backward(c, i, &a->normalized_shape, 2);
}

bool lt_infer_group_norm(lt_ctx *c, lt_infer *i) {
  const lt_args_group_norm *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!lt_infer_float(c, i, 0)) return false;
  if (x->ndim < 2 || x->size[1] == 0 || (x->numel == 0 && x->size[0] > 0))
    return lt_fail(c, LT_ESHAPE, "group_norm: needs x [N, C, ...] with elements, got %s",
                   LT_TENSOR_STR(x));
  if (a->num_groups < 1 || x->size[1] % a->num_groups != 0)
    return lt_fail(c, LT_ESHAPE, "group_norm: the channels of %s are not num_groups = %lld equal "
                   "groups", LT_TENSOR_STR(x), (long long)a->num_groups);
  for (int k = 1; k < i->n_in; k++)
    if (i->in[k] != NULL && (i->in[k]->ndim != 1 || i->in[k]->numel != x->size[1]))
      return lt_fail(c, LT_ESHAPE, "group_norm: %s of %s for the %lld channels of %s",
                     k == 1 ? "weight" : "bias", LT_TENSOR_STR(i->in[k]), (long long)x->size[1],
                     LT_TENSOR_STR(x));
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(x), .dtype = (lt_dtype)x->dtype};
  return true;
}

/* (gradient, x, weight) to gradients of x, weight, bias. */
bool lt_infer_group_norm_backward(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[1];
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(x), .dtype = (lt_dtype)x->dtype};
  for (int k = 1; k < 3; k++)
    i->out[k] = (lt_meta){.shape = lt_shape_of(1, &x->size[1]),
                          .dtype = x->dtype == LT_F64 ? LT_F64 : LT_F32};
  return lt_ok(c);
}

/* Strides as of [N, ..., C]; dims of size 1 may have any, which makes a tensor both formats at
   once. */
bool lt_channels_last(const lt_tensor *x) {
  int64_t expected = x->ndim > 1 ? x->size[1] : 1;
  if (x->ndim < 3 || (x->size[1] != 1 && x->stride[1] != 1)) return false;
  for (int k = x->ndim - 1; k >= 0; k--) {
    if (k == 1) continue;
    if (x->size[k] != 1 && x->stride[k] != expected) return false;
    expected *= x->size[k];
  }
  return true;
}

/* (x, weight, bias, mean, variance) to y, and to mean and variance where they are not inputs. One
   value a channel has no variance: its output would be the bias, and its gradient 0; PyTorch
   refuses it too. Dense x that is neither row-major nor channels last gets a row-major result, as
   kernels know those two. */
bool lt_infer_batch_norm(lt_ctx *c, lt_infer *i) {
  static const char *const names[] = {"x", "weight", "bias", "running_mean", "running_var"};
  const lt_tensor *x = i->in[0];
  if (!lt_infer_float(c, i, 0)) return false;
  if (x->ndim < 2)
    return lt_fail(c, LT_ESHAPE, "%s: needs x [N, C, ...], got %s", i->op->name, LT_TENSOR_STR(x));
  for (int k = 1; k < i->n_in; k++)
    if (i->in[k] != NULL && (i->in[k]->ndim != 1 || i->in[k]->numel != x->size[1]))
      return lt_fail(c, LT_ESHAPE, "%s: %s of %s for the %lld channels of %s", i->op->name,
                     names[k], LT_TENSOR_STR(i->in[k]), (long long)x->size[1], LT_TENSOR_STR(x));
  bool mean = i->n_in > 3 && i->in[3] != NULL, variance = i->n_in > 4 && i->in[4] != NULL;
  if (mean != variance)
    return lt_fail(c, LT_EARG, "%s: %s is missing", i->op->name, mean ? names[4] : names[3]);
  if (mean && ((const lt_args_batch_norm *)i->args)->training)
    return lt_fail(c, LT_EARG, "%s: training = true updates no running means here; leave them out, "
                   "or use nn.BatchNorm2d, which does", i->op->name);
  int64_t each = x->size[1] > 0 ? x->numel / x->size[1] : 0; /* values of a channel */
  if (i->op == &lt_ops[LT_OP_instance_norm] && x->size[0] > 0) each /= x->size[0];
  if (!mean && each == 1)
    return lt_fail(c, LT_ESHAPE, "%s: needs more than one value per channel: %s", i->op->name,
                   LT_TENSOR_STR(x));
  lt_meta_of(&i->out[0], x);
  if (i->out[0].strided && !lt_channels_last(x)) i->out[0].strided = false;
  i->n_out = mean ? 1 : 3;
  for (int k = 1; k < 3; k++)
    i->out[k] = (lt_meta){.shape = lt_shape_of(1, &x->size[1]),
                          .dtype = x->dtype == LT_F64 ? LT_F64 : LT_F32};
  return true;
}

/* (gradient, x, mean, variance, weight) to gradients of x, weight, bias. */
bool lt_infer_batch_norm_backward(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[1];
  lt_meta_of(&i->out[0], x);
  if (i->out[0].strided && !lt_channels_last(x)) i->out[0].strided = false;
  for (int k = 1; k < 3; k++)
    i->out[k] = (lt_meta){.shape = lt_shape_of(1, &x->size[1]),
                          .dtype = x->dtype == LT_F64 ? LT_F64 : LT_F32};
  return lt_ok(c);
}
