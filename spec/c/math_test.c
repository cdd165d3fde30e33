/* spec/c/math_test.c: proves the bounds of ops/math/bounds.def against libm in the next wider type.
 *
 * Every day every 3,001st float and all special ones; with LT_EXHAUSTIVE=1 all 2^32, at each level
 * that the machine has. Doubles and pairs for pow are drawn: over all exponents, and dense where
 * the functions bend. Prints the largest error found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "math_arguments.h"

enum { level_max = 4 };

typedef struct function {
  const char *name;
  int row;
  double ulp32, ulp64;
  double (*exact32)(double);
  long double (*exact64)(long double);
} function;

/* The largest error at one level, and where. */
typedef struct worst {
  double ulp, x, y, got;
} worst;

static const worst none = {.ulp = -1};

/* Error of got in units of the last place of want, in a type of `digits` binary digits whose lowest
 * exponent is `low`; infinite where NaN, infinity or the sign of zero is wrong. `rounded` is want
 * in that type. */
static double ulp_error(long double got, long double want, long double rounded, int digits,
                        int low) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : HUGE_VAL;
  if (got == 0 && !signbit(got) != !signbit(want)) return HUGE_VAL;
  if (got == want || (isinf(got) && got == rounded)) return 0;
  if (isinf(want) || want == 0) return HUGE_VAL;
  int exponent = ilogbl(want) < low ? low : ilogbl(want);
  if (isinf(got)) /* as good as the number that would follow the largest one */
    got = copysignl(ldexpl(1, 2 - low), got);
  return (double)(fabsl(got - want) / ldexpl(1, exponent - digits + 1));
}

static double ulp_error_f32(float got, double want) {
  return ulp_error(got, want, (float)want, 24, -126);
}

static double ulp_error_f64(double got, long double want) {
  return ulp_error(got, want, (double)want, 53, -1022);
}

static void note(worst *w, double ulp, double x, double y, double got) {
  if (ulp > w->ulp) *w = (worst){.ulp = ulp, .x = x, .y = y, .got = got};
}

static void merge(worst *all, const worst *mine, int count) {
  for (int l = 0; l < count; l++) note(&all[l], mine[l].ulp, mine[l].x, mine[l].y, mine[l].got);
}

/* Prints what was found; fails where it is above the bound. */
static void report(const function *f, const char *type, const worst *w, const math_level **levels,
                   int count, double bound) {
  for (int l = 0; l < count; l++)
    print_message("# %s %s %s: %.4g ulp at %a %a (bound %g)\n", f->name, type, levels[l]->name,
                  w[l].ulp, w[l].x, w[l].y, bound);
  for (int l = 0; l < count; l++)
    if (!(w[l].ulp <= bound))
      fail_msg("%s %s %s: error above its bound: %.4g ulp at (%a, %a), got %a, bound %g", f->name,
               type, levels[l]->name, w[l].ulp, w[l].x, w[l].y, w[l].got, bound);
}

static void test_f32(void **state) {
  const function *f = *state;
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  uint64_t stride = is_exhaustive() ? 1 : 3001;
  int64_t blocks = 1 + (int64_t)(((uint64_t)1 << 32) / stride / math_block);
  worst all[level_max] = {none, none, none, none};
#pragma omp parallel
  {
    float x[math_block], got[math_block];
    double want[math_block];
    worst mine[level_max] = {none, none, none, none};
#pragma omp for schedule(dynamic, 16)
    for (int64_t b = 0; b < blocks; b++) {
      for (int i = 0; i < math_block; i++) {
        x[i] = math_argument(b, i, stride);
        want[i] = f->exact32(x[i]);
      }
      for (int l = 0; l < count; l++) {
        levels[l]->f32[f->row](got, x, math_block);
        if (levels[l]->may_exceed(got, want, math_block, mine[l].ulp))
          for (int i = 0; i < math_block; i++)
            note(&mine[l], ulp_error_f32(got[i], want[i]), x[i], 0, got[i]);
      }
    }
#pragma omp critical
    merge(all, mine, count);
  }
  report(f, "f32", all, levels, count, f->ulp32);
}

