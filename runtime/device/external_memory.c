/* runtime/device/external_memory.c: storages over memory that the caller owns (as
   torch.from_blob). */
#include "device/stream.h"

typedef struct wrapped {
  lt_storage storage;
  void (*release)(void *ud);
  void *ud;
} wrapped;

/* The owner may do with the memory what it likes afterwards: issued work comes first. */
static void drop_wrapped(lt_ctx *c, lt_storage *s) {
  wrapped *w = (wrapped *)s;
  lt_order_host(c, s, true);
  if (w->release != NULL) w->release(w->ud);
  lt_free(c, w, sizeof *w);
}

lt_storage *lt_storage_wrap(lt_ctx *c, lt_device d, void *data, size_t bytes,
                            void (*release)(void *ud), void *ud) {
  if (!lt_device_open(c, d)) return NULL;
  if (lt_device_table(c, d)->whole_storages) {
    lt_fail(c, LT_EDEVICE,
            "%s%s%s has values in memory of its own alone: other memory cannot be a tensor there; "
            "copy it with :to()",
            lt_op_name(c), lt_op_colon(c), lt_device_table(c, d)->name);
    return NULL;
  }
  wrapped *w = lt_alloc(c, sizeof *w);
  if (w == NULL) return NULL;
  lt_storage_init(c, &w->storage);
  w->storage.data = data;
  w->storage.bytes = bytes;
  w->storage.device = d;
  w->storage.drop = drop_wrapped;
  w->release = release;
  w->ud = ud;
  return &w->storage;
}

void lt_storage_on_drop(lt_storage *s, void (*release)(void *ud), void *ud) {
  wrapped *w = (wrapped *)s;
  w->release = release;
  w->ud = ud;
}
