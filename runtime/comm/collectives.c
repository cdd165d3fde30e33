/* runtime/comm/collectives.c: collectives of tensors: argument checks, fingerprints, transport.

   A collective is a work (lt_work) with two parts. The plan is what all ranks must have in common:
   operation, dtype, shape, root; its fingerprint is compared before any data moves
   (LT_STAGE_COMPARE), so that ranks which call different collectives get an error that names both,
   where MPI or NCCL would hang or corrupt memory. The movement (w->move) is what the transport does
   then.

   `agreed` runs between the two, when sizes that ranks may choose freely have arrived; `next_step`
   makes a further movement out of the finished one; `complete` runs on the result. Semantics are
   those of the MPI standard's collectives. */
#include <stdio.h>
#include <string.h>

#include "comm/group.h"
#include "device/device.h"

bool lt_work_check_tensor(lt_ctx *c, lt_comm_op op, const lt_tensor *t, lt_device at) {
  char own[48], other[48];
  if (!lt_device_equal(t->storage->device, at))
    return lt_fail(c, LT_EDEVICE, "%s: tensors are on two devices: %s and %s", lt_comm_op_name(op),
                   lt_device_text(c, at, own, sizeof own),
                   lt_device_text(c, t->storage->device, other, sizeof other));
  if (!t->contiguous)
    return lt_fail(c, LT_EARG, "%s: the tensor is not contiguous: %s", lt_comm_op_name(op),
                   LT_TENSOR_STR(t));
  return t->storage->away == NULL || lt_check_data(c, lt_comm_op_name(op), t);
}

/* `whole` is `part` of all ranks together: [world, ..part] or, joined, [world * n, ..]. */
static bool check_whole(lt_ctx *c, const lt_group *g, lt_comm_op op, const lt_tensor *whole,
                        const lt_tensor *part) {
  if (whole->dtype != part->dtype)
    return lt_fail(c, LT_EDTYPE, "%s: dtypes differ: %s and %s", lt_comm_op_name(op),
                   lt_dtype_name((lt_dtype)whole->dtype), lt_dtype_name((lt_dtype)part->dtype));
  if (whole->numel == part->numel * g->size) return true;
  return lt_fail(c, LT_ESHAPE, "%s: %s is not %d times %s", lt_comm_op_name(op),
                 LT_TENSOR_STR(whole), g->size, LT_TENSOR_STR(part));
}

/* A work with its tensors and the part of the plan that all share. `shown` is the tensor whose
   shape is compared. Checks fail by the ctx and continue: lt_work_issue_move sees the
   failure, and frees the work. */
static lt_work *begin(lt_ctx *c, lt_group *g, lt_comm_op op, lt_tensor *in, lt_tensor *out,
                      const lt_tensor *shown, lt_plan *plan) {
  lt_work *w = lt_work_new(c, g, op);
  if (w == NULL) return NULL;
  lt_device at = shown->storage->device;
  if (g->size > 1) lt_check_data(c, lt_comm_op_name(op), shown);
  if (in != NULL) lt_work_check_tensor(c, op, in, at);
  if (out != NULL && out != in) lt_work_check_tensor(c, op, out, at);
  w->device.at = at;
  w->in = lt_retain(in);
  w->out = lt_retain(out);
  w->bytes = shown->numel * (int64_t)lt_item_size(shown);
  w->move.dtype = shown->dtype;
  w->move.count = shown->numel;
  w->move.in = in != NULL ? lt_data(in) : NULL;
  w->move.out = out != NULL ? lt_data(out) : NULL;
  if (out != NULL) lt_storage_bump(c, out->storage);
  *plan = (lt_plan){.op = op,
                    .reduce = LT_COMM_NO_REDUCE,
                    .dtype = (lt_dtype)shown->dtype,
                    .shape = lt_tensor_shape(shown),
                    .root = -1};
  return w;
}

