/* runtime/cuda/attention.cu: scaled dot product attention in tiles of query rows.

   A tile of some heads and up to ROWS queries of each meets all keys it may see at once, by
   products of stacks (gemm.h) with a kernel on rows of scores between them (attention_rows.cu).
   Scores are f32 (f64 for f64); exponents and probabilities, which enter the next product, are of
   the dtype of the operands. Memory grows with S, never with T x S: tiles hold up to CELLS scores.
   Forward keeps the largest score of each row and the sum of exp(score - largest); backward
   computes the scores again. Dropout uses the words that the CPU uses, and keeps none.

   Letters are those of attention.h. */
#include "cuda/attention.h"
#include "cuda/gemm.h"
#include "cuda/rows.h"

#ifndef LT_CUDA_ATTENTION_ROWS /* small for specs */
#define LT_CUDA_ATTENTION_ROWS 512
#define LT_CUDA_ATTENTION_CELLS (16 << 20)
#endif
static const int64_t ROWS = LT_CUDA_ATTENTION_ROWS, FEWEST_ROWS = 64;
static const int64_t CELLS = LT_CUDA_ATTENTION_CELLS;

/* The rows of a tensor, by unit and head of that; elements apart. Columns lie side by side. */
typedef struct operand {
  void *data;
  int dtype;
  int64_t unit, head, row;
} operand;

/* Memory of one call: counted first, then given out from one piece. */
typedef struct arena {
  char *base; /* nullptr: counting */
  int64_t used;
} arena;

typedef struct job {
  lt_cuda_tile tile;
  int64_t batches, units, d, most_units; /* most_units: of a tile */
  int dtype, wide;                       /* of operands; of scores */
  double scale;
  operand q, k, v, g, dq, dk, dv;
  lt_view out_view, dq_view, dk_view, dv_view;
  void *product; /* of p and v, before it is divided */
} job;

static void *take(arena *a, int64_t elements, int dtype) {
  char *p = a->base != nullptr ? a->base + a->used : nullptr;
  a->used += (elements * lt_cuda_item_size(dtype) + 255) / 256 * 256;
  return p;
}

/* [rows, cols], [H, ..] or [B, H, ..] as four dims. */
static lt_view four_dims(const lt_view *v) {
  lt_view w = *v;
  int lead = 4 - v->ndim;
  w.ndim = 4;
  for (int d = 0; d < 4; d++) {
    w.size[d] = d < lead ? 1 : v->size[d - lead];
    w.stride[d] = d < lead ? 0 : v->stride[d - lead];
  }
  return w;
}

static lt_view contiguous(const lt_view *v, int dtype, void *data) {
  lt_view w = *v;
  int64_t n = 1;
  for (int d = 3; d >= 0; d--) w.stride[d] = n, n *= v->size[d];
  w.dtype = static_cast<lt_dtype>(dtype);
  w.data = data;
  return w;
}

/* Whether products take the rows where they are: units at one distance. */
static bool in_place(const lt_view *v) {
  bool cols = v->stride[3] == 1 || v->size[3] == 1;
  bool rows = v->stride[2] >= v->size[3] || v->size[2] == 1;
  bool units = v->size[0] == 1 || v->size[1] == 1 || v->stride[0] == v->size[1] * v->stride[1];
  return cols && rows && units;
}

/* `shared`: heads of queries for each unit. */
static operand operand_of(const lt_view *v, int64_t shared) {
  operand o;
  o.data = v->data;
  o.dtype = v->dtype;
  o.head = v->size[1] == 1 ? 0 : v->stride[1];
  o.row = v->size[2] == 1 ? v->size[3] : v->stride[2];
  o.unit = v->size[1] == shared ? v->stride[0] : shared * v->stride[1];
  return o;
}

/* An operand of the products, in place or as a copy. */
static bool take_operand(lt_ctx *c, arena *a, lt_tensor *t, int64_t shared, operand *out) {
  lt_view v;
  if (!lt_cuda_view(c, t, &v)) return false;
  v = four_dims(&v);
  if (in_place(&v)) {
    *out = operand_of(&v, shared);
    return true;
  }
  lt_view copy = contiguous(&v, v.dtype, take(a, lt_cuda_numel(&v), v.dtype));
  *out = operand_of(&copy, shared);
  return a->base == nullptr || lt_cuda_move(c, &copy, &v);
}

