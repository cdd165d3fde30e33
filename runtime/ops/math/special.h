/* runtime/ops/math/special.h: gamma functions, Hurwitz's zeta, and erf's kin: erfc, its inverse,
 * the normal distribution's.
 *
 * Computed in double for both types; those of floats are rounded once. LT_FN_APART: GPUs call them
 * instead of making them part of the kernel of all rows, whose registers they would take. */
#ifndef LT_OPS_MATH_SPECIAL_H
#define LT_OPS_MATH_SPECIAL_H

#define LT_PI 0x1.921fb54442d18p1

#include "ops/math/bessel.h"

/* Sine and cosine of pi x. */
LT_FN void lt_half_turn_f64(double x, double *sine, double *cosine) {
  double r = x - 2 * rint(0.5 * x); /* exact */
  lt_turn_f64(0.5 * fabs(r), sine, cosine);
  *sine = r < 0 ? -*sine : *sine;
}

/* log |gamma(x)| for x > 0: Stirling's series from 10 on, to which smaller ones are moved by
   gamma(x + 1) = x gamma(x). M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 1964,
   6.1.41 and 6.1.15. Ten steps at most; all are made, with selects, so that loops vectorise. */
LT_FN double lt_stirling_f64(double x) {
  double z = x, product = 1;
  for (int k = 0; k < 10; k++) {
    int small = z < 10;
    product = small ? product * z : product;
    z = small ? z + 1 : z;
  }
  double r = 1 / z, w = r * r;
  double p = -691.0 / 360360 + w * (1.0 / 156);
  p = 1.0 / 1188 + w * p;
  p = -1.0 / 1680 + w * p;
  p = 1.0 / 1260 + w * p;
  p = -1.0 / 360 + w * p;
  p = 1.0 / 12 + w * p;
  double y = (z - 0.5) * lt_log_f64(z) - z + 0x1.d67f1c864beb5p-1 + r * p;
  return y - lt_log_f64(product);
}

/* Of negative ones by gamma(x) gamma(1 - x) = pi / sin(pi x). Abramowitz and Stegun 6.1.17. */
LT_FN_APART double lt_log_gamma_f64(double x) {
  double s, c, a = fabs(x), y = lt_stirling_f64(a);
  lt_half_turn_f64(a, &s, &c);
  if (x < 0) y = lt_log_f64(LT_PI / fabs(s * x)) - y;
  y = x == 1 || x == 2 ? 0 : y;
  y = a == 0 || (x < 0 && floor(x) == x) ? HUGE_VAL : y;
  return a < HUGE_VAL ? y : x != x ? x : HUGE_VAL;
}

LT_FN float lt_lgamma_f32(float x) { return (float)lt_log_gamma_f64((double)x); }

/* The C library's lgamma writes the sign to a global as well: a race of the threads of a loop. */
LT_FN double lt_lgamma_f64(double x) {
#ifdef __CUDA_ARCH__
  return lgamma(x);
#else
  int sign;
  return lgamma_r(x, &sign);
#endif
}

/* The derivative of lgamma: its series from 10 on, psi(x) = psi(x + 1) - 1 / x below, and psi(x) =
   psi(1 - x) - pi / tan(pi x) of negative ones. Abramowitz and Stegun 6.3.18, 6.3.5, 6.3.7. */
LT_FN_APART double lt_digamma_f64(double x) {
  double z = x < 0 ? 1 - x : x, y = 0;
  for (int k = 0; k < 10; k++) {
    int small = z < 10;
    y -= small ? 1 / z : 0;
    z = small ? z + 1 : z;
  }
  double w = 1 / (z * z);
  double p = 691.0 / 32760 - w * (1.0 / 12);
  p = 1.0 / 132 - w * p;
  p = 1.0 / 240 - w * p;
  p = 1.0 / 252 - w * p;
  p = 1.0 / 120 - w * p;
  p = 1.0 / 12 - w * p;
  y += z < 1e17 ? lt_log_f64(z) - 0.5 / z - w * p : lt_log_f64(z);
  if (x < 0) {
    double s, c;
    lt_half_turn_f64(x, &s, &c);
    y = floor(x) == x ? (double)NAN : y - LT_PI * c / s;
  }
  return x == 0 ? copysign(HUGE_VAL, -x) : y;
}

