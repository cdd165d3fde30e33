/* runtime/comm/shm_message.c: point-to-point messages over shared memory, through slots of their
   own. */
#include <string.h>

#include "comm/shm.h"

enum { CALL_BYTES = 1 << 20 }; /* moved in one call at most */

/* Elements in a piece. */
static int64_t piece_of(const shm_head *h, const lt_comm_move *m, int64_t size) {
  int64_t bytes = h->pair_piece;
  if (m->chunk_bytes > 0 && m->chunk_bytes < bytes) bytes = m->chunk_bytes;
  return bytes >= size ? bytes / size : 1;
}

lt_progress lt_shm_move_message(lt_comm_link *link, lt_comm_move *m) {
  bool sends = m->op == LT_COMM_SEND;
  int peer = m->root, sender = sends ? link->rank : peer, receiver = sends ? peer : link->rank;
  shm_head *h = link->home->head;
  shm_channel *own = shm_channel_of(h, link->seat[link->rank], link->world[peer], sends);
  shm_channel *other = shm_channel_of(h, link->seat[peer], link->world[link->rank], !sends);
  uint64_t *done = &link->pieces[sends ? peer : link->size + peer];
  int64_t size = (int64_t)link->home->host->item_size((lt_dtype)m->dtype);
  int64_t per = piece_of(h, m, size);
  uint64_t end = *done + (uint64_t)((m->count + per - 1) / per);
  uint64_t k = atomic_load_explicit(&own->moved, memory_order_relaxed);
  for (int64_t all = 0; k < end && all < CALL_BYTES; k++) {
    if (k >= shm_read(&other->moved) + (sends ? SHM_PAIR_SLOTS : 0)) break;
    int64_t from = (int64_t)(k - *done) * per;
    int64_t bytes = (m->count - from < per ? m->count - from : per) * size;
    char *slot = shm_pair_slot(h, link->seat[sender], link->world[receiver], k);
    if (sends)
      memcpy(slot, (const char *)m->in + from * size, (size_t)bytes);
    else
      memcpy((char *)m->out + from * size, slot, (size_t)bytes);
    all += bytes;
    m->moved += bytes;
    lt_shm_publish_to(link, peer, &own->moved, k + 1);
  }
  if (k < end) return LT_PENDING;
  *done = end;
  return LT_DONE;
}
