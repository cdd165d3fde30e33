/* runtime/device/copy.c: copies to, from and between devices, in stream order. */
#include <string.h>

#include "device/graph.h"
#include "device/stream.h"
#include "device/wait.h"

/* A graph would copy what the host's memory has later. */
static bool is_capturable(lt_ctx *c, lt_copy way) {
  if (way == LT_WITHIN) return true;
  if (way == LT_PEER) return lt_graph_allows(c, "copy between GPUs");
  return lt_graph_allows(c, way == LT_TO_HOST
                                ? "give values to the host (item, print, to \"cpu\")"
                                : "take values from the host: pass them as arguments");
}

/* What was issued before a failure runs all the same. */
bool lt_copy_issue(lt_ctx *c, const lt_copying *m, lt_event *done) {
  const lt_device_ops *ops = lt_device_table(c, m->device);
  int index = m->device.index;
  *done = (lt_event){0};
  const lt_storage *empty = m->from != NULL && m->from->away != NULL ? m->from : m->to;
  if (empty != NULL && empty->away != NULL)
    return lt_fail(c, LT_EDEVICE, "%s%s%s", lt_op_name(c), lt_op_colon(c), empty->away);
  if (ops->launch == NULL)
    return ops->copy(c, NULL, m->way, index, m->dst, m->from_index, m->src, m->bytes,
                     m->dtype);
  lt_graph *g = lt_graph_captures(c);
  bool is_constant = g != NULL && g->takes_constants && m->way == LT_TO_DEVICE;
  if (!is_constant && !is_capturable(c, m->way)) return false;
  const void *src = is_constant ? lt_graph_constant(c, g, m->src, m->bytes) : m->src;
  if (src == NULL || m->stream == NULL ||
      (m->from != NULL && !lt_order_before(c, m->from, m->stream, false)) ||
      (m->to != NULL && !lt_order_before(c, m->to, m->stream, true)))
    return false;
  bool ok = ops->copy(c, m->stream, m->way, index, m->dst, m->from_index, src, m->bytes, m->dtype);
  if (!lt_order_record(c, m->device, m->stream, done)) return false;
  if (m->from != NULL) lt_order_after(m->from, *done, false);
  if (m->to != NULL) lt_order_after(m->to, *done, true);
  return ok;
}

static bool from_device(lt_ctx *c, lt_tensor *t, void *out, size_t bytes, lt_event *done) {
  lt_device d = t->storage->device;
  lt_copying m = {.device = d, .stream = lt_stream_current(c, d), .way = LT_TO_HOST,
                  .from = t->storage, .src = lt_data(t), .dst = out, .from_index = d.index,
                  .bytes = bytes, .dtype = (lt_dtype)t->dtype};
  return lt_copy_issue(c, &m, done);
}

/* The same, and the host waits for it. */
static bool read_now(lt_ctx *c, lt_tensor *t, void *out, size_t bytes) {
  lt_device d = t->storage->device;
  lt_event done;
  return is_capturable(c, LT_TO_HOST) &&
         lt_wait_to_read(c, t->storage, lt_stream_current(c, d)) &&
         from_device(c, t, out, bytes, &done) && lt_wait_event(c, d, done) && lt_device_check(c, d);
}

static bool to_device(lt_ctx *c, lt_tensor *t, const void *from, size_t bytes, lt_event *done) {
  lt_device d = t->storage->device;
  lt_copying m = {.device = d, .stream = lt_stream_current(c, d), .way = LT_TO_DEVICE,
                  .to = t->storage, .src = from, .dst = lt_data(t), .from_index = d.index,
                  .bytes = bytes, .dtype = (lt_dtype)t->dtype};
  return lt_copy_issue(c, &m, done);
}

/* Between devices of one kind. */
static bool within(lt_ctx *c, lt_tensor *dst, lt_tensor *src, size_t bytes) {
  lt_device d = dst->storage->device;
  int from = src->storage->device.index;
  lt_event done;
  lt_copying m = {.device = d, .stream = lt_stream_current(c, d),
                  .way = from == d.index ? LT_WITHIN : LT_PEER, .from = src->storage,
                  .to = dst->storage, .src = lt_data(src), .dst = lt_data(dst), .from_index = from,
                  .bytes = bytes, .dtype = (lt_dtype)dst->dtype};
  return lt_copy_issue(c, &m, &done);
}

/* Whether the host must not touch its bytes. A device without a copy function has the host's
   memory. */
static bool is_elsewhere(lt_ctx *c, const lt_tensor *t) {
  return lt_device_table(c, t->storage->device)->copy != NULL;
}

bool lt_tensor_read(lt_ctx *c, lt_tensor *t, void *out) {
  size_t bytes = (size_t)t->numel * lt_item_size(t);
  if (bytes == 0) return lt_ok(c);
  if (t->storage->away != NULL) return lt_check_data(c, NULL, t);
  if (is_elsewhere(c, t)) return read_now(c, t, out, bytes);
  memcpy(out, lt_data(t), bytes);
  return true;
}