/* Argument i of a function of doubles. */
static double argument_f64(int64_t i) {
  if (i < math_special_count) return math_special_at((int)i);
  uint64_t bits = math_hash((uint64_t)i);
  double unit = (double)(int64_t)bits * 0x1p-63;
  switch (i % 5) {
  case 0:
    return unit;
  case 1:
    return 8 * unit;
  case 2:
    return 800 * unit;
  case 3:
    return ldexp(1 + fabs(unit), (int)(bits % 70) - 60);
  default: {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
  }
  }
}

static void test_f64(void **state) {
  const function *f = *state;
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  int64_t blocks = is_exhaustive() ? 1 << 14 : 16;
  worst all[level_max] = {none, none, none, none};
#pragma omp parallel
  {
    double x[math_block], got[math_block];
    long double want[math_block];
    worst mine[level_max] = {none, none, none, none};
#pragma omp for schedule(dynamic)
    for (int64_t b = 0; b < blocks; b++) {
      for (int i = 0; i < math_block; i++) x[i] = argument_f64(b * math_block + i);
      for (int i = 0; i < math_block; i++) want[i] = f->exact64(x[i]);
      for (int l = 0; l < count; l++) {
        levels[l]->f64[f->row](got, x, math_block);
        for (int i = 0; i < math_block; i++)
          note(&mine[l], ulp_error_f64(got[i], want[i]), x[i], 0, got[i]);
      }
    }
#pragma omp critical
    merge(all, mine, count);
  }
  report(f, "f64", all, levels, count, f->ulp64);
}

/* The special values, then the integers from -16 to 15. */
static double small_or_special(int i) {
  return i < math_special_count ? (double)math_special_at(i) : i - math_special_count - 16;
}

/* Pair i for pow: all pairs of special values and small integers, then drawn ones whose power is
 * mostly a normal number. */
static void arguments_pow(double *x, double *y, int64_t i) {
  enum { few = math_special_count + 32 };
  int first = (int)(i / few), second = (int)(i % few);
  *x = small_or_special(first);
  *y = small_or_special(second);
  if (i < (int64_t)few * few) return;
  uint64_t bits = math_hash((uint64_t)i);
  double unit = (double)(int64_t)math_hash(bits) * 0x1p-63;
  *x = argument_f64(math_special_count + (int64_t)(bits >> 8));
  *y = 128 * unit;
  if (bits % 4 == 1) /* near 1, with large powers */
    *x = 1 + ldexp(fabs(unit), -(int)(bits >> 32 & 15)), *y = ldexp(unit, (int)(bits >> 40 & 31));
  if (bits % 4 == 2) *y = rint(*y);
  if (bits % 4 == 3) *x = fabs(*x), *y = unit * 100 / (fabs(log2(*x)) + 0.1);
}

static void test_pow_f32(void **state) {
  const function *f = *state;
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  int64_t blocks = is_exhaustive() ? 1 << 18 : 256;
  worst all[level_max] = {none, none, none, none};
#pragma omp parallel
  {
    float x[math_block], y[math_block], got[math_block];
    double want[math_block];
    worst mine[level_max] = {none, none, none, none};
#pragma omp for schedule(dynamic)
    for (int64_t b = 0; b < blocks; b++) {
      for (int i = 0; i < math_block; i++) {
        double wide_x, wide_y;
        arguments_pow(&wide_x, &wide_y, b * math_block + i);
        x[i] = (float)wide_x;
        y[i] = (float)wide_y;
        want[i] = pow(x[i], y[i]);
      }
      for (int l = 0; l < count; l++) {
        levels[l]->pow_f32(got, x, y, math_block);
        if (levels[l]->may_exceed(got, want, math_block, mine[l].ulp))
          for (int i = 0; i < math_block; i++)
            note(&mine[l], ulp_error_f32(got[i], want[i]), x[i], y[i], got[i]);
      }
    }
#pragma omp critical
    merge(all, mine, count);
  }
  report(f, "f32", all, levels, count, f->ulp32);
}

static void test_pow_f64(void **state) {
  const function *f = *state;
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  worst all[level_max] = {none, none, none, none};
  for (int64_t i = 0; i < 1 << 17; i++) {
    double x, y, got;
    arguments_pow(&x, &y, i);
    long double want = powl(x, y);
    for (int l = 0; l < count; l++) {
      levels[l]->pow_f64(&got, &x, &y, 1);
      note(&all[l], ulp_error_f64(got, want), x, y, got);
    }
  }
  report(f, "f64", all, levels, count, f->ulp64);
}

