/* runtime/ops/math/i64.h: integer arithmetic of elementwise operations: it wraps, without undefined
   behaviour. */
#ifndef LT_OPS_MATH_I64_H
#define LT_OPS_MATH_I64_H

#include <stdint.h>

#include "base/host_device.h"

LT_FN int64_t lt_abs_i64(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }

/* Whole already. */
LT_FN int64_t lt_floor_i64(int64_t x) { return x; }
LT_FN int64_t lt_ceil_i64(int64_t x) { return x; }
LT_FN int64_t lt_round_i64(int64_t x) { return x; }
LT_FN int64_t lt_trunc_i64(int64_t x) { return x; }

/* Rounds down; 0 for a divisor of 0, which is refused before. */
LT_FN int64_t lt_floordiv_i64(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return b == 0 ? 0 : (int64_t)(0 - (uint64_t)a);
  int64_t d = a / b;
  return d - (a % b != 0 && (a < 0) != (b < 0));
}

LT_FN int64_t lt_floormod_i64(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b * (uint64_t)lt_floordiv_i64(a, b));
}

/* C's %, with the sign of a. */
LT_FN int64_t lt_fmod_i64(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

/* As in PyTorch: shifts by what is negative or too far leave 0, to the right the sign. */
LT_FN int64_t lt_shift_left_i64(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

LT_FN int64_t lt_shift_right_i64(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

LT_FN int64_t lt_gcd_i64(int64_t a, int64_t b) {
  for (int64_t rest; b != 0; a = b, b = rest) rest = lt_fmod_i64(a, b);
  return lt_abs_i64(a);
}

/* Negative powers are refused before. */
LT_FN int64_t lt_pow_i64(int64_t a, int64_t b) {
  uint64_t r = 1, x = (uint64_t)a;
  for (; b > 0; b >>= 1, x *= x)
    if ((b & 1) != 0) r *= x;
  return (int64_t)r;
}

#endif
