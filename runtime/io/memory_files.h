/* runtime/io/memory_files.h: files that a ctx keeps in memory, under paths that begin with
   "memory:".

   Only the ctx of a program's own state has them. The functions of io/file.h read and write them as
   files, with no permission: what they hold is the bytes that the file would have. A file that is
   written is replaced as a whole; whoever reads the former one reads it to its end. */
#ifndef LT_IO_MEMORY_FILES_H
#define LT_IO_MEMORY_FILES_H

#include "base/ctx.h"

#define LT_HELD_PREFIX "memory:"

enum { LT_HELD_FD = 1 << 30 }; /* file descriptors from here on are theirs */

/* From now on the root `c` has such files. */
bool lt_memory_file_begin(lt_ctx *c);

/* Whether a path is that of such a file, there or not. */
bool lt_is_memory_file(const lt_ctx *c, const char *path);

static inline bool lt_is_memory_fd(int fd) { return fd >= LT_HELD_FD; }

/* Open a file for reading; -1 when it is not there. */
int lt_memory_file_open(lt_ctx *c, const char *path);
void lt_memory_file_close(lt_ctx *c, int fd);

/* The bytes of an open file, with a NUL after them; valid until it is closed. */
const char *lt_memory_file_bytes(lt_ctx *c, int fd, size_t *size);

/* Put a copy of the bytes under a path, in place of what is there. */
bool lt_memory_file_put(lt_ctx *c, const char *op, const char *path, const void *data, size_t size);

/* Add to the end of a file. */
bool lt_memory_file_append(lt_ctx *c, const char *op, const char *path, const void *data,
                           size_t size);

/* Whether there was one. */
bool lt_memory_file_remove(lt_ctx *c, const char *path);

/* When it was written, in seconds since 1970; false when it is not there. */
bool lt_memory_file_modified(lt_ctx *c, const char *path, double *when);

/* Whether there are files below `path`, which has no slash at its end; and the first part of their
   names, each once. */
bool lt_memory_file_is_folder(lt_ctx *c, const char *path);
void lt_memory_file_list(lt_ctx *c, const char *folder, bool (*each)(void *ud, const char *name),
                  void *ud);

#endif
