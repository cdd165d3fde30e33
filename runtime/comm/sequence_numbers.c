/* runtime/comm/sequence_numbers.c: how many collectives a rank has issued in each group, to find
   deadlocks.

   A rank in a wait issues nothing before the wait ends, so what it has issued, said once, holds for
   the whole wait: together with what others wait for it shows which rank waits for which, for
   certain. */
#include "comm/group.h"
#include "comm/atomic_copy.h"

static bool is_pending(const lt_work *w) { return w->stage != LT_STAGE_DONE; }

/* Works of a queue that are not complete: collectives, or messages one way with a peer. */
static uint64_t pending(const lt_queue *q, int peer, lt_comm_op op) {
  uint64_t n = 0;
  for (const lt_work *w = q->first; w != NULL; w = w->next)
    n += is_pending(w) && (!w->pair || (w->peer == peer && w->mark.op == op));
  return n;
}

static void add(lt_issued_list *list, const lt_group *g, int peer, lt_comm_op op, uint64_t seq) {
  if (list->n < LT_ISSUED)
    list->entries[list->n] = (lt_issued){.group = g->id,
                                         .peer = (int16_t)(peer < 0 ? -1 : g->world[peer]),
                                         .op = (uint8_t)op,
                                         .seq = seq};
  list->n++;
}

static void add_messages(lt_issued_list *list, const lt_group *g, int peer, bool completed) {
  const uint64_t sent = g->sent[peer], received = g->received[peer];
  const lt_queue *q = &g->pairs;
  if (sent > 0)
    add(list, g, peer, LT_COMM_SEND, sent - (completed ? pending(q, peer, LT_COMM_SEND) : 0));
  if (received > 0)
    add(list, g, peer, LT_COMM_RECV, received - (completed ? pending(q, peer, LT_COMM_RECV) : 0));
}

void lt_group_issued(const lt_group *root, bool completed, lt_issued_list *list) {
  list->n = 0;
  for (const lt_group *g = root; g != NULL; g = g->next) {
    uint64_t open = completed ? pending(&g->queue, -1, LT_COMM_BARRIER) : 0;
    add(list, g, -1, LT_COMM_BARRIER, g->seq - open);
    for (int r = 0; r < g->size; r++) add_messages(list, g, r, completed);
  }
  if (list->n > LT_ISSUED) list->n = 0;
}

void lt_heartbeat_set_issued(lt_heartbeat *h, const lt_issued_list *list) {
  const int64_t none = 0;
  lt_string_table_put(&h->issued.since_ns, &none, sizeof none);
  lt_string_table_put(&h->issued.n, &list->n, sizeof list->n);
  lt_string_table_put(h->issued.entries, list->entries, (size_t)list->n * sizeof *list->entries);
  lt_string_table_put(&h->issued.since_ns, &list->since_ns, sizeof none);
}

bool lt_heartbeat_issued(const lt_heartbeat *h, int64_t since_ns, lt_issued_list *list) {
  lt_string_table_get(&list->since_ns, &h->issued.since_ns, sizeof since_ns);
  if (since_ns == 0 || list->since_ns != since_ns) return false;
  lt_string_table_get(&list->n, &h->issued.n, sizeof list->n);
  if (list->n < 1 || list->n > LT_ISSUED) return false;
  lt_string_table_get(list->entries, h->issued.entries, (size_t)list->n * sizeof *list->entries);
  lt_string_table_get(&list->since_ns, &h->issued.since_ns, sizeof since_ns);
  return list->since_ns == since_ns;
}
