/* spec/cuda/ptx_math.cu: the mathematical functions that the CPU and GPUs share, and every row in
   f32, each a kernel of one value: spec/cuda/ptx_to_c.lua makes C of what nvcc makes of them. */
#include "cuda/row_functions.h"

#define KERNEL(name, type, value) \
  extern "C" __global__ void name(const type *v, type *y) { *y = value; }

#define LT_MATH(name, ulp32, ulp64) KERNEL(name##_f32, float, lt_##name##_f32(*v))
#define LT_MATH2(name, ulp32, ulp64) KERNEL(name##_f32, float, lt_##name##_f32(v[0], v[1]))
#include "ops/math/bounds.def"

/* Those of f64 that are ours: sin, cos and pow are the platform's. */
#define OURS(name) KERNEL(name##_f64, double, lt_##name##_f64(*v))
OURS(exp) OURS(expm1) OURS(log) OURS(log1p) OURS(tanh) OURS(erf) OURS(sqrt) OURS(rsqrt)

/* Operands v[0..3], then p and q. */
#define ROW(name) KERNEL(row_##name, float, row::name##_<float>(v, v[4], v[5]))
#define LT_UNARY(name, ...) ROW(name) ROW(name##_backward)
#define LT_UNARY_ARGS(name, kind, ...) LT_UNARY(name, )
#define LT_TEST(name, ...) ROW(name)
#include "ops/unary.def"
#define LT_BINARY(name, ...) ROW(name) ROW(name##_backward_a) ROW(name##_backward_b)
#define LT_COMPARE(name, ...) ROW(name)
#include "ops/binary.def"
