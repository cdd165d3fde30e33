/* runtime/ops/math/f32.h: the math functions of the CPU kernels, in plain C that the compiler
 * vectorises.
 *
 * An op row's `exp` means lt_exp_f32 or lt_exp_f64 (f64.h). libm's functions are scalar calls;
 * a loop over these becomes vector code at each instruction level. What keeps it so (gcc 12): no
 * call, no branch, no table, selects by ?:, bit casts by memcpy, integers of the width of the
 * floats. All work without -ffast-math: NaN, infinities, denormals and signed zeros come out as C99
 * Annex F says. Products that must be exact have constants with trailing zeros, so nothing here
 * depends on fused multiply-add; results differ in the last bit between a level with it and one
 * without. How exact each function is: bounds.def. Coefficients are minimax polynomials found with
 * Sollya. */
#ifndef LT_OPS_MATH_F32_H
#define LT_OPS_MATH_F32_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops/math/f64.h"

LT_FN uint32_t lt_bits_f32(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

LT_FN float lt_from_bits_f32(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* e^r - 1 - r for |r| <= 0.35. */
LT_FN float lt_exp_tail_f32(float r) {
  float p = 0x1.6d3454p-10f + r * 0x1.a2cdc2p-13f;
  p = 0x1.110fc6p-7f + r * p;
  p = 0x1.5554fep-5f + r * p;
  p = 0x1.555556p-3f + r * p;
  p = 0.5f + r * p;
  return r * r * p;
}

/* Returns r with x = n ln 2 + r, |r| <= 0.35, and n in the low bits of *bits (n + 0x4b400000).
   Adding 1.5 * 2^23 rounds to an integer and leaves it there; good for |x| < 10^6. ln 2 in two
   parts, the first with zeros at its end, so that n times it is exact (W. Cody and W. Waite,
   Software Manual for the Elementary Functions, 1980). */
LT_FN float lt_exp_reduce_f32(float x, uint32_t *bits) {
  float z = x * 0x1.715476p+0f + 0x1.8p23f;
  *bits = lt_bits_f32(z);
  z -= 0x1.8p23f;
  float r = x - z * 0x1.62e4p-1f;
  return r - z * 0x1.7f7d1cp-20f;
}

/* e^x where x is known to lie in [-87, 88]; NaN passes. */
LT_FN float lt_exp_mid_f32(float x) {
  uint32_t n;
  float r = lt_exp_reduce_f32(x, &n);
  float p = 1.0f + (r + lt_exp_tail_f32(r));
  return p * lt_from_bits_f32((n - 0x4b400000u + 127u) << 23);
}

/* Clamped so that 2^n below stays a number that has a pattern of bits: beyond, the result is 0 or
   infinity all the same. */
LT_FN float lt_exp_f32(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  uint32_t n;
  float r = lt_exp_reduce_f32(x, &n);
  float p = 1.0f + (r + lt_exp_tail_f32(r));
  /* Two factors, since 2^n may be denormal or 2^128. 256 keeps n positive under the shift. */
  n = n - 0x4b400000u + 256u;
  uint32_t half = n >> 1;
  return p * lt_from_bits_f32((half - 1u) << 23) * lt_from_bits_f32((n - half - 1u) << 23);
}

/* Below -18 it is -1 to the last bit. e^x - 1 is put together from 2^n - 1 and 2^n times the rest:
   subtracting 1 at the end would cancel near 0. */
LT_FN float lt_expm1_f32(float x) {
  float c = x > 89.0f ? 89.0f : x;
  c = c < -18.0f ? -18.0f : c;
  uint32_t n;
  float r = lt_exp_reduce_f32(c, &n);
  float p = r + lt_exp_tail_f32(r);
  float scale = lt_from_bits_f32((n - 0x4b400000u + 126u) << 23); /* 2^n / 2: n may be 128 */
  float y = 2.0f * (scale * p + (scale - 0.5f));
  return fabsf(x) < 0x1p-25f ? x : y; /* -0, and denormals, which halving would cut */
}

/* log(2^k (1 + f)) for |f| <= 1/3. */
LT_FN float lt_log_sum_f32(float f, float k) {
  float p = 0x1.132eb2p-3f - f * 0x1.04ff46p-3f;
  p = -0x1.f4c812p-4f + f * p;
  p = 0x1.211abap-3f + f * p;
  p = -0x1.558a74p-3f + f * p;
  p = 0x1.99addep-3f + f * p;
  p = -0x1.ffff74p-3f + f * p;
  p = 0x1.55554cp-2f + f * p;
  p = -0.5f + f * p;
  return k * 0x1.62e4p-1f + (f + (f * f * p + k * 0x1.7f7d1cp-20f));
}

/* Mantissas around 1 rather than from 1 on: log(0.99) must not be -log 2 plus something near log 2.
   Denormals are first made normal. */
LT_FN float lt_log_f32(float x) {
  int tiny = x < 0x1p-126f;
  uint32_t u = lt_bits_f32(tiny ? x * 0x1p25f : x);
  int32_t k = (int32_t)(u - 0x3f2aaaabu) >> 23; /* 2/3 <= m < 4/3 */
  float f = lt_from_bits_f32(u - ((uint32_t)k << 23)) - 1.0f;
  float y = lt_log_sum_f32(f, (float)(tiny ? k - 25 : k));
  y = x < INFINITY ? y : x; /* infinity and NaN */
  y = x == 0.0f ? -INFINITY : y;
  return x < 0.0f ? NAN : y;
}

/* The logarithm of 1 + x as it is rounded, with the rounding's error added to the mantissa: it is
   known exactly (D. Knuth, The Art of Computer Programming, volume 2, section 4.2.2). */
LT_FN float lt_log1p_f32(float x) {
  float sum = 1.0f + x;
  float low = sum - 1.0f;
  low = (1.0f - (sum - low)) + (x - low); /* what rounding took from 1 + x */
  uint32_t u = lt_bits_f32(sum);
  int32_t k = (int32_t)(u - 0x3f2aaaabu) >> 23;
  float m = lt_from_bits_f32(u - ((uint32_t)k << 23));
  float scale = lt_from_bits_f32((uint32_t)(129 - k) << 23); /* 4 / 2^k: k may be 128 */
  float y = lt_log_sum_f32((m - 1.0f) + low * scale * 0.25f, (float)k);
  y = x < INFINITY ? y : x;
  y = x == 0.0f ? x : y;
  y = x == -1.0f ? -INFINITY : y;
  return x < -1.0f ? NAN : y;
}

/* Near 0 the formula with exp would cancel: a polynomial there. From 10 on it is 1 to the last
   bit. */
LT_FN float lt_tanh_f32(float x) {
  float a = fabsf(x);
  float c = a > 10.0f ? 10.0f : a;
  float big = 1.0f - 2.0f / (lt_exp_mid_f32(2.0f * c) + 1.0f);
  float z = c * c;
  float p = 0x1.5c59ep-6f - z * 0x1.ab9624p-8f;
  p = -0x1.b98ebcp-5f + z * p;
  p = 0x1.110fa8p-3f + z * p;
  p = -0x1.555554p-2f + z * p;
  float small = a + a * z * p;
  return copysignf(a < 0.5625f ? small : big, x);
}

/* Under 0.9275 x + x q(x^2), above 1 - exp(g(x)) with g = log erfc. */
LT_FN float lt_erf_f32(float x) {
  float a = fabsf(x);
  a = a > 4.0f ? 4.0f : a;
  float z = a * a;
  float q = -0x1.a90b78p-11f + z * 0x1.58c4cap-14f;
  q = 0x1.54a622p-8f + z * q;
  q = -0x1.b80b26p-6f + z * q;
  q = 0x1.ce2dep-4f + z * q;
  q = -0x1.812742p-2f + z * q;
  q = 0x1.06eba8p-3f + z * q;
  float g = -0x1.8ee16cp-9f + a * 0x1.9ae8fep-13f;
  g = 0x1.6c2a76p-6f + a * g;
  g = -0x1.a9b42ep-4f + a * g;
  g = -0x1.463ccp-1f + a * g;
  g = -0x1.20af5ap0f + a * g;
  g = -0x1.9a5ca2p-13f + a * g;
  float y = a < 0.9275f ? a + a * q : 1.0f - lt_exp_mid_f32(g);
  return copysignf(y, x);
}

/* x / (2 pi) less the quarter turns in *quarter, right for every float: at most 1/8.

   x / (2 pi) modulo 1 is found without a loop or a table: 1 / (2 pi) is cut into pieces of 29 bits,
   whose products with x (24 bits) are exact in double; each drops its whole turns exactly. Four
   pieces reach 2^-140, enough for |x| < 2^81; above, the first two only give whole turns, and the
   window moves on by them. The idea is M. Payne's and R. Hanek's (Radian reduction for
   trigonometric functions, 1983): bits of 1 / (2 pi) that only make whole turns are never
   multiplied. */
LT_FN double lt_turns_f32(float x, double *quarter) {
  int far = fabsf(x) >= 0x1p81f;
  double d = (double)x;
  double p1 = d * (far ? 0x1.4fe13a8p-61 : 0x1.45f306cp-3);
  double p2 = d * (far ? 0x1.f47d4d3p-88 : 0x1.c9c882ap-31);
  double p3 = d * (far ? 0x1.dc0db62p-118 : 0x1.4fe13a8p-61);
  double p4 = d * (far ? 0x1.2b3278872084p-147 : 0x1.f47d4d377036ep-88);
  p1 -= rint(p1);
  p2 -= rint(p2);
  p3 -= rint(p3);
  *quarter = rint(4.0 * (p1 + p2 + p3 + p4));
  /* The large terms meet first and nearly cancel, so the sum is exact where it comes near 0. */
  return (((p1 - 0.25 * *quarter) + p2) + p3) + p4;
}

/* sin(x + turns / 4 * 2 pi) for turns 0 or 1. Of r at most pi / 4 both polynomials are computed and
   one is taken: a branch would end vectorisation. */
LT_FN float lt_sine_f32(float x, uint32_t turns) {
  double quarter, t = lt_turns_f32(x, &quarter);
  float r = (float)(t * 0x1.921fb54442d18p2);
  uint32_t n = lt_bits_f32((float)quarter + 0x1.8p23f) + turns;
  float z = r * r;
  float s = 0x1.110be6p-7f - z * 0x1.9ab408p-13f;
  s = -0x1.555552p-3f + z * s;
  s = r + r * z * s;
  float c = -0x1.6c129ep-10f + z * 0x1.9bc76ap-16f;
  c = 0x1.555554p-5f + z * c;
  c = 1.0f + z * (-0.5f + z * c);
  float y = (n & 1u) != 0 ? c : s;
  return lt_from_bits_f32(lt_bits_f32(y) ^ ((n & 2u) << 30));
}

LT_FN float lt_sin_f32(float x) {
  float y = lt_sine_f32(x, 0);
  return x == 0.0f ? x : y; /* -0 */
}

LT_FN float lt_cos_f32(float x) { return lt_sine_f32(x, 1); }

/* log2(a) for a > 0, finite, in double to 2^-40 of its value. By the series of atanh: log((1 + s) /
   (1 - s)) has odd powers only. 40 bits, as the product with y in pow multiplies the error by up to
   2^7, and 24 bits are to be right. */
LT_FN double lt_log2_wide_f32(float a) {
  int tiny = a < 0x1p-126f;
  uint32_t u = lt_bits_f32(tiny ? a * 0x1p25f : a);
  int32_t k = (int32_t)(u - 0x3f2aaaabu) >> 23;
  double f = (double)(lt_from_bits_f32(u - ((uint32_t)k << 23)) - 1.0f);
  double s = f / (2.0 + f);
  double z = s * s;
  double p = 0x1.c5e923f3ae919p-3 + z * 0x1.95e28e59d9bd5p-3;
  p = 0x1.249482c9c3d28p-2 + z * p;
  p = 0x1.999996b8d3d47p-2 + z * p;
  p = 0x1.55555555a1807p-1 + z * p;
  return (double)(tiny ? k - 25 : k) + (2.0 * s + s * z * p) * 0x1.71547652b82fep0;
}

/* 2^t rounded to float. */
LT_FN float lt_exp2_wide_f32(double t) {
  t = t > 130.0 ? 130.0 : t;
  t = t < -160.0 ? -160.0 : t;
  double z = t + 0x1.8p52;
  uint64_t n = lt_bits_f64(z);
  double r = t - (z - 0x1.8p52);
  double p = 0x1.446cf0d640702p-13 + r * 0x1.fe1404d1b0acbp-17;
  p = 0x1.5d8a7a97eaf69p-10 + r * p;
  p = 0x1.3b29d8c1beab2p-7 + r * p;
  p = 0x1.c6b08a9e21768p-5 + r * p;
  p = 0x1.ebfbe0a8e3662p-3 + r * p;
  p = 0x1.62e42ff122248p-1 + r * p;
  p = 0x1.ffffffffa90a2p-1 + r * p;
  return (float)(p * lt_from_bits_f64((n + 1023u) << 52));
}

/* x^y with all of C99's special cases: 1 for y = 0 or x = 1 even beside NaN, the sign of x for odd
 * integers y, NaN for another power of x < 0. */
LT_FN float lt_pow_f32(float x, float y) {
  float a = fabsf(x);
  double l = lt_log2_wide_f32(a);
  l = a < INFINITY ? l : (double)a; /* infinity and NaN */
  l = a == 0.0f ? -HUGE_VAL : l;
  double t = l * (double)y;
  t = a == 1.0f ? (double)(y - y) : t; /* (+-1)^inf: |1| */
  t = fabsf(y) == INFINITY ? (a == 1.0f ? 0.0 : t) : t;
  float p = lt_exp2_wide_f32(t);
  int whole = rintf(y) == y;
  int odd = whole & (rintf(0.5f * y) != 0.5f * y);
  uint32_t sign = lt_bits_f32(x) & 0x80000000u;
  float v = lt_from_bits_f32(lt_bits_f32(p) ^ (odd ? sign : 0u));
  v = ((x < 0.0f) & (a < INFINITY) & !whole & (y == y)) ? NAN : v;
  v = y == 0.0f ? 1.0f : v;
  return x == 1.0f ? 1.0f : v;
}

#define LT_T       float
#define LT_NAME(n) lt_##n##_f32
#define LT_LIBM(n) n##f
#define LT_ALL_WHOLE 0x1p23f /* above, each float is whole */
#include "ops/math/float_type.h"
#undef LT_T
#undef LT_NAME
#undef LT_LIBM
#undef LT_ALL_WHOLE

#endif
