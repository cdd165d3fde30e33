/* runtime/ops/checksum.h: hashes of tensors that their device computes. */
#ifndef LT_OPS_CHECKSUM_H
#define LT_OPS_CHECKSUM_H

#include "ops/op.h"

/* Whether the tensor's device can: it has memory of its own, and the kernels. */
bool lt_can_checksum(const lt_ctx *c, const lt_tensor *t);

/* Mixes the bytes of n tensors of one device into *h, without their shapes and dtypes. Waits for
   the device, once. False with a failure. */
bool lt_checksum(lt_ctx *c, int n, lt_tensor *const *tensors, uint64_t *h);

#endif