/* Few bytes may go with the comparison. */
static void offer_data(lt_work *w, const lt_plan *plan) {
  bool gathers = plan->op == LT_COMM_ALL_GATHER && w->in != NULL;
  if (w->device.way != LT_WAY_HOST || w->move.n_parts > 0) return;
  if (!gathers && plan->op != LT_COMM_ALL_REDUCE) return;
  w->round.data = w->move.in;
  w->round.bytes =
      (gathers ? w->in->numel : w->move.count) * (int64_t)lt_dtype_size(plan->dtype);
}

/* Selects the way of the data (host memory, or a link between the devices), which is part of the
   plan: all ranks must take the same one. */
lt_work *lt_work_issue_move(lt_ctx *c, lt_work *w, lt_plan *plan, lt_origin at) {
  if (lt_ok(c)) w->device.way = lt_way_of(c, w->group, plan->op, w->device.at);
  plan->by_device = w->device.way == LT_WAY_LINK && w->group->size > 1;
  if (plan->by_device && lt_ok(c)) lt_device_link_take(c, w->group, plan->op, w->device.at);
  lt_device_begin(c, w);
  offer_data(w, plan);
  return lt_work_issue(c, w, plan, at);
}

static void all_counts(lt_work *w, int64_t count) {
  for (int r = 0; r < w->group->size; r++) w->counts[r] = count;
}

/* mean = sum / ranks, in the type itself (f16 and bf16 in f32). */
static bool divide(lt_ctx *c, lt_work *w) {
  return lt_device_divide(c, w, w->move.out, w->out->numel, w->group->size);
}

void lt_work_set_reduction(lt_ctx *c, lt_work *w, lt_comm_reduce reduce, lt_plan *plan) {
  plan->reduce = reduce;
  w->move.reduce = (uint8_t)(reduce == LT_COMM_MEAN ? LT_COMM_SUM : reduce);
  if (reduce == LT_COMM_MEAN) w->complete = divide;
  if (reduce == LT_COMM_MEAN && !lt_dtype_is_float(plan->dtype))
    lt_fail(c, LT_EDTYPE, "%s: no mean of %s: use sum, or convert it", lt_comm_op_name(plan->op),
            lt_dtype_name(plan->dtype));
}

lt_work *lt_comm_all_reduce(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                            lt_comm_reduce reduce, lt_origin at) {
  lt_plan plan;
  lt_work *w = begin(c, g, LT_COMM_ALL_REDUCE, in, out, in, &plan);
  if (w == NULL) return NULL;
  if (in->dtype != out->dtype || !lt_shape_equal(lt_tensor_shape(in), lt_tensor_shape(out)))
    lt_fail(c, LT_ESHAPE, "all_reduce: the result does not fit: %s and %s", LT_TENSOR_STR(in),
            LT_TENSOR_STR(out));
  lt_work_set_reduction(c, w, reduce, &plan);
  return lt_work_issue_move(c, w, &plan, at);
}

lt_work *lt_comm_broadcast(lt_ctx *c, lt_group *g, lt_tensor *t, int root, lt_origin at) {
  lt_plan plan;
  bool sends = root == g->rank;
  lt_work *w = begin(c, g, LT_COMM_BROADCAST, sends ? t : NULL, sends ? NULL : t, t, &plan);
  if (w == NULL) return NULL;
  w->move.root = plan.root = root;
  lt_group_check_rank(c, g, LT_COMM_BROADCAST, root);
  return lt_work_issue_move(c, w, &plan, at);
}

/* All first sizes must be one; every rank sees the same ones and says the same. */
static bool equal_sizes(lt_ctx *c, lt_work *w) {
  char text[160];
  size_t n = 0;
  bool equal = true;
  for (int r = 0; r < w->group->size; r++) {
    equal = equal && w->extents[r] == w->extents[0];
    if (n < sizeof text)
      n += (size_t)snprintf(text + n, sizeof text - n, r > 0 ? ", %lld" : "%lld",
                            (long long)w->extents[r]);
  }
  if (equal) return true;
  return lt_fail(c, LT_ESHAPE,
                 "all_gather: first sizes differ between ranks: %s (concatenate them with "
                 "{cat = true})",
                 text);
}

