/* runtime/device/owned_memory.c: tensors over host memory of an owner, which is released with the
   last of them. */
#include "device/owned_memory.h"

#include "device/device.h"

typedef struct owned {
  lt_storage storage;
  void (*drop)(lt_ctx *c, void *owner);
} owned;

static void drop_owned(lt_ctx *c, lt_storage *s) {
  owned *o = (owned *)s;
  o->drop(c, s->owner);
  lt_free(c, o, sizeof *o);
}

lt_tensor *lt_tensor_owned(lt_ctx *c, void *data, void *owner, void (*drop)(lt_ctx *c, void *owner),
                          lt_dtype dtype, int ndim, const int64_t *size) {
  owned *o = lt_alloc(c, sizeof *o);
  if (o == NULL) {
    drop(c, owner);
    return NULL;
  }
  lt_storage *s = &o->storage;
  lt_storage_init(c, s);
  s->data = data;
  s->bytes = (size_t)lt_shape_numel(lt_shape_of(ndim, size)) * lt_dtype_size(dtype);
  s->device = LT_CPU_DEVICE;
  s->drop = drop_owned;
  s->owner = owner;
  o->drop = drop;
  lt_tensor *t = lt_tensor_make(c, s, dtype, ndim, size, NULL, 0);
  lt_storage_release(c, s);
  return t;
}
