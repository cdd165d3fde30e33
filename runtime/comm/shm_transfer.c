/* runtime/comm/shm_transfer.c: data of collectives moved through the ranks' slots, in pieces.

   A collective is cut into pieces that fit the caches. For each piece a rank puts what others need
   into its slot, reduces the share that is its own (it reads the shares of the others from their
   slots and its own from its tensor), and gets what others made. Two ranks, and up to SHM_FEW with
   little data, reduce everything for themselves: what crosses between the cores is the same, and
   a phase is saved. More ranks with little data do as shm_small.c says. Counters say how far each
   rank is; a rank puts up to SHM_SLOTS pieces ahead of the slowest reader. A call does a few pieces
   and returns: nothing here waits.

   Progress of a rank is three counters that only grow, over all collectives: pieces put, reduced
   and got. Each is written by its owner alone, with release order after the data, and read by
   others with acquire order: whoever sees the counter sees the data, and no lock is needed (L.
   Lamport, "Proving the correctness of multiprocess programs", 1977, for a queue of one writer). A
   slot is written again only when every rank's `got` has passed it. */
#include <string.h>

#include "base/round.h"
#include "comm/shm.h"

enum {
  CALL_BYTES = 2 << 20,  /* moved in one call at most, about 0.3 ms */
  SCALE_BYTES = 16 << 10 /* of a sum in parts that are scaled while they are in the first cache */
};

/* What a rank gives, or gets: memory in a row, or parts one after the other. */
typedef struct side {
  char *data;
  const lt_comm_part *parts; /* NULL: in a row */
  int64_t first;             /* element of the parts where it begins */
} side;

/* One collective as this file sees it. */
typedef struct job {
  lt_comm_link *link;
  const lt_comm_move *m;
  shm_head *head;
  side in, out;
  int64_t size; /* of an element */
  int64_t per;  /* elements of a whole piece, of a whole share where shares go by rank */
  uint64_t pieces;
  bool puts, reduces, gets; /* what this rank does */
  bool whole;               /* all_reduce: each rank adds everything */
} job;

static int64_t at_least_one(int64_t n) { return n > 0 ? n : 1; }

static int64_t largest(const int64_t *counts, int n) {
  int64_t most = 0;
  for (int k = 0; k < n; k++) most = counts[k] > most ? counts[k] : most;
  return most;
}

static int64_t first_of(const int64_t *counts, int rank) {
  int64_t sum = 0;
  for (int k = 0; k < rank; k++) sum += counts[k];
  return sum;
}

/* Elements a rank when a piece of `bytes` has a share for each: full cache lines if they fit.
 */
static int64_t share_of(int64_t bytes, int64_t ranks, int64_t size) {
  int64_t share = bytes / ranks;
  if (share >= SHM_LINE) share -= share % SHM_LINE;
  return at_least_one(share / size);
}

/* The parts are what all have together; `own`, or a range of them, is this rank's share. */
static void find_sides(job *j) {
  const lt_comm_move *m = j->m;
  j->in = (side){(char *)(uintptr_t)m->in, NULL, 0};
  j->out = (side){m->out, NULL, 0};
  if (m->n_parts == 0) return;
  side all = {NULL, m->parts, 0}, own = {NULL, m->own, 0};
  if (m->n_own == 0 && m->op != LT_COMM_ALL_REDUCE)
    own = (side){NULL, m->parts, first_of(m->counts, j->link->rank)};
  j->in = m->op == LT_COMM_ALL_GATHER ? own : all;
  j->out = m->op == LT_COMM_REDUCE_SCATTER ? own : all;
}

/* The same on all ranks, which derive it from numbers they have agreed on: as many pieces, and
   shares that meet at the same elements. What differs is `puts` and `gets`, by the root. */
