/* runtime/cpu/random.c: random tensors, dropout.

   Element i in logical order is a function of the key and i alone: word i % 4 of block i / 4, or
   two words (block i / 2) where 32 bits are too few. Normals come in pairs (Box and Muller 1958),
   computed in double.

   Words are those of Philox (J. Salmon and others, Parallel Random Numbers: As Easy as 1, 2, 3,
   2011; ops/math/random.h). Dropout: N. Srivastava and others, 2014, scaled in training
   ("inverted"), so that nothing is left to do in evaluation. */
#include "cpu/dim_order.h"
#include "ops/math/random.h"
#include "cpu/philox_words.h"

typedef struct job {
  lt_iter y, x;
  lt_rng_key rng_key;
  int64_t low;
  uint64_t range;     /* of integers; 0: all of 64 bits */
  uint32_t threshold; /* of dropout: words below it are dropped; scale 0: all are */
  double scale;
  void (*tile)(const struct job *j, int64_t at, int64_t n, const uint32_t *words);
  int per_element; /* words an element: 1 or 2 */
} job;

/* 32 random bits as a float in [0, 1) with as many bits as the type holds below 1. More bits would
   round up to 1 in the narrow type, which must not come out. */
static void uniform_tile(const job *j, int64_t at, int64_t n, const uint32_t *words) {
  float v[LT_TILE];
  int shift = j->y.operand[0].dtype == LT_BF16 ? 24 : j->y.operand[0].dtype == LT_F16 ? 21 : 8;
  float unit = 1.0f / (float)(1u << (32 - shift));
  for (int64_t i = 0; i < n; i++) v[i] = (float)(words[i] >> shift) * unit;
  LT_CPU(lt_put_f32)(&j->y, 0, at, n, v);
}

static void uniform_tile_f64(const job *j, int64_t at, int64_t n, const uint32_t *words) {
  double v[LT_TILE];
  for (int64_t i = 0; i < n; i++) v[i] = lt_uniform_f64(words[2 * i], words[2 * i + 1]);
  LT_CPU(lt_put_f64)(&j->y, 0, at, n, v);
}

/* sqrt(-2 log u) (cos, sin)(2 pi v) for each pair (u, v); u is in (0, 1]. */
static void normal_pairs(int64_t pairs, const double *u, const double *v, double *out) {
  double first[LT_TILE], second[LT_TILE];
  for (int64_t p = 0; p < pairs; p++) {
    double r = lt_sqrt_f64(-2 * lt_log_f64(u[p])), s, c;
    lt_turn_f64(v[p], &s, &c);
    first[p] = r * c;
    second[p] = r * s;
  }
  for (int64_t p = 0; p < pairs; p++) out[2 * p] = first[p], out[2 * p + 1] = second[p];
}

static void normal_tile(const job *j, int64_t at, int64_t n, const uint32_t *words) {
  double u[LT_TILE], v[LT_TILE], out[LT_TILE + 1];
  for (int64_t i = 0; 2 * i < n; i++) {
    /* + 1: log(0) must not come up, and u = 1 gives a radius of 0. */
    u[i] = ((double)words[2 * i] + 1) * 0x1p-32;
    v[i] = (double)words[2 * i + 1] * 0x1p-32;
  }
  normal_pairs((n + 1) / 2, u, v, out);
  LT_CPU(lt_put_f64)(&j->y, 0, at, n, out);
}

/* Four words a pair: 32 bits would leave only 2^32 radii, which a sample of f64 could tell. */
static void normal_tile_f64(const job *j, int64_t at, int64_t n, const uint32_t *words) {
  double u[LT_TILE], v[LT_TILE], out[LT_TILE + 1];
  for (int64_t i = 0; 2 * i < n; i++) {
    u[i] = lt_uniform_f64(words[4 * i], words[4 * i + 1]) + 0x1p-53;
    v[i] = lt_uniform_f64(words[4 * i + 2], words[4 * i + 3]);
  }
  normal_pairs((n + 1) / 2, u, v, out);
  LT_CPU(lt_put_f64)(&j->y, 0, at, n, out);
}

/* The high half of word times range in place of a remainder (D. Lemire, Fast Random Integer
   Generation in an Interval, 2019), without its rejections: an element takes a fixed number of
   words. Each value's share is off by at most range / 2^32 of itself. */
static void int_tile(const job *j, int64_t at, int64_t n, const uint32_t *words) {
  int64_t v[LT_TILE];
  for (int64_t i = 0; i < n; i++) {
    uint64_t w = (uint64_t)words[i] * j->range >> 32;
    v[i] = (int64_t)((uint64_t)j->low + w);
  }
  LT_CPU(lt_put_i64)(&j->y, 0, at, n, v);
}

/* range 0 stands for 2^64, all words; else the same with 64 bits, in 128. */
static void wide_int_tile(const job *j, int64_t at, int64_t n, const uint32_t *words) {
  int64_t v[LT_TILE];
  for (int64_t i = 0; i < n; i++) {
    uint64_t w = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
    if (j->range != 0) w = (uint64_t)((unsigned __int128)w * j->range >> 64);
    v[i] = (int64_t)((uint64_t)j->low + w);
  }
  LT_CPU(lt_put_i64)(&j->y, 0, at, n, v);
}

