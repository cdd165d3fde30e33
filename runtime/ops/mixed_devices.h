/* runtime/ops/mixed_devices.h: inputs of a call on several devices: CPU scalars beside tensors of a
   GPU.

   A tensor of the CPU without dims stands for a number beside those of a device, in elementwise
   operations of two or three; all else must be on one device. */
#ifndef LT_OPS_MIXED_DEVICES_H
#define LT_OPS_MIXED_DEVICES_H

#include "ops/op.h"

/* The device on which such a call runs; false with a failure that names both devices. */
bool lt_mixed_devices_device(lt_ctx *c, const lt_op_info *op, int n_in, lt_tensor *const *in,
                             lt_device *out);

/* Puts copies on that device, with their history, in the places of those that are elsewhere. */
bool lt_mixed_devices_join(lt_ctx *c, int n_in, lt_tensor **in, lt_device device);

#endif
