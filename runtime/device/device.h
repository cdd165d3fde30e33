/* runtime/device/device.h: device kinds (a table of functions each), the caching allocator, copies.

   A ctx has one pool a device. In steady state tensors take no malloc: freed blocks are
   kept by size class and reused. A storage freed by another ctx goes to a list that the owning pool
   empties. */
#ifndef LT_DEVICE_DEVICE_H
#define LT_DEVICE_DEVICE_H

#include "ltrain/backend.h"
#include "tensor/tensor.h"

enum { LT_DEVICE_KINDS = 8, LT_MAX_DEVICES = 16 };

/* Set by registry.c: what this build contains, besides its devices. */
struct lt_registry {
  char refusal[128]; /* why ltrain cannot run on this machine; "" if it can */
  /* Fails with the message of a device's error word. */
  bool (*value_error)(lt_ctx *c, const lt_device_error *e);
  const char *(*op_name)(int op);
};

/* The devices of this process (device/device_names.c): only ever appended to, pointers that never
   change. 0 is the cpu. */
extern const lt_device_ops *lt_device_kinds[LT_DEVICE_KINDS];
int lt_device_kind_count(void);

static inline const lt_device_ops *lt_device_table(const lt_ctx *c, lt_device d) {
  (void)c;
  return lt_device_kinds[d.kind];
}
#define LT_CPU_DEVICE ((lt_device){0, 0})
/* Whether it has a narrower dtype in place of this one (backend.h). */
static inline bool lt_device_lacks(lt_device d, lt_dtype dtype) {
  bool (*lacks)(lt_dtype) = lt_device_kinds[d.kind]->lacks;
  return lacks != NULL && lacks(dtype);
}
static inline bool lt_device_equal(lt_device a, lt_device b) {
  return a.kind == b.kind && a.index == b.index;
}

/* The kind of a name or an alias of `length` bytes; -1: none. */
int lt_device_find(const char *name, size_t length);
/* Append a kind, once per name; false with the reason in `why`. May be called from any thread. */
bool lt_device_add(const lt_device_ops *ops, char *why, size_t size);

/* The number of devices of a kind, at most LT_MAX_DEVICES. */
int lt_device_count(const lt_device_ops *ops);

/* "cpu", "fake:1", by name or alias; opens a backend of that name if there is one. The
   error lists the devices, and why a known kind has none. */
bool lt_device_parse(lt_ctx *c, const char *text, lt_device *out);

/* Whether `text` names a kind of device, "cpu" or "cpu:7", whether usable or not. */
bool lt_device_named(lt_ctx *c, const char *text);
/* "cpu, cuda": the kinds of this build, and those of other builds. */
const char *lt_device_names(char *buffer, size_t size);
const char *lt_device_text(const lt_ctx *c, lt_device d, char *buffer, size_t size);

/* The device of tensors made without a device argument: the cpu unless set, for this ctx only. */
lt_device lt_device_default(const lt_ctx *c);
bool lt_device_set_default(lt_ctx *c, lt_device d);

/* Which device of a kind a name without a number is ("cuda"): the first unless set, by this ctx. */
int lt_device_current(const lt_ctx *c, int kind);
bool lt_device_set_current(lt_ctx *c, lt_device d);

/* `bytes` uninitialised bytes, 64-byte aligned. When the device is out of memory, empties the
   caches and calls the ctx's collect hook before it fails with the bytes requested, used and
   cached. */
lt_storage *lt_storage_new(lt_ctx *c, lt_device d, size_t bytes);

/* Where tensors of the cpu of at least `least` bytes that this ctx makes get their memory, in place
   of its pool; `make` NULL: the pool. Returns the former one. */
typedef struct lt_host_source {
  lt_storage *(*make)(lt_ctx *c, void *ud, size_t bytes); /* NULL with a failure */
  void *ud;
  size_t least;
} lt_host_source;
lt_host_source lt_device_set_host_source(lt_ctx *c, lt_host_source source);

/* Wrap memory of a device that the caller owns; `release(ud)` is called when nothing uses it any
   more, including issued work. */
lt_storage *lt_storage_wrap(lt_ctx *c, lt_device d, void *data, size_t bytes,
                            void (*release)(void *ud), void *ud);

/* Give the memory of a storage back to the pool, ordered after all work on it; tensors, views and
   saved values stay valid, and the version does not change. Until lt_storage_fill gives it memory
   again, uninitialised, any access fails with `why` ("parameter 'layers.1.weight' is sharded").
   Only for storages of lt_storage_new of this ctx. */
bool lt_storage_empty(lt_ctx *c, lt_storage *s, const char *why);
bool lt_storage_fill(lt_ctx *c, lt_storage *s);

/* Change the release function. */
void lt_storage_on_drop(lt_storage *wrapped, void (*release)(void *ud), void *ud);

/* An uninitialised row-major tensor; belongs to the open frame. */
lt_tensor *lt_tensor_empty(lt_ctx *c, lt_device d, lt_dtype dtype, int ndim, const int64_t *size);

/* Bytes between a contiguous tensor and host memory. The first returns when `out` is filled, the
   second when `from` has been read; pinned memory is read when the copy runs. */
bool lt_tensor_read(lt_ctx *c, lt_tensor *t, void *out);
bool lt_tensor_write(lt_ctx *c, lt_tensor *t, const void *from);

/* An asynchronous lt_tensor_read. begin issues a copy of a contiguous tensor, ordered after the
   work that was issued before; wait returns the bytes, without waiting for work issued since. They
   are freed by end, or by another begin. A zeroed struct was not begun. */
