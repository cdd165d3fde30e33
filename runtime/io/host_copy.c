/* runtime/io/host_copy.c: copies to pinned memory on the stream for copies back.

   The pool does not give the tensor's memory to others before the copy has run: the events of the
   storage order it. */
#include "io/host_copy.h"

#include <unistd.h>

#include "device/wait.h"

bool lt_needs_host_copy(lt_ctx *c, const lt_tensor *t) {
  return lt_device_table(c, t->storage->device)->launch != NULL;
}

lt_storage *lt_host_copy_begin(lt_ctx *c, lt_tensor *t, lt_arrival *arrival) {
  lt_device d = t->storage->device;
  size_t n = (size_t)t->numel * lt_item_size(t);
  lt_storage *to = lt_pinned_storage(c, d, n);
  if (to == NULL) return NULL;
  lt_copying m = {.device = d, .stream = lt_stream_of(c, d, LT_STREAM_BACK), .way = LT_TO_HOST,
                  .from = t->storage, .src = lt_data(t), .dst = to->data,
                  .from_index = d.index, .bytes = n, .dtype = (lt_dtype)t->dtype};
  arrival->device = d;
  if (n == 0 || lt_copy_issue(c, &m, &arrival->at)) return to;
  lt_storage_release(c, to);
  return NULL;
}

/* Polling, since backends offer event_done and no blocking wait for threads; a millisecond is
   nothing beside a write. */
bool lt_host_copy_wait(lt_ctx *c, const char *op, const lt_arrival *a) {
  lt_progress at = LT_DONE;
  if (!lt_wait_submit(c, a->device, a->at)) return false;
  while (a->at.stream != NULL &&
         (at = lt_device_kinds[a->device.kind]->event_done(a->at)) == LT_PENDING)
    usleep(LT_HOST_COPY_POLL);
  return at == LT_DONE || lt_fail(c, LT_EDEVICE, "%s: the device has failed", op);
}
