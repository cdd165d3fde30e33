/* runtime/ops/calls.c: typed functions for common operations in C code, over lt_apply: lt_full,
   lt_cast, lt_reshape, lt_slice, ... */
#include <string.h>

#include "ops/op.h"

lt_tensor *lt_unary(lt_ctx *c, lt_op op, lt_tensor *x) { return lt_apply1(c, op, 1, &x, NULL); }

lt_tensor *lt_binary(lt_ctx *c, lt_op op, lt_tensor *a, lt_tensor *b) {
  return lt_apply1(c, op, LT_IN(a, b), NULL);
}

lt_tensor *lt_binary_scalar(lt_ctx *c, lt_op op, lt_tensor *a, lt_scalar b) {
  return lt_apply1(c, op, 1, &a, &(lt_args_binary){.b = b});
}

lt_sizes lt_sizes_of(lt_shape s) {
  lt_sizes r = {.n = s.ndim};
  memcpy(r.size, s.size, sizeof r.size);
  return r;
}

lt_tensor *lt_full(lt_ctx *c, lt_shape shape, lt_scalar value, lt_dtype dtype, lt_device device) {
  const lt_args_create args = {
      .size = lt_sizes_of(shape), .fill_value = value, .dtype = dtype, .device = device};
  return lt_apply1(c, LT_OP_full, 0, NULL, &args);
}

lt_tensor *lt_cast(lt_ctx *c, lt_tensor *x, lt_dtype dtype) {
  if (x == NULL || (lt_dtype)x->dtype == dtype) return x;
  return lt_apply1(c, LT_OP_cast, 1, &x, &(lt_args_cast){.dtype = dtype});
}

lt_tensor *lt_contiguous(lt_ctx *c, lt_tensor *x) {
  if (x == NULL || x->contiguous) return x;
  return lt_apply1(c, LT_OP_clone, 1, &x, &(lt_args_clone){.contiguous = true});
}

lt_tensor *lt_to_device(lt_ctx *c, lt_tensor *x, lt_device device) {
  if (x == NULL || lt_device_equal(x->storage->device, device)) return x;
  if (!lt_check_data(c, c->op == NULL ? "to" : NULL, x)) return NULL;
  x = lt_contiguous(c, x);
  return x == NULL ? NULL
                   : lt_apply1(c, LT_OP_transfer, 1, &x, &(lt_args_transfer){.device = device});
}

lt_tensor *lt_detach(lt_ctx *c, lt_tensor *x) {
  if (!lt_ok(c) || x == NULL) return NULL;
  lt_tensor *t = lt_tensor_make(c, x->storage, (lt_dtype)x->dtype, x->ndim, x->size, x->stride,
                                x->offset);
  if (t == NULL) return NULL;
  t->flags |= LT_IS_VIEW;
  t->view_version = UINT64_MAX; /* without history on purpose: never stale */
  return t;
}

lt_tensor *lt_reshape(lt_ctx *c, lt_tensor *x, lt_shape shape) {
  return lt_apply1(c, LT_OP_reshape, 1, &x, &(lt_args_view){.size = lt_sizes_of(shape)});
}

lt_tensor *lt_expand_to(lt_ctx *c, lt_tensor *x, lt_shape shape) {
  if (x != NULL && lt_shape_equal(lt_tensor_shape(x), shape)) return x;
  return lt_apply1(c, LT_OP_expand, 1, &x, &(lt_args_expand){.size = lt_sizes_of(shape)});
}

lt_tensor *lt_sum_to(lt_ctx *c, lt_tensor *x, lt_shape shape) {
  if (x == NULL || lt_shape_equal(lt_tensor_shape(x), shape)) return x;
  return lt_apply1(c, LT_OP_sum_to, 1, &x, &(lt_args_sum_to){.size = lt_sizes_of(shape)});
}

lt_tensor *lt_permute(lt_ctx *c, lt_tensor *x, const int *dims) {
  lt_args_permute args = {.dims = {.n = x->ndim}};
  for (int k = 0; k < x->ndim; k++) args.dims.dim[k] = dims[k];
  return lt_apply1(c, LT_OP_permute, 1, &x, &args);
}

lt_tensor *lt_transpose(lt_ctx *c, lt_tensor *x, int dim_a, int dim_b) {
  int dims[LT_MAX_DIMS];
  for (int k = 0; k < x->ndim; k++) dims[k] = k;
  dims[dim_a] = dim_b;
  dims[dim_b] = dim_a;
  return lt_permute(c, x, dims);
}

/* As as_strided over the row-major shape of x, whatever its strides: infer_memory.c carries it
   over. `start` and `n` are trusted. */
lt_tensor *lt_slice(lt_ctx *c, lt_tensor *x, int dim, int64_t start, int64_t n, int64_t step) {
  lt_args_as_strided args = {.size = lt_sizes_of(lt_tensor_shape(x)), .stride = {.n = x->ndim}};
  lt_shape_strides(lt_tensor_shape(x), args.stride.size);
  args.offset = start * args.stride.size[dim];
  args.size.size[dim] = n;
  args.stride.size[dim] *= step;
  return lt_apply1(c, LT_OP_as_strided, 1, &x, &args);
}

lt_tensor *lt_select(lt_ctx *c, lt_tensor *x, int dim, int64_t index) {
  lt_args_as_strided args = {.size = {.n = x->ndim - 1}, .stride = {.n = x->ndim - 1}};
  int64_t stride[LT_MAX_DIMS];
  lt_shape_strides(lt_tensor_shape(x), stride);
  args.offset = index * stride[dim];
  for (int k = 0, j = 0; k < x->ndim; k++) {
    if (k == dim) continue;
    args.size.size[j] = x->size[k];
    args.stride.size[j++] = stride[k];
  }
  return lt_apply1(c, LT_OP_as_strided, 1, &x, &args);
}

/* `copy` as an in-place op whose result is dst: checks, versions and history are those of any
   write. */
bool lt_copy_into(lt_ctx *c, lt_tensor *dst, lt_tensor *src) {
  if (!lt_ok(c)) return false;
  src = lt_to_device(c, src, dst->storage->device);
  lt_tensor *out = dst;
  return src != NULL && lt_apply(c, LT_OP_copy, LT_IN(dst, src), NULL, 1, &out);
}

/* Reads through f64 or i64, which hold every value of the other dtypes exactly; the cast is the
   host's, as not every device has these. The only place where an op's flow waits for a device;
   composites that need it say so. */
bool lt_item(lt_ctx *c, lt_tensor *x, lt_scalar *out) {
  if (!lt_ok(c)) return false;
  if (x->numel != 1)
    return lt_fail(c, LT_ESHAPE, "item: needs a tensor of one element, got %s", LT_TENSOR_STR(x));
  if (!lt_check_data(c, c->op == NULL ? "item" : NULL, x)) return false;
  lt_dtype d = (lt_dtype)x->dtype;
  bool grad = c->modes.grad;
  c->modes.grad = false;
  x = lt_to_device(c, x, LT_CPU_DEVICE);
  x = x != NULL ? lt_cast(c, x, lt_dtype_is_float(d) ? LT_F64 : LT_I64) : NULL;
  c->modes.grad = grad;
  union {
    double f;
    int64_t i;
  } value;
  if (x == NULL || !lt_tensor_read(c, x, &value)) return false;
  if (lt_dtype_is_float(d))
    *out = lt_scalar_of(value.f);
  else
    *out = lt_scalar_int(value.i);
  if (d == LT_BOOL) out->kind = LT_SCALAR_BOOL;
  return true;
}
