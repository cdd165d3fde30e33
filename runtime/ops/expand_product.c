/* runtime/ops/expand_product.c: composite products.

   All products end in matmul, which alone has kernels of its own: shapes are checked here or in
   infer_product.c, so that errors name the op that was called. */
#include <math.h>

#include "ops/expand.h"

bool lt_expand_outer(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_shape column = {.ndim = 2, .size = {call->in[0]->numel, 1}};
  *out = lt_binary(c, LT_OP_mul, lt_reshape(c, call->in[0], column), call->in[1]);
  return *out != NULL;
}

lt_tensor *lt_times(lt_ctx *c, lt_tensor *x, double factor, const char *name) {
  bool is_integer = x != NULL && !lt_dtype_is_float((lt_dtype)x->dtype);
  if (x == NULL || factor == 1) return x;
  if (is_integer && factor != floor(factor)) {
    lt_fail(c, LT_EDTYPE, "%s: %s = %g does not fit into a tensor of %s", c->op, name, factor,
            lt_dtype_name((lt_dtype)x->dtype));
    return NULL;
  }
  lt_scalar by = is_integer ? lt_scalar_int((int64_t)factor) : lt_scalar_of(factor);
  return lt_binary_scalar(c, LT_OP_mul, x, by);
}

/* Zeros that have the history of x, whatever it holds: x times 0 would keep its NaNs and
   infinities, and no history would leave x.grad nil where PyTorch gives zeros. */
static lt_tensor *nothing_of(lt_ctx *c, lt_tensor *x) {
  lt_scalar yes = lt_scalar_int(1);
  lt_tensor *all = lt_full(c, lt_tensor_shape(x), yes, LT_BOOL, x->storage->device);
  return lt_apply1(c, LT_OP_masked_fill, LT_IN(x, all),
                   &(lt_args_masked_fill){.value = lt_scalar_int(0)});
}

static lt_tensor *product(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_apply1(c, LT_OP_matmul, LT_IN(a, b), NULL);
}

bool lt_expand_bmm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  *out = product(c, call->in[0], call->in[1]);
  return *out != NULL;
}

bool lt_expand_dot(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  *out = product(c, call->in[0], call->in[1]);
  return *out != NULL;
}

bool lt_expand_baddbmm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return lt_expand_addmm(c, call, out);
}

/* Dims of both alternate: [a1, b1, a2, b2, ...], then pairs are joined. At most 4 at a time. The
   half of LT_MAX_DIMS is the limit, as each dim of the is_integer is a pair for a while. */
bool lt_expand_kron(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *a = call->in[0], *b = call->in[1];
  int n = a->ndim > b->ndim ? a->ndim : b->ndim;
  if (2 * n > LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "kron: takes at most %d dims, got %s and %s", LT_MAX_DIMS / 2,
                   LT_TENSOR_STR(a), LT_TENSOR_STR(b));
  lt_shape of_a = {.ndim = 2 * n}, of_b = of_a, result = {.ndim = n};
  for (int k = 0; k < n; k++) {
    int64_t size_a = k < n - a->ndim ? 1 : a->size[k - (n - a->ndim)];
    int64_t size_b = k < n - b->ndim ? 1 : b->size[k - (n - b->ndim)];
    of_a.size[2 * k] = size_a, of_a.size[2 * k + 1] = 1;
    of_b.size[2 * k] = 1, of_b.size[2 * k + 1] = size_b;
    result.size[k] = size_a * size_b;
  }
  lt_tensor *y = lt_binary(c, LT_OP_mul, lt_reshape(c, a, of_a), lt_reshape(c, b, of_b));
  *out = y == NULL ? NULL : lt_reshape(c, y, result);
  return *out != NULL;
}

/* x [.., N, D] as [.., 1, N, D] or [.., N, 1, D]. */
static lt_tensor *beside(lt_ctx *c, lt_tensor *x, int at) {
  return lt_apply1(c, LT_OP_unsqueeze, 1, &x, &(lt_args_unsqueeze){.dim = x->ndim + at});
}

static lt_tensor *squares(lt_ctx *c, lt_tensor *x) {
  return lt_reduced(c, LT_OP_sum, lt_binary(c, LT_OP_mul, x, x), x->ndim - 1, true);
}

/* |a|^2 + |b|^2 - 2 a b, which needs no [.., P, R, D]. Rounding can make it negative for rows that
   are nearly equal: at least 0. About half the digits are lost there (the difference of numbers as
   large as |a|^2): PyTorch's trade too. */
static lt_tensor *squared_distances(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  lt_tensor *of_b = squares(c, b), *across = lt_transpose(c, b, b->ndim - 2, b->ndim - 1);
  of_b = of_b == NULL ? NULL : lt_transpose(c, of_b, of_b->ndim - 2, of_b->ndim - 1);
  lt_tensor *d = lt_binary_scalar(c, LT_OP_mul, product(c, a, across), lt_scalar_int(-2));
  d = lt_binary(c, LT_OP_add, lt_binary(c, LT_OP_add, d, squares(c, a)), of_b);
  return lt_apply1(c, LT_OP_clamp, 1, &d, &(lt_args_clamp){.min = lt_scalar_int(0)});
}

/* As PyTorch's "use_mm_for_euclid_dist_if_necessary": above 25 rows the distances of p = 2 come
   from a product, P R D multiply-adds in matmul and P R numbers, where differences take P R D
   numbers of memory. */
bool lt_expand_cdist(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_cdist *args = call->args;
  lt_tensor *a = call->in[0], *b = call->in[1];
  if (args->p == 2 && (a->size[a->ndim - 2] > 25 || b->size[b->ndim - 2] > 25)) {
    lt_tensor *d = squared_distances(c, a, b);
    *out = lt_root(c, d);
    return *out != NULL;
  }
  lt_tensor *d = lt_binary(c, LT_OP_sub, beside(c, a, -1), beside(c, b, -2));
  if (d == NULL) return false;
  const lt_args_norm last = {.p = args->p, .dims = LT_ONE_DIM(d->ndim - 1)};
  *out = lt_apply1(c, LT_OP_norm, 1, &d, &last);
  return *out != NULL;
}

/* beta * input + alpha * (a b); beta = 0 ignores the input, NaN and all. BLAS's convention for beta
   = 0, for buffers that are not initialized. */
bool lt_expand_addmm(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_addmm *a = call->args;
  lt_tensor *input = call->in[0];
  lt_tensor *y = lt_apply1(c, LT_OP_matmul, LT_IN(call->in[1], call->in[2]), NULL);
  y = lt_times(c, y, a->alpha, "alpha");
  input = a->beta == 0 ? nothing_of(c, input) : lt_times(c, input, a->beta, "beta");
  *out = lt_binary(c, LT_OP_add, input, y);
  return *out != NULL;
}
