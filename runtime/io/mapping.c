/* runtime/io/mapping.c: a memory-mapped file and the storages over it.

   Copy-on-write (MAP_PRIVATE): a tensor that is written gets pages of its own and the file stays as
   it is. Reads are faults the first time; loading a model takes no memory twice. A file that
   another process truncates gives SIGBUS on access, which no check can prevent: saves rename a new
   file into place instead (atomic_save.c), which leaves mapped ones alone. */
#include "io/mapping.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "device/owned_memory.h"
#include "io/file.h"
#include "io/memory_files.h"

struct lt_mapping {
  atomic_long refs;
  char *bytes;
  size_t n;
};

/* NULL without a failure where files cannot be mapped (in memory, or an overlay without `map`): the
   caller reads. */
lt_mapping *lt_mapping_new(lt_ctx *c, int fd, size_t n) {
  const lt_file_ops *files = lt_files(c);
  bool can = files->map != NULL && n > 0 && !lt_is_memory_fd(fd);
  void *bytes = can ? files->map(fd, n) : NULL;
  if (bytes == NULL) return NULL;
  lt_mapping *m = lt_alloc(c, sizeof *m);
  if (m == NULL) {
    munmap(bytes, n);
    return NULL;
  }
  atomic_init(&m->refs, 1);
  m->bytes = bytes;
  m->n = n;
  return m;
}

/* Counted atomically: helper threads release tensors too. */
void lt_mapping_release(lt_ctx *c, lt_mapping *m) {
  if (m == NULL || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
  munmap(m->bytes, m->n);
  lt_free(c, m, sizeof *m);
}

static void drop(lt_ctx *c, void *mapping) { lt_mapping_release(c, mapping); }

lt_tensor *lt_mapping_tensor(lt_ctx *c, lt_mapping *m, int64_t offset, lt_dtype dtype, int ndim,
                             const int64_t *size) {
  atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
  return lt_tensor_owned(c, m->bytes + offset, m, drop, dtype, ndim, size);
}
