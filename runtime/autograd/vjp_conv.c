/* runtime/autograd/vjp_conv.c: derivatives of convolutions and pooling.

   A convolution is linear in x and in weight, so its gradients are convolutions, and theirs again:
   all three ops have derivatives by both of their inputs. */
#include "autograd/vjp.h"

#include <string.h>

static lt_sizes sizes_of(lt_shape s) {
  lt_sizes r = {.n = s.ndim};
  memcpy(r.size, s.size, sizeof r.size);
  return r;
}

static lt_tensor *forward(lt_ctx *c, lt_tensor *x, lt_tensor *w, const lt_args_conv *a) {
  return x == NULL || w == NULL ? NULL : lt_apply1(c, LT_OP_conv2d, LT_IN(x, w), a);
}

static lt_tensor *backward_input(lt_ctx *c, lt_tensor *g, lt_tensor *w, const lt_args_conv *a,
                                 lt_shape x) {
  const lt_args_conv_input args = {.stride = a->stride,
                                   .padding = a->padding,
                                   .dilation = a->dilation,
                                   .groups = a->groups,
                                   .size = sizes_of(x)};
  return g == NULL || w == NULL ? NULL
                                : lt_apply1(c, LT_OP_conv2d_backward_input, LT_IN(g, w), &args);
}

/* The gradient by weight, and by bias if asked (n_out 2). */
static bool backward_weight(lt_ctx *c, lt_tensor *g, lt_tensor *x, const lt_args_conv *a,
                            lt_shape w, int n_out, lt_tensor **out) {
  const lt_args_conv_weight args = {.stride = a->stride,
                                    .padding = a->padding,
                                    .dilation = a->dilation,
                                    .groups = a->groups,
                                    .size = sizes_of(w)};
  return g != NULL && x != NULL &&
         lt_apply(c, LT_OP_conv2d_backward_weight, LT_IN(g, x), &args, n_out, out);
}

/* [O] as [1, O, 1, 1]. */
static lt_tensor *per_channel(lt_ctx *c, lt_tensor *t) {
  return lt_reshape(c, t, lt_shape_of(4, (int64_t[]){1, t->numel, 1, 1}));
}

bool lt_vjp_conv2d(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_conv *a = v->args;
  lt_tensor *g = v->grad[0];
  bool bias = v->node->n_in > 2 && v->need[2];
  if (v->need[0]) v->in[0] = backward_input(c, g, lt_saved_in(c, v, 1), a, lt_in_shape(v, 0));
  if (v->need[1])
    return backward_weight(c, g, lt_saved_in(c, v, 0), a, lt_in_shape(v, 1), bias ? 2 : 1,
                           &v->in[1]);
  if (!bias) return lt_ok(c);
  g = lt_sum_to(c, g, lt_shape_of(4, (int64_t[]){1, g->size[1], 1, 1}));
  v->in[2] = g == NULL ? NULL : lt_reshape(c, g, lt_in_shape(v, 2));
  return lt_ok(c);
}

/* (g, weight) -> x */
bool lt_vjp_conv2d_backward_input(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_conv_input *i = v->args;
  const lt_args_conv a = {
      .stride = i->stride, .padding = i->padding, .dilation = i->dilation, .groups = i->groups};
  lt_tensor *x = v->grad[0];
  if (v->need[0]) v->in[0] = forward(c, x, lt_saved_in(c, v, 1), &a);
  if (v->need[1]) backward_weight(c, lt_saved_in(c, v, 0), x, &a, lt_in_shape(v, 1), 1, &v->in[1]);
  return lt_ok(c);
}

