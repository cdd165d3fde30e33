/* runtime/xla/graph.h: what was recorded since the last cut.

   The stream describes the graph in 64-bit words: it holds the structure and nothing that may
   change from step to step, so that two graphs are the same program where their streams are equal.
   Values are numbered as they come, and never change: a write makes a new one.
     a leaf           LT_NODE_LEAF type n; a sharded one LT_NODE_SHARDED type n
     zeros            LT_NODE_ZERO type n
     a call           op n_in n_out, n and n words of arguments,
                      of each tensor: type (-1: absent, and that is all), ndim, sizes,
                      of each again: value read (-1: none), value written (-1),
                      1: boxed + 2: sharded, strides
   LT_NODE_COPY is a call of one input and one output. Offsets of tensors are apart: constants of a
   program at first, inputs where the same structure comes with others. */
#ifndef LT_XLA_GRAPH_H
#define LT_XLA_GRAPH_H

#include <stdint.h>

#include "ltrain/backend.h"
#include "xla/storage.h"

enum { LT_NODE_LEAF = -1, LT_NODE_ZERO = -2, LT_NODE_COPY = -3, LT_NODE_SHARDED = -4 };
/* Whether three words of the stream name a value; others begin a call. */
static inline bool lt_node_is_value(int64_t word) { return word < 0 && word != LT_NODE_COPY; }
enum { LT_NODE_BOUND = 10000 };

/* Why a graph ends: the end of a batch, a value for the host, an event that it waits for,
   LT_NODE_BOUND, another root that records. */
typedef enum lt_cut_reason {
  LT_CUT_BATCH,
  LT_CUT_READ,
  LT_CUT_WAIT,
  LT_CUT_BOUND,
  LT_CUT_CONTEXT
} lt_cut_reason;

typedef struct lt_flat_view {
  int64_t value, written;
  int type, ndim;
  int64_t offset, size[LT_MAX_DIMS], stride[LT_MAX_DIMS];
  bool boxed; /* a slice of an array (lt_view_boxed), whatever its offset is */
} lt_flat_view;

typedef struct lt_value {
  int type;
  int64_t n;
  lt_leaf *leaf; /* NULL: of a node */
  bool sharded;
} lt_value;

/* What a call has beside its structure. */
typedef struct lt_node {
  size_t args, args_size; /* where in graph.args */
  size_t number, word;    /* its first ones; the first word is its line */
  size_t offset;          /* of its first tensor */
  uint32_t line;          /* of the script, 0: not known */
} lt_node;

/* A copy to the host that waits for the cut. */
typedef struct lt_read {
  int64_t value; /* -1: of `leaf` */
  lt_leaf *leaf;
  char *to;
  size_t offset, bytes, all;
  char *whole; /* the buffer for all bytes, where `to` takes a part, or f64 of f32 */
  bool widens; /* that */
  pjrt_event *event;
  uint64_t position;
} lt_read;

/* A list that grows; `n` of `capacity` elements. */
#define LT_LIST(type) struct { type *at; size_t n, capacity; }

typedef struct lt_graph {
  LT_LIST(int64_t) stream;
  LT_LIST(lt_value) values;
  LT_LIST(lt_node) nodes;
  LT_LIST(char) args;
  LT_LIST(double) numbers;
  LT_LIST(uint64_t) words;
  LT_LIST(int64_t) offsets; /* of all tensors of calls, in order */
  LT_LIST(lt_slot *) slots; /* that have a value in the graph */
  LT_LIST(lt_read) reads;
  uint64_t hash;
  const void *root; /* the ctx that records */
  bool failed; /* out of memory */
  uint64_t recorded, submitted; /* positions */
} lt_graph;

extern lt_graph lt_xla_graph;
/* The arguments of a call without any: all 0. */
enum { LT_NO_ARGS = 2048 };
extern const char lt_xla_no_args[LT_NO_ARGS];

/* Whether a tensor is all of n elements in their order. */
bool lt_view_is_whole(const lt_flat_view *v, int64_t n);
/* Whether it is a slice of an array that has n elements (views.c). */
bool lt_view_boxed(const lt_flat_view *v, int64_t n);
void lt_xla_lock(void);
void lt_xla_unlock(void);

bool lt_list_grow(void *list, size_t more, size_t size);
#define LT_PUSH(g, list, value)                                                  \
  ((list).n < (list).capacity || lt_list_grow(&(list), 1, sizeof *(list).at)     \
       ? ((list).at[(list).n++] = (value), true)                                 \
       : !((g)->failed = true))

/* With the lock, from here on. *takes: whether there is a lowering for this call. */
bool lt_xla_record(lt_ctx *c, const lt_call *call, bool *takes);
/* dst = src, `bytes` of elements of a type. */
bool lt_xla_record_copy(lt_ctx *c, void *dst, const void *src, size_t bytes, int type);
/* A value's first write: all of a storage from a buffer, or part of it. */
bool lt_xla_record_upload(lt_ctx *c, void *dst, lt_leaf *leaf, size_t bytes, int type);
/* The storage has a leaf afterwards, or a value of the graph. */
lt_slot *lt_xla_readable(lt_ctx *c, const void *address, size_t *offset);

/* Reads the tensors of the call at `at`, at[1] + at[2] of them, with their offsets; returns the
   next node. */
const int64_t *lt_stream_call(const int64_t *at, const int64_t *offsets, lt_flat_view *v);

/* The first call from there on; NULL: none. After a call; its shapes; after one of these. */
const int64_t *lt_stream_next(const int64_t *at, const int64_t *end);
const int64_t *lt_stream_after(const int64_t *call);
const int64_t *lt_stream_shapes(const int64_t *call);
const int64_t *lt_stream_after_shape(const int64_t *shape);

/* Ends the graph: compiles and runs what it is. */
bool lt_xla_cut(lt_ctx *c, lt_cut_reason reason);
/* Reads that have arrived leave the list; `wait`: all of them, up to a position. */
bool lt_xla_reads_finish(lt_ctx *c, uint64_t position, bool wait);

/* Which of its last parameters a program has: numbers as f32, as f64 (of f64 tensors alone), the
   error word, which is its last result, too. */
typedef struct lt_program_uses {
  bool numbers, wide, error;
} lt_program_uses;

/* The text of the graph's program (program.c). */
typedef struct lt_program_io {
  const int64_t *outputs; /* values, ascending */
  size_t n_outputs;
  const int64_t *aliases; /* by parameter: the output that takes its memory, or -1 */
  const char *promoted;   /* by offset: an input, after the words */
  size_t n_promoted;
} lt_program_io;
/* `text` is the caller's to free. */
bool lt_program_emit(const lt_graph *g, const lt_program_io *io, char **text, size_t *size,
                     lt_program_uses *uses);
/* Whether the lowering of a call takes tensors of these types and shapes. */
bool lt_program_takes(const lt_call *call, const lt_flat_view *tensors);

/* Error words (error_words.c). The first makes one where there is none; NULL with a failure. */
lt_leaf *lt_xla_error_word(lt_ctx *c, const void *root);
void lt_xla_error_put(const void *root, lt_leaf *successor);
void lt_xla_error_forget(const void *root);
bool lt_xla_take_error(lt_ctx *c, lt_device_error *out);

#endif
