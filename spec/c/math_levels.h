/* spec/c/math_levels.h: loops over the math functions, one table per instruction level. */
#ifndef LT_SPEC_MATH_LEVELS_H
#define LT_SPEC_MATH_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

/* Tables have the order of ops/math/bounds.def. */
enum {
#define LT_MATH(name, ulp32, ulp64) math_##name,
#include "ops/math/bounds.def"
  math_count
};

typedef struct math_level {
  const char *name; /* "v2", "v3", "v4", "plain" */
  void (*f32[math_count])(float *y, const float *x, int64_t n);
  void (*f64[math_count])(double *y, const double *x, int64_t n);
  void (*pow_f32)(float *z, const float *x, const float *y, int64_t n);
  void (*pow_f64)(double *z, const double *x, const double *y, int64_t n);
  void (*f16_to_f32)(float *y, const uint16_t *x, int64_t n);
  void (*f32_to_f16)(uint16_t *y, const float *x, int64_t n);
  void (*bf16_to_f32)(float *y, const uint16_t *x, int64_t n);
  void (*f32_to_bf16)(uint16_t *y, const float *x, int64_t n);
  /* Whether some got[i] may be off by more than `bound` ulp, or be 0: a quick look without the
   * special cases, which says yes for them. */
  bool (*may_exceed)(const float *got, const double *want, int64_t n, double bound);
} math_level;

#define LT_CPU_LEVEL(level) extern const math_level math_level_##level;
#include "cpu/levels.def"
#undef LT_CPU_LEVEL

#endif
