/* runtime/launch/worker_slot.c: shared memory of a worker's batches: a memfd, and the storages over
   it.

   Nothing is left behind however the processes end: a memfd has no name. It keeps its size, so that
   in steady state a batch costs no system call and no new page. */
#include "launch/worker_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/owned_memory.h"

enum { STEP = 1 << 16 };

struct lt_worker_slot {
  atomic_long refs; /* the pool's, and one a tensor */
  int fd;           /* -1: the pool has closed it */
  char *data;
  size_t mapped;
};

lt_worker_slot *lt_worker_slot_new(lt_ctx *c) {
  lt_worker_slot *s = lt_alloc(c, sizeof *s);
  if (s == NULL) return NULL;
  atomic_init(&s->refs, 1);
  s->fd = memfd_create("ltrain batch", MFD_CLOEXEC);
  if (s->fd >= 0) return s;
  lt_fail(c, LT_EIO, "DataLoader: cannot make shared memory: %s", strerror(errno));
  lt_free(c, s, sizeof *s);
  return NULL;
}

static void drop(lt_ctx *c, void *slot) {
  lt_worker_slot *s = slot;
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  if (s->data != NULL) munmap(s->data, s->mapped);
  lt_free(c, s, sizeof *s);
}

/* Map all that the file has. */
static char *map(lt_ctx *c, lt_worker_slot *s, size_t size) {
  void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, 0);
  if (data == MAP_FAILED) {
    lt_fail(c, LT_EMEMORY, "DataLoader: cannot map %zu bytes of shared memory: %s", size,
            strerror(errno));
    return NULL;
  }
  if (s->data != NULL) munmap(s->data, s->mapped);
  s->mapped = size;
  return s->data = data;
}

static size_t file_size(const lt_worker_slot *s) {
  struct stat is;
  return fstat(s->fd, &is) == 0 ? (size_t)is.st_size : 0;
}

char *lt_worker_slot_map(lt_ctx *c, lt_worker_slot *s, size_t bytes) {
  if (bytes <= s->mapped) return s->data;
  size_t size = file_size(s);
  if (!lt_assert(c, bytes <= size)) return NULL;
  return map(c, s, size);
}

char *lt_worker_slot_reserve(lt_ctx *c, lt_worker_slot *s, size_t bytes) {
  if (bytes <= s->mapped) return s->data;
  size_t size = file_size(s);
  if (bytes > size) {
    size = (bytes + (size > 0 ? bytes / 4 : 0) + STEP - 1) / STEP * STEP;
    /* Allocated now: a page that is missing later would end the process. */
    int error = posix_fallocate(s->fd, 0, (off_t)size);
    if (error != 0) {
      lt_fail(c, LT_EMEMORY, "DataLoader: cannot allocate %zu bytes of shared memory: %s", size,
              strerror(error));
      return NULL;
    }
  }
  return map(c, s, size);
}

bool lt_worker_slot_is_used(const lt_worker_slot *s) {
  return atomic_load_explicit(&s->refs, memory_order_acquire) > 1;
}

lt_tensor *lt_worker_slot_tensor(lt_ctx *c, lt_worker_slot *s, int64_t offset, lt_dtype dtype,
                                 int ndim, const int64_t *size) {
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return lt_tensor_owned(c, s->data + offset, s, drop, dtype, ndim, size);
}

void lt_worker_slot_release(lt_ctx *c, lt_worker_slot *s) {
  if (s == NULL) return;
  if (lt_worker_slot_is_used(s)) /* in place: the bytes stay where the tensors look for them */
    mmap(s->data, s->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, s->fd, 0);
  close(s->fd);
  s->fd = -1;
  drop(c, s);
}
