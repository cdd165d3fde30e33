/* runtime/cuda/group_norm.cu: layer norm of each group of channels, with weights of channels.

   Y. Wu, K. He, Group Normalization, 2018. In these four dims a group of an element of the batch is
   a line over the last two, so the kernels of layer norm do the rest. */
#include "cuda/index.h"
#include "cuda/norm.h"

/* Row-major [N, C, ...] as [N, groups, channels of a group, values of a channel]. */
static lt_view in_groups(const lt_view *v, int64_t groups) {
  lt_view g = *v;
  g.ndim = 4;
  g.size[1] = groups;
  g.size[2] = v->size[1] / groups;
  g.size[3] = 1;
  for (int d = 2; d < v->ndim; d++) g.size[3] *= v->size[d];
  g.stride[3] = 1;
  for (int d = 2; d >= 0; d--) g.stride[d] = g.stride[d + 1] * g.size[d + 1];
  return g;
}

/* A value of each channel under these dims; an absent one has no data. */
static bool of_channels(lt_ctx *c, const lt_call *call, int k, const lt_view *x, lt_view *out) {
  lt_view v;
  if (!lt_cuda_view(c, call->n_in > k ? call->in[k] : nullptr, &v)) return false;
  int64_t step = v.data != nullptr ? v.stride[0] : 0;
  *out = *x;
  out->data = v.data;
  out->dtype = v.dtype;
  out->stride[0] = out->stride[3] = 0;
  out->stride[1] = step * x->size[2];
  out->stride[2] = step;
  return true;
}

static bool input(lt_ctx *c, const lt_call *call, int k, int64_t groups, lt_view *out) {
  lt_view v, own;
  if (!lt_cuda_view(c, call->in[k], &v) || !lt_cuda_row_major(c, &v, v.dtype, &own)) return false;
  *out = in_groups(&own, groups);
  return true;
}

static lt_cuda_norm norm_of(const lt_args_group_norm *a) {
  return {1u << 2 | 1u << 3, a->eps, true, nullptr, a->num_groups};
}

/* Row-major operands alone: other layouts are copied, as groups of channels-last memory are
   not lines. */
LT_CUDA_KERNEL(group_norm) {
  lt_view v[4], y, own;
  const lt_args_group_norm *a = lt_cuda_args<lt_args_group_norm>(call);
  lt_cuda_norm n = norm_of(a);
  if (!input(c, call, 0, a->num_groups, &v[0]) || !lt_cuda_view(c, call->out[0], &y) ||
      !lt_cuda_result(c, &y, y.dtype, &own) || !of_channels(c, call, 1, &v[0], &v[2]) ||
      !of_channels(c, call, 2, &v[0], &v[3]))
    return false;
  v[1] = in_groups(&own, a->num_groups);
  return lt_cuda_numel(&y) == 0 ||
         (lt_cuda_norm_rows(c, &n, false, v) && lt_cuda_deliver(c, &y, &own));
}

/* (gradient, x, weight) to gradients of x, weight, bias. */
LT_CUDA_KERNEL(group_norm_backward) {
  lt_view v[4], y, own, grads[2];
  const lt_args_group_norm *a = lt_cuda_args<lt_args_group_norm>(call);
  lt_cuda_norm n = norm_of(a);
  if (!input(c, call, 1, a->num_groups, &v[0]) || !input(c, call, 0, a->num_groups, &v[1]) ||
      !of_channels(c, call, 2, &v[0], &v[2]) || !lt_cuda_view(c, call->out[0], &y) ||
      !lt_cuda_result(c, &y, y.dtype, &own))
    return false;
  v[3] = in_groups(&own, a->num_groups);
  for (int k = 0; k < 2; k++) {
    if (!lt_cuda_view(c, call->out[k + 1], &grads[k])) return false;
    grads[k].ndim = 2; /* [groups, channels of a group] */
    grads[k].size[0] = a->num_groups, grads[k].size[1] = v[0].size[2];
    grads[k].stride[1] = grads[k].stride[0];
    grads[k].stride[0] *= v[0].size[2];
  }
  return lt_cuda_norm_backward(c, &n, v, grads) && lt_cuda_deliver(c, &y, &own);
}
