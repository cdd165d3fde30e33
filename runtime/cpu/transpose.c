/* runtime/cpu/transpose.c: transposing copies in blocks, so that each cache line that is read is
   used entirely.

   Source and destination cannot both be read in order. A block of LINE by LINE bytes fits into the
   first cache, so each line of either side is fetched once; without blocks a large matrix misses
   the cache at each element of one side (M. Lam, E. Rothberg, M. Wolf, "The cache performance and
   optimizations of blocked algorithms", 1991). */
#include "cpu/transpose.h"

#include <string.h>

enum { LINE = 64, SHORT = 8 }; /* a dim under SHORT elements is not worth it */

typedef struct job {
  const lt_iter *it;
  int rows;         /* the dim along which the source lies side by side */
  int64_t item, strips; /* bytes of an element; strips of LINE bytes that the rows make */
} job;

/* Bytes from an operand's begin to the matrix that holds these outer indices. */
static int64_t matrix_at(const job *j, int k, int64_t outer) {
  const lt_iter *it = j->it;
  int64_t at = 0;
  for (int d = it->ndim - 2; d >= 0; d--) {
    if (d == j->rows) continue;
    at += outer % it->size[d] * it->operand[k].stride[d];
    outer /= it->size[d];
  }
  return at * j->item;
}

/* n_rows rows of n columns: column `c` of them is at from + c * from_step, row `r` is written to to
   + r * to_step; steps in elements. The block goes through a small array, as stores to rows that
   lie a power of two apart would compete for the same few lines of the cache. */
#define STRIP(type)                                                                          \
  static void strip_##type(type *to, int64_t to_step, const type *from, int64_t from_step,   \
                           int64_t n_rows, int64_t n) {                                      \
    enum { SIDE = LINE / sizeof(type) };                                                     \
    type block[SIDE * SIDE];                                                                 \
    for (int64_t at = 0; at < n; at += SIDE) {                                               \
      int64_t wide = n - at < SIDE ? n - at : SIDE;                                          \
      for (int64_t c = 0; c < wide; c++)                                                     \
        memcpy(block + c * SIDE, from + (at + c) * from_step, (size_t)n_rows * sizeof(type)); \
      for (int64_t r = 0; r < n_rows; r++)                                                   \
        for (int64_t c = 0; c < wide; c++) to[r * to_step + at + c] = block[c * SIDE + r];   \
    }                                                                                        \
  }
STRIP(uint8_t)
STRIP(uint16_t)
STRIP(uint32_t)
STRIP(uint64_t)

static void copy_strip(void *ud, int64_t chunk) {
  const job *j = ud;
  const lt_iter *it = j->it;
  int64_t outer = chunk / j->strips, side = LINE / j->item, row = chunk % j->strips * side;
  int64_t n_rows = it->size[j->rows] - row < side ? it->size[j->rows] - row : side;
  int64_t to_step = it->operand[0].stride[j->rows], n = it->size[it->ndim - 1];
  int64_t from_step = it->operand[1].stride[it->ndim - 1];
  void *to = it->operand[0].data + matrix_at(j, 0, outer) + row * to_step * j->item;
  const void *from = it->operand[1].data + matrix_at(j, 1, outer) + row * j->item;
  switch (j->item) {
    case 1: strip_uint8_t(to, to_step, from, from_step, n_rows, n); break;
    case 2: strip_uint16_t(to, to_step, from, from_step, n_rows, n); break;
    case 4: strip_uint32_t(to, to_step, from, from_step, n_rows, n); break;
    default: strip_uint64_t(to, to_step, from, from_step, n_rows, n);
  }
}

/* Only where it pays: the destination in order along its last dim, the source along another, both
   long enough, and no conversion. */
bool LT_CPU(lt_copy_transposed)(lt_ctx *c, const lt_iter *it) {
  const lt_operand *to = &it->operand[0], *from = &it->operand[1];
  int last = it->ndim - 1;
  if (to->dtype != from->dtype || last == 0 || to->stride[last] != 1 || it->size[last] < SHORT ||
      from->stride[last] == 1)
    return false;
  job j = {.it = it, .rows = -1, .item = (int64_t)lt_dtype_size(to->dtype)};
  for (int d = 0; d < last; d++)
    if (from->stride[d] == 1 && it->size[d] >= SHORT) j.rows = d;
  if (j.rows < 0 || it->numel == 0) return false;
  int64_t side = LINE / j.item, rows = it->size[j.rows];
  j.strips = (rows + side - 1) / side;
  int64_t chunks = it->numel / (rows * it->size[last]) * j.strips;
  lt_parallel_work(c, it->numel, chunks, copy_strip, &j);
  return true;
}
