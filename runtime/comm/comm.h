/* runtime/comm/comm.h: groups of ranks and their collectives.

   A group has a sequence number, a first-in first-out queue of works, and a backend's link. Every
   collective is numbered and described when it is issued (its mark), compared with those of the
   other ranks before any data is read, then moved. The main thread drives all of it, in
   lt_work_test and lt_work_wait. A wait looks for an outcome at least every 10 ms, yields when
   there are more ranks than cores, and ends in LT_ERANKS with the outcome's text. */
#ifndef LT_COMM_COMM_H
#define LT_COMM_COMM_H

#include "comm/heartbeat.h"
#include "device/host.h"
#include "ltrain/backend.h"
#include "tensor/tensor.h"

typedef struct lt_group lt_group;
typedef struct lt_work lt_work; /* a pending collective; lt_retain, lt_release */

/* The group of all ranks over an open link; takes the link. `heartbeat` must outlive it. `crowded`:
   more ranks than cores on this host: waits yield at once. */
lt_group *lt_group_new(lt_ctx *c, const lt_comm_ops *ops, lt_comm_link *link,
                       lt_heartbeat *heartbeat, bool crowded);
/* The group of one (comm/self.c): every collective is the identity. */
lt_group *lt_group_self(lt_ctx *c, lt_heartbeat *heartbeat);
lt_group *lt_group_retain(lt_group *g);
void lt_group_release(lt_ctx *c, lt_group *g);
/* The host waits for the movements between devices that are under way in it and in the groups split
   from it. */
void lt_group_finish(lt_ctx *c, lt_group *g);
/* Waits for the gradients that were sent, in it and in the groups split from it: a rank that leaves
   drives nothing any more. False with a failure. */
bool lt_group_deliver(lt_ctx *c, lt_group *g);
/* The end of the group of all ranks, before its heartbeat and its memory are freed: closes the link
   in order, or, after an outcome, abandons it without communication. Ends the groups split from it
   too; pending works never finish, and what is called later on any of them fails. */
void lt_group_close(lt_ctx *c, lt_group *g);

int lt_group_rank(const lt_group *g);
int lt_group_size(const lt_group *g);
const char *lt_group_backend(const lt_group *g);
/* World rank of a rank of the group. */
int lt_group_world_rank(const lt_group *g, int rank);
/* Set the most bytes of one call of a transport (default 1 GiB), the same on all ranks; groups
   that are split later inherit it. */
void lt_group_set_chunk(lt_group *g, int64_t bytes);
/* Reduce in a binary tree where the backend leaves the order open. */
void lt_group_set_fixed_order(lt_group *g, bool on);
/* Set `crowded` later than lt_group_new: where the ranks run is exchanged over the group itself. */
void lt_group_set_crowded(lt_group *g, bool on);
/* Number collectives from 1 again and forget those of the launch. Called by all ranks between the
   same two collectives. */
void lt_group_begin(lt_group *g);
/* Whether it reduces in the tree, by itself or because that was set. */
bool lt_group_fixed_order(const lt_group *g);

/* Collective over `g`: ranks that give the same color >= 0 form a group, ordered by (key, rank);
   color -1: none (NULL without a failure). */
lt_group *lt_group_split(lt_ctx *c, lt_group *g, int color, int key);

/* Why this process, which is not a rank, may take part in nothing; NULL: it may. Set in children
   that have their parent's groups. */
extern const char *lt_comm_refusal;

/* The progress of this rank in all groups of the root: what it has issued, or has completed. */
void lt_group_issued(const lt_group *root, bool completed, lt_issued_list *list);

/* Where a collective was issued: the script's line, or the name of a hook for our own. The binding
   sets it before each call; comm/ copies it. */
typedef struct lt_origin {
  const char *file; /* short name, or the name of our own collective; may be NULL */
  int line;
  const char *hook; /* "validation_step"; may be NULL */
} lt_origin;

