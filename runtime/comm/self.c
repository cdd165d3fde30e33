/* runtime/comm/self.c: the comm backend of a single rank: every collective is the identity.

   A script written for many ranks runs unchanged on one. There is one link for all groups: it has
   no state. */
#include <string.h>

#include "comm/group.h"
#include "tensor/dtype.h"

struct lt_comm_link {
  int unused;
};
static lt_comm_link the_link;

static lt_comm_link *self_open(const lt_comm_host *host, const lt_comm_place *place, char *text,
                               size_t size) {
  (void)host, (void)place, (void)text, (void)size;
  return &the_link;
}

static void self_close(lt_comm_link *link) { (void)link; }
static int self_rank(const lt_comm_link *link) { return (void)link, 0; }
static int self_ranks(const lt_comm_link *link) { return (void)link, 1; }

static lt_progress self_compare(lt_comm_link *link, lt_comm_compare *round) {
  (void)link;
  if (round->extents != NULL) round->extents[0] = round->extent;
  return LT_DONE;
}

/* Elements that come out: `counts` where an operation goes by it. */
static int64_t count_of(const lt_comm_move *m) {
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_GATHER:
    case LT_COMM_REDUCE_SCATTER:
    case LT_COMM_GATHER:
    case LT_COMM_SCATTER:
    case LT_COMM_ALL_TO_ALL: return m->counts[0];
    case LT_COMM_BARRIER:
    case LT_COMM_ALL_REDUCE:
    case LT_COMM_BROADCAST:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return m->count;
}

static lt_progress self_move(lt_comm_link *link, lt_comm_move *m) {
  (void)link;
  size_t bytes = (size_t)count_of(m) * lt_dtype_size((lt_dtype)m->dtype);
  if (m->in != NULL && m->out != NULL && m->in != m->out && bytes > 0) memcpy(m->out, m->in, bytes);
  return LT_DONE;
}

static lt_comm_link *self_split(lt_comm_link *parent, uint32_t group, int n, const int *members,
                                char *text, size_t size) {
  (void)group, (void)n, (void)members, (void)text, (void)size;
  return parent;
}

const lt_comm_ops lt_self_ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "self",
    .fixed_order = true,
    .open = self_open,
    .close = self_close,
    .rank = self_rank,
    .ranks = self_ranks,
    .compare = self_compare,
    .move = self_move,
    .split = self_split,
};
