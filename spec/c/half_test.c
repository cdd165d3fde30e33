/* spec/c/half_test.c: f16 and bf16 against a definition by arithmetic alone.
 *
 * All 65,536 patterns to float and back; floats to half every 1,009th and all special ones, with
 * LT_EXHAUSTIVE=1 all 2^32, at each level that the machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "math_arguments.h"

enum { level_max = 4, patterns = 1 << 16 };

/* A 16-bit format: sign, exponent, `digits` - 1 stored binary digits. */
typedef struct format {
  const char *name;
  int digits, lowest; /* exponent of the smallest normal number */
} format;

static format f16 = {"f16", 11, -14};
static format bf16 = {"bf16", 8, -126};

/* The value of a pattern, from the meaning of its fields. */
static double value_of(const format *f, uint16_t h) {
  int stored = f->digits - 1;
  int exponent = (h & 0x7fff) >> stored;
  int fraction = h & ((1 << stored) - 1);
  double v;
  if (exponent == 0x7fff >> stored)
    v = fraction ? (double)NAN : HUGE_VAL;
  else if (exponent == 0)
    v = ldexp(fraction, f->lowest - stored);
  else
    v = ldexp(fraction + (1 << stored), f->lowest + exponent - 1 - stored);
  return h & 0x8000 ? -v : v;
}

/* x rounded half to even to the format, by rint and ldexp. */
static double rounded(const format *f, double x) {
  if (isnan(x) || isinf(x) || x == 0) return x;
  int exponent = ilogb(x) < f->lowest ? f->lowest : ilogb(x);
  double place = ldexp(1, exponent - f->digits + 1);
  double v = rint(x / place) * place;
  double top = ldexp(1, 2 - f->lowest);
  return fabs(v) >= top ? copysign(HUGE_VAL, x) : v;
}

static bool same(double a, double b) {
  return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void to_float(const format *f, const math_level *l, float *y, const uint16_t *x, int64_t n) {
  (f == &f16 ? l->f16_to_f32 : l->bf16_to_f32)(y, x, n);
}

static void from_float(const format *f, const math_level *l, uint16_t *y, const float *x,
                       int64_t n) {
  (f == &f16 ? l->f32_to_f16 : l->f32_to_bf16)(y, x, n);
}

static void test_every_pattern(void **state) {
  const format *f = *state;
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  static uint16_t all[patterns], back[patterns];
  static float wide[patterns];
  for (int i = 0; i < patterns; i++) all[i] = (uint16_t)i;
  for (int l = 0; l < count; l++) {
    to_float(f, levels[l], wide, all, patterns);
    from_float(f, levels[l], back, wide, patterns);
    for (int i = 0; i < patterns; i++) {
      if (!same(wide[i], value_of(f, all[i])))
        fail_msg("%s %s: %#x became %a", f->name, levels[l]->name, (unsigned)i, (double)wide[i]);
      int quiet = isnan(wide[i]) ? 1 << (f->digits - 2) : 0;
      if (back[i] != (all[i] | quiet))
        fail_msg("%s %s: %#x came back as %#x", f->name, levels[l]->name, (unsigned)i,
                 (unsigned)back[i]);
    }
  }
}

static void test_rounding(void **state) {
  const format *f = *state;
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  uint64_t stride = is_exhaustive() ? 1 : 1009;
  int64_t blocks = 1 + (int64_t)(((uint64_t)1 << 32) / stride / math_block);
  int64_t wrong = 0;
  float example = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : wrong)
  for (int64_t b = 0; b < blocks; b++) {
    float x[math_block];
    double want[math_block];
    uint16_t got[math_block];
    for (int i = 0; i < math_block; i++) {
      x[i] = math_argument(b, i, stride);
      want[i] = rounded(f, x[i]);
    }
    for (int l = 0; l < count; l++) {
      from_float(f, levels[l], got, x, math_block);
      for (int i = 0; i < math_block; i++)
        if (!same(value_of(f, got[i]), want[i])) {
          wrong++;
#pragma omp atomic write
          example = x[i];
        }
    }
  }
  if (wrong > 0)
    fail_msg("%s: %lld wrongly rounded, one of them %a", f->name, (long long)wrong,
             (double)example);
}

/* Numbers worked out by hand, in case both sides above share a mistake. */
static void test_by_hand(void **state) {
  (void)state;
  const float x[] = {1,        -2,        65504,           65519.996f,   65520,
                     0x1p-24f, 0x1p-25f,  0x1.000002p-25f, 0x1.004p0f,   0x1.00cp0f,
                     -0.0f,    0x1.01p0f, 0x1.03p0f,       0x1.010002p0f};
  const uint16_t as_f16[] = {0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 1,      0,
                             1,      0x3c01, 0x3c03, 0x8000, 0x3c04, 0x3c0c, 0x3c04};
  const uint16_t as_bf16[] = {0x3f80, 0xc000, 0x4780, 0x4780, 0x4780, 0x3380, 0x3300,
                              0x3300, 0x3f80, 0x3f80, 0x8000, 0x3f80, 0x3f82, 0x3f81};
  enum { n = sizeof x / sizeof x[0] };
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  for (int l = 0; l < count; l++) {
    uint16_t got[n];
    levels[l]->f32_to_f16(got, x, n);
    for (int i = 0; i < n; i++) assert_int_equal(got[i], as_f16[i]);
    levels[l]->f32_to_bf16(got, x, n);
    for (int i = 0; i < n; i++) assert_int_equal(got[i], as_bf16[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      {"f16_every_pattern", test_every_pattern, NULL, NULL, &f16},
      {"bf16_every_pattern", test_every_pattern, NULL, NULL, &bf16},
      {"f16_rounding", test_rounding, NULL, NULL, &f16},
      {"bf16_rounding", test_rounding, NULL, NULL, &bf16},
      cmocka_unit_test(test_by_hand),
  };
  return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
