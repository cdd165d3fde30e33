/* runtime/ops/expand_loss.c: losses of two tensors of one shape.

   huber_loss: P. Huber, Robust Estimation of a Location Parameter, 1964; smooth_l1_loss is the
   same over its delta. */
#include "ops/expand.h"

static bool reduced(lt_ctx *c, const lt_call *call, lt_tensor *loss, lt_tensor **out) {
  return lt_reduce_loss(c, ((const lt_args_loss *)call->args)->reduction, loss, out);
}

/* PyTorch's reductions. "batchmean" is the sum over the first size: for kl_div the mean over all
   elements would not be the divergence, as torch's documentation warns. */
bool lt_reduce_loss(lt_ctx *c, int64_t reduction, lt_tensor *loss, lt_tensor **out) {
  if (!lt_ok(c) || loss == NULL) return false;
  double n = loss->ndim > 0 ? (double)loss->size[0] : 1;
  if (reduction == LT_REDUCTION_mean) loss = lt_unary(c, LT_OP_mean, loss);
  if (reduction == LT_REDUCTION_sum || reduction == LT_REDUCTION_batchmean)
    loss = lt_unary(c, LT_OP_sum, loss);
  if (reduction == LT_REDUCTION_batchmean)
    loss = lt_binary_scalar(c, LT_OP_div, loss, lt_scalar_of(n));
  *out = loss;
  return loss != NULL;
}

/* The plain square: its gradient 2 (x - t) / n comes from the row of `square`. */
bool lt_expand_mse_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return reduced(c, call, lt_unary(c, LT_OP_square, lt_sub(c, call->in[0], call->in[1])), out);
}

static lt_tensor *distance(lt_ctx *c, const lt_call *call) {
  return lt_unary(c, LT_OP_abs, lt_sub(c, call->in[0], call->in[1]));
}

bool lt_expand_l1_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return reduced(c, call, distance(c, call), out);
}

/* q (d - q / 2) with q = min(d, delta): d^2 / 2 up to delta, a line of slope delta beyond it. One
   formula for both branches, without a mask: where d < delta q is d, elsewhere the constant delta,
   so that clamp's derivative gives d or delta. */
static lt_tensor *huber(lt_ctx *c, lt_tensor *d, double delta) {
  lt_tensor *q = lt_apply1(c, LT_OP_clamp, 1, &d, &(lt_args_clamp){.max = lt_scalar_of(delta)});
  return lt_mul(c, q, lt_sub(c, d, lt_scaled(c, q, 0.5)));
}

bool lt_expand_huber_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_huber_loss *a = call->args;
  return reduced(c, call, huber(c, distance(c, call), a->delta), out);
}

/* Huber over beta: slope 1 far away whatever beta is. beta = 0 is l1_loss, where the quotient would
   be 0 / 0. */
bool lt_expand_smooth_l1_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_smooth_l1_loss *a = call->args;
  lt_tensor *d = distance(c, call);
  if (a->beta > 0) d = lt_scaled(c, huber(c, d, a->beta), 1 / a->beta);
  return reduced(c, call, d, out);
}

/* log(1 + e^(-target x)). */
bool lt_expand_soft_margin_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = lt_unary(c, LT_OP_neg, lt_mul(c, call->in[0], call->in[1]));
  return reduced(c, call, lt_softplus(c, x), out);
}

static lt_tensor *input(const lt_call *call, int k) { return k < call->n_in ? call->in[k] : NULL; }

static lt_tensor *weighted(lt_ctx *c, lt_tensor *x, lt_tensor *weight) {
  return weight != NULL ? lt_mul(c, x, weight) : x;
}

/* softplus(x) - x target, which no exponential overflows; with weights of positives pos_weight
   target softplus(-x) + (1 - target) softplus(x). Softplus is log1p(exp(-|x|)) + max(x, 0) in
   effect: near x = 0 it keeps its digits, far away it is x or 0, where log(sigmoid(x)) would round
   to log(0). */
bool lt_expand_binary_cross_entropy_with_logits(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0], *target = call->in[1], *positives = input(call, 3), *loss;
  if (positives == NULL) {
    loss = lt_sub(c, lt_softplus(c, x), lt_mul(c, x, target));
  } else {
    lt_tensor *hit = lt_softplus(c, lt_unary(c, LT_OP_neg, x));
    hit = lt_mul(c, lt_mul(c, positives, target), hit);
    loss = lt_mul(c, lt_from(c, 1, target), lt_softplus(c, x));
    loss = lt_add(c, hit, loss);
  }
  return reduced(c, call, weighted(c, loss, input(call, 2)), out);
}

