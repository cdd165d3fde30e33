/* ltrain/comm.h: the functions that a communication backend implements: collectives and messages
   between ranks, in ltrain's tree or in a shared object of its own.

   A backend provides *links*: communicators of one group's ranks 0..size-1. It never blocks:
   `compare` and `move` are called again and again by the rank's main thread until they no longer
   return LT_PENDING, one call at a time per link unless `overlaps` is set. It reads no clock, no
   failure reports and no other link: waiting, yielding, timeouts and the reports of failed ranks
   are ltrain's. It never longjmps, exits or prints, and keeps no pointer of a call beyond its end.

   There are two kinds. The host's link of a group compares, splits, carries messages and moves host
   memory. A device's link (`device` is set) moves that device's memory and does nothing else: ranks
   compare over the host's link, and its moves follow in that order. Where there is none, ltrain
   moves a device's bytes through pinned memory over the host's link. */
#ifndef LT_INCLUDE_COMM_H
#define LT_INCLUDE_COMM_H

#include "ltrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LT_COMM_VERSION = 6, LT_COMM_MAX_RANKS = 1024, LT_COMM_ID = 128 };

typedef enum lt_comm_op {
  LT_COMM_BARRIER, LT_COMM_ALL_REDUCE, LT_COMM_BROADCAST, LT_COMM_ALL_GATHER,
  LT_COMM_REDUCE_SCATTER, LT_COMM_GATHER, LT_COMM_SCATTER, LT_COMM_SEND, LT_COMM_RECV,
  LT_COMM_SPLIT, LT_COMM_ALL_TO_ALL,
  LT_COMM_REDUCE, /* never of a backend: a reduce_scatter and a gather */
  LT_COMM_OP_COUNT
} lt_comm_op;

/* MEAN is computed from SUM by ltrain, not by the backend. */
typedef enum lt_comm_reduce {
  LT_COMM_SUM, LT_COMM_MEAN, LT_COMM_MIN, LT_COMM_MAX, LT_COMM_PROD,
  LT_COMM_REDUCE_COUNT,
  LT_COMM_NO_REDUCE = 255
} lt_comm_reduce;

/* What a rank is doing, in 128 bytes: the record that ranks compare before a collective, store in
   the ring buffer, send with heartbeats and print in reports. Only `hash` is compared, a hash of
   what must be equal on all ranks (comm/fingerprint.c); the rest is reported. */
typedef enum lt_mark_kind {
  LT_MARK_NONE,    /* nothing known */
  LT_MARK_CALL,    /* in a collective */
  LT_MARK_RUNNING, /* in the script or a hook, at a line */
  LT_MARK_LEFT,    /* left the loop or the script, at a line */
  LT_MARK_GONE     /* its process ended */
} lt_mark_kind;
/* The kind of payload. */
typedef enum lt_mark_form {
  LT_FORM_TENSOR,
  LT_FORM_VALUE, /* a Lua value: its size is not compared */
  LT_FORM_CAT    /* first sizes may differ: all_gather {cat}, all_to_all {splits} */
} lt_mark_form;
enum { LT_LINE_PASSED = 1 };   /* the line is the last one known, not where the rank is */
enum { LT_BY_DEVICE_LINK = 1 }; /* device memory, moved by a device's link */
enum { LT_MARK_DIMS = 4, LT_MARK_FILE = 28, LT_MARK_HOOK = 32 };
typedef struct lt_mark {
  uint64_t hash;
  uint64_t seq;       /* number of the collective in its group, from 1; send and recv: of the
                         message from one rank to the other */
  int64_t size[LT_MARK_DIMS]; /* the first dims */
  uint32_t group;     /* 0: all ranks; else a hash of the members' world ranks */
  uint8_t kind;       /* lt_mark_kind */
  uint8_t op;         /* lt_comm_op */
  uint8_t reduce;     /* lt_comm_reduce, LT_COMM_NO_REDUCE */
  int8_t dtype;       /* lt_dtype, LT_DTYPE_NONE for Lua values */
  int8_t ndim;
  uint8_t form;       /* lt_mark_form */
  int16_t status;     /* GONE: exit status, 128 + n for a signal; RUNNING: LT_LINE_PASSED;
                         CALL: LT_BY_DEVICE_LINK */
  int32_t root;       /* world rank of broadcast, gather, scatter; the peer of send, recv; or -1 */
  int32_t line;
  char file[LT_MARK_FILE];    /* the end of the script's name, or the hook's for calls of ours */
  char hook[LT_MARK_HOOK];    /* "validation_step", "" outside */
} lt_mark;

typedef enum lt_progress {
  LT_PENDING,
  LT_DONE,
  LT_DIFFERENT, /* compare only: ranks' marks differ; `marks` is filled */
  LT_BROKEN     /* the transport failed: `text` has the reason */
} lt_progress;

