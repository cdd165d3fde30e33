/* runtime/comm/group.c: creation and destruction of groups: all ranks, subsets, one rank alone.

   A group is a list of ranks and a link of the transport. All groups of a process hang on one root,
   the group of all ranks, in the order in which they were made: they are driven together (queue.c)
   and closed together. Ids are computed, not distributed: every member derives the same from the
   same numbers. */
#include "comm/group.h"

#include <string.h>

static void arrays_free(lt_ctx *c, lt_group *g) {
  size_t n = (size_t)g->size;
  lt_free(c, g->world, n * sizeof *g->world);
  lt_free(c, g->sent, 4 * n * sizeof *g->sent);
  lt_free(c, g->marks, n * sizeof *g->marks);
}

/* Three lists of a number for each rank in one allocation: sent, received, and those that
   drive_pairs walks by, twice as long. */
static lt_group *group_new(lt_ctx *c, const lt_comm_ops *ops, lt_comm_link *link, lt_group *root) {
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
  lt_group *g = group_new(c, ops, link, NULL);
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

/* Take a group off the root's list. */
static void unlist(lt_group *g) {
  lt_group **link = &g->root->next;
  while (*link != NULL && *link != g) link = &(*link)->next;
  if (*link == g) *link = g->next;
  g->next = NULL;
}

/* Drops a link without a word to the other ranks: some of them may be dead, and an orderly close
   would wait for them. */
static void abandon(lt_group *g) {
  lt_device_link_end(g, false);
  if (g->link != NULL && g->ops->abandon != NULL) g->ops->abandon(g->link);
  g->link = NULL;
}

bool lt_group_is_over(const lt_group *g) {
  return g->heartbeat != NULL && lt_heartbeat_is_over(g->heartbeat);
}

/* A split group that this rank no longer uses. */
static void leave(lt_ctx *c, lt_group *g) {
  if (g->link == NULL) return;
  lt_device_wait_finish(c, g);
  bool over = lt_group_is_over(g);
  unlist(g);
  lt_device_link_end(g, !over);
  if (!over && g->ops->leave != NULL)
    g->ops->leave(g->link);
  else
    abandon(g);
  g->link = NULL;
}

static void group_free(lt_ctx *c, lt_group *g) {
  lt_group *root = g->root;
  if (root != g)
    leave(c, g);
  if (root == g) {
    lt_device_wait_end(c, g);
    abandon(g);
  }
  arrays_free(c, g);
  lt_free(c, g, sizeof *g);
  if (root != g) lt_group_release(c, root);
}

void lt_group_release(lt_ctx *c, lt_group *g) {
  if (g != NULL && --g->refs == 0) group_free(c, g);
}

void lt_group_finish(lt_ctx *c, lt_group *g) {
  for (lt_group *k = g->root; k != NULL; k = k->next) lt_device_wait_finish(c, k);
}

void lt_group_close(lt_ctx *c, lt_group *g) {
  lt_group *root = g->root;
  if (root->link == NULL) return;
  lt_group_finish(c, root);
  lt_device_wait_end(c, root);
  bool over = lt_group_is_over(root);
  const char *text = over ? root->heartbeat->outcome.text : "the ranks of this group have ended";
  lt_group_retain(root);
  /* Works first, then links: a work that is ended still reads its group's link. */
  for (lt_group *next, *k = root; k != NULL; k = next) {
    lt_group_retain(k); /* its last works may hold the last reference */
    lt_queue_end(c, k, LT_ERANKS, text);
    next = k->next;
    if (k != root) unlist(k); /* `next` stays right: it continues behind k */
    if (!over) lt_device_link_end(k, true);
    if (k != root && !over) k->ops->close(k->link);
    if (k != root && over) abandon(k);
    if (k != root) k->link = NULL;
    k->heartbeat = k == root ? k->heartbeat : NULL;
    lt_group_release(c, k);
  }
  if (over)
    abandon(root);
  else
    root->ops->close(root->link);
  root->link = NULL;
  root->heartbeat = NULL;
  lt_group_release(c, root);
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

/* Splitting: colors and keys of all ranks travel with the fingerprint. */

/* A color in the upper half and a key in the lower one: 64 bits are what a fingerprint carries. The
   casts through unsigned keep the sign of both. */
static int64_t pack(int color, int key) {
  return (int64_t)((uint64_t)(uint32_t)color << 32 | (uint32_t)key);
}
static int color_of(int64_t packed) { return (int)(packed >> 32); }
static int key_of(int64_t packed) { return (int)(uint32_t)packed; }

/* The ranks of a color in order of key, then rank. Returns how many. By insertion: a few hundred
   ranks at most, mostly in order. The same list on all ranks, from the same numbers: nothing more
   has to be agreed on. */
static int members_of(const int64_t *packed, int size, int color, int *members) {
  int n = 0;
  for (int r = 0; r < size; r++) {
    if (color_of(packed[r]) != color) continue;
    int at = n++;
    for (; at > 0 && key_of(packed[members[at - 1]]) > key_of(packed[r]); at--)
      members[at] = members[at - 1];
    members[at] = r;
  }
  return n;
}

static uint32_t mix(uint32_t h, uint32_t with) { return (h ^ with) * 16777619u; }

/* FNV-1a over the world ranks, and over the split that made it: groups of the same ranks differ.
   Never 0, which means all. G. Fowler, L. Noll, K. Vo (FNV-1a, 32 bits, by words in place of
   bytes). Ranks of another color may split at the same time: their ids must differ, too. */
static uint32_t id_of(const lt_group *parent, int n, const int *members) {
  uint32_t h = mix(mix(2166136261u, parent->id), (uint32_t)parent->seq);
  for (int k = 0; k < n; k++) h = mix(h, (uint32_t)parent->world[members[k]]);
  return h != 0 ? h : 1;
}

static lt_group *make_part(lt_ctx *c, lt_group *parent, int n, const int *members) {
  char text[LT_COMM_TEXT] = "";
  uint32_t id = id_of(parent, n, members);
  lt_comm_link *link = parent->ops->split(parent->link, id, n, members, text, sizeof text);
  if (link == NULL) {
    lt_fail(c, LT_ERANKS, "split: %s", text);
    return NULL;
  }
  lt_group *g = group_new(c, parent->ops, link, parent->root);
  if (g == NULL) {
    if (parent->ops->leave != NULL) parent->ops->leave(link);
    return NULL;
  }
  for (int k = 0; k < n; k++) g->world[k] = parent->world[members[k]];
  g->id = id;
  g->heartbeat = parent->heartbeat;
  g->crowded = parent->crowded;
  g->fixed_order = parent->fixed_order;
  g->chunk = parent->chunk;
  lt_group_retain(g->root);
  lt_group **last = &g->root->next; /* in order of making: so they are closed */
  while (*last != NULL) last = &(*last)->next;
  *last = g;
  return g;
}

/* As MPI_Comm_split: ranks of equal color form a group, in the order of their keys. -1 takes part
   in the agreement and in none of the groups. */
lt_group *lt_group_split(lt_ctx *c, lt_group *g, int color, int key) {
  if (color < -1) {
    lt_fail(c, LT_EARG, "split: a color is -1 (none) or from 0 on: %d", color);
    return NULL;
  }
  lt_work *w = lt_work_new(c, g, LT_COMM_SPLIT);
  if (w == NULL) return NULL;
  w->round.extent = pack(color, key);
  w->round.extents = w->extents;
  lt_plan plan = {.op = LT_COMM_SPLIT,
                  .reduce = LT_COMM_NO_REDUCE,
                  .dtype = LT_DTYPE_NONE,
                  .form = LT_FORM_VALUE,
                  .root = -1};
  w = lt_work_issue(c, w, &plan, (lt_origin){0});
  lt_group *part = NULL;
  if (w != NULL && lt_work_wait(c, w) && color >= 0) {
    size_t bytes = (size_t)g->size * sizeof(int);
    int *members = lt_alloc(c, bytes);
    if (members != NULL)
      part = make_part(c, g, members_of(w->extents, g->size, color, members), members);
    lt_free(c, members, bytes);
  }
  lt_work_release(c, w);
  return part;
}
