/* runtime/cuda/segments.h: sums by key, the same bits each time. */
#ifndef LT_CUDA_SEGMENTS_H
#define LT_CUDA_SEGMENTS_H

#include "cuda/tensor_iterator.h"

/* out[o, i, :] = base[o, i, :] + the g[o, k, :] with key[k] == i: all row-major, of one dtype. */
typedef struct lt_cuda_segments {
  const char *g, *base; /* no base: zeros */
  char *out;
  int dtype, item;
  int64_t rows, n, inner; /* rows of a block o; keys: below 2^31; columns: up to 2^30 */
  /* From here on its own. */
  lt_divider columns;          /* of a thread's width */
  int64_t row, last;           /* rows of the result in this launch: from `row` up to `last` */
  const uint32_t *key, *order; /* sorted */
  const uint32_t *start;       /* [rows + 1]: where the keys of a row begin */
  void *part;                  /* [outer, stretches, 2, inner]: sums of stretches */
  uint32_t stretches;
} lt_cuda_segments;

/* Sums by `keys`, which it sorts; what has key `rows` is left out. */
bool lt_cuda_sum_segments(lt_ctx *c, lt_cuda_segments *j, uint32_t *keys, int64_t outer);

#endif
