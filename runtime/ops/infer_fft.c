/* runtime/ops/infer_fft.c: shapes of Fourier transforms. */
#include "ops/infer.h"

static bool check(lt_ctx *c, const lt_infer *i, bool pairs) {
  const lt_tensor *x = i->in[0];
  lt_dtype d = (lt_dtype)x->dtype;
  if (d != LT_F32 && d != LT_F64)
    return lt_fail(c, LT_EDTYPE, "%s: needs f32 or f64, got %s; write x:to('f32')", i->op->name,
                   lt_dtype_name(d));
  if (x->ndim < (pairs ? 2 : 1) || (pairs && x->size[x->ndim - 1] != 2))
    return lt_fail(c, LT_ESHAPE, "%s: needs %s, got %s", i->op->name,
                   pairs ? "[.., N, 2], real and imaginary parts in the last dim" : "[.., N]",
                   LT_TENSOR_STR(x));
  return x->size[x->ndim - (pairs ? 2 : 1)] > 0 ||
         lt_fail(c, LT_ESHAPE, "%s: there is nothing to transform: %s", i->op->name,
                 LT_TENSOR_STR(x));
}

bool lt_infer_fft_complex(lt_ctx *c, lt_infer *i) {
  if (!check(c, i, true)) return false;
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[0]), .dtype = (lt_dtype)i->in[0]->dtype};
  return true;
}

bool lt_infer_fft_real(lt_ctx *c, lt_infer *i) {
  if (!check(c, i, false)) return false;
  lt_shape s = lt_tensor_shape(i->in[0]);
  s.size[s.ndim - 1] = s.size[s.ndim - 1] / 2 + 1;
  if (s.ndim == LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "%s: takes at most %d dims, got %s", i->op->name, LT_MAX_DIMS - 1,
                   LT_TENSOR_STR(i->in[0]));
  s.size[s.ndim++] = 2;
  i->out[0] = (lt_meta){.shape = s, .dtype = (lt_dtype)i->in[0]->dtype};
  return true;
}

bool lt_infer_fft_real_inverse(lt_ctx *c, lt_infer *i) {
  const lt_args_fft_real_inverse *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!check(c, i, true)) return false;
  lt_shape s = lt_tensor_shape(x);
  s.ndim--;
  if (a->n < 1 || s.size[s.ndim - 1] != a->n / 2 + 1)
    return lt_fail(c, LT_ESHAPE, "%s: n = %lld needs [.., %lld, 2], got %s", i->op->name,
                   (long long)a->n, (long long)a->n / 2 + 1, LT_TENSOR_STR(x));
  s.size[s.ndim - 1] = a->n;
  i->out[0] = (lt_meta){.shape = s, .dtype = (lt_dtype)x->dtype};
  return true;
}
