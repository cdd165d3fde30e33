/* runtime/comm/group.c: creation and destruction of groups, and checks of their use.

   A group is a list of ranks and a link of the transport. All groups of a process hang on one root,
   the group of all ranks, in the order in which they were made: they are driven together (queue.c)
   and closed together (close.c). */
#include "comm/group.h"

#include <string.h>

static void arrays_free(lt_ctx *c, lt_group *g) {
  size_t n = (size_t)g->size;
  lt_device_links_free(c, g);
  lt_free(c, g->world, n * sizeof *g->world);
  lt_free(c, g->sent, 4 * n * sizeof *g->sent);
  lt_free(c, g->marks, n * sizeof *g->marks);
}

/* Three lists of a number for each rank in one allocation: sent, received, and those that
   drive_pairs walks by, twice as long. */
lt_group *lt_group_make(lt_ctx *c, const lt_comm_ops *ops, lt_comm_link *link, lt_group *root) {
  lt_group *g = lt_alloc(c, sizeof *g);
  if (g == NULL) return NULL;
  g->refs = 1;
  g->ops = ops;
  g->link = link;
  g->rank = ops->rank(link);
  g->size = ops->ranks(link);
  g->root = root != NULL ? root : g;
  g->chunk = (int64_t)1 << 30;
  g->queue.last = &g->queue.first;
  g->pairs.last = &g->pairs.first;
  size_t n = (size_t)g->size;
  g->world = lt_alloc(c, n * sizeof *g->world);
  g->sent = lt_alloc(c, 4 * n * sizeof *g->sent);
  g->marks = lt_alloc(c, n * sizeof *g->marks);
  if (!lt_ok(c)) {
    arrays_free(c, g);
    lt_free(c, g, sizeof *g);
    return NULL;
  }
  g->received = g->sent + n;
  g->walked = g->sent + 2 * n;
  for (int r = 0; r < g->size; r++) g->world[r] = r;
  return g;
}

lt_group *lt_group_new(lt_ctx *c, const lt_comm_ops *ops, lt_comm_link *link,
                       lt_heartbeat *heartbeat, bool crowded) {
  lt_group *g = lt_group_make(c, ops, link, NULL);
  if (g == NULL) return NULL;
  g->heartbeat = heartbeat;
  g->crowded = crowded;
  return g;
}

lt_group *lt_group_self(lt_ctx *c, lt_heartbeat *heartbeat) {
  return lt_group_new(c, &lt_self_ops, lt_self_ops.open(NULL, NULL, NULL, 0), heartbeat, false);
}

lt_group *lt_group_retain(lt_group *g) {
  if (g != NULL) g->refs++;
  return g;
}

void lt_group_unlist(lt_group *g) {
  lt_group **link = &g->root->next;
  while (*link != NULL && *link != g) link = &(*link)->next;
  if (*link == g) *link = g->next;
  g->next = NULL;
}

void lt_group_abandon(lt_group *g) {
  lt_device_links_end(g, false);
  if (g->link != NULL && g->ops->abandon != NULL) g->ops->abandon(g->link);
  g->link = NULL;
}

/* A split group that this rank no longer uses. */
static void leave(lt_ctx *c, lt_group *g) {
  if (g->link == NULL) return;
  lt_device_wait_finish(c, g);
  bool over = lt_group_is_over(g);
  lt_group_unlist(g);
  lt_device_links_end(g, !over);
  if (!over && g->ops->leave != NULL)
    g->ops->leave(g->link);
  else
    lt_group_abandon(g);
  g->link = NULL;
}

/* The root outlives its parts, which retain it: its link, on which theirs were made, is dropped
   last. */
static void group_free(lt_ctx *c, lt_group *g) {
  lt_group *root = g->root;
  if (root != g)
    leave(c, g);
  if (root == g) {
    lt_device_wait_end(c, g);
    lt_group_abandon(g);
  }
  arrays_free(c, g);
  lt_free(c, g, sizeof *g);
  if (root != g) lt_group_release(c, root);
}

void lt_group_release(lt_ctx *c, lt_group *g) {
  if (g != NULL && --g->refs == 0) group_free(c, g);
}

int lt_group_rank(const lt_group *g) { return g->rank; }
int lt_group_size(const lt_group *g) { return g->size; }
const char *lt_group_backend(const lt_group *g) { return g->ops->name; }
int lt_group_world_rank(const lt_group *g, int rank) { return g->world[rank]; }
void lt_group_set_chunk(lt_group *g, int64_t bytes) { g->chunk = bytes; }
void lt_group_set_fixed_order(lt_group *g, bool on) { g->fixed_order = on; }
void lt_group_set_crowded(lt_group *g, bool on) { g->crowded = on; }

void lt_group_begin(lt_group *g) {
  g->seq = 0;
  if (g->heartbeat != NULL) atomic_store(&g->heartbeat->ring_count, 0);
}

bool lt_group_fixed_order(const lt_group *g) { return g->fixed_order || g->ops->fixed_order; }

const char *lt_comm_refusal;

bool lt_group_check_rank(lt_ctx *c, const lt_group *g, lt_comm_op op, int rank) {
  if (rank >= 0 && rank < g->size) return true;
  return lt_fail(c, LT_EARG, "%s: there is no rank %d among %d", lt_comm_op_name(op), rank,
                 g->size);
}

bool lt_group_check_peer(lt_ctx *c, const lt_group *g, lt_comm_op op, int rank) {
  if (!lt_group_check_rank(c, g, op, rank)) return false;
  if (rank != g->rank) return true;
  return lt_fail(c, LT_EARG, "%s: rank %d is this rank itself", lt_comm_op_name(op), rank);
}

bool lt_group_alive(lt_ctx *c, const lt_group *g, lt_comm_op op) {
  if (!lt_ok(c)) return false;
  if (lt_comm_refusal != NULL && g->size > 1)
    return lt_fail(c, LT_EARG, "%s: %s", lt_comm_op_name(op), lt_comm_refusal);
  if (g->link == NULL)
    return lt_fail(c, LT_ERANKS, "%s: the ranks of this group have ended", lt_comm_op_name(op));
  if (lt_group_is_over(g))
    return lt_fail(c, LT_ERANKS, "%s", g->heartbeat->outcome.text);
  if (g->broken)
    return lt_fail(c, LT_ERANKS, "%s: an earlier collective of this group failed",
                   lt_comm_op_name(op));
  return true;
}