/* Collectives. Tensors are contiguous (the caller makes them so) and of one work on one device, and
   stay alive until the work is done: the work retains them. `out` is written. Each returns a work
   that has been issued (NULL with a failure): wait for it, or test it and wait later, in any order.
   A work on a device is done when what is left is on the device's streams, in order.

   all_reduce      in, out: same shape, may be one tensor; mean of integers is an error
   broadcast       t: the same shape everywhere, written except at root
   all_gather      in [..]; out [world, ..], allocated by the caller; unequal first sizes fail on
                   every rank with the sizes and the remedy {cat = true}
   all_gather_cat  in [n_r, ..]; the result [sum n_r, ..] is made when the sizes are known:
                   lt_work_result after the wait
   reduce_scatter  in [world * n, ..], out [n, ..]
   all_to_all      in, out [world * n, ..]: part r of in goes to rank r, part r of out is rank r's;
                   or, with `rows` and `from`, of unequal parts: rows[r] of dim 1 to rank r, from[r]
                   from it; `most`: the largest part of all ranks, in rows
   reduce          in [..]; out the same at root, NULL elsewhere
   gather          in [..]; out [world, ..] at root, NULL elsewhere
   scatter         in [world * n, ..] at root (NULL elsewhere), out [n, ..]
   send, recv      t; matched a pair of ranks, in order in each direction */
lt_work *lt_comm_all_reduce(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                            lt_comm_reduce reduce, lt_origin at);
/* The same (a sum) of n tensors of one dtype at once, in their own memory, times `scale`. */
lt_work *lt_comm_all_reduce_parts(lt_ctx *c, lt_group *g, int n, lt_tensor *const *parts,
                                  double scale, lt_origin at);
/* The same divided by the sum of all ranks' weights: `weight` of this one travels with the
   fingerprint, or with that of `first`, a work of the same weights that was issued before (NULL:
   this is the first). Weights of 0 everywhere: the sum as it is. */
lt_work *lt_comm_mean_parts(lt_ctx *c, lt_group *g, int n, lt_tensor *const *parts, double weight,
                            lt_work *first, lt_origin at);
double lt_work_total(const lt_work *w); /* of a first one, after the wait: that sum */
/* The same of tensors that all ranks have together, in one movement: `parts` are n / world tensors
   for each rank, those of rank 0 first, of any sizes; `own`, this rank's share of them, as many
   elements as its parts have (n_own 0: the share is in the parts). all_gather: own to the parts of
   all ranks, whose versions move unless there is `own`: then they had these values before, and
   their memory comes again (lt_storage_fill). reduce_scatter: the sums of this rank's parts over
   the ranks, times `scale`, to its own. */
typedef struct lt_parts {
  int n, n_own;
  lt_tensor *const *parts, *const *own;
} lt_parts;
lt_work *lt_comm_all_gather_parts(lt_ctx *c, lt_group *g, const lt_parts *p, lt_origin at);
lt_work *lt_comm_reduce_scatter_parts(lt_ctx *c, lt_group *g, const lt_parts *p, double scale,
                                      lt_origin at);
lt_work *lt_comm_broadcast(lt_ctx *c, lt_group *g, lt_tensor *t, int root, lt_origin at);
lt_work *lt_comm_all_gather(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out, lt_origin at);
lt_work *lt_comm_all_gather_cat(lt_ctx *c, lt_group *g, lt_tensor *in, lt_origin at);
lt_work *lt_comm_reduce_scatter(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                                lt_comm_reduce reduce, lt_origin at);
lt_work *lt_comm_all_to_all(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                            const int64_t *rows, const int64_t *from, int64_t most, lt_origin at);
lt_work *lt_comm_reduce_to(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                        lt_comm_reduce reduce, int root, lt_origin at);
lt_work *lt_comm_gather(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out, int root,
                        lt_origin at);
lt_work *lt_comm_scatter(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out, int root,
                         lt_origin at);