static job job_of(lt_comm_link *link, const lt_comm_move *m) {
  shm_head *h = link->home->head;
  job j = {.link = link,
           .m = m,
           .head = h,
           .size = (int64_t)link->home->host->item_size((lt_dtype)m->dtype)};
  find_sides(&j);
  int64_t piece = lt_least(h->piece, m->chunk_bytes > 0 ? m->chunk_bytes : h->piece);
  int64_t count = 0;
  bool root = m->root == link->rank;
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_REDUCE:
      count = m->count;
      j.whole = link->size <= 2 || count * j.size <= lt_least(piece, SHM_SMALL);
      j.puts = j.reduces = true;
      j.gets = !j.whole;
      j.per = j.whole ? piece / j.size : share_of(piece, link->size, j.size) * link->size;
      break;
    case LT_COMM_REDUCE_SCATTER:
      j.puts = j.reduces = true;
      count = largest(m->counts, link->size);
      j.per = share_of(piece, link->size, j.size);
      break;
    case LT_COMM_BROADCAST:
      j.puts = root, j.gets = !root;
      count = m->count;
      j.per = piece / j.size;
      break;
    case LT_COMM_ALL_GATHER:
      j.puts = j.gets = true;
      count = largest(m->counts, link->size);
      j.per = piece / j.size;
      break;
    case LT_COMM_GATHER:
      j.puts = !root, j.gets = root;
      count = largest(m->counts, link->size);
      j.per = piece / j.size;
      break;
    case LT_COMM_SCATTER:
      j.puts = root, j.gets = !root;
      count = largest(m->counts, link->size);
      j.per = share_of(piece, link->size, j.size);
      break;
    case LT_COMM_ALL_TO_ALL:
      j.puts = j.gets = true;
      count = m->count;
      j.per = share_of(piece, link->size, j.size);
      break;
    case LT_COMM_BARRIER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  j.per = at_least_one(j.per);
  j.pieces = (uint64_t)((count + j.per - 1) / j.per);
  return j;
}

/* Part of an array: elements from..from+n-1. */
typedef struct span {
  int64_t from, n;
} span;

static span cut(int64_t from, int64_t n, int64_t end) {
  if (from > end) from = end;
  return (span){from, lt_least(n, end - from)};
}

/* all_reduce: the share of `rank` in piece k; slots hold shares side by side. Shares begin at cache
   lines: two ranks that wrote the same line would send it to and fro (false sharing). */
static span share(const job *j, uint64_t k, int rank) {
  span piece = cut((int64_t)k * j->per, j->per, j->m->count);
  int64_t line = SHM_LINE / j->size, each = (piece.n + j->link->size - 1) / j->link->size;
  each = (each + line - 1) / line * line;
  span s = cut(rank * each, each, piece.n);
  return (span){piece.from + s.from, s.n};
}

/* Piece k of a part of `count` elements, from its own beginning. */
static span piece_of(const job *j, uint64_t k, int64_t count) {
  return cut((int64_t)k * j->per, j->per, count);
}
static span part(const job *j, uint64_t k, int rank) { return piece_of(j, k, j->m->counts[rank]); }

static char *slot_of(const job *j, int rank, uint64_t k) {
  return shm_slot(j->head, j->link->seat[rank], j->link->piece + k);
}

/* Where element `at` of a side lies; *n: at most so many follow it there. */
static char *find(const job *j, const side *s, int64_t at, int64_t *n) {
  if (s->parts == NULL) return s->data + at * j->size;
  const lt_comm_part *p = s->parts;
  for (at += s->first; at >= p->count;) at -= p++->count;
  *n = lt_least(*n, p->count - at);
  return (char *)p->data + at * j->size;
}

/* n elements from `from` on of this rank's input to a slot, and from a slot to its output. */
static void copy_in(const job *j, char *to, int64_t from, int64_t n) {
  for (int64_t here; n > 0; n -= here, from += here, to += here * j->size) {
    here = n;
    const char *data = find(j, &j->in, from, &here);
    memcpy(to, data, (size_t)(here * j->size));
  }
}

static void copy_out(const job *j, int64_t to, const char *from, int64_t n) {
  for (int64_t here; n > 0; n -= here, to += here, from += here * j->size) {
    here = n;
    char *data = find(j, &j->out, to, &here);
    memcpy(data, from, (size_t)(here * j->size));
  }
}

/* What this rank gives itself. */
static void copy_own(const job *j, int64_t to, int64_t from, int64_t n) {
  for (int64_t here; n > 0; n -= here, to += here, from += here) {
    here = n;
    const char *data = find(j, &j->in, from, &here);
    char *own = find(j, &j->out, to, &here);
    if (own != data) memcpy(own, data, (size_t)(here * j->size));
  }
}

