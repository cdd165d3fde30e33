/* runtime/io/file_memory.c: storages in mapped files without names.

   Such pages are the page cache's, not the process's: under pressure the kernel writes them to the
   file and uses their memory for something else. MADV_SEQUENTIAL, as a step of an optimizer and a
   gather go through them once: more is read ahead, and what was read is let go first. A file for
   each storage: the kernel frees its blocks with the mapping, unwritten pages never reach the
   disk, and no allocator within a file is needed. */
#include "io/file_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/device.h"
#include "io/file.h"

static void drop(lt_ctx *c, lt_storage *s) {
  munmap(s->data, s->bytes);
  lt_free(c, s, sizeof *s);
}

/* An open file that has lost its name already; -1 and errno. */
static int open_nameless(lt_ctx *c, const char *folder) {
  static atomic_uint count; /* with the process's number, no two names are the same */
  const lt_file_ops *files = lt_files(c);
  char path[LT_PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/.ltrain-%ld-%u", folder, (long)getpid(),
                   atomic_fetch_add(&count, 1));
  if (n >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int fd = files->open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) files->unlink(path);
  return fd;
}

/* The first `bytes` of a file as shared memory; NULL and errno. */
static void *map_reserved(int fd, size_t bytes) {
  int error;
  do error = posix_fallocate(fd, 0, (off_t)bytes);
  while (error == EINTR);
  errno = error;
  if (error != 0) return NULL;
  void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return NULL;
  madvise(data, bytes, MADV_SEQUENTIAL);
  return data;
}

lt_storage *lt_file_memory_new(lt_ctx *c, const char *op, const char *folder, size_t bytes) {
  if (!lt_file_may_write(c, op, folder)) return NULL;
  int fd = open_nameless(c, folder);
  void *data = fd >= 0 ? map_reserved(fd, bytes) : NULL;
  int error = errno;
  if (fd >= 0) lt_files(c)->close(fd);
  if (data == NULL) {
    lt_fail(c, LT_EIO, "%s: cannot make a file of %zu bytes in %s: %s", op, bytes, folder,
            strerror(error));
    return NULL;
  }
  lt_storage *s = lt_alloc(c, sizeof *s);
  if (s == NULL) {
    munmap(data, bytes);
    return NULL;
  }
  lt_storage_init(c, s);
  s->data = data;
  s->bytes = bytes;
  s->device = LT_CPU_DEVICE;
  s->drop = drop;
  s->writer = c->op;
  return s;
}
