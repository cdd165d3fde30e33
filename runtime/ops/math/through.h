/* runtime/ops/math/through.h: what values are computed in and cast through, on every device. */
#ifndef LT_OPS_MATH_THROUGH_H
#define LT_OPS_MATH_THROUGH_H

#include "ltrain/tensor.h"

/* f16 and bf16 are computed in f32, integers and bools in i64. */
static inline lt_dtype lt_computed_in(lt_dtype d) {
  switch (d) {
    case LT_F64: return LT_F64;
    case LT_F32:
    case LT_F16:
    case LT_BF16: return LT_F32;
    case LT_I64:
    case LT_I32:
    case LT_U8:
    case LT_BOOL:
    case LT_I16:
    case LT_U16:
    case LT_I8:
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: return LT_I64;
  }
  return LT_I64;
}

/* The dtype through which a cast changes no value more than it must: rounded once, at the end. */
static inline lt_dtype lt_cast_through(lt_dtype from, lt_dtype to) {
  lt_dtype x = lt_computed_in(from), y = lt_computed_in(to);
  bool exact = from == LT_U8 || from == LT_BOOL || from == LT_I16 || from == LT_U16 ||
               from == LT_I8; /* in f32 */
  if (x == y || from == LT_I64) return x;
  return exact && y == LT_F32 ? LT_F32 : LT_F64;
}

#endif
