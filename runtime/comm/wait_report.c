/* runtime/comm/wait_report.c: what the heartbeat says of a wait: for which collective, with which
   ranks, since when. The watchdog finds deadlocks by it. */
#include "comm/group.h"

static void set_bit(uint64_t *bits, int rank) { bits[rank / 64] |= (uint64_t)1 << rank % 64; }

void lt_wait_set(lt_heartbeat *h, const lt_group *g, const lt_mark *mark) {
  uint64_t bits[LT_COMM_MAX_RANKS / 64] = {0};
  if (g->id != 0)
    for (int r = 0; r < g->size; r++) set_bit(bits, g->world[r]);
  int words = (g->root->size + 63) / 64;
  /* Relaxed: the watchdog reads it together with the activity, which is stored with a release after
     it. */
  for (int k = 0; k < words; k++)
    atomic_store_explicit(&h->waiting_for[k], bits[k], memory_order_relaxed);
  lt_heartbeat_set_activity(h, mark);
}

/* A wait for a device has its collective behind it: what the rank did before is kept aside, and is
   its activity again afterwards. */
void lt_wait_report(lt_group *g, const lt_mark *mark) {
  lt_heartbeat *h = g->root->heartbeat;
  g->root->between.activity = lt_heartbeat_activity(h);
  lt_wait_set(h, g, mark);
  atomic_store_explicit(&h->waiting_since_ns, lt_now_ns(), memory_order_release);
}

void lt_wait_report_end(lt_group *root) {
  atomic_store_explicit(&root->heartbeat->waiting_since_ns, 0, memory_order_release);
  lt_heartbeat_set_activity(root->heartbeat, &root->between.activity);
}
