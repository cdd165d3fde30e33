/* runtime/ops/math/float8.h: float and the two 8-bit formats of the Open Compute Project.

   OCP 8-bit Floating Point Specification (OFP8), 2023: e4m3 has 4 bits of exponent and 3 of
   mantissa, no infinity, one NaN and values up to 448; e5m2 is the upper byte of f16, up to 57344.
   Conversions round half to even and saturate, infinity too, as `cvt.rn.satfinite` of GPUs: a
   product of scaled values should lose the largest of them, not become NaN. */
#ifndef LT_OPS_MATH_FLOAT8_H
#define LT_OPS_MATH_FLOAT8_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/math/f32.h"

/* The bits of x in e5m2, else in e4m3. */
LT_FN uint8_t lt_f32_to_float8(float x, bool e5m2) {
  uint32_t u = lt_bits_f32(x), a = u & 0x7fffffffu;
  uint32_t cut = e5m2 ? 21 : 20;                 /* bits of the mantissa that go */
  uint32_t bias = e5m2 ? 0x38000000u : 0x3c000000u; /* 127 less the format's bias, as an exponent */
  uint32_t smallest = e5m2 ? 0x38800000u : 0x3c800000u; /* 2^-14, 2^-6: normal from here on */
  uint32_t top = e5m2 ? 0x7bu : 0x7eu;
  uint32_t normal = (a - bias + ((1u << (cut - 1)) - 1u) + (a >> cut & 1u)) >> cut;
  /* Adding 2^7 or 2^14 makes the float unit round at 2^-16, 2^-9, the last denormal place. */
  float step = e5m2 ? 128.0f : 16384.0f;
  uint32_t tiny = lt_bits_f32(lt_from_bits_f32(a < smallest ? a : 0u) + step) - lt_bits_f32(step);
  uint32_t v = a < smallest ? tiny : normal;
  v = a >= 0x47800000u || v > top ? top : v; /* from 65536 on, where `normal` may have wrapped */
  return (uint8_t)(a > 0x7f800000u ? 0x7fu : v | (u >> 24 & 0x80u));
}

LT_FN float lt_float8_to_f32(uint8_t bits, bool e5m2) {
  uint32_t v = bits & 0x7fu;
  uint32_t last = e5m2 ? 0x7bu : 0x7eu; /* the largest number */
  /* As a float, these bits are the value / 2^112 or 2^120; the product is exact. */
  float x = lt_from_bits_f32(v << (e5m2 ? 21 : 20)) * (e5m2 ? 0x1p112f : 0x1p120f);
  uint32_t u = lt_bits_f32(x);
  u = v <= last ? u : e5m2 && v == 0x7cu ? 0x7f800000u : 0x7fc00000u;
  return lt_from_bits_f32(u | (uint32_t)(bits & 0x80u) << 24);
}

#endif