/* A result of the products; *elsewhere: it must be moved to `to` at the end. */
static bool take_result(lt_ctx *c, arena *a, lt_tensor *t, int dtype, int64_t shared, operand *out,
                        lt_view *to) {
  if (!lt_cuda_view(c, t, to)) return false;
  *to = four_dims(to);
  lt_view own = *to;
  if (to->dtype != dtype || !in_place(to))
    own = contiguous(to, dtype, take(a, lt_cuda_numel(to), dtype));
  *out = operand_of(&own, shared);
  return true;
}

static bool move_result(lt_ctx *c, const operand *from, const lt_view *to) {
  lt_view own = contiguous(to, from->dtype, from->data);
  return from->data == to->data || lt_cuda_move(c, to, &own);
}

static lt_cuda_heads heads_of(const lt_view *v) {
  lt_cuda_heads h = {v->data, v->dtype, v->stride[0], v->stride[1], v->stride[2], v->stride[3]};
  return h;
}

/* Strides of the mask over [B, H, T, S]. */
static bool take_mask(lt_ctx *c, job *j, lt_tensor *mask) {
  lt_view v;
  if (mask == nullptr) return true;
  if (!lt_cuda_view(c, mask, &v)) return false;
  j->tile.mask = v.data;
  j->tile.mask_dtype = v.dtype;
  for (int d = 0; d < v.ndim; d++)
    j->tile.mask_stride[4 - v.ndim + d] = v.size[d] == 1 ? 0 : v.stride[d];
  return true;
}

static bool take_sizes(lt_ctx *c, job *j, lt_tensor *query, lt_tensor *key, lt_tensor *value) {
  lt_view q, k, v;
  if (!lt_cuda_view(c, query, &q) || !lt_cuda_view(c, key, &k) || !lt_cuda_view(c, value, &v))
    return false;
  q = four_dims(&q), k = four_dims(&k), v = four_dims(&v);
  lt_cuda_tile *t = &j->tile;
  j->batches = q.size[0], t->heads = q.size[1];
  t->group = k.size[1] > 0 ? q.size[1] / k.size[1] : 1;
  j->units = k.size[0] * k.size[1];
  t->t = q.size[2], j->d = q.size[3], t->s = k.size[2], t->e = v.size[3];
  if (t->s > INT32_MAX / 2)
    return lt_cuda_fail(c, LT_ESHAPE, "%s: %lld keys are too many", lt_cuda_now.op,
                        static_cast<long long>(t->s));
  j->dtype = q.dtype;
  t->wide = q.dtype == LT_F64;
  j->wide = t->wide ? LT_F64 : LT_F32;
  t->p_dtype = j->dtype;
  t->ld = (t->s + 15) / 16 * 16;
  t->full_rows = t->t < ROWS ? t->t : ROWS;
  int64_t fit = CELLS / (t->group * t->ld + 1) / FEWEST_ROWS * FEWEST_ROWS;
  if (t->full_rows > fit) t->full_rows = fit > FEWEST_ROWS ? fit : FEWEST_ROWS;
  if (t->full_rows > t->t) t->full_rows = t->t;
  int64_t cells = t->group * t->full_rows * t->ld;
  j->most_units = cells > 0 && CELLS / cells > 1 ? CELLS / cells : 1;
  if (j->most_units > j->units) j->most_units = j->units;
  return true;
}

static void take_arguments(job *j, const lt_args_attention *a) {
  j->tile.causal = a->causal;
  j->scale = a->scale.f;
  j->tile.drops = a->dropout_p > 0;
  j->tile.threshold = a->dropout_p < 1 ? static_cast<uint32_t>(a->dropout_p * 0x1p32) : 0;
  j->tile.keep = a->dropout_p < 1 ? 1 / (1 - a->dropout_p) : 0;
  j->tile.rng_key = a->rng_key;
}

