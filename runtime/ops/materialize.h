/* runtime/ops/materialize.h: materializes meta tensors: computes their values on another device. */
#ifndef LT_OPS_MATERIALIZE_H
#define LT_OPS_MATERIALIZE_H

#include "ops/op.h"

/* Rows first..first+n-1 (counted from 0) of a meta tensor, computed on `device`; n < 0: all of it.
   A part is computed alone where each recorded call is elementwise, as in the usual
   initializations. Fails where there is no record. */
lt_tensor *lt_materialize(lt_ctx *c, lt_tensor *t, lt_device device, int64_t first, int64_t n);

#endif