/* The sum of (q + k)^-s over k = 0, 1, ...: Cephes' Euler-Maclaurin sum. */
LT_FN double lt_zeta_sum_f64(double s, double q) {
  const double bernoulli[] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0,
                              -1.8924375803183791606e9, 7.47242496e10,
                              -2.950130727918164224e12, 1.1646782814350067249e14,
                              -4.5979787224074726105e15, 1.8152105401943546773e17,
                              -7.1661652561756670113e18};
  double sum = pow(q, -s), a = q, b = 0;
  for (int k = 0; k < 9 || a <= 9; k++) {
    a += 1;
    b = pow(a, -s);
    sum += b;
    if (fabs(b) < 0x1p-53 * fabs(sum)) return sum;
  }
  double w = a, rising = 1, k = 0;
  sum += b * w / (s - 1) - 0.5 * b;
  for (int i = 0; i < 12; i++, k += 2) {
    rising *= s + k;
    b /= w;
    double t = rising * b / bernoulli[i];
    sum += t;
    if (fabs(t) < 0x1p-53 * fabs(sum)) return sum;
    rising *= s + k + 1;
    b /= w;
  }
  return sum;
}

LT_FN_APART double lt_zeta_f64(double s, double q) {
  if (s == 1) return HUGE_VAL;
  if (s != s || q != q || s < 1) return (double)NAN;
  if (q == HUGE_VAL) return 0;
  if (q <= 0 && q == floor(q)) return HUGE_VAL;
  if (q < 0 && s != floor(s)) return (double)NAN;
  if (q >= -64) return lt_zeta_sum_f64(s, q);
  if (s != 2) return q < -1e6 ? (double)NAN : lt_zeta_sum_f64(s, q);
  double sine, cosine; /* the derivative of digamma far below: by reflection */
  lt_half_turn_f64(q, &sine, &cosine);
  return (LT_PI / sine) * (LT_PI / sine) - lt_zeta_sum_f64(2, 1 - q);
}

/* The C library's, in double: erf's polynomials are exact to what 1 - erfc asks, not erfc. */
LT_FN_APART double lt_erfc_f64(double x) { return erfc(x); }

/* The x > 0 of erf(x) = 1 - 2 q for small q, to some digits. */
LT_FN double lt_erfinv_tail_f64(double q) {
  double z = sqrt(-lt_log_f64(q));
  return (-1.970840454 + z * (-1.624906493 + z * (3.429567803 + z * 1.641345311))) /
         (1 + z * (3.543889200 + z * 1.637067800));
}

/* Two steps of Newton's method from a rational function. The rational functions are those of
   PyTorch's erfinv, good to some seven digits; Newton's method doubles them twice. Beyond 0.7
   in 1 - a, which is exact there. */
LT_FN_APART double lt_erfinv_f64(double y) {
  double a = fabs(y), z = a * a, x;
  if (a <= 0.7) {
    double p = 0.914624893 - z * 0.140543331;
    p = 0.886226899 + z * (-1.645349621 + z * p);
    double q = -0.329097515 + z * 0.012229801;
    q = 1 + z * (-2.118377725 + z * (1.442710462 + z * q));
    x = a * p / q;
  } else {
    x = lt_erfinv_tail_f64((1 - a) / 2);
  }
  for (int k = 0; k < 2; k++)
    x -= (lt_erf_f64(x) - a) / (0x1.20dd750429b6dp0 * lt_exp_f64(-x * x));
  x = a == 1 ? HUGE_VAL : x;
  return a <= 1 ? copysign(x, y) : (double)NAN;
}

/* exp(x^2) erfc(x): from 10 on its asymptotic series. The square's rounding error is made good.
   Abramowitz and Stegun 7.1.23. */
LT_FN_APART double lt_erfcx_f64(double x) {
  if (x >= 10) {
    double t = 1, sum = 1, w = 0.5 / (x * x);
    for (int k = 1; k < 16; k++) {
      t *= (1 - 2 * k) * w;
      sum += t;
    }
    return sum / (1.772453850905516 * x);
  }
  double square = x * x, rest = fma(x, x, -square);
  if (x < -26.7) return HUGE_VAL;
  return exp(square) * (1 + rest) * erfc(x);
}

/* log Phi(x), of the normal distribution. */
LT_FN_APART double lt_log_ndtr_f64(double x) {
  double z = x * 0.7071067811865476;
  return x < -1 ? log(0.5 * lt_erfcx_f64(-z)) - 0.5 * x * x : log1p(-0.5 * erfc(z));
}

