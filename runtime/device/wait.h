/* runtime/device/wait.h: how the host waits for devices.

   What a device waits for may never come: another rank's part of a collective. Then somebody looks
   on while the host waits (comm/device_wait.c), and ends the wait. */
#ifndef LT_DEVICE_WAIT_H
#define LT_DEVICE_WAIT_H

#include "device/device.h"

/* Who looks on. `look` is called every millisecond or so of a wait that has lasted for `ns`: false,
   with a failure, when it cannot come to its end by itself; by then it can. `end` follows a wait
   that `look` has seen. `finish` waits for work on streams that are not the ctx's. */
typedef struct lt_wait_watch {
  bool (*look)(lt_ctx *c, void *ud, int64_t ns);
  void (*end)(lt_ctx *c, void *ud);
  bool (*finish)(lt_ctx *c, void *ud);
  void *ud;
} lt_wait_watch;
void lt_wait_set_watch(lt_ctx *c, lt_wait_watch watch); /* {0}: nobody */

/* The host waits: for an event, for all that was issued on a stream, for all streams that the ctx
   has of a device. False with a failure; what was waited for has run all the same. */
bool lt_wait_event(lt_ctx *c, lt_device d, lt_event e);
bool lt_wait_stream(lt_ctx *c, lt_device d, lt_stream *stream);
bool lt_wait_device(lt_ctx *c, lt_device d);

/* Before the host polls until an event has passed, from any thread: devices that record work run it
   up to there. */
bool lt_wait_submit(lt_ctx *c, lt_device d, lt_event e);

/* The end of a batch, for all devices that the ctx has used (`batch_end` of backend.h). */
bool lt_device_end_batch(lt_ctx *c);

/* How often the host has waited while somebody looked on, for specs: an event that was reached
   already is none. */
int64_t lt_wait_count(const lt_ctx *c);

/* What was issued behind `from`, on its stream and up to now, was computed from a collective that
   was given up: reading it fails. */
void lt_wait_spoil(lt_ctx *c, lt_device d, lt_event from);
/* Before a storage is copied to the host on a stream: a copy into memory that is not pinned waits
   by itself, where nobody can look on. */
bool lt_wait_to_read(lt_ctx *c, const lt_storage *s, lt_stream *stream);

#endif
