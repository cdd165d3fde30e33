/* runtime/ops/infer_loss.c: shapes of losses that compare elements, pairs or labels. Inputs whose
   shapes differ are refused: broadcasting is a mistake more often than a wish. */
#include "ops/infer.h"

static bool same_shape(lt_ctx *c, const lt_infer *i, int k) {
  const lt_tensor *x = i->in[0], *y = i->in[k];
  return lt_shape_equal(lt_tensor_shape(x), lt_tensor_shape(y)) ||
         lt_fail(c, LT_ESHAPE, "%s: shapes differ: %s and %s", i->op->name, LT_TENSOR_STR(x),
                 LT_TENSOR_STR(y));
}

/* A weight that broadcasts to the first input. A weight must not make the result larger than the
   input, hence the second comparison. */
static bool fits(lt_ctx *c, const lt_infer *i, int k) {
  const lt_tensor *x = i->in[0], *weight = k < i->n_in ? i->in[k] : NULL;
  if (weight == NULL) return true;
  lt_shape both = lt_tensor_shape(x);
  return (lt_shape_broadcast(&both, lt_tensor_shape(weight)) &&
          lt_shape_equal(both, lt_tensor_shape(x))) ||
         lt_fail(c, LT_ESHAPE, "%s: a weight of %s does not broadcast to %s", i->op->name,
                 LT_TENSOR_STR(weight), LT_TENSOR_STR(x));
}

/* The result, where each loss would have the shape `each`. */
static bool result(lt_ctx *c, lt_infer *i, lt_shape each) {
  int64_t reduction = ((const lt_args_loss *)i->args)->reduction;
  if (reduction == LT_REDUCTION_batchmean && i->op->kind != LT_KIND_kl_div)
    return lt_fail(c, LT_EARG, "%s: reduction 'batchmean' is of kl_div alone", i->op->name);
  i->out[0].dtype = lt_result_type(i->in, i->n_in, LT_NONE_SCALAR, LT_NONE_SCALAR);
  if (reduction == LT_REDUCTION_none) i->out[0].shape = each;
  return true;
}

static bool at_least(lt_ctx *c, const lt_infer *i, const char *name, double value, double least,
                     bool equal) {
  return value > least || (equal && value == least) ||
         lt_fail(c, LT_EARG, "%s: %s must be %s %g: got %g", i->op->name, name,
                 equal ? "at least" : "above", least, value);
}

bool lt_infer_loss(lt_ctx *c, lt_infer *i) {
  return lt_infer_float(c, i, 0) && same_shape(c, i, 1) && result(c, i, lt_tensor_shape(i->in[0]));
}

bool lt_infer_weighted_loss(lt_ctx *c, lt_infer *i) { return lt_infer_loss(c, i) && fits(c, i, 2); }

bool lt_infer_logits_loss(lt_ctx *c, lt_infer *i) {
  return lt_infer_weighted_loss(c, i) && fits(c, i, 3);
}

bool lt_infer_huber_loss(lt_ctx *c, lt_infer *i) {
  const lt_args_huber_loss *a = i->args;
  return at_least(c, i, "delta", a->delta, 0, false) && lt_infer_loss(c, i);
}

bool lt_infer_smooth_l1_loss(lt_ctx *c, lt_infer *i) {
  const lt_args_smooth_l1_loss *a = i->args;
  return at_least(c, i, "beta", a->beta, 0, true) && lt_infer_loss(c, i);
}

bool lt_infer_sigmoid_focal_loss(lt_ctx *c, lt_infer *i) { return lt_infer_loss(c, i); }

bool lt_infer_kl_div(lt_ctx *c, lt_infer *i) { return lt_infer_loss(c, i); }

bool lt_infer_poisson_nll_loss(lt_ctx *c, lt_infer *i) { return lt_infer_loss(c, i); }

/* The variance has the shape of the others, or one value for each row of the last dim. */
bool lt_infer_gaussian_nll_loss(lt_ctx *c, lt_infer *i) {
  lt_shape rows = lt_tensor_shape(i->in[0]), v = lt_tensor_shape(i->in[2]);
  if (!lt_infer_loss(c, i)) return false;
  if (lt_shape_equal(rows, v)) return true;
  if (rows.ndim > 0) {
    rows.size[rows.ndim - 1] = 1;
    if (lt_shape_equal(rows, v)) return true;
    rows.ndim--;
    if (lt_shape_equal(rows, v)) return true;
  }
  return lt_fail(c, LT_ESHAPE, "%s: a variance of %s does not fit %s", i->op->name,
                 LT_TENSOR_STR(i->in[2]), LT_TENSOR_STR(i->in[0]));
}