/* Where the share of `rank` is in a slot of an all_reduce. */
static int64_t slot_offset(const job *j, uint64_t k, int rank) {
  return (share(j, k, rank).from - (int64_t)k * j->per) * j->size;
}

/* Phase 1: copy what others need of piece k into this rank's slot. Returns elements moved. */
static int64_t put(const job *j, uint64_t k) {
  const lt_comm_link *link = j->link;
  const lt_comm_move *m = j->m;
  char *slot = slot_of(j, link->rank, k);
  int64_t moved = 0;
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_REDUCE:
      for (int r = 0; r < link->size && !j->whole; r++) {
        span s = share(j, k, r);
        if (r == link->rank) continue;
        copy_in(j, slot + slot_offset(j, k, r), s.from, s.n);
        moved += s.n;
      }
      if (!j->whole) break;
      /* fall through */
    case LT_COMM_BROADCAST: {
      span s = cut((int64_t)k * j->per, j->per, m->count);
      copy_in(j, slot, s.from, s.n);
      moved = s.n;
      break;
    }
    case LT_COMM_REDUCE_SCATTER:
    case LT_COMM_SCATTER:
    case LT_COMM_ALL_TO_ALL: {
      const int64_t *to = m->op == LT_COMM_ALL_TO_ALL ? m->in_counts : m->counts;
      for (int r = 0; r < link->size; r++) {
        span s = piece_of(j, k, to[r]);
        if (r == link->rank) continue;
        copy_in(j, slot + r * j->per * j->size, first_of(to, r) + s.from, s.n);
        moved += s.n;
      }
      break;
    }
    case LT_COMM_ALL_GATHER:
    case LT_COMM_GATHER: {
      span s = part(j, k, link->rank);
      copy_in(j, slot, s.from, s.n);
      moved = s.n;
      break;
    }
    case LT_COMM_BARRIER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return moved;
}

/* Operands of this rank's share: `own` elements into what it has itself, elsewhere in slots. */
static void operands(const job *j, uint64_t k, int64_t own, int64_t offset,
                     const void *operand[LT_COMM_MAX_RANKS]) {
  for (int r = 0; r < j->link->size; r++) operand[r] = slot_of(j, r, k) + offset;
  operand[j->link->rank] = j->in.data + own * j->size;
}

/* The sums of parts, from one part to the next. `to`: where they go, one after the other; NULL:
   they replace this rank's input, which two operands allow. */
static void reduce_parts(const job *j, uint64_t k, int64_t from, int64_t n, int64_t offset,
                         char *to) {
  const lt_comm_move *m = j->m;
  const lt_comm_link *link = j->link;
  const void *operand[LT_COMM_MAX_RANKS];
  for (int64_t at = 0, here; at < n; at += here) {
    here = lt_least(n - at, SCALE_BYTES / j->size);
    char *own = find(j, &j->in, from + at, &here);
    for (int r = 0; r < link->size; r++) operand[r] = slot_of(j, r, k) + offset + at * j->size;
    operand[link->rank] = own;
    char *out = to != NULL ? to + at * j->size : own;
    lt_shm_reduce(link, operand, 0, here, (lt_dtype)m->dtype, m->reduce, out);
    if (m->scale != 1) link->home->host->scale(out, here, (lt_dtype)m->dtype, m->scale);
  }
}

/* The sum of this rank's share. It goes into the slot first: the tensor may be input and output.
   Phase 2. The order of the operands is that of the ranks, not of their arrival: sums have the same
   bits in each run. */
static int64_t reduce(const job *j, uint64_t k) {
  const lt_comm_move *m = j->m;
  const lt_comm_link *link = j->link;
  const void *operand[LT_COMM_MAX_RANKS];
  char *slot = slot_of(j, link->rank, k);
  if (m->op == LT_COMM_REDUCE_SCATTER) {
    span s = part(j, k, link->rank);
    int64_t own = first_of(m->counts, link->rank) + s.from, offset = link->rank * j->per * j->size;
    if (m->n_parts > 0) {
      reduce_parts(j, k, own, s.n, offset, slot + offset);
      copy_out(j, s.from, slot + offset, s.n);
      return s.n;
    }
    operands(j, k, own, offset, operand);
    lt_shm_reduce(link, operand, 0, s.n, (lt_dtype)m->dtype, m->reduce,
                  j->out.data + s.from * j->size);
    return s.n;
  }
  span s = share(j, k, link->rank);
  int64_t offset = slot_offset(j, k, link->rank);
  if (m->n_parts > 0) {
    reduce_parts(j, k, s.from, s.n, offset, slot + offset);
  } else {
    operands(j, k, s.from, offset, operand);
    lt_shm_reduce(link, operand, 0, s.n, (lt_dtype)m->dtype, m->reduce, slot + offset);
  }
  copy_out(j, s.from, slot + offset, s.n);
  return s.n;
}

