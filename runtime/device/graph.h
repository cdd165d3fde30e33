/* runtime/device/graph.h: device graphs: work that is captured once and launched again as a whole.

   A launch issues thousands of operations in microseconds: the script that called them does not run
   again. What changes from launch to launch is known here: the keys of random numbers move on as
   the calls would have drawn them, and the arguments of optimizers' updates are those that these
   compute when they are asked (lt_graph_feed). All else stays as it was captured: addresses, and
   numbers that the script passed.

   A graph consists of segments, which are launched in their order, with other work between them.
   Its memory is a pool of its own: what a segment frees the next ones use again, and nobody else.
   While a segment is captured nothing may wait for the device: that fails, with the script's
   line. */
#ifndef LT_DEVICE_GRAPH_H
#define LT_DEVICE_GRAPH_H

#include "device/ctx_devices.h"

enum { LT_SEGMENTS = 4, LT_NO_KEY = -1 };

/* A call of a segment whose arguments change. Its tensors are copies that own nothing: their memory
   is the graph's, or kept by it. */
typedef struct lt_varying {
  lt_kernel kernel;
  lt_call call;
  int64_t number;      /* of the launch in its segment */
  int64_t key;         /* where its lt_rng_key is in the arguments; LT_NO_KEY: an update */
  lt_rng_key captured; /* that it was captured with */
  lt_tensor *tensors, **places; /* `in`, then `out` */
  lt_storage *storages;
  void *args;
  int n_scratch;
  void *scratch[LT_SCRATCHES];
} lt_varying;

/* A leaf whose gradient a segment has changed: what it was before, unless the script has set it in
   the segment, and what it is at the end. */
typedef struct lt_graph_leaf {
  lt_tensor *leaf, *before, *after;
  bool is_set;
} lt_graph_leaf;

typedef struct lt_segment {
  void *native;
  int64_t launches;
  lt_rng from, to; /* random numbers of the capture; of the last launch: */
  lt_rng at;
  lt_varying *varying;
  int n_varying, varying_capacity;
  lt_graph_leaf *leaves;
  int n_leaves, leaves_capacity;
} lt_segment;

/* A storage that is not of the graph's pool. */
typedef struct lt_graph_storage {
  lt_storage *storage;
  bool writes;
} lt_graph_storage;

/* Pinned memory that a launch copies from. */
typedef struct lt_graph_bytes {
  struct lt_graph_bytes *next;
  lt_pinned *memory;
} lt_graph_bytes;

typedef struct lt_graph {
  lt_device device;
  lt_stream *stream;
  lt_pool *pool, *usual; /* the ctx's, while a segment is captured */
  bool notes_all;        /* as it was before */
  lt_segment segments[LT_SEGMENTS];
  int n; /* with the one that is captured */
  lt_graph_storage *storages;
  int n_storages, storages_capacity;
  lt_graph_bytes *bytes;
  bool takes_constants; /* what is copied from the host now is made of numbers of the script */
  struct lt_graph *next; /* ended while another was captured */
} lt_graph;

/* The graph that captures what this ctx issues; NULL: none. */
static inline lt_graph *lt_graph_captures(const lt_ctx *c) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  return st != NULL ? st->captures : NULL;
}

/* Whether updates on the device give a graph their arguments. */
static inline bool lt_graph_is_fed(const lt_ctx *c, lt_device d) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  return st != NULL && st->feed.graph != NULL && lt_device_equal(st->feed.graph->device, d);
}

/* NULL with a failure, also where the device has no graphs. */
lt_graph *lt_graph_new(lt_ctx *c, lt_device d);
void lt_graph_free(lt_ctx *c, lt_graph *g);

/* From here on the ctx's work on the device is captured, as another segment; all that was issued
   before has run. `end` launches it, or forgets it (`keep` false). */
bool lt_graph_begin(lt_ctx *c, lt_graph *g);
bool lt_graph_end(lt_ctx *c, lt_graph *g, bool keep);

/* Whether gradients are what the segment was captured with: those that it adds to. */
bool lt_graph_suits(const lt_graph *g, int segment);
/* Whether there are such. */
bool lt_graph_adds(const lt_graph *g, int segment);
/* Launches a segment: in order with all work on what it reads and writes. Leaves get its
   gradients, and the ctx has drawn the random numbers that the segment draws. */
bool lt_graph_launch(lt_ctx *c, lt_graph *g, int segment);

/* Between the two, updates of the device are not issued but give the segment's their arguments: the
   same ones in the same order. What they did to the ctx's random numbers is taken back. */
bool lt_graph_feed(lt_ctx *c, lt_graph *g, int segment);
bool lt_graph_feed_end(lt_ctx *c, bool complete);

/* False with a failure where a segment is captured: `what` it cannot have. */
bool lt_graph_allows(lt_ctx *c, const char *what);

/* graph_notes.c, called by what issues: work that reads or writes a storage is about to be issued
   on a stream; a call was launched, its scratch still being there (`key` as above, `varies` false:
   its arguments stay); a gradient is about to be changed, `is_set`: by the script. */
bool lt_graph_note_use(lt_ctx *c, lt_graph *g, lt_storage *s, const lt_stream *stream, bool writes);
bool lt_graph_note_call(lt_ctx *c, lt_graph *g, lt_kernel kernel, const lt_call *call, bool varies,
                        int64_t key);
bool lt_graph_note_leaf(lt_ctx *c, lt_graph *g, lt_tensor *leaf, bool is_set);
/* Whether the segment that is captured has changed the gradient of the leaf. */
bool lt_graph_has_leaf(const lt_graph *g, const lt_tensor *leaf);
/* A call while updates are fed. */
bool lt_graph_fed_call(lt_ctx *c, const lt_call *call);

/* graph_constants.c: a copy of bytes, for a copy from the host that is captured; NULL with a
   failure. */
const void *lt_graph_constant(lt_ctx *c, lt_graph *g, const void *src, size_t bytes);
void lt_graph_free_constants(lt_ctx *c, lt_graph *g);

/* graph_calls.c: the segment draws its random numbers at `at` from its next launch on. */
bool lt_graph_move_keys(lt_ctx *c, lt_graph *g, int segment);
void lt_varying_free(lt_ctx *c, lt_varying *v);

#endif
