/* runtime/cpu/transpose.h: transposing copies: the source is contiguous along another dim than the
   result. */
#ifndef LT_CPU_TRANSPOSE_H
#define LT_CPU_TRANSPOSE_H

#include "cpu/tile.h"

/* Operand 1 of `it` to operand 0, of one dtype, if the one lies side by side along the last dim and
   the other along another: false if not, and nothing is done. */
bool LT_CPU(lt_copy_transposed)(lt_ctx *c, const lt_iter *it);

#endif
