/* runtime/ops/infer_update.c: the lists that optimizer steps and gradient clipping take.

   Inputs of a step come in groups of one length: all parameters, then all gradients, then each
   kind of state. A step writes its parameters and its state; it computes in the state's dtype.

   One list of all parameters is one call: on a GPU one kernel launch for the whole model (PyTorch's
   foreach and fused optimizers), and everything is checked before the first parameter changes. */
#include "ops/infer.h"
#include "ops/inplace.h"

/* Groups of a step: 0 when `kind` is not a step. */
static int groups_of(lt_kind kind, const void *args) {
  if (kind == LT_KIND_sgd_step) return ((const lt_args_sgd_step *)args)->momentum != 0 ? 3 : 2;
  if (kind == LT_KIND_update) return 2 + (int)((const lt_args_update *)args)->states;
  return kind == LT_KIND_adam_step ? 4 : 0;
}

/* Whether the last input of a step says if it is taken. */
static bool is_checked(lt_kind kind, const void *args) {
  if (kind == LT_KIND_sgd_step) return ((const lt_args_sgd_step *)args)->checked;
  if (kind == LT_KIND_update) return ((const lt_args_update *)args)->checked;
  return kind == LT_KIND_adam_step && ((const lt_args_adam_step *)args)->checked;
}

/* Parameters and states are written, gradients (group 1) read; the order of streams relies on it
   (run.c). */
bool lt_kind_writes(lt_kind kind, int k, int n_in, const void *args) {
  int groups = groups_of(kind, args);
  if (groups > 0) {
    int n = (n_in - is_checked(kind, args)) / groups;
    return k < n * groups && k / n != 1; /* group 1: gradients */
  }
  if (kind == LT_KIND_grads_scale) return k > 0;
  return kind == LT_KIND_clip_grad_norm || kind == LT_KIND_clip_grad_value;
}

/* Momenta of f16 and bf16 parameters are f32: with beta 0.999 a step adds a thousandth, less than
   half a unit of 8 bits (2^-9), and would be rounded away. */
static lt_dtype state_dtype(lt_dtype parameter) {
  return parameter == LT_F64 ? LT_F64 : LT_F32;
}

static bool check_step(lt_ctx *c, const lt_infer *i) {
  static const char *const names[] = {"parameters", "gradients", "first states", "second states",
                                      "third states"};
  bool checked = is_checked(i->op->kind, i->args) && i->n_in > 0;
  int groups = groups_of(i->op->kind, i->args), n_in = i->n_in - checked, n = n_in / groups;
  if (n_in % groups != 0)
    return lt_fail(c, LT_EARG, "%s: %d tensors do not make %d lists of one length", i->op->name,
                   n_in, groups);
  if (checked && i->in[n_in]->numel != 1)
    return lt_fail(c, LT_ESHAPE, "%s: the input `checked` must have one element, got %s",
                   i->op->name, LT_TENSOR_STR(i->in[n_in]));
  for (int k = 0; k < n_in; k++) {
    const lt_tensor *p = i->in[k % n], *t = i->in[k];
    lt_dtype own = (lt_dtype)p->dtype, due = k / n < 2 ? own : state_dtype(own);
    if (!lt_dtype_is_float(own))
      return lt_fail(c, LT_EDTYPE, "%s: parameter %d is %s; updates need a floating dtype",
                     i->op->name, k + 1, lt_dtype_name(own));
    if ((lt_dtype)t->dtype != due)
      return lt_fail(c, LT_EDTYPE,
                     "%s: tensor %d of the %s is %s; that of a parameter of %s must be %s",
                     i->op->name, k % n + 1, names[k / n], lt_dtype_name((lt_dtype)t->dtype),
                     lt_dtype_name(own), lt_dtype_name(due));
    if (!lt_shape_equal(lt_tensor_shape(t), lt_tensor_shape(p)))
      return lt_fail(c, LT_ESHAPE, "%s: tensor %d of the %s has shape %s, its parameter %s",
                     i->op->name, k % n + 1, names[k / n], LT_TENSOR_STR(t), LT_TENSOR_STR(p));
    if (k / n != 1 && !lt_check_writable(c, t, 0, NULL)) return false;
  }
  return true;
}

static bool positive(lt_ctx *c, const lt_infer *i, const char *name, double value) {
  return value >= 0 || lt_fail(c, LT_EARG, "%s: %s must not be negative, got %g", i->op->name, name,
                               value);
}

