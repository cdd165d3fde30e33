/* runtime/ops/infer_ctc.c: shapes of connectionist temporal classification.
   N sequences, T steps, C classes, S labels of the longest target. */
#include "ops/infer.h"

static bool integers(lt_ctx *c, const lt_infer *i, int k, const char *name) {
  lt_dtype d = (lt_dtype)i->in[k]->dtype;
  return lt_dtype_is_int(d) || lt_fail(c, LT_EDTYPE, "ctc_loss: %s must be integers, got %s", name,
                                       lt_dtype_name(d));
}

/* log_probs [N, T, C] with targets [N, S], or those of all sequences one after the other, and
   lengths [N]; or all of it of one sequence, without N. */
bool lt_infer_ctc_loss(lt_ctx *c, lt_infer *i) {
  const lt_args_ctc_loss *a = i->args;
  const lt_tensor *x = i->in[0], *targets = i->in[1];
  if (!lt_infer_float(c, i, 0) || !integers(c, i, 1, "targets") ||
      !integers(c, i, 2, "input_lengths") || !integers(c, i, 3, "target_lengths"))
    return false;
  if (x->ndim != 2 && x->ndim != 3)
    return lt_fail(c, LT_ESHAPE, "ctc_loss: log_probs are [N, T, C] or [T, C], got %s",
                   LT_TENSOR_STR(x));
  bool batch = x->ndim == 3;
  int64_t n = batch ? x->size[0] : 1, classes = x->size[x->ndim - 1];
  if (batch ? targets->ndim < 1 || targets->ndim > 2 : targets->ndim != 1)
    return lt_fail(c, LT_ESHAPE, "ctc_loss: log_probs of %s need targets of %s, got %s",
                   LT_TENSOR_STR(x), batch ? "[N, S] or all in one row" : "[S]",
                   LT_TENSOR_STR(targets));
  if ((targets->ndim == 2 && targets->size[0] != n) || i->in[2]->numel != n ||
      i->in[3]->numel != n || i->in[2]->ndim > 1 || i->in[3]->ndim > 1)
    return lt_fail(c, LT_ESHAPE, "ctc_loss: log_probs of %s, targets of %s and lengths of %s and "
                                 "%s do not fit", LT_TENSOR_STR(x), LT_TENSOR_STR(targets),
                   LT_TENSOR_STR(i->in[2]), LT_TENSOR_STR(i->in[3]));
  if (a->blank < 0 || a->blank >= classes)
    return lt_fail(c, LT_EARG, "ctc_loss: blank must be in 0..%lld: got %lld",
                   (long long)classes - 1, (long long)a->blank);
  return a->reduction != LT_REDUCTION_batchmean ||
         lt_fail(c, LT_EARG, "ctc_loss: reduction 'batchmean' is of kl_div alone");
}

/* What lt_expand_ctc_loss calls. */
bool lt_infer_ctc_paths(lt_ctx *c, lt_infer *i) {
  const lt_tensor *x = i->in[0];
  int64_t states = 2 * i->in[1]->size[1] + 1;
  i->out[0] = (lt_meta){.shape = lt_shape_of(1, x->size), .dtype = (lt_dtype)x->dtype};
  i->out[1] = (lt_meta){.shape = {.ndim = 3, .size = {x->size[0], x->size[1], states}},
                        .dtype = LT_F64};
  return lt_ok(c);
}

/* (gradient, log_probs, ...) */
bool lt_infer_ctc_paths_backward(lt_ctx *c, lt_infer *i) {
  i->out[0] = (lt_meta){.shape = lt_tensor_shape(i->in[1]), .dtype = (lt_dtype)i->in[1]->dtype};
  return lt_ok(c);
}