/* log(p), at least -100, and with a slope of at most 1e12: PyTorch's limits (its backward divides
   by max(p (1 - p), 1e-12)). The slope comes from a function that is a line of 1e12 below p =
   1e-12; its value is replaced by the clamped logarithm, the difference having no history. */
static lt_tensor *safe_log(lt_ctx *c, lt_tensor *p) {
  enum { SLOPE = 1000000000000 };
  lt_tensor *small = lt_binary_scalar(c, LT_OP_lt, p, lt_scalar_of(1.0 / (double)SLOPE));
  lt_tensor *line = lt_scaled(c, p, (double)SLOPE);
  lt_tensor *y = lt_unary(c, LT_OP_log, lt_at_least(c, p, 1.0 / (double)SLOPE));
  y = lt_apply1(c, LT_OP_where, LT_IN(small, line, y), NULL);
  if (y == NULL) return NULL;
  lt_tensor *value = lt_at_least(c, lt_unary(c, LT_OP_log, lt_detach(c, p)), -100);
  return lt_add(c, y, lt_sub(c, value, lt_detach(c, y)));
}

/* Values outside 0..1 are refused where looking at them does not wait for a device; elsewhere the
   loss of such a prediction is NaN. A NaN passes, as it does through other operations. One pass
   over host memory, in the order of elements, so that the first bad one is named. */
static bool probable(lt_ctx *c, lt_tensor *t, const char *which, const char *remedy) {
  if (t == NULL || !lt_device_equal(t->storage->device, LT_CPU_DEVICE)) return lt_ok(c);
  if (!lt_check_data(c, NULL, t)) return false;
  lt_dtype dtype = t->dtype == LT_F64 ? LT_F64 : LT_F32;
  lt_tensor *flat = lt_contiguous(c, lt_cast(c, lt_detach(c, t), dtype));
  if (flat == NULL) return false;
  const double *wide = lt_data(flat);
  const float *single = lt_data(flat);
  for (int64_t i = 0; i < flat->numel; i++) {
    double v = dtype == LT_F64 ? wide[i] : (double)single[i];
    if (v < 0 || v > 1)
      return lt_fail(c, LT_EVALUE, "binary_cross_entropy: %s must be in 0..1: got %g (element %lld "
                     "of %s)%s", which, v, (long long)i + 1, LT_TENSOR_STR(t), remedy);
  }
  return true;
}

bool lt_expand_binary_cross_entropy(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *p = call->in[0], *target = call->in[1];
  if (!probable(c, p, "predictions", "; of logits use binary_cross_entropy_with_logits") ||
      !probable(c, target, "targets", ""))
    return false;
  lt_tensor *hit = lt_mul(c, target, safe_log(c, p));
  lt_tensor *miss = lt_mul(c, lt_from(c, 1, target), safe_log(c, lt_from(c, 1, p)));
  lt_tensor *loss = lt_unary(c, LT_OP_neg, lt_add(c, hit, miss));
  return reduced(c, call, weighted(c, loss, input(call, 2)), out);
}

/* Lin et al.: Focal Loss for Dense Object Detection, 2017; a negative alpha weighs nothing. */
bool lt_expand_sigmoid_focal_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_sigmoid_focal_loss *a = call->args;
  lt_tensor *x = call->in[0], *t = call->in[1];
  lt_tensor *entropy = lt_sub(c, lt_softplus(c, x), lt_mul(c, x, t));
  lt_tensor *p = lt_unary(c, LT_OP_sigmoid, x);
  /* 1 - p of the true side: p + t - 2 p t */
  lt_tensor *wrong = lt_sub(c, lt_add(c, p, t), lt_scaled(c, lt_mul(c, p, t), 2));
  wrong = lt_binary_scalar(c, LT_OP_pow, wrong, lt_scalar_of(a->gamma));
  lt_tensor *loss = lt_mul(c, entropy, wrong);
  if (a->alpha >= 0)
    loss = lt_mul(c, loss, lt_plus(c, lt_scaled(c, t, 2 * a->alpha - 1), 1 - a->alpha));
  return reduced(c, call, loss, out);
}

/* target (log(target) - x), 0 where the target is 0; or of a target that is a logarithm. The
   logarithm of a 1 put in place of 0 keeps 0 log 0 from being NaN; the derivative by such a target
   is then finite, -x. */
