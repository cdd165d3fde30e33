/* ltrain/comm.h: the table of functions that moves bytes between ranks, for backends in and out of
   tree.

   A backend knows a *link*: the ranks 0..size-1 of one group. It never blocks: `compare` and `move`
   are called again and again by the rank's main thread until they no longer say LT_PENDING, one
   call at a time a link unless `overlaps` is set. It never looks at the clock, at failures or at
   other links: waiting, yielding, deadlines and verdicts are ltrain's. It never longjmps, exits or
   prints, and keeps no pointer of a call beyond its end.

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

enum { LT_COMM_VERSION = 2, LT_COMM_MAX_RANKS = 1024, LT_COMM_ID = 128 };

typedef enum lt_comm_op {
  LT_COMM_BARRIER, LT_COMM_ALL_REDUCE, LT_COMM_BROADCAST, LT_COMM_ALL_GATHER,
  LT_COMM_REDUCE_SCATTER, LT_COMM_GATHER, LT_COMM_SCATTER, LT_COMM_SEND, LT_COMM_RECV,
  LT_COMM_SPLIT,
  LT_COMM_ALL_TO_ALL, /* of devices' links */
  LT_COMM_OP_COUNT
} lt_comm_op;

/* MEAN is made of SUM above the backend. */
typedef enum lt_comm_reduce {
  LT_COMM_SUM, LT_COMM_MEAN, LT_COMM_MIN, LT_COMM_MAX, LT_COMM_PROD,
  LT_COMM_REDUCE_COUNT,
  LT_COMM_NO_REDUCE = 255
} lt_comm_reduce;

/* What a rank does, in 128 bytes: the record that is compared, kept in the ring, sent with
   heartbeats and printed in tables. All but `hash` is only reported, never compared: `hash` is
   taken over what must agree (comm/fingerprint.c). */
typedef enum lt_mark_kind {
  LT_MARK_NONE,    /* nothing known */
  LT_MARK_CALL,    /* in a collective */
  LT_MARK_RUNNING, /* in the script or a hook, at a line */
  LT_MARK_LEFT,    /* left the loop or the script, at a line */
  LT_MARK_GONE     /* its process ended */
} lt_mark_kind;
/* What travels, as far as ranks must agree on it. */
typedef enum lt_mark_form {
  LT_FORM_TENSOR,
  LT_FORM_VALUE, /* a Lua value: its size is not compared */
  LT_FORM_CAT    /* all_gather {cat = true}: first sizes may differ */
} lt_mark_form;
enum { LT_LINE_PASSED = 1 };   /* the line is the last one known, not where the rank is */
enum { LT_BY_DEVICE_LINK = 1 }; /* the memory is a device's, and so is the link */
enum { LT_MARK_DIMS = 4, LT_MARK_FILE = 28, LT_MARK_HOOK = 32 };
typedef struct lt_mark {
  uint64_t hash;
  uint64_t seq;       /* number of the collective in its group, from 1; send and recv: of the
                         message from the one rank to the other */
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
  LT_DIFFERENT, /* compare only: ranks said different things; all marks are there */
  LT_BROKEN     /* the transport failed: `text` says how */
} lt_progress;

enum { LT_COMM_TEXT = 256 };

/* One round of comparing. The caller owns it and zeroes `state` before the first call. */
typedef struct lt_comm_compare {
  const lt_mark *mark;  /* this rank's */
  int64_t extent;       /* this rank's size of dim 1, or bytes of a Lua value */
  int64_t *extents;     /* [size]: filled with those of all ranks when not NULL on every rank */
  lt_mark *marks;       /* [size]: filled when the ranks differ */
  void *state;          /* the backend's own, freed by it at the end */
  char text[LT_COMM_TEXT];
} lt_comm_compare;

/* A part of what does not lie close together. */
typedef struct lt_comm_part {
  void *data;
  int64_t count; /* elements, at least 1 */
} lt_comm_part;

/* One movement of bytes, already agreed by all ranks; barriers and splits have none. Elements lie
   close together. in == out is allowed for all_reduce and broadcast; otherwise they do not overlap.

   op              in                        out
   all_reduce      count                     count
   broadcast       count at root             count elsewhere (in == out at root, or NULL)
   all_gather      counts[rank]              the parts of all ranks, in order of rank
   reduce_scatter  sum of counts             counts[rank]
   gather          counts[rank]              root: the parts of all ranks
   scatter         root: all parts           counts[rank]
   send, recv      count to `root`           count from `root`
   all_to_all      sum of counts             counts[rank] from each rank, in order of rank

   Of a device's link: all_reduce, broadcast, all_gather, reduce_scatter, all_to_all. ltrain makes a
   reduction in the tree's order of all_to_all, `combine` of the device, and all_gather, unless the
   link always adds so, and a gather of an all_to_all whose counts are 0 but at the root (`out` is
   NULL elsewhere). scatter, send and recv go over the host's link: two ranks alone know of a
   message, which has no place among the movements of a stream.

   Reductions of f16 and bf16 compute in f32 and round at the end of a tree's node; integers wrap;
   bool: sum and max are "or", min and prod are "and". Where `fixed_order` is set, ranks add in the
   tree T(lo, hi) = T(lo, m) + T(m, hi), m = lo + the largest power of two below hi - lo. */
