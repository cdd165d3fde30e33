/* runtime/ops/math/matrix_strides.h: strides of the operands of matrix products, on all devices. */
#ifndef LT_OPS_MATH_MATRIX_STRIDES_H
#define LT_OPS_MATH_MATRIX_STRIDES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

/* Whether one of the strides is 1 and the other steps over whole rows (or columns). Strides of
   single rows and columns mean nothing; they are set so that equal products have equal strides. */
LT_FN bool lt_normalise_strides(int64_t *row, int64_t *col, int64_t rows, int64_t cols) {
  if ((*col == 1 || cols == 1) && (*row >= cols || rows == 1)) {
    *col = 1;
    if (rows == 1) *row = cols;
    return true;
  }
  if ((*row == 1 || rows == 1) && (*col >= rows || cols == 1)) {
    *row = 1;
    if (cols == 1) *col = rows;
    return true;
  }
  return false;
}

#endif
