/* runtime/io/npy.h: arrays in NumPy's formats: .npy, and .npz, a zip file of them; bare arrays.

   The header is a Python dict: read by its grammar, never evaluated. Arrays of another byte order
   are turned; those in Fortran's order are read as they are, with strides. */
#ifndef LT_IO_NPY_H
#define LT_IO_NPY_H

#include "io/json.h"
#include "tensor/tensor.h"

/* All that follow belong to the open frame; NULL with a failure. */

/* A .npy file. A large array is in the file's mapped bytes, copied where it is written. */
lt_tensor *lt_npy_read(lt_ctx *c, const char *op, const char *path);

/* The bytes of one, already in memory; `path` is for messages. */
lt_tensor *lt_npy_parse(lt_ctx *c, const char *op, const char *path, const char *bytes, size_t n);

/* What the header says that `total` bytes have, from the first n of them: LT_NPY_HEAD are always
   enough. */
enum { LT_NPY_HEAD = 10012 };
bool lt_npy_layout(lt_ctx *c, const char *op, const char *path, const char *bytes, size_t n,
                   int64_t total, lt_dtype *dtype, int *ndim, int64_t *size);

/* Numbers of a dtype from `offset` on, to the end of the file (ndim -1) or of a shape: mapped,
   copied where they are written. Read where the system cannot map. */
lt_tensor *lt_bare_read(lt_ctx *c, const char *op, const char *path, lt_dtype dtype,
                        int64_t offset, int ndim, const int64_t *size);

/* Add what a .npy file of the contiguous tensor on the cpu has. */
bool lt_npy_write(lt_json *out, const char *op, const lt_tensor *t);

#endif
