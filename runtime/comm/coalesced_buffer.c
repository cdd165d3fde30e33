/* runtime/comm/coalesced_buffer.c: the buffer of a coalesced collective (coalesced.c), and the
   place of each tensor in it. */
#include "comm/group.h"

static size_t bytes_of(const lt_tensor *t) { return (size_t)t->numel * lt_item_size(t); }

/* This rank's share, and where it begins among all, in bytes. */
static lt_parts_copy own_share(const lt_work *w, size_t *offset) {
  int each = w->n_parts / w->group->size, first = each * w->group->rank;
  *offset = 0;
  for (int k = 0; k < first; k++) *offset += bytes_of(w->parts[k]);
  if (w->n_own > 0) return (lt_parts_copy){w->parts + w->n_parts, w->n_own, NULL};
  return (lt_parts_copy){w->parts + first, each, NULL};
}

static size_t own_bytes(const lt_work *w) {
  return (size_t)w->counts[w->group->rank] * lt_dtype_size((lt_dtype)w->move.dtype);
}

/* The sum of one rank alone is what it adds. */
static bool has_result(const lt_work *w) {
  return w->mark.op == LT_COMM_REDUCE_SCATTER && w->group->size > 1;
}

size_t lt_parts_bytes(const lt_work *w) {
  return (size_t)w->bytes + (has_result(w) ? own_bytes(w) : 0);
}

void lt_parts_in_buffer(lt_work *w, char *buffer) {
  size_t offset;
  w->move.in = w->move.out = buffer;
  if (has_result(w)) w->move.out = buffer + w->bytes;
  if (w->mark.op != LT_COMM_ALL_GATHER) return;
  own_share(w, &offset);
  w->move.in = buffer + offset;
}

lt_parts_copy lt_parts_to_copy(const lt_work *w, bool back) {
  size_t offset;
  bool shares = w->mark.op == (back ? LT_COMM_REDUCE_SCATTER : LT_COMM_ALL_GATHER);
  lt_parts_copy all = {w->parts, w->n_parts, NULL}, run = shares ? own_share(w, &offset) : all;
  run.at = back ? w->move.out : (char *)(uintptr_t)w->move.in;
  return run;
}
