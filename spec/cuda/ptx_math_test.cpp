/* spec/cuda/ptx_math_test.cpp: what nvcc makes of our mathematical functions and rows gives the
   CPU's bits.

   nvcc fuses products and sums as it likes; ptx_functions.h has its PTX as C. Functions are compared
   with those of the CPU's levels that fuse too (v3, v4), rows in f32 with the same text compiled for
   the emulated device, which other specs compare with the CPU. Every 65,537th float, some doubles;
   with LT_EXHAUSTIVE=1 every 17th, of rows every 257th. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern "C" {
#include <cmocka.h>
#include "../c/math_arguments.h"
#include "cuda/ptx_functions.h"
}

#include "cuda/elementwise_functions.h"

/* Rows whose own expression can be fused in two ways: so many units in the last place of the result,
   or of x or the gradient where that is larger: they cancel near their zeros. */
static const struct {
  const char *name;
  int ulp;
} free_rows[] = {{"gelu", 1}, {"silu_backward", 2}, {"softplus", 2}, {"logaddexp", 2},
               {"logsigmoid", 2}, {"mish", 2}};

/* Differences, and the most in ulp and where: of the function, and with its loose sums fused. */
typedef struct tally {
  int64_t tried, differ[2], ulp[2];
  double x[2];
} tally;

static int wrong; /* functions that give other bits */

static const ptx_function *find(const char *kind, const char *name) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s%s", kind, name);
  for (const ptx_function *f = ptx_functions; f->name != nullptr; f++)
    if (strcmp(f->name, whole) == 0) return f;
  return nullptr;
}

/* How many units in the last place of the larger of want and `scale`. */
template <class T> static int64_t ulps(T got, T want, T scale) {
  T of = fabs(want) > fabs(scale) ? fabs(want) : fabs(scale);
  T unit = nextafter(of, static_cast<T>(INFINITY)) - of, off = fabs(got - want) / unit;
  return off < 1 ? 1 : off < 1e9 ? static_cast<int64_t>(off) : 1000000000; /* infinite ones too */
}

template <class T>
static void compare(tally *t, const ptx_function *f, const T *v, T want, T scale) {
  t->tried++;
  for (int k = 0; k < (f->loose > 0 ? 2 : 1); k++) {
    T got;
    (k == 0 ? f->run : f->fused)(v, &got);
    if ((got != got && want != want) || memcmp(&got, &want, sizeof got) == 0) continue;
    int64_t off = ulps(got, want, scale);
    t->differ[k]++;
    if (off > t->ulp[k]) t->ulp[k] = off, t->x[k] = static_cast<double>(v[0]);
  }
}

/* Where ptxas has a choice one of both must do. */
static void judge(const ptx_function *f, const tally *t, int allowed) {
  int best = f->loose > 0 && t->ulp[1] < t->ulp[0];
  for (int k = 0; k < (f->loose > 0 ? 2 : 1); k++)
    if (t->differ[k] > 0 || f->loose > 0)
      print_message("%s%s: %lld of %lld differ, by at most %lld ulp (%a)\n", f->name,
                    k > 0 ? " fused" : "", static_cast<long long>(t->differ[k]),
                    static_cast<long long>(t->tried), static_cast<long long>(t->ulp[k]), t->x[k]);
  if (t->ulp[best] > allowed) print_message("  wrong: %s: %d ulp are allowed\n", f->name, allowed);
  wrong += t->ulp[best] > allowed;
}

/* Of all floats: each stride-th, in blocks. */
static const uint64_t SOME = 65537, OF_FUNCTIONS = 17, OF_ROWS = 257;

static int64_t blocks(uint64_t stride) {
  return 1 + static_cast<int64_t>((uint64_t(1) << 32) / stride / math_block);
}

static void f32_of(const math_level *level, int k, const char *name) {
  static float x[math_block], want[math_block];
  const ptx_function *f = find(name, "_f32");
  uint64_t stride = is_exhaustive() ? OF_FUNCTIONS : SOME;
  tally t = {};
  if (f == nullptr && strcmp(name, "lgamma") == 0) return; /* it calls a function */
  assert_non_null(f);
  for (int64_t b = 0; b < blocks(stride); b++) {
    for (int i = 0; i < math_block; i++) x[i] = math_argument(b, i, stride);
    level->f32[k](want, x, math_block);
    for (int i = 0; i < math_block; i++) compare(&t, f, &x[i], want[i], 0.0f);
  }
  judge(f, &t, 0);
}

