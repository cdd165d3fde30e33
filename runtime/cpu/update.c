/* runtime/cpu/update.c: optimizer steps and gradient norms over many tensors at once.

   Those that are rows of ops/updates.def: updates.c.

   Adam: D. Kingma, J. Ba, 2015. AdamW: I. Loshchilov, F. Hutter, Decoupled Weight Decay
   Regularization, 2019. SGD with momentum in PyTorch's form, where lr multiplies the velocity
   (I. Sutskever and others, 2013, put it inside). */
#include <float.h>
#include <string.h>

#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "cpu/multi_tensor.h"

#define LT_EACH LT_INDEPENDENT for (int64_t i = 0; i < n; i++)

#define T float
#define NAME(f) f##_f32
#define OWN LT_F32
#define SQRT(x) lt_sqrt_f32(x)
#define NORMAL(x) ((x) < FLT_MIN && (x) > -FLT_MIN ? 0 : (x))
#include "cpu/update_type.h"

#define T double
#define NAME(f) f##_f64
#define OWN LT_F64
#define SQRT(x) lt_sqrt_f64(x)
#define NORMAL(x) ((x) < DBL_MIN && (x) > -DBL_MIN ? 0 : (x))
#include "cpu/update_type.h"

static void sgd_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  if (j->in[tensor_of(j, chunk)]->dtype == LT_F64)
    sgd_f64(j, chunk);
  else
    sgd_f32(j, chunk);
}

/* Without momentum there is no third group of tensors. */
LT_KERNEL(sgd_step) {
  const lt_args_sgd_step *a = call->args;
  job j = {.groups = a->momentum != 0 ? 3 : 2, .args = a};
  if (is_refused(c, call, a->checked)) return lt_ok(c);
  return run(c, &j, call, sgd_chunk);
}

static void adam_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  if (j->in[tensor_of(j, chunk)]->dtype == LT_F64)
    adam_f64(j, chunk);
  else
    adam_f32(j, chunk);
}

LT_KERNEL(adam_step) {
  const lt_args_adam_step *a = call->args;
  job j = {.groups = 4, .args = a};
  if (is_refused(c, call, a->checked)) return lt_ok(c);
  /* Both corrections of the bias once a step, in double: beta2^step is near 1 at first, and f32
     would lose half its digits. */
  double correction1 = 1 - pow(a->beta1, (double)a->step);
  double correction2 = 1 - pow(a->beta2, (double)a->step);
  j.k[0] = a->lr / correction1;
  j.k[1] = 1 / sqrt(correction2);
  j.k[2] = 1 - a->beta1;
  j.k[3] = 1 - a->beta2;
  j.k[4] = a->decoupled ? 1 - a->lr * a->weight_decay : 1; /* AdamW: shrink the parameter */
  j.k[5] = a->decoupled ? 0 : a->weight_decay;             /* Adam: add to the gradient */
  j.k[6] = a->maximize ? -1 : 1;
  return run(c, &j, call, adam_chunk);
}

/* Norms: sums in double, 8 lanes, one partial sum a chunk; these are added in order. */

typedef enum power { POWER_2, POWER_1, POWER_MAX, POWER_P } power;

static power power_of(double p) {
  return p == 2 ? POWER_2 : p == 1 ? POWER_1 : isinf(p) ? POWER_MAX : POWER_P;
}

static double join(power kind, double a, double b) {
  if (kind != POWER_MAX) return a + b;
  return a != a || a > b ? a : b;
}

/* Any p, in double. NaN must come through: a maximum by comparison alone would lose it. */
static double norm_tile(power kind, double p, const double *x, int64_t n) {
  double lane[8] = {0};
  for (int64_t i = 0; i < n; i += 8)
    for (int64_t l = 0; l < 8 && i + l < n; l++) {
      double v = lt_abs_f64(x[i + l]);
      if (kind == POWER_2)
        lane[l] += v * v;
      else if (kind == POWER_1)
        lane[l] += v;
      else if (kind == POWER_MAX)
        lane[l] = join(kind, v, lane[l]);
      else
        lane[l] += lt_pow_f64(v, p);
    }
  for (int l = 1; l < 8; l++) lane[0] = join(kind, lane[0], lane[l]);
  return lane[0];
}

/* The usual one, in a form that the compiler vectorises. */
static double squares_tile(const float *x, int64_t n) {
  double lane[16] = {0}, sum = 0;
  int64_t aligned = n / 16 * 16;
  for (int64_t i = 0; i < aligned; i += 16)
    for (int l = 0; l < 16; l++) lane[l] += (double)x[i + l] * (double)x[i + l];
  for (int l = 0; l < 16; l++) sum += lane[l];
  for (int64_t i = aligned; i < n; i++) sum += (double)x[i] * (double)x[i];
  return sum;
}

