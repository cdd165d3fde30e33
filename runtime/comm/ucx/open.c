/* runtime/comm/ucx/open.c: joining and leaving a world of ranks that an address brought together;
   links of fewer ranks, which share its connections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/ucx/bootstrap.h"

static lt_comm_link *link_new(const lt_comm_host *host, lt_ucx_world *w, int rank, int size,
                              char *text, size_t text_size) {
  lt_comm_link *l = calloc(1, sizeof *l);
  if (l == NULL) {
    snprintf(text, text_size, "out of memory for a link");
    return NULL;
  }
  l->p2p = (lt_p2p){.ops = &lt_ucx_messages, .host = host, .rank = rank, .size = size};
  l->world = w;
  return l;
}

static bool is_near(const lt_comm_link *l) {
  for (int k = 0; k < l->p2p.size; k++)
    if (!l->world->peers[l->members != NULL ? l->members[k] : k].is_here) return false;
  return true;
}

static lt_comm_link *open_world(const lt_comm_host *host, const lt_comm_place *place, char *text,
                                size_t text_size) {
  char why[LT_COMM_TEXT] = "";
  if (place->rank < 0 || place->rank >= place->size || place->size > LT_COMM_MAX_RANKS ||
      place->main_address == NULL) {
    snprintf(text, text_size,
             "needs a rank below the number of ranks (at most %d), and an address (MASTER_ADDR, "
             "MASTER_PORT): rank %d of %d, %s",
             LT_COMM_MAX_RANKS, place->rank, place->size,
             place->main_address != NULL ? place->main_address : "no address");
    return NULL;
  }
  int64_t began_ns = lt_bootstrap_now(); /* UCX's own start may take a while */
  lt_ucx_world *w = lt_ucx_world_new(place->rank, place->size, why);
  lt_comm_link *l = NULL;
  if (w != NULL && lt_ucx_meet(w, place, began_ns, why))
    l = link_new(host, w, place->rank, place->size, why, sizeof why);
  if (l != NULL) l->p2p.near = is_near(l);
  if (l == NULL && w != NULL) lt_ucx_world_close(w);
  if (l == NULL) snprintf(text, text_size, "%s", why);
  return l;
}

static void leave_link(lt_comm_link *l) {
  lt_p2p_end(l);
  free(l->members);
  free(l);
}

/* The connections end with the link of all ranks, the last one. */
static void close_link(lt_comm_link *l) {
  if (l->members == NULL) lt_ucx_world_close(l->world);
  leave_link(l);
}

/* Something is under way that never ends, and its memory is UCX's: that is not called any more. */
static void abandon_link(lt_comm_link *l) { leave_link(l); }

static lt_comm_link *split(lt_comm_link *parent, uint32_t group, int n, const int *members,
                           char *text, size_t text_size) {
  int rank = 0;
  while (members[rank] != parent->p2p.rank) rank++;
  lt_comm_link *l = link_new(parent->p2p.host, parent->world, rank, n, text, text_size);
  if (l == NULL) return NULL;
  l->group = group;
  l->members = calloc((size_t)n, sizeof *l->members);
  if (l->members == NULL) {
    snprintf(text, text_size, "out of memory for a link");
    leave_link(l);
    return NULL;
  }
  for (int k = 0; k < n; k++)
    l->members[k] = parent->members != NULL ? parent->members[members[k]] : members[k];
  l->p2p.near = is_near(l);
  return l;
}

static const lt_comm_ops ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "ucx",
    .fixed_order = true,
    .open = open_world,
    .close = close_link,
    .abandon = abandon_link,
    .rank = lt_p2p_rank,
    .ranks = lt_p2p_ranks,
    .compare = lt_p2p_compare,
    .move = lt_p2p_move,
    .split = split,
    .leave = leave_link,
    .compare_pair = lt_p2p_compare_pair,
};

/* "UCX 1.13.1". */
static const char *library(void) {
  static char text[64];
  const char *version = ucp_get_version_string();
  snprintf(text, sizeof text, "UCX %.*s", (int)strcspn(version, " "), version);
  return text;
}

LT_API bool lt_backend_open(const lt_host *h, lt_backend *out) {
  out->version = LT_BACKEND_VERSION;
  if (h->version != LT_BACKEND_VERSION) return true; /* ltrain reports it, with both numbers */
  out->about = library();
  out->comm = &ops;
  return true;
}
