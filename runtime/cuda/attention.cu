/* runtime/cuda/attention.cu: scaled dot product attention in tiles of query rows.

   A tile of some heads and up to ROWS queries of each meets all keys it may see at once, by
   products of stacks (gemm.h) with a kernel on rows of scores between them (attention_rows.cu).
   Scores are f32 (f64 for f64); exponents and probabilities, which enter the next product, are of
   the dtype of the operands. Memory grows with S, never with T x S: tiles hold up to CELLS scores.
   Forward keeps the largest score of each row and the sum of exp(score - largest); backward
   computes the scores again. Dropout uses the words that the CPU uses, and keeps none.

   Letters are those of attention.h.

   This is the path for what flash.cu does not take: f32 and f64, wide heads, GPUs before compute
   capability 8.0. FlashAttention's idea of never storing T x S is kept, its fusion is not: three
   launches a tile, products by cuBLASLt. */
#include "cuda/attention.h"
#include "cuda/elementwise.h"
#include "cuda/flash.h"

#ifndef LT_CUDA_ATTENTION_ROWS /* small for specs */
#define LT_CUDA_ATTENTION_ROWS 512
#define LT_CUDA_ATTENTION_CELLS (16 << 20)
#endif
static const int64_t ROWS = LT_CUDA_ATTENTION_ROWS, FEWEST_ROWS = 64;
static const int64_t CELLS = LT_CUDA_ATTENTION_CELLS;

/* Memory of one call: counted first, then given out from one piece. Each piece begins at a multiple
   of 256 bytes, the alignment of cudaMalloc, so that vector loads and cuBLASLt's fastest algorithms
   apply. */
typedef struct arena {
  char *base; /* nullptr: counting */
  int64_t used;
} arena;

static void *take(arena *a, int64_t elements, int dtype) {
  char *p = a->base != nullptr ? a->base + a->used : nullptr;
  a->used += (elements * lt_cuda_item_size(dtype) + 255) / 256 * 256;
  return p;
}

/* The same shape, row-major, in other memory. */
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
static lt_cuda_units operand_of(const lt_view *v, int64_t shared) {
  lt_cuda_units o;
  o.data = v->data;
  o.dtype = v->dtype;
  o.head = v->size[1] == 1 ? 0 : v->stride[1];
  o.row = v->size[2] == 1 ? v->size[3] : v->stride[2];
  o.unit = v->size[1] == shared ? v->stride[0] : shared * v->stride[1];
  return o;
}

/* An lt_cuda_units of the products, in place or as a copy. */
static bool take_operand(lt_ctx *c, arena *a, lt_tensor *t, int64_t shared, lt_cuda_units *out) {
  lt_view v;
  if (!lt_cuda_view(c, t, &v)) return false;
  v = lt_cuda_four_dims(&v);
  if (in_place(&v)) {
    *out = operand_of(&v, shared);
    return true;
  }
  lt_view copy = contiguous(&v, v.dtype, take(a, lt_cuda_numel(&v), v.dtype));
  *out = operand_of(&copy, shared);
  return a->base == nullptr || lt_cuda_move(c, &copy, &v);
}

/* A result of the products; *elsewhere: it must be moved to `to` at the end. */
static bool take_result(lt_ctx *c, arena *a, lt_tensor *t, int dtype, int64_t shared,
                        lt_cuda_units *out, lt_view *to) {
  if (!lt_cuda_view(c, t, to)) return false;
  *to = lt_cuda_four_dims(to);
  lt_view own = *to;
  if (to->dtype != dtype || !in_place(to))
    own = contiguous(to, dtype, take(a, lt_cuda_numel(to), dtype));
  *out = operand_of(&own, shared);
  return true;
}

static bool move_result(lt_ctx *c, const lt_cuda_units *from, const lt_view *to) {
  lt_view own = contiguous(to, from->dtype, from->data);
  return from->data == to->data || lt_cuda_move(c, to, &own);
}

/* Strides of the mask over [B, H, T, S]. */
static bool take_mask(lt_ctx *c, lt_cuda_attention *j, lt_tensor *mask) {
  lt_view v;
  if (mask == nullptr) return true;
  if (!lt_cuda_view(c, mask, &v)) return false;
  j->tile.mask = v.data;
  j->tile.mask_dtype = v.dtype;
  for (int d = 0; d < v.ndim; d++)
    j->tile.mask_stride[4 - v.ndim + d] = v.size[d] == 1 ? 0 : v.stride[d];
  return true;
}

/* The sizes of a call and of its tiles. A row of scores is padded to 16 elements; a tile has as
   many rows as CELLS permits for one unit (in multiples of FEWEST_ROWS, below which products are
   slow), then as many units. */
