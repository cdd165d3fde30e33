/* runtime/io/later.h: a safetensors file that a helper thread writes, of tensors as they are now.

   What is on a device is copied to pinned memory behind the work that was issued, on a stream of
   its own; what is on the host is copied at once. The thread waits for the copies, and for the file
   before it, if one is named: the newest of several files is the one that was asked for last. */
#ifndef LT_IO_LATER_H
#define LT_IO_LATER_H

#include "io/safetensors.h"

typedef struct lt_later lt_later;

/* What is to be written, as for lt_safetensors_save. Texts stay the caller's until the end. */
typedef struct lt_later_file {
  const char *op, *path;
  int64_t n, n_metadata;
  const lt_named_tensor *tensors;
  const lt_metadata *metadata;
  lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t);
  /* A JSON string within a metadata value, in whose place an object of the CRC-32 of the first
     n_sums tensors is written. */
  const char *mark;
  int64_t n_sums;
  lt_later *before; /* written first; NULL: none */
} lt_later_file;

/* Begins it; NULL with a failure. */
lt_later *lt_later_save(lt_ctx *c, const lt_later_file *file);

/* Whether the file is there, or has failed. */
bool lt_later_done(lt_later *l);

/* Waits for it and frees it; false with a failure that the thread met. */
bool lt_later_end(lt_ctx *c, lt_later *l);

#endif