static bool take_stats(lt_ctx *c, job *j, lt_tensor *stats) {
  lt_view v;
  if (!lt_cuda_view(c, stats, &v)) return false;
  j->tile.most = v.data;
  j->tile.sum = static_cast<char *>(v.data) + lt_cuda_numel(&v) / 2 * lt_cuda_item_size(v.dtype);
  return true;
}

/* Scores of a tile, and for halves what goes into the next product. */
static void take_tile(arena *a, job *j, bool backward) {
  lt_cuda_tile *t = &j->tile;
  int64_t cells = j->most_units * t->group * t->full_rows * t->ld;
  bool apart = j->dtype != j->wide;
  t->scores = take(a, cells, j->wide);
  t->p = apart ? take(a, cells, j->dtype) : t->scores;
  if (!backward) return;
  t->dp = take(a, cells, j->wide);
  t->ds = apart ? take(a, cells, j->dtype) : t->dp;
}

/* The rows of a tile, or all rows when it is of keys, as a stack over units. */
static lt_cuda_matrix stack_of(const operand *o, const lt_cuda_tile *t, int64_t head, int64_t row,
                               bool transposed) {
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
static bool scores_into(lt_ctx *c, const job *j, const operand *x, const operand *y, int64_t width,
                        double alpha, void *cells) {
  const lt_cuda_tile *t = &j->tile;
  for (int64_t h = 0; h < t->group; h++)
    if (!multiply(c, t, t->rows, t->n, width, alpha, stack_of(x, t, h, t->t0, false),
                  stack_of(y, t, 0, 0, true), 0, cells_of(cells, j->wide, t, h, false)))
      return false;
  return true;
}

static bool forward_tile(lt_ctx *c, job *j) {
  lt_cuda_tile *t = &j->tile;
  operand product = {j->product, j->wide, t->group * t->full_rows * t->e, t->full_rows * t->e,
                     t->e};
  lt_cuda_tile first = *t;
  first.first_unit = 0; /* `product` holds this tile's units alone */
  lt_cuda_heads out = heads_of(&j->out_view);
  if (!scores_into(c, j, &j->q, &j->k, j->d, j->scale, t->scores) ||
      !lt_cuda_attention_softmax(c, t))
    return false;
  for (int64_t h = 0; h < t->group; h++)
    if (!multiply(c, t, t->rows, t->e, t->n, 1, cells_of(t->p, j->dtype, t, h, false),
                  stack_of(&j->v, t, 0, 0, false), 0, stack_of(&product, &first, h, 0, false)))
      return false;
  return lt_cuda_attention_finish(c, t, j->product, &out);
}

static bool backward_tile(lt_ctx *c, job *j) {
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

static bool each_tile(lt_ctx *c, job *j, bool (*tile)(lt_ctx *c, job *j)) {
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

static bool zero(lt_ctx *c, lt_tensor *t) {
  lt_view v;
  return lt_cuda_view(c, t, &v) && lt_cuda_fill_view(c, &v, lt_cuda_number(0));
}

static int64_t numel_of(lt_ctx *c, lt_tensor *t) {
  lt_view v;
  return lt_cuda_view(c, t, &v) ? lt_cuda_numel(&v) : 0;
}

/* Called twice, first to count memory. */
static bool prepare_forward(lt_ctx *c, const lt_call *call, arena *a, job *j) {
  lt_tensor *const *in = call->in;
  if (!take_operand(c, a, in[0], j->tile.group, &j->q) || !take_operand(c, a, in[1], 1, &j->k) ||
      !take_operand(c, a, in[2], 1, &j->v) || !lt_cuda_view(c, call->out[0], &j->out_view))
    return false;
  j->out_view = four_dims(&j->out_view);
  take_tile(a, j, false);
  j->product = take(a, j->most_units * j->tile.group * j->tile.full_rows * j->tile.e, j->wide);
  return true;
}

LT_CUDA_KERNEL(scaled_dot_product_attention) {
  lt_tensor *const *in = call->in;
  arena a = {};
  job j = {};
  take_arguments(&j, lt_cuda_args<lt_args_attention>(call));
  if (!take_sizes(c, &j, in[0], in[1], in[2])) return false;
  if (j.tile.s == 0) return zero(c, call->out[0]) && zero(c, call->out[1]);
  if (numel_of(c, call->out[1]) == 0) return true;
  if (!take_stats(c, &j, call->out[1]) || !take_mask(c, &j, call->n_in > 3 ? in[3] : nullptr) ||
      !prepare_forward(c, call, &a, &j))
    return false;
  a.base = lt_cuda_scratch<char>(c, a.used);
  a.used = 0;
  return a.base != nullptr && prepare_forward(c, call, &a, &j) && each_tile(c, &j, forward_tile);
}

/* Gradients of keys and values are sums over tiles: of the dtype of scores. */
static bool prepare_backward(lt_ctx *c, const lt_call *call, arena *a, job *j) {
  lt_tensor *const *in = call->in, *const *out = call->out;
  int64_t shared = j->tile.group;
  take_tile(a, j, true);
  return take_operand(c, a, in[0], shared, &j->g) && take_operand(c, a, in[1], shared, &j->q) &&
         take_operand(c, a, in[2], 1, &j->k) && take_operand(c, a, in[3], 1, &j->v) &&
         take_result(c, a, out[0], j->dtype, shared, &j->dq, &j->dq_view) &&
         take_result(c, a, out[1], j->wide, 1, &j->dk, &j->dk_view) &&
         take_result(c, a, out[2], j->wide, 1, &j->dv, &j->dv_view);
}

/* dk and dv, where they are summed. */
static bool clear_sums(lt_ctx *c, const job *j) {
  lt_view dk = j->dk_view, dv = j->dv_view;
  if (j->dk.data != dk.data) dk = contiguous(&dk, j->wide, j->dk.data);
  if (j->dv.data != dv.data) dv = contiguous(&dv, j->wide, j->dv.data);
  return lt_cuda_fill_view(c, &dk, lt_cuda_number(0)) &&
         lt_cuda_fill_view(c, &dv, lt_cuda_number(0));
}

static bool take_backward(lt_ctx *c, const lt_call *call, job *j) {
  const lt_args_attention_backward *a = lt_cuda_args<lt_args_attention_backward>(call);
  lt_args_attention same = {};
  lt_view g, out, scores = {};
  same.causal = a->causal, same.scale = a->scale, same.dropout_p = a->dropout_p;
  same.rng_key = a->rng_key;
  take_arguments(j, &same);
  if (!take_stats(c, j, call->in[5]) ||
      !take_mask(c, j, call->n_in > 6 ? call->in[6] : nullptr) ||
      !lt_cuda_view(c, call->in[0], &g) || !lt_cuda_view(c, call->in[4], &out) ||
      (a->of_mask && !lt_cuda_view(c, call->out[3], &scores)))
    return false;
  g = four_dims(&g), out = four_dims(&out);
  j->tile.g = heads_of(&g), j->tile.out = heads_of(&out);
  j->tile.dscores = scores.data;
  return true;
}

LT_CUDA_KERNEL(scaled_dot_product_attention_backward) {
  lt_tensor *const *in = call->in;
  arena a = {};
  job j = {};
  if (numel_of(c, in[5]) == 0 || numel_of(c, in[2]) == 0 || numel_of(c, in[3]) == 0) {
    for (int k = 0; k < call->n_out; k++)
      if (!zero(c, call->out[k])) return false;
    return true;
  }
  if (!take_sizes(c, &j, in[1], in[2], in[3]) || !take_backward(c, call, &j) ||
      !prepare_backward(c, call, &a, &j))
    return false;
  a.base = lt_cuda_scratch<char>(c, a.used);
  a.used = 0;
  return a.base != nullptr && prepare_backward(c, call, &a, &j) && clear_sums(c, &j) &&
         each_tile(c, &j, backward_tile) && move_result(c, &j.dq, &j.dq_view) &&
         move_result(c, &j.dk, &j.dk_view) && move_result(c, &j.dv, &j.dv_view);
}
