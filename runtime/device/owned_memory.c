/* runtime/device/owned_memory.c: tensors over host memory of an owner, which is released with the
   last of them. */
#include "device/owned_memory.h"

#include "device/device.h"

typedef struct held {
  lt_storage storage;
  void (*drop)(lt_ctx *c, void *owner);
} held;

static void drop_held(lt_ctx *c, lt_storage *s) {
  held *h = (held *)s;
  h->drop(c, s->owner);
  lt_free(c, h, sizeof *h);
}

lt_tensor *lt_tensor_owned(lt_ctx *c, void *data, void *owner, void (*drop)(lt_ctx *c, void *owner),
                          lt_dtype dtype, int ndim, const int64_t *size) {
  held *h = lt_alloc(c, sizeof *h);
  if (h == NULL) {
    drop(c, owner);
    return NULL;
  }
  lt_storage *s = &h->storage;
  lt_storage_init(c, s);
  s->data = data;
  s->bytes = (size_t)lt_shape_numel(lt_shape_of(ndim, size)) * lt_dtype_size(dtype);
  s->device = LT_CPU_DEVICE;
  s->drop = drop_held;
  s->owner = owner;
  h->drop = drop;
  lt_tensor *t = lt_tensor_make(c, s, dtype, ndim, size, NULL, 0);
  lt_storage_release(c, s);
  return t;
}
