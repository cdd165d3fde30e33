/* runtime/comm/group.h: the structs of groups and of asynchronous operations (works); for the files
   of comm/ alone. */
#ifndef LT_COMM_GROUP_H
#define LT_COMM_GROUP_H

#include "comm/comm.h"
#include "comm/fingerprint.h"
#include "device/stream.h"

/* Where a work stands. A step is one movement of the backend; most works have one. */
typedef enum lt_stage {
  LT_STAGE_COMPARE,
  LT_STAGE_MOVE,
  LT_STAGE_BROKEN, /* the host's link has failed: an outcome that says more may be on its way */
  LT_STAGE_DONE
} lt_stage;

/* How the bytes of a work move (devices.c). */
typedef enum lt_way {
  LT_WAY_HOST,  /* from where they lie, by the host's link */
  LT_WAY_LINK,  /* from where they lie, by the device's link; of one rank alone, on the device */
  LT_WAY_STAGED /* through pinned memory, by the host's link */
} lt_way;


enum { LT_WORK_TEXT = 256 };

struct lt_work {
  lt_object object;
  lt_group *group; /* retained until it is done */
  lt_work *next;   /* in its queue */
  lt_mark mark;
  lt_stage stage;
  bool pair;    /* send, recv */
  bool is_owed; /* a gradient that goes to its peer, whether anyone here waits for that or not */
  int peer;
  lt_comm_compare round;
  lt_comm_move move;
  int64_t bytes; /* of data, for the ring */
  uint64_t ring; /* number in the ring */
  /* Called when all agreed, before the first step: sizes are known now. (optional) */
  bool (*agreed)(lt_ctx *c, lt_work *w);
  /* Called after a step; sets up the next one and says true, or false when there is none, or with a
     failure in the ctx. (optional) */
  bool (*next_step)(lt_ctx *c, lt_work *w);
  /* Called once after the last step: what is left to do with what came. False with a failure.
     (optional) */
  bool (*complete)(lt_ctx *c, lt_work *w);
  int step;
  lt_comm_reduce reduce; /* as asked: the backend has no mean */
  lt_tensor *in, *out;   /* retained until it is done */
  /* Likewise, of a movement in parts (coalesced.c): what all ranks have together, n_parts of them,
     and after them this rank's share, n_own; 0: that is among the parts. */
  lt_tensor **parts;
  int n_parts, n_own;
  lt_work *first; /* of a mean of parts: retained, that which knows `total` */
  double total;
  lt_tensor *result;
  int64_t *extents;     /* [size]: of the ranks, when they travel with the fingerprint */
  int64_t *counts, *in_counts; /* [size] for the move */
  size_t numbers_bytes; /* of the block that holds them */
  struct {
    char *sent; /* this rank's bytes, or at the root of scatter the parts of all */
    size_t sent_bytes;
    char *got; /* parts that came, one after the other */
    size_t got_bytes;
    void *whole; /* of reduce: where the root wants it */
  } data;
  struct {
    lt_tensor **tensors; /* [n], retained; memory for `capacity` */
    int n, capacity;
    lt_tensor *into; /* retained, or NULL */
    lt_device at;    /* of tensors that come */
  } message;         /* message.c */
  struct {
    lt_way way;
    lt_device at;       /* where its tensors lie */
    lt_event ready;      /* of its own last work on the stream */
    lt_event before;     /* of the stream of computing, when the link began to move it */
    uint64_t number;     /* LINK: among those of this rank, in all groups */
    bool ordered, begun; /* the stream waits for its tensors; the link may move them */
    lt_pinned *in, *out; /* STAGED: copies of the tensors; one for both where they are one */
    lt_storage *buffer;  /* LINK: the parts, one after the other */
    lt_storage *operands; /* LINK: of a sum in the tree's order (tree_reductions.c) */
    void *sum;            /* LINK: where that goes */
  } device;
  lt_code failed; /* reported at the wait */
  char text[LT_WORK_TEXT];
};

typedef struct lt_queue {
  lt_work *first, **last;
} lt_queue;

/* A movement that was issued on a device and may not have ended. */
typedef struct lt_under_way {
  lt_mark mark;
  lt_device at;
  lt_event before, after, ready; /* see lt_work.device, lt_comm_move */
} lt_under_way;

enum { LT_UNDER_WAY = 16 };

/* A link between devices, opened with its first movement: of a group's collectives, or of its
   messages from one rank to another (`from`, `to`; links.c). */
