/* runtime/ops/math/compute_type.h: the compute type of each dtype, and casts through it, on every
   device. */
#ifndef LT_OPS_MATH_COMPUTE_TYPE_H
#define LT_OPS_MATH_COMPUTE_TYPE_H

#include "ltrain/tensor.h"

/* f16 and bf16 are computed in f32, integers and bools in i64. */
static inline lt_dtype lt_computed_in(lt_dtype d) {
#define COMPUTE_BOOLEAN(own) LT_I64
#define COMPUTE_INTEGER(own) LT_I64
#define COMPUTE_FLOATING(own) sizeof(own) == 8 ? LT_F64 : LT_F32
  switch (d) {
#define LT_DTYPE(id, category, memory, own, ...) case LT_##id: return COMPUTE_##category(own);
#include "tensor/dtype.def"
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: break;
  }
#undef COMPUTE_BOOLEAN
#undef COMPUTE_INTEGER
#undef COMPUTE_FLOATING
  return LT_I64;
}

/* Whether f32 has all values of an integer or bool. */
static inline bool lt_is_exact_in_f32(lt_dtype d) {
  switch (d) {
#define LT_DTYPE(id, category, memory, ...) case LT_##id: return sizeof(memory) <= 2;
#include "tensor/dtype.def"
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: break;
  }
  return false;
}

/* The dtype through which a cast changes no value more than it must: rounded once, at the end. */
static inline lt_dtype lt_cast_through(lt_dtype from, lt_dtype to) {
  lt_dtype x = lt_computed_in(from), y = lt_computed_in(to);
  if (x == y || from == LT_I64) return x;
  return x == LT_I64 && lt_is_exact_in_f32(from) && y == LT_F32 ? LT_F32 : LT_F64;
}

#endif
