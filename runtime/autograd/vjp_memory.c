/* runtime/autograd/vjp_memory.c: derivatives of copies, casts and views.

   A view reads elements of x at other positions. Its derivative is the adjoint: the inverse view
   where each element is read once (reshape, permute), a sum where it may be read several times
   (expand, as_strided). The pairs as_strided and as_strided_backward, scatter and zero are closed
   under differentiation, so that gradients of any order work. */
#include "autograd/vjp.h"

/* The walk casts each gradient to the dtype of the forward input. */
bool lt_vjp_cast(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = v->grad[0];
  return lt_ok(c);
}

bool lt_vjp_clone(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = v->grad[0];
  return lt_ok(c);
}

bool lt_vjp_transfer(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = lt_to_device(c, v->grad[0], v->node->edges[0].device);
  return lt_ok(c);
}

/* What was overwritten gets zeros: its leaves have a gradient, as in PyTorch. */
static lt_tensor *zeros_like(lt_ctx *c, const lt_tensor *g) {
  return lt_full(c, lt_tensor_shape(g), lt_scalar_of(0), (lt_dtype)g->dtype, g->storage->device);
}

/* (overwritten, source) */
bool lt_vjp_copy(lt_ctx *c, lt_vjp_call *v) {
  if (v->need[0]) v->in[0] = zeros_like(c, v->grad[0]);
  if (v->need[1]) v->in[1] = lt_sum_to(c, v->grad[0], lt_in_shape(v, 1));
  return lt_ok(c);
}

bool lt_vjp_fill(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = zeros_like(c, v->grad[0]);
  return lt_ok(c);
}

bool lt_vjp_view(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = lt_reshape(c, v->grad[0], lt_in_shape(v, 0));
  return lt_ok(c);
}

/* The inverse permutation. */
bool lt_vjp_permute(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_permute *a = v->args;
  int back[LT_MAX_DIMS];
  for (int k = 0; k < a->dims.n; k++) back[a->dims.dim[k]] = k;
  v->in[0] = lt_permute(c, v->grad[0], back);
  return lt_ok(c);
}

/* An element that was repeated has the sum over its repetitions. */
bool lt_vjp_expand(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = lt_sum_to(c, v->grad[0], lt_in_shape(v, 0));
  return lt_ok(c);
}

/* Zeros of the shape of x, to which g is added at the strides: elements that overlap, as of windows
   made by unfold, have the sum of their gradients. */
bool lt_vjp_as_strided(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_as_strided *a = v->args;
  lt_shape full = lt_in_shape(v, 0);
  lt_args_as_strided_backward pad = {
      .full = {.n = full.ndim}, .size = a->size, .stride = a->stride, .offset = a->offset};
  for (int k = 0; k < full.ndim; k++) pad.full.size[k] = full.size[k];
  v->in[0] = lt_apply1(c, LT_OP_as_strided_backward, 1, &v->grad[0], &pad);
  return lt_ok(c);
}

/* g at the elements of the view. */
static lt_tensor *part(lt_ctx *c, lt_tensor *g, const lt_args_as_strided *a) {
  return lt_apply1(c, LT_OP_as_strided, 1, &g, a);
}

/* g with zeros where the view is: those elements of x were overwritten, and had no effect. */
static lt_tensor *rest(lt_ctx *c, lt_tensor *g, const lt_args_as_strided *a) {
  const lt_args_as_strided_zero zero = {.size = a->size, .stride = a->stride, .offset = a->offset};
  return lt_apply1(c, LT_OP_as_strided_zero, 1, &g, &zero);
}

bool lt_vjp_as_strided_scatter(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_as_strided_scatter *s = v->args;
  const lt_args_as_strided a = {.size = s->size, .stride = s->stride, .offset = s->offset};
  if (v->need[0]) v->in[0] = rest(c, v->grad[0], &a);
  if (v->need[1]) v->in[1] = lt_sum_to(c, part(c, v->grad[0], &a), lt_in_shape(v, 1));
  return lt_ok(c);
}

bool lt_vjp_as_strided_zero(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_as_strided_zero *z = v->args;
  const lt_args_as_strided a = {.size = z->size, .stride = z->stride, .offset = z->offset};
  v->in[0] = rest(c, v->grad[0], &a);
  return lt_ok(c);
}

bool lt_vjp_as_strided_backward(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_as_strided_backward *p = v->args;
  const lt_args_as_strided a = {.size = p->size, .stride = p->stride, .offset = p->offset};
  v->in[0] = part(c, v->grad[0], &a);
  return lt_ok(c);
}

/* Each element counts once in the sum: g, repeated by an expanded view, which has no memory of its
   own. */
bool lt_vjp_sum(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_reduce *a = v->args;
  lt_shape in = lt_in_shape(v, 0), kept = in;
  for (int k = 0; k < in.ndim; k++)
    if (a->dims.n < 0) kept.size[k] = 1;
  for (int k = 0; k < a->dims.n; k++) kept.size[a->dims.dim[k]] = 1;
  v->in[0] = lt_expand_to(c, lt_reshape(c, v->grad[0], kept), in);
  return lt_ok(c);
}