/* One loss for each sample and class: all dims behind them are summed. */
bool lt_infer_dice_loss(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[0];
  if (x->ndim < 2)
    return lt_fail(c, LT_ESHAPE, "%s: needs [N, C, ...], got %s", i->op->name, LT_TENSOR_STR(x));
  return lt_infer_float(c, i, 0) && same_shape(c, i, 1) && result(c, i, lt_shape_of(2, x->size));
}

bool lt_infer_hinge_embedding_loss(lt_ctx *c, lt_infer *i) { return lt_infer_loss(c, i); }

/* The shape of in[0] without its last dim. */
static lt_shape rows_of(const lt_infer *i) {
  lt_shape rows = lt_tensor_shape(i->in[0]);
  if (rows.ndim > 0) rows.ndim--;
  return rows;
}

/* in[k] has one value for each row of in[0]. */
static bool for_rows(lt_ctx *c, const lt_infer *i, int k) {
  lt_shape rows = rows_of(i);
  return lt_shape_equal(rows, lt_tensor_shape(i->in[k])) ||
         lt_fail(c, LT_ESHAPE, "%s: %s needs targets of %s, got %s", i->op->name,
                 LT_TENSOR_STR(i->in[0]), LT_SHAPE_STR(rows), LT_TENSOR_STR(i->in[k]));
}

/* Rows of one or two dims, as of features or classes. */
static bool in_rows(lt_ctx *c, const lt_infer *i, const char *shapes) {
  const lt_tensor *x = i->in[0];
  return (x->ndim == 1 || x->ndim == 2) ||
         lt_fail(c, LT_ESHAPE, "%s: needs %s, got %s", i->op->name, shapes, LT_TENSOR_STR(x));
}

bool lt_infer_cosine_embedding_loss(lt_ctx *c, lt_infer *i) {
  return in_rows(c, i, "[D] or [N, D]") && lt_infer_float(c, i, 0) && same_shape(c, i, 1) &&
         for_rows(c, i, 2) && result(c, i, rows_of(i));
}

bool lt_infer_margin_ranking_loss(lt_ctx *c, lt_infer *i) {
  return lt_infer_loss(c, i) && same_shape(c, i, 2);
}

bool lt_infer_triplet_margin_loss(lt_ctx *c, lt_infer *i) {
  const lt_args_triplet_margin_loss *a = i->args;
  if (i->in[0]->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "%s: needs [D] or [..., D], got []", i->op->name);
  return at_least(c, i, "margin", a->margin, 0, false) && lt_infer_float(c, i, 0) &&
         same_shape(c, i, 1) && same_shape(c, i, 2) && result(c, i, rows_of(i));
}

bool lt_infer_multilabel_soft_margin_loss(lt_ctx *c, lt_infer *i) {
  if (i->in[0]->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "%s: needs [C] or [..., C], got []", i->op->name);
  return lt_infer_float(c, i, 0) && same_shape(c, i, 1) && fits(c, i, 2) &&
         result(c, i, rows_of(i));
}

bool lt_infer_multilabel_margin_loss(lt_ctx *c, lt_infer *i) {
  if (lt_dtype_is_float((lt_dtype)i->in[1]->dtype))
    return lt_fail(c, LT_EDTYPE, "%s: targets are lists of ids: got %s", i->op->name,
                   LT_TENSOR_STR(i->in[1]));
  return in_rows(c, i, "[C] or [N, C]") && lt_infer_float(c, i, 0) && same_shape(c, i, 1) &&
         result(c, i, rows_of(i));
}

bool lt_infer_multi_margin_loss(lt_ctx *c, lt_infer *i) {
  const lt_args_multi_margin_loss *a = i->args;
  const lt_tensor *x = i->in[0], *weight = i->n_in > 2 ? i->in[2] : NULL;
  if (a->p != 1 && a->p != 2)
    return lt_fail(c, LT_EARG, "%s: p must be 1 or 2: got %lld", i->op->name, (long long)a->p);
  if (!in_rows(c, i, "[C] or [N, C]") || !lt_infer_float(c, i, 0) || !for_rows(c, i, 1))
    return false;
  if (weight != NULL && (weight->ndim != 1 || weight->numel != x->size[x->ndim - 1]))
    return lt_fail(c, LT_ESHAPE, "%s: needs a weight for each of %lld classes, got %s", i->op->name,
                   (long long)x->size[x->ndim - 1], LT_TENSOR_STR(weight));
  return result(c, i, rows_of(i));
}
