/* runtime/device/graph_constants.c: bytes that a device graph copies from the host in each launch:
   of tensors that the script makes of numbers (lt.arange), which stay what they were as all numbers
   do. */
#include "device/graph.h"

const void *lt_graph_constant(lt_ctx *c, lt_graph *g, const void *src, size_t bytes) {
  lt_graph_bytes *kept = lt_alloc(c, sizeof *kept);
  if (kept == NULL) return NULL;
  kept->memory = lt_pinned_take(c, g->device, bytes);
  if (kept->memory == NULL) {
    lt_free(c, kept, sizeof *kept);
    return NULL;
  }
  kept->next = g->bytes;
  g->bytes = kept;
  return memcpy(lt_pinned_memory(kept->memory), src, bytes);
}

void lt_graph_free_constants(lt_ctx *c, lt_graph *g) {
  lt_event at = {0};
  if (g->bytes != NULL) lt_order_record(c, g->device, g->stream, &at);
  while (g->bytes != NULL) {
    lt_graph_bytes *kept = g->bytes;
    g->bytes = kept->next;
    lt_pinned_give(kept->memory, at);
    lt_free(c, kept, sizeof *kept);
  }
}