lt_work *lt_comm_all_gather(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out, lt_origin at) {
  lt_plan plan;
  lt_work *w = begin(c, g, LT_COMM_ALL_GATHER, in, out, in, &plan);
  if (w == NULL) return NULL;
  check_whole(c, g, LT_COMM_ALL_GATHER, out, in);
  w->round.extent = in->ndim > 0 ? in->size[0] : 1;
  w->round.extents = w->extents;
  w->bytes *= g->size;
  /* Known only when all ranks have said it: each checks the same numbers, so all fail or none. */
  w->agreed = equal_sizes;
  all_counts(w, in->numel);
  return lt_work_issue_move(c, w, &plan, at);
}

/* Sizes are known: make the result, [sum n_r, ..]. */
static bool make_joined(lt_ctx *c, lt_work *w) {
  lt_shape shape = lt_tensor_shape(w->in);
  int64_t rows = 0, rest = 1;
  for (int d = 1; d < shape.ndim; d++) rest *= shape.size[d];
  for (int r = 0; r < w->group->size; r++) {
    w->counts[r] = w->extents[r] * rest;
    rows += w->extents[r];
  }
  w->bytes = rows * rest * (int64_t)lt_item_size(w->in);
  shape.size[0] = rows;
  /* A frame of the work's own: another operation may be under way when the sizes arrive. */
  lt_frame frame = lt_frame_open(c);
  lt_tensor *t =
      lt_tensor_empty(c, w->device.at, (lt_dtype)w->in->dtype, shape.ndim, shape.size);
  void *keep[] = {t};
  lt_frame_close(c, frame, 1, keep);
  w->result = t;
  if (t != NULL) lt_device_made(c, w);
  return lt_ok(c);
}

lt_work *lt_comm_all_gather_cat(lt_ctx *c, lt_group *g, lt_tensor *in, lt_origin at) {
  lt_plan plan;
  lt_work *w = begin(c, g, LT_COMM_ALL_GATHER, in, NULL, in, &plan);
  if (w == NULL) return NULL;
  if (in->ndim == 0)
    lt_fail(c, LT_ESHAPE, "all_gather: a tensor [] has no first dim to concatenate along");
  plan.form = LT_FORM_CAT;
  w->round.extent = in->ndim > 0 ? in->size[0] : 0;
  w->round.extents = w->extents;
  w->agreed = make_joined;
  return lt_work_issue_move(c, w, &plan, at);
}

lt_work *lt_comm_reduce_scatter(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                                lt_comm_reduce reduce, lt_origin at) {
  lt_plan plan;
  lt_work *w = begin(c, g, LT_COMM_REDUCE_SCATTER, in, out, in, &plan);
  if (w == NULL) return NULL;
  check_whole(c, g, LT_COMM_REDUCE_SCATTER, in, out);
  lt_work_set_reduction(c, w, reduce, &plan);
  all_counts(w, out->numel);
  return lt_work_issue_move(c, w, &plan, at);
}

/* Rows to elements; their sum must be what the tensor has. */
static void set_rows(lt_ctx *c, const lt_work *w, const lt_tensor *t, const int64_t *rows,
                     int64_t *counts) {
  int64_t row = 1, total = 0;
  for (int d = 1; d < t->ndim; d++) row *= t->size[d];
  for (int r = 0; r < w->group->size; r++) {
    counts[r] = rows[r] * row;
    total += counts[r];
  }
  if (total != t->numel)
    lt_fail(c, LT_ESHAPE, "all_to_all: the parts have %lld elements, the tensor is %s",
            (long long)total, LT_TENSOR_STR(t));
}

/* Rank r sends part k of `in` to rank k and receives into part k of `out`. With `rows` the parts
   differ in length: all ranks must cut the transfer into as many pieces, hence `most`, the longest
   part of any rank, from which the count of the pieces is derived. */
