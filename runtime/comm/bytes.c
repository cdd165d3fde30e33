/* runtime/comm/bytes.c: collectives of bytes whose number only the sender knows (serialised Lua
   values).

   The numbers travel with the fingerprint; those of a scatter, which one rank has for all, in a
   step of their own before the parts.

   Two movements, as a receiver cannot allocate for a size that it does not know; the size alone
   costs nothing where it travels with the fingerprint, which is sent in any case. */
#include <string.h>

#include "comm/group.h"

/* Each rank's bytes go to all: all_gather, and all_reduce of numbers that the caller adds up. */
static bool is_for_all(lt_comm_op op) {
  return op == LT_COMM_ALL_GATHER || op == LT_COMM_ALL_REDUCE;
}

static bool keep_sent(lt_ctx *c, lt_work *w, const void *bytes, int64_t n) {
  if (n == 0) return true;
  w->data.sent = lt_alloc(c, (size_t)n);
  if (w->data.sent == NULL) return false;
  w->data.sent_bytes = (size_t)n;
  if (bytes != NULL) memcpy(w->data.sent, bytes, (size_t)n);
  w->bytes = n;
  return true;
}

/* Scatter's root: all parts, one after the other, and their sizes. */
static bool keep_parts(lt_ctx *c, lt_work *w, const void *const *parts, const int64_t *sizes) {
  int64_t all = 0;
  for (int r = 0; r < w->group->size; r++) all += w->counts[r] = sizes[r];
  if (!keep_sent(c, w, NULL, all)) return false;
  char *to = w->data.sent;
  for (int r = 0; r < w->group->size; r++) {
    if (sizes[r] > 0) memcpy(to, parts[r], (size_t)sizes[r]);
    to += sizes[r];
  }
  return true;
}

static bool reserve(lt_ctx *c, lt_work *w, int64_t n) {
  if (n == 0) return true;
  w->data.got = lt_alloc(c, (size_t)n);
  w->data.got_bytes = w->data.got != NULL ? (size_t)n : 0;
  w->bytes = n;
  return w->data.got != NULL;
}

/* All sizes are here: allocate for the result, and describe the movement of the bytes. */
static bool sizes_known(lt_ctx *c, lt_work *w) {
  const lt_group *g = w->group;
  lt_comm_op op = w->mark.op;
  bool one = op == LT_COMM_BROADCAST; /* one rank sends */
  int sender = w->move.root;
  int64_t all = 0;
  for (int r = 0; r < g->size && !one; r++) all += w->counts[r] = w->extents[r];
  if (one) all = w->move.count = w->extents[sender];
  bool gets = is_for_all(op) || one || (op == LT_COMM_GATHER && g->rank == w->move.root);
  if (gets && !reserve(c, w, all)) return false;
  if (is_for_all(op)) w->move.op = LT_COMM_ALL_GATHER;
  w->move.in = w->data.sent;
  w->move.out = w->data.got;
  if (op == LT_COMM_BROADCAST && g->rank == sender) {
    if (all > 0) memcpy(w->data.got, w->data.sent, (size_t)all);
    w->move.out = NULL;
  }
  return true;
}

/* Scatter: first the sizes to all, then the parts. */
static bool send_sizes(lt_ctx *c, lt_work *w) {
  (void)c;
  w->move.op = LT_COMM_BROADCAST;
  w->move.dtype = LT_I64;
  w->move.count = w->group->size;
  w->move.in = w->group->rank == w->move.root ? w->counts : NULL;
  w->move.out = w->group->rank == w->move.root ? NULL : w->counts;
  return true;
}

static bool then_parts(lt_ctx *c, lt_work *w) {
  if (w->step != 1) return false;
  if (!reserve(c, w, w->counts[w->group->rank])) return false;
  w->move.op = LT_COMM_SCATTER;
  w->move.dtype = LT_U8;
  w->move.in = w->data.sent;
  w->move.out = w->data.got;
  return true;
}

lt_work *lt_comm_bytes(lt_ctx *c, lt_group *g, lt_comm_op op, int root, const void *bytes,
                       int64_t n, const void *const *parts, const int64_t *part_bytes,
                       lt_origin at) {
  lt_work *w = lt_work_new(c, g, op);
  if (w == NULL) return NULL;
  bool rooted = !is_for_all(op);
  if (rooted) lt_group_check_rank(c, g, op, root);
  lt_plan plan = {.op = op,
                  .reduce = LT_COMM_NO_REDUCE,
                  .dtype = LT_DTYPE_NONE,
                  .form = LT_FORM_VALUE,
                  .root = rooted ? root : -1};
  w->move.root = plan.root;
  w->agreed = sizes_known;
  bool gives = is_for_all(op) || op == LT_COMM_GATHER ||
               (op == LT_COMM_BROADCAST && root == g->rank);
  if (op == LT_COMM_SCATTER) {
    w->agreed = send_sizes;
    w->next_step = then_parts;
    if (lt_ok(c) && root == g->rank) keep_parts(c, w, parts, part_bytes);
  } else if (lt_ok(c) && gives && keep_sent(c, w, bytes, n)) {
    w->round.extent = n;
    if (is_for_all(op)) w->round.data = w->data.sent;
    w->round.bytes = n;
  }
  w->round.extents = op == LT_COMM_SCATTER ? NULL : w->extents;
  return lt_work_issue(c, w, &plan, at);
}

const void *lt_work_bytes(const lt_work *w, int r, int64_t *n) {
  const lt_group *g = w->group;
  *n = 0;
  if (w->stage != LT_STAGE_DONE || w->failed != LT_OK || w->data.got == NULL) return NULL;
  lt_comm_op op = w->mark.op;
  if (!is_for_all(op) && op != LT_COMM_GATHER) {
    *n = (int64_t)w->data.got_bytes;
    return w->data.got;
  }
  size_t from = 0;
  for (int k = 0; k < r && k < g->size; k++) from += (size_t)w->counts[k];
  *n = w->counts[r];
  return w->data.got + from;
}