typedef struct lt_device_link lt_device_link;
struct lt_device_link {
  const lt_comm_ops *ops;
  lt_device_link *next; /* of the group */
  int from, to;         /* ranks of the group, of messages */
  bool taken;           /* `at` is set, of messages `key` too */
  lt_device at;         /* that this rank uses here */
  int64_t key;          /* lt_message_key */
  lt_comm_link *link;   /* NULL: not open */
  lt_stream *stream;    /* of messages: leased; NULL: not yet */
  lt_comm_move handing; /* of the id, over the host's link */
  char id[LT_COMM_ID];
  lt_under_way under_way[LT_UNDER_WAY]; /* from `first` on; the first ones, where there are more */
  int first, n_under_way;
  int64_t broken_ns; /* when it failed; 0: it has not */
  bool reported;     /* of the root: the watchdog knows of the wait for a device, */
  lt_mark activity;  /* before which the rank did this */
};

struct lt_group {
  int64_t refs;
  const lt_comm_ops *ops;
  lt_comm_link *link; /* NULL once closed */
  lt_device_link between; /* of collectives, and behind it those of messages */
  lt_heartbeat *heartbeat;
  int rank, size;
  int *world;                        /* [size] world ranks */
  uint32_t id;                       /* 0: all ranks */
  uint64_t seq;                      /* collectives issued so far */
  uint64_t moves;                    /* of the root: works for links between devices so far, */
  uint64_t pending;                  /* and works in the queues of all groups */
  uint64_t *sent, *received;         /* [size] messages issued so far, to and from each rank */
  uint64_t *walked;                  /* [2 * size] see drive_pairs */
  lt_mark *marks;                    /* [size] for a round that differs: the group's last */
  lt_queue queue;                    /* collectives */
  lt_queue pairs;                    /* sends and receives */
  bool crowded, fixed_order, broken; /* broken: ranks disagreed here */
  int64_t chunk;
  lt_group *root; /* of all ranks; itself there. Split groups retain it */
  lt_group *next; /* all groups of the root that have a link, the root first */
};

/* There is an outcome: the ranks end. */
static inline bool lt_group_is_over(const lt_group *g) {
  return g->heartbeat != NULL && lt_heartbeat_is_over(g->heartbeat);
}

/* group.c: a group of a link; `root`: NULL for the group of all ranks. Take it off the root's list.
   Drop its links without a message to the other ranks: some of them may be dead, and an orderly
   close would wait for them. */
lt_group *lt_group_make(lt_ctx *c, const lt_comm_ops *ops, lt_comm_link *link, lt_group *root);
void lt_group_unlist(lt_group *g);
void lt_group_abandon(lt_group *g);

/* Put a work that is filled in into its group's queue: describes it, notes it, starts it. Takes the
   caller's reference on failure, which it returns as NULL. */
lt_work *lt_work_issue(lt_ctx *c, lt_work *w, lt_plan *plan, lt_origin at);

/* A new work of `g` with everything zero; NULL with a failure, also when the group cannot be used
   any more. */
lt_work *lt_work_new(lt_ctx *c, lt_group *g, lt_comm_op op);

/* collectives.c: `t` is one of the tensors of a work on `at`: contiguous, with memory. */
bool lt_work_check_tensor(lt_ctx *c, lt_comm_op op, const lt_tensor *t, lt_device at);
void lt_work_set_reduction(lt_ctx *c, lt_work *w, lt_comm_reduce reduce, lt_plan *plan);
/* All that is known is checked: find what moves, and issue it. */
lt_work *lt_work_issue_move(lt_ctx *c, lt_work *w, lt_plan *plan, lt_origin at);

/* coalesced_buffer.c: a movement in parts whose backend takes none goes through one buffer, in
   which they lie one after the other. `lt_parts_bytes`: its bytes; `lt_parts_in_buffer`: the
   movement is from it and to it. The tensors that are copied into the buffer before (or, `back`,
   out of it after the movement), and where the first one lies there. */
typedef struct lt_parts_copy {
  lt_tensor *const *list;
  int n;
  char *at;
} lt_parts_copy;
size_t lt_parts_bytes(const lt_work *w);
void lt_parts_in_buffer(lt_work *w, char *buffer);
lt_parts_copy lt_parts_to_copy(const lt_work *w, bool back);

/* devices.c: works whose tensors are on a device. Failures are in the ctx. */

/* How `op` moves memory of this device in this group: all ranks of it come to the same. */
lt_way lt_way_of(lt_ctx *c, lt_group *g, lt_comm_op op, lt_device d);
/* What this rank says in the comparison of a message whose tensors are on `d`: the kind of devices
   and which one it is; 0 where no link moves them. Whether the link of this direction does, by what
   both ends say. */