#define DROPOUT(suffix, type)                                                                     \
  static void dropout_tile_##suffix(const job *j, int64_t at, int64_t n, const uint32_t *words) { \
    type scratch[LT_TILE], v[LT_TILE], scale = (type)j->scale;                                    \
    const type *x = LT_CPU(lt_load_##suffix)(&j->x, 0, at, n, scratch);                           \
    uint32_t threshold = j->threshold;                                                            \
    for (int64_t i = 0; i < n; i++) {                                                             \
      type kept = x[i] * scale;                                                                   \
      v[i] = words[i] < threshold || scale == 0 ? 0 : kept;                                       \
    }                                                                                             \
    LT_CPU(lt_put_##suffix)(&j->y, 0, at, n, v);                                                  \
  }
DROPOUT(f32, float)
DROPOUT(f64, double)

static void bernoulli_tile(const job *j, int64_t at, int64_t n, const uint32_t *words) {
  double scratch[LT_TILE], v[LT_TILE];
  const double *p = LT_CPU(lt_load_f64)(&j->x, 0, at, n, scratch);
  for (int64_t i = 0; i < n; i++) v[i] = (double)words[i] * 0x1p-32 < p[i] ? 1 : 0;
  LT_CPU(lt_put_f64)(&j->y, 0, at, n, v);
}

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  uint32_t words[LT_WORDS];
  int64_t from = chunk * LT_CHUNK, to = from + LT_CHUNK < j->y.numel ? from + LT_CHUNK : j->y.numel;
  for (int64_t at = from; at < to; at += LT_TILE) {
    int64_t n = to - at < LT_TILE ? to - at : LT_TILE;
    int64_t need = (n * j->per_element + 3) / 4;
    lt_philox_fill(j->rng_key, (uint64_t)(at * j->per_element / 4), need, words);
    j->tile(j, at, n, words);
  }
}

/* Positions are counted in logical order, whatever the strides. So a transposed result has the
   same numbers as one in order, and a mask of dropout can be drawn again from strides that
   backward has. */
static void in_logical_order(lt_iter *it, const lt_tensor *t) {
  int dims[LT_MAX_DIMS];
  for (int k = 0; k < t->ndim; k++) dims[k] = k;
  LT_CPU(lt_iter_dims)(it, t, t->ndim, dims);
}

static bool run(lt_ctx *c, const lt_call *call, job j) {
  in_logical_order(&j.y, call->out[0]);
  if (call->n_in > 0) in_logical_order(&j.x, call->in[0]);
  lt_parallel(c, (j.y.numel + LT_CHUNK - 1) / LT_CHUNK, run_chunk, &j);
  return true;
}

LT_KERNEL(rand) {
  bool wide = call->out[0]->dtype == LT_F64;
  return run(c, call,
             (job){.rng_key = ((const lt_args_random *)call->args)->rng_key,
                   .tile = wide ? uniform_tile_f64 : uniform_tile,
                   .per_element = wide ? 2 : 1});
}

LT_KERNEL(randn) {
  bool wide = call->out[0]->dtype == LT_F64;
  return run(c, call,
             (job){.rng_key = ((const lt_args_random *)call->args)->rng_key,
                   .tile = wide ? normal_tile_f64 : normal_tile,
                   .per_element = wide ? 2 : 1});
}

LT_KERNEL(randint) {
  const lt_args_random_int *a = call->args;
  uint64_t range = (uint64_t)a->high - (uint64_t)a->low;
  bool wide = range > 0xffffffffu;
  return run(c, call,
             (job){.rng_key = a->rng_key,
                   .low = a->low,
                   .range = range,
                   .tile = wide ? wide_int_tile : int_tile,
                   .per_element = wide ? 2 : 1});
}

/* Ends at the first p that is not a probability; NaN is none. The bits go along because the message
   of a device is made from them later. */
static bool refuse(lt_ctx *c, double p) {
  int64_t bits;
  memcpy(&bits, &p, sizeof bits);
  return lt_fail_value(c, bits, 0, "bernoulli: probabilities must be in 0..1: got %g", p);
}

static bool are_probabilities(lt_ctx *c, const lt_tensor *p) {
  lt_iter it;
  double scratch[LT_TILE];
  in_logical_order(&it, p);
  for (int64_t at = 0; at < p->numel; at += LT_TILE) {
    int64_t n = p->numel - at < LT_TILE ? p->numel - at : LT_TILE;
    const double *v = LT_CPU(lt_load_f64)(&it, 0, at, n, scratch);
    for (int64_t i = 0; i < n; i++)
      if (!(v[i] >= 0 && v[i] <= 1))
        return refuse(c, v[i]);
  }
  return true;
}

LT_KERNEL(bernoulli) {
  if (!are_probabilities(c, call->in[0])) return false;
  return run(c, call,
             (job){.rng_key = ((const lt_args_bernoulli *)call->args)->rng_key,
                   .tile = bernoulli_tile,
                   .per_element = 1});
}

LT_KERNEL(dropout) {
  const lt_args_dropout *a = call->args;
  return run(c, call,
             (job){.rng_key = a->rng_key,
                   .threshold = a->p < 1 ? (uint32_t)(a->p * 0x1p32) : 0,
                   .scale = a->p < 1 ? 1 / (1 - a->p) : 0,
                   .tile = call->in[0]->dtype == LT_F64 ? dropout_tile_f64 : dropout_tile_f32,
                   .per_element = 1});
}