bool lt_expand_kl_div(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_kl_div *a = call->args;
  lt_tensor *x = call->in[0], *t = call->in[1], *loss;
  if (a->log_target) {
    loss = lt_mul(c, lt_unary(c, LT_OP_exp, t), lt_sub(c, t, x));
  } else {
    lt_tensor *log_t = lt_unary(c, LT_OP_log, lt_filled(c, t, lt_equals(c, t, 0), 1));
    loss = lt_mul(c, t, lt_sub(c, log_t, x));
  }
  return reduced(c, call, loss, out);
}

/* Stirling's approximation t log t - t + log(2 pi t) / 2 of log(t!) for t > 1, else 0, as
   torch.nn.PoissonNLLLoss defines `full`: a constant without influence on gradients by x. */
static lt_tensor *log_factorial(lt_ctx *c, lt_tensor *t) {
  const double two_pi = 6.283185307179586;
  lt_tensor *small = lt_binary_scalar(c, LT_OP_le, t, lt_scalar_of(1));
  t = lt_filled(c, t, small, 1);
  lt_tensor *y = lt_sub(c, lt_mul(c, t, lt_unary(c, LT_OP_log, t)), t);
  lt_tensor *half = lt_scaled(c, lt_unary(c, LT_OP_log, lt_scaled(c, t, two_pi)), 0.5);
  return lt_filled(c, lt_add(c, y, half), small, 0);
}

/* rate - t log(rate), the logarithm of a Poisson probability without log(t!). With log_input x is
   the logarithm itself and nothing can be negative; else eps keeps log(0) away. */
bool lt_expand_poisson_nll_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_poisson_nll_loss *a = call->args;
  lt_tensor *x = call->in[0], *t = call->in[1];
  lt_tensor *rate = a->log_input ? lt_unary(c, LT_OP_exp, x) : x;
  lt_tensor *log_rate = a->log_input ? x : lt_unary(c, LT_OP_log, lt_plus(c, x, a->eps));
  lt_tensor *loss = lt_sub(c, rate, lt_mul(c, t, log_rate));
  if (a->full) loss = lt_add(c, loss, log_factorial(c, t));
  return reduced(c, call, loss, out);
}

/* (log(v) + (x - t)^2 / v) / 2; the variance is at least eps, its gradient as if it were free.
   PyTorch clamps v under no_grad: v + (clamp(v) - v), the second part detached, is the same. */
bool lt_expand_gaussian_nll_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_gaussian_nll_loss *a = call->args;
  lt_tensor *x = call->in[0], *v = call->in[2];
  if (v->ndim < x->ndim) { /* one for each row */
    lt_shape rows = lt_tensor_shape(v);
    rows.size[rows.ndim++] = 1;
    v = lt_reshape(c, v, rows);
    if (v == NULL) return false;
  }
  lt_tensor *fixed = lt_detach(c, v);
  v = lt_add(c, v, lt_sub(c, lt_at_least(c, fixed, a->eps), fixed));
  lt_tensor *d = lt_unary(c, LT_OP_square, lt_sub(c, x, call->in[1]));
  lt_tensor *loss = lt_add(c, lt_unary(c, LT_OP_log, v), lt_binary(c, LT_OP_div, d, v));
  const double log_two_pi = 1.8378770664093453;
  loss = lt_scaled(c, lt_plus(c, loss, a->full ? log_two_pi : 0), 0.5);
  return reduced(c, call, loss, out);
}

/* 1 - (2 sum(p t) + smooth) / (sum(p) + sum(t) + smooth) of each sample and channel [N, C]. The
   soft Dice coefficient (F. Milletari and others, V-Net, 2016, squares the denominators; the usual
   form, here, does not). `smooth` also decides empty targets: 0 / 0 becomes loss 0. */
bool lt_expand_dice_loss(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_dice_loss *a = call->args;
  lt_tensor *p = call->in[0], *t = call->in[1];
  lt_args_reduce places = {.dims = {.n = 0}};
  for (int k = 2; k < p->ndim; k++) places.dims.dim[places.dims.n++] = k;
  lt_tensor *both = lt_mul(c, p, t), *all = lt_add(c, p, t);
  if (places.dims.n > 0) {
    both = lt_apply1(c, LT_OP_sum, 1, &both, &places);
    all = lt_apply1(c, LT_OP_sum, 1, &all, &places);
  }
  lt_tensor *share = lt_binary(c, LT_OP_div, lt_plus(c, lt_scaled(c, both, 2), a->smooth),
                               lt_plus(c, all, a->smooth));
  return reduced(c, call, lt_from(c, 1, share), out);
}