/* The memory of a readback is kept for the next one of the same size. */
static bool reserve(lt_ctx *c, lt_readback *r, lt_device d, size_t bytes) {
  if (r->memory != NULL && r->bytes == bytes && lt_device_equal(r->device, d))
    return !r->waits || lt_readback_wait(c, r) != NULL;
  lt_readback_end(r);
  *r = (lt_readback){.device = d, .memory = lt_pinned_take(c, d, bytes), .bytes = bytes};
  return r->memory != NULL;
}

bool lt_readback_begin(lt_ctx *c, lt_readback *r, lt_tensor *t) {
  lt_device d = t->storage->device;
  size_t bytes = (size_t)t->numel * lt_item_size(t);
  if (!reserve(c, r, d, bytes)) return false;
  if (!is_elsewhere(c, t)) return lt_tensor_read(c, t, lt_pinned_memory(r->memory));
  r->waits = from_device(c, t, lt_pinned_memory(r->memory), bytes, &r->done);
  /* An event asked for now stands for this position; asked for later, for what came since, too. */
  if (r->waits) lt_readback_arrived(r);
  return r->waits;
}

bool lt_readback_arrived(const lt_readback *r) {
  const lt_device_ops *ops = lt_device_kinds[r->device.kind];
  return !r->waits || ops->launch == NULL || ops->event_done(r->done) != LT_PENDING;
}

const void *lt_readback_wait(lt_ctx *c, lt_readback *r) {
  if (r->waits && !(lt_wait_event(c, r->device, r->done) && lt_device_check(c, r->device)))
    return NULL;
  r->waits = false;
  return r->memory != NULL ? lt_pinned_memory(r->memory) : NULL;
}

void lt_readback_end(lt_readback *r) {
  if (r->memory != NULL) lt_pinned_give(r->memory, r->waits ? r->done : (lt_event){0});
  *r = (lt_readback){0};
}

bool lt_tensor_write(lt_ctx *c, lt_tensor *t, const void *from) {
  size_t bytes = (size_t)t->numel * lt_item_size(t);
  if (bytes == 0) return lt_ok(c);
  if (t->storage->away != NULL) return lt_check_data(c, NULL, t);
  lt_event done;
  if (is_elsewhere(c, t)) return to_device(c, t, from, bytes, &done);
  memcpy(lt_data(t), from, bytes);
  return true;
}

/* Between devices of two kinds, through the host's memory. The source's device has to be done
   before the target's may read: two libraries know no common event. */
static bool bounce(lt_ctx *c, lt_tensor *dst, lt_tensor *src, size_t bytes) {
  lt_pinned *p = lt_pinned_take(c, dst->storage->device, bytes);
  if (p == NULL) return false;
  lt_event done = {0};
  bool ok = read_now(c, src, lt_pinned_memory(p), bytes) &&
            to_device(c, dst, lt_pinned_memory(p), bytes, &done);
  lt_pinned_give(p, done);
  return ok;
}

static bool from_host(lt_ctx *c, lt_tensor *dst, lt_tensor *src, size_t bytes) {
  lt_device d = dst->storage->device;
  lt_event done;
  if (!to_device(c, dst, lt_data(src), bytes, &done)) return false;
  /* From all memory but what the device's host_alloc gave the call has read it when it returns
     (backend.h: staged); from that, the copy still runs. A storage that does not keep when it is
     read is waited for. */
  bool keeps = lt_storage_is_pinned(src->storage);
  bool read = lt_device_table(c, d)->whole_storages; /* its rule */
  if (read || done.stream == NULL || !(keeps || lt_pinned_has(lt_data(src)))) return true;
  if (!keeps || done.stream != lt_stream_of(c, d, LT_STREAM_COPY))
    return lt_wait_event(c, d, done);
  return lt_pinned_read(c, src->storage, done);
}

bool lt_device_copy(lt_ctx *c, lt_tensor *dst, lt_tensor *src, size_t bytes) {
  if (bytes == 0) return lt_ok(c);
  bool from = is_elsewhere(c, src), to = is_elsewhere(c, dst);
  if (from && to)
    return dst->storage->device.kind == src->storage->device.kind ? within(c, dst, src, bytes)
                                                                   : bounce(c, dst, src, bytes);
  if (from) return read_now(c, src, lt_data(dst), bytes);
  if (to) return from_host(c, dst, src, bytes);
  memcpy(lt_data(dst), lt_data(src), bytes);
  return true;
}
void *lt_tensor_ptr(lt_ctx *c, lt_tensor *t, int access) {
  if (!lt_ok(c)) return NULL;
  lt_device d = t->storage->device;
  const lt_device_ops *ops = lt_device_table(c, d);
  if (!lt_check_data(c, NULL, t)) return NULL;
  if (!ops->host_memory) {
    lt_fail(c, LT_EDEVICE, "pointer: memory of %s is not the host's; copy it with :to('cpu')",
            ops->name);
    return NULL;
  }
  bool writes = (access & LT_WRITE) != 0;
  if (writes && t->storage->read_only) {
    lt_fail(c, LT_EVERSION, "pointer: the memory of %s is read-only", LT_TENSOR_STR(t));
    return NULL;
  }
  /* Memory that host and device share: work on it that was issued must be done before a pointer is
     of use. */
  if (ops->launch != NULL && !(lt_order_host(c, t->storage, writes) && lt_device_check(c, d)))
    return NULL;
  if (writes) lt_storage_bump(c, t->storage);
  return lt_data(t);
}
