/* runtime/comm/shm.c: the shared memory of the shm backend, and its links between ranks.

   Rounds, slots and bells are words that one rank writes and others read; no lock is ever held,
   so that a rank which is killed leaves none behind. */
#include "comm/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/round.h"

static const uint64_t magic = 0x6c747261696e0001u;

/* Untouched memory costs nothing, but it is address space: slots and seats get fewer and
   smaller with many ranks. */
static shm_head layout(int ranks) {
  enum { PAGE = 4096 };
  shm_head h = {.magic = magic, .ranks = ranks};
  h.seats = ranks <= 16 ? 64 : ranks <= 64 ? 16 : 4;
  h.piece = ranks <= 64 ? 256 << 10 : 64 << 10;
  h.pair_piece = ranks <= 4 ? 256 << 10 : ranks <= 8 ? 64 << 10 : ranks <= 64 ? 16 << 10 : PAGE;
  h.bell_at = lt_round_up((int64_t)sizeof h, SHM_LINE);
  h.seat_at = lt_round_up(h.bell_at + ranks * (int64_t)sizeof(shm_bell), PAGE);
  h.channel_at = lt_round_up((int64_t)sizeof(shm_seat), SHM_LINE);
  h.pair_data_at = lt_round_up(h.channel_at + 2 * ranks * (int64_t)sizeof(shm_channel), PAGE);
  h.data_at = h.pair_data_at + (int64_t)ranks * SHM_PAIR_SLOTS * h.pair_piece;
  h.seat_bytes = h.data_at + SHM_SLOTS * h.piece;
  return h;
}

size_t lt_shm_bytes(int ranks) {
  shm_head h = layout(ranks);
  return (size_t)(h.seat_at + (int64_t)ranks * h.seats * h.seat_bytes);
}

void lt_shm_init(void *memory, size_t bytes, int ranks) {
  (void)bytes;
  shm_head h = layout(ranks);
  memcpy(memory, &h, sizeof h); /* all else is zero in fresh memory, and should be */
}

/* Links. */

static void link_free(lt_comm_link *link) {
  shm_home *home = link->home;
  free(link->seat);
  free(link->world);
  free(link->rounds);
  free(link);
  if (--home->links > 0) return;
  free(home->seat);
  free(home);
}

static lt_comm_link *link_new(shm_home *home, int rank, int size) {
  lt_comm_link *link = calloc(1, sizeof *link);
  if (link == NULL) return NULL;
  size_t n = (size_t)size;
  home->links++;
  link->home = home;
  link->rank = rank;
  link->size = size;
  link->seat = calloc(n, sizeof(void *));
  link->world = calloc(2 * n, sizeof(int));
  link->rounds = calloc(4 * n, sizeof(uint64_t));
  if (link->seat == NULL || link->world == NULL || link->rounds == NULL) {
    link_free(link);
    return NULL;
  }
  link->offers = link->world + n;
  link->pieces = link->rounds + 2 * n;
  return link;
}

/* Offsets are stored in the segment, no pointers: processes may map it at different addresses. Seat
   0 of each rank is that of the group of all. */
static lt_comm_link *shm_open(const lt_comm_host *host, const lt_comm_place *place, char *text,
                              size_t size) {
  shm_head *h = place->memory;
  if (h == NULL || h->magic != magic || h->ranks != place->size ||
      place->memory_bytes < lt_shm_bytes(place->size)) {
    snprintf(text, size, "shm: no memory segment shared by %d ranks", place->size);
    return NULL;
  }
  shm_home *home = calloc(1, sizeof *home);
  if (home == NULL) return NULL;
  home->head = h;
  home->host = host;
  home->rank = place->rank;
  home->links = 1;
  home->seat = calloc((size_t)h->seats, sizeof *home->seat);
  lt_comm_link *link = home->seat != NULL ? link_new(home, place->rank, place->size) : NULL;
  if (link != NULL) {
    home->seat[0].taken = true;
    for (int r = 0; r < h->ranks; r++) link->world[r] = r, link->seat[r] = shm_seat_of(h, r, 0);
  } else {
    snprintf(text, size, "shm: out of memory");
  }
  if (--home->links == 0) {
    free(home->seat);
    free(home);
  }
  return link;
}

static int shm_rank(const lt_comm_link *link) { return link->rank; }
static int shm_ranks(const lt_comm_link *link) { return link->size; }
static void shm_local(const lt_comm_link *link, int *rank, int *size) {
  *rank = link->home->rank;
  *size = link->home->head->ranks;
}

/* A seat holds the counters and slots of one rank in one group. Each rank has offered a free one
   with its fingerprint (shm_compare.c), so all members know all seats of the new group already. */
static lt_comm_link *shm_split(lt_comm_link *parent, uint32_t group, int n, const int *members,
                               char *text, size_t size) {
  (void)group;
  shm_home *home = parent->home;
  int rank = -1;
  for (int k = 0; k < n; k++) {
    if (members[k] == parent->rank) rank = k;
    if (parent->offers[members[k]] >= 0) continue;
    snprintf(text, size, "rank %d cannot join another group: it is in %d (release some)",
             parent->world[members[k]], home->head->seats);
    return NULL;
  }
  lt_comm_link *link = link_new(home, rank, n);
  if (link == NULL) {
    snprintf(text, size, "out of memory");
    return NULL;
  }
  for (int k = 0; k < n; k++) {
    link->world[k] = parent->world[members[k]];
    link->seat[k] = shm_seat_of(home->head, link->world[k], parent->offers[members[k]]);
  }
  link->own_seat = parent->offers[parent->rank];
  home->seat[link->own_seat].taken = true;
  home->seat[link->own_seat].others = (uint32_t)n - 1;
  return link;
}

/* The seat is used again only when all members have left, as one of them may still be reading from
   it: they count that in each other's seats. */
static void shm_leave(lt_comm_link *link) {
  for (int k = 0; k < link->size; k++)
    if (k != link->rank) atomic_fetch_add_explicit(&link->seat[k]->left, 1, memory_order_acq_rel);
  link->home->seat[link->own_seat].leaving = true;
  link_free(link);
}

static void shm_close(lt_comm_link *link) { link_free(link); }

static const lt_comm_ops ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "shm",
    .fixed_order = true,
    .gathers = true,
    .open = shm_open,
    .close = shm_close,
    .abandon = shm_close,
    .rank = shm_rank,
    .ranks = shm_ranks,
    .local = shm_local,
    .compare = lt_shm_compare,
    .move = lt_shm_move,
    .relax = lt_shm_relax,
    .split = shm_split,
    .leave = shm_leave,
    .compare_pair = lt_shm_compare_pair,
};

const lt_comm_ops *lt_shm_ops(void) { return &ops; }
