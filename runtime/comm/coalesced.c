/* runtime/comm/coalesced.c: coalesced collectives: many tensors in one transfer (a bucket of
   gradients, the parameters of a unit of sharding).

   One message of much data is faster than one for each tensor, as each costs a round of agreement.
   A backend that takes parts reads and writes them where they lie; for another one they are copied
   into one buffer and back. In a gather and in a reduce-scatter the parts are what all ranks have
   together, as many tensors for each rank, those of rank 0 first; `own` is this rank's share of
   them.

   Buckets are as in PyTorch's DDP; what is saved here is the copy into a bucket's buffer, two
   passes over all gradients, where the transport can gather and scatter by itself. */
#include <string.h>

#include "comm/group.h"

static size_t bytes_of(const lt_tensor *t) { return (size_t)t->numel * lt_item_size(t); }

/* Between the parts and the work's buffer in the host's memory. */
static void copy_parts(lt_work *w, bool back) {
  lt_parts_copy run = lt_parts_to_copy(w, back);
  for (int k = 0; k < run.n; k++) {
    size_t bytes = bytes_of(run.list[k]);
    if (bytes > 0)
      memcpy(back ? lt_data(run.list[k]) : run.at, back ? run.at : lt_data(run.list[k]), bytes);
    run.at += bytes;
  }
}

/* Elements of the result in the buffer: a gather is of all, a reduce-scatter of this rank's. */
static int64_t result_count(const lt_work *w) {
  return w->mark.op == LT_COMM_REDUCE_SCATTER ? w->counts[w->group->rank]
                                              : w->bytes / (int64_t)lt_item_size(w->parts[0]);
}

/* The result, scaled, out of the buffer; out of a device's it goes at the end. */
static bool finish_buffer(lt_ctx *c, lt_work *w) {
  if (w->mark.op != LT_COMM_ALL_GATHER &&
      !lt_device_scale(c, w, w->move.out, result_count(w), w->move.scale))
    return false;
  if (w->device.way == LT_WAY_HOST) copy_parts(w, true);
  return true;
}

static bool into_buffer(lt_ctx *c, lt_work *w) {
  size_t bytes = lt_parts_bytes(w);
  w->data.got = lt_alloc(c, bytes);
  if (w->data.got == NULL && bytes > 0) return false;
  w->data.got_bytes = bytes;
  lt_parts_in_buffer(w, w->data.got);
  copy_parts(w, false);
  return true;
}

/* On a device, of one rank alone whose share is among the parts: nothing moves. */
static bool scale_parts(lt_ctx *c, lt_work *w) {
  for (int k = 0; k < w->n_parts && lt_ok(c); k++)
    lt_device_scale(c, w, lt_data(w->parts[k]), w->parts[k]->numel, w->move.scale);
  return lt_ok(c);
}

/* Lists the memory of n tensors; returns how many have any. */
static int64_t list(lt_comm_part *part, lt_tensor *const *tensors, int n) {
  int64_t used = 0;
  for (int k = 0; k < n; k++)
    if (tensors[k]->numel > 0)
      part[used++] = (lt_comm_part){lt_data(tensors[k]), tensors[k]->numel};
  return used;
}

static bool list_parts(lt_ctx *c, lt_work *w) {
  w->data.sent_bytes = (size_t)(w->n_parts + w->n_own) * sizeof(lt_comm_part);
  w->data.sent = lt_alloc(c, w->data.sent_bytes);
  if (w->data.sent == NULL) return false;
  lt_comm_part *part = (lt_comm_part *)(void *)w->data.sent;
  w->move.parts = part;
  w->move.n_parts = list(part, w->parts, w->n_parts);
  w->move.own = part + w->n_parts;
  w->move.n_own = list(part + w->n_parts, w->parts + w->n_parts, w->n_own);
  return true;
}

/* Retains `t` and checks it. */
static void keep(lt_ctx *c, lt_work *w, lt_comm_op op, lt_tensor *t) {
  const lt_tensor *first = w->parts[0];
  lt_work_check_tensor(c, op, t, first->storage->device);
  if (w->group->size > 1) lt_check_data(c, lt_comm_op_name(op), t);
  if (t->dtype != first->dtype)
    lt_fail(c, LT_EDTYPE, "%s: dtypes differ: %s and %s", lt_comm_op_name(op),
            lt_dtype_name((lt_dtype)first->dtype), lt_dtype_name((lt_dtype)t->dtype));
}

/* The backend that will move the parts takes them as they lie, and adds in the order asked for. */
static bool takes_parts(const lt_work *w) {
  const lt_group *g = w->group;
  if (w->move.count == 0) return false;
  if (w->device.way != LT_WAY_LINK) return w->device.way == LT_WAY_HOST && g->ops->gathers;
  const lt_comm_ops *link = g->between.ops;
  return g->size > 1 && link->gathers && (link->fixed_order || !lt_group_fixed_order(g));
}

static void prepare_parts(lt_ctx *c, lt_work *w) {
  if (takes_parts(w)) {
    list_parts(c, w);
  } else if (w->device.way == LT_WAY_LINK && w->group->size == 1 && w->n_own == 0) {
    if (w->mark.op != LT_COMM_ALL_GATHER) w->complete = scale_parts;
  } else {
    if (w->device.way == LT_WAY_HOST) into_buffer(c, w);
    w->complete = finish_buffer;
  }
}

