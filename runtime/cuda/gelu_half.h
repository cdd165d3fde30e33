/* runtime/cuda/gelu_half.h: gelu and its derivative for f16 and bf16, whose rounding hides what a
   shorter formula loses.

   The row of unary.def takes both branches of erf and two exponentials: 61 instructions an element,
   which is what 16-bit tensors are limited by. Here the upper tail of the normal distribution is 2
   to the power of one polynomial: Q(a) = 2^P(a), P fitted to log2(erfc(a / sqrt(2)) / 2) on [0, 9]
   with weights that even out the error (Lawson's algorithm): a relative error of at most 7e-5, or
   2^-13.8. Unlike 1 + erf(x) in f32 it keeps that accuracy where x is far below 0; below -9 it
   falls on, to 0. 16 instructions an element on sm_80 and sm_90, conversions included. */
#ifndef LT_CUDA_GELU_HALF_H
#define LT_CUDA_GELU_HALF_H

#include <math.h>

#include "cuda/kernel.h"

static __device__ inline float lt_exp2_approximate(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

/* The cumulative normal distribution: Q(-x) below 0, 1 - Q(x) above. */
static __device__ inline float lt_ndtr_half(float x) {
  float a = fabsf(x);
  float p = 0x1.52e0ccp-15f - a * 0x1.06770ep-20f;
  p = -0x1.7b6122p-11f + a * p;
  p = 0x1.ebb5a8p-8f + a * p;
  p = -0x1.a572d2p-5f + a * p;
  p = -0x1.d88b84p-2f + a * p;
  p = -0x1.265f6p+0f + a * p;
  p = -0x1.000674p+0f + a * p;
  float q = lt_exp2_approximate(p);
  return x < 0 ? q : 1 - q;
}

static __device__ inline float lt_gelu_half(float x) { return x * lt_ndtr_half(x); }

/* The density is exp(-x^2 / 2) / sqrt(2 pi), as a power of 2. */
static __device__ inline float lt_gelu_half_slope(float x) {
  float density = 0x1.988454p-2f * lt_exp2_approximate(x * x * -0x1.715476p-1f);
  return lt_ndtr_half(x) + x * density;
}

#endif
