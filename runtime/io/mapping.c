/* runtime/io/mapping.c: a mapped file and the storages that lie in it. */
#include "io/mapping.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "device/device.h"
#include "io/file.h"

struct lt_mapping {
  atomic_long refs;
  char *bytes;
  size_t n;
};

lt_mapping *lt_mapping_new(lt_ctx *c, int fd, size_t n) {
  const lt_file_ops *files = lt_files(c);
  void *bytes = files->map != NULL && n > 0 ? files->map(fd, n) : NULL;
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

void lt_mapping_release(lt_ctx *c, lt_mapping *m) {
  if (m == NULL || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
  munmap(m->bytes, m->n);
  lt_free(c, m, sizeof *m);
}

static void drop(lt_ctx *c, lt_storage *s) {
  lt_mapping_release(c, s->owner);
  lt_free(c, s, sizeof *s);
}

lt_tensor *lt_mapping_tensor(lt_ctx *c, lt_mapping *m, int64_t offset, lt_dtype dtype, int ndim,
                             const int64_t *size) {
  lt_storage *s = lt_alloc(c, sizeof *s);
  if (s == NULL) return NULL;
  lt_storage_init(c, s);
  s->data = m->bytes + offset;
  s->bytes = (size_t)lt_shape_numel(lt_shape_of(ndim, size)) * lt_dtype_size(dtype);
  s->device = LT_CPU_DEVICE;
  s->external = true;
  s->drop = drop;
  s->owner = m;
  atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
  lt_tensor *t = lt_tensor_make(c, s, dtype, ndim, size, NULL, 0);
  lt_storage_release(c, s);
  return t;
}
