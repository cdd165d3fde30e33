/* runtime/comm/patience.c: how long a rank whose link has failed waits for an outcome that says
   more: the watchdog learns that a rank has died, and how, at about the same time. */
#include "comm/group.h"

enum { PATIENCE_NS = 2000000000 };

lt_progress lt_link_patience(const lt_group *g, lt_device_link *b) {
  const lt_heartbeat *h = g->root->heartbeat;
  if (b->broken_ns == 0) b->broken_ns = lt_now_ns();
  bool waits = h != NULL && !lt_heartbeat_is_over(h) && lt_now_ns() - b->broken_ns < PATIENCE_NS;
  return waits ? LT_PENDING : LT_BROKEN;
}