/* Phase 3: copy what the others have put, or reduced, from their slots into this rank's output. */
static int64_t get(const job *j, uint64_t k) {
  const lt_comm_link *link = j->link;
  const lt_comm_move *m = j->m;
  int64_t moved = 0;
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_REDUCE:
      for (int r = 0; r < link->size; r++) {
        span s = share(j, k, r);
        if (r == link->rank) continue;
        copy_out(j, s.from, slot_of(j, r, k) + slot_offset(j, k, r), s.n);
        moved += s.n;
      }
      break;
    case LT_COMM_BROADCAST: {
      span s = cut((int64_t)k * j->per, j->per, m->count);
      copy_out(j, s.from, slot_of(j, m->root, k), s.n);
      return s.n;
    }
    case LT_COMM_SCATTER: {
      span s = part(j, k, link->rank);
      copy_out(j, s.from, slot_of(j, m->root, k) + link->rank * j->per * j->size, s.n);
      return s.n;
    }
    case LT_COMM_ALL_GATHER:
    case LT_COMM_GATHER:
      for (int r = 0; r < link->size; r++) {
        span s = part(j, k, r);
        int64_t to = first_of(m->counts, r) + s.from;
        if (r == link->rank)
          copy_own(j, to, s.from, s.n);
        else
          copy_out(j, to, slot_of(j, r, k), s.n);
        moved += s.n;
      }
      break;
    case LT_COMM_ALL_TO_ALL:
      for (int r = 0; r < link->size; r++) {
        span s = part(j, k, r);
        int64_t to = first_of(m->counts, r) + s.from;
        if (r == link->rank)
          copy_own(j, to, first_of(m->in_counts, r) + s.from, s.n);
        else
          copy_out(j, to, slot_of(j, r, k) + link->rank * j->per * j->size, s.n);
        moved += s.n;
      }
      break;
    case LT_COMM_REDUCE_SCATTER: /* gets nothing: it reduces */
    case LT_COMM_BARRIER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return moved;
}

/* Each rank adds all of piece k for itself. The tensor may be input and output, which two operands
   allow and more do not. */
static int64_t add_whole(const job *j, uint64_t k) {
  const lt_comm_move *m = j->m;
  const void *operand[LT_COMM_MAX_RANKS];
  _Alignas(SHM_LINE) char scratch[SHM_SMALL];
  span s = cut((int64_t)k * j->per, j->per, m->count);
  if (m->n_parts > 0) {
    char *to = j->link->size <= 2 ? NULL : scratch;
    reduce_parts(j, k, s.from, s.n, 0, to);
    if (to != NULL) copy_out(j, s.from, to, s.n);
    return s.n;
  }
  operands(j, k, s.from, 0, operand);
  char *out = j->link->size <= 2 ? j->out.data + s.from * j->size : scratch;
  lt_shm_reduce(j->link, operand, 0, s.n, (lt_dtype)m->dtype, m->reduce, out);
  if (out == scratch) copy_out(j, s.from, scratch, s.n);
  return s.n;
}

/* Whether a counter of all other ranks (or of `only` one) has reached `wanted`. The smallest value
   seen is kept in the link: while it suffices, no line of another core is read again. */
static bool reached(const lt_comm_link *link, size_t counter, uint64_t *seen, int only,
                    uint64_t wanted) {
  if (only < 0 && *seen >= wanted) return true;
  uint64_t low = UINT64_MAX;
  for (int r = 0; r < link->size; r++) {
    if (r == link->rank || (only >= 0 && r != only)) continue;
    uint64_t value = shm_read((_Atomic uint64_t *)((char *)link->seat[r] + counter));
    if (value < wanted) return false;
    low = value < low ? value : low;
  }
  if (only < 0) *seen = low;
  return true;
}
#define COUNTER(name) offsetof(shm_seat, name), &link->least_##name

