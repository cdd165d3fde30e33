/* runtime/ops/expand_pad.c: elements added around a tensor.

   PyTorch's order of `pad`: pairs (before, after) from the last dim on; negative numbers crop.
   Zeros are the gradient of taking a strided part (one op, with a derivative); the other modes are
   an index_select for each dim, whose gradient adds what was repeated. */
#include "ops/expand.h"

/* What is added before and after dim `dim`: the list begins with the last dim. */
static int64_t before(const lt_args_pad *a, int ndim, int dim) {
  int k = 2 * (ndim - 1 - dim);
  return k < a->pad.n ? a->pad.size[k] : 0;
}
static int64_t after(const lt_args_pad *a, int ndim, int dim) {
  int k = 2 * (ndim - 1 - dim) + 1;
  return k < a->pad.n ? a->pad.size[k] : 0;
}

/* What is left when negative ones have cropped. */
static lt_tensor *cropped(lt_ctx *c, lt_tensor *x, const lt_args_pad *a) {
  for (int d = 0, ndim = x->ndim; d < ndim && x != NULL; d++) {
    int64_t b = before(a, ndim, d), e = after(a, ndim, d);
    b = b < 0 ? -b : 0, e = e < 0 ? -e : 0;
    if (b + e > 0) {
      int64_t n = x->size[d] - b - e;
      x = lt_slice(c, x, d, n > 0 ? b : 0, n > 0 ? n : 0, 1);
    }
  }
  return x;
}

static lt_tensor *constant(lt_ctx *c, lt_tensor *x, const lt_args_pad *a) {
  const lt_tensor *whole = x;
  x = cropped(c, x, a);
  if (x == NULL) return NULL;
  lt_shape full = lt_tensor_shape(x);
  lt_args_as_strided_backward in = {.size = lt_sizes_of(full), .stride = {.n = x->ndim}};
  for (int d = 0; d < x->ndim; d++) {
    int64_t b = before(a, x->ndim, d), e = after(a, x->ndim, d);
    full.size[d] = whole->size[d] + b + e;
  }
  lt_shape_strides(full, in.stride.size);
  for (int d = 0; d < x->ndim; d++) {
    int64_t b = before(a, x->ndim, d);
    if (b > 0) in.offset += b * in.stride.size[d];
  }
  in.full = lt_sizes_of(full);
  if (lt_shape_equal(full, lt_tensor_shape(x))) return lt_unary(c, LT_OP_clone, x);
  bool zeros = a->value.kind == LT_NO_SCALAR || a->value.f == 0;
  if (zeros) return lt_apply1(c, LT_OP_as_strided_backward, 1, &x, &in);
  lt_tensor *y = lt_full(c, full, a->value, (lt_dtype)x->dtype, x->storage->device);
  const lt_args_as_strided_scatter put = {
      .size = in.size, .stride = in.stride, .offset = in.offset};
  return lt_apply1(c, LT_OP_as_strided_scatter, LT_IN(y, x), &put);
}

/* Which of n elements each of the padded dim is, `k` being its place relative to the first.
   Reflection without the edge: n - 1 - | |k| - (n - 1) |, a triangle wave of which infer_arrange.c
   permits one period. */
static lt_tensor *source(lt_ctx *c, lt_tensor *k, int64_t n, int64_t mode) {
  if (mode == LT_PAD_circular) return lt_binary_scalar(c, LT_OP_remainder, k, lt_scalar_int(n));
  if (mode == LT_PAD_replicate)
    return lt_apply1(c, LT_OP_clamp, 1, &k, &(lt_args_clamp){.min = lt_scalar_int(0),
                                                             .max = lt_scalar_int(n - 1)});
  k = lt_binary_scalar(c, LT_OP_sub, lt_unary(c, LT_OP_abs, k), lt_scalar_int(n - 1));
  k = lt_unary(c, LT_OP_neg, lt_unary(c, LT_OP_abs, k));
  return lt_binary_scalar(c, LT_OP_add, k, lt_scalar_int(n - 1));
}

bool lt_expand_pad(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_pad *a = call->args;
  lt_tensor *x = call->in[0];
  if (a->mode == LT_PAD_constant) return (*out = constant(c, x, a)) != NULL;
  int ndim = x->ndim;
  bool circular = a->mode == LT_PAD_circular; /* what is left is what is repeated */
  if (circular) x = cropped(c, x, a);
  for (int d = ndim - 1; d >= 0 && x != NULL; d--) {
    int64_t b = before(a, ndim, d), e = after(a, ndim, d), n = x->size[d];
    if (circular) b = b > 0 ? b : 0, e = e > 0 ? e : 0;
    if (b == 0 && e == 0) continue;
    lt_tensor *k = lt_counting(c, n + b + e, x->storage->device);
    k = lt_binary_scalar(c, LT_OP_sub, k, lt_scalar_int(b));
    x = lt_taken(c, x, d, source(c, k, n, a->mode));
  }
  *out = x == call->in[0] ? lt_unary(c, LT_OP_clone, x) : x;
  return *out != NULL;
}
