/* runtime/text/bpe.c: byte pair encoding (bpe.h).

   R. Sennrich, B. Haddow, A. Birch, Neural Machine Translation of Rare Words with Subword Units,
   2016, after P. Gage's compression (1994): of the pairs that stand side by side the one that
   was learned first is merged, until none was learned.

   Cost of a word of n symbols: n^2 compares of ranks for up to SCANNED symbols, n log n beyond. */
#include "text/bpe.h"

#include <string.h>

enum { FIRST_SLOTS = 1024, SCANNED = 48 };

/* Fibonacci hashing (D. Knuth, The Art of Computer Programming, volume 3, section 6.4): the
   multiplier is 2^64 over the golden ratio. Linear probing, in a table that is at most half
   full. */
static inline size_t place_of(const lt_merges *m, int32_t left, int32_t right) {
  uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  uint64_t h = key * 0x9e3779b97f4a7c15u;
  size_t at = (h ^ h >> 32) & (m->n_slots - 1);
  while (m->slot[at].left >= 0 && (m->slot[at].left != left || m->slot[at].right != right))
    at = (at + 1) & (m->n_slots - 1);
  return at;
}

/* Doubling keeps at least half of the slots empty: a search then looks at 1.5 slots on average
   where the pair is there, at 2.5 where it is not (Knuth, 6.4, for linear probing). */
static bool grow(lt_ctx *c, lt_merges *m) {
  lt_merges bigger = {.n_slots = m->n_slots == 0 ? FIRST_SLOTS : 2 * m->n_slots, .count = m->count};
  bigger.slot = lt_alloc(c, bigger.n_slots * sizeof *bigger.slot);
  if (bigger.slot == NULL) return false;
  for (size_t k = 0; k < bigger.n_slots; k++) bigger.slot[k].left = -1;
  for (size_t k = 0; k < m->n_slots; k++)
    if (m->slot[k].left >= 0)
      bigger.slot[place_of(&bigger, m->slot[k].left, m->slot[k].right)] = m->slot[k];
  lt_merges_free(c, m);
  *m = bigger;
  return true;
}

bool lt_merges_add(lt_ctx *c, lt_merges *m, lt_merge merge) {
  if (m->count >= m->n_slots / 2 && !grow(c, m)) return false;
  lt_merge *slot = &m->slot[place_of(m, merge.left, merge.right)];
  m->count += slot->left < 0;
  *slot = merge;
  return true;
}

const lt_merge *lt_merges_find(const lt_merges *m, int32_t left, int32_t right) {
  if (m->count == 0) return NULL;
  const lt_merge *slot = &m->slot[place_of(m, left, right)];
  return slot->left < 0 ? NULL : slot;
}

void lt_merges_free(lt_ctx *c, lt_merges *m) {
  lt_free(c, m->slot, m->n_slots * sizeof *m->slot);
  *m = (lt_merges){0};
}

/* Short words: the ranks of all neighbours, the lowest searched again after each merge. Words are
   short: n^2 looks at a list in the first cache take less time than a heap. The merged pair's place
   stays the leftmost of those with the lowest rank, the order in which all implementations merge;
   `next` is kept along, so only the two pairs beside a merge are looked up again. */
static int64_t merge_scanning(const lt_merges *m, int32_t *word, int64_t n) {
  const lt_merge *next[SCANNED]; /* of word[k] and word[k + 1] */
  for (int64_t k = 0; k + 1 < n; k++) next[k] = lt_merges_find(m, word[k], word[k + 1]);
  for (;;) {
    int64_t best = -1;
    for (int64_t k = 0; k + 1 < n; k++)
      if (next[k] != NULL && (best < 0 || next[k]->rank < next[best]->rank)) best = k;
    if (best < 0) return n;
    word[best] = next[best]->made;
    n--;
    for (int64_t k = best + 1; k < n; k++) word[k] = word[k + 1];
    for (int64_t k = best + 1; k + 1 < n; k++) next[k] = next[k + 1];
    if (best + 1 < n) next[best] = lt_merges_find(m, word[best], word[best + 1]);
    if (best > 0) next[best - 1] = lt_merges_find(m, word[best - 1], word[best]);
  }
}