lt_work *lt_comm_all_to_all(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                            const int64_t *rows, const int64_t *from, int64_t most, lt_origin at) {
  lt_plan plan;
  lt_work *w = begin(c, g, LT_COMM_ALL_TO_ALL, in, out, in, &plan);
  if (w == NULL) return NULL;
  if (in->dtype != out->dtype)
    lt_fail(c, LT_EDTYPE, "all_to_all: dtypes differ: %s and %s",
            lt_dtype_name((lt_dtype)in->dtype), lt_dtype_name((lt_dtype)out->dtype));
  if (rows != NULL) {
    plan.form = LT_FORM_CAT;
    set_rows(c, w, in, rows, w->in_counts);
    set_rows(c, w, out, from, w->counts);
    for (int d = 1; d < in->ndim; d++) most *= in->size[d];
    w->move.count = most;
  } else {
    if (in->ndim == 0 || in->size[0] % g->size != 0 || out->numel != in->numel)
      lt_fail(c, LT_ESHAPE, "all_to_all: %s does not go in %d parts into %s", LT_TENSOR_STR(in),
              g->size, LT_TENSOR_STR(out));
    w->move.count = in->numel / g->size;
    all_counts(w, w->move.count);
    memcpy(w->in_counts, w->counts, (size_t)g->size * sizeof *w->counts);
  }
  return lt_work_issue_move(c, w, &plan, at);
}

/* Backends know no reduce: each rank reduces its share, and the root gathers them. From a device
   the tensor goes through pinned memory, for no link of a device gathers. */
static bool reduce_shares(lt_ctx *c, lt_work *w) {
  size_t bytes = (size_t)w->counts[w->group->rank] * lt_item_size(w->in);
  w->data.got = lt_alloc(c, bytes);
  if (w->data.got == NULL && bytes > 0) return false;
  w->data.got_bytes = bytes;
  w->data.whole = w->move.out;
  w->move.op = LT_COMM_REDUCE_SCATTER;
  w->move.out = w->data.got;
  return true;
}

static bool gather_shares(lt_ctx *c, lt_work *w) {
  (void)c;
  if (w->step > 1) return false;
  w->move.op = LT_COMM_GATHER;
  w->move.in = w->data.got;
  w->move.out = w->data.whole;
  return true;
}

/* A reduce to one rank as reduce-scatter and gather: each rank adds 1/size of the elements, where a
   root alone would read and add everything (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
   collective communication operations in MPICH", 2005). An operation less for each backend. A link
   between devices makes an all_reduce of it, which takes as many steps. */
lt_work *lt_comm_reduce_to(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out,
                           lt_comm_reduce reduce, int root, lt_origin at) {
  lt_plan plan;
  bool here = root == g->rank;
  bool by_link =
      g->size > 1 && lt_way_of(c, g, LT_COMM_REDUCE, in->storage->device) == LT_WAY_LINK;
  if (!here)
    out = by_link ? lt_tensor_empty(c, in->storage->device, (lt_dtype)in->dtype, in->ndim, in->size)
                  : NULL;
  lt_work *w = begin(c, g, LT_COMM_REDUCE, in, out, in, &plan);
  if (w == NULL) return NULL;
  plan.root = root;
  lt_work_set_reduction(c, w, reduce, &plan);
  if (!here) w->complete = NULL;
  if (lt_group_check_rank(c, g, LT_COMM_REDUCE, root) && here &&
      (out == NULL || out->dtype != in->dtype || out->numel != in->numel))
    lt_fail(c, LT_ESHAPE, "reduce: the result does not fit: %s and %s", LT_TENSOR_STR(in),
            out != NULL ? LT_TENSOR_STR(out) : "none");
  for (int r = 0; r < g->size; r++) w->counts[r] = in->numel / g->size + (r < in->numel % g->size);
  if (by_link) {
    w->move.op = LT_COMM_ALL_REDUCE;
  } else if (g->size > 1) {
    w->move.root = root;
    w->agreed = reduce_shares;
    w->next_step = gather_shares;
  } else {
    w->move.op = LT_COMM_REDUCE_SCATTER; /* its share is all of it */
  }
  return lt_work_issue_move(c, w, &plan, at);
}