typedef struct lt_readback {
  lt_device device;
  struct lt_pinned *memory;
  size_t bytes;
  lt_event done;
  bool waits;
} lt_readback;
bool lt_readback_begin(lt_ctx *c, lt_readback *r, lt_tensor *t);
bool lt_readback_arrived(const lt_readback *r); /* whether wait would not wait */
const void *lt_readback_wait(lt_ctx *c, lt_readback *r); /* NULL: failed, or not begun */
void lt_readback_end(lt_readback *r);

/* Copy bytes between two contiguous tensors on any two devices, ordered after the work issued on
   either. The bytes of a host tensor may be written again when it returns, but for a pinned one
   while the stream of copies is the current one (lt_stream_set): it is read when the copy runs. */
bool lt_device_copy(lt_ctx *c, lt_tensor *dst, lt_tensor *src, size_t bytes);

/* Pinned host memory, from which the device can copy asynchronously (plain memory if it has none),
   kept for reuse by the process. Any thread takes and gives; `after`: when the device has done with
   it. trim frees what is not in use. */
typedef struct lt_pinned lt_pinned;
lt_pinned *lt_pinned_take(lt_ctx *c, lt_device d, size_t bytes);
void *lt_pinned_memory(const lt_pinned *p);
void lt_pinned_give(lt_pinned *p, lt_event after);
void lt_pinned_trim(void);

/* The same as a storage of the host. It keeps when devices have read it: its memory is used again
   after that. */
lt_storage *lt_pinned_storage(lt_ctx *c, lt_device d, size_t bytes);
bool lt_storage_is_pinned(const lt_storage *s);
bool lt_pinned_has(const void *memory); /* whoever owns a storage over it: of DLPack, wrapped */
bool lt_pinned_read(lt_ctx *c, lt_storage *s, lt_event at); /* a device will have, at `at` */
/* The first device with pinned memory that this ctx has used; the cpu where there is none. */
lt_device lt_pinned_device(const lt_ctx *c);

/* Wait until everything issued on the device has run; fails with its late errors. */
bool lt_device_synchronize(lt_ctx *c, lt_device d);
/* The same for all devices that this ctx has used. */
bool lt_device_synchronize_all(lt_ctx *c);
/* Fail with the error in the device's error word; called after a host wait. */
bool lt_device_check(lt_ctx *c, lt_device d);

/* Fail with a fault after which the device cannot be used: `text` names it; the operations that
   this ctx issued last, one of which made it, follow with their lines. Returns false. */
bool lt_fail_fault(lt_ctx *c, int index, const char *text);

/* Fail as out of memory, which a device found late: the largest tensors in use follow `text`.
   Returns false. */
bool lt_fail_device_exhausted(lt_ctx *c, const char *name, int index, const char *text);

/* Call the device's `open` before its first use in this ctx; false with a failure. */
bool lt_device_open(lt_ctx *c, lt_device d);

/* Whether any ctx of this process, or of a process that it was forked from, has used devices of
   this kind. */
bool lt_device_used(lt_device d);
/* The name of a kind that was used and cannot be used after a fork; NULL: there is none. */
const char *lt_device_used_without_forks(void);
/* Called in a forked child: from now on refuses devices that were used before the fork and do not
   survive one. */
void lt_device_forked(lt_ctx *c);

typedef struct lt_memory_stats {
  int64_t live_bytes, peak_bytes; /* in use by storages, rounded to blocks */
  int64_t cached_bytes;           /* held for reuse */
  int64_t system_calls;           /* allocations from the device so far */
} lt_memory_stats;
lt_memory_stats lt_device_memory(lt_ctx *c, lt_device d);
/* The largest tensors of a device that this ctx has made, over 1 MiB each: a line for each op and
   script line, the largest first, as many as fit; "" for none. */
void lt_device_list_largest(lt_ctx *c, lt_device d, char *out, size_t size);

/* A tensor's memory that is in use: what made it, where, in which shape (ndim -1: of no tensor). */
typedef struct lt_live {
  int64_t bytes;
  uint64_t id; /* of its storage */
  const char *op;
  uint32_t line;
  lt_shape shape;
  lt_dtype dtype;
} lt_live;
/* Up to n of those of a device that this ctx has made, the newest first; returns how many there
   are. They are those over 1 MiB, and from lt_device_note_all on all that are made. */
int64_t lt_device_live(lt_ctx *c, lt_device d, lt_live *out, int64_t n);
void lt_device_note_all(lt_ctx *c, bool on);

/* Of all devices that this ctx has used: bytes in use; reset the peaks; free the caches. */
int64_t lt_device_live_bytes(lt_ctx *c);
void lt_device_reset_peaks(lt_ctx *c);
void lt_device_empty_caches(lt_ctx *c);

/* Fail with "who: a meta tensor has no data: f32 [2, 3]" where that is so, or where its storage is
   empty; `who` NULL: the op that is running. */
bool lt_check_data(lt_ctx *c, const char *who, const lt_tensor *t);

/* Limit live + cached bytes of this ctx's pools (0: no limit). */
void lt_device_set_limit(lt_ctx *c, int64_t bytes);

/* The same of one device, of this ctx and its children. */
void lt_device_limit_one(lt_ctx *c, lt_device d, int64_t bytes);

/* Count the memory of a new child's pools as its root's. Called in the root's thread; false with a
   failure in either. */
bool lt_device_share_limit(lt_ctx *child);

/* Set the function that is called when the device is out of memory, e.g. a full garbage collection
   of the script. */
void lt_device_on_exhausted(lt_ctx *c, void (*fn)(lt_ctx *c, void *ud), void *ud);

#endif
