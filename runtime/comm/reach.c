/* runtime/comm/reach.c: how far a rank has got in each group, for whoever looks for deadlocks.

   A rank in a wait issues nothing before the wait ends, so what it has issued, said once, holds for
   the whole wait: together with what others wait for it tells who waits for whom, for certain. */
#include "comm/group.h"
#include "comm/words.h"

static bool is_pending(const lt_work *w) { return w->stage != LT_STAGE_DONE; }

/* Works of a queue that are not complete: collectives, or messages one way with a peer. */
static uint64_t pending(const lt_queue *q, int peer, lt_comm_op op) {
  uint64_t n = 0;
  for (const lt_work *w = q->first; w != NULL; w = w->next)
    n += is_pending(w) && (!w->pair || (w->peer == peer && w->mark.op == op));
  return n;
}

static void add(lt_reach *reach, const lt_group *g, int peer, lt_comm_op op, uint64_t seq) {
  if (reach->n < LT_ISSUED)
    reach->issued[reach->n] = (lt_issued){.group = g->id,
                                          .peer = (int16_t)(peer < 0 ? -1 : g->world[peer]),
                                          .op = (uint8_t)op,
                                          .seq = seq};
  reach->n++;
}

static void add_messages(lt_reach *reach, const lt_group *g, int peer, bool completed) {
  const uint64_t sent = g->sent[peer], received = g->received[peer];
  const lt_queue *q = &g->pairs;
  if (sent > 0)
    add(reach, g, peer, LT_COMM_SEND, sent - (completed ? pending(q, peer, LT_COMM_SEND) : 0));
  if (received > 0)
    add(reach, g, peer, LT_COMM_RECV, received - (completed ? pending(q, peer, LT_COMM_RECV) : 0));
}

void lt_group_reach(const lt_group *root, bool completed, lt_reach *reach) {
  reach->n = 0;
  for (const lt_group *g = root; g != NULL; g = g->next) {
    uint64_t open = completed ? pending(&g->queue, -1, LT_COMM_BARRIER) : 0;
    add(reach, g, -1, LT_COMM_BARRIER, g->seq - open);
    for (int r = 0; r < g->size; r++) add_messages(reach, g, r, completed);
  }
  if (reach->n > LT_ISSUED) reach->n = 0;
}

void lt_reach_say(lt_pulse *p, const lt_reach *reach) {
  const int64_t none = 0;
  lt_words_put(&p->reach.since_ns, &none, sizeof none);
  lt_words_put(&p->reach.n, &reach->n, sizeof reach->n);
  lt_words_put(p->reach.issued, reach->issued, (size_t)reach->n * sizeof *reach->issued);
  lt_words_put(&p->reach.since_ns, &reach->since_ns, sizeof none);
}

bool lt_reach_of(const lt_pulse *p, int64_t since_ns, lt_reach *reach) {
  lt_words_get(&reach->since_ns, &p->reach.since_ns, sizeof since_ns);
  if (since_ns == 0 || reach->since_ns != since_ns) return false;
  lt_words_get(&reach->n, &p->reach.n, sizeof reach->n);
  if (reach->n < 1 || reach->n > LT_ISSUED) return false;
  lt_words_get(reach->issued, p->reach.issued, (size_t)reach->n * sizeof *reach->issued);
  lt_words_get(&reach->since_ns, &p->reach.since_ns, sizeof since_ns);
  return reach->since_ns == since_ns;
}
