/* runtime/io/async_save.h: safetensors files that a helper thread writes, of the tensors as they
   are when it is asked.

   What is on a device is copied to pinned memory behind the work that was issued, on a stream of
   its own; what is on the host is copied at once. The thread waits for the copies, and for the file
   before it, if one is named: the newest of several files is the one that was asked for last. */
#ifndef LT_IO_ASYNC_SAVE_H
#define LT_IO_ASYNC_SAVE_H

#include "io/safetensors.h"

typedef struct lt_async_save lt_async_save;

/* What is to be written, as for lt_safetensors_save. Texts stay the caller's until the end. */
typedef struct lt_async_file {
  const char *op, *path;
  int64_t n, n_metadata;
  const lt_named_tensor *tensors;
  const lt_metadata *metadata;
  lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t);
  /* A JSON string within a metadata value, in whose place an object of the CRC-32 of the first
     n_sums tensors is written. */
  const char *mark;
  int64_t n_sums;
  size_t block; /* bytes of a checksum, of which each tensor has a list; 0: it has one */
  lt_async_save *before; /* written first; NULL: none */
} lt_async_file;

/* Begins it; NULL with a failure. */
lt_async_save *lt_async_save_begin(lt_ctx *c, const lt_async_file *file);

/* Whether the file is there, or has failed. */
bool lt_async_save_done(lt_async_save *l);

/* Waits for it and frees it; false with a failure that the thread met. */
bool lt_async_save_end(lt_ctx *c, lt_async_save *l);

#endif