/* Elements of each rank's share. */
static void count_shares(lt_ctx *c, lt_work *w) {
  int size = w->group->size, each = w->n_parts / size;
  int64_t own = 0;
  lt_assert(c, w->n_parts == each * size);
  for (int r = 0; r < size; r++) {
    w->counts[r] = 0;
    for (int k = r * each; k < (r + 1) * each; k++) w->counts[r] += w->parts[k]->numel;
  }
  for (int k = 0; k < w->n_own; k++) own += w->parts[w->n_parts + k]->numel;
  if (w->n_own > 0 && own != w->counts[w->group->rank])
    lt_fail(c, LT_ESHAPE, "%s: this rank's share has %lld elements, and its tensors %lld",
            lt_comm_op_name((lt_comm_op)w->mark.op), (long long)w->counts[w->group->rank],
            (long long)own);
}

/* Takes the tensors, and issues the work. */
static lt_work *issue_parts(lt_ctx *c, lt_work *w, const lt_parts *p, lt_origin at) {
  lt_comm_op op = (lt_comm_op)w->move.op;
  lt_plan plan = {.op = op, .reduce = LT_COMM_NO_REDUCE, .dtype = LT_F32, .root = -1};
  w->parts = p->n > 0 ? lt_alloc(c, (size_t)(p->n + p->n_own) * sizeof *w->parts) : NULL;
  if (lt_assert(c, p->n > 0) && w->parts != NULL) {
    for (int k = 0; k < p->n; k++) w->parts[w->n_parts++] = lt_retain(p->parts[k]);
    for (int k = 0; k < p->n_own; k++) w->parts[w->n_parts + w->n_own++] = lt_retain(p->own[k]);
    for (int k = 0; k < w->n_parts + w->n_own; k++) keep(c, w, op, w->parts[k]);
    for (int k = 0; k < w->n_parts; k++) w->move.count += w->parts[k]->numel;
    w->bytes = w->move.count * (int64_t)lt_item_size(w->parts[0]);
    w->mark.op = op; /* for what reads it before the work is issued */
    plan.dtype = (lt_dtype)w->parts[0]->dtype;
    w->move.dtype = (int8_t)plan.dtype;
    w->device.at = w->parts[0]->storage->device;
    if (op != LT_COMM_ALL_REDUCE) count_shares(c, w);
    if (lt_ok(c)) w->device.way = lt_way_of(c, w->group, op, w->device.at);
    if (lt_ok(c)) prepare_parts(c, w);
  }
  plan.shape = lt_shape_of(1, &w->move.count);
  if (op != LT_COMM_ALL_GATHER) lt_work_set_reduction(c, w, LT_COMM_SUM, &plan);
  return lt_work_issue_move(c, w, &plan, at);
}

static lt_work *move_parts(lt_ctx *c, lt_group *g, lt_comm_op op, const lt_parts *p, double scale,
                           lt_origin at) {
  lt_work *w = lt_work_new(c, g, op);
  if (w == NULL) return NULL;
  w->move.scale = scale;
  return issue_parts(c, w, p, at);
}

lt_work *lt_comm_all_reduce_parts(lt_ctx *c, lt_group *g, int n, lt_tensor *const *parts,
                                  double scale, lt_origin at) {
  return move_parts(c, g, LT_COMM_ALL_REDUCE, &(lt_parts){.n = n, .parts = parts}, scale, at);
}

lt_work *lt_comm_all_gather_parts(lt_ctx *c, lt_group *g, const lt_parts *p, lt_origin at) {
  return move_parts(c, g, LT_COMM_ALL_GATHER, p, 1, at);
}

lt_work *lt_comm_reduce_scatter_parts(lt_ctx *c, lt_group *g, const lt_parts *p, double scale,
                                      lt_origin at) {
  return move_parts(c, g, LT_COMM_REDUCE_SCATTER, p, scale, at);
}

/* Weights as extents, and their sum in the order in which ranks add (shm_reduce.c). */

static int64_t extent_of(double weight) {
  int64_t bits;
  memcpy(&bits, &weight, sizeof bits);
  return bits;
}

/* Pairwise, by halves. The weights must be added as the tensors are, or a mean of equal values
   could differ from that value in its last bit. */
static double total_of(const int64_t *extents, int n) {
  double weight;
  int half = 1;
  if (n == 1) {
    memcpy(&weight, extents, sizeof weight);
    return weight;
  }
  while (2 * half < n) half *= 2;
  return total_of(extents, half) + total_of(extents + half, n - half);
}

/* The scale of a weighted mean, 1 / sum of weights. Further buckets of the same mean take it from
   the first one: a sum for each would be the same number again. */
static bool weigh(lt_ctx *c, lt_work *w) {
  (void)c;
  if (w->first == NULL) w->total = total_of(w->extents, w->group->size);
  double total = w->first != NULL ? w->first->total : w->total;
  w->move.scale = total != 0 ? 1 / total : 1;
  return true;
}

lt_work *lt_comm_mean_parts(lt_ctx *c, lt_group *g, int n, lt_tensor *const *parts, double weight,
                            lt_work *first, lt_origin at) {
  lt_work *w = lt_work_new(c, g, LT_COMM_ALL_REDUCE);
  if (w == NULL) return NULL;
  w->first = lt_retain(first);
  w->round.extent = extent_of(weight);
  w->round.extents = first == NULL ? w->extents : NULL;
  w->agreed = weigh;
  return issue_parts(c, w, &(lt_parts){.n = n, .parts = parts}, at);
}

double lt_work_total(const lt_work *w) { return w->total; }
