/* runtime/ops/fallback.h: which kernel runs a call: the device's, or the CPU's on copies. */
#ifndef LT_OPS_FALLBACK_H
#define LT_OPS_FALLBACK_H

#include "ops/op.h"

/* The device's kernel of an op for a dtype: that of out[0], else in[0]. NULL: it has none. */
static inline lt_kernel lt_kernel_of(const lt_device_ops *table, lt_op op, lt_dtype dtype) {
  lt_kernel kernel = table->kernels[op];
  bool taken = table->supports == NULL || kernel == NULL || table->supports((int)op, dtype);
  return taken ? kernel : NULL;
}

/* Runs a call on the CPU: copies its tensors there and what it writes back, and waits for both. The
   first time by an op the ctx logs a warning. Fails for updates of optimizers and within
   collectives. */
bool lt_run_on_cpu(lt_ctx *c, const lt_call *call);

/* How often calls of an op on devices of a kind ran on the CPU. */
int64_t lt_fallback_count(const lt_ctx *c, int kind, int op);

#endif
