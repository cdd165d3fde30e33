/* runtime/device/owned_memory.h: tensors over host memory of an owner, which is released with the
   last of them. */
#ifndef LT_DEVICE_OWNED_MEMORY_H
#define LT_DEVICE_OWNED_MEMORY_H

#include "tensor/tensor.h"

/* A row-major tensor on the cpu over memory of `owner`; the open frame's. `drop` is called once: by
   the last that sees the memory, or here, when there is no tensor. */
lt_tensor *lt_tensor_owned(lt_ctx *c, void *data, void *owner, void (*drop)(lt_ctx *c, void *owner),
                          lt_dtype dtype, int ndim, const int64_t *size);

#endif
