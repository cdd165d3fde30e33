/* runtime/ops/infer_softmax.c: shapes of softmax and of losses. */
#include <string.h>

#include "ops/infer.h"

bool lt_infer_softmax(lt_ctx *c, lt_infer *i) {
  lt_args_softmax *a = i->args;
  int d;
  if (!lt_infer_float(c, i, 0) || !lt_shape_dim(c, lt_tensor_shape(i->in[0]), a->dim, &d))
    return false;
  a->dim = d;
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[0]), .dtype = (lt_dtype)i->in[0]->dtype};
  return true;
}

/* (gradient, y) */
bool lt_infer_softmax_backward(lt_ctx *c, lt_infer *i) {
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[1]), .dtype = (lt_dtype)i->in[1]->dtype};
  return lt_ok(c);
}

/* The shape of x without its class dim: the second, or the only one. */
static lt_shape without_classes(const lt_tensor *x) {
  lt_shape s = {0};
  int classes = x->ndim > 1 ? 1 : 0;
  for (int k = 0; k < x->ndim; k++)
    if (k != classes) s.size[s.ndim++] = x->size[k];
  return s;
}

/* What to do about targets [N, 1], about one-hot rows of integers, or about classes that are not
   dim 2 but the last. */
static const char *remedy_of(const lt_tensor *x, const lt_tensor *target, const lt_shape *wanted) {
  size_t bytes = (size_t)wanted->ndim * sizeof *x->size;
  if (target->ndim == wanted->ndim + 1 && target->size[target->ndim - 1] == 1 &&
      memcmp(target->size, wanted->size, bytes) == 0)
    return ": write targets:squeeze(-1)";
  if (lt_shape_equal(lt_tensor_shape(x), lt_tensor_shape(target)))
    return ": targets of one-hot rows are floats: write targets:float()";
  if (x->ndim > 2 && target->ndim == wanted->ndim && memcmp(target->size, x->size, bytes) == 0)
    return ": classes are dim 2 of the logits: write logits:movedim(-1, 2)";
  return "";
}

static bool check_target(lt_ctx *c, const lt_infer *i) {
  const lt_tensor *x = i->in[0], *target = i->in[1];
  if (lt_dtype_is_float((lt_dtype)target->dtype))
    return lt_shape_equal(lt_tensor_shape(x), lt_tensor_shape(target)) ||
           lt_fail(c, LT_ESHAPE,
                   "%s: floating targets are probabilities in the shape of the logits: %s and %s "
                   "(ids must be integers)",
                   i->op->name, LT_TENSOR_STR(x), LT_TENSOR_STR(target));
  lt_shape wanted = without_classes(x);
  return lt_shape_equal(wanted, lt_tensor_shape(target)) ||
         lt_fail(c, LT_ESHAPE, "%s: logits of %s need targets of %s, got %s%s", i->op->name,
                 LT_TENSOR_STR(x), LT_SHAPE_STR(wanted), LT_TENSOR_STR(target),
                 remedy_of(x, target, &wanted));
}

static bool check_classes(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[0], *weight = i->n_in > 2 ? i->in[2] : NULL;
  if (!lt_infer_float(c, i, 0)) return false;
  if (x->ndim == 0)
    return lt_fail(c, LT_ESHAPE, "%s: needs classes [C] or [N, C, ...], got %s", i->op->name,
                   LT_TENSOR_STR(x));
  if (!check_target(c, i)) return false;
  int64_t classes = x->size[x->ndim > 1 ? 1 : 0];
  return weight == NULL || (weight->ndim == 1 && weight->numel == classes) ||
         lt_fail(c, LT_ESHAPE, "%s: needs a weight for each of %lld classes, got %s", i->op->name,
                 (long long)classes, LT_TENSOR_STR(weight));
}

static bool check_reduction(lt_ctx *c, const lt_infer *i, int64_t reduction) {
  return reduction != LT_REDUCTION_batchmean ||
         lt_fail(c, LT_EARG, "%s: reduction 'batchmean' is of kl_div alone", i->op->name);
}

/* (log-probabilities, target, weight) */
bool lt_infer_nll_loss(lt_ctx *c, lt_infer *i) {
  const lt_args_nll_loss *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!check_classes(c, i) || !check_reduction(c, i, a->reduction)) return false;
  if (lt_dtype_is_float((lt_dtype)i->in[1]->dtype))
    return lt_fail(c, LT_EDTYPE, "%s: targets must be ids of classes: got %s", i->op->name,
                   LT_TENSOR_STR(i->in[1]));
  i->out[0].dtype = (lt_dtype)x->dtype;
  if (a->reduction == LT_REDUCTION_none) i->out[0].shape = without_classes(x);
  return true;
}

/* (logits, target, weight) to (loss, [2, rows]: the largest logit m of each row and the sum of
   exp(x - m), divisor of the mean). */
bool lt_infer_cross_entropy(lt_ctx *c, lt_infer *i) {
  const lt_args_cross_entropy *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!check_classes(c, i) || !check_reduction(c, i, a->reduction)) return false;
  if (!(a->label_smoothing >= 0 && a->label_smoothing <= 1))
    return lt_fail(c, LT_EARG, "%s: label_smoothing must be in 0..1: got %g", i->op->name,
                   a->label_smoothing);
  lt_shape rows = without_classes(x), one = {0};
  lt_shape stats = {.ndim = 2, .size = {2, lt_shape_numel(rows)}};
  bool each = a->reduction == LT_REDUCTION_none;
  i->out[0] = (lt_meta){.shape = each ? rows : one, .dtype = (lt_dtype)x->dtype};
  i->out[1] = (lt_meta){.shape = stats, .dtype = x->dtype == LT_F64 ? LT_F64 : LT_F32};
  i->out[2] = (lt_meta){.shape = one, .dtype = LT_F64};
  return true;
}

/* (gradient, logits, target, stats, total, weight) */
bool lt_infer_cross_entropy_backward(lt_ctx *c, lt_infer *i) {
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[1]), .dtype = (lt_dtype)i->in[1]->dtype};
  return lt_ok(c);
}