/* The bits of a float without its sign are in the order of the sizes, with NaN above infinity: the
   compiler vectorises a maximum of integers. */
static inline uint32_t size_bits(const float *x) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits & 0x7fffffff;
}

static inline uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* The largest size. Four places are read at a time: one stream of what is in the outer caches is
   slower than four by a third. */
static double largest_tile(const float *x, int64_t n) {
  uint32_t most = 0;
  int64_t quarter = n / 4;
  const float *y = x + quarter, *z = y + quarter, *w = z + quarter;
  for (int64_t i = 0; i < quarter; i++) {
    uint32_t left = larger(size_bits(x + i), size_bits(y + i));
    uint32_t right = larger(size_bits(z + i), size_bits(w + i));
    most = larger(most, larger(left, right));
  }
  for (int64_t i = 4 * quarter; i < n; i++) most = larger(most, size_bits(x + i));
  float value;
  memcpy(&value, &most, sizeof value);
  return (double)value;
}

/* One chunk of f32 or less; of f64, or with any power. */
static double norm_part_f32(const part *p, power kind) {
  float scratch[LT_TILE];
  double sum = 0;
  for (int64_t at = p->from; at < p->to; at += p->run) {
    int64_t n = p->to - at < p->run ? p->to - at : p->run;
    const float *x = LT_CPU(lt_load_f32)(&p->it, 0, at, n, scratch);
    sum = join(kind, sum, kind == POWER_2 ? squares_tile(x, n) : largest_tile(x, n));
  }
  return sum;
}

static double norm_part_f64(const part *p, power kind, double exponent) {
  double scratch[LT_TILE], sum = 0;
  for (int64_t at = p->from; at < p->to; at += LT_TILE) {
    int64_t n = p->to - at < LT_TILE ? p->to - at : LT_TILE;
    const double *x = LT_CPU(lt_load_f64)(&p->it, 0, at, n, scratch);
    sum = join(kind, sum, norm_tile(kind, exponent, x, n));
  }
  return sum;
}

/* Backwards: what backward wrote last is in the caches still. */
static void norm_chunk(void *ud, int64_t number) {
  const job *j = ud;
  int64_t chunk = j->first[j->n] - 1 - number;
  const lt_args_grads_norm *a = j->args;
  power kind = power_of(a->p);
  bool usual = (kind == POWER_2 || kind == POWER_MAX) &&
               j->in[tensor_of(j, chunk)]->dtype != LT_F64;
  part p = part_of(j, chunk, usual ? LT_F32 : LT_F64);
  j->partial[chunk] = usual ? norm_part_f32(&p, kind) : norm_part_f64(&p, kind, a->p);
}

/* One number over all tensors, for clipping. In double: the squares of 10^9 small gradients added
   in f32 would stop growing. */
LT_KERNEL(grads_norm) {
  const lt_args_grads_norm *a = call->args;
  power kind = power_of(a->p);
  job j = {.groups = 1, .args = a, .in = call->in, .n = call->n_in};
  double total = 0;
  lt_frame frame = lt_frame_open(c);
  if (cut(c, &j)) {
    int64_t n = j.first[j.n];
    j.partial = lt_cpu_scratch(c, LT_F64, n);
    if (j.partial != NULL) lt_parallel_work(c, elements_of(&j), n, norm_chunk, &j);
    for (int64_t k = 0; k < n && j.partial != NULL; k++) total = join(kind, total, j.partial[k]);
  }
  if (kind == POWER_2) total = sqrt(total);
  if (kind == POWER_P) total = pow(total, 1 / a->p);
  lt_tensor *out = lt_cpu_result(c, call->out[0], LT_F64, NULL);
  if (out != NULL) *(double *)lt_data(out) = total;
  if (out != NULL && out != call->out[0]) lt_cpu_move(c, call->out[0], out);
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

static void scale_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  if (j->in[tensor_of(j, chunk)]->dtype == LT_F64)
    scale_f64(j, chunk);
  else
    scale_f32(j, chunk);
}

/* A factor of 1, the usual case when the norm is below the limit, reads and writes nothing. */
LT_KERNEL(grads_scale) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *factor = lt_cpu_contiguous(c, call->in[0], LT_F64);
  double f = factor != NULL ? *(double *)lt_data(factor) : 1;
  lt_frame_close(c, frame, 0, NULL);
  if (!lt_ok(c) || f == 1) return lt_ok(c);
  job j = {.groups = 1, .k = {f}};
  const lt_call rest = {.op = call->op, .n_in = call->n_in - 1, .in = call->in + 1};
  return run(c, &j, &rest, scale_chunk);
}
