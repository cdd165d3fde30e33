/* runtime/cpu/lines.h: iteration over one tensor with its dims in a chosen order.

   lt_iter_make orders dims as the memory lies; a reduction needs the kept dims before the reduced
   ones (or after), so that a position is row * length + column. */
#ifndef LT_CPU_LINES_H
#define LT_CPU_LINES_H

#include "cpu/tile.h"

/* Operand 0 of `it` is `t`, its dims in the order of `dims` (n of them; dims not named count as one
   element). Neighbours are merged where the strides allow it. */
void LT_CPU(lt_iter_dims)(lt_iter *it, const lt_tensor *t, int n, const int *dims);

#endif
