/* runtime/cuda/attention_tiles.cu: the products of attention's tiles.

   Each product is one call for a head of all units of the tile (gemm.h). Gradients of keys and
   values are summed tile by tile, in their order. */
#include "cuda/attention.h"
#include "cuda/gemm.h"

/* The rows of a tile, or all rows when it is of keys, as a stack over units. */
static lt_cuda_matrix stack_of(const lt_cuda_units *o, const lt_cuda_tile *t, int64_t head,
                               int64_t row, bool transposed) {
  int64_t at = t->first_unit * o->unit + head * o->head + row * o->row;
  lt_cuda_matrix m = lt_cuda_matrix_of(static_cast<char *>(o->data) +
                                           at * lt_cuda_item_size(o->dtype),
                                       o->dtype, o->row, transposed);
  m.batch[0] = o->unit;
  return m;
}

/* Scores, or what is made of them, of the heads `head` of the units. */
static lt_cuda_matrix cells_of(void *data, int dtype, const lt_cuda_tile *t, int64_t head,
                               bool transposed) {
  int64_t of_head = t->full_rows * t->ld;
  lt_cuda_matrix m = lt_cuda_matrix_of(static_cast<char *>(data) +
                                           head * of_head * lt_cuda_item_size(dtype),
                                       dtype, t->ld, transposed);
  m.batch[0] = t->group * of_head;
  return m;
}

static bool multiply(lt_ctx *c, const lt_cuda_tile *t, int64_t m, int64_t n, int64_t k,
                     double alpha, lt_cuda_matrix a, lt_cuda_matrix b, double beta,
                     lt_cuda_matrix d) {
  lt_cuda_product p = {};
  p.m = m, p.n = n, p.k = k;
  p.n_batch = 1;
  p.batch[0] = t->units;
  p.a = a, p.b = b, p.d = d;
  p.alpha = alpha, p.beta = beta;
  return lt_cuda_gemm(c, &p);
}

/* x [rows of the tile, width] y [keys, width]' into cells, for all heads. */
static bool scores_into(lt_ctx *c, const lt_cuda_attention *j, const lt_cuda_units *x,
                        const lt_cuda_units *y, int64_t width, double alpha, void *cells) {
  const lt_cuda_tile *t = &j->tile;
  for (int64_t h = 0; h < t->group; h++)
    if (!multiply(c, t, t->rows, t->n, width, alpha, stack_of(x, t, h, t->t0, false),
                  stack_of(y, t, 0, 0, true), 0, cells_of(cells, j->wide, t, h, false)))
      return false;
  return true;
}

/* S = scale Q K', P = exp(S - max) by rows, O = P V / sum: dividing the E columns of the product
   costs less than the S columns of P. */
static bool forward_tile(lt_ctx *c, lt_cuda_attention *j) {
  lt_cuda_tile *t = &j->tile;
  lt_cuda_units product = {j->product, j->wide, t->group * t->full_rows * t->e, t->full_rows * t->e,
                     t->e};
  lt_cuda_tile first = *t;
  first.first_unit = 0; /* `product` holds this tile's units alone */
  if (!scores_into(c, j, &j->q, &j->k, j->d, j->scale, t->scores) ||
      !lt_cuda_attention_softmax(c, t))
    return false;
  for (int64_t h = 0; h < t->group; h++)
    if (!multiply(c, t, t->rows, t->e, t->n, 1, cells_of(t->p, j->dtype, t, h, false),
                  stack_of(&j->v, t, 0, 0, false), 0, stack_of(&product, &first, h, 0, false)))
      return false;
  return lt_cuda_attention_finish(c, t, j->product, &t->out);
}

/* With P the probabilities, dP = g V' and D = rowsum(g O): dS = P (dP - D), dV += P' g, dK += scale
   dS' Q, dQ = scale dS K (T. Dao and others, FlashAttention, 2022, appendix B). dK and dV are
   summed over tiles of queries, in order, in the dtype of scores. */
static bool backward_tile(lt_ctx *c, lt_cuda_attention *j) {
  lt_cuda_tile *t = &j->tile;
  if (!scores_into(c, j, &j->q, &j->k, j->d, j->scale, t->scores) ||
      !scores_into(c, j, &j->g, &j->v, t->e, 1, t->dp) || !lt_cuda_attention_gradient(c, t))
    return false;
  for (int64_t h = 0; h < t->group; h++) {
    lt_cuda_matrix ds = cells_of(t->ds, j->dtype, t, h, true);
    if (!multiply(c, t, t->n, t->e, t->rows, 1, cells_of(t->p, j->dtype, t, h, true),
                  stack_of(&j->g, t, h, t->t0, false), 1, stack_of(&j->dv, t, 0, 0, false)) ||
        !multiply(c, t, t->n, j->d, t->rows, j->scale, ds, stack_of(&j->q, t, h, t->t0, false), 1,
                  stack_of(&j->dk, t, 0, 0, false)) ||
        !multiply(c, t, t->rows, j->d, t->n, j->scale, cells_of(t->ds, j->dtype, t, h, false),
                  stack_of(&j->k, t, 0, 0, false), 0, stack_of(&j->dq, t, h, t->t0, false)))
      return false;
  }
  return true;
}

/* A causal tile meets the keys up to its last query only: half of the work for long sequences. */
static bool each_tile(lt_ctx *c, lt_cuda_attention *j,
                      bool (*tile)(lt_ctx *c, lt_cuda_attention *j)) {
  lt_cuda_tile *t = &j->tile;
  for (t->first_unit = 0; t->first_unit < j->units; t->first_unit += j->most_units)
    for (t->t0 = 0; t->t0 < t->t; t->t0 += t->full_rows) {
      int64_t units = j->units - t->first_unit, rows = t->t - t->t0;
      t->units = units < j->most_units ? units : j->most_units;
      t->rows = rows < t->full_rows ? rows : t->full_rows;
      t->n = t->causal && t->t0 + t->rows < t->s ? t->t0 + t->rows : t->s;
      if (!tile(c, j)) return false;
    }
  return true;
}

bool lt_cuda_attention_forward(lt_ctx *c, lt_cuda_attention *j) {
  return each_tile(c, j, forward_tile);
}

bool lt_cuda_attention_backward(lt_ctx *c, lt_cuda_attention *j) {
  return each_tile(c, j, backward_tile);
}