/* What the other tests stand on. */
static void test_ulp_error(void **state) {
  (void)state;
  assert_true(ulp_error_f32(1, 1) == 0);
  assert_true(ulp_error_f32(nextafterf(1, 2), 1) == 1);
  assert_true(ulp_error_f32(0x1p-149f, 0) == HUGE_VAL);
  assert_true(ulp_error_f32(0, 0x1p-150) == 0.5);
  assert_true(ulp_error_f32(-0.0f, 0) == HUGE_VAL);
  assert_true(ulp_error_f32(INFINITY, 1e300) == 0);
  assert_true(ulp_error_f32(INFINITY, FLT_MAX) == 1);
  assert_true(ulp_error_f32(FLT_MAX, HUGE_VAL) == HUGE_VAL);
  assert_true(ulp_error_f32(NAN, 1) == HUGE_VAL);
  assert_true(ulp_error_f32(1, NAN) == HUGE_VAL);
  assert_true(ulp_error_f64(1 + 0x1p-52, 1) == 1);
}

/* That of the C library also writes the sign to a global, which threads would do at once. */
static void test_lgamma_writes_no_global(void **state) {
  (void)state;
  const math_level *levels[level_max];
  int count = math_levels_here(levels);
  const double x[2] = {-0.5, 2.5};
  double got[2];
  for (int l = 0; l < count; l++) {
    signgam = 7;
    levels[l]->f64[math_lgamma](got, x, 2);
    assert_int_equal(signgam, 7);
  }
}

#define EXACT(name, libm)                                                                          \
  static double exact32_##name(double x) { return libm(x); }                                       \
  static long double exact64_##name(long double x) { return libm##l(x); }
EXACT(exp, exp)
EXACT(expm1, expm1)
EXACT(log, log)
EXACT(log1p, log1p)
EXACT(log2, log2)
EXACT(log10, log10)
EXACT(tan, tan)
EXACT(asin, asin)
EXACT(acos, acos)
EXACT(atan, atan)
EXACT(sinh, sinh)
EXACT(cosh, cosh)
EXACT(ceil, ceil)
EXACT(trunc, trunc)
EXACT(tanh, tanh)
EXACT(erf, erf)
EXACT(sin, sin)
EXACT(cos, cos)
EXACT(sqrt, sqrt)
EXACT(floor, floor)
EXACT(round, rint)
EXACT(abs, fabs)
#undef EXACT

static double exact32_lgamma(double x) { return lgamma_r(x, &(int){0}); }

static long double exact64_lgamma(long double x) { return lgammal_r(x, &(int){0}); }

static double exact32_rsqrt(double x) { return 1 / sqrt(x); }

static long double exact64_rsqrt(long double x) { return 1 / sqrtl(x); }

static function functions[] = {
#define LT_MATH(name, ulp32, ulp64)                                                                \
  {#name, math_##name, ulp32, ulp64, exact32_##name, exact64_##name},
#include "ops/math/bounds.def"
#define LT_MATH2(name, ulp32, ulp64) {#name, 0, ulp32, ulp64, NULL, NULL},
#include "ops/math/bounds.def"
};

int main(void) {
  enum { count = (int)(sizeof functions / sizeof functions[0]) };
  static char names[2 * count][24];
  struct CMUnitTest tests[2 * count + 2] = {cmocka_unit_test(test_ulp_error),
                                                  cmocka_unit_test(test_lgamma_writes_no_global)};
  for (int i = 0; i < count; i++) {
    function *f = &functions[i];
    struct CMUnitTest *t = &tests[2 * i + 2];
    snprintf(names[2 * i], sizeof names[0], "%s_f32", f->name);
    snprintf(names[2 * i + 1], sizeof names[0], "%s_f64", f->name);
    t[0] = (struct CMUnitTest){names[2 * i], f->exact32 ? test_f32 : test_pow_f32, NULL, NULL, f};
    t[1] =
        (struct CMUnitTest){names[2 * i + 1], f->exact64 ? test_f64 : test_pow_f64, NULL, NULL, f};
  }
  return cmocka_run_group_tests_name("math", tests, NULL, NULL);
}