typedef struct lt_comm_move {
  uint8_t op, reduce;
  int8_t dtype;
  bool fixed_order;
  int32_t root;
  int64_t count;         /* elements, where one number says it */
  const int64_t *counts; /* [size] elements a rank, for the ops above that name it */
  const void *in;
  void *out;
  int64_t chunk_bytes;   /* at most so much in one call of the transport: 1 GiB, less in specs */
  /* all_reduce to backends that say `gathers`: when `n_parts` is not 0, input and output are these
     parts, one after the other, in place of `in` and `out`; the sum is multiplied by `scale`. */
  const lt_comm_part *parts;
  int64_t n_parts;
  double scale;
  /* To a device's link: memory is that of device `device`. The movement is issued on `stream`,
     which waits for `after` already: then `in` is there and `out` is free. LT_DONE says that it is
     issued, and what runs on the stream later comes after it. */
  int32_t device;
  lt_stream *stream;
  void *native; /* the stream as the device's library has it */
  lt_event after;
  int64_t moved;         /* the backend adds what it moved: a wait that sees it grow continues */
  void *state;           /* the backend's own: zero at first, freed by it at the end */
  char text[LT_COMM_TEXT];
} lt_comm_move;

/* Where a rank stands, as the launcher knows it. */
typedef struct lt_comm_place {
  int rank, size;             /* -1, 0: the transport will say */
  int local_rank, local_size; /* likewise */
  const char *main_address;   /* "host:port" where known, else NULL */
  void *memory;               /* shm: the segment shared by all ranks, else NULL */
  size_t memory_bytes;
  const char *options;        /* of the registration, else NULL */
  /* To a device's link: the number of the device that this rank uses, and what `make_id` made on
     rank 0. `rank` and `size` are those of the group. */
  int device;
  const char *id; /* [LT_COMM_ID] */
} lt_comm_place;

typedef struct lt_comm_link lt_comm_link; /* the backend's own */

/* What a backend may ask of ltrain. */
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
  bool overlaps;     /* several moves may be under way on a link at once (issued in order) */
  bool fixed_order;  /* always adds in the tree */
  bool gathers;      /* all_reduce works on parts */
  /* Whose memory it moves, by the name of the device; NULL: the host's. A device's link needs name,
     open, close, rank, ranks and move. */
  const char *device;
  /* Of a device's link: it reads and writes the memory itself, not by the stream. `move` is called
     when `after` has been reached, and LT_DONE says that the bytes are there. */
  bool by_host;
  /* Of a device's link, on rank 0 of each group before its first movement: what all need to open
     theirs; the host's link hands it to them. False: `text` says why. (optional: zeros) */
  bool (*make_id)(char id[LT_COMM_ID], char *text, size_t text_size);
  /* Of a device's link: whether it adds (or multiplies, ..) this dtype as described above; ltrain
     composes the other reductions, as those in the tree's order. (optional: all of them) */
  bool (*reduces)(lt_dtype dtype, lt_comm_reduce reduce);
  /* Of a device's link: LT_BROKEN when what it has issued has failed since: `text` says how. Asked
     while the host waits for the device. (optional) */
  lt_progress (*check)(lt_comm_link *link, char *text, size_t text_size);

  /* Join the group of all ranks; of a device's link, any group, when the place's device is that of
     this thread. May block: a watchdog looks on. NULL: `text` says why. */
  lt_comm_link *(*open)(const lt_comm_host *host, const lt_comm_place *place, char *text,
                        size_t text_size);
  /* After an orderly end on all ranks; never called once a verdict is there. Links made by split
     are closed first, on all members in the order in which they were made. */
  void (*close)(lt_comm_link *link);
  /* In place of close, once a verdict is there: frees what is this rank's, without communication.
     (optional: the link is forgotten) */
  void (*abandon)(lt_comm_link *link);
  int (*rank)(const lt_comm_link *link);
  int (*ranks)(const lt_comm_link *link);
  /* Ranks on this host and which of them this is; {0, 1}-like defaults when absent. (optional) */
  void (*local)(const lt_comm_link *link, int *local_rank, int *local_size);

  lt_progress (*compare)(lt_comm_link *link, lt_comm_compare *round);
  lt_progress (*move)(lt_comm_link *link, lt_comm_move *move);
  /* Sleep until something may have changed on any link of this rank or `ns` have passed; `link` is
     that of all ranks. May return at once. (optional) */
  void (*relax)(lt_comm_link *link, int64_t ns);

  /* A link of those ranks of `parent` that are listed (ranks of the parent, in their new order; all
     listed ranks call, others do not). Called after all members agreed on a split. NULL + text. */
  lt_comm_link *(*split)(lt_comm_link *parent, uint32_t group, int n, const int *members,
                         char *text, size_t text_size);
  /* This rank is done with a link made by split; the other members may still use theirs. (optional:
     the link is forgotten) */
  void (*leave)(lt_comm_link *link);

  /* For send and recv, which only two ranks of the group know of: a round between this rank and
     `peer`, then a move with move->root = peer. Messages to a peer and messages from it are two
     separate sequences; one of each may be under way at once, with each peer. The round says by
     mark->op (LT_COMM_SEND, LT_COMM_RECV) to which it belongs. Of `extents` and `marks` only the
     entries of the two ranks are filled. */
  lt_progress (*compare_pair)(lt_comm_link *link, int peer, lt_comm_compare *round);
} lt_comm_ops;

#ifdef __cplusplus
}
#endif
#endif