bool lt_infer_sgd_step(lt_ctx *c, lt_infer *i) {
  const lt_args_sgd_step *a = i->args;
  if (a->nesterov && (a->momentum <= 0 || a->dampening != 0))
    return lt_fail(c, LT_EARG,
                   "sgd_step: nesterov needs a momentum and no dampening, got %g and %g",
                   a->momentum, a->dampening);
  return positive(c, i, "lr", a->lr) && positive(c, i, "momentum", a->momentum) &&
         positive(c, i, "weight_decay", a->weight_decay) && check_step(c, i);
}

bool lt_infer_adam_step(lt_ctx *c, lt_infer *i) {
  const lt_args_adam_step *a = i->args;
  const double betas[] = {a->beta1, a->beta2};
  for (int k = 0; k < 2; k++)
    if (!(betas[k] >= 0 && betas[k] < 1))
      return lt_fail(c, LT_EARG, "%s: beta%d must be in 0..1 without 1, got %g", i->op->name, k + 1,
                     betas[k]);
  if (a->step < 1)
    return lt_fail(c, LT_EARG, "%s: steps count from 1, got %lld", i->op->name, (long long)a->step);
  return positive(c, i, "lr", a->lr) && positive(c, i, "eps", a->eps) &&
         positive(c, i, "weight_decay", a->weight_decay) && check_step(c, i);
}

/* How many kinds of state a row of updates.def takes. */
typedef struct state_count {
  int fewest, most;
} state_count;

static state_count states_of(lt_op op) {
  static const state_count counts[LT_OP_COUNT] = {
#define LT_UPDATE(name, fewest, most, ...) [LT_OP_##name##_step] = {fewest, most},
#include "ops/updates.def"
  };
  return counts[op];
}

bool lt_infer_update(lt_ctx *c, lt_infer *i) {
  const lt_args_update *a = i->args;
  state_count s = states_of((lt_op)(i->op - lt_ops));
  if (a->states < s.fewest || a->states > s.most)
    return lt_fail(c, LT_EARG, "%s: states must be in %d..%d, got %lld", i->op->name, s.fewest,
                   s.most, (long long)a->states);
  return positive(c, i, "lr", a->lr) && positive(c, i, "eps", a->eps) &&
         positive(c, i, "weight_decay", a->weight_decay) && check_step(c, i);
}

/* What is clipped is written: parameters in place of their gradients are refused here. */
static bool check_writable(lt_ctx *c, const lt_infer *i, int from) {
  for (int k = from; k < i->n_in; k++)
    if (!lt_check_writable(c, i->in[k], 0, NULL)) return false;
  return true;
}

/* Gradients of any floating dtype. */
static bool check_gradients(lt_ctx *c, const lt_infer *i, int from) {
  for (int k = from; k < i->n_in; k++)
    if (!lt_dtype_is_float((lt_dtype)i->in[k]->dtype))
      return lt_fail(c, LT_EDTYPE, "%s: tensor %d is %s, no gradient", i->op->name, k - from + 1,
                     lt_dtype_name((lt_dtype)i->in[k]->dtype));
  return true;
}

static bool check_power(lt_ctx *c, const lt_infer *i, double p) {
  return p > 0 || lt_fail(c, LT_EARG, "%s: the norm's power must be positive, got %g", i->op->name,
                          p);
}

bool lt_infer_grads_norm(lt_ctx *c, lt_infer *i) {
  const lt_args_grads_norm *a = i->args;
  i->out[0] = (lt_meta){.dtype = LT_F32};
  for (int k = 0; k < i->n_in; k++)
    if (i->in[k]->dtype == LT_F64) i->out[0].dtype = LT_F64;
  return check_power(c, i, a->p) && check_gradients(c, i, 0);
}

/* (factor, gradients...) */
bool lt_infer_grads_scale(lt_ctx *c, lt_infer *i) {
  if (i->in[0]->numel != 1)
    return lt_fail(c, LT_ESHAPE, "grads_scale: the factor must be one number, got %s",
                   LT_TENSOR_STR(i->in[0]));
  return check_writable(c, i, 1) && check_gradients(c, i, 1);
}

bool lt_infer_clip_grad_norm(lt_ctx *c, lt_infer *i) {
  const lt_args_clip_grad_norm *a = i->args;
  return positive(c, i, "max_norm", a->max_norm) && check_power(c, i, a->norm_type) &&
         check_gradients(c, i, 0) && check_writable(c, i, 0);
}

bool lt_infer_clip_grad_value(lt_ctx *c, lt_infer *i) {
  const lt_args_clip_grad_value *a = i->args;
  return positive(c, i, "clip_value", a->clip_value) && check_gradients(c, i, 0) &&
         check_writable(c, i, 0);
}