static uint64_t mine(const _Atomic uint64_t *word) {
  return atomic_load_explicit(word, memory_order_relaxed);
}

/* How far this rank is in a phase. In an all_reduce all wait for all. */
static void publish_counter(const job *j, _Atomic uint64_t *word, uint64_t value) {
  if (j->m->op == LT_COMM_ALL_REDUCE)
    lt_shm_publish_all(j->link, word, value);
  else
    lt_shm_publish(j->link, word, value);
}

/* What is next, of what can be done now: the last phase first. -1: nothing. Later phases go first
   as they free slots, on which other ranks may wait. `base`: counters continue from the collective
   before. */
static int64_t step(const job *j) {
  lt_comm_link *link = j->link;
  shm_seat *own = shm_own(link);
  uint64_t base = link->piece, end = base + j->pieces;
  uint64_t p = mine(&own->put), r = mine(&own->reduced), g = mine(&own->got);
  int from = j->m->op == LT_COMM_BROADCAST || j->m->op == LT_COMM_SCATTER ? j->m->root : -1;
  int64_t moved;
  if (j->gets && g < end) {
    bool there = j->reduces ? g < r && reached(link, COUNTER(reduced), -1, g + 1)
                            : (!j->puts || g < p) && reached(link, COUNTER(put), from, g + 1);
    if (there) {
      moved = get(j, g - base);
      publish_counter(j, &own->got, g + 1);
      return moved;
    }
  }
  if (j->reduces && r < end && r < p && reached(link, COUNTER(put), -1, r + 1)) {
    moved = j->whole ? add_whole(j, r - base) : reduce(j, r - base);
    atomic_store_explicit(&own->reduced, r + 1, memory_order_release);
    publish_counter(j, j->gets ? &own->reduced : &own->got, r + 1);
    return moved;
  }
  if (j->puts && p < end && (p < SHM_SLOTS || reached(link, COUNTER(got), -1, p + 1 - SHM_SLOTS))) {
    moved = put(j, p - base);
    publish_counter(j, &own->put, p + 1);
    return moved;
  }
  return -1;
}

/* Counters of what this rank does not do in this collective stand at its end from the start, so
   that no rank waits for them. */
static void begin(const job *j) {
  lt_comm_link *link = j->link;
  shm_seat *own = shm_own(link);
  uint64_t end = link->piece + j->pieces;
  if (!j->puts) atomic_store_explicit(&own->put, end, memory_order_release);
  if (!j->reduces) atomic_store_explicit(&own->reduced, end, memory_order_release);
  if (!j->gets && !j->reduces) lt_shm_publish(link, &own->got, end);
}

/* Its own part of what it scatters or broadcasts, or gathers alone. */
static void own_part(const job *j) {
  const lt_comm_move *m = j->m;
  int rank = j->link->rank;
  if (m->root != rank) return;
  if (m->op == LT_COMM_SCATTER) copy_own(j, 0, first_of(m->counts, rank), m->counts[rank]);
  if (m->op == LT_COMM_BROADCAST && m->out != NULL) copy_own(j, 0, 0, m->count);
}

lt_progress lt_shm_move(lt_comm_link *link, lt_comm_move *m) {
  if (m->op == LT_COMM_SEND || m->op == LT_COMM_RECV) return lt_shm_move_message(link, m);
  job j = job_of(link, m);
  if (j.whole && link->size > SHM_FEW) return lt_shm_move_small(link, m);
  if (m->state == NULL) {
    m->state = link;
    begin(&j);
    own_part(&j);
  }
  shm_seat *own = shm_own(link);
  uint64_t end = link->piece + j.pieces;
  for (int64_t all = 0, moved; all < CALL_BYTES; all += moved) {
    moved = step(&j);
    if (moved < 0) break;
    moved *= j.size;
    m->moved += moved;
  }
  if (mine(&own->put) < end || mine(&own->got) < end) return LT_PENDING;
  link->piece = end;
  m->state = NULL;
  return LT_DONE;
}
