/* runtime/ops/infer_memory.c: shapes of ops that make, copy and view tensors. */
#include "ops/infer.h"

/* What a script leaves out: the dtype that the value has in Lua (an integer is i64, a float f32, as
   in torch.full), and the ctx's default device. */
bool lt_infer_create(lt_ctx *c, lt_infer *i) {
  lt_args_create *a = i->args;
  static const lt_dtype of_kind[] = {LT_F32, LT_BOOL, LT_I64, LT_F32};
  if (a->dtype == LT_DTYPE_NONE) a->dtype = of_kind[a->fill_value.kind];
  if (a->device.kind < 0) a->device = lt_device_default(c);
  i->device = a->device;
  i->out[0].shape = lt_shape_of(a->size.n, a->size.size);
  i->out[0].dtype = a->dtype;
  return lt_ok(c);
}

bool lt_infer_cast(lt_ctx *c, lt_infer *i) {
  const lt_args_cast *a = i->args;
  lt_meta_of(&i->out[0], i->in[0]);
  i->out[0].dtype = a->dtype;
  return lt_ok(c);
}

/* Strides do not travel: devices copy bytes, so the input is row-major, which lt_to_device sees to.
   */
bool lt_infer_transfer(lt_ctx *c, lt_infer *i) {
  const lt_args_transfer *a = i->args;
  i->out[0].shape = lt_tensor_shape(i->in[0]);
  i->out[0].dtype = (lt_dtype)i->in[0]->dtype;
  i->device = a->device;
  return lt_assert(c, i->in[0]->contiguous);
}

/* A clone keeps dense strides (torch.preserve_format) unless a row-major one is asked for. */
bool lt_infer_clone(lt_ctx *c, lt_infer *i) {
  const lt_args_clone *a = i->args;
  if (!lt_infer_same(c, i)) return false;
  if (a->contiguous) i->out[0].strided = false;
  return true;
}

bool lt_infer_copy(lt_ctx *c, lt_infer *i) {
  lt_shape shape = lt_tensor_shape(i->in[0]);
  if (!lt_shape_broadcast(&shape, lt_tensor_shape(i->in[1])) ||
      !lt_shape_equal(shape, lt_tensor_shape(i->in[0])))
    return lt_fail(c, LT_ESHAPE, "copy: %s does not fit into %s", LT_TENSOR_STR(i->in[1]),
                   LT_TENSOR_STR(i->in[0]));
  return lt_infer_same(c, i);
}

bool lt_infer_fill(lt_ctx *c, lt_infer *i) { return lt_infer_same(c, i); }

/* The reverse of a broadcast, for derivatives: the shape must be one from which the input was
   broadcast, else the sum would be of other elements. */
bool lt_infer_sum_to(lt_ctx *c, lt_infer *i) {
  const lt_args_sum_to *a = i->args;
  lt_shape to = lt_shape_of(a->size.n, a->size.size), from = to;
  if (!lt_shape_broadcast(&from, lt_tensor_shape(i->in[0])) ||
      !lt_shape_equal(from, lt_tensor_shape(i->in[0])))
    return lt_fail(c, LT_ESHAPE, "sum_to: %s was not broadcast from %s", LT_TENSOR_STR(i->in[0]),
                   LT_SHAPE_STR(to));
  i->out[0] = (lt_meta){.shape = to, .dtype = (lt_dtype)i->in[0]->dtype};
  return true;
}

/* Views. */

static void view_of(lt_infer *i, const lt_tensor *t) {
  i->out[0].dtype = (lt_dtype)t->dtype;
  i->out[0].strided = true;
  i->view_offset = t->offset;
}

/* Fill in a size that is -1. A size of 0 among the others leaves -1 undetermined (0 * anything is
   0): known is 0 then, and it is refused as in PyTorch. Products that overflow are remembered and
   refused at the end, as a later 0 does not make them right. */
static bool resolve_sizes(lt_ctx *c, lt_infer *i, lt_sizes *s) {
  int64_t known = 1, n = i->in[0]->numel;
  int unknown = -1;
  bool many = false;
  for (int k = 0; k < s->n; k++) {
    if (s->size[k] == -1 && unknown < 0)
      unknown = k;
    else if (s->size[k] < 0)
      return lt_fail(c, LT_ESHAPE, "%s: impossible shape %s (one size may be -1: what is left)",
                     i->op->name, LT_SHAPE_STR(lt_shape_of(s->n, s->size)));
    else
      many = __builtin_mul_overflow(known, s->size[k], &known) || many;
  }
  if (many) known = -1;
  if (unknown >= 0 && known > 0 && n % known == 0) s->size[unknown] = n / known, known = n;
  if (known != n || (unknown >= 0 && s->size[unknown] == -1))
    return lt_fail(c, LT_ESHAPE, "%s: shape %s does not hold the %lld elements of %s", i->op->name,
                   LT_SHAPE_STR(lt_shape_of(s->n, s->size)), (long long)n, LT_TENSOR_STR(i->in[0]));
  return true;
}

/* A view where strides permit it, else a copy (`view_copy`): one op for view and reshape; what a
   script may do with each is decided by the flag LT_VIEW_COPIED that apply.c sets. */