enum { LT_COMM_TEXT = 256 };

/* One comparison of marks. The caller owns it and zeroes `state` before the first call. */
typedef struct lt_comm_compare {
  const lt_mark *mark;  /* this rank's */
  int64_t extent;       /* this rank's size of dim 1, or bytes of a Lua value */
  int64_t *extents;     /* [size]: filled with those of all ranks when not NULL on every rank */
  lt_mark *marks;       /* [size]: filled when the ranks differ */
  void *state;          /* the backend's own, freed by it at the end */
  char text[LT_COMM_TEXT];
  /* What this rank sends in the first movement if the ranks agree, where that is an all_gather or
     an all_reduce, else NULL. A backend may exchange few bytes already with the comparison, and
     have the movement done at once. */
  const void *data;
  int64_t bytes;
} lt_comm_compare;

/* One piece of memory that is not contiguous as a whole. */
typedef struct lt_comm_part {
  void *data;
  int64_t count; /* elements, at least 1 */
} lt_comm_part;

/* One transfer, after all ranks have agreed on it; barriers and splits have none. Memory is
   contiguous. in == out is allowed for all_reduce and broadcast; otherwise they do not overlap.

   op              in                        out
   all_reduce      count                     count
   broadcast       count at root             count elsewhere (in == out at root, or NULL)
   all_gather      counts[rank]              the parts of all ranks, in order of rank
   reduce_scatter  sum of counts             counts[rank]
   gather          counts[rank]              root: the parts of all ranks
   scatter         root: all parts           counts[rank]
   send, recv      count to `root`           count from `root`
   all_to_all      in_counts[r] to rank r    counts[r] from rank r, both in order of rank

   Of a device's link: all_reduce, broadcast, all_gather, reduce_scatter, all_to_all; and of one for
   `messages`, whose rank 0 sends and whose rank 1 receives, send and recv. ltrain makes a
   reduction in the tree's order of all_to_all, `combine` of the device, and all_gather, unless the
   link always adds so, and gather and scatter of an all_to_all whose counts are 0 but at the root
   (where all that it gets or gives is 0, the pointer is NULL).

   Reductions of f16 and bf16 compute in f32 and round at the end of a tree's node; integers wrap;
   bool: sum and max are "or", min and prod are "and". Where `fixed_order` is set, ranks add in the
   tree T(lo, hi) = T(lo, m) + T(m, hi), m = lo + the largest power of two below hi - lo. */
typedef struct lt_comm_move {
  uint8_t op, reduce;
  int8_t dtype;
  bool fixed_order;
  int32_t root;
  int64_t count; /* elements, where one number suffices; all_to_all: the largest of all parts */
  const int64_t *counts, *in_counts; /* [size] elements per rank, for the ops above that use them */
  const void *in;
  void *out;
  int64_t chunk_bytes;   /* limit of one call of the transport: 1 GiB, less in specs */
  /* Of backends with `gathers`: when `n_parts` is not 0, these parts, one after the other, are in
     place of `in` and `out` of an all_reduce, of `out` of an all_gather, of `in` of a
     reduce_scatter. In the latter two `own` is in place of the other; without it (n_own 0) this
     rank's share is read, or written, where it lies among the parts. Sums are multiplied by
     `scale`. */
  const lt_comm_part *parts, *own;
  int64_t n_parts, n_own;
  double scale;
  /* To a device's link: memory is that of device `device`. The transfer is issued on `stream`,
     which already waits for `after`: then `in` is written and `out` is free. LT_DONE: it is
     issued, and later work on the stream runs after it. */
  int32_t device;
  lt_stream *stream;
  void *native; /* the stream of the device's library, e.g. a cudaStream_t */
  lt_event after;
  int64_t moved;         /* the backend adds the bytes moved: while it grows, no timeout occurs */
  void *state;           /* the backend's own: zero at first, freed by it at the end */
  char text[LT_COMM_TEXT];
} lt_comm_move;

/* A rank's position in the job, from the launcher. */
typedef struct lt_comm_place {
  int rank, size;             /* -1, 0: from the transport */
  int local_rank, local_size; /* likewise */
  const char *main_address;   /* "host:port" where known, else NULL */
  void *memory;               /* shm: the segment shared by all ranks, else NULL */
  size_t memory_bytes;
  const char *options;        /* given at registration, else NULL */
  /* To a device's link: the number of the device that this rank uses, and the result of `make_id`
     on rank 0. `rank` and `size` are those of the group; or of two ranks, of which rank 0 sends its
     `messages` to rank 1. */
  int device;
  bool messages;
  const char *id; /* [LT_COMM_ID] */
  /* To backends whose ranks meet at main_address, "host:port" or "host:first-last" (the first free
     port of these): what keeps jobs apart that meet at one, or NULL, and the seconds after which
     `open` has to fail by itself, 0: its choice. */
  const char *token;
  double limit_s;
} lt_comm_place;

