/* runtime/ops/infer_random.c: shapes and dtypes of random tensors; draws their keys. */
#include "ops/infer.h"

/* A key of the current stream, unless the caller brings one (a derivative does, to make the same
   numbers again). A key names the numbers; nothing is drawn until the kernel runs, on whatever
   device, with the same result (base/random.h). */
static void draw_key(lt_ctx *c, lt_rng_key *t) {
  if (!t->drawn) *t = lt_rng_draw(&c->rng);
}

static void place(lt_ctx *c, lt_infer *i, lt_dtype *dtype, lt_device *device, lt_dtype usual) {
  if (*dtype == LT_DTYPE_NONE) *dtype = usual;
  if (device->kind < 0) *device = lt_device_default(c);
  i->device = *device;
  i->out[0].dtype = *dtype;
}

static bool check_sizes(lt_ctx *c, const lt_infer *i, const lt_sizes *s) {
  for (int k = 0; k < s->n; k++)
    if (s->size[k] < 0)
      return lt_shape_refuse(c, i->op->name, s->n, s->size);
  return true;
}

bool lt_infer_random(lt_ctx *c, lt_infer *i) {
  lt_args_random *a = i->args;
  place(c, i, &a->dtype, &a->device, LT_F32);
  if (!lt_dtype_is_float(a->dtype))
    return lt_fail(c, LT_EDTYPE, "%s: makes floating tensors, not %s (use randint for integers)",
                   i->op->name, lt_dtype_name(a->dtype));
  if (!check_sizes(c, i, &a->size)) return false;
  draw_key(c, &a->rng_key);
  i->out[0].shape = lt_shape_of(a->size.n, a->size.size);
  return true;
}

bool lt_infer_random_int(lt_ctx *c, lt_infer *i) {
  lt_args_random_int *a = i->args;
  place(c, i, &a->dtype, &a->device, LT_I64);
  if (a->low >= a->high)
    return lt_fail(c, LT_EARG, "%s: nothing in %lld..%lld: `high` is exclusive",
                   i->op->name, (long long)a->low, (long long)a->high - 1);
  if (!check_sizes(c, i, &a->size)) return false;
  draw_key(c, &a->rng_key);
  i->out[0].shape = lt_shape_of(a->size.n, a->size.size);
  return true;
}

bool lt_infer_permutation(lt_ctx *c, lt_infer *i) {
  lt_args_permutation *a = i->args;
  place(c, i, &a->dtype, &a->device, LT_I64);
  if (a->n < 0) return lt_fail(c, LT_EARG, "%s: n must not be negative: got %lld", i->op->name,
                               (long long)a->n);
  draw_key(c, &a->rng_key);
  i->out[0].shape = lt_shape_of(1, &a->n);
  return true;
}

/* [C] or [N, C] weights: num_samples ids each. The result's size does not depend on the
   probabilities, so nothing waits here: what is wrong with those, the kernel reports. */
bool lt_infer_multinomial(lt_ctx *c, lt_infer *i) {
  lt_args_multinomial *a = i->args;
  const lt_tensor *x = i->in[0];
  if (x->ndim < 1 || x->ndim > 2 || x->size[x->ndim - 1] == 0)
    return lt_fail(c, LT_ESHAPE, "%s: needs probabilities [C] or [N, C], got %s", i->op->name,
                   LT_TENSOR_STR(x));
  if (a->num_samples < 1)
    return lt_fail(c, LT_EARG, "%s: num_samples must be at least 1: got %lld", i->op->name,
                   (long long)a->num_samples);
  if (!a->replacement && a->num_samples > x->size[x->ndim - 1])
    return lt_fail(c, LT_EARG, "%s: %lld samples without replacement from %s", i->op->name,
                   (long long)a->num_samples, LT_TENSOR_STR(x));
  draw_key(c, &a->rng_key);
  i->out[0].shape = lt_tensor_shape(x);
  i->out[0].shape.size[x->ndim - 1] = a->num_samples;
  i->out[0].dtype = LT_I64;
  return true;
}

bool lt_infer_bernoulli(lt_ctx *c, lt_infer *i) {
  lt_args_bernoulli *a = i->args;
  draw_key(c, &a->rng_key);
  return lt_infer_float(c, i, 0) && lt_infer_same(c, i);
}

/* Outside of training p is 0 and no key is drawn: evaluation does not move the random stream. */
bool lt_infer_dropout(lt_ctx *c, lt_infer *i) {
  lt_args_dropout *a = i->args;
  if (!(a->p >= 0 && a->p <= 1))
    return lt_fail(c, LT_EARG, "%s: p must be in 0..1: got %g", i->op->name, a->p);
  if (a->training)
    draw_key(c, &a->rng_key);
  else
    a->p = 0;
  return lt_infer_float(c, i, 0) && lt_infer_same(c, i);
}
