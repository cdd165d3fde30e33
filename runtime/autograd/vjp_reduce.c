/* runtime/autograd/vjp_reduce.c: derivatives of reductions and scans. */
#include "autograd/vjp.h"

/* The shape of the result with the reduced dims kept at size 1. */
static lt_shape kept_shape(lt_shape in, const lt_dims *dims) {
  for (int k = 0; k < dims->n; k++) in.size[dims->dim[k]] = 1;
  return in;
}

/* A result of the op (gradient or value), repeated over what was reduced. */
static lt_tensor *expand(lt_ctx *c, lt_vjp_call *v, lt_tensor *t, const lt_dims *dims) {
  lt_shape in = lt_in_shape(v, 0);
  return lt_expand_to(c, lt_reshape(c, t, kept_shape(in, dims)), in);
}

/* g / n for each of the n elements. */
bool lt_vjp_mean(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_reduce *a = v->args;
  lt_shape in = lt_in_shape(v, 0);
  double n = 1;
  for (int k = 0; k < a->dims.n; k++) n *= (double)in.size[a->dims.dim[k]];
  lt_tensor *g = lt_binary_scalar(c, LT_OP_div, v->grad[0], lt_scalar_of(n));
  v->in[0] = expand(c, v, g, &a->dims);
  return lt_ok(c);
}

/* x with its dims in another order: those that are reduced last and joined, [rest..., n]. */
static lt_tensor *lines_of(lt_ctx *c, lt_tensor *x, const lt_dims *dims, int *order) {
  bool gone[LT_MAX_DIMS] = {false};
  lt_shape s = {0};
  int64_t n = 1;
  int rest = 0;
  for (int k = 0; k < dims->n; k++) gone[dims->dim[k]] = true, n *= x->size[dims->dim[k]];
  for (int k = 0; k < x->ndim; k++)
    if (!gone[k]) order[rest++] = k, s.size[s.ndim++] = x->size[k];
  for (int k = 0; k < dims->n; k++) order[rest + k] = (int)dims->dim[k];
  s.size[s.ndim++] = n;
  return lt_reshape(c, lt_permute(c, x, order), s);
}

/* The product of the others, without a division: each line n times, its own element made 1. */
static lt_tensor *others_of(lt_ctx *c, lt_tensor *x, const lt_dims *dims) {
  int order[LT_MAX_DIMS], back[LT_MAX_DIMS];
  lt_tensor *lines = lines_of(c, x, dims, order), *moved = lt_permute(c, x, order);
  if (lines == NULL || moved == NULL) return NULL;
  int at = lines->ndim - 1;
  int64_t n = lines->size[at];
  lt_shape row = lt_tensor_shape(lines), square = row;
  row.size[at] = 1, row.size[at + 1] = n, row.ndim++;
  square.size[at + 1] = n, square.ndim++;
  lt_tensor *eye = lt_full(c, lt_shape_of(2, (int64_t[]){n, n}), lt_scalar_of(1), LT_BOOL,
                           x->storage->device);
  eye = lt_apply1(c, LT_OP_tril, 1, &eye, NULL);
  eye = lt_apply1(c, LT_OP_triu, 1, &eye, NULL);
  lt_tensor *all = lt_expand_to(c, lt_reshape(c, lines, row), square);
  all = lt_apply1(c, LT_OP_masked_fill, LT_IN(all, eye),
                  &(lt_args_masked_fill){.value = lt_scalar_of(1)});
  all = lt_apply1(c, LT_OP_prod, 1, &all, &(lt_args_reduce){.dims = LT_ONE_DIM(at + 1)});
  for (int k = 0; k < x->ndim; k++) back[order[k]] = k;
  all = lt_reshape(c, all, lt_tensor_shape(moved));
  return all == NULL ? NULL : lt_permute(c, all, back);
}

/* The product of the others: all of them over x, where zeros count apart. That hides what a zero
   does to the derivative, so a recorded backward goes the long way. */
