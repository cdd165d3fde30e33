/* runtime/comm/links.c: a group's transports between devices, opened with the first movement of
   each.

   There is one for collectives, with all ranks of the group, and one of two ranks for the messages
   from one of them to the other. On a link, and on its stream, transfers are in order: those of
   collectives in an order that is the same on all ranks, those of a direction in the order in which
   they are sent. In which order a rank's messages to and from several ranks, and its collectives,
   follow each other, only that rank knows: on one link they could wait for each other in a circle.

   What a library needs to bring its members together (an id) is made by the link's rank 0 and goes
   to the others over the host's link, once all have agreed on the movement: then all are here. */
#include <stdio.h>
#include <string.h>

#include "comm/group.h"
#include "device/host.h"
#include "device/plugin.h"

const lt_comm_ops *lt_device_link_of(lt_ctx *c, lt_group *g, lt_device d) {
  const lt_device_ops *device = lt_device_kinds[d.kind];
  if (g->between.ops == NULL) g->between.ops = lt_backend_link(c, device);
  const lt_comm_ops *ops = g->between.ops;
  return ops != NULL && strcmp(ops->device, device->name) == 0 ? ops : NULL;
}

bool lt_device_link_take(lt_ctx *c, lt_group *g, lt_comm_op op, lt_device d) {
  lt_device_link *b = &g->between;
  char own[48], other[48];
  if (!b->taken) b->at = d;
  b->taken = true;
  if (lt_device_equal(b->at, d)) return true;
  return lt_fail(c, LT_EDEVICE, "%s: the link of this group is that of %s: the tensor is on %s",
                 lt_comm_op_name(op), lt_device_text(c, b->at, own, sizeof own),
                 lt_device_text(c, d, other, sizeof other));
}

/* ---- of messages ---- */

static bool is_before(const lt_device_link *a, const lt_device_link *b) {
  return a->from < b->from || (a->from == b->from && a->to < b->to);
}

/* Listed in an order that is the same on all ranks: in it they are closed, which two ranks may have
   to do together. */
lt_device_link *lt_device_link_for(lt_ctx *c, const lt_work *w) {
  lt_group *g = w->group;
  bool sends = w->move.op == LT_COMM_SEND;
  int from = sends ? g->rank : w->peer, to = sends ? w->peer : g->rank;
  const lt_device_link wanted = {.from = from, .to = to, .ops = g->between.ops};
  lt_device_link *before = &g->between;
  if (!w->pair) return before;
  while (before->next != NULL && !is_before(&wanted, before->next)) before = before->next;
  if (before != &g->between && !is_before(before, &wanted)) return before;
  lt_device_link *b = lt_alloc(c, sizeof *b);
  if (b == NULL) return NULL;
  *b = wanted;
  b->next = before->next;
  before->next = b;
  return b;
}

void lt_device_links_free(lt_ctx *c, lt_group *g) {
  for (lt_device_link *b; (b = g->between.next) != NULL; lt_free(c, b, sizeof *b))
    g->between.next = b->next;
}

/* ---- opening ---- */

static bool make_id(lt_device_link *b, char text[LT_COMM_TEXT]) {
  return b->ops->make_id == NULL || b->ops->make_id(b->id, text, LT_COMM_TEXT);
}

/* The id from rank 0 to all, or from the sender to the receiver. One transfer of LT_COMM_ID bytes,
   called again until it is done; b->handing keeps its state. */
static lt_progress hand_out(lt_work *w, lt_device_link *b, bool first) {
  lt_group *g = w->group;
  if (b->handing.count == 0) {
    if (first && !make_id(b, w->move.text)) return LT_BROKEN;
    b->handing = (lt_comm_move){.op = w->pair ? w->move.op : (uint8_t)LT_COMM_BROADCAST,
                                .reduce = LT_COMM_NO_REDUCE,
                                .dtype = LT_U8,
                                .root = w->pair ? w->peer : 0,
                                .count = LT_COMM_ID,
                                .in = first ? b->id : NULL,
                                .out = first ? NULL : b->id,
                                .chunk_bytes = g->chunk};
  }
  lt_progress p = g->ops->move(g->link, &b->handing);
  if (p == LT_BROKEN) memcpy(w->move.text, b->handing.text, LT_COMM_TEXT);
  return p;
}

lt_progress lt_device_link_open(lt_ctx *c, lt_work *w, lt_device_link *b) {
  const lt_group *g = w->group;
  const lt_device_ops *device = lt_device_kinds[b->at.kind];
  int rank = !w->pair ? g->rank : w->move.op == LT_COMM_SEND ? 0 : 1;
  lt_progress p = hand_out(w, b, rank == 0);
  if (p != LT_DONE) return p;
  if (device->open != NULL && !device->open(c, b->at.index)) return LT_BROKEN;
  char why[LT_COMM_TEXT] = "no reason given";
  lt_comm_place place = {.rank = rank,
                         .size = w->pair ? 2 : g->size,
                         .local_rank = -1,
                         .device = b->at.index,
                         .messages = w->pair,
                         .id = b->id};
  b->link = b->ops->open(lt_comm_host_here(), &place, why, sizeof why);
  if (b->link != NULL) return LT_DONE;
  snprintf(w->move.text, LT_COMM_TEXT, "%s: %.200s", b->ops->name, why);
  return LT_BROKEN;
}

/* ---- the end ---- */

/* A stream may be stuck in what is abandoned: nobody else gets it. */
static void end(lt_device_link *b, bool orderly) {
  if (b->link != NULL && orderly)
    b->ops->close(b->link);
  else if (b->link != NULL && b->ops->abandon != NULL)
    b->ops->abandon(b->link);
  if (b->stream != NULL && orderly) lt_stream_return(b->at, LT_STREAM_COMM, b->stream);
  b->link = NULL;
  b->stream = NULL;
}

void lt_device_links_end(lt_group *g, bool orderly) {
  for (lt_device_link *b = &g->between; b != NULL; b = b->next) end(b, orderly);
}
