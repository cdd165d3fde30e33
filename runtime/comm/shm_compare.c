/* runtime/comm/shm_compare.c: rounds in which ranks publish and compare the fingerprints of their
   next collectives. */
#include <string.h>

#include "comm/shm.h"

/* Only parts that may have been used: data is not read before it is written. */
static void seat_clear(shm_home *home, shm_seat *seat) {
  memset((char *)seat, 0, (size_t)home->head->pair_data_at);
}

/* The first free seat of this rank, or -1. A seat is free again when its owner and all other
   members have left: then no rank reads it. */
static int free_seat(shm_home *home) {
  for (int k = 1; k < home->head->seats; k++) {
    shm_seat *seat = shm_seat_of(home->head, home->rank, k);
    if (home->seat[k].leaving &&
        atomic_load_explicit(&seat->left, memory_order_acquire) == home->seat[k].others) {
      /* Acquire, with the release of those who left: their reads of the seat are over before it
         is cleared. */
      seat_clear(home, seat);
      home->seat[k].taken = home->seat[k].leaving = false;
    }
    if (!home->seat[k].taken) return k;
  }
  return -1;
}

static void fill(shm_notice *to, const lt_comm_compare *round) {
  to->extent = round->extent;
  to->mark = *round->mark;
}

/* All notices of round n are there. */
static bool equal(const lt_comm_link *link, const lt_comm_compare *round, uint64_t n) {
  bool same = true;
  for (int k = 0; k < link->size; k++)
    same = same && link->seat[k]->notice[n & 1].mark.hash == round->mark->hash;
  return same;
}

/* They are there and equal, or all of them are returned. */
static lt_progress judge(lt_comm_link *link, lt_comm_compare *round, uint64_t n, bool same) {
  if (!same) {
    for (int k = 0; k < link->size; k++) round->marks[k] = link->seat[k]->notice[n & 1].mark;
    return LT_DIFFERENT;
  }
  for (int k = 0; k < link->size && round->extents != NULL; k++)
    round->extents[k] = link->seat[k]->notice[n & 1].extent;
  for (int k = 0; k < link->size && round->mark->op == LT_COMM_SPLIT; k++)
    link->offers[k] = link->seat[k]->notice[n & 1].seat;
  return LT_DONE;
}

/* The notice of round n is written: of many ranks the last compares all, for all. */
static void publish_notice(lt_comm_link *link, const lt_comm_compare *round, uint64_t n) {
  shm_barrier *barrier = shm_barrier_of(link);
  if (link->size <= SHM_FEW)
    lt_shm_publish(link, &shm_own(link)->notice[n & 1].round, n);
  else if (lt_shm_come(link, &barrier->published))
    lt_shm_publish(link, &barrier->judged, 2 * n + (equal(link, round, n) ? 0 : 1));
}

static bool all_published(lt_comm_link *link, uint64_t n) {
  if (link->size > SHM_FEW) return shm_read(&shm_barrier_of(link)->judged) / 2 == n;
  for (; link->checked < link->size; link->checked++)
    if (shm_read(&link->seat[link->checked]->notice[n & 1].round) != n) return false;
  return true;
}

lt_progress lt_shm_compare(lt_comm_link *link, lt_comm_compare *round) {
  uint64_t n = link->round + 1;
  if (round->state == NULL) {
    shm_notice *mine = &shm_own(link)->notice[n & 1];
    fill(mine, round);
    mine->seat = round->mark->op == LT_COMM_SPLIT ? free_seat(link->home) : -1;
    link->checked = 0;
    round->state = link;
    publish_notice(link, round, n);
  }
  if (!all_published(link, n)) return LT_PENDING;
  bool many = link->size > SHM_FEW;
  bool same = many ? shm_read(&shm_barrier_of(link)->judged) % 2 == 0 : equal(link, round, n);
  round->state = NULL;
  link->round = n;
  return judge(link, round, n, same);
}

/* The two channels of a message: this rank's end and the peer's. */
static shm_channel *end_of(const lt_comm_link *link, int owner, int other, bool sending) {
  return shm_channel_of(link->home->head, link->seat[owner], link->world[other], sending);
}

lt_progress lt_shm_compare_pair(lt_comm_link *link, int peer, lt_comm_compare *round) {
  bool sends = round->mark->op == LT_COMM_SEND;
  uint64_t *done = &link->rounds[sends ? peer : link->size + peer], n = *done + 1;
  shm_notice *mine = &end_of(link, link->rank, peer, sends)->notice[n & 1];
  if (round->state == NULL) {
    fill(mine, round);
    round->state = link;
    lt_shm_publish_to(link, peer, &mine->round, n);
  }
  shm_notice *theirs = &end_of(link, peer, link->rank, !sends)->notice[n & 1];
  if (shm_read(&theirs->round) != n) return LT_PENDING;
  round->state = NULL;
  *done = n;
  if (theirs->mark.hash != round->mark->hash) {
    round->marks[link->rank] = *round->mark;
    round->marks[peer] = theirs->mark;
    return LT_DIFFERENT;
  }
  if (round->extents != NULL) {
    round->extents[link->rank] = round->extent;
    round->extents[peer] = theirs->extent;
  }
  return LT_DONE;
}
