/* runtime/base/ctx.h: the context: the first failure, frames of temporaries, modes, caches.

   `lt_ctx *` comes first in every call that can fail. The first failure sticks; code reads straight
   and checks once at the end. The struct is open to the runtime because every op reads it. */
#ifndef LT_BASE_CTX_H
#define LT_BASE_CTX_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/object.h"
#include "base/random.h"
#include "ltrain/tensor.h"

typedef struct lt_registry lt_registry; /* opaque here: filled by registry.c, read by device/ */

/* The longest text lists ranks that disagree (comm/mismatch_text.c), up to 64 of them. */
enum { LT_FAILURE_TEXT = 1 << 14, LT_FAILURE_OP = 32, LT_FAILURE_SHAPES = 256 };

typedef struct lt_failure {
  lt_code code;
  uint32_t line;           /* script line id current at the failure, 0: none */
  char op[LT_FAILURE_OP];  /* name of the op that was running, "" outside of one */
  bool deferred;           /* found by a wait; `line` issued the work */
  bool of_value;           /* a kernel refused `value`, which had to stay below `limit` */
  int64_t value, limit;
  char shapes[LT_FAILURE_SHAPES]; /* of its tensors, "[2, 3] [4, 5]"; "" when there are none */
  char text[LT_FAILURE_TEXT];
} lt_failure;

struct lt_recompute; /* ops/recompute.h */
struct lt_trace;     /* ops/trace.h */

/* What belongs to the Lua thread that opened it; the binding swaps the whole record. */
typedef struct lt_modes {
  bool grad;              /* record nodes */
  bool autocast;
  lt_dtype autocast_dtype;
  bool update;            /* writes into an optimizer's parameters are meant */
  bool on_device;         /* tensors are made on `device` by default, not on the ctx's usual one */
  lt_device device;
  bool collective;        /* other ranks wait for what runs: ops/fallback.h */
  uint8_t anomaly;        /* look for who makes NaN: ops/anomaly.h */
  struct lt_recompute *dropping; /* what nodes save now is computed again when it is wanted */
  struct lt_recompute *filling;  /* and this is that computation */
  struct lt_trace *trace; /* (optional) gets each call */
} lt_modes;

/* Modes as they were. What records calls stays what it is now: that of then may have ended since,
   and be gone. */
static inline void lt_modes_restore(lt_modes *now, lt_modes saved) {
  saved.dropping = now->dropping;
  saved.filling = now->filling;
  saved.trace = now->trace;
  *now = saved;
}

/* An op (by its name, "": none) and the script line that called it. */
typedef struct lt_made {
  char op[32];
  uint32_t line;
} lt_made;

/* Who made the first infinity [0] and the first NaN [1]: ops/anomaly.h. `forward`: results that
   gradients belong to; `aside`: others. */
typedef struct lt_anomalies {
  lt_made forward[2], backward[2], aside[2];
} lt_anomalies;

/* State that the folders above base/ keep in a ctx, one slot a folder, dropped in reverse order at
   release. */
typedef enum lt_slot {
  LT_SLOT_DEVICE, LT_SLOT_OPS, LT_SLOT_FALLBACK, LT_SLOT_AUTOGRAD, LT_SLOT_CPU, LT_SLOT_DATA,
  LT_SLOT_COMM, LT_SLOT_LAUNCH, LT_SLOT_BIND, LT_SLOT_HELD_FILES,
  LT_SLOT_COUNT
} lt_slot;

typedef struct lt_line_table lt_line_table; /* base/script_lines.h */
typedef struct lt_helpers lt_helpers;       /* base/threads.h */
typedef struct lt_load lt_load;             /* base/cpu_load.h */
typedef struct lt_policy {
  bool read_files, write_files, fork, dlopen, network, environment;
} lt_policy;

