/* runtime/ops/expand_ctc.c: connectionist temporal classification: batches, targets in one row,
   reductions. N sequences, T steps, C classes, S labels of the longest target. */
#include "ops/expand.h"

/* Targets one after the other as [N, S]: behind its own a row holds whatever comes there. Positions
   are clamped to the last target, so that short rows stay inside; their lengths keep what is behind
   from being read. Two numbers are read from the device, since the size of the result depends on
   them. */
static lt_tensor *as_rows(lt_ctx *c, lt_tensor *targets, lt_tensor *lengths) {
  lt_scalar longest = {.i = 0}, total = {.i = 0};
  if (lengths->numel > 0 && (!lt_item(c, lt_unary(c, LT_OP_amax, lengths), &longest) ||
                             !lt_item(c, lt_unary(c, LT_OP_sum, lengths), &total)))
    return NULL;
  if (total.i != targets->numel) {
    lt_fail(c, LT_ESHAPE, "ctc_loss: targets of %s for target_lengths whose sum is %lld",
            LT_TENSOR_STR(targets), (long long)total.i);
    return NULL;
  }
  lt_shape shape = {.ndim = 2, .size = {lengths->numel, longest.i}};
  if (lt_shape_numel(shape) == 0)
    return lt_full(c, shape, lt_scalar_int(0), LT_I64, targets->storage->device);
  lt_tensor *end = lt_apply1(c, LT_OP_cumsum, 1, &lengths, &(lt_args_scan){.dim = 0});
  lt_tensor *start = lt_sub(c, end, lengths);
  lt_tensor *at = lt_reshape(c, start, (lt_shape){.ndim = 2, .size = {lengths->numel, 1}});
  at = lt_add(c, at, lt_counting(c, longest.i, targets->storage->device));
  at = lt_binary_scalar(c, LT_OP_minimum, at, lt_scalar_int(targets->numel - 1));
  at = lt_flat(c, at);
  return lt_reshape(c, lt_taken(c, targets, 0, at), shape);
}

/* The mean is that of the losses for each label. As torch.nn.functional.ctc_loss; a length of 0
   counts as 1. */
static lt_tensor *reduced(lt_ctx *c, lt_tensor *loss, lt_tensor *lengths, int64_t reduction) {
  if (reduction == LT_REDUCTION_none) return loss;
  if (reduction == LT_REDUCTION_sum) return lt_unary(c, LT_OP_sum, loss);
  lengths = lt_cast(c, lt_at_least(c, lengths, 1), (lt_dtype)loss->dtype);
  return lt_unary(c, LT_OP_mean, lt_binary(c, LT_OP_div, loss, lengths));
}

bool lt_expand_ctc_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_ctc_loss *a = call->args;
  lt_tensor *x = lt_wide(c, call->in[0]), *targets = lt_cast(c, call->in[1], LT_I64);
  lt_tensor *steps = lt_flat(c, lt_cast(c, call->in[2], LT_I64));
  lt_tensor *lengths = lt_flat(c, lt_cast(c, call->in[3], LT_I64)), *made[2] = {NULL};
  if (!lt_ok(c)) return false;
  bool one = x->ndim == 2;
  if (one) {
    x = lt_reshape(c, x, (lt_shape){.ndim = 3, .size = {1, x->size[0], x->size[1]}});
    targets = lt_reshape(c, targets, (lt_shape){.ndim = 2, .size = {1, targets->numel}});
  } else if (targets->ndim == 1) {
    targets = as_rows(c, targets, lengths);
  }
  if (!lt_ok(c) || !lt_apply(c, LT_OP_ctc_paths, LT_IN(x, targets, steps, lengths),
                             &(lt_args_ctc_paths){.blank = a->blank,
                                                  .zero_infinity = a->zero_infinity},
                             2, made))
    return false;
  lt_tensor *loss = made[0];
  if (a->zero_infinity)
    loss = lt_filled(c, loss, lt_equals(c, loss, (double)INFINITY), 0);
  loss = reduced(c, loss, lengths, a->reduction);
  *out = loss != NULL && one && loss->ndim == 1 ? lt_reshape(c, loss, (lt_shape){0}) : loss;
  return *out != NULL;
}
