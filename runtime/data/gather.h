/* runtime/data/gather.h: copies rows of tensors by index into a batch. */
#ifndef LT_DATA_GATHER_H
#define LT_DATA_GATHER_H

#include "data/sampler.h"
#include "device/device.h"

/* A tensor whose first dimension counts samples: row-major, in host memory. `divisor` not 0: its
   u8 values come as f32, divided by it (images stay small until they are asked for). */
typedef struct lt_column {
  lt_tensor *source;
  float divisor;
  lt_device pin; /* gathered into pinned memory of this device; the cpu: of none */
} lt_column;

/* Can these be gathered together? Fails with "op: ..." when a layout, device or length is wrong. */
bool lt_columns_check(lt_ctx *c, const char *op, int n_columns, const lt_column *columns);

/* Rows order[first..first+n-1] in fresh bytes of this ctx; NULL with a failure when an index is not
   in 0..rows-1. Reads nothing of the source's own counts: any thread may call it with its own ctx.
 */
lt_storage *lt_gather_rows(lt_ctx *c, const lt_column *column, const lt_order *order, int64_t first,
                           int64_t n);

/* The tensor over gathered bytes; takes its own reference to them. */
lt_tensor *lt_gathered(lt_ctx *c, const lt_column *column, lt_storage *rows, int64_t n);

#endif
