/* runtime/autograd/vjp_conv.c: derivatives of convolutions and pooling.

   A convolution is linear in x and in weight, so its gradients are convolutions, and theirs again:
   all three ops have derivatives by both of their inputs. */
#include "autograd/vjp.h"

#include <string.h>

#include "ops/spatial.h"

static lt_sizes sizes_of(lt_shape s) {
  lt_sizes r = {.n = s.ndim};
  memcpy(r.size, s.size, sizeof r.size);
  return r;
}

static lt_tensor *forward(lt_ctx *c, lt_tensor *x, lt_tensor *w, const lt_args_convolution *a) {
  return x == NULL || w == NULL ? NULL : lt_apply1(c, LT_OP_convolution, LT_IN(x, w), a);
}

static lt_tensor *backward_input(lt_ctx *c, lt_tensor *g, lt_tensor *w,
                                 const lt_args_convolution *a, lt_shape x) {
  const lt_args_conv_input args = {.stride = a->stride,
                                   .padding = a->padding,
                                   .dilation = a->dilation,
                                   .groups = a->groups,
                                   .size = sizes_of(x)};
  if (g == NULL || w == NULL) return NULL;
  return lt_apply1(c, LT_OP_convolution_backward_input, LT_IN(g, w), &args);
}

/* The gradient by weight, and by bias if asked (n_out 2). */
static bool backward_weight(lt_ctx *c, lt_tensor *g, lt_tensor *x, const lt_args_convolution *a,
                            lt_shape w, int n_out, lt_tensor **out) {
  const lt_args_conv_weight args = {.stride = a->stride,
                                    .padding = a->padding,
                                    .dilation = a->dilation,
                                    .groups = a->groups,
                                    .size = sizes_of(w)};
  return g != NULL && x != NULL &&
         lt_apply(c, LT_OP_convolution_backward_weight, LT_IN(g, x), &args, n_out, out);
}

/* [O] as [1, O, 1, 1]. */
static lt_tensor *per_channel(lt_ctx *c, lt_tensor *t) {
  return lt_reshape(c, t, lt_shape_of(4, (int64_t[]){1, t->numel, 1, 1}));
}

/* The kernel that computes the gradient of the weight reads all of g, so it sums the bias's
   gradient in the same pass; without a wanted weight that is a sum of its own. */
bool lt_vjp_convolution(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_convolution *a = v->args;
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
bool lt_vjp_convolution_backward_input(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_conv_input *i = v->args;
  const lt_args_convolution a = {
      .stride = i->stride, .padding = i->padding, .dilation = i->dilation, .groups = i->groups};
  lt_tensor *x = v->grad[0];
  if (v->need[0]) v->in[0] = forward(c, x, lt_saved_in(c, v, 1), &a);
  if (v->need[1]) backward_weight(c, lt_saved_in(c, v, 0), x, &a, lt_in_shape(v, 1), 1, &v->in[1]);
  return lt_ok(c);
}

/* (g, x) -> weight, bias */
bool lt_vjp_convolution_backward_weight(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_conv_weight *i = v->args;
  const lt_args_convolution a = {
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

/* Shares its first arguments with max_window. */
static lt_args_max_window window_of(const lt_args_max_window_backward *a) {
  return (lt_args_max_window){.kernel_size = a->kernel_size,
                              .stride = a->stride,
                              .padding = a->padding,
                              .dilation = a->dilation,
                              .out = a->out};
}

/* Forward saves the position of each maximum: backward does not compare again, and of equal
   elements the one that forward took receives the gradient. */
bool lt_vjp_max_window(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_max_window *a = v->args;
  const lt_args_max_window_backward args = {.kernel_size = a->kernel_size,
                                            .stride = a->stride,
                                            .padding = a->padding,
                                            .dilation = a->dilation,
                                            .out = a->out,
                                            .size = sizes_of(lt_in_shape(v, 0))};
  lt_tensor *positions = lt_saved_out(c, v, 1);
  if (positions == NULL || v->grad[0] == NULL) return lt_ok(c);
  v->in[0] = lt_apply1(c, LT_OP_max_window_backward, LT_IN(v->grad[0], positions), &args);
  return lt_ok(c);
}

/* (g, positions): what was put there comes back from there. */
bool lt_vjp_max_window_backward(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_max_window_backward *a = v->args;
  const lt_args_max_window window = window_of(a);
  lt_tensor *at = lt_saved_in(c, v, 1), *g = v->grad[0];
  at = lt_window_indices(c, at, &window, a->size.size[3]);
  if (at == NULL) return false;
  at = lt_reshape(c, at, (lt_shape){3, {g->size[0], g->size[1], at->size[2] * at->size[3]}});
  g = lt_reshape(c, g, (lt_shape){3, {g->size[0], g->size[1], g->size[2] * g->size[3]}});
  g = lt_apply1(c, LT_OP_gather, LT_IN(g, at), &(lt_args_gather){.dim = 2});
  v->in[0] = g == NULL ? NULL : lt_reshape(c, g, lt_in_shape(v, 0));
  return lt_ok(c);
}
