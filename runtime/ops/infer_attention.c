/* runtime/ops/infer_attention.c: shapes of attention. B batch, H heads, T queries, S keys; with
   enable_gqa keys and values have fewer heads, each for as many heads of queries. */
#include <math.h>

#include "ops/infer.h"

/* [B, H, T, D] laid out as [B, T, H, D]: joining the heads again is then a view. */
static lt_meta heads_inside(lt_shape s, lt_dtype dtype) {
  lt_meta m = {
      .shape = s, .dtype = dtype, .strided = s.ndim == 4 && s.size[1] > 1 && s.size[2] > 1};
  if (!m.strided) return m;
  lt_shape_strides(lt_shape_of(4, (int64_t[]){s.size[0], s.size[2], s.size[1], s.size[3]}),
                   m.stride);
  int64_t of_heads = m.stride[2];
  m.stride[2] = m.stride[1];
  m.stride[1] = of_heads;
  return m;
}

/* [T, D], [H, T, D] or [B, H, T, D]; heads of k and v may be fewer only under enable_gqa, where
   each serves a run of heads of q (J. Ainslie and others, GQA, 2023). */
static bool shapes_fit(const lt_tensor *q, const lt_tensor *k, const lt_tensor *v, bool shared) {
  int n = q->ndim;
  if (n < 2 || n > 4 || k->ndim != n || v->ndim != n) return false;
  for (int i = 0; i < n - 2; i++) {
    bool heads = shared && i == n - 3 && k->size[i] > 0 && q->size[i] % k->size[i] == 0;
    if ((q->size[i] != k->size[i] && !heads) || k->size[i] != v->size[i]) return false;
  }
  return q->size[n - 1] == k->size[n - 1] && k->size[n - 2] == v->size[n - 2];
}

static bool shapes_differ(lt_ctx *c, const lt_infer *i, bool shared) {
  const lt_tensor *q = i->in[0], *k = i->in[1], *v = i->in[2];
  return lt_fail(c, LT_ESHAPE,
                 "%s: needs q [.., T, D], k [.., S, D], v [.., S, E] of 2 to 4 dims%s, got %s, %s, "
                 "%s%s",
                 i->op->name, shared ? ", heads of q a multiple of those of k and v" : "",
                 LT_TENSOR_STR(q), LT_TENSOR_STR(k), LT_TENSOR_STR(v),
                 !shared && shapes_fit(q, k, v, true) ? "; enable_gqa = true shares heads" : "");
}

static bool check_mask(lt_ctx *c, const lt_infer *i, lt_shape scores) {
  const lt_tensor *mask = i->n_in > 3 ? i->in[3] : NULL;
  if (mask == NULL) return true;
  lt_dtype d = (lt_dtype)mask->dtype;
  if (d != LT_BOOL && !lt_dtype_is_float(d))
    return lt_fail(c, LT_EDTYPE,
                   "%s: mask must be bool (true takes part) or floating (added to the scores), "
                   "got %s",
                   i->op->name, lt_dtype_name(d));
  lt_shape fit = scores;
  if (lt_shape_broadcast(&fit, lt_tensor_shape(mask)) && lt_shape_equal(fit, scores)) return true;
  return lt_fail(c, LT_ESHAPE, "%s: mask %s does not fit the scores %s", i->op->name,
                 LT_TENSOR_STR(mask), LT_SHAPE_STR(scores));
}

/* Heads from `first` on of `all`, in the numbering of dropout; all = 0: q has all there are. */
static bool take_heads(lt_ctx *c, const lt_infer *i, const lt_tensor *q, int64_t first,
                       int64_t *all) {
  int64_t own = q->ndim > 2 ? q->size[q->ndim - 3] : 1;
  if (*all == 0 && first == 0) *all = own;
  if (first >= 0 && *all - first >= own && (q->ndim > 2 || *all == 1)) return true;
  return lt_fail(c, LT_EARG, "%s: heads %lld to %lld of q %s are not among all_heads = %lld",
                 i->op->name, (long long)first, (long long)(first + own - 1), LT_TENSOR_STR(q),
                 (long long)*all);
}

/* `stats` are two numbers a row, the largest score and the sum of exponentials, from which backward
   makes the probabilities again: [T, S] is never stored (T. Dao and others, FlashAttention, 2022).
   The key of dropout is drawn here, once, so that backward makes the same mask. */
bool lt_infer_attention(lt_ctx *c, lt_infer *i) {
  lt_args_attention *a = i->args;
  const lt_tensor *q = i->in[0], *k = i->in[1], *v = i->in[2];
  if (!shapes_fit(q, k, v, a->enable_gqa)) return shapes_differ(c, i, a->enable_gqa);
  lt_dtype d = (lt_dtype)q->dtype;
  if (!lt_dtype_is_float(d) || k->dtype != q->dtype || v->dtype != q->dtype)
    return lt_fail(c, LT_EDTYPE, "%s: q, k and v must be floating and of one dtype, got %s, %s, %s",
                   i->op->name, lt_dtype_name(d), lt_dtype_name((lt_dtype)k->dtype),
                   lt_dtype_name((lt_dtype)v->dtype));
  int n = q->ndim;
  lt_shape scores = lt_tensor_shape(q), out = scores, stats = {.ndim = n, .size = {2}};
  for (int at = 1; at < n; at++) stats.size[at] = q->size[at - 1];
  scores.size[n - 1] = k->size[n - 2];
  out.size[n - 1] = v->size[n - 1];
  if (!check_mask(c, i, scores) || !take_heads(c, i, q, a->first_head, &a->all_heads))
    return false;
  if (!(a->dropout_p >= 0 && a->dropout_p <= 1))
    return lt_fail(c, LT_EARG, "%s: dropout_p must be in 0..1: got %g", i->op->name, a->dropout_p);
  if (a->dropout_p > 0 && !a->rng_key.drawn) a->rng_key = lt_rng_draw(&c->rng);
  if (a->scale.kind == LT_NO_SCALAR)
    a->scale = lt_scalar_of(q->size[n - 1] > 0 ? 1 / sqrt((double)q->size[n - 1]) : 1);
  i->out[0] = heads_inside(out, d);
  i->out[1] = (lt_meta){.shape = stats, .dtype = d == LT_F64 ? LT_F64 : LT_F32};
  return lt_assert(c, i->n_out == 2);
}

/* (g, q, k, v, out, stats, mask): gradients of q, k and v; of the scores if the mask wants one.
   Called without a key, by files of the library that set the generator back to where it was before
   forward drew, it draws the same. */
bool lt_infer_attention_backward(lt_ctx *c, lt_infer *i) {
  lt_args_attention_backward *a = i->args;
  if (a->dropout_p > 0 && !a->rng_key.drawn) a->rng_key = lt_rng_draw(&c->rng);
  const lt_tensor *q = i->in[1], *k = i->in[2];
  if (!take_heads(c, i, q, a->first_head, &a->all_heads)) return false;
  i->n_out = a->of_mask ? 4 : 3;
  i->out[3].shape = lt_tensor_shape(q);
  i->out[3].shape.size[q->ndim - 1] = k->size[q->ndim - 2];
  i->out[3].dtype = q->dtype == LT_F64 ? LT_F64 : LT_F32;
  for (int n = 0; n < 3; n++)
    i->out[n] = heads_inside(lt_tensor_shape(i->in[n + 1]), (lt_dtype)i->in[n + 1]->dtype);
  return lt_ok(c);
}
