/* runtime/cpu/index.h: checked indices and row copies, for the kernels that choose elements. */
#ifndef LT_CPU_INDEX_H
#define LT_CPU_INDEX_H

#include "cpu/scratch.h"
#include "cpu/tile.h"

/* How many rows of `n` elements make a chunk. */
static inline int64_t lt_rows_per_chunk(int64_t n) {
  return n >= LT_CHUNK ? 1 : LT_CHUNK / (n > 0 ? n : 1);
}

/* The dtype in which sums of `t`'s elements are made. */
static inline lt_dtype lt_sum_dtype(const lt_tensor *t) {
  static const lt_dtype of[] = {LT_F32, LT_F64, LT_I64};
  return of[lt_compute_of((lt_dtype)t->dtype)];
}

/* The values of an index tensor in row-major order, each checked to be a position of dim `dim` of
   `x`; NULL with the failure, which names `op`. Belongs to the open frame. */
const int64_t *LT_CPU(lt_index_values)(lt_ctx *c, int op, lt_tensor *index, const lt_tensor *x,
                                       int64_t dim);

/* Copies of whole rows: to[o, k] = from[o, index[k]], for o in outer, rows of `bytes` each, where
   `from` has n_from rows and `to` n_to rows for each o. */
typedef struct lt_rows {
  const char *from;
  char *to;
  const int64_t *index;
  int64_t outer, n_from, n_to, bytes;
} lt_rows;
void LT_CPU(lt_rows_take)(lt_ctx *c, const lt_rows *r);

/* A tensor without dims as one of size 1; lives on the caller's stack. */
static inline lt_tensor lt_with_dims(const lt_tensor *t) {
  lt_tensor v = *t;
  if (t->ndim == 0) lt_tensor_set_shape(&v, 1, (int64_t[]){1}, (int64_t[]){1});
  return v;
}

#endif