static bool take_sizes(lt_ctx *c, lt_cuda_attention *j, lt_tensor *query, lt_tensor *key,
                       lt_tensor *value) {
  lt_view q, k, v;
  if (!lt_cuda_view(c, query, &q) || !lt_cuda_view(c, key, &k) || !lt_cuda_view(c, value, &v))
    return false;
  q = lt_cuda_four_dims(&q), k = lt_cuda_four_dims(&k), v = lt_cuda_four_dims(&v);
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

/* The threshold of dropout is p of 2^32, as the words are compared. */
static void take_arguments(lt_cuda_attention *j, const lt_args_attention *a) {
  j->tile.causal = a->causal;
  j->scale = a->scale.f;
  j->tile.first_head = a->first_head, j->tile.all_heads = a->all_heads;
  j->tile.drops = a->dropout_p > 0;
  j->tile.threshold = a->dropout_p < 1 ? static_cast<uint32_t>(a->dropout_p * 0x1p32) : 0;
  j->tile.keep = a->dropout_p < 1 ? 1 / (1 - a->dropout_p) : 0;
  j->tile.rng_key = a->rng_key;
}

static bool take_stats(lt_ctx *c, lt_cuda_attention *j, lt_tensor *stats) {
  lt_view v;
  if (!lt_cuda_view(c, stats, &v)) return false;
  j->tile.most = v.data;
  j->tile.sum = static_cast<char *>(v.data) + lt_cuda_numel(&v) / 2 * lt_cuda_item_size(v.dtype);
  return true;
}

/* Scores of a tile, and for halves what goes into the next product. */
static void take_tile(arena *a, lt_cuda_attention *j, bool backward) {
  lt_cuda_tile *t = &j->tile;
  int64_t cells = j->most_units * t->group * t->full_rows * t->ld;
  bool apart = j->dtype != j->wide;
  t->scores = take(a, cells, j->wide);
  t->p = apart ? take(a, cells, j->dtype) : t->scores;
  if (!backward) return;
  t->dp = take(a, cells, j->wide);
  t->ds = apart ? take(a, cells, j->dtype) : t->dp;
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
static bool prepare_forward(lt_ctx *c, const lt_call *call, arena *a, lt_cuda_attention *j) {
  lt_tensor *const *in = call->in;
  if (!take_operand(c, a, in[0], j->tile.group, &j->q) || !take_operand(c, a, in[1], 1, &j->k) ||
      !take_operand(c, a, in[2], 1, &j->v) ||
      !lt_cuda_attention_heads(c, call->out[0], &j->tile.out))
    return false;
  take_tile(a, j, false);
  j->product = take(a, j->most_units * j->tile.group * j->tile.full_rows * j->tile.e, j->wide);
  return true;
}

/* Without keys the result is 0, as of a row that may see nothing. */
LT_CUDA_KERNEL(scaled_dot_product_attention) {
  lt_tensor *const *in = call->in;
  arena a = {};
  lt_cuda_attention j = {};
  take_arguments(&j, lt_cuda_args<lt_args_attention>(call));
  if (!take_sizes(c, &j, in[0], in[1], in[2])) return false;
  if (j.tile.s == 0) return zero(c, call->out[0]) && zero(c, call->out[1]);
  if (numel_of(c, call->out[1]) == 0) return true;
  bool taken = false;
  if (!take_stats(c, &j, call->out[1]) || !take_mask(c, &j, call->n_in > 3 ? in[3] : nullptr) ||
      !lt_cuda_flash_forward(c, call, &j, &taken))
    return false;
  if (taken) return true;
  if (!prepare_forward(c, call, &a, &j)) return false;
  a.base = lt_cuda_scratch<char>(c, a.used);
  a.used = 0;
  return a.base != nullptr && prepare_forward(c, call, &a, &j) && lt_cuda_attention_forward(c, &j);
}

/* Gradients of keys and values are sums over tiles: of the dtype of scores. */
static bool prepare_backward(lt_ctx *c, const lt_call *call, arena *a, lt_cuda_attention *j) {
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
static bool clear_sums(lt_ctx *c, const lt_cuda_attention *j) {
  lt_view dk = j->dk_view, dv = j->dv_view;
  if (j->dk.data != dk.data) dk = contiguous(&dk, j->wide, j->dk.data);
  if (j->dv.data != dv.data) dv = contiguous(&dv, j->wide, j->dv.data);
  return lt_cuda_fill_view(c, &dk, lt_cuda_number(0)) &&
         lt_cuda_fill_view(c, &dv, lt_cuda_number(0));
}

/* The gradient of a mask is that of the scores, [B, H, T, S]: the only case that stores them. */
static bool take_backward(lt_ctx *c, const lt_call *call, lt_cuda_attention *j) {
  const lt_args_attention_backward *a = lt_cuda_args<lt_args_attention_backward>(call);
  lt_args_attention same = {};
  lt_view scores = {};
  same.causal = a->causal, same.scale = a->scale, same.dropout_p = a->dropout_p;
  same.first_head = a->first_head, same.all_heads = a->all_heads;
  same.rng_key = a->rng_key;
  take_arguments(j, &same);
  if (!take_stats(c, j, call->in[5]) ||
      !take_mask(c, j, call->n_in > 6 ? call->in[6] : nullptr) ||
      !lt_cuda_attention_heads(c, call->in[0], &j->tile.g) ||
      !lt_cuda_attention_heads(c, call->in[4], &j->tile.out) ||
      (a->of_mask && !lt_cuda_view(c, call->out[3], &scores)))
    return false;
  j->tile.dscores = scores.data;
  return true;
}

LT_CUDA_KERNEL(scaled_dot_product_attention_backward) {
  lt_tensor *const *in = call->in;
  arena a = {};
  lt_cuda_attention j = {};
  if (numel_of(c, in[5]) == 0 || numel_of(c, in[2]) == 0 || numel_of(c, in[3]) == 0) {
    for (int k = 0; k < call->n_out; k++)
      if (!zero(c, call->out[k])) return false;
    return true;
  }
  bool taken = false;
  if (!take_sizes(c, &j, in[1], in[2], in[3]) || !take_backward(c, call, &j) ||
      !lt_cuda_flash_backward(c, call, &j, &taken))
    return false;
  if (taken) return true;
  if (!prepare_backward(c, call, &a, &j)) return false;
  a.base = lt_cuda_scratch<char>(c, a.used);
  a.used = 0;
  return a.base != nullptr && prepare_backward(c, call, &a, &j) && clear_sums(c, &j) &&
         lt_cuda_attention_backward(c, &j) && move_result(c, &j.dq, &j.dq_view) &&
         move_result(c, &j.dk, &j.dk_view) && move_result(c, &j.dv, &j.dv_view);
}
