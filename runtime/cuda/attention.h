/* runtime/cuda/attention.h: one call of attention, its tiles, and what is done with their rows.

   B batch, H heads, T queries, S keys, D width of queries and keys, E width of values. A unit is a
   head of keys and values of one element of the batch, with `group` heads of queries. */
#ifndef LT_CUDA_ATTENTION_H
#define LT_CUDA_ATTENTION_H

#include "base/random.h"
#include "cuda/cuda.h"
#include "cuda/tile.h"

/* Where the rows [.., T, width] of a tensor lie, in elements. */
typedef struct lt_cuda_heads {
  void *data;
  int dtype;
  int64_t batch, head, row, col;
} lt_cuda_heads;

/* A tile: rows t0..t0+rows-1 of all queries of `units` units from first_unit on, against the first
   n keys. Its scores lie as [units, group, rows of a full tile, ld]. */
typedef struct lt_cuda_tile {
  int64_t units, first_unit, t0, rows, full_rows, n, ld;
  int64_t heads, group, t, s, e; /* of the whole; heads: of queries */
  int64_t first_head, all_heads; /* what dropout numbers heads by */
  bool causal, drops, wide;      /* wide: scores are f64, else f32 */
  uint32_t threshold;            /* words below it are dropped */
  double keep;                   /* what dropout multiplies by; 0: it drops all */
  lt_rng_key rng_key;
  const void *mask;
  int mask_dtype;
  int64_t mask_stride[4];
  void *scores;  /* of queries and keys, scaled */
  void *p;       /* result, in place of the scores or of p_dtype: numbers for the next product */
  int p_dtype;
  void *most, *sum; /* [B, H, T]: the largest score, the sum of exp(score - largest) */
  lt_cuda_heads out;
  /* Backward alone: */
  void *dp;      /* g v' */
  void *ds;      /* of p_dtype, in place of dp or apart: the gradients of the scores */
  void *dscores; /* the same kept, [B, H, T, S], of the dtype of scores, or NULL */
  lt_cuda_heads g;
} lt_cuda_tile;

/* attention_heads.cu: those of a tensor of 2 to 4 dims, and its view as four dims: [rows, cols],
   [H, ..] or [B, H, ..]. */
lt_view lt_cuda_four_dims(const lt_view *v);
bool lt_cuda_attention_heads(lt_ctx *c, lt_tensor *t, lt_cuda_heads *out);

/* One number of floats or bools: fewer dtypes than lt_load knows, in code that is there 4 times. */
template <class T>
static __device__ inline T lt_attention_load(const void *data, int dtype, int64_t at) {
  if (dtype == LT_F32) return static_cast<T>(static_cast<const float *>(data)[at]);
  if (dtype == LT_F64) return static_cast<T>(static_cast<const double *>(data)[at]);
  if (dtype == LT_BOOL) return static_cast<T>(static_cast<const uint8_t *>(data)[at]);
  return static_cast<T>(lt_of_half(dtype, static_cast<const uint16_t *>(data)[at]));
}

/* attention_rows.cu: between the products of a tile. */

/* p = exp(scores + mask - largest), dropped ones and what is not seen 0; fills `most`, `sum`. */
bool lt_cuda_attention_softmax(lt_ctx *c, const lt_cuda_tile *tile);

/* to = product * keep / sum, where product [units, group, full_rows, E] is of the dtype of
   scores. */
bool lt_cuda_attention_finish(lt_ctx *c, const lt_cuda_tile *tile, const void *product,
                              const lt_cuda_heads *to);

/* p = probabilities, from `most` and `sum`; ds: the gradients of the scores. */
bool lt_cuda_attention_gradient(lt_ctx *c, const lt_cuda_tile *tile);

/* The rows of a tensor, by unit and head of that; elements apart. Columns lie side by side. */
typedef struct lt_cuda_units {
  void *data;
  int dtype;
  int64_t unit, head, row;
} lt_cuda_units;

/* One call; `tile` has what all tiles share. */
typedef struct lt_cuda_attention {
  lt_cuda_tile tile;
  int64_t batches, units, d, most_units; /* most_units: of a tile */
  int dtype, wide;                       /* of operands; of scores */
  double scale;
  lt_cuda_units q, k, v, g, dq, dk, dv;
  lt_view dq_view, dk_view, dv_view;
  void *product; /* of p and v, before it is divided */
} lt_cuda_attention;

/* attention_tiles.cu: all tiles, one after the other. */
bool lt_cuda_attention_forward(lt_ctx *c, lt_cuda_attention *j);
bool lt_cuda_attention_backward(lt_ctx *c, lt_cuda_attention *j);

#endif
