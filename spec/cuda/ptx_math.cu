/* spec/cuda/ptx_math.cu: the mathematical functions that the CPU and GPUs share, and every row in
   f32, each a kernel of one value: spec/cuda/ptx_to_c.lua makes C of what nvcc makes of them. */
#include "cuda/elementwise_functions.h"

#define KERNEL(name, type, value) \
  extern "C" __global__ void name(const type *v, type *y) { *y = value; }

#define LT_MATH(name, ulp32, ulp64) KERNEL(name##_f32, float, lt_##name##_f32(*v))
#define LT_MATH2(name, ulp32, ulp64) KERNEL(name##_f32, float, lt_##name##_f32(v[0], v[1]))
#include "ops/math/bounds.def"

/* Those of f64 that are ours: sin, cos and pow are the platform's. */
#define OURS(name) KERNEL(name##_f64, double, lt_##name##_f64(*v))
OURS(exp) OURS(expm1) OURS(log) OURS(log1p) OURS(tanh) OURS(erf) OURS(sqrt) OURS(rsqrt)

/* Operands v[0..3], then p and q; rows of integers alone have no f32. */
#define ROW(name) KERNEL(row_##name, float, row::name##_<float>(v, v[4], v[5]))
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