/* (g, x) -> weight, bias */
bool lt_vjp_conv2d_backward_weight(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_conv_weight *i = v->args;
  const lt_args_conv a = {
      .stride = i->stride, .padding = i->padding, .dilation = i->dilation, .groups = i->groups};
  lt_tensor *w = v->grad[0], *bias = v->node->n_out > 1 ? v->grad[1] : NULL;
  if (v->need[0] && w != NULL) v->in[0] = forward(c, lt_saved_in(c, v, 1), w, &a);
  if (v->need[0] && bias != NULL) {
    bias = lt_expand_to(c, per_channel(c, bias), lt_in_shape(v, 0));
    v->in[0] = v->in[0] == NULL ? bias : lt_binary(c, LT_OP_add, v->in[0], bias);
  }
  if (v->need[1] && w != NULL)
    v->in[1] = backward_input(c, lt_saved_in(c, v, 0), w, &a, lt_in_shape(v, 1));
  return lt_ok(c);
}

bool lt_vjp_max_pool2d(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_pool *a = v->args;
  const lt_args_pool_backward args = {.kernel_size = a->kernel_size,
                                      .stride = a->stride,
                                      .padding = a->padding,
                                      .size = sizes_of(lt_in_shape(v, 0))};
  lt_tensor *positions = lt_saved_out(c, v, 1);
  if (positions == NULL || v->grad[0] == NULL) return lt_ok(c);
  v->in[0] = lt_apply1(c, LT_OP_max_pool2d_backward, LT_IN(v->grad[0], positions), &args);
  return lt_ok(c);
}

/* 0, 1, .. n-1 times `step`, as [1, n] or [n, 1]. */
static lt_tensor *steps(lt_ctx *c, int64_t n, int64_t step, bool column, lt_device device) {
  lt_shape s = lt_shape_of(2, column ? (int64_t[]){n, 1} : (int64_t[]){1, n});
  lt_tensor *t = lt_full(c, s, lt_scalar_int(step), LT_I64, device);
  t = lt_apply1(c, LT_OP_cumsum, 1, &t, &(lt_args_scan){.dim = column ? 0 : 1});
  return lt_binary_scalar(c, LT_OP_sub, t, lt_scalar_int(step));
}

/* Where each result of max_pool2d was found, counted in the whole image: [N, C, OH OW]. */
static lt_tensor *places(lt_ctx *c, lt_tensor *at, const lt_args_pool_backward *a) {
  lt_shape s = lt_tensor_shape(at);
  int64_t width = a->size.size[3];
  lt_scalar kernel = lt_scalar_int(a->kernel_size.w);
  lt_device device = at->storage->device;
  at = lt_cast(c, at, LT_I64);
  lt_tensor *h = lt_binary_scalar(c, LT_OP_floor_divide, at, kernel);
  lt_tensor *w = lt_binary(c, LT_OP_sub, at, lt_binary_scalar(c, LT_OP_mul, h, kernel));
  h = lt_binary(c, LT_OP_add, h, steps(c, s.size[2], a->stride.h, true, device));
  w = lt_binary(c, LT_OP_add, w, steps(c, s.size[3], a->stride.w, false, device));
  h = lt_binary_scalar(c, LT_OP_mul, h, lt_scalar_int(width));
  h = lt_binary_scalar(c, LT_OP_sub, h, lt_scalar_int(a->padding.h * width + a->padding.w));
  return lt_reshape(c, lt_binary(c, LT_OP_add, h, w),
                    lt_shape_of(3, (int64_t[]){s.size[0], s.size[1], s.size[2] * s.size[3]}));
}

/* (g, positions): what was put there comes back from there. */
bool lt_vjp_max_pool2d_backward(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_pool_backward *a = v->args;
  lt_tensor *at = lt_saved_in(c, v, 1), *g = v->grad[0];
  if (at == NULL) return false;
  at = places(c, at, a);
  const int64_t flat[] = {g->size[0], g->size[1], g->size[2] * g->size[3]};
  g = lt_reshape(c, g, lt_shape_of(3, flat));
  g = lt_apply1(c, LT_OP_gather, LT_IN(g, at), &(lt_args_gather){.dim = 2});
  v->in[0] = g == NULL ? NULL : lt_reshape(c, g, lt_in_shape(v, 0));
  return lt_ok(c);
}