/* The x of p = Phi(x): by erfinv in the middle, in the tails by Newton's method on log Phi. */
LT_FN_APART double lt_ndtri_f64(double p) {
  if (p > 0.15 && p < 0.85) return 1.4142135623730951 * lt_erfinv_f64(2 * p - 1);
  if (!(p > 0 && p < 1)) return p == 0 ? -HUGE_VAL : p == 1 ? HUGE_VAL : (double)NAN;
  double q = p < 0.5 ? p : 1 - p, x = -1.4142135623730951 * lt_erfinv_tail_f64(q);
  for (int k = 0; k < 4; k++) {
    double ratio = 1.2533141373155003 * lt_erfcx_f64(x * -0.7071067811865476); /* Phi / Phi' */
    x -= (lt_log_ndtr_f64(x) - log(q)) * ratio;
  }
  return p < 0.5 ? x : -x;
}

/* x^a exp(-x) / gamma(a). Of a large one, whose powers would lose digits, about a itself. */
LT_FN double lt_igamma_factor_f64(double a, double x) {
  if (a < 20) return exp(a * log(x) - x - lt_log_gamma_f64(a));
  double m = (x - a) / a, r = 1 / a, w = r * r;
  double stirling = r * (1.0 / 12 - w * (1.0 / 360 - w * (1.0 / 1260 - w / 1680)));
  return sqrt(a / (2 * LT_PI)) * exp(a * (log1p(m) - m) - stirling);
}

/* The lower one by its series in x: all terms are positive. Abramowitz and Stegun 6.5.29; W. Press
   and others, Numerical Recipes, 1992, section 6.2. */
LT_FN double lt_igamma_series_f64(double a, double x) {
  double t = 1, sum = 1;
  for (int k = 1; t > 0x1p-55 * sum && k < 100000; k++) {
    t *= x / (a + k);
    sum += t;
  }
  return sum * lt_igamma_factor_f64(a, x) / a;
}

/* The upper one for small x, where 1 less the lower one loses digits. */
LT_FN double lt_igammac_series_f64(double a, double x) {
  double t = 1, sum = 0, power = a * log(x) - lt_log_gamma_f64(1 + a);
  for (int k = 1; k < 30; k++) {
    t *= -x / k;
    sum += t / (a + k);
  }
  return -expm1(power) - a * exp(power) * sum;
}

/* The upper one by its continued fraction, as Lentz evaluates it. Abramowitz and Stegun 6.5.31;
   Numerical Recipes, 1992, sections 5.2 and 6.2 (the modified Lentz method). */
LT_FN double lt_igammac_fraction_f64(double a, double x) {
  double b = x + 1 - a, c = 0x1p1000, d = 1 / b, h = d, step = 0;
  for (int k = 1; fabs(step - 1) > 0x1p-52 && k < 100000; k++) {
    double n = k * (a - k);
    b += 2;
    d = 1 / (n * d + b);
    c = b + n / c;
    step = c * d;
    h *= step;
  }
  return h * lt_igamma_factor_f64(a, x);
}

/* The regularized incomplete gamma function, the lower one or, `upper`, 1 less it: the one that is
   not near 1 is computed. */
LT_FN_APART double lt_igamma_part_f64(double a, double x, int upper) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == HUGE_VAL && x == HUGE_VAL))
    return (double)NAN;
  if (x == 0 || a == HUGE_VAL) return upper;
  if (a == 0 || x == HUGE_VAL) return !upper;
  if (x < a || (x <= 1.1 && (x <= 0.5 ? -0.4 / log(x) < a : x * 1.1 < a))) {
    double lower = lt_igamma_series_f64(a, x);
    return upper ? 1 - lower : lower;
  }
  double y = x <= 1.1 ? lt_igammac_series_f64(a, x) : lt_igammac_fraction_f64(a, x);
  return upper ? y : 1 - y;
}

LT_FN double lt_igamma_f64(double a, double x) { return lt_igamma_part_f64(a, x, 0); }
LT_FN double lt_igammac_f64(double a, double x) { return lt_igamma_part_f64(a, x, 1); }

#define LT_SPECIAL(name) \
  LT_FN float lt_##name##_f32(float x) { return (float)lt_##name##_f64((double)x); }
#define LT_SPECIAL2(name)                       \
  LT_FN float lt_##name##_f32(float a, float b) { \
    return (float)lt_##name##_f64((double)a, (double)b); \
  }
#include "ops/math/special.def"

#endif
