/* runtime/cuda/conv.cu: convolution and its gradients: views in the form that conv.h asks for.

   Two ways to the same sums: cuDNN (conv_cudnn.cu) where it is installed and takes the geometry and
   the dtype; products of columns (conv_product.cu) elsewhere, and always for f64. Which one it is
   depends on the call alone, never on time, so that a run repeats its bits. */
#include "cuda/conv.h"
#include "cuda/elementwise.h"

static bool is_row_major(const lt_view *v) {
  int64_t n = 1;
  for (int d = v->ndim - 1; d >= 0; n *= v->size[d--])
    if (v->size[d] != 1 && v->stride[d] != n) return false;
  return true;
}

/* Row-major memory in the place of the view's. */
static bool allocate(lt_ctx *c, lt_view *v, lt_dtype dtype) {
  int64_t n = 1;
  for (int d = v->ndim - 1; d >= 0; d--) v->stride[d] = n, n *= v->size[d];
  v->dtype = dtype;
  v->data = lt_cuda_scratch<char>(c, n * lt_cuda_item_size(dtype));
  return v->data != nullptr;
}

static bool copy(lt_ctx *c, lt_view *v, lt_dtype dtype) {
  lt_view from = *v;
  return allocate(c, v, dtype) && lt_cuda_move(c, v, &from);
}

/* An activation whose h and w are one dim, and a weight, row-major. */
static bool take_activation(lt_ctx *c, lt_tensor *t, lt_dtype dtype, lt_view *out) {
  if (!lt_cuda_view(c, t, out)) return false;
  bool joins = out->size[2] <= 1 || out->size[3] <= 1 ||
               out->stride[2] == out->size[3] * out->stride[3];
  return (joins && out->dtype == dtype) || copy(c, out, dtype);
}
static bool take_weight(lt_ctx *c, lt_tensor *t, lt_dtype dtype, lt_view *out) {
  if (!lt_cuda_view(c, t, out)) return false;
  return (out->dtype == dtype && is_row_major(out)) || copy(c, out, dtype);
}

/* Where a result is made: in place, if it is row-major; `give` brings it there. */
static bool take_result(lt_ctx *c, lt_tensor *t, lt_view *out) {
  return lt_cuda_view(c, t, out) && (is_row_major(out) || allocate(c, out, out->dtype));
}
static bool give(lt_ctx *c, lt_tensor *t, const lt_view *made) {
  lt_view out;
  return lt_cuda_view(c, t, &out) &&
         (out.data == made->data || lt_cuda_move(c, &out, made));
}

/* Geometry of the views in `v`. Counts of positions are of 32 bits in the kernels (lt_quotient). */
static bool describe(lt_ctx *c, lt_cuda_conv *v, lt_pair stride, lt_pair padding, lt_pair dilation,
                     int64_t groups) {
  v->n = v->x.size[0], v->c = v->x.size[1], v->h = v->x.size[2], v->w = v->x.size[3];
  v->o = v->weight.size[0], v->kh = v->weight.size[2], v->kw = v->weight.size[3];
  v->oh = v->y.size[2], v->ow = v->y.size[3];
  v->groups = groups;
  v->stride = stride, v->padding = padding, v->dilation = dilation;
  if (v->h + 2 * padding.h <= INT32_MAX && v->w + 2 * padding.w <= INT32_MAX &&
      v->oh * v->ow <= INT32_MAX)
    return true;
  return lt_cuda_fail(c, LT_ESHAPE, "%s: an image of %lld x %lld is too large with padding "
                      "{%lld, %lld}", lt_cuda_now.op, static_cast<long long>(v->h),
                      static_cast<long long>(v->w), static_cast<long long>(padding.h),
                      static_cast<long long>(padding.w));
}

/* The bias, seen in every position of y. */
static bool view_bias(lt_ctx *c, lt_tensor *t, const lt_view *y, lt_view *out) {
  lt_view bias;
  if (!lt_cuda_view(c, t, &bias)) return false;
  *out = *y;
  out->data = bias.data;
  out->dtype = bias.dtype;
  for (int d = 0; d < 4; d++) out->stride[d] = d == 1 ? bias.stride[0] : 0;
  return true;
}

/* cuDNN's forward has no bias in this interface: one more pass over y. Products begin with y = bias
   instead (beta = 1). */
