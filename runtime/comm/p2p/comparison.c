/* runtime/comm/p2p/comparison.c: what ranks send in a comparison beside their hashes: the size
   that they choose freely, and the data of a movement that are few bytes.

   Entries follow each other without gaps, so that a message is as short as what is said. All ranks
   send them, whatever they compare: ranks that disagree send messages of different lengths, each
   of which the receiver has memory for. */
#include "comm/p2p/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "comm/p2p/steps.h"

/* Data of one rank, bytes of all entries, and ranks, at most. */
enum { MOST_DATA = 1024, MOST_BYTES = 16384, MOST_RANKS = 64, BOUNDS = 2 };

/* The data follow, up to the next multiple of 8 bytes. */
typedef struct entry {
  int64_t extent;
  int64_t bytes; /* -1: none, or too many */
} entry;

bool lt_p2p_said_carries(int size) { return size <= MOST_RANKS; }

static int64_t most_data(int size) {
  int64_t share = MOST_BYTES / size - (int64_t)sizeof(entry);
  return share < MOST_DATA ? share / 8 * 8 : MOST_DATA;
}

size_t lt_p2p_said_most(int size, int n) {
  size_t each = sizeof(entry) + (size_t)most_data(size);
  return BOUNDS * sizeof(uint64_t) + (lt_p2p_said_carries(size) ? (size_t)n * each : 0);
}

lt_p2p_said *lt_p2p_said_new(int size) {
  return calloc(1, sizeof(lt_p2p_said) + lt_p2p_said_most(size, size));
}

static size_t entry_bytes(const entry *e, int size) {
  bool has = e->bytes > 0 && e->bytes <= most_data(size);
  return sizeof *e + (has ? ((size_t)e->bytes + 7) / 8 * 8 : 0);
}

static entry *first_of(const lt_p2p_said *said) {
  return (entry *)(uintptr_t)(said->message + BOUNDS);
}
static entry *next_of(const entry *e, int size) {
  return (entry *)((uintptr_t)e + entry_bytes(e, size));
}

void lt_p2p_said_begin(lt_p2p_said *said, int size, const lt_comm_compare *c) {
  said->message[0] = c->mark->hash;
  said->message[1] = ~c->mark->hash;
  said->bytes = lt_p2p_said_most(size, 0);
  if (!lt_p2p_said_carries(size)) return;
  bool has = c->data != NULL && c->bytes <= most_data(size);
  entry *own = first_of(said);
  *own = (entry){.extent = c->extent, .bytes = has ? c->bytes : -1};
  if (has && c->bytes > 0) memcpy(own + 1, c->data, (size_t)c->bytes);
  said->bytes += entry_bytes(own, size);
}

size_t lt_p2p_said_bytes(const lt_p2p_said *said, int size, int n) {
  const entry *e = first_of(said);
  if (!lt_p2p_said_carries(size)) n = 0;
  for (int k = 0; k < n; k++) e = next_of(e, size);
  return (size_t)((uintptr_t)e - (uintptr_t)said->message);
}

void lt_p2p_said_join(lt_p2p_said *said, const lt_p2p_said *came, int size, int n) {
  size_t head = BOUNDS * sizeof(uint64_t), bytes = lt_p2p_said_bytes(came, size, n) - head;
  for (int k = 0; k < BOUNDS; k++)
    if (came->message[k] > said->message[k]) said->message[k] = came->message[k];
  memcpy((char *)said->message + said->bytes, first_of(came), bytes);
  said->bytes += bytes;
}

bool lt_p2p_said_agrees(const lt_p2p_said *said) { return said->message[0] == ~said->message[1]; }

/* All entries, by rank. */
static void list(const lt_p2p *l, entry *all[LT_COMM_MAX_RANKS]) {
  entry *e = first_of(l->said);
  for (int k = 0; k < l->size; k++, e = next_of(e, l->size)) all[(l->rank + k) % l->size] = e;
}

void lt_p2p_said_extents(const lt_p2p *l, int64_t *extents) {
  entry *all[LT_COMM_MAX_RANKS];
  list(l, all);
  for (int r = 0; r < l->size; r++) extents[r] = all[r]->extent;
}

static void gather(const lt_p2p *l, const lt_comm_move *m, entry *const *all) {
  char *out = m->out;
  for (int r = 0; r < l->size; r++) {
    if (all[r]->bytes > 0) memcpy(out, all[r] + 1, (size_t)all[r]->bytes);
    out += all[r]->bytes;
  }
}

static void reduce(const lt_p2p *l, const lt_comm_move *m, entry *const *all) {
  const char *from[LT_COMM_MAX_RANKS];
  char *sums[LT_COMM_MAX_RANKS];
  for (int r = 0; r < l->size; r++) from[r] = sums[r] = (char *)(all[r] + 1);
  lt_p2p_add(l, m, from, sums, m->out, m->count);
}

bool lt_p2p_said_move(lt_p2p *l, lt_comm_move *m) {
  entry *all[LT_COMM_MAX_RANKS];
  bool gathers = m->op == LT_COMM_ALL_GATHER, has = gathers || m->op == LT_COMM_ALL_REDUCE;
  if (l->said == NULL || m->op == LT_COMM_SEND || m->op == LT_COMM_RECV) return false;
  int64_t item = (int64_t)l->host->item_size((lt_dtype)m->dtype);
  list(l, all);
  for (int r = 0; r < l->size; r++)
    has = has && all[r]->bytes == (gathers ? m->counts[r] : m->count) * item;
  if (has) (gathers ? gather : reduce)(l, m, all);
  for (int r = 0; r < l->size; r++)
    if (has) m->moved += all[r]->bytes;
  free(l->said);
  l->said = NULL;
  return has;
}