int64_t lt_message_key(lt_ctx *c, lt_work *w, lt_device d);
bool lt_message_by_link(int64_t own, int64_t other);
/* The next step of a message: `t` goes out, or comes; by the device's link or the host's. */
void lt_message_move(lt_ctx *c, lt_work *w, lt_tensor *t, bool by_link);
/* Finds the memory for the link, of w->in, w->out or w->parts. */
void lt_device_begin(lt_ctx *c, lt_work *w);
/* The same of w->result, which `agreed` has made. */
void lt_device_made(lt_ctx *c, lt_work *w);
/* The movement, as far as it gets without waiting. */
lt_progress lt_device_move(lt_ctx *c, lt_work *w);
/* All steps are done: what came goes to its tensors, and later work on these comes after it. */
void lt_device_end(lt_ctx *c, lt_work *w);
/* The work's own memory goes back, whether it ended well or not. */
void lt_device_drop(lt_ctx *c, lt_work *w);
/* data /= by, data *= by, in the memory that was passed to the link. */
bool lt_device_divide(lt_ctx *c, const lt_work *w, void *data, int64_t n, int by);
bool lt_device_scale(lt_ctx *c, const lt_work *w, void *data, int64_t n, double by);

/* tree_reductions.c: memory of the device that the work's stream may write; NULL with a failure.
   Whether a reduction between devices is to be added in the tree's order here, and not by the link;
   after lt_device_begin. */
lt_storage *lt_device_buffer(lt_ctx *c, const lt_work *w, size_t bytes);
bool lt_ordered_wanted(const lt_work *w);
void lt_ordered_begin(lt_ctx *c, lt_work *w);

/* links.c: the link that moves memory of this device between members of the group; NULL: none. */
const lt_comm_ops *lt_device_link_of(lt_ctx *c, lt_group *g, lt_device d);
/* Of this rank the link has one device, that of its first movement here: a failure for another. */
bool lt_device_link_take(lt_ctx *c, lt_group *g, lt_comm_op op, lt_device d);
/* The link that a work takes, or would take; of a message it is made when it is asked for first:
   NULL with a failure. */
lt_device_link *lt_device_link_for(lt_ctx *c, const lt_work *w);
/* Opens it, when all its ranks have agreed on a movement; LT_DONE: it is open. */
lt_progress lt_device_link_open(lt_ctx *c, lt_work *w, lt_device_link *b);
/* Closes or abandons all links of the group. */
void lt_device_links_end(lt_group *g, bool orderly);
void lt_device_links_free(lt_ctx *c, lt_group *g);

/* device_wait.c: while the host waits for a device. It begins when a link of the root's groups was
   opened, and ends before these are closed or, after an outcome, abandoned. */
void lt_device_wait_begin(lt_ctx *c, lt_group *root);
void lt_device_wait_end(lt_ctx *c, lt_group *root);
/* The host waits for the movements of a group, unless an outcome ends that. */
void lt_device_wait_finish(lt_ctx *c, lt_group *g);
/* A movement has been issued. */
void lt_device_wait_add(lt_ctx *c, const lt_work *w);
/* patience.c: a link of `g` has failed: LT_PENDING as long as there may be an outcome that says
   more. */
lt_progress lt_link_patience(const lt_group *g, lt_device_link *b);

/* wait_report.c: in what this rank waits, and the ranks that belong to it. The others for waits for
   a device: they report to the watchdog that it waits in the collective of the mark, and that it no
   longer does. */
void lt_wait_set(lt_heartbeat *h, const lt_group *g, const lt_mark *mark);
void lt_wait_report(lt_group *g, const lt_mark *mark);
void lt_wait_report_end(lt_group *root);

/* All works of all groups, as far as they get without waiting. True when something changed. */
bool lt_queue_drive(lt_ctx *c, lt_group *root);

/* Everything of a group's queues is over, with this failure. */
void lt_queue_end(lt_ctx *c, lt_group *g, lt_code code, const char *text);

/* Fail when the group has no such rank; a peer is another rank than this. */
bool lt_group_check_rank(lt_ctx *c, const lt_group *g, lt_comm_op op, int rank);
bool lt_group_check_peer(lt_ctx *c, const lt_group *g, lt_comm_op op, int rank);

/* Fail with the outcome's text when there is one; true otherwise. */
bool lt_group_alive(lt_ctx *c, const lt_group *g, lt_comm_op op);

extern const lt_comm_ops lt_self_ops;

#endif
