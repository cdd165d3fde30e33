/* runtime/ops/math/f64.h: the math functions of the CPU kernels for compute type double.
 *
 * Same rules and same forms as f32.h, which includes this file: include that. sin, cos and pow
 * call libm: double serves gradient checks and small models, and a reduction good for 2^1023, or
 * log in more than double, costs more than it brings there. */
#ifndef LT_OPS_MATH_F64_H
#define LT_OPS_MATH_F64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

LT_FN uint64_t lt_bits_f64(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

LT_FN double lt_from_bits_f64(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* e^r - 1 - r for |r| <= 0.35. */
LT_FN double lt_exp_tail_f64(double r) {
  double p = 0x1.af4ee430652acp-26 + r * 0x1.1f86fc33b678cp-29;
  p = 0x1.27e4cfa93cbffp-22 + r * p;
  p = 0x1.71de01a1ad725p-19 + r * p;
  p = 0x1.a01a01ab9a61p-16 + r * p;
  p = 0x1.a01a01ac20fc4p-13 + r * p;
  p = 0x1.6c16c16c156a2p-10 + r * p;
  p = 0x1.111111111004dp-7 + r * p;
  p = 0x1.5555555555557p-5 + r * p;
  p = 0x1.5555555555557p-3 + r * p;
  p = 0.5 + r * p;
  return r * r * p;
}

/* Returns r with x = n ln 2 + r, |r| <= 0.35, and n + 2048 in *biased; good for |x| < 1400. Adding
 * 1.5 * 2^52 rounds to an integer, which is in the low bits then. ln 2 is in two parts, the first
 * with zeros at its end, so that n times it is exact (W. Cody, W. Waite, Software Manual for the
 * Elementary Functions, 1980). */
LT_FN double lt_exp_reduce_f64(double x, uint64_t *biased) {
  double z = x * 0x1.71547652b82fep0 + 0x1.8p52;
  *biased = lt_bits_f64(z) - 0x4338000000000000u + 2048u;
  z -= 0x1.8p52;
  double r = x - z * 0x1.62e42fefa38p-1;
  return r - z * 0x1.ef35793c7673p-45;
}

LT_FN double lt_exp_f64(double x) {
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  uint64_t n;
  double r = lt_exp_reduce_f64(x, &n);
  double p = 1.0 + (r + lt_exp_tail_f64(r));
  uint64_t half = n >> 1; /* two factors, since 2^n may be denormal or 2^1024 */
  return p * lt_from_bits_f64((half - 1u) << 52) * lt_from_bits_f64((n - half - 1u) << 52);
}

LT_FN double lt_expm1_f64(double x) {
  double c = x > 710.0 ? 710.0 : x;
  c = c < -40.0 ? -40.0 : c;
  uint64_t n;
  double r = lt_exp_reduce_f64(c, &n);
  double p = r + lt_exp_tail_f64(r);
  double scale = lt_from_bits_f64((n - 1026u) << 52); /* 2^n / 2: n may be 1024 */
  double y = 2.0 * (scale * p + (scale - 0.5));
  return fabs(x) < 0x1p-54 ? x : y;
}

/* log(2^k (1 + f)) for sqrt(1/2) <= 1 + f < sqrt(2): log(1 + f) = 2 atanh(s), s = f / (2 + f),
 * written so that f, the largest term, enters exactly (the form of fdlibm's e_log.c, Sun
 * Microsystems, 1993). */
LT_FN double lt_log_sum_f64(double f, double k) {
  double s = f / (2.0 + f);
  double z = s * s;
  double p = 0x1.39fddaf951f21p-3 + z * 0x1.2b5e9b6bd6e1ep-3;
  p = 0x1.7462b8b3ba279p-3 + z * p;
  p = 0x1.c71c62d7ca618p-3 + z * p;
  p = 0x1.2492492dfa854p-2 + z * p;
  p = 0x1.99999999952c1p-2 + z * p;
  p = 0x1.5555555555558p-1 + z * p;
  double half = 0.5 * f * f;
  double tail = s * (half + z * p) + k * 0x1.ef35793c7673p-45;
  return k * 0x1.62e42fefa38p-1 + (f - (half - tail));
}

/* Splits positive normal bits u: returns m in [sqrt(1/2), sqrt(2)), *k with u = 2^*k m. */
LT_FN double lt_split_f64(uint64_t u, double *k) {
  uint64_t biased = (u + (0x4000000000000000u - 0x3fe6a09e667f3bcdu)) >> 52; /* k + 1024 */
  *k = lt_from_bits_f64(biased | 0x4330000000000000u) - (0x1p52 + 1024.0);
  return lt_from_bits_f64(u - (biased << 52) + 0x4000000000000000u);
}

LT_FN double lt_log_f64(double x) {
  int tiny = x < 0x1p-1022;
  double k;
  double m = lt_split_f64(lt_bits_f64(tiny ? x * 0x1p54 : x), &k);
  double y = lt_log_sum_f64(m - 1.0, tiny ? k - 54.0 : k);
  y = x < HUGE_VAL ? y : x; /* infinity and NaN */
  y = x == 0.0 ? -HUGE_VAL : y;
  return x < 0.0 ? (double)NAN : y;
}

LT_FN double lt_log1p_f64(double x) {
  double sum = 1.0 + x;
  double low = sum - 1.0;
  low = (1.0 - (sum - low)) + (x - low); /* what rounding took from 1 + x */
  uint64_t u = lt_bits_f64(sum);
  double k;
  double m = lt_split_f64(u, &k);
  /* 4 / 2^k: u - bits(m) is k << 52, and k may be 1024. */
  double scale = lt_from_bits_f64((1025ull << 52) - (u - lt_bits_f64(m)));
  double y = lt_log_sum_f64((m - 1.0) + low * scale * 0.25, k);
  y = x < HUGE_VAL ? y : x;
  y = x == 0.0 ? x : y;
  y = x == -1.0 ? -HUGE_VAL : y;
  return x < -1.0 ? (double)NAN : y;
}

/* tanh a = (e^2a - 1) / (e^2a + 1): by expm1, as e^2a - 1 would lose all digits near 0. From 20 on
   it is 1 in double. */
LT_FN double lt_tanh_f64(double x) {
  double a = fabs(x);
  double t = lt_expm1_f64(2.0 * (a > 20.0 ? 20.0 : a));
  return copysign(t / (t + 2.0), x);
}

/* erf(a) for 0 <= a <= 1. */
LT_FN double lt_erf_small_f64(double a) {
  double z = a * a;
  double q = -0x1.38ac21bcf0a89p-30 + z * 0x1.06275b0f7355fp-34;
  q = 0x1.f7b99cbe43837p-27 + z * q;
  q = -0x1.5f1f40dc772a9p-23 + z * q;
  q = 0x1.b9df305760862p-20 + z * q;
  q = -0x1.f4d1e4342b9c9p-17 + z * q;
  q = 0x1.f9a321e4ae80fp-14 + z * q;
  q = -0x1.c02db3db49091p-11 + z * q;
  q = 0x1.565bcd0dbd8f2p-8 + z * q;
  q = -0x1.b82ce31284f37p-6 + z * q;
  q = 0x1.ce2f21a042b34p-4 + z * q;
  q = -0x1.812746b0379e6p-2 + z * q;
  q = 0x1.06eba8214db69p-3 + z * q;
  return a + a * q;
}

/* log(erfc(a)) for 1 <= a <= 6, as exactly as 1 - erfc(a) asks. */
LT_FN double lt_log_erfc_f64(double a) {
  double g = -0x1.a5e216e9e64e9p-35 + a * 0x1.2775350923414p-40;
  g = 0x1.19f40e2ea61f6p-30 + a * g;
  g = -0x1.d439965128b11p-27 + a * g;
  g = 0x1.0df4dcadbc9d5p-23 + a * g;
  g = -0x1.c8a8a72c62942p-21 + a * g;
  g = 0x1.22637e10cc41bp-18 + a * g;
  g = -0x1.15102e4ae53b5p-16 + a * g;
  g = 0x1.79cf0cf0fc516p-15 + a * g;
  g = -0x1.2726053400166p-14 + a * g;
  g = -0x1.77f6574faa7e2p-15 + a * g;
  g = 0x1.5027e32380ff9p-11 + a * g;
  g = -0x1.cfbb1e7111d1cp-10 + a * g;
  g = 0x1.261b366766dfbp-12 + a * g;
  g = 0x1.38939b11ca66dp-6 + a * g;
  g = -0x1.a4da4e4414b0fp-4 + a * g;
  g = -0x1.45f42b4e4ab5fp-1 + a * g;
  g = -0x1.20dd562fb5288p0 + a * g;
  return -0x1.81aeade0fc81dp-23 + a * g;
}

LT_FN double lt_erf_f64(double x) {
  double a = fabs(x);
  a = a > 6.0 ? 6.0 : a;
  double y = a < 1.0 ? lt_erf_small_f64(a) : 1.0 - lt_exp_f64(lt_log_erfc_f64(a));
  return copysign(y, x);
}

LT_FN double lt_sin_f64(double x) { return sin(x); }

LT_FN double lt_cos_f64(double x) { return cos(x); }

LT_FN double lt_pow_f64(double x, double y) { return pow(x, y); }

#define LT_T       double
#define LT_NAME(n) lt_##n##_f64
#define LT_LIBM(n) n
#define LT_ALL_WHOLE 0x1p52
#include "ops/math/float_type.h"
#undef LT_T
#undef LT_NAME
#undef LT_LIBM
#undef LT_ALL_WHOLE

#endif
