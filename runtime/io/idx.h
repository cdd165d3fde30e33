/* runtime/io/idx.h: IDX files (MNIST and its kin), plain or compressed with gzip. */
#ifndef LT_IO_IDX_H
#define LT_IO_IDX_H

#include "device/device.h"

/* The whole file as a tensor on the cpu, in the open frame. u8, i32, f32, f64 keep their type; i8
   and i16 become i32. Compression is recognised by the first two bytes, not by the name. */
lt_tensor *lt_idx_read(lt_ctx *c, const char *op, const char *path);

#endif
