/* runtime/ops/expand_margin.c: losses that keep a margin: between pairs, triplets, classes.

   PyTorch's formulas. triplet_margin_loss: F. Schroff and others, FaceNet, 2015.
   multi_margin_loss: the multiclass hinge of K. Crammer and Y. Singer, 2001. */
#include "ops/expand.h"

static bool reduced(lt_ctx *c, const lt_call *call, lt_tensor *loss, lt_tensor **out) {
  return lt_reduce_loss(c, ((const lt_args_loss *)call->args)->reduction, loss, out);
}

/* `a` where the target is not -1, plus `b` where it is not 1. Targets are 1 and -1 by contract; for
   others both terms add, as in torch's hinge_embedding_loss. */
static lt_tensor *by_sign(lt_ctx *c, lt_tensor *target, lt_tensor *a, lt_tensor *b) {
  a = lt_filled(c, a, lt_equals(c, target, -1), 0);
  return lt_add(c, a, lt_filled(c, b, lt_equals(c, target, 1), 0));
}

/* x is a distance: kept small where the target is 1, pushed beyond the margin where it is -1. */
bool lt_expand_hinge_embedding_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_hinge_embedding_loss *a = call->args;
  lt_tensor *x = call->in[0], *apart = lt_at_least(c, lt_from(c, a->margin, x), 0);
  return reduced(c, call, by_sign(c, call->in[1], x, apart), out);
}

/* 1 - cos(x1, x2) where the target is 1, cos(x1, x2) - margin where it is -1. eps is added to the
   squared lengths (not a bound on the lengths, as in cosine_similarity): PyTorch's EPSILON of this
   loss, 1e-12. */
bool lt_expand_cosine_embedding_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_cosine_embedding_loss *a = call->args;
  const double eps = 1e-12;
  lt_tensor *x1 = call->in[0], *x2 = call->in[1];
  int last = x1->ndim - 1;
  lt_tensor *n1 = lt_plus(c, lt_summed(c, lt_unary(c, LT_OP_square, x1), last, false), eps);
  lt_tensor *n2 = lt_plus(c, lt_summed(c, lt_unary(c, LT_OP_square, x2), last, false), eps);
  lt_tensor *cosine = lt_binary(c, LT_OP_div, lt_summed(c, lt_mul(c, x1, x2), last, false),
                                lt_unary(c, LT_OP_sqrt, lt_mul(c, n1, n2)));
  lt_tensor *apart = lt_at_least(c, lt_plus(c, cosine, -a->margin), 0);
  return reduced(c, call, by_sign(c, call->in[2], lt_from(c, 1, cosine), apart), out);
}

/* max(0, margin - y (x1 - x2)), written with x2 - x1, which saves the negation. */
bool lt_expand_margin_ranking_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_margin_ranking_loss *a = call->args;
  lt_tensor *d = lt_mul(c, call->in[2], lt_sub(c, call->in[1], call->in[0]));
  return reduced(c, call, lt_at_least(c, lt_plus(c, d, a->margin), 0), out);
}

/* The p-norm of a - b + eps over the last dim: torch.pairwise_distance, whose eps keeps the
   gradient of equal rows away from 0 / 0. */
static lt_tensor *distance(lt_ctx *c, const lt_call *call, lt_tensor *a, lt_tensor *b) {
  const lt_args_triplet_margin_loss *o = call->args;
  lt_tensor *d = lt_plus(c, lt_sub(c, a, b), o->eps);
  return d == NULL ? NULL
                   : lt_apply1(c, LT_OP_norm, 1, &d,
                               &(lt_args_norm){.p = o->p, .dims = LT_ONE_DIM(d->ndim - 1)});
}

bool lt_expand_triplet_margin_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_triplet_margin_loss *a = call->args;
  lt_tensor *anchor = call->in[0], *positive = call->in[1], *negative = call->in[2];
  lt_tensor *near = distance(c, call, anchor, positive);
  lt_tensor *far = distance(c, call, anchor, negative);
  if (a->swap) far = lt_binary(c, LT_OP_minimum, far, distance(c, call, positive, negative));
  return reduced(c, call, lt_at_least(c, lt_plus(c, lt_sub(c, near, far), a->margin), 0), out);
}

/* Mean over the classes of each sample's binary cross-entropy with logits. Written with softplus as
   binary_cross_entropy_with_logits, whose per-element loss it is. */
bool lt_expand_multilabel_soft_margin_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0];
  lt_tensor *loss = lt_sub(c, lt_softplus(c, x), lt_mul(c, x, call->in[1]));
  if (call->n_in > 2 && call->in[2] != NULL) loss = lt_mul(c, loss, call->in[2]);
  loss = lt_apply1(c, LT_OP_mean, 1, &loss,
                   &(lt_args_reduce){.dims = LT_ONE_DIM(x->ndim - 1)});
  return reduced(c, call, loss, out);
}

