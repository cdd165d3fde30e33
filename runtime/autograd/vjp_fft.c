/* runtime/autograd/vjp_fft.c: derivatives of Fourier transforms, which are transforms again.

   A transform of real numbers stores half of the result, because the other half is its conjugate:
   an inner number stands for two, which is where the factors 1/2 and 2 come from. */
#include "autograd/vjp.h"
#include "ops/expand.h"

/* The adjoint of the transform, its conjugate transpose, is the transform in the other
   direction. */
bool lt_vjp_fft_complex(lt_ctx *c, lt_vjp_call *v) {
  lt_args_fft_complex a = *(const lt_args_fft_complex *)v->args;
  a.inverse = !a.inverse;
  v->in[0] = lt_apply1(c, LT_OP_fft_complex, 1, &v->grad[0], &a);
  return lt_ok(c);
}

/* A half [.., N // 2 + 1, 2] whose inner numbers, which stand for two, are taken `by` times. */
static lt_tensor *weighed(lt_ctx *c, lt_tensor *half, int64_t n, double by) {
  if (half == NULL) return NULL;
  int64_t m = half->size[half->ndim - 2];
  lt_device device = half->storage->device;
  lt_tensor *w = lt_full(c, lt_one_dim(m), lt_scalar_of(by), (lt_dtype)half->dtype, device);
  lt_tensor *k = lt_counting(c, m, device);
  w = lt_filled(c, w, lt_equals(c, k, 0), 1);
  if (n % 2 == 0) w = lt_filled(c, w, lt_equals(c, k, (double)(m - 1)), 1);
  return lt_mul(c, half, lt_reshape(c, w, lt_shape_of(2, (int64_t[]){m, 1})));
}

bool lt_vjp_fft_real(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_fft_real *a = v->args;
  lt_shape x = lt_in_shape(v, 0);
  int64_t n = x.size[x.ndim - 1];
  lt_tensor *g = weighed(c, v->grad[0], n, 0.5);
  v->in[0] = lt_apply1(c, LT_OP_fft_real_inverse, 1, &g,
                       &(lt_args_fft_real_inverse){.n = n, .scale = a->scale});
  return lt_ok(c);
}

bool lt_vjp_fft_real_inverse(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_fft_real_inverse *a = v->args;
  lt_tensor *half = lt_apply1(c, LT_OP_fft_real, 1, &v->grad[0],
                              &(lt_args_fft_real){.scale = a->scale});
  v->in[0] = weighed(c, half, a->n, 2);
  return lt_ok(c);
}
