/* runtime/comm/split.c: groups of subsets of the ranks, as MPI_Comm_split makes them.

   Colors and keys of all ranks travel with the fingerprint. Ids are computed, not distributed:
   every member derives the same from the same numbers. */
#include "comm/group.h"

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
  lt_group *g = lt_group_make(c, parent->ops, link, parent->root);
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
