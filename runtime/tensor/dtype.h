/* runtime/tensor/dtype.h: element types: sizes, names, promotion. */
#ifndef LT_TENSOR_DTYPE_H
#define LT_TENSOR_DTYPE_H

#include "ltrain/args.h"

size_t lt_dtype_size(lt_dtype d);
const char *lt_dtype_name(lt_dtype d);            /* "f32" */
const char *lt_dtype_torch_name(lt_dtype d);      /* "float32", as tensors are printed */
lt_dtype lt_dtype_from_name(const char *name); /* "f32", "float32", "float", ...; LT_DTYPE_NONE */
bool lt_dtype_is_float(lt_dtype d);
bool lt_dtype_is_int(lt_dtype d); /* integers without bool */

/* The smallest type that holds both, as PyTorch's promote_types. */
lt_dtype lt_dtype_promote(lt_dtype a, lt_dtype b);

static inline lt_scalar lt_scalar_of(double f) {
  return (lt_scalar){.kind = LT_SCALAR_FLOAT, .f = f};
}
static inline lt_scalar lt_scalar_int(int64_t i) {
  return (lt_scalar){.kind = LT_SCALAR_INT, .f = (double)i, .i = i};
}

#endif