lt_work *lt_comm_send(lt_ctx *c, lt_group *g, lt_tensor *t, int to, lt_origin at);
lt_work *lt_comm_recv(lt_ctx *c, lt_group *g, lt_tensor *t, int from, lt_origin at);
/* The gradient of the tensor in message `of` (lt_work_number) goes back to who sent that: ranks
   that mean different messages are reported. Nobody needs to wait for the send
   (lt_group_deliver). */
lt_work *lt_comm_send_grad(lt_ctx *c, lt_group *g, lt_tensor *t, int to, uint64_t of,
                           lt_origin at);
lt_work *lt_comm_recv_grad(lt_ctx *c, lt_group *g, lt_tensor *t, int from, uint64_t of,
                           lt_origin at);
lt_work *lt_comm_barrier(lt_ctx *c, lt_group *g, lt_origin at);

/* Bytes of a length that only the sender knows (Lua values). `bytes`, `n` are copied where they are
   sent. all_gather: each rank's bytes to each; broadcast: root's to all; gather: all to root;
   scatter: root's parts[r] to rank r (parts and part_bytes at root). */
lt_work *lt_comm_bytes(lt_ctx *c, lt_group *g, lt_comm_op op, int root, const void *bytes,
                       int64_t n, const void *const *parts, const int64_t *part_bytes,
                       lt_origin at);
/* After the wait: part r of what came (all_gather, gather at root: r = rank; others: r = 0). */
const void *lt_work_bytes(const lt_work *w, int r, int64_t *n);

/* Whether messages and collectives of the group move memory of the device by a link between
   devices. */
bool lt_comm_has_link(lt_ctx *c, lt_group *g, lt_device d);
/* A message: bytes of any length, which are copied, and tensors, contiguous, which are retained and
   must stay as they are until the work is done. Messages match as those of lt_comm_send do, but not
   with these. Tensors come `on` a device: those of one of its kind by the link between devices.
   `into` (or NULL; it is on that device): written in place of a new tensor when the message is one
   tensor of its shape and dtype, without bytes. */
lt_work *lt_comm_send_message(lt_ctx *c, lt_group *g, int to, const void *bytes, int64_t n,
                              lt_tensor *const *tensors, int n_tensors, lt_origin at);
lt_work *lt_comm_recv_message(lt_ctx *c, lt_group *g, int from, lt_device on, lt_tensor *into,
                              lt_origin at);
/* After the wait for what was received: its tensors, borrowed, and its bytes. */
int lt_work_tensors(const lt_work *w, lt_tensor *const **tensors);
const void *lt_work_text(const lt_work *w, int64_t *n);

/* True when done (or failed: see the ctx). Never blocks. */
bool lt_work_test(lt_ctx *c, lt_work *w);
bool lt_work_wait(lt_ctx *c, lt_work *w);
lt_tensor *lt_work_result(const lt_work *w); /* borrowed; NULL before the end */
/* Its number: among the collectives of its group, or the messages from one rank to the other. */
uint64_t lt_work_number(const lt_work *w);
/* Whether its bytes go through pinned memory, because no link moves memory of their device (the few
   operations that none has aside). */
bool lt_work_is_staged(const lt_work *w);
/* all_gather_cat, after the wait: the first sizes of all ranks. */
const int64_t *lt_work_extents(const lt_work *w);
void lt_work_release(lt_ctx *c, lt_work *w); /* a pending one stays queued in its group */

/* Built-in backends. The segment of shm: bytes needed for n ranks, and its initialisation by one
   process before others use it. */
const lt_comm_ops *lt_shm_ops(void);
size_t lt_shm_bytes(int ranks);
void lt_shm_init(void *memory, size_t bytes, int ranks);

/* "all_gather"; "sum", "" for none. */
const char *lt_comm_op_name(lt_comm_op op);
const char *lt_comm_reduce_name(lt_comm_reduce reduce);

#endif