/* Of all exponents, and dense where the functions bend. */
static double double_at(uint64_t i) {
  uint64_t bits = math_hash(i);
  double x;
  memcpy(&x, &bits, sizeof x);
  return i % 2 == 0 ? x : (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5) * (i % 4 == 1 ? 40 : 4);
}

static void f64_of(const math_level *level, int k, const char *name) {
  static double x[math_block], want[math_block];
  const ptx_function *f = find(name, "_f64");
  tally t = {};
  if (f == nullptr) return; /* sin and cos are the platform's; the rest is exact */
  for (uint64_t b = 0; b < (is_exhaustive() ? 20000u : 20u); b++) {
    for (uint64_t i = 0; i < math_block; i++) x[i] = double_at(b * math_block + i);
    level->f64[k](want, x, math_block);
    for (int i = 0; i < math_block; i++) compare(&t, f, &x[i], want[i], 0.0);
  }
  judge(f, &t, 1);
}

static void pow_of(const math_level *level) {
  static float x[math_block], y[math_block], want[math_block];
  const ptx_function *f = find("pow", "_f32");
  tally t = {};
  assert_non_null(f);
  for (uint64_t b = 0; b < (is_exhaustive() ? 50000u : 50u); b++) {
    for (uint64_t i = 0; i < math_block; i++) {
      uint64_t bits = math_hash(b * math_block + i);
      uint32_t half = static_cast<uint32_t>(bits);
      memcpy(&x[i], &half, sizeof half);
      y[i] = (static_cast<float>(bits >> 40) * 0x1p-24f - 0.5f) * (i % 2 == 0 ? 8 : 200);
    }
    level->pow_f32(want, x, y, math_block);
    for (int i = 0; i < math_block; i++) {
      float in[2] = {x[i], y[i]};
      compare(&t, f, in, want[i], 0.0f);
    }
  }
  judge(f, &t, 0);
}

static void functions_give_the_cpus_bits(void **) {
  wrong = 0;
  static const char *const names[] = {
#define LT_MATH(name, ulp32, ulp64) #name,
#include "ops/math/bounds.def"
  };
  const math_level *levels[8];
  int n = math_levels_here(levels), fused = 0;
  for (int l = 0; l < n; l++) {
    if (strcmp(levels[l]->name, "v3") != 0 && strcmp(levels[l]->name, "v4") != 0) continue;
    fused++;
    for (int k = 0; k < math_count; k++) {
      f32_of(levels[l], k, names[k]);
      f64_of(levels[l], k, names[k]);
    }
    pow_of(levels[l]);
  }
  assert_int_equal(wrong, 0);
  if (fused == 0) skip(); /* this machine has no fused multiply-add */
}

typedef float (*row_function)(const float *v, float p, float q);

static void row_of(const char *name, row_function row) {
  const ptx_function *f = find("row_", name);
  tally t = {};
  uint64_t stride = is_exhaustive() ? OF_ROWS : SOME;
  int allowed = 0;
  if (f == nullptr) return; /* with fmod, which is exact everywhere, or a call */
  for (const auto &one : free_rows)
    if (strncmp(name, one.name, strlen(one.name)) == 0) allowed = one.ulp;
  for (int64_t b = 0; b < blocks(stride); b++)
    for (int i = 0; i < math_block; i++) {
      float x = math_argument(b, i, stride);
      float other = math_argument(1, static_cast<int>(math_hash(static_cast<uint64_t>(i)) % 4096),
                                  1048573);
      float v[6] = {x, i % 2 != 0 ? x : other, other, i % 3 != 0 ? 0.75f : x, -1, 1.5f};
      compare(&t, f, v, row(v, v[4], v[5]), v[0]);
    }
  judge(f, &t, allowed);
}

static void rows_give_the_cpus_bits(void **) {
  wrong = 0;
#define ROW(name) row_of(#name, row::name##_<float>);
#define UNARY_any(name) ROW(name) ROW(name##_backward)
#define UNARY_float(name) UNARY_any(name)
#define UNARY_int(name)
#define LT_UNARY(name, dtype, ...) UNARY_##dtype(name)
#define LT_UNARY_ARGS(name, kind, dtype, ...) UNARY_##dtype(name)
#define LT_TEST(name, ...) ROW(name)
#include "ops/unary.def"
#define BINARY_any(name) ROW(name) ROW(name##_backward_a) ROW(name##_backward_b)
#define BINARY_float(name) BINARY_any(name)
#define BINARY_int(name)
#define LT_BINARY(name, dtype, ...) BINARY_##dtype(name)
#define LT_COMPARE(name, ...) ROW(name)
#include "ops/binary.def"
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_give_the_cpus_bits),
      cmocka_unit_test(rows_give_the_cpus_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