static bool add_bias(lt_ctx *c, const lt_view *y, const lt_view *bias) {
  lt_view views[3] = {*y, *y, *bias};
  lt_scalar none = {};
  return lt_cuda_row(c, LT_OP_add, LT_F32, 3, views, nullptr, none, none);
}

/* By cuDNN, if it can; `taken` says so. */
static bool by_library(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_pass pass, bool *taken) {
  *taken = false;
  return lt_cuda_conv_library == nullptr || lt_cuda_conv_library(c, v, pass, taken);
}

/* `bias` may be NULL. */
static bool forward(lt_ctx *c, const lt_cuda_conv *v, lt_tensor *bias) {
  lt_view all;
  bool taken;
  if (bias != nullptr && !view_bias(c, bias, &v->y, &all)) return false;
  if (!by_library(c, v, LT_CUDA_CONV_FORWARD, &taken)) return false;
  if (taken) return bias == nullptr || add_bias(c, &v->y, &all);
  return (bias == nullptr || lt_cuda_move(c, &v->y, &all)) &&
         lt_cuda_conv_forward(c, v, bias != nullptr);
}

/* Without elements on either side the sum is empty: zeros. */
static bool backward(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_pass pass) {
  bool taken;
  if (lt_cuda_numel(&v->x) == 0 || lt_cuda_numel(&v->y) == 0)
    return lt_cuda_fill_view(c, pass == LT_CUDA_CONV_INPUT ? &v->x : &v->weight,
                             lt_cuda_number(0));
  if (!by_library(c, v, pass, &taken)) return false;
  if (taken) return true;
  return pass == LT_CUDA_CONV_INPUT ? lt_cuda_conv_input(c, v) : lt_cuda_conv_weight(c, v);
}

/* f16, bf16 and f32 operands of other dtypes are cast first: both ways want one dtype. */
LT_CUDA_KERNEL(convolution) {
  const lt_args_convolution *a = lt_cuda_args<lt_args_convolution>(call);
  lt_cuda_conv v = {};
  if (!take_result(c, call->out[0], &v.y)) return false;
  if (lt_cuda_numel(&v.y) == 0) return true;
  return take_activation(c, call->in[0], v.y.dtype, &v.x) &&
         take_weight(c, call->in[1], v.y.dtype, &v.weight) &&
         describe(c, &v, a->stride, a->padding, a->dilation, a->groups) &&
         forward(c, &v, call->n_in > 2 ? call->in[2] : nullptr) &&
         give(c, call->out[0], &v.y);
}

LT_CUDA_KERNEL(convolution_backward_input) {
  const lt_args_conv_input *a = lt_cuda_args<lt_args_conv_input>(call);
  lt_cuda_conv v = {};
  if (!take_result(c, call->out[0], &v.x)) return false;
  if (lt_cuda_numel(&v.x) == 0) return true;
  return take_activation(c, call->in[0], v.x.dtype, &v.y) &&
         take_weight(c, call->in[1], v.x.dtype, &v.weight) &&
         describe(c, &v, a->stride, a->padding, a->dilation, a->groups) &&
         backward(c, &v, LT_CUDA_CONV_INPUT) && give(c, call->out[0], &v.x);
}

/* The bias's gradient, by the reduction that scripts call: its order of sums. */
static bool sum_by_channel(lt_ctx *c, lt_tensor *g, lt_tensor *out) {
  lt_args_reduce args = {};
  args.dims.n = 3;
  args.dims.dim[1] = 2, args.dims.dim[2] = 3; /* and 0 */
  lt_call sum = {LT_OP_sum, 1, 1, &g, &out, &args, sizeof args};
  return lt_cuda_sum(c, &sum);
}

LT_CUDA_KERNEL(convolution_backward_weight) {
  const lt_args_conv_weight *a = lt_cuda_args<lt_args_conv_weight>(call);
  lt_cuda_conv v = {};
  if (!take_result(c, call->out[0], &v.weight) ||
      !take_activation(c, call->in[0], v.weight.dtype, &v.y) ||
      !take_activation(c, call->in[1], v.weight.dtype, &v.x) ||
      !describe(c, &v, a->stride, a->padding, a->dilation, a->groups))
    return false;
  bool biased = call->n_out > 1 && call->out[1] != nullptr;
  return backward(c, &v, LT_CUDA_CONV_WEIGHT) && give(c, call->out[0], &v.weight) &&
         (!biased || sum_by_channel(c, call->in[0], call->out[1]));
}