bool lt_vjp_prod(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_reduce *a = v->args;
  const lt_args_reduce keep = {.dims = a->dims, .keepdim = true};
  lt_tensor *x = lt_saved_in(c, v, 0);
  if (x == NULL) return false;
  if (c->modes.grad) {
    lt_tensor *by = others_of(c, x, &a->dims);
    v->in[0] = by == NULL ? NULL : lt_binary(c, LT_OP_mul, expand(c, v, v->grad[0], &a->dims), by);
    return lt_ok(c);
  }
  lt_dtype dtype = (lt_dtype)x->dtype;
  lt_tensor *zero = lt_cast(c, lt_binary_scalar(c, LT_OP_eq, x, lt_scalar_of(0)), dtype);
  lt_tensor *zeros = lt_apply1(c, LT_OP_sum, 1, &zero, &keep);
  lt_tensor *filled = lt_binary(c, LT_OP_add, x, zero);
  lt_tensor *product = lt_apply1(c, LT_OP_prod, 1, &filled, &keep);
  lt_tensor *others = lt_binary(c, LT_OP_div, product, filled);
  lt_tensor *other_zeros = lt_binary(c, LT_OP_sub, zeros, zero);
  lt_tensor *counts = lt_binary_scalar(c, LT_OP_eq, other_zeros, lt_scalar_of(0));
  lt_tensor *g = lt_binary(c, LT_OP_mul, expand(c, v, v->grad[0], &a->dims), others);
  v->in[0] = lt_binary(c, LT_OP_mul, g, counts);
  return lt_ok(c);
}

/* Equal extremes share the gradient. */
static bool share(lt_ctx *c, lt_vjp_call *v, const lt_dims *dims) {
  const lt_args_reduce keep = {.dims = *dims, .keepdim = true};
  lt_tensor *x = lt_saved_in(c, v, 0), *y = lt_saved_out(c, v, 0);
  if (x == NULL || y == NULL) return false;
  lt_tensor *equal = lt_binary(c, LT_OP_eq, x, expand(c, v, y, dims));
  lt_tensor *mask = lt_cast(c, equal, (lt_dtype)x->dtype);
  lt_tensor *count = lt_apply1(c, LT_OP_sum, 1, &mask, &keep);
  lt_tensor *part = lt_binary(c, LT_OP_div, mask, count);
  v->in[0] = lt_binary(c, LT_OP_mul, expand(c, v, v->grad[0], dims), part);
  return lt_ok(c);
}

bool lt_vjp_amax(lt_ctx *c, lt_vjp_call *v) {
  return share(c, v, &((const lt_args_reduce *)v->args)->dims);
}

/* Along a dim the chosen element gets all of it. */
bool lt_vjp_extremum(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_extremum *a = v->args;
  lt_shape in = lt_in_shape(v, 0);
  lt_dims dims = {.n = in.ndim};
  for (int k = 0; k < in.ndim; k++) dims.dim[k] = k;
  if (a->dim == LT_NO_DIM) return share(c, v, &dims);
  lt_tensor *index = lt_saved_out(c, v, 1);
  if (index == NULL) return false;
  if (in.ndim > 0) dims = LT_ONE_DIM(a->dim);
  lt_shape kept = kept_shape(in, &dims);
  const lt_args_extremum_backward args = {.dim = a->dim,
                                          .size = in.ndim > 0 ? in.size[a->dim] : 1};
  lt_tensor *g = lt_reshape(c, v->grad[0], kept);
  v->in[0] = lt_apply1(c, LT_OP_extremum_backward, LT_IN(g, lt_reshape(c, index, kept)), &args);
  return lt_ok(c);
}

/* Each g was put at its index: there it comes back from. */
bool lt_vjp_extremum_backward(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_extremum_backward *a = v->args;
  lt_tensor *index = lt_saved_in(c, v, 1), *g = v->grad[0];
  if (index == NULL) return false;
  v->in[0] = g->ndim == 0 ? g : lt_apply1(c, LT_OP_gather, LT_IN(g, index),
                                          &(lt_args_gather){.dim = a->dim});
  return lt_ok(c);
}

/* Element k is in all sums from k on: the running sum from the other end. Its matrix is lower
   triangular with ones, and the transpose is upper triangular. */
bool lt_vjp_cumsum(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_scan_backward args = {.dim = ((const lt_args_scan *)v->args)->dim};
  v->in[0] = lt_apply1(c, LT_OP_cumsum_backward, 1, &v->grad[0], &args);
  return lt_ok(c);
}

bool lt_vjp_cumsum_backward(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_scan args = {.dim = ((const lt_args_scan_backward *)v->args)->dim};
  v->in[0] = lt_apply1(c, LT_OP_cumsum, 1, &v->grad[0], &args);
  return lt_ok(c);
}