typedef struct lt_comm_link lt_comm_link; /* the backend's own */

/* Functions of ltrain for a backend. */
typedef struct lt_comm_host {
  uint32_t size, version;
  /* dst = a (reduce) b, n elements; dst may be a or b */
  void (*combine)(void *dst, const void *a, const void *b, int64_t n, lt_dtype dtype,
                  lt_comm_reduce reduce);
  size_t (*item_size)(lt_dtype dtype);
  void (*scale)(void *data, int64_t n, lt_dtype dtype, double by); /* data *= by, floating types */
} lt_comm_host;

typedef struct lt_comm_ops {
  uint32_t size;     /* sizeof(lt_comm_ops) */
  uint32_t version;  /* LT_COMM_VERSION */
  const char *name;  /* "shm" */
  bool overlaps;     /* several moves may be in flight on a link at once (issued in order) */
  bool fixed_order;  /* always adds in the tree's order */
  bool gathers;      /* all_reduce, all_gather and reduce_scatter support `parts` */
  /* The device whose memory it moves, by name; NULL: the host's. A device's link needs name,
     open, close, rank, ranks and move. */
  const char *device;
  /* Of a device's link: it accesses the memory from the host, not on the stream. `move` is called
     once `after` has been reached, and LT_DONE means that the bytes have arrived. */
  bool by_host;
  /* Of a device's link, on rank 0 of each group before its first transfer: the id with which all
     ranks open theirs, as ncclGetUniqueId; sent over the host's link. False: `text` has the reason.
     (optional: zeros) */
  bool (*make_id)(char id[LT_COMM_ID], char *text, size_t text_size);
  /* Of a device's link: whether it adds (or multiplies, ..) this dtype as described above; ltrain
     composes the other reductions, as those in the tree's order. (optional: all of them) */
  bool (*reduces)(lt_dtype dtype, lt_comm_reduce reduce);
  /* Of a device's link: LT_BROKEN when issued work has failed since: `text` has the reason. Called
     while the host waits for the device. (optional) */
  lt_progress (*check)(lt_comm_link *link, char *text, size_t text_size);

  /* Join the group of all ranks; of a device's link, any group, with the place's device current
     on this thread. May block: a watchdog observes it. NULL: `text` has the reason. */
  lt_comm_link *(*open)(const lt_comm_host *host, const lt_comm_place *place, char *text,
                        size_t text_size);
  /* After an orderly end on all ranks; never called after a failure report. Links made by split
     are closed first, on all members in the order in which they were made. */
  void (*close)(lt_comm_link *link);
  /* Instead of close after a failure report: frees this rank's resources, without communication.
     (optional: the link is forgotten) */
  void (*abandon)(lt_comm_link *link);
  int (*rank)(const lt_comm_link *link);
  int (*ranks)(const lt_comm_link *link);
  /* Ranks on this host and which of them this is; {0, 1}-like defaults when absent. (optional) */
  void (*local)(const lt_comm_link *link, int *local_rank, int *local_size);

  lt_progress (*compare)(lt_comm_link *link, lt_comm_compare *round);
  lt_progress (*move)(lt_comm_link *link, lt_comm_move *move);
  /* Sleeps until something may have changed on any link of this rank, at most `ns`; `link` is that
     of all ranks. May return at once. (optional) */
  void (*relax)(lt_comm_link *link, int64_t ns);

  /* A link of those ranks of `parent` that are listed (ranks of the parent, in their new order; all
     listed ranks call, others do not). Called after all members agreed on a split. NULL + text. */
  lt_comm_link *(*split)(lt_comm_link *parent, uint32_t group, int n, const int *members,
                         char *text, size_t text_size);
  /* This rank no longer uses a link made by split; the other members may still use theirs.
     (optional: the link is forgotten) */
  void (*leave)(lt_comm_link *link);

  /* For send and recv, in which only two ranks of the group take part: a round between this rank
     and `peer`, then a move with move->root = peer. Messages to a peer and messages from it are two
     separate sequences; one of each may be in flight at once, with each peer; mark->op
     (LT_COMM_SEND, LT_COMM_RECV) is the round's direction. Of `extents` and `marks` only the
     entries of the two ranks are filled. */
  lt_progress (*compare_pair)(lt_comm_link *link, int peer, lt_comm_compare *round);
} lt_comm_ops;

#ifdef __cplusplus
}
#endif
#endif
