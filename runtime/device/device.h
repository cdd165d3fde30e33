/* runtime/device/device.h: devices by table, the caching allocator, bytes in and out.

   A ctx has one pool a device. In steady state tensors take no malloc: blocks return to size
   classes and are handed out again. A storage freed by another ctx goes to a list that the owning
   pool drains. */
#ifndef LT_DEVICE_DEVICE_H
#define LT_DEVICE_DEVICE_H

#include "ltrain/backend.h"
#include "tensor/tensor.h"

enum { LT_DEVICE_KINDS = 8, LT_MAX_DEVICES = 16 };

/* What registry.c fills: what this build contains. */
struct lt_registry {
  int n_devices;
  const lt_device_ops *devices[LT_DEVICE_KINDS];
  char refusal[128]; /* why nothing can run on this machine; "" when it can */
};

static inline const lt_device_ops *lt_device_table(const lt_ctx *c, lt_device d) {
  return c->registry->devices[d.kind];
}
#define LT_CPU_DEVICE ((lt_device){0, 0})
static inline bool lt_device_equal(lt_device a, lt_device b) {
  return a.kind == b.kind && a.index == b.index;
}

/* "cpu", "fake:1"; fails naming what is there and why a known kind has no device. */
bool lt_device_parse(lt_ctx *c, const char *text, lt_device *out);

/* Whether `text` names a kind of device, "cuda" or "cuda:7", be it here or not. */
bool lt_device_named(const lt_ctx *c, const char *text);
const char *lt_device_text(const lt_ctx *c, lt_device d, char *buffer, size_t size);

/* `bytes` uninitialised bytes, 64-byte aligned. On failure empties the caches, calls the ctx's
   collect hook, empties them again, then fails with bytes asked, held, cached. */
lt_storage *lt_storage_new(lt_ctx *c, lt_device d, size_t bytes);

/* An uninitialised row-major tensor; belongs to the open frame. */
lt_tensor *lt_tensor_empty(lt_ctx *c, lt_device d, lt_dtype dtype, int ndim, const int64_t *size);

/* Bytes between a contiguous tensor and host memory; both return when the bytes are there. */
bool lt_tensor_read(lt_ctx *c, lt_tensor *t, void *out);
bool lt_tensor_write(lt_ctx *c, lt_tensor *t, const void *from);

/* Copy bytes between two storages on any two devices. */
bool lt_device_copy(lt_ctx *c, lt_tensor *dst, const lt_tensor *src, size_t bytes);

/* Wait until everything issued on the device has run; takes over its late errors. */
bool lt_device_synchronize(lt_ctx *c, lt_device d);

/* Current stream of a device in this ctx (0 unless set). */
int lt_stream_current(lt_ctx *c, lt_device d);
bool lt_stream_set(lt_ctx *c, lt_device d, int stream);

/* Called before work that reads or writes `t` is issued on the current stream: orders it after
   the home stream's work. Nothing on synchronous devices. */
bool lt_stream_use(lt_ctx *c, lt_tensor *t);
/* Called after it was issued: the allocator will not hand the memory out before it is done. */
void lt_stream_used(lt_ctx *c, lt_tensor *t);

typedef struct lt_memory_stats {
  int64_t live_bytes, peak_bytes; /* in use by storages, rounded to blocks */
  int64_t cached_bytes;           /* held for reuse */
  int64_t system_calls;           /* allocations asked of the device so far */
} lt_memory_stats;
lt_memory_stats lt_device_memory(lt_ctx *c, lt_device d);
void lt_device_reset_peak(lt_ctx *c, lt_device d);
void lt_device_empty_cache(lt_ctx *c, lt_device d);

/* Cap live + cached bytes of this ctx's pools (0: none); a host's limit. */
void lt_device_set_limit(lt_ctx *c, int64_t bytes);

/* Count what the pools of a fresh child hold as its root's. In the root's thread; false with a
   failure in either. */
bool lt_device_share_limit(lt_ctx *child);

/* Run when the device is out of memory, e.g. a full collection of the script's garbage. */
void lt_device_on_exhausted(lt_ctx *c, void (*fn)(lt_ctx *c, void *ud), void *ud);

/* An asynchronous, counting device over host memory for specs (device/fake.c). It runs the cpu's
   kernels, late. lt_fake_ops fills a table from the cpu's. */
typedef struct lt_fake_counts {
  int64_t launches, copies, syncs, allocations, pending;
} lt_fake_counts;
const lt_device_ops *lt_fake_ops(const lt_device_ops *cpu);
lt_fake_counts lt_fake_count(lt_ctx *c);

#endif
