/* runtime/ops/infer_matmul.c: shapes of matrix products. */
#include "ops/infer.h"

static bool check_dtypes(lt_ctx *c, lt_infer *i) {
  lt_dtype d = (lt_dtype)i->in[0]->dtype;
  for (int k = 1; k < i->n_in; k++)
    if (i->in[k] != NULL) d = lt_dtype_promote(d, (lt_dtype)i->in[k]->dtype);
  i->out[0].dtype = d;
  if (d == LT_BOOL)
    return lt_fail(c, LT_EDTYPE, "%s: not defined for bool; write x:to('f32') first", i->op->name);
  return true;
}

/* PyTorch's rules: vectors become a row on the left, a column on the right, and their dim goes
   again; dims before the last two broadcast. */
bool lt_infer_matmul(lt_ctx *c, lt_infer *i) {
  const lt_tensor *a = i->in[0], *b = i->in[1];
  if (!check_dtypes(c, i)) return false;
  if (a->ndim == 0 || b->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "matmul: needs at least one dim each: %s x %s", LT_TENSOR_STR(a),
                   LT_TENSOR_STR(b));
  if (a->size[a->ndim - 1] != b->size[b->ndim > 1 ? b->ndim - 2 : 0])
    return lt_fail(c, LT_ESHAPE, "matmul: inner sizes differ: %s x %s", LT_TENSOR_STR(a),
                   LT_TENSOR_STR(b));
  lt_shape *out = &i->out[0].shape;
  *out = lt_shape_of(a->ndim > 2 ? a->ndim - 2 : 0, a->size);
  if (!lt_shape_broadcast(out, lt_shape_of(b->ndim > 2 ? b->ndim - 2 : 0, b->size)))
    return lt_fail(c, LT_ESHAPE, "matmul: batch sizes do not broadcast: %s x %s", LT_TENSOR_STR(a),
                   LT_TENSOR_STR(b));
  if (a->ndim > 1) out->size[out->ndim++] = a->size[a->ndim - 2];
  if (b->ndim > 1) out->size[out->ndim++] = b->size[b->ndim - 1];
  return true;
}

static bool is_number(const lt_tensor *t) { return t->dtype == LT_F32 && t->ndim == 0; }

bool lt_infer_quantize_float8(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[0], *scale = i->in[1];
  if (!lt_dtype_is_float((lt_dtype)x->dtype) || !is_number(scale))
    return lt_fail(c, LT_EARG, "quantize_float8: needs floats and a scale, a number [] of f32: got "
                               "%s and %s", LT_TENSOR_STR(x), LT_TENSOR_STR(scale));
  i->out[0].shape = lt_tensor_shape(x);
  i->out[0].dtype = LT_U8;
  return true;
}

static bool has_bits(lt_ctx *c, const lt_infer *i, int k) {
  return i->in[k]->dtype == LT_U8 ||
         lt_fail(c, LT_EDTYPE, "%s: needs bits of quantize_float8 (u8), got %s", i->op->name,
                 LT_TENSOR_STR(i->in[k]));
}

bool lt_infer_dequantize_float8(lt_ctx *c, lt_infer *i) {
  i->out[0].shape = lt_tensor_shape(i->in[0]);
  i->out[0].dtype = LT_F32;
  return has_bits(c, i, 0);
}

bool lt_infer_scaled_mm(lt_ctx *c, lt_infer *i) {
  const lt_args_scaled_mm *args = i->args;
  const lt_tensor *a = i->in[0], *b = i->in[1];
  if (!has_bits(c, i, 0) || !has_bits(c, i, 1)) return false;
  if (a->ndim != 2 || b->ndim != 2 || a->size[1] != b->size[1])
    return lt_fail(c, LT_ESHAPE, "scaled_mm: needs matrices [M, K] and [N, K], got %s and %s",
                   LT_TENSOR_STR(a), LT_TENSOR_STR(b));
  for (int k = 2; k < 4; k++)
    if (!is_number(i->in[k]))
      return lt_fail(c, LT_EARG, "scaled_mm: scale_%c must be a number [] of f32, got %s",
                     k == 2 ? 'a' : 'b', LT_TENSOR_STR(i->in[k]));
  i->out[0].shape = lt_shape_of(2, (int64_t[]){a->size[0], b->size[0]});
  i->out[0].dtype = args->dtype == LT_DTYPE_NONE ? LT_F32 : args->dtype;
  return (lt_dtype_is_float(i->out[0].dtype) && i->out[0].dtype != LT_F64) ||
         lt_fail(c, LT_EDTYPE, "scaled_mm: the result is f32, f16 or bf16, got dtype = %s",
                 lt_dtype_name(i->out[0].dtype));
}

/* x [.., in], weight [out, in] and bias [out], or weight [in] and bias []. */
bool lt_infer_linear(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[0], *w = i->in[1], *bias = i->n_in > 2 ? i->in[2] : NULL;
  if (!check_dtypes(c, i)) return false;
  if (w->ndim != 1 && w->ndim != 2)
    return lt_fail(c, LT_ESHAPE, "linear: weight must be [out, in] or [in], got %s",
                   LT_TENSOR_STR(w));
  if (x->ndim == 0 || x->size[x->ndim - 1] != w->size[w->ndim - 1])
    return lt_fail(c, LT_ESHAPE, "linear: the last dim of x is not weight's: %s x %s [out, in]",
                   LT_TENSOR_STR(x), LT_TENSOR_STR(w));
  bool has_bias = bias != NULL && bias->ndim > 0;
  if ((bias != NULL && bias->ndim != w->ndim - 1) || (has_bias && bias->size[0] != w->size[0]))
    return lt_fail(c, LT_ESHAPE, "linear: bias has shape %s, weight %s [out, in]",
                   LT_TENSOR_STR(bias), LT_TENSOR_STR(w));
  i->out[0].shape = lt_tensor_shape(x);
  i->out[0].shape.size[x->ndim - 1] = w->size[0];
  if (w->ndim == 1) i->out[0].shape.ndim--;
  return true;
}
