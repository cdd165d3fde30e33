/* runtime/io/mapping.h: tensors that lie in a mapped file, copied page by page where they are
   written. The file may be replaced (as saving does) while they live, not overwritten: what is cut
   off it is gone. Mapped bytes are the page cache's: they count for no limit of memory. */
#ifndef LT_IO_MAPPING_H
#define LT_IO_MAPPING_H

#include "tensor/tensor.h"

typedef struct lt_mapping lt_mapping;

/* The n bytes of an open file; NULL (no failure for it) where the system cannot map it. */
lt_mapping *lt_mapping_new(lt_ctx *c, int fd, size_t n);

/* A row-major tensor on the cpu whose first byte is that at `offset`; the open frame's. */
lt_tensor *lt_mapping_tensor(lt_ctx *c, lt_mapping *m, int64_t offset, lt_dtype dtype, int ndim,
                             const int64_t *size);

/* The mapping ends with the last of its owner and its tensors. NULL does nothing. */
void lt_mapping_release(lt_ctx *c, lt_mapping *m);

#endif
