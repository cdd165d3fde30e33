/* runtime/ops/expand_attention.c: attention with its T x S scores written out.

   A. Vaswani and others, Attention Is All You Need, 2017, as it is written there: for devices
   without a kernel of its own, and for derivatives of derivatives. */
#include <float.h>

#include "ops/expand.h"

/* Scores that take no part, as bools; NULL: all do. -inf in a floating mask is treated as hidden,
   so that a row of them gives zeros as a boolean one does. */
static lt_tensor *hidden(lt_ctx *c, const lt_call *call, const lt_tensor *scores) {
  const lt_args_attention *a = call->args;
  lt_tensor *mask = call->n_in > 3 ? call->in[3] : NULL, *out = NULL;
  if (mask != NULL && mask->dtype == LT_BOOL) out = lt_unary(c, LT_OP_logical_not, mask);
  if (mask != NULL && mask->dtype != LT_BOOL)
    out = lt_binary_scalar(c, LT_OP_eq, mask, lt_scalar_of(-(double)INFINITY));
  if (!a->causal) return out;
  lt_shape square = lt_shape_of(2, &scores->size[scores->ndim - 2]);
  lt_tensor *later = lt_full(c, square, lt_scalar_of(1), LT_BOOL, scores->storage->device);
  later = lt_apply1(c, LT_OP_triu, 1, &later, &(lt_args_triangle){.diagonal = 1});
  return out == NULL ? later : lt_binary(c, LT_OP_logical_or, out, later);
}

static lt_tensor *filled(lt_ctx *c, lt_tensor *x, lt_tensor *mask, double value) {
  return mask == NULL ? x : lt_apply1(c, LT_OP_masked_fill, LT_IN(x, mask),
                                      &(lt_args_masked_fill){.value = lt_scalar_of(value)});
}

/* Keys or values [.., heads, S, D], each head as often as `q` has it (enable_gqa). */
static lt_tensor *shared_heads(lt_ctx *c, lt_tensor *x, const lt_tensor *q) {
  int at = x->ndim - 3;
  if (at < 0 || x->size[at] == q->size[at]) return x;
  lt_shape s = lt_tensor_shape(x), many = s, whole = s;
  whole.size[at] = q->size[at];
  for (int k = s.ndim; k > at + 1; k--) many.size[k] = s.size[k - 1];
  many.ndim++;
  many.size[at + 1] = 1;
  x = lt_reshape(c, x, many);
  many.size[at + 1] = q->size[at] / s.size[at];
  x = x == NULL ? NULL : lt_expand_to(c, x, many);
  return x == NULL ? NULL : lt_reshape(c, x, whole);
}

/* What dropout leaves of the probabilities [.., heads, T, S]; of some heads by the mask of all. */
static lt_tensor *dropped(lt_ctx *c, lt_tensor *p, const lt_args_attention *a) {
  const lt_args_dropout drop = {.p = a->dropout_p, .training = true, .rng_key = a->rng_key};
  int at = p->ndim - 3;
  if (at < 0 || a->all_heads == p->size[at]) return lt_apply1(c, LT_OP_dropout, 1, &p, &drop);
  lt_shape all = lt_tensor_shape(p);
  all.size[at] = a->all_heads;
  lt_tensor *mask =
      lt_full(c, all, lt_scalar_of(1), (lt_dtype)p->dtype, p->storage->device);
  mask = lt_apply1(c, LT_OP_dropout, 1, &mask, &drop);
  if (mask == NULL) return NULL;
  return lt_binary(c, LT_OP_mul, p, lt_slice(c, mask, at, a->first_head, p->size[at], 1));
}

/* Gives the first result only. A row that may see nothing gives zeros. Hidden scores become
   -FLT_MAX, not -inf: a row of -inf would be inf - inf in softmax, and its derivative NaN; the
   probabilities of hidden places are then set to 0. */
bool lt_expand_scaled_dot_product_attention(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_attention *a = call->args;
  lt_dtype dtype = (lt_dtype)call->in[0]->dtype, wide = dtype == LT_F64 ? LT_F64 : LT_F32;
  lt_tensor *q = lt_cast(c, call->in[0], wide), *k = lt_cast(c, call->in[1], wide);
  lt_tensor *v = lt_cast(c, call->in[2], wide), *mask = call->n_in > 3 ? call->in[3] : NULL;
  if (!lt_ok(c)) return false;
  k = shared_heads(c, k, q);
  v = shared_heads(c, v, q);
  if (!lt_ok(c)) return false;
  k = lt_transpose(c, k, k->ndim - 2, k->ndim - 1);
  lt_tensor *scores = lt_apply1(c, LT_OP_matmul, LT_IN(q, k), NULL);
  scores = lt_binary_scalar(c, LT_OP_mul, scores, a->scale);
  if (scores == NULL) return false;
  lt_tensor *hide = hidden(c, call, scores);
  if (mask != NULL && mask->dtype != LT_BOOL)
    scores = lt_binary(c, LT_OP_add, scores, lt_cast(c, mask, wide));
  scores = filled(c, scores, hide, -(double)FLT_MAX);
  lt_tensor *p = lt_apply1(c, LT_OP_softmax, 1, &scores, &(lt_args_softmax){.dim = q->ndim - 1});
  p = filled(c, p, hide, 0);
  if (p != NULL && a->dropout_p > 0) p = dropped(c, p, a);
  *out = lt_cast(c, lt_apply1(c, LT_OP_matmul, LT_IN(p, v), NULL), dtype);
  return *out != NULL;
}