bool lt_infer_view(lt_ctx *c, lt_infer *i) {
  lt_args_view *a = i->args;
  if (!resolve_sizes(c, i, &a->size)) return false;
  view_of(i, i->in[0]);
  i->out[0].shape = lt_shape_of(a->size.n, a->size.size);
  i->view_copy = !lt_view_strides(i->in[0], a->size.n, a->size.size, i->out[0].stride);
  if (i->view_copy) lt_shape_strides(i->out[0].shape, i->out[0].stride);
  return true;
}

/* A mask of dims that were named: n dims that are all different are a permutation. */
bool lt_infer_permute(lt_ctx *c, lt_infer *i) {
  lt_args_permute *a = i->args;
  const lt_tensor *x = i->in[0];
  lt_shape from = lt_tensor_shape(x);
  unsigned seen = 0;
  if (a->dims.n != x->ndim)
    return lt_fail(c, LT_EARG, "permute: %d dims given for shape %s", a->dims.n, LT_TENSOR_STR(x));
  view_of(i, x);
  i->out[0].shape.ndim = x->ndim;
  for (int k = 0; k < x->ndim; k++) {
    int d;
    if (!lt_shape_dim(c, from, a->dims.dim[k], &d)) return false;
    if ((seen >> d & 1) != 0) return lt_fail(c, LT_EARG, "permute: dim %d is given twice", d + 1);
    seen |= 1u << d;
    a->dims.dim[k] = d;
    i->out[0].shape.size[k] = x->size[d];
    i->out[0].stride[k] = x->stride[d];
  }
  return true;
}

/* Repeated dims get stride 0. -1 leaves a size as it is, but only for dims that x has. */
bool lt_infer_expand(lt_ctx *c, lt_infer *i) {
  lt_args_expand *a = i->args;
  const lt_tensor *x = i->in[0];
  int lead = a->size.n - x->ndim;
  view_of(i, x);
  for (int k = 0; k < a->size.n && lead >= 0; k++)
    if (a->size.size[k] == -1 && k >= lead) a->size.size[k] = x->size[k - lead];
  for (int k = 0; k < a->size.n && k < lead; k++)
    if (a->size.size[k] == -1)
      return lt_fail(c, LT_ESHAPE,
                     "%s: size %d is -1, the size that x has there, and x is %s: it has fewer dims "
                     "than the %d sizes",
                     i->op->name, k + 1, LT_TENSOR_STR(x), a->size.n);
  for (int k = 0; k < a->size.n; k++)
    if (a->size.size[k] < 0)
      return lt_shape_refuse(c, i->op->name, a->size.n, a->size.size);
  lt_shape to = lt_shape_of(a->size.n, a->size.size), fit = to;
  if (lead < 0 || !lt_shape_broadcast(&fit, lt_tensor_shape(x)) || !lt_shape_equal(fit, to))
    return lt_fail(c, LT_ESHAPE, "%s: %s cannot be repeated to %s", i->op->name,
                   LT_TENSOR_STR(x), LT_SHAPE_STR(to));
  i->out[0].shape = to;
  lt_broadcast_strides(x, to, i->out[0].stride);
  return true;
}

/* Strides of as_strided over a row-major shape, carried over to the input's real strides. An offset
   or stride of a row-major tensor is a number in a mixed base, x's sizes: its digits are steps
   along each dim, and each step has a real stride. So definitions in terms of row-major positions
   work on any view.  */
bool lt_infer_as_strided(lt_ctx *c, lt_infer *i) {
  const lt_args_as_strided *a = i->args;
  const lt_tensor *x = i->in[0];
  int64_t base[LT_MAX_DIMS], rest = a->offset;
  view_of(i, x);
  lt_shape_strides(lt_tensor_shape(x), base);
  for (int k = 0; k < x->ndim; k++) {
    i->view_offset += rest / base[k] * x->stride[k];
    rest %= base[k];
  }
  i->out[0].shape = lt_shape_of(a->size.n, a->size.size);
  for (int j = 0; j < a->size.n; j++) {
    int64_t left = a->stride.size[j], step = 0;
    bool back = left < 0;
    if (back) left = -left;
    for (int k = 0; k < x->ndim; k++) {
      if (x->size[k] == 1) continue;
      step += left / base[k] * x->stride[k];
      left %= base[k];
    }
    i->out[0].stride[j] = back ? -step : step;
  }
  return lt_ok(c);
}

bool lt_infer_as_strided_scatter(lt_ctx *c, lt_infer *i) {
  const lt_args_as_strided *a = i->args;
  lt_shape part = lt_shape_of(a->size.n, a->size.size), fit = part;
  if (!lt_shape_broadcast(&fit, lt_tensor_shape(i->in[1])) || !lt_shape_equal(fit, part))
    return lt_fail(c, LT_ESHAPE, "assignment: %s does not fit into %s", LT_TENSOR_STR(i->in[1]),
                   LT_SHAPE_STR(part));
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[0]), .dtype = (lt_dtype)i->in[0]->dtype};
  return true;
}

bool lt_infer_as_strided_zero(lt_ctx *c, lt_infer *i) {
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[0]), .dtype = (lt_dtype)i->in[0]->dtype};
  return lt_ok(c);
}

bool lt_infer_as_strided_backward(lt_ctx *c, lt_infer *i) {
  const lt_args_as_strided_backward *a = i->args;
  i->out[0] = (lt_meta){.shape = lt_shape_of(a->full.n, a->full.size),
                        .dtype = (lt_dtype)i->in[0]->dtype};
  return lt_ok(c);
}
