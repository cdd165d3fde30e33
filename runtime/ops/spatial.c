/* runtime/ops/spatial.c: what convolutions and pooling of 1 to 3 dims share. */
#include "ops/spatial.h"

#include <stdio.h>
#include <string.h>

#include "ops/expand.h"

/* By the name: conv2d, max_pool3d. The row's name is the only place where the number is written. */
int lt_spatial_dims(const lt_op_info *op) { return op->name[strlen(op->name) - 2] - '0'; }

const char *lt_spatial_letters(int n) { return n == 1 ? "L" : n == 2 ? "H, W" : "D, H, W"; }

const char *lt_each_text(const lt_sizes *s, char *text) {
  size_t used = (size_t)snprintf(text, LT_EACH_TEXT, "{");
  for (int k = 0; k < s->n && used < LT_EACH_TEXT - 2; k++)
    used += (size_t)snprintf(text + used, LT_EACH_TEXT - used, k > 0 ? ", %lld" : "%lld",
                             (long long)s->size[k]);
  snprintf(text + (used < LT_EACH_TEXT - 2 ? used : LT_EACH_TEXT - 2), 2, "}");
  return text;
}

bool lt_spatial_input(lt_ctx *c, const lt_infer *i, bool floats) {
  const lt_tensor *x = i->in[0];
  int n = lt_spatial_dims(i->op);
  lt_dtype d = (lt_dtype)x->dtype;
  if (x->ndim != n + 1 && x->ndim != n + 2)
    return lt_fail(c, LT_ESHAPE, "%s: x must be [N, C, %s] or [C, %s], got %s", i->op->name,
                   lt_spatial_letters(n), lt_spatial_letters(n), LT_TENSOR_STR(x));
  if (floats && !lt_dtype_is_float(d))
    return lt_fail(c, LT_EDTYPE, "%s: not defined for %s; write x:to('f32') first", i->op->name,
                   lt_dtype_name(d));
  return true;
}

bool lt_spatial_each(lt_ctx *c, const lt_infer *i, const char *name, lt_sizes *s, int64_t least) {
  const int64_t most = INT32_MAX; /* what the kernels count with */
  int n = lt_spatial_dims(i->op);
  if (s->n == 1)
    while (s->n < n) s->size[s->n++] = s->size[0];
  if (s->n != n)
    return lt_fail(c, LT_EARG, "%s: %s must be a number or a list of %d, got %s", i->op->name, name,
                   n, LT_EACH_STR(s));
  for (int k = 0; k < n; k++)
    if (s->size[k] < least || s->size[k] > most)
      return lt_fail(c, LT_EARG, "%s: %s must be at %s %lld, got %s", i->op->name, name,
                     s->size[k] < least ? "least" : "most",
                     (long long)(s->size[k] < least ? least : most), LT_EACH_STR(s));
  return true;
}

/* floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, or rounded up: then the last
   window may reach beyond the padding, but must begin inside of x or its leading padding (PyTorch's
   pooling_output_shape). */
int64_t lt_window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                        int64_t dilation, bool ceil) {
  int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (span + (ceil ? stride - 1 : 0) < 0) return 0;
  int64_t n = (span + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (n - 1) * stride >= size + padding ? n - 1 : n; /* begins inside */
}

/* A dim of size 1 makes both formats equal; plain strides are then reported, so that the result
   counts as contiguous. */
lt_meta lt_meta_channels_last(lt_shape s, lt_dtype dtype) {
  lt_meta m = {.shape = s, .dtype = dtype};
  m.strided = s.size[1] > 1 && s.size[2] * s.size[3] > 1;
  if (m.strided) lt_shape_channels_last(s, m.stride);
  return m;
}

lt_tensor *lt_window_places(lt_ctx *c, int64_t windows, int64_t stride, int64_t kernel,
                            int64_t dilation, lt_device device) {
  lt_tensor *from = lt_reshape(c, lt_counting(c, windows, device), (lt_shape){2, {windows, 1}});
  lt_tensor *k = lt_counting(c, kernel, device);
  from = lt_binary_scalar(c, LT_OP_mul, from, lt_scalar_int(stride));
  k = lt_binary_scalar(c, LT_OP_mul, k, lt_scalar_int(dilation));
  return lt_add(c, from, k);
}

bool lt_spatial_unbatched(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *in[LT_FINITE_IN], *x = call->in[0];
  const lt_op_info *op = &lt_ops[call->op];
  if (x->ndim != lt_spatial_dims(op) + 1) return false;
  bool paired = op->kind == LT_KIND_max_unpool; /* its second input lies as the first */
  memcpy(in, call->in, (size_t)call->n_in * sizeof *in);
  for (int k = 0; k < 1 + paired; k++) {
    lt_shape s = {.ndim = x->ndim + 1, .size = {1}};
    memcpy(s.size + 1, in[k]->size, (size_t)x->ndim * sizeof *s.size);
    in[k] = lt_reshape(c, in[k], s);
  }
  if (!lt_apply(c, (lt_op)call->op, call->n_in, in, call->args, call->n_out, out)) return true;
  for (int k = 0; k < call->n_out; k++)
    if (out[k] != NULL) out[k] = lt_reshape(c, out[k], lt_shape_of(x->ndim, out[k]->size + 1));
  return true;
}

lt_tensor *lt_as_image(lt_ctx *c, lt_tensor *x) {
  if (x == NULL || x->ndim != 3) return x;
  return lt_reshape(c, x, (lt_shape){4, {x->size[0], x->size[1], 1, x->size[2]}});
}

static const int swapped[] = {0, 2, 1, 3, 4};

/* Whichever of the two is a view: of channels-last volumes the planes [N D, C, H, W] keep their
   layout, of row-major ones [N C, D, H, W] does; a copy of the volumes would cost as much as
   pooling them. */
lt_tensor *lt_planes(lt_ctx *c, lt_tensor *x) {
  const int64_t *s = x->size;
  if (!lt_channels_last(x))
    return lt_reshape(c, x, (lt_shape){4, {s[0] * s[1], s[2], s[3], s[4]}});
  x = lt_permute(c, x, swapped);
  return x == NULL ? NULL : lt_reshape(c, x, (lt_shape){4, {s[0] * s[2], s[1], s[3], s[4]}});
}

lt_tensor *lt_volumes(lt_ctx *c, lt_tensor *y, const lt_tensor *of) {
  bool last = lt_channels_last(of);
  if (y == NULL) return NULL;
  const int64_t *s = of->size, h = y->size[2], w = y->size[3];
  y = lt_reshape(c, y, (lt_shape){5, {s[0], last ? s[2] : s[1], last ? s[1] : s[2], h, w}});
  return y == NULL || !last ? y : lt_permute(c, y, swapped);
}
