/* runtime/comm/tree_reductions.c: reductions between devices in the order of the binary tree: the
   same bits on 1, 2 and 4 ranks, over a transport that would add in an order of its own; and
   reductions that the transport lacks.

   Each rank gets its shard of what all have (all_to_all), adds it on the device, T(lo, hi) =
   T(lo, m) + T(m, hi) with m = lo + the largest power of two below hi - lo, and sends it to all
   (all_gather): as many bytes as in a ring. */
#include <string.h>

#include "comm/group.h"

bool lt_ordered_wanted(const lt_work *w) {
  const lt_group *g = w->group;
  if (w->device.way != LT_WAY_LINK || g->size == 1) return false;
  if (w->move.op != LT_COMM_ALL_REDUCE && w->move.op != LT_COMM_REDUCE_SCATTER) return false;
  const lt_comm_ops *link = g->between.ops;
  lt_dtype dtype = (lt_dtype)w->move.dtype;
  if (link->reduces != NULL && !link->reduces(dtype, (lt_comm_reduce)w->move.reduce)) return true;
  return g->fixed_order && !link->fixed_order;
}

lt_storage *lt_device_buffer(lt_ctx *c, const lt_work *w, size_t bytes) {
  lt_storage *s = lt_storage_new(c, w->device.at, bytes);
  if (s == NULL || lt_order_before(c, s, w->move.stream, true)) return s;
  lt_storage_release(c, s);
  return NULL;
}

static int64_t item_of(const lt_work *w) { return (int64_t)lt_dtype_size((lt_dtype)w->move.dtype); }

/* T(lo, hi) into `to`, of operands of n elements one after the other, which it overwrites. The
   split depends on the number of ranks alone, and sums of 2 ranks are subtrees of those of 4: so a
   run on more ranks with the same batch gives the same bits. */
static bool tree(lt_ctx *c, const lt_work *w, int lo, int hi, void *to) {
  if (hi - lo == 1) return true;
  int half = 1;
  while (half * 2 < hi - lo) half *= 2;
  int64_t n = w->counts[w->group->rank], step = n * item_of(w);
  char *left = (char *)w->device.operands->data + lo * step, *right = left + half * step;
  const lt_device_ops *ops = lt_device_kinds[w->device.at.kind];
  return tree(c, w, lo, lo + half, left) && tree(c, w, lo + half, hi, right) &&
         ops->combine(c, w->move.device, w->move.stream, to, left, right, n,
                      (lt_dtype)w->move.dtype, (lt_comm_reduce)w->move.reduce);
}

/* The shards are here: add them; of an all_reduce, hand out the sum. */
static bool add(lt_ctx *c, lt_work *w) {
  bool all = w->mark.op != LT_COMM_REDUCE_SCATTER; /* also for the root of a reduce */
  void *shard = all ? w->device.operands->data : w->device.sum;
  w->move.out = w->device.sum;
  w->move.count = w->in == NULL ? w->bytes / item_of(w) : w->in->numel;
  if (w->step > 1) return false;
  if (w->counts[w->group->rank] > 0 && !tree(c, w, 0, w->group->size, shard)) return false;
  memcpy(w->counts, w->in_counts, (size_t)w->group->size * sizeof *w->counts);
  w->move.op = LT_COMM_ALL_GATHER;
  w->move.in = shard;
  w->move.after = (lt_event){0}; /* the sums come first */
  w->device.begun = false;
  return all;
}

void lt_ordered_begin(lt_ctx *c, lt_work *w) {
  const lt_group *g = w->group;
  int64_t shard = (w->move.count + g->size - 1) / g->size, left = w->move.count;
  if (w->move.op == LT_COMM_ALL_REDUCE)
    for (int r = 0; r < g->size; left -= w->counts[r++]) w->counts[r] = shard < left ? shard : left;
  int64_t own = w->counts[g->rank];
  w->device.operands = lt_device_buffer(c, w, (size_t)(g->size * own * item_of(w)));
  if (w->device.operands == NULL) return;
  w->move.count = 0;
  for (int r = 0; r < g->size; r++) {
    w->in_counts[r] = w->counts[r];
    w->counts[r] = own;
    if (w->in_counts[r] > w->move.count) w->move.count = w->in_counts[r];
  }
  w->device.sum = w->move.out;
  w->move.op = LT_COMM_ALL_TO_ALL;
  w->move.out = w->device.operands->data;
  w->next_step = add;
}