lt_work *lt_comm_gather(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out, int root,
                        lt_origin at) {
  lt_plan plan;
  bool here = root == g->rank;
  lt_work *w = begin(c, g, LT_COMM_GATHER, in, here ? out : NULL, in, &plan);
  if (w == NULL) return NULL;
  w->bytes *= g->size;
  w->move.root = plan.root = root;
  if (lt_group_check_rank(c, g, LT_COMM_GATHER, root) && here) {
    if (out == NULL)
      lt_fail(c, LT_EARG, "gather: rank %d is the root and passes no result tensor", root);
    else
      check_whole(c, g, LT_COMM_GATHER, out, in);
  }
  all_counts(w, in->numel);
  return lt_work_issue_move(c, w, &plan, at);
}

lt_work *lt_comm_scatter(lt_ctx *c, lt_group *g, lt_tensor *in, lt_tensor *out, int root,
                         lt_origin at) {
  lt_plan plan;
  bool here = root == g->rank;
  lt_work *w = begin(c, g, LT_COMM_SCATTER, here ? in : NULL, out, out, &plan);
  if (w == NULL) return NULL;
  w->bytes *= g->size;
  w->move.root = plan.root = root;
  if (lt_group_check_rank(c, g, LT_COMM_SCATTER, root) && here) {
    if (in == NULL)
      lt_fail(c, LT_EARG, "scatter: rank %d is the root and passes no tensor", root);
    else
      check_whole(c, g, LT_COMM_SCATTER, in, out);
  }
  all_counts(w, out->numel);
  return lt_work_issue_move(c, w, &plan, at);
}

/* Both ends know now whether they are on devices that a link connects. */
static bool move_message(lt_ctx *c, lt_work *w) {
  bool by_link = lt_message_by_link(w->round.extent, w->extents[w->peer]);
  lt_message_move(c, w, w->in != NULL ? w->in : w->out, by_link);
  return lt_ok(c);
}

/* `of`: the number of the message whose gradient this is, which both fingerprints carry: gradients
   of two messages between the same ranks are never taken for each other. */
static lt_work *message(lt_ctx *c, lt_group *g, lt_comm_op op, lt_tensor *t, int peer,
                        uint64_t of, lt_origin at) {
  lt_plan plan;
  bool sends = op == LT_COMM_SEND;
  lt_work *w = begin(c, g, op, sends ? t : NULL, sends ? NULL : t, t, &plan);
  if (w == NULL) return NULL;
  w->move.root = w->peer = plan.root = peer;
  plan.of = of;
  w->is_owed = of != 0 && sends;
  if (lt_group_check_peer(c, g, op, peer))
    w->round.extent = lt_message_key(c, w, t->storage->device);
  w->round.extents = w->extents;
  w->agreed = move_message;
  return lt_work_issue(c, w, &plan, at);
}

lt_work *lt_comm_send(lt_ctx *c, lt_group *g, lt_tensor *t, int to, lt_origin at) {
  return message(c, g, LT_COMM_SEND, t, to, 0, at);
}

lt_work *lt_comm_recv(lt_ctx *c, lt_group *g, lt_tensor *t, int from, lt_origin at) {
  return message(c, g, LT_COMM_RECV, t, from, 0, at);
}

lt_work *lt_comm_send_grad(lt_ctx *c, lt_group *g, lt_tensor *t, int to, uint64_t of,
                           lt_origin at) {
  return message(c, g, LT_COMM_SEND, t, to, of, at);
}

lt_work *lt_comm_recv_grad(lt_ctx *c, lt_group *g, lt_tensor *t, int from, uint64_t of,
                           lt_origin at) {
  return message(c, g, LT_COMM_RECV, t, from, of, at);
}

/* No data: it is done when the fingerprints have met. */
lt_work *lt_comm_barrier(lt_ctx *c, lt_group *g, lt_origin at) {
  lt_work *w = lt_work_new(c, g, LT_COMM_BARRIER);
  if (w == NULL) return NULL;
  lt_plan plan = {.op = LT_COMM_BARRIER,
                  .reduce = LT_COMM_NO_REDUCE,
                  .dtype = LT_DTYPE_NONE,
                  .form = LT_FORM_VALUE,
                  .root = -1};
  return lt_work_issue(c, w, &plan, at);
}
