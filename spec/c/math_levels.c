/* spec/c/math_levels.c: loops over the math functions, compiled once per level as kernels are. */
#include "math_levels.h"

#include "ops/math/half.h"
#include "ops/math/special.h"

#define LT_MATH(name, ulp32, ulp64)                                                                \
  static void name##_f32(float *restrict y, const float *restrict x, int64_t n) {                  \
    for (int64_t i = 0; i < n; i++) y[i] = lt_##name##_f32(x[i]);                                  \
  }                                                                                                \
  static void name##_f64(double *restrict y, const double *restrict x, int64_t n) {                \
    for (int64_t i = 0; i < n; i++) y[i] = lt_##name##_f64(x[i]);                                  \
  }
#define LT_MATH2(name, ulp32, ulp64)                                                               \
  static void name##_f32(float *restrict z, const float *restrict x, const float *restrict y,      \
                         int64_t n) {                                                              \
    for (int64_t i = 0; i < n; i++) z[i] = lt_##name##_f32(x[i], y[i]);                            \
  }                                                                                                \
  static void name##_f64(double *restrict z, const double *restrict x, const double *restrict y,   \
                         int64_t n) {                                                              \
    for (int64_t i = 0; i < n; i++) z[i] = lt_##name##_f64(x[i], y[i]);                            \
  }
#include "ops/math/bounds.def"

static void f16_to_f32(float *restrict y, const uint16_t *restrict x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = lt_f16_to_f32(x[i]);
}

static void f32_to_f16(uint16_t *restrict y, const float *restrict x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = lt_f32_to_f16(x[i]);
}

static void bf16_to_f32(float *restrict y, const uint16_t *restrict x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = lt_bf16_to_f32(x[i]);
}

static void f32_to_bf16(uint16_t *restrict y, const float *restrict x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = lt_f32_to_bf16(x[i]);
}

static bool may_exceed(const float *got, const double *want, int64_t n, double bound) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t exponent = lt_bits_f64(want[i]) >> 52 & 0x7ff;
    exponent = exponent < 1023 - 126 ? 1023 - 126 : exponent;
    double places = lt_from_bits_f64((2 * 1023 + 23 - exponent) << 52);
    count += !(fabs((double)got[i] - want[i]) * places <= bound) | (got[i] == 0);
  }
  return count > 0;
}

#define STRING(x)     #x
#define STRING_OF(x)  STRING(x)
#define JOIN(a, b)    a##b
#define JOIN_OF(a, b) JOIN(a, b)

const math_level JOIN_OF(math_level_, LT_LEVEL) = {
    .name = STRING_OF(LT_LEVEL),
    .f32 =
        {
#define LT_MATH(name, ulp32, ulp64) name##_f32,
#include "ops/math/bounds.def"
        },
    .f64 =
        {
#define LT_MATH(name, ulp32, ulp64) name##_f64,
#include "ops/math/bounds.def"
        },
#define LT_MATH2(name, ulp32, ulp64) .name##_f32 = name##_f32, .name##_f64 = name##_f64,
#include "ops/math/bounds.def"
    .f16_to_f32 = f16_to_f32,
    .f32_to_f16 = f32_to_f16,
    .bf16_to_f32 = bf16_to_f32,
    .f32_to_bf16 = f32_to_bf16,
    .may_exceed = may_exceed,
};
