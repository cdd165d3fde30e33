/* runtime/comm/group.h: what a group and a work are made of; for the files of comm/ alone. */
#ifndef LT_COMM_GROUP_H
#define LT_COMM_GROUP_H

#include "comm/comm.h"
#include "comm/fingerprint.h"

/* Where a work stands. A step is one movement of the backend; most works have one. */
typedef enum lt_stage { LT_STAGE_COMPARE, LT_STAGE_MOVE, LT_STAGE_DONE } lt_stage;

enum { LT_WORK_TEXT = 256 };

struct lt_work {
  lt_object object;
  lt_group *group; /* retained until it is done */
  lt_work *next;   /* in its queue */
  lt_mark mark;
  lt_stage stage;
  bool pair; /* send, recv */
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
  int step;
  lt_comm_reduce reduce; /* as asked: the backend has no mean */
  lt_tensor *in, *out;   /* retained until it is done */
  lt_tensor **parts;     /* likewise, n_parts of them */
  int n_parts;
  lt_tensor *result;
  int64_t *extents;     /* [size]: of the ranks, when they travel with the fingerprint */
  int64_t *counts;      /* [size] for the move */
  size_t numbers_bytes; /* of the block that holds both */
  struct {
    char *sent; /* this rank's bytes, or at the root of scatter the parts of all */
    size_t sent_bytes;
    char *got; /* parts that came, one after the other */
    size_t got_bytes;
  } data;
  lt_code failed; /* told at the wait */
  char text[LT_WORK_TEXT];
};

typedef struct lt_queue {
  lt_work *first, **last;
} lt_queue;

struct lt_group {
  int64_t refs;
  const lt_comm_ops *ops;
  lt_comm_link *link; /* NULL once closed */
  lt_heartbeat *heartbeat;
  int rank, size;
  int *world;                        /* [size] world ranks */
  uint32_t id;                       /* 0: all ranks */
  uint64_t seq;                      /* collectives issued so far */
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

/* Put a work that is filled in into its group's queue: describes it, notes it, starts it. Takes the
   caller's reference on failure, which it returns as NULL. */
lt_work *lt_work_issue(lt_ctx *c, lt_work *w, lt_plan *plan, lt_origin at);

/* A new work of `g` with everything zero; NULL with a failure, also when the group cannot be used
   any more. */
lt_work *lt_work_new(lt_ctx *c, lt_group *g, lt_comm_op op);

/* All works of all groups, as far as they get without waiting. True when something changed. */
bool lt_queue_drive(lt_ctx *c, lt_group *root);

/* Ranks say different things about `w`, as round.marks shows: tell it, and all ends. */
void lt_queue_disagree(lt_ctx *c, lt_work *w);

/* Everything of a group's queues is over, with this failure. */
void lt_queue_end(lt_ctx *c, lt_group *g, lt_code code, const char *text);

/* Fail with the verdict's text when there is one; true otherwise. */
bool lt_group_alive(lt_ctx *c, const lt_group *g, lt_comm_op op);

extern const lt_comm_ops lt_self_ops;

#endif
