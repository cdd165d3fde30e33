/* runtime/tensor/dtype.h: element types: sizes, names, promotion. */
#ifndef LT_TENSOR_DTYPE_H
#define LT_TENSOR_DTYPE_H

#include "ltrain/args.h"

/* In promotion the higher one wins. */
typedef enum lt_dtype_category { LT_BOOLEAN, LT_INTEGER, LT_FLOATING } lt_dtype_category;

/* A row of dtype.def. */
typedef struct lt_dtype_info {
  uint8_t size;     /* bytes of an element */
  uint8_t category; /* lt_dtype_category */
  bool is_signed;
  uint8_t idx;      /* its code in IDX files, 0: none */
  const char *name, *torch_name, *method, *safetensors;
} lt_dtype_info;

const lt_dtype_info *lt_dtype_row(lt_dtype d);
size_t lt_dtype_size(lt_dtype d);
const char *lt_dtype_name(lt_dtype d);            /* "f32" */
const char *lt_dtype_torch_name(lt_dtype d);      /* "float32", as tensors are printed */
lt_dtype lt_dtype_from_name(const char *name); /* "f32", "float32", "float", ...; LT_DTYPE_NONE */
bool lt_dtype_is_float(lt_dtype d);
bool lt_dtype_is_int(lt_dtype d); /* integers without bool */

/* The smallest type that holds both, as PyTorch's promote_types; it is also the answer for unsigned
   with signed integers that PyTorch refuses, and i64 where none holds both. */
lt_dtype lt_dtype_promote(lt_dtype a, lt_dtype b);

static inline lt_scalar lt_scalar_of(double f) {
  return (lt_scalar){.kind = LT_SCALAR_FLOAT, .f = f};
}
static inline lt_scalar lt_scalar_int(int64_t i) {
  return (lt_scalar){.kind = LT_SCALAR_INT, .f = (double)i, .i = i};
}

#endif
