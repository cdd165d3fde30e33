/* runtime/comm/shm_reduce.c: the tree in which ranks add, T(lo, hi) = T(lo, m) + T(m, hi) with
   m = lo + the largest power of two below hi - lo, tile by tile so that its inner nodes stay in the
   first cache.

   Why a tree, and this one: the sum of n ranks is the same bits whether one process adds them
   all or two halves do it first, so that a run repeats on another layout of processes; and the
   error grows with log2(n), not with n (N. Higham, The accuracy of floating point summation,
   1993). */
#include <string.h>

#include "comm/shm.h"

enum { TILE = 4096, LEVELS = 11 }; /* bytes; 1024 ranks are 10 levels deep */

typedef struct tree {
  void (*combine)(void *dst, const void *a, const void *b, int64_t n, lt_dtype dtype,
                  lt_comm_reduce reduce);
  const void *const *operand;
  int64_t offset, n; /* bytes into the operands, elements of the tile */
  lt_dtype dtype;
  lt_comm_reduce reduce;
  _Alignas(SHM_LINE) char scratch[LEVELS][TILE];
} tree;

static int half_of(int n) {
  int m = 1;
  while (2 * m < n) m *= 2;
  return m;
}

/* The node over ranks lo..hi-1: a leaf as it is, else in `out`. */
static const void *node(tree *t, int lo, int hi, int level, void *out) {
  if (hi - lo == 1) return (const char *)t->operand[lo] + t->offset;
  int middle = lo + half_of(hi - lo);
  const void *left = node(t, lo, middle, level + 1, out);
  const void *right = node(t, middle, hi, level + 1, t->scratch[level]);
  t->combine(out, left, right, t->n, t->dtype, t->reduce);
  return out;
}

void lt_shm_reduce(const lt_comm_link *link, const void *const *operand, int64_t from, int64_t n,
                lt_dtype dtype, lt_comm_reduce reduce, char *out) {
  const lt_comm_host *host = link->home->host;
  int64_t size = (int64_t)host->item_size(dtype), step = TILE / size;
  tree t;
  t.combine = host->combine;
  t.operand = operand;
  t.dtype = dtype;
  t.reduce = reduce;
  if (link->size == 2) step = n; /* no inner nodes */
  for (int64_t at = 0; at < n; at += step) {
    t.offset = (from + at) * size;
    t.n = n - at < step ? n - at : step;
    const void *sum = node(&t, 0, link->size, 0, out + at * size);
    if (link->size == 1) memcpy(out + at * size, sum, (size_t)(t.n * size));
  }
}
