/* runtime/device/stream.h: streams of asynchronous devices, and the order of work on memory.

   A storage keeps its last write and a last read per stream, as positions of streams. A read
   waits for the write, a write for the write and all reads. Memory keeps its positions when
   it is freed: the next owner waits as the next writer. There are no exceptions. */
#ifndef LT_DEVICE_STREAM_H
#define LT_DEVICE_STREAM_H

#include "device/device.h"

/* Streams that a ctx has of a device. They are created on demand, belong to the process, and are
   returned for reuse when the ctx is freed. */
typedef enum lt_stream_role {
  LT_STREAM_COMPUTE,
  LT_STREAM_COPY, /* to the device, beside what it computes */
  LT_STREAM_BACK, /* to the host */
  LT_STREAM_COMM,
  LT_STREAM_ROLES
} lt_stream_role;

/* NULL with a failure; of synchronous devices NULL without one. */
lt_stream *lt_stream_of(lt_ctx *c, lt_device d, lt_stream_role role);

/* The stream of ops: the ctx's compute stream unless another was set (NULL: the default again). */
lt_stream *lt_stream_current(lt_ctx *c, lt_device d);
bool lt_stream_set(lt_ctx *c, lt_device d, lt_stream *stream);

/* A stream for the script: a few a device and ctx, in turn; NULL as above. */
lt_stream *lt_stream_next(lt_ctx *c, lt_device d);

/* Take a stream that no ctx uses, else a new one; return it. */
lt_stream *lt_stream_lease(lt_ctx *c, lt_device d, lt_stream_role role);
void lt_stream_return(lt_device d, lt_stream_role role, lt_stream *stream);

/* Call it before work that reads the storage, or also writes it, is issued on `stream`. */
bool lt_order_before(lt_ctx *c, lt_storage *s, lt_stream *stream, bool writes);
/* Call it after the work was issued; `at`: the position of the stream then. */
void lt_order_after(lt_storage *s, lt_event at, bool writes);

/* The same of all tensors of a call (NULL ones are skipped); `at` is recorded here. */
bool lt_order_call(lt_ctx *c, const lt_call *call, lt_stream *stream,
                   bool (*writes)(const lt_call *call, int k));
bool lt_order_called(lt_ctx *c, const lt_call *call, lt_stream *stream,
                     bool (*writes)(const lt_call *call, int k));

/* The position of the stream, after work was issued on it. When there is none to be had the host
   waits for all of the device instead: what is not noted must have run. False with the failure. */
bool lt_order_record(lt_ctx *c, lt_device d, lt_stream *stream, lt_event *at);

/* One copy of bytes, in order with all work on the storages that it reads and writes. */
typedef struct lt_copying {
  lt_device device;
  lt_stream *stream; /* of the device; NULL: a synchronous one */
  lt_copy way;
  lt_storage *from, *to; /* NULL: host memory of the caller */
  const void *src;
  void *dst;
  int from_index; /* the device of src for LT_PEER */
  size_t bytes;
  lt_dtype dtype; /* of the elements that they are */
} lt_copying;
/* Issues it; `done`: its position ({NULL, 0} on a synchronous device, where it is done). */
bool lt_copy_issue(lt_ctx *c, const lt_copying *copy, lt_event *done);

/* Wait until the host may read the storage, or also write it. Waits for all of that work, even if
   some of it, or the ctx, has failed. */
bool lt_order_host(lt_ctx *c, lt_storage *s, bool writes);

/* Whether all work on the storage has run; whether all of it is on one stream. */
bool lt_order_done(const lt_storage *s);
bool lt_order_single(const lt_storage *s);

#endif
