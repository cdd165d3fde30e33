/* runtime/cuda/elementwise_functions.h: every row of unary.def and binary.def as a function of its
   operands in a compute type T; the names that rows use are overloads, so that one text serves all
   types. */
#ifndef LT_CUDA_ELEMENTWISE_FUNCTIONS_H
#define LT_CUDA_ELEMENTWISE_FUNCTIONS_H

#include "cuda/gelu_half.h"
#include "cuda/tile.h"
#include "ops/math/float8.h"
#include "ops/math/special.h"

/* The functions are those of ops/math, the same source as on the CPU: CUDA's own sinf or expf
   differ in their last bits, and results would depend on the device. */
namespace row {

/* The functions that the table of bounds lists, and those that it does not. */
#define LT_ROW_FUNCTION(name)                                                   \
  static __device__ inline float name(float x) { return lt_##name##_f32(x); }   \
  static __device__ inline double name(double x) { return lt_##name##_f64(x); }
#define LT_MATH(name, ulp32, ulp64) LT_ROW_FUNCTION(name)
#include "ops/math/bounds.def"
#define LT_SPECIAL(name) LT_ROW_FUNCTION(name)
#include "ops/math/special.def"
#undef LT_ROW_FUNCTION

#define LT_ROW_INTEGERS(name) \
  static __device__ inline int64_t name(int64_t x) { return lt_##name##_i64(x); }
LT_ROW_INTEGERS(abs)
LT_ROW_INTEGERS(floor)
LT_ROW_INTEGERS(ceil)
LT_ROW_INTEGERS(round)
LT_ROW_INTEGERS(trunc)
#undef LT_ROW_INTEGERS

#define LT_ROW_FUNCTION2(name)                                                               \
  static __device__ inline float name(float a, float b) { return lt_##name##_f32(a, b); }    \
  static __device__ inline double name(double a, double b) { return lt_##name##_f64(a, b); }
#define LT_ROW_INTEGERS2(name) \
  static __device__ inline int64_t name(int64_t a, int64_t b) { return lt_##name##_i64(a, b); }
LT_ROW_FUNCTION2(pow)
LT_ROW_FUNCTION2(floordiv)
LT_ROW_FUNCTION2(floormod)
LT_ROW_FUNCTION2(fmod)
LT_ROW_FUNCTION2(atan2)
#define LT_SPECIAL2(name) LT_ROW_FUNCTION2(name)
#include "ops/math/special.def"
LT_ROW_INTEGERS2(pow)
LT_ROW_INTEGERS2(floordiv)
LT_ROW_INTEGERS2(floormod)
LT_ROW_INTEGERS2(fmod)
LT_ROW_INTEGERS2(shift_left)
LT_ROW_INTEGERS2(shift_right)
LT_ROW_INTEGERS2(gcd)
#undef LT_ROW_FUNCTION2
#undef LT_ROW_INTEGERS2

#define K(c) static_cast<T>(c)

/* name<T>(operands, p, q): of derivatives the gradient stands first. Macros, because a row's text
   names its operands x, y, a and b: each kind of row declares the names that it may use, and the
   compiler drops what the text does not. */
#define LT_ROW(name, declare, value)                                          \
  template <class T> static __device__ inline T name(const T *v, T p, T q) {  \
    declare;                                                                  \
    (void)v, (void)p, (void)q;                                                \
    return static_cast<T>(value);                                             \
  }
#define LT_ROW_X T x = v[0]; (void)x
#define LT_ROW_XY T x = v[1], y = x; (void)x, (void)y
#define LT_ROW_AB T a = v[0], b = v[1]; (void)a, (void)b
#define LT_ROW_ABY T a = v[1], b = v[2], y = v[3]; (void)a, (void)b, (void)y
#define LT_UNARY(name, dtype, cast, f, df, saves, lo, hi, doc) \
  LT_ROW(name##_, LT_ROW_X, f) LT_ROW(name##_backward_, LT_ROW_XY, v[0] * static_cast<T>(df))
#define LT_UNARY_ARGS(name, kind, dtype, cast, f, df, saves, lo, hi, doc) \
  LT_UNARY(name, dtype, cast, f, df, saves, lo, hi, doc)
#define LT_TEST(name, f, doc) LT_ROW(name##_, LT_ROW_X, (f) ? 1 : 0)
#include "ops/unary.def"
#define LT_BINARY(name, dtype, cast, f, da, sa, db, sb, lo, hi, doc)     \
  LT_ROW(name##_, LT_ROW_AB, f)                                          \
  LT_ROW(name##_backward_a_, LT_ROW_ABY, v[0] * static_cast<T>(da))      \
  LT_ROW(name##_backward_b_, LT_ROW_ABY, v[0] * static_cast<T>(db))
#define LT_COMPARE(name, f, doc) LT_ROW(name##_, LT_ROW_AB, (f) ? 1 : 0)
#include "ops/binary.def"

/* What moves, makes, chooses and encodes values, as rows beside those. */
LT_ROW(copy_, , v[0])
LT_ROW(fill_, , p)
LT_ROW(where_, , v[0] != 0 ? v[1] : v[2])
LT_ROW(masked_fill_, , v[1] != 0 ? p : v[0])
LT_ROW(to_float8_, , lt_f32_to_float8(static_cast<float>(v[0] * v[1]), p != 0))
LT_ROW(of_float8_, , lt_float8_to_f32(static_cast<uint8_t>(v[0]), p != 0))

/* Rows in place of those of f32 where all memory is of 16 bits. */
LT_ROW(gelu_half_, , lt_gelu_half(v[0]))
LT_ROW(gelu_half_backward_, , v[0] * lt_gelu_half_slope(v[1]))

#undef LT_ROW
#undef K
} // namespace row

/* Rows that are no operations of their own; numbered after the ops. */
enum {
  LT_ROW_COPY = LT_OP_COUNT,
  LT_ROW_FILL,
  LT_ROW_WHERE,
  LT_ROW_MASKED_FILL,
  LT_ROW_TO_FLOAT8,
  LT_ROW_OF_FLOAT8,
  LT_ROW_GELU_HALF,
  LT_ROW_GELU_HALF_BACKWARD
};

/* Whether T has the row: integers have no derivatives and no floating rows, floats no bits. */
template <class T> struct lt_row_types { enum { any = 1, floats = 1, ints = 0 }; };
template <> struct lt_row_types<int64_t> { enum { any = 1, floats = 0, ints = 1 }; };

#endif
