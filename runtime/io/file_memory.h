/* runtime/io/file_memory.h: memory of the cpu in files, for tensors that are together larger than
   the machine's memory: the kernel writes their pages to disk, and reads those that are used. */
#ifndef LT_IO_FILE_MEMORY_H
#define LT_IO_FILE_MEMORY_H

#include "tensor/storage.h"

enum { LT_FILE_MEMORY_LEAST = 64 << 10 }; /* bytes from which a file is worth its calls */

/* A storage of zeros in a file of its own, in a folder that is there. The file has no name, and its
   disk space is given back with the storage, however the process ends. All of it is reserved: a
   full disk is a failure here, with the bytes asked for, not a signal at a write. */
lt_storage *lt_file_memory_new(lt_ctx *c, const char *op, const char *folder, size_t bytes);

#endif
