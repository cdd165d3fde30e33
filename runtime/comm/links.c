/* runtime/comm/links.c: a group's transport between devices, opened with its first collective
   there.

   What a library needs to bring its members together (an id) is made by the group's rank 0 and goes
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
  if (!b->taken) b->index = d.index;
  b->taken = true;
  if (b->index == d.index) return true;
  return lt_fail(c, LT_EDEVICE, "%s: the link of this group is that of %s: the tensor is on %s",
                 lt_comm_op_name(op),
                 lt_device_text(c, (lt_device){d.kind, (int16_t)b->index}, own, sizeof own),
                 lt_device_text(c, d, other, sizeof other));
}

static bool make_id(lt_device_link *b, char text[LT_COMM_TEXT]) {
  return b->ops->make_id == NULL || b->ops->make_id(b->id, text, LT_COMM_TEXT);
}

/* The id from rank 0 to all. One broadcast of LT_COMM_ID bytes, called again until it is done;
   b->handing keeps its state. */
static lt_progress hand_out(lt_group *g, char text[LT_COMM_TEXT]) {
  lt_device_link *b = &g->between;
  if (b->handing.op != LT_COMM_BROADCAST) {
    bool first = g->rank == 0;
    if (first && !make_id(b, text)) return LT_BROKEN;
    b->handing = (lt_comm_move){.op = LT_COMM_BROADCAST,
                                .reduce = LT_COMM_NO_REDUCE,
                                .dtype = LT_U8,
                                .root = 0,
                                .count = LT_COMM_ID,
                                .in = first ? b->id : NULL,
                                .out = first ? NULL : b->id,
                                .chunk_bytes = g->chunk};
  }
  lt_progress p = g->ops->move(g->link, &b->handing);
  if (p == LT_BROKEN) memcpy(text, b->handing.text, LT_COMM_TEXT);
  return p;
}

lt_progress lt_device_link_open(lt_ctx *c, lt_group *g, const lt_device_ops *device,
                                char text[LT_COMM_TEXT]) {
  lt_device_link *b = &g->between;
  lt_progress p = hand_out(g, text);
  if (p != LT_DONE) return p;
  if (device->open != NULL && !device->open(c, b->index)) return LT_BROKEN;
  char why[LT_COMM_TEXT] = "no reason given";
  lt_comm_place place = {.rank = g->rank,
                         .size = g->size,
                         .local_rank = -1,
                         .device = b->index,
                         .id = b->id};
  b->link = b->ops->open(lt_comm_host_here(), &place, why, sizeof why);
  if (b->link != NULL) return LT_DONE;
  snprintf(text, LT_COMM_TEXT, "%s: %.200s", b->ops->name, why);
  return LT_BROKEN;
}

void lt_device_link_end(lt_group *g, bool orderly) {
  lt_device_link *b = &g->between;
  if (b->link == NULL) return;
  if (orderly)
    b->ops->close(b->link);
  else if (b->ops->abandon != NULL)
    b->ops->abandon(b->link);
  b->link = NULL;
}