/* Long words: a heap of the merges that are possible, and the symbols in a doubly linked list, so
   that a merge is O(log n) and moves nothing. A megabyte without spaces would take 10^12 compares
   by scanning. */
typedef struct candidate {
  const lt_merge *merge;
  int64_t at;
} candidate;

typedef struct long_word {
  int32_t *symbol; /* -1: gone into one before it */
  int64_t *before, *after; /* neighbours; -1, n: none */
  int64_t n;
  candidate *heap;
  int64_t waiting;
} long_word;

/* By rank, then from the left: the same order as scanning gives. */
static inline bool comes_first(candidate a, candidate b) {
  return a.merge->rank != b.merge->rank ? a.merge->rank < b.merge->rank : a.at < b.at;
}

static void push(long_word *w, const lt_merges *m, int64_t at) {
  if (at < 0 || w->after[at] >= w->n) return;
  candidate new = {lt_merges_find(m, w->symbol[at], w->symbol[w->after[at]]), at};
  if (new.merge == NULL) return;
  int64_t k = w->waiting++;
  for (; k > 0 && comes_first(new, w->heap[(k - 1) / 2]); k = (k - 1) / 2)
    w->heap[k] = w->heap[(k - 1) / 2];
  w->heap[k] = new;
}

static candidate pop(long_word *w) {
  candidate first = w->heap[0], last = w->heap[--w->waiting];
  int64_t k = 0, below;
  while ((below = 2 * k + 1) < w->waiting) {
    if (below + 1 < w->waiting && comes_first(w->heap[below + 1], w->heap[below])) below++;
    if (!comes_first(w->heap[below], last)) break;
    w->heap[k] = w->heap[below];
    k = below;
  }
  w->heap[k] = last;
  return first;
}

/* Whether the two symbols are still there that the candidate is of. Candidates are never taken out
   of the heap: those that have lost a symbol are dropped when they come up. */
static bool is_current(const long_word *w, candidate k) {
  return w->symbol[k.at] == k.merge->left && w->after[k.at] < w->n &&
         w->symbol[w->after[k.at]] == k.merge->right;
}

static void merge_all(long_word *w, const lt_merges *m) {
  for (int64_t k = 0; k < w->n; k++) {
    w->before[k] = k - 1;
    w->after[k] = k + 1;
  }
  for (int64_t k = 0; k + 1 < w->n; k++) push(w, m, k);
  while (w->waiting > 0) {
    candidate k = pop(w);
    if (!is_current(w, k)) continue;
    int64_t gone = w->after[k.at];
    w->symbol[k.at] = k.merge->made;
    w->symbol[gone] = -1;
    w->after[k.at] = w->after[gone];
    if (w->after[k.at] < w->n) w->before[w->after[k.at]] = k.at;
    push(w, m, w->before[k.at]);
    push(w, m, k.at);
  }
}

/* Each merge takes a candidate and adds two at most: 3 n are enough. */
static int64_t merge_long(lt_ctx *c, const lt_merges *m, int32_t *word, int64_t n) {
  size_t links = (size_t)n * sizeof(int64_t), heap = 3 * (size_t)n * sizeof(candidate);
  long_word w = {.symbol = word, .n = n};
  w.before = lt_alloc(c, links);
  w.after = lt_alloc(c, links);
  w.heap = lt_alloc(c, heap);
  int64_t left = -1;
  if (w.before != NULL && w.after != NULL && w.heap != NULL) {
    merge_all(&w, m);
    left = 0;
    for (int64_t k = 0; k < n; k++)
      if (word[k] >= 0) word[left++] = word[k];
  }
  lt_free(c, w.before, links);
  lt_free(c, w.after, links);
  lt_free(c, w.heap, heap);
  return left;
}

int64_t lt_bpe_merge(lt_ctx *c, const lt_merges *m, int32_t *word, int64_t n) {
  if (n < 2 || m->count == 0) return n;
  return n <= SCANNED ? merge_scanning(m, word, n) : merge_long(c, m, word, n);
}
