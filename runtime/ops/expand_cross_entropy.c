/* runtime/ops/expand_cross_entropy.c: losses of classes by their log-probabilities.

   -log p of the target class, weighted, from log_softmax in f32: the logarithm of a softmax would
   be -inf where a probability rounds to 0. Label smoothing mixes the target with the uniform
   distribution (C. Szegedy and others, Rethinking the Inception Architecture, 2016), as in
   torch.nn.functional.cross_entropy. */
#include "ops/expand.h"

/* What the losses compute with: the class dim is `dim`, the second or the only one. */
typedef struct classes {
  const lt_args_cross_entropy *args;
  lt_tensor *log_p; /* log-probabilities, in f32 or f64 */
  lt_tensor *weight; /* shaped to broadcast over log_p, or NULL */
  int dim;
} classes;

static lt_tensor *weighted(lt_ctx *c, const classes *k, lt_tensor *x) {
  return k->weight != NULL ? lt_binary(c, LT_OP_mul, x, k->weight) : x;
}

/* Sum over the classes, whose dim stays. */
static lt_tensor *over_classes(lt_ctx *c, const classes *k, lt_tensor *x) {
  return lt_apply1(c, LT_OP_sum, 1, &x,
                   &(lt_args_reduce){.dims = LT_ONE_DIM(k->dim), .keepdim = true});
}

/* -(1 - s) log p of the target, times the weight of its class; `share` gets those weights. Ignored
   rows gather class 0, whose share is then 0: an id of -100 would be out of range. */
static lt_tensor *by_ids(lt_ctx *c, const classes *k, lt_tensor *ids, lt_tensor *ignored,
                         lt_tensor **share) {
  const lt_args_masked_fill none = {.value = lt_scalar_int(0)};
  const lt_args_gather at = {.dim = k->dim};
  ids = lt_apply1(c, LT_OP_masked_fill, LT_IN(ids, ignored), &none);
  lt_tensor *own = lt_apply1(c, LT_OP_gather, LT_IN(k->log_p, ids), &at);
  if (own == NULL) return NULL;
  *share = lt_full(c, lt_tensor_shape(own), lt_scalar_of(1), (lt_dtype)own->dtype,
                   own->storage->device);
  if (k->weight != NULL) {
    lt_tensor *all = lt_expand_to(c, k->weight, lt_tensor_shape(k->log_p));
    *share = lt_apply1(c, LT_OP_gather, LT_IN(all, ids), &at);
  }
  *share = lt_apply1(c, LT_OP_masked_fill, LT_IN(*share, ignored), &none);
  own = lt_binary(c, LT_OP_mul, own, *share);
  return lt_binary_scalar(c, LT_OP_mul, own, lt_scalar_of(k->args->label_smoothing - 1));
}

/* Each row's loss, with its class dim of size 1; `total`: what a mean divides by. A mean over ids
   divides by the weights of the targets that count, over probabilities by the number of rows:
   PyTorch's two definitions. */
static lt_tensor *rows_loss(lt_ctx *c, const classes *k, lt_tensor *target, lt_tensor **total) {
  double smoothing = k->args->label_smoothing, n = (double)k->log_p->size[k->dim];
  lt_shape rows = lt_tensor_shape(k->log_p);
  rows.size[k->dim] = 1;
  lt_tensor *loss, *ignored = NULL, *share = NULL;
  if (lt_dtype_is_float((lt_dtype)target->dtype)) {
    loss = weighted(c, k, lt_binary(c, LT_OP_mul, k->log_p, target));
    loss = over_classes(c, k, loss);
    loss = lt_binary_scalar(c, LT_OP_mul, loss, lt_scalar_of(smoothing - 1));
    share = lt_full(c, rows, lt_scalar_of(1), (lt_dtype)k->log_p->dtype,
                    k->log_p->storage->device);
  } else {
    target = lt_reshape(c, lt_cast(c, target, LT_I64), rows);
    ignored = lt_binary_scalar(c, LT_OP_eq, target, lt_scalar_int(k->args->ignore_index));
    loss = by_ids(c, k, target, ignored, &share);
  }
  *total = lt_unary(c, LT_OP_sum, share);
  if (smoothing == 0) return loss;
  lt_tensor *rest = over_classes(c, k, weighted(c, k, k->log_p));
  rest = lt_binary_scalar(c, LT_OP_mul, rest, lt_scalar_of(-smoothing / n));
  if (ignored != NULL)
    rest = lt_apply1(c, LT_OP_masked_fill, LT_IN(rest, ignored),
                     &(lt_args_masked_fill){.value = lt_scalar_of(0)});
  return lt_binary(c, LT_OP_add, loss, rest);
}

/* The reduced loss of log-probabilities `log_p`, in the dtype of call's first input. */
static bool reduced(lt_ctx *c, const lt_call *call, const lt_args_cross_entropy *args,
                    lt_tensor *log_p, lt_tensor **out) {
  lt_tensor *x = call->in[0], *weight = call->n_in > 2 ? call->in[2] : NULL, *total = NULL;
  classes k = {.args = args, .dim = x->ndim > 1 ? 1 : 0, .log_p = log_p};
  lt_shape each = {.ndim = x->ndim}, rows = {0};
  for (int d = 0; d < x->ndim; d++) {
    each.size[d] = d == k.dim ? x->size[d] : 1;
    if (d != k.dim) rows.size[rows.ndim++] = x->size[d];
  }
  if (!lt_ok(c)) return false;
  if (weight != NULL)
    k.weight = lt_reshape(c, lt_cast(c, weight, (lt_dtype)log_p->dtype), each);
  lt_tensor *loss = rows_loss(c, &k, call->in[1], &total);
  if (args->reduction == LT_REDUCTION_none) {
    loss = loss == NULL ? NULL : lt_reshape(c, loss, rows);
  } else {
    loss = lt_unary(c, LT_OP_sum, loss);
    if (args->reduction == LT_REDUCTION_mean) loss = lt_binary(c, LT_OP_div, loss, total);
  }
  *out = lt_cast(c, loss, (lt_dtype)x->dtype);
  return *out != NULL;
}

/* Gives the first result only. */
bool lt_expand_cross_entropy(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = lt_wide(c, call->in[0]);
  x = lt_apply1(c, LT_OP_log_softmax, 1, &x,
                &(lt_args_softmax){.dim = call->in[0]->ndim > 1 ? 1 : 0});
  return reduced(c, call, call->args, x, out);
}

bool lt_expand_nll_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_nll_loss *a = call->args;
  const lt_args_cross_entropy args = {.ignore_index = a->ignore_index, .reduction = a->reduction};
  return reduced(c, call, &args, lt_wide(c, call->in[0]), out);
}