/* sum over j ~= y of weight[y] max(0, margin - x[y] + x[j])^p / C. All classes are computed and the
   own one is set to 0: its term would be margin^p, a constant. */
bool lt_expand_multi_margin_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_multi_margin_loss *a = call->args;
  lt_tensor *x = call->in[0], *weight = call->n_in > 2 ? call->in[2] : NULL;
  int last = x->ndim - 1;
  lt_shape rows = lt_tensor_shape(x);
  double classes = (double)rows.size[last];
  rows.size[last] = 1;
  lt_tensor *ids = lt_reshape(c, call->in[1], rows);
  lt_tensor *own = lt_apply1(c, LT_OP_gather, LT_IN(x, ids), &(lt_args_gather){.dim = last});
  lt_tensor *d = lt_at_least(c, lt_plus(c, lt_sub(c, x, own), a->margin), 0);
  if (a->p == 2) d = lt_unary(c, LT_OP_square, d);
  lt_tensor *self = lt_apply1(c, LT_OP_one_hot, 1, &call->in[1],
                              &(lt_args_one_hot){.num_classes = (int64_t)classes});
  d = lt_filled(c, d, lt_binary_scalar(c, LT_OP_ne, self, lt_scalar_int(0)), 0);
  if (weight != NULL) {
    weight = lt_expand_to(c, weight, lt_tensor_shape(x));
    weight = lt_apply1(c, LT_OP_gather, LT_IN(weight, ids), &(lt_args_gather){.dim = last});
    d = lt_mul(c, d, weight);
  }
  return reduced(c, call, lt_scaled(c, lt_summed(c, d, last, false), 1 / classes), out);
}

/* The ids of each row before its first -1, as counts [.., C] and as a mask [.., C]: a running sum
   of the negatives marks what comes after, even if it is not -1. Adding ones by scatter_add instead
   of a loop over rows keeps it on the device. */
static lt_tensor *listed(lt_ctx *c, lt_tensor *ids, lt_dtype dtype, lt_tensor **absent) {
  int last = ids->ndim - 1;
  lt_tensor *end = lt_binary_scalar(c, LT_OP_lt, ids, lt_scalar_int(0));
  end = lt_cast(c, end, LT_I64);
  end = lt_apply1(c, LT_OP_cumsum, 1, &end, &(lt_args_scan){.dim = last});
  *absent = lt_binary_scalar(c, LT_OP_gt, end, lt_scalar_int(0));
  ids = lt_filled(c, ids, *absent, 0);
  lt_tensor *one = lt_full(c, lt_tensor_shape(ids), lt_scalar_of(1), dtype,
                           ids->storage->device);
  one = lt_filled(c, one, *absent, 0);
  lt_tensor *none = lt_scaled(c, one, 0);
  return lt_apply1(c, LT_OP_scatter_add, LT_IN(none, ids, one),
                   &(lt_args_scatter_add){.dim = last});
}

/* sum over listed y and j that are not listed of max(0, 1 - (x[y] - x[j])) / C. All pairs of a row,
   C x C: PyTorch's double loop as one broadcast; C^2 elements of memory a row. */
bool lt_expand_multilabel_margin_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0], *absent = NULL;
  int last = x->ndim - 1;
  lt_tensor *ids = lt_cast(c, call->in[1], LT_I64);
  if (ids == NULL) return false;
  lt_tensor *count = listed(c, ids, (lt_dtype)x->dtype, &absent);
  lt_tensor *clean = lt_filled(c, ids, absent, 0);
  lt_tensor *own = lt_apply1(c, LT_OP_gather, LT_IN(x, clean), &(lt_args_gather){.dim = last});
  if (own == NULL || count == NULL) return false;
  lt_shape column = lt_tensor_shape(x), row = lt_tensor_shape(x);
  column.size[column.ndim++] = 1;
  row.size[row.ndim] = row.size[row.ndim - 1];
  row.size[row.ndim++ - 1] = 1;
  /* [.., y, j] */
  lt_tensor *d = lt_sub(c, lt_reshape(c, x, row), lt_reshape(c, own, column));
  d = lt_at_least(c, lt_plus(c, d, 1), 0);
  d = lt_filled(c, d, lt_reshape(c, absent, column), 0);
  lt_tensor *other = lt_binary_scalar(c, LT_OP_gt, count, lt_scalar_of(0));
  d = lt_filled(c, d, lt_reshape(c, other, row), 0);
  d = lt_summed(c, lt_summed(c, d, last + 1, false), last, false);
  return reduced(c, call, lt_scaled(c, d, 1 / (double)x->size[last]), out);
}
