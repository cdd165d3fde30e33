/* runtime/device/device.h: devices by table, the caching allocator, bytes in and out.

   A ctx has one pool a device. In steady state tensors take no malloc: blocks return to size
   classes and are handed out again. A storage freed by another ctx goes to a list that the owning
   pool drains. */
#ifndef LT_DEVICE_DEVICE_H
#define LT_DEVICE_DEVICE_H

#include "ltrain/backend.h"
#include "tensor/tensor.h"

enum { LT_DEVICE_KINDS = 8, LT_MAX_DEVICES = 16 };

/* What registry.c fills: what this build contains, besides its devices. */
struct lt_registry {
  char refusal[128]; /* why nothing can run on this machine; "" when it can */
  /* Fails with the sentence of a device's error word. */
  bool (*value_error)(lt_ctx *c, const lt_device_error *e);
};

/* The devices of this process (device/table.c): only ever appended to, pointers that never change.
   0 is the cpu. */
extern const lt_device_ops *lt_device_kinds[LT_DEVICE_KINDS];
int lt_device_kind_count(void);

static inline const lt_device_ops *lt_device_table(const lt_ctx *c, lt_device d) {
  (void)c;
  return lt_device_kinds[d.kind];
}
#define LT_CPU_DEVICE ((lt_device){0, 0})
static inline bool lt_device_equal(lt_device a, lt_device b) {
  return a.kind == b.kind && a.index == b.index;
}

/* Appends a kind, once a name; false with why not in `why`. From any thread. */
bool lt_device_add(const lt_device_ops *ops, char *why, size_t size);

/* Devices of a kind that ltrain uses: at most LT_MAX_DEVICES. */
int lt_device_count(const lt_device_ops *ops);

/* "cpu", "fake:1", by name or alias; a backend of that name is opened when it is there. Fails
   naming what is there and why a known kind has no device. */
bool lt_device_parse(lt_ctx *c, const char *text, lt_device *out);

/* Whether `text` names a kind of device, "cpu" or "cpu:7", be it usable or not. */
bool lt_device_named(lt_ctx *c, const char *text);
/* "cpu, cuda": kinds that are here, and those that other builds have. */
const char *lt_device_names(char *buffer, size_t size);
const char *lt_device_text(const lt_ctx *c, lt_device d, char *buffer, size_t size);

/* Where tensors are made that are told no device: the cpu unless set, in this ctx alone. */
lt_device lt_device_default(const lt_ctx *c);
bool lt_device_set_default(lt_ctx *c, lt_device d);

/* `bytes` uninitialised bytes, 64-byte aligned. On failure empties the caches, calls the ctx's
   collect hook, empties them again, then fails with bytes asked, held, cached. */
lt_storage *lt_storage_new(lt_ctx *c, lt_device d, size_t bytes);

/* Wrap memory of a device that belongs to somebody else; `release(ud)` runs when nothing uses it
   any more, work that was issued included. */
lt_storage *lt_storage_wrap(lt_ctx *c, lt_device d, void *data, size_t bytes,
                            void (*release)(void *ud), void *ud);

/* Change what runs then. */
void lt_storage_on_drop(lt_storage *wrapped, void (*release)(void *ud), void *ud);

/* An uninitialised row-major tensor; belongs to the open frame. */
lt_tensor *lt_tensor_empty(lt_ctx *c, lt_device d, lt_dtype dtype, int ndim, const int64_t *size);

/* Bytes between a contiguous tensor and host memory. The first returns when `out` is filled, the
   second when `from` has been read; pinned memory is read when the copy runs. */
bool lt_tensor_read(lt_ctx *c, lt_tensor *t, void *out);
bool lt_tensor_write(lt_ctx *c, lt_tensor *t, const void *from);

/* What lt_tensor_read gives, later: begin copies the bytes of a contiguous tensor as they will be
   after the work that was issued, and wait returns them when they are there, however much was
   issued since. Begun again, or ended, the bytes go. A zeroed struct is one that was not begun. */
typedef struct lt_readback {
  lt_device device;
  void *memory;
  size_t bytes;
  lt_event done;
  bool waits;
} lt_readback;
bool lt_readback_begin(lt_ctx *c, lt_readback *r, lt_tensor *t);
const void *lt_readback_wait(lt_ctx *c, lt_readback *r); /* NULL: a failure, or not begun */
void lt_readback_end(lt_ctx *c, lt_readback *r);

/* Copy bytes between two contiguous tensors on any two devices, in order with all that was issued
   on either. */
bool lt_device_copy(lt_ctx *c, lt_tensor *dst, lt_tensor *src, size_t bytes);

/* Host memory that copies of the device need not wait for, where it has such; else plain. */
void *lt_pinned_new(lt_ctx *c, lt_device d, size_t bytes);
void lt_pinned_free(lt_ctx *c, lt_device d, void *memory, size_t bytes);

/* Wait until everything issued on the device has run; takes over its late errors. */
bool lt_device_synchronize(lt_ctx *c, lt_device d);
/* The same of all devices that this ctx has used; before a save, and at its end. */
bool lt_device_synchronize_all(lt_ctx *c);
/* Fails with what the device's error word holds; after a host wait. */
bool lt_device_check(lt_ctx *c, lt_device d);

/* Before the first use of a device in this ctx, its `open`; false with a failure. */
bool lt_device_open(lt_ctx *c, lt_device d);

/* Whether any ctx of this process, or of one that it was forked from, has used devices of this
   kind. */
bool lt_device_used(lt_device d);
/* In a child that was just forked: devices that do not survive a fork and were used before it are
   refused from now on. */
void lt_device_forked(lt_ctx *c);

typedef struct lt_memory_stats {
  int64_t live_bytes, peak_bytes; /* in use by storages, rounded to blocks */
  int64_t cached_bytes;           /* held for reuse */
  int64_t system_calls;           /* allocations asked of the device so far */
} lt_memory_stats;
lt_memory_stats lt_device_memory(lt_ctx *c, lt_device d);
/* Of all devices that this ctx has used: bytes in use, peaks, and giving back what is cached. */
int64_t lt_device_live_bytes(lt_ctx *c);
void lt_device_reset_peaks(lt_ctx *c);
void lt_device_empty_caches(lt_ctx *c);

/* Cap live + cached bytes of this ctx's pools (0: none); a host's limit. */
void lt_device_set_limit(lt_ctx *c, int64_t bytes);

/* Count what the pools of a fresh child hold as its root's. In the root's thread; false with a
   failure in either. */
bool lt_device_share_limit(lt_ctx *child);

/* Run when the device is out of memory, e.g. a full collection of the script's garbage. */
void lt_device_on_exhausted(lt_ctx *c, void (*fn)(lt_ctx *c, void *ud), void *ud);

#endif
