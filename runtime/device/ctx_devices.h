/* runtime/device/ctx_devices.h: a context's state of each device: its pool, its stream, its memory
   limit. */
#ifndef LT_DEVICE_CTX_DEVICES_H
#define LT_DEVICE_CTX_DEVICES_H

#include "device/pool.h"
#include "device/stream.h"
#include "device/wait.h"

enum { LT_SCRATCHES = 32, LT_SPOILED = 8, LT_ISSUED = 16, LT_STREAMS = 8 };

/* Positions of a stream, behind `from` and up to `to`. */
typedef struct lt_spoiled {
  lt_event from, to;
} lt_spoiled;

/* An operation that was issued; `line` is LT_LINE_LATER where nobody has asked for it. */
typedef struct lt_issued {
  lt_device device;
  int op;
  uint32_t line;
} lt_issued;

/* The launch that is running: its device, and scratch that it asked for (device/host.c). */
typedef struct lt_launch {
  lt_device device;
  bool is_open;
  int n_scratch;
  lt_storage *scratch[LT_SCRATCHES];
  void *const *given; /* (optional) what it gets in its order instead, of a graph */
  int n_given;
} lt_launch;

/* Updates give a segment of a graph their arguments (graph.h): the next one's number, and the
   random numbers as they were before. */
typedef struct lt_graph_feeding {
  struct lt_graph *graph; /* NULL: they run */
  int segment, next;
  lt_rng rng;
} lt_graph_feeding;

typedef struct lt_device_streams {
  lt_stream *role[LT_STREAM_ROLES]; /* leased; NULL: not asked for yet */
  lt_stream *current;               /* NULL: that of compute */
  lt_stream *scripts[LT_STREAMS];   /* for the script to set; NULL: not asked for yet */
  unsigned n_scripts;               /* how many were, in all */
} lt_device_streams;

typedef struct lt_device_state {
  lt_device usual;                                 /* of tensors made without a device argument */
  int16_t current[LT_DEVICE_KINDS];                /* of names without a number */
  lt_pool *pools[LT_DEVICE_KINDS][LT_MAX_DEVICES]; /* NULL: not used by this ctx */
  int n_open;
  lt_pool *open[LT_DEVICE_KINDS * LT_MAX_DEVICES]; /* those of them that are, in order of use */
  lt_device_streams streams[LT_DEVICE_KINDS][LT_MAX_DEVICES];
  lt_wait_watch watch; /* of the host's waits (device/wait.c) */
  int64_t watched;     /* how many there were */
  int n_spoiled;
  lt_spoiled spoiled[LT_SPOILED];
  lt_budget *budget;
  lt_host_source host_source;
  void (*exhausted)(lt_ctx *c, void *ud);
  void *exhausted_ud;
  lt_launch launch;
  struct lt_graph *captures; /* what is issued (graph.h); NULL: nothing does */
  struct lt_graph *ended;    /* graphs whose memory goes when that is over */
  lt_graph_feeding feed;
  /* The last operations that were issued to asynchronous devices: for the message of a fault. */
  lt_issued issued[LT_ISSUED];
  uint64_t n_issued;
  bool faulted; /* a device of this ctx has had a fault */
  bool notes_all; /* storages of any size note their script line and shape */
  bool waits;   /* LTRAIN_CUDA_SYNC: for each operation, so faults are reported at its line */
} lt_device_state;

/* NULL with a failure: no memory. */
lt_device_state *lt_device_state_of(lt_ctx *c);

/* Around the issue of an operation: scratch may be asked for between these two; the second gives it
   back, in order. */
bool lt_launch_begin(lt_ctx *c, lt_device d, int op);
void lt_launch_end(lt_ctx *c, lt_stream *stream);

/* Fail because the pool cannot get `bytes`: what takes it, and what would help. */
bool lt_fail_exhausted(lt_ctx *c, lt_pool *p, size_t bytes);

/* What a block in use that notes its script line is for. */
lt_live lt_live_of(const lt_block *b);

/* Whether the memory of a storage comes and goes: it has been emptied before. */
bool lt_storage_was_emptied(const lt_storage *s);

/* Whether a device has had a fault (lt_fail_fault): its memory cannot be read any more. */
bool lt_device_faulted(const lt_ctx *c);

/* Waits for what was issued, where the user wants that (`waits`). */
bool lt_launch_settle(lt_ctx *c, lt_device d);

#endif