struct lt_ctx {
  lt_failure failure;
  lt_modes modes;
  /* (optional) Moves on what only this thread does and nobody waits for yet: called by lt_apply. */
  void (*progress)(lt_ctx *c, void *ud);
  void *progress_ud;
  uint32_t line;           /* script line id given to nodes and big storages: read lt_ctx_line */
  uint32_t (*find_line)(void *ud); /* (optional) the line of a call that noted LT_LINE_LATER */
  void *line_ud;
  _Atomic uint32_t *line_watch; /* (optional) where another thread reads the line of each call */
  uint32_t *line_wanted;   /* (optional) is given the line of the running call when that is found */
  uint64_t node_seq;       /* nodes recorded so far */
  uint64_t walks;          /* backward walks so far */
  int64_t hooks_after;     /* hooks of leaves that run after accumulation */
  uint64_t external_writes; /* writes into watched storages that were not updates, so far */
  lt_anomalies anomalies;
  const char *op;          /* op that lt_apply is running (static name), NULL outside */
  lt_rng rng;
  int threads;             /* for parallel loops */
  int matmul_precision;    /* an lt_matmul_precision of devices: read from the root */
  atomic_bool *cancel;     /* root's flag, read in lt_apply, between chunks and at pauses */
  const atomic_int *interrupts; /* (optional) the root's: above 0 while Ctrl-C waits to be seen */
  bool stoppable;          /* what the running op has written may be dropped: lt_is_cancelled */
  /* (optional) Whether an op may read so many elements that are not memory's: of views that
     `expand` has made larger, which may ask for more work than anybody waits for. */
  bool (*afford)(void *ud, int64_t elements);
  void *afford_ud;
  struct {
    lt_object **items;
    int64_t count, capacity;
  } frame;                 /* temporaries, innermost frame last */
  lt_object *dying;        /* objects waiting for their drop (see lt_release) */
  bool draining;
  lt_tensor *graded;       /* tensors that have, or had, gradients: which may hold them */
  lt_memory memory;
  lt_line_table *lines;    /* shared with children */
  lt_helpers *helpers;     /* shared with children */
  lt_load *load;           /* of a root whose loops had several threads */
  const lt_registry *registry;
  lt_ctx *root;            /* itself for a root */
  void *slot[LT_SLOT_COUNT];
  void (*slot_drop[LT_SLOT_COUNT])(lt_ctx *, void *);
  void (*settle)(lt_ctx *c); /* (optional) waits for what devices have to do: before slots drop */
  void (*log)(void *ud, int level, const char *text);
  void *log_ud;
  lt_policy policy;
  const struct lt_file_ops *files; /* io/file.h; NULL: the system's. Read from the root */
  atomic_bool cancel_flag; /* used by roots */
  atomic_ullong storage_ids; /* used by roots */
};

/* A new root context over `registry`, taking all its own memory from `allocator` (NULL: malloc).
   NULL when there is no memory. */
lt_ctx *lt_ctx_new(const lt_registry *registry, const lt_allocator *allocator);

/* A context for a helper thread: same registry, allocator, lines; own failure, frames, caches. */
lt_ctx *lt_ctx_child(lt_ctx *parent);
void lt_ctx_release(lt_ctx *c);

/* The script line of the running call. Finding it means to walk the script's stack: it waits until
   it is needed. */
enum { LT_LINE_LATER = 0x7fffffff };
uint32_t lt_ctx_find_line(lt_ctx *c);
static inline void lt_ctx_set_line(lt_ctx *c, uint32_t line) {
  c->line = line;
  c->line_wanted = NULL;
  if (c->line_watch != NULL) atomic_store_explicit(c->line_watch, line, memory_order_relaxed);
}
static inline uint32_t lt_ctx_line(lt_ctx *c) {
  return c->line == LT_LINE_LATER ? lt_ctx_find_line(c) : c->line;
}

/* Record a failure unless one is there already; always returns false. */
bool lt_fail(lt_ctx *c, lt_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool lt_ok(const lt_ctx *c) { return c->failure.code == LT_OK; }

/* "matmul" and ": " for texts ("%s%sout of memory"), both "" outside of an op. */
static inline const char *lt_op_name(const lt_ctx *c) { return c->op != NULL ? c->op : ""; }
static inline const char *lt_op_colon(const lt_ctx *c) { return c->op != NULL ? ": " : ""; }

/* Take the failure out (the ctx is usable again); false when there is none. */
bool lt_take_failure(lt_ctx *c, lt_failure *out);

/* Ask for the current work to end: lt_apply and pauses fail with LT_ECANCEL until cleared.
   From any thread. */
void lt_cancel(lt_ctx *c, bool on);

/* Whether the running op shall end before it is done: a loop over many elements leaves it to
   lt_parallel to fail. False for ops that write into tensors that are there. From any thread. */
static inline bool lt_is_cancelled(const lt_ctx *c) {
  return c->stoppable && atomic_load_explicit(c->cancel, memory_order_relaxed);
}

/* Frames. lt_frame_add gives the reference of `object` to the innermost frame. lt_frame_close
   releases everything added since; `keep[i]` (NULL entries are fine) stay alive, with a reference
   that now belongs to the caller. */
typedef int64_t lt_frame;
lt_frame lt_frame_open(lt_ctx *c);
bool lt_frame_add(lt_ctx *c, void *object);
void lt_frame_close(lt_ctx *c, lt_frame frame, int n_keep, void *const *keep);

/* Write one line to the log hook of the host; dropped when there is none. */
typedef enum lt_level { LT_DEBUG, LT_INFO, LT_WARN } lt_level;
void lt_log(lt_ctx *c, lt_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A broken invariant of ours (never the user's mistake) fails the ctx with file and line. */
#define lt_assert(c, condition) \
  ((condition) ? true           \
               : lt_fail(c, LT_EINTERNAL, "internal: %s (%s:%d)", #condition, __FILE__, __LINE__))

#endif
