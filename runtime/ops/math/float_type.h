/* runtime/ops/math/float_type.h: rounding, division and conversion for one compute type; included
   by f32.h and f64.h with LT_T, LT_NAME(function), LT_LIBM(function of C) and LT_ALL_WHOLE, from
   which on each number is whole, defined. No guard. */

LT_FN LT_T LT_NAME(sqrt)(LT_T x) { return LT_LIBM(sqrt)(x); }

LT_FN LT_T LT_NAME(rsqrt)(LT_T x) { return 1 / LT_LIBM(sqrt)(x); }

LT_FN LT_T LT_NAME(floor)(LT_T x) { return LT_LIBM(floor)(x); }

/* Half to even. */
LT_FN LT_T LT_NAME(round)(LT_T x) { return LT_LIBM(rint)(x); }

LT_FN LT_T LT_NAME(abs)(LT_T x) { return LT_LIBM(fabs)(x); }

/* C's fmod, exact. Below LT_ALL_WHOLE the truncated quotient is at most one too large, and a - q b
   has no rounding; further off, and for infinities and NaN, libm's. */
LT_FN LT_T LT_NAME(fmod)(LT_T a, LT_T b) {
  LT_T q = LT_LIBM(trunc)(a / b);
  if (!(LT_LIBM(fabs)(q) < LT_ALL_WHOLE)) return LT_LIBM(fmod)(a, b);
  LT_T r = q == 0 ? a : LT_LIBM(fma)(-q, b, a);
  r = (r < 0) != (a < 0) && r != 0 ? r + LT_LIBM(copysign)(b, a) : r;
  return r == 0 ? LT_LIBM(copysign)(r, a) : r;
}

/* The remainder with the sign of b, and floor(a / b) that belongs to it. */
LT_FN LT_T LT_NAME(floormod)(LT_T a, LT_T b) {
  LT_T r = LT_NAME(fmod)(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

LT_FN LT_T LT_NAME(floordiv)(LT_T a, LT_T b) {
  if (b == 0) return a / b;
  LT_T r = LT_NAME(fmod)(a, b), d = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) d -= 1;
  if (d == 0) return LT_LIBM(copysign)((LT_T)0, a / b);
  LT_T whole = LT_LIBM(floor)(d);
  return d - whole > (LT_T)0.5 ? whole + 1 : whole;
}

/* C leaves conversions of what does not fit undefined; ours saturate, NaN is 0. */
LT_FN int64_t LT_NAME(int_of)(LT_T x) {
  return x >= (LT_T)0x1p63    ? INT64_MAX
         : x <= (LT_T)-0x1p63 ? INT64_MIN
         : x != x             ? 0
                              : (int64_t)x;
}
