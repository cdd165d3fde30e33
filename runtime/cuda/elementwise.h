/* runtime/cuda/elementwise.h: elementwise kernels for other files: copies, fills, choices. */
#ifndef LT_CUDA_ELEMENTWISE_H
#define LT_CUDA_ELEMENTWISE_H

#include "cuda/elementwise_functions.h"

/* Runs row `op` (of lt_op, or an LT_ROW_) over the shape of `views[0]`, its result; a view of data
   nullptr is the number in `numbers`, which may be nullptr. `compute`: the dtype that it is
   computed in. p and q: the numbers of the row. */
bool lt_cuda_row(lt_ctx *c, int op, lt_dtype compute, int n, const lt_view *views,
                 const lt_scalar *numbers, lt_scalar p, lt_scalar q);

/* transpose.cu: the result, operand 0, from operand 1 where it is a transpose of it, of one dtype;
   else `*taken` is false. */
bool lt_cuda_transpose(lt_ctx *c, const lt_cuda_iter *it, bool *taken);

/* to = from, broadcast and converted, rounded once. */
bool lt_cuda_move(lt_ctx *c, const lt_view *to, const lt_view *from);
bool lt_cuda_fill_view(lt_ctx *c, const lt_view *to, lt_scalar value);

static inline lt_scalar lt_cuda_number(double f) {
  lt_scalar s = {LT_SCALAR_FLOAT, f, lt_int_of_f64(f)};
  return s;
}

/* As a tensor of `dtype` takes it. */
static inline lt_scalar lt_cuda_number_of(lt_scalar s, int dtype) {
  if (s.kind == LT_SCALAR_FLOAT) s.i = lt_int_of_f64(s.f);
  if (dtype == LT_BOOL) s.i = s.f != 0;
  return s;
}

#endif
