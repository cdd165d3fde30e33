/* runtime/comm/ring.h: the ring buffer of a rank's last collectives, written by its main thread. */
#ifndef LT_COMM_RING_H
#define LT_COMM_RING_H

#include "comm/heartbeat.h"

/* Note a collective that is issued now; returns its number, from 1. */
uint64_t lt_ring_issue(lt_heartbeat *h, const lt_mark *mark, int64_t bytes);
/* All ranks are there; its data has moved. Nothing when the entry has been overwritten. */
void lt_ring_arrived(lt_heartbeat *h, uint64_t number);
void lt_ring_done(lt_heartbeat *h, uint64_t number, int64_t bytes);

#endif
