/* runtime/io/host_copy.h: copies of device tensors in pinned memory, for helper threads that write
   files: the copy runs on a stream of its own, and the thread waits for it. */
#ifndef LT_IO_HOST_COPY_H
#define LT_IO_HOST_COPY_H

#include "device/stream.h"

enum { LT_HOST_COPY_POLL = 1000 }; /* microseconds between looks at what a thread waits for */

/* When a copy has arrived; no stream: it was made by the host. */
typedef struct lt_arrival {
  lt_device device;
  lt_event at;
} lt_arrival;

/* Whether a tensor is in memory that copies to the host have to leave. */
bool lt_needs_host_copy(lt_ctx *c, const lt_tensor *t);

/* Begin the copy of a row-major tensor: a storage on the host, the caller's; NULL with a failure.
 */
lt_storage *lt_host_copy_begin(lt_ctx *c, lt_tensor *t, lt_arrival *arrival);

/* Wait for it, on any thread; `c`: the thread's. */
bool lt_host_copy_wait(lt_ctx *c, const char *op, const lt_arrival *arrival);

#endif
