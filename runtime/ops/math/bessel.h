/* runtime/ops/math/bessel.h: Bessel functions of order 0 and 1, and Airy's Ai.
 *
 * Those of the first and second kind are the C library's. The modified ones and Ai are sums whose
 * terms have one sign, and integrals of entire functions, whose sums at equal steps (the
 * trapezoidal rule) err by less than the last bit: no tables of coefficients. */
#ifndef LT_OPS_MATH_BESSEL_H
#define LT_OPS_MATH_BESSEL_H

#include "ops/math/trig.h"

LT_FN_APART double lt_bessel_j0_f64(double x) { return j0(x); }
LT_FN_APART double lt_bessel_j1_f64(double x) { return j1(x); }
LT_FN_APART double lt_bessel_y0_f64(double x) { return x < 0 ? (double)NAN : y0(x); }
LT_FN_APART double lt_bessel_y1_f64(double x) { return x < 0 ? (double)NAN : y1(x); }

/* exp(-|x|) I_n(x): the series in powers of x below 20, the asymptotic one above. Abramowitz and
   Stegun, Handbook of Mathematical Functions, 1964, 9.6.10 and 9.7.1. All terms of the series are
   positive: nothing cancels, up to where the other one is exact. */
LT_FN_APART double lt_bessel_i_f64(int n, double x) {
  double a = fabs(x), t = 1, sum = 1;
  if (a < 20) {
    sum = t = n == 0 ? 1 : 0.5 * a;
    for (int k = 1; t > 0x1p-55 * sum; k++) {
      t *= 0.25 * a * a / (k * (k + n));
      sum += t;
    }
    sum *= lt_exp_f64(-a);
  } else {
    for (int k = 1; k < 40 && fabs(t) > 0x1p-55; k++) {
      t *= ((2 * k - 1) * (2 * k - 1) - 4 * n * n) / (8 * a * k);
      sum += t;
    }
    sum /= sqrt(6.283185307179586 * a);
  }
  return n == 1 && x < 0 ? -sum : sum;
}

/* Its factor in halves, since exp(|x|) is infinite before I_n(x) is. NaN at infinity, as libraries
   have it. */
LT_FN double lt_bessel_i_whole_f64(int n, double x) {
  double half = lt_exp_f64(0.5 * fabs(x));
  return lt_bessel_i_f64(n, x) * half * half;
}

LT_FN double lt_i0_f64(double x) { return lt_bessel_i_whole_f64(0, x); }
LT_FN double lt_i1_f64(double x) { return lt_bessel_i_whole_f64(1, x); }
LT_FN double lt_i0e_f64(double x) { return lt_bessel_i_f64(0, x); }
LT_FN double lt_i1e_f64(double x) { return lt_bessel_i_f64(1, x); }

/* exp(x) K_n(x) below 1: with t_k = (x / 2)^2k / (k! (k + n)!), K_0 is the sum of t_k (psi(k + 1) -
   log(x / 2)), and K_1 is 1 / x less such a sum. Abramowitz and Stegun 9.6.11. */
LT_FN double lt_bessel_k_series_f64(int n, double x) {
  double t = 1, psi = -0.5772156649015329, sum = 0, ln = lt_log_f64(0.5 * x);
  for (int k = 0; k < 11; k++) {
    sum += t * (psi + (n == 0 ? 0 : 0.5 / (k + 1)) - ln);
    psi += 1.0 / (k + 1);
    t *= 0.25 * x * x / ((k + 1) * (k + 1 + n));
  }
  return (n == 0 ? sum : 1 / x - 0.5 * x * sum) * lt_exp_f64(x);
}

/* exp(x) K_n(x): above 1 the integral of exp(-x (cosh t - 1)) cosh(n t) over t > 0. Abramowitz and
   Stegun 9.6.24. Sums at equal steps of such an integrand converge exponentially (L. Trefethen and
   J. Weideman, The Exponentially Convergent Trapezoidal Rule, 2014). */
LT_FN_APART double lt_bessel_k_f64(int n, double x) {
  if (!(x > 0)) return x == 0 ? HUGE_VAL : (double)NAN;
  if (x < 1) return lt_bessel_k_series_f64(n, x);
  if (x == HUGE_VAL) return 0;
  double step = 0.7 / sqrt(x + 12), sum = 0.5, t = 1;
  for (int k = 1; t > 0x1p-56 * sum; k++) {
    double s = lt_sinh_f64(0.5 * step * k), w = 2 * s * s; /* cosh t - 1 */
    t = lt_exp_f64(-x * w) * (n == 0 ? 1 : 1 + w);
    sum += t;
  }
  return step * sum;
}

LT_FN double lt_scaled_modified_bessel_k0_f64(double x) { return lt_bessel_k_f64(0, x); }
LT_FN double lt_scaled_modified_bessel_k1_f64(double x) { return lt_bessel_k_f64(1, x); }
LT_FN double lt_modified_bessel_k0_f64(double x) { return lt_bessel_k_f64(0, x) * lt_exp_f64(-x); }
LT_FN double lt_modified_bessel_k1_f64(double x) { return lt_bessel_k_f64(1, x) * lt_exp_f64(-x); }

/* Maclaurin's series near 0. Elsewhere Ai(z) = exp(-2/3 z^(3/2)) / pi times the integral of
   exp(-sqrt(z) t^2) cos(t^3 / 3) over t > 0, and Ai(-x) = 2 Re(w Ai(w x)) of w = exp(i pi / 3). */
LT_FN_APART double lt_airy_ai_f64(double x) {
  double a = fabs(x);
  if (a < 2) {
    double f = 1, g = x, even = 1, odd = x;
    for (int k = 3; k < 48; k += 3) {
      even *= x * x * x / (k * (k - 1));
      odd *= x * x * x / (k * (k + 1));
      f += even;
      g += odd;
    }
    return 0.3550280538878172 * f - 0.25881940379280678 * g;
  }
  double root = sqrt(a), scale = 1 / sqrt(root), zeta = 2 * a * root / 3;
  double c = x > 0 ? 1 : 0.8660254037844386, s = x > 0 ? 0 : 0.5; /* sqrt(w) */
  double re = 0.5, im = 0, cube = scale * scale * scale / 3;
  for (int k = 1; k < 46; k++) {
    double u = 0.15 * k, t = exp(-c * u * u) * cos(cube * u * u * u);
    re += t * cos(s * u * u);
    im -= t * sin(s * u * u);
  }
  scale *= 0.15 / LT_PI;
  if (x > 0) return scale * re * exp(-zeta);
  return 2 * scale * (cos(LT_PI / 3 - zeta) * re - sin(LT_PI / 3 - zeta) * im);
}

#endif
