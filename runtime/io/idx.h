/* runtime/io/idx.h: IDX files (MNIST and its kin), plain or compressed with gzip. */
#ifndef LT_IO_IDX_H
#define LT_IO_IDX_H

#include "device/device.h"

/* The whole file as a tensor on the cpu, in the open frame, in the type that it has there.
   Compression is recognised by the first two bytes, not by the name. */
lt_tensor *lt_idx_read(lt_ctx *c, const char *op, const char *path);

#endif
