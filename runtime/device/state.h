/* runtime/device/state.h: what a ctx has of devices: pools, streams, its limit. */
#ifndef LT_DEVICE_STATE_H
#define LT_DEVICE_STATE_H

#include "device/pool.h"
#include "device/stream.h"
#include "device/wait.h"

enum { LT_SCRATCHES = 16, LT_SPOILED = 8 };

/* Positions of a stream, behind `from` and up to `to`. */
typedef struct lt_spoiled {
  lt_event from, to;
} lt_spoiled;

typedef struct lt_device_streams {
  lt_stream *role[LT_STREAM_ROLES]; /* leased; NULL: not asked for yet */
  lt_stream *current;               /* NULL: that of compute */
} lt_device_streams;

typedef struct lt_device_state {
  lt_device usual;                                 /* of tensors made without a device argument */
  lt_pool *pools[LT_DEVICE_KINDS][LT_MAX_DEVICES]; /* NULL: not used by this ctx */
  int n_open;
  lt_pool *open[LT_DEVICE_KINDS * LT_MAX_DEVICES]; /* those of them that are, in order of use */
  lt_device_streams streams[LT_DEVICE_KINDS][LT_MAX_DEVICES];
  lt_wait_watch watch; /* of the host's waits (device/wait.c) */
  int n_spoiled;
  lt_spoiled spoiled[LT_SPOILED];
  lt_budget *budget;
  void (*exhausted)(lt_ctx *c, void *ud);
  void *exhausted_ud;
  /* Of the running launch: its device, and scratch that it asked for (device/host.c). */
  lt_device launching;
  bool in_launch;
  int n_scratch;
  lt_storage *scratch[LT_SCRATCHES];
} lt_device_state;

/* NULL with a failure: no memory. */
lt_device_state *lt_device_state_of(lt_ctx *c);

/* Scratch may be asked for between these two; the second gives it back, in order. */
bool lt_launch_begin(lt_ctx *c, lt_device d);
void lt_launch_end(lt_ctx *c, lt_stream *stream);

#endif
