/* runtime/ops/math/half.h: f16 and bf16 to float and back, in plain C that the compiler vectorises.
 *
 * Rounds half to even, too large becomes infinity, denormals are kept, NaN stays NaN (quiet, with
 * the upper bits of its payload): the bits of the F16C instructions, which the compiler does not
 * use in loops by itself. GPUs have instructions of their own, which differ in the payload of NaN
 * alone; bf16 from compute capability 8.0 on. */
#ifndef LT_OPS_MATH_HALF_H
#define LT_OPS_MATH_HALF_H

#include <stdint.h>

#include "ops/math/f32.h"

LT_FN float lt_f16_to_f32(uint16_t h) {
#ifdef __CUDA_ARCH__
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
#else
  uint32_t u = (uint32_t)h << 13 & 0x0fffe000u;
  /* As a float, u is the value / 2^112; the product is exact, for denormals too. */
  uint32_t v = lt_bits_f32(lt_from_bits_f32(u) * 0x1p112f);
  uint32_t quiet = u > 0x0f800000u ? 0x00400000u : 0u;
  v = u >= 0x0f800000u ? (u | 0x70000000u | quiet) : v; /* infinity, NaN */
  return lt_from_bits_f32(v | (uint32_t)(h & 0x8000u) << 16);
#endif
}

LT_FN uint16_t lt_f32_to_f16(float x) {
#ifdef __CUDA_ARCH__
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  uint32_t u = lt_bits_f32(x);
  uint32_t a = u & 0x7fffffffu;
  /* Exponent bias from 127 to 15; then half the last place is added, less if that one is even. */
  uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
  /* Below 2^-14: adding 1/2 makes the float unit round at 2^-24, f16's last denormal place. */
  uint32_t tiny = lt_bits_f32(lt_from_bits_f32(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
  uint32_t v = a < 0x38800000u ? tiny : normal;
  v = a >= 0x477ff000u ? 0x7c00u : v; /* from 65520 on */
  v = a > 0x7f800000u ? (0x7e00u | (a >> 13 & 0x3ffu)) : v;
  return (uint16_t)(v | (u >> 16 & 0x8000u));
#endif
}

LT_FN float lt_bf16_to_f32(uint16_t h) { return lt_from_bits_f32((uint32_t)h << 16); }

LT_FN uint16_t lt_f32_to_bf16(float x) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  uint32_t u = lt_bits_f32(x);
  uint32_t v = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  v = (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16 | 0x40u) : v;
  return (uint16_t)v;
#endif
}

/* Memory to the type that its values are computed in and back, by the column `half` of
   tensor/dtype.def. */
#define FROM_plain(x) (x)
#define FROM_f16(x) lt_f16_to_f32(x)
#define FROM_bf16(x) lt_bf16_to_f32(x)
#define TO_plain(x) (x)
#define TO_f16(x) lt_f32_to_f16(x)
#define TO_bf16(x) lt_f32_to_bf16(x)

#endif
