/* runtime/cpu/dim_order.h: iteration over a tensor with its dims in a chosen order.

   lt_iter_make orders dims as the memory lies; a reduction needs the kept dims before the reduced
   ones (or after), so that a position is row * length + column. */
#ifndef LT_CPU_DIM_ORDER_H
#define LT_CPU_DIM_ORDER_H

#include "cpu/tile.h"

/* Operand 0 of `it` is `t`, its dims in the order of `dims` (n of them; dims not named count as one
   element). Neighbours are merged where the strides allow it. */
void LT_CPU(lt_iter_dims)(lt_iter *it, const lt_tensor *t, int n, const int *dims);

/* Store n values at `at` of an operand, whatever its type and strides. */
void LT_CPU(lt_put_f32)(const lt_iter *it, int k, int64_t at, int64_t n, const float *v);
void LT_CPU(lt_put_f64)(const lt_iter *it, int k, int64_t at, int64_t n, const double *v);
void LT_CPU(lt_put_i64)(const lt_iter *it, int k, int64_t at, int64_t n, const int64_t *v);

#endif
