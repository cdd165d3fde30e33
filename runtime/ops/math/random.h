/* runtime/ops/math/random.h: helpers of random draws on all devices: sines for Box-Muller, searches
   in cumulative sums. */
#ifndef LT_OPS_MATH_RANDOM_H
#define LT_OPS_MATH_RANDOM_H

#include "ops/math/f64.h"

/* sin and cos of x, at most pi / 4: fdlibm's __kernel_sin and __kernel_cos. */
LT_FN void lt_sine_cosine_f64(double x, double *sine, double *cosine) {
  double z = x * x;
  double s = -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10;
  s = 2.75573137070700676789e-06 + z * s;
  s = -1.98412698298579493134e-04 + z * s;
  s = 8.33333333332248946124e-03 + z * s;
  s = -1.66666666666666324348e-01 + z * s;
  *sine = x + x * z * s;
  double c = 2.08757232129817482790e-09 + z * -1.13596475577881948265e-11;
  c = -2.75573143513906633035e-07 + z * c;
  c = 2.48015872894767294178e-05 + z * c;
  c = -1.38888888888741095749e-03 + z * c;
  c = 4.16666666666666019037e-02 + z * c;
  *cosine = 1 - 0.5 * z + z * z * c;
}

/* sin and cos of 2 pi v for v in [0, 1): the quarter nearest to v is taken off exactly. */
LT_FN void lt_turn_f64(double v, double *sine, double *cosine) {
  double quarter = lt_round_f64(4 * v), s, c;
  lt_sine_cosine_f64((v - 0.25 * quarter) * 0x1.921fb54442d18p2, &s, &c);
  int swap = (quarter == 1) | (quarter == 3);
  double a = swap ? c : s, b = swap ? s : c;
  *sine = ((quarter == 2) | (quarter == 3)) ? -a : a;
  *cosine = ((quarter == 1) | (quarter == 2)) ? -b : b;
}

/* Running sums of weights are made of runs of this many: the sum within a run, added to that of the
   runs before it. Runs can be summed side by side, and all devices get the same bits. */
enum { LT_RUN = 128 };

/* The first of n rising sums that is above u; the last where none is. */
LT_FN int64_t lt_first_above(const double *sums, int64_t n, double u) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (sums[middle] > u)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

#endif
