/* runtime/ops/math/trig.h: log2, log10, tan, the inverse and the hyperbolic functions, rounding.
 *
 * Rules of f32.h. Those of floats are computed in double and rounded once: plain formulas are then
 * right to half a unit, and the bits are those of every level and device. Those of doubles that
 * have no short formula call libm, as sin and cos do. */
#ifndef LT_OPS_MATH_TRIG_H
#define LT_OPS_MATH_TRIG_H

#include "ops/math/f32.h"
#include "ops/math/random.h"

LT_FN double lt_ceil_f64(double x) { return ceil(x); }
LT_FN float lt_ceil_f32(float x) { return ceilf(x); }
LT_FN double lt_trunc_f64(double x) { return trunc(x); }
LT_FN float lt_trunc_f32(float x) { return truncf(x); }

LT_FN double lt_log2_f64(double x) { return log2(x); }
LT_FN double lt_log10_f64(double x) { return log10(x); }

/* The logarithm to a base b: log2(x) / log2(b). */
LT_FN float lt_log_to_f32(float x, double over_log2_b) {
  float y = (float)(lt_log2_wide_f32(x) * over_log2_b);
  y = x < INFINITY ? y : x; /* infinity and NaN */
  y = x == 0.0f ? -INFINITY : y;
  return x < 0.0f ? NAN : y;
}

LT_FN float lt_log2_f32(float x) { return lt_log_to_f32(x, 1); }
LT_FN float lt_log10_f32(float x) { return lt_log_to_f32(x, 0x1.34413509f79ffp-2); }

LT_FN double lt_tan_f64(double x) { return tan(x); }

LT_FN float lt_tan_f32(float x) {
  double quarter, t = lt_turns_f32(x, &quarter), s, c;
  lt_sine_cosine_f64(t * 0x1.921fb54442d18p2, &s, &c);
  float y = (float)(((int)quarter & 1) != 0 ? -c / s : s / c);
  return x == 0.0f ? x : y; /* -0 */
}

/* Cephes' atan: x, (x - 1) / (x + 1) or -1 / x is at most 0.66, for which there is a rational
   function; what was taken off is added in two parts. */
LT_FN double lt_atan_f64(double x) {
  double a = fabs(x);
  int far = a > 2.41421356237309504880, near = a <= 0.66;
  double t = far ? -1 / a : near ? a : (a - 1) / (a + 1);
  double z = t * t;
  double p = -8.750608600031904122785e-1;
  p = p * z - 1.615753718733365076637e1;
  p = p * z - 7.500855792314704667340e1;
  p = p * z - 1.228866684490136173410e2;
  p = p * z - 6.485021904942025371773e1;
  double q = z + 2.485846490142306297962e1;
  q = q * z + 1.650270098316988542046e2;
  q = q * z + 4.328810604912902668951e2;
  q = q * z + 4.853903996359136964868e2;
  q = q * z + 1.945506571482613964425e2;
  double low = far ? 6.123233995736765886130e-17 : near ? 0 : 3.061616997868382943065e-17;
  double high = far ? 0x1.921fb54442d18p0 : near ? 0 : 0x1.921fb54442d18p-1;
  double y = high + (t + (t * z * (p / q) + low));
  return copysign(a <= 0x1p-30 ? a : y, x);
}

LT_FN float lt_atan_f32(float x) { return (float)lt_atan_f64((double)x); }

LT_FN double lt_asin_f64(double x) { return asin(x); }
LT_FN double lt_acos_f64(double x) { return acos(x); }
LT_FN double lt_atan2_f64(double y, double x) { return atan2(y, x); }

LT_FN float lt_asin_f32(float x) {
  double d = (double)x;
  return (float)lt_atan_f64(d / sqrt((1 - d) * (1 + d)));
}

LT_FN float lt_acos_f32(float x) {
  double d = (double)x;
  return (float)(2 * lt_atan_f64(sqrt((1 - d) / (1 + d))));
}

/* The angle of the point (x, y), with C99's special cases. */
LT_FN float lt_atan2_f32(float y, float x) {
  double a = fabs((double)x), b = fabs((double)y);
  double t = (a == b) ? 1 : b / a; /* also of two infinities */
  t = ((b == 0) & (a == 0)) ? 0 : t;
  double angle = lt_atan_f64(t);
  angle = signbit(x) ? 0x1.921fb54442d18p1 - angle : angle;
  float r = copysignf((float)angle, y);
  return x != x || y != y ? NAN : r;
}

/* e^a / 2, which is finite longer than e^a. */
LT_FN double lt_half_exp_f64(double a) {
  double half = lt_exp_f64(0.5 * a);
  return a > 700 ? 0.5 * half * half : 0.5 * lt_exp_f64(a);
}

LT_FN double lt_sinh_f64(double x) {
  double a = fabs(x), t = lt_expm1_f64(a > 22 ? 22 : a);
  return copysign(a > 22 ? lt_half_exp_f64(a) : 0.5 * (t + t / (t + 1)), x);
}

LT_FN double lt_cosh_f64(double x) {
  double a = fabs(x), half = lt_half_exp_f64(a);
  return a > 22 ? half : half + 0.25 / half;
}

LT_FN float lt_sinh_f32(float x) { return (float)lt_sinh_f64((double)x); }
LT_FN float lt_cosh_f32(float x) { return (float)lt_cosh_f64((double)x); }

#endif
