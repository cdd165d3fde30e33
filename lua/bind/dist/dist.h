/* lua/bind/dist/dist.h: lt.dist: groups of ranks, collectives on tensors, launches.

   References to groups (from groups of scripts, pending collectives, nodes of the tape) are on one
   list of the context, so that all are cleared when their world ends. Whoever uses one later gets
   an error that says so. */
#ifndef LT_BIND_DIST_DIST_H
#define LT_BIND_DIST_DIST_H

#include "bind/core/state.h"
#include "launch/launch.h"

typedef struct lt_group_ref lt_group_ref;
struct lt_group_ref {
  lt_group_ref *next, **link; /* link NULL: not on the list */
  lt_group *group;       /* NULL: its world has ended */
  lt_work *work;         /* of a collective under way */
  bool of_world;         /* else of the group of one outside of worlds */
};

/* Reference `group` (whose reference count the caller has raised); give that up again. */
void lt_group_ref_set(lt_ctx *c, lt_group_ref *r, lt_group *group);
void lt_group_ref_clear(lt_ctx *c, lt_group_ref *r);

/* The group of all ranks of the world that this process is part of; outside of one, of itself
   alone. NULL with a failure. */
lt_group *lt_dist_group(lt_ctx *c);

/* What `scatter` and the like keep beside a collective: who called. */
enum { LT_PLACE_FILE = 64 };
typedef struct lt_place {
  char file[LT_PLACE_FILE];
  int line;
  char hook[LT_MARK_HOOK];
} lt_place;
static inline lt_origin lt_origin_of(const lt_place *p) {
  return (lt_origin){.file = p->file[0] != 0 ? p->file : NULL,
                     .line = p->line,
                     .hook = p->hook[0] != 0 ? p->hook : NULL};
}

/* The script's line that is running, and the hook that stdlib named. */
lt_place lt_place_here(lua_State *L, lt_bind *b);

/* The same in what stdlib's loop does for itself (an exchange under no hook): the line of its call,
   which need not be looked up. */
lt_place lt_place_of_loop(lua_State *L, lt_bind *b);

/* A collective on a tensor, from its issue to its result. Fill in who, op, reduce, root, x, into,
   place, in_place, cat, record, and rows (lt_collective_rows); the rest belongs to tensors.c. */
typedef struct lt_collective {
  lt_group_ref ref;
  const char *who; /* "all_reduce_", for messages */
  lt_comm_op op;
  lt_comm_reduce reduce;
  int root;
  bool in_place, cat; /* in_place: `into` is x */
  int64_t *rows, *from; /* all_to_all of unequal parts: rows of dim 1 to each rank, from each */
  int64_t most;         /* the largest part of all ranks, in rows */
  size_t rows_bytes;
  bool record;        /* hang the result on the tape */
  lt_tensor *x, *out, *into; /* retained; into: where the script wants the result, or NULL */
  lt_place place;
} lt_collective;

/* Memory for rows and from of n ranks; false with a failure. */
bool lt_collective_rows(lt_ctx *c, lt_collective *k, int n);
/* Number, compare and start it; x and what it is made into are retained. On failure nothing is. */
bool lt_collective_issue(lt_ctx *c, lt_collective *k, lt_group *group);
/* Wait for it; the result is in the open frame, NULL when this rank gets none (or on failure: see
   the ctx). Releases everything. */
lt_tensor *lt_collective_finish(lt_ctx *c, lt_collective *k);
void lt_collective_drop(lt_ctx *c, lt_collective *k);

/* Hang the result `y` of `k` on the tape (grad.c), in the open frame; without k->x the gradient
   goes to other ranks alone. `offset`: where this rank's rows begin in what was gathered with
   `cat`. */
bool lt_collective_record(lt_ctx *c, lt_collective *k, lt_tensor *y, int64_t offset);
/* The result on a rank that only gives its k->x away: a zero of no dims, in whose backward the
   gradient comes. */
lt_tensor *lt_collective_record_zero(lt_ctx *c, lt_collective *k);

/* The options of a launch in the table at `index`, but for the ranks and whose process this is.
   The registry keeps the table until the next launch, for the world keeps its texts. */
lt_launch_options lt_check_launch(lua_State *L, lt_bind *b, int index);

/* For results of functions that begin a collective: push the name of the device if its memory goes
   through the host's, for the first time; else nil. */
int lt_dist_push_staged(lua_State *L, lt_bind *b, bool staged, lt_device d);

/* Push the handle of a collective that returns nothing; takes `made`, raises when it is NULL. */
void lt_dist_push_work(lua_State *L, lt_bind *b, const char *who, lt_group *g, lt_work *made);

/* Whether the host may read and write the bytes at once, in a row. */
bool lt_is_plain(const lt_ctx *c, const lt_tensor *t);

/* Parameters into their gradients, in place; one without gets zeros, for others may have some. */
bool lt_take_gradients(lt_ctx *c, int64_t n, lt_tensor **list);

/* With what is sent: a tensor whose gradient is to come back. A part of scatter has it before its
   bytes, a message of one tensor has it as its only byte; those of a value begin with another
   (values.c). */
enum { LT_WANTS_GRAD = 'G' };

/* messages.c: the value at `value` to rank `to` (`with_grad`: a tensor, whose gradient is to come
   back); from rank `from`, into the tensor at `index` where that is one that can take bytes as they
   come, else on the device `on`; and what came, pushed: the tensor at `into` where it is in that.
   Returns whether it is a tensor whose gradient is to go back. */
lt_work *lt_message_send(lua_State *L, lt_bind *b, lt_group *g, int to, int value, bool with_grad,
                         const lt_place *at);
lt_work *lt_message_recv(lua_State *L, lt_bind *b, lt_group *g, int from, int index, lt_device on,
                         const lt_place *at);
bool lt_message_push(lua_State *L, lt_bind *b, lt_work *from, int into);

/* Clear all references to groups of the world, which ends now. */
void lt_dist_forget_world(lt_ctx *c);

/* The group at `index`: nil means all ranks. Raises when its world has ended. */
lt_group *lt_check_group(lua_State *L, lt_bind *b, int index, const char *who);

/* Push a script's handle of a group, which holds none yet. */
lt_group_ref *lt_push_group(lua_State *L);

/* dist.before_backward; calls what it was given, where `g` is the group of all ranks
   (context_state.c). */
int lt_dist_before_backward(lua_State *L);
bool lt_dist_call_before(lt_ctx *c, const lt_group *g);

/* dist.set_hook and dist.exchange: where stdlib's loops are (context_state.c). */
int lt_dist_set_hook(lua_State *L);
int lt_dist_exchange(lua_State *L);

/* Report the error on top of the stack to all ranks, where it was raised; returns when it is
   decided which failure is named. Nothing without a world. */
void lt_dist_report(lua_State *L, lt_bind *b);

/* Make the type of groups. */
void lt_bind_dist_group(lua_State *L, lt_bind *b);

/* Parts: each adds to the table of functions on top of the stack. */
void lt_bind_dist_calls(lua_State *L, lt_bind *b);
void lt_bind_dist_grad(lua_State *L, lt_bind *b);
void lt_bind_dist_bucket(lua_State *L, lt_bind *b);
void lt_bind_dist_overlap(lua_State *L, lt_bind *b);
void lt_bind_dist_shards(lua_State *L, lt_bind *b);
void lt_bind_dist_launch(lua_State *L, lt_bind *b);
void lt_bind_dist_join(lua_State *L, lt_bind *b);
void lt_bind_dist_report(lua_State *L, lt_bind *b);

#endif
