/* runtime/cpu/sampling.c: permutations and samples from a distribution.

   Each sample depends on those before it, so one thread makes them, from 64 random bits each. */
#include <math.h>
#include <string.h>

#include "cpu/dim_order.h"
#include "cpu/scratch.h"
#include "ops/math/random.h"

/* 64 random bits, number `i` of a key. */
static uint64_t bits(lt_rng_key t, uint64_t i) {
  lt_random4 r = lt_philox(t, i / 2);
  int k = i % 2 == 0 ? 0 : 2;
  return (uint64_t)r.word[k] << 32 | r.word[k + 1];
}

/* A double in [0, 1) from 64 bits. */
static double unit(uint64_t w) { return (double)(w >> 11) * 0x1p-53; }

/* Fisher and Yates, from the end. With whom each element trades places depends on no other, so they
   are drawn AHEAD at a time and fetched early: a list larger than the cache costs no waiting. R.
   Durstenfeld's form (Algorithm 235, 1964; D. Knuth, The Art of Computer Programming, volume 2,
   algorithm 3.4.2P). 64 bits times i + 1 keep the bias below (i + 1) / 2^64. */
enum { AHEAD = 64 };
#define SHUFFLE(T)                                                 \
  static void shuffle_##T(lt_rng_key rng_key, T *v, int64_t n) {   \
    int64_t with[AHEAD];                                           \
    for (int64_t i = 0; i < n; i++) v[i] = (T)i;                   \
    for (int64_t last = n - 1; last > 0; last -= AHEAD) {          \
      int64_t count = last < AHEAD ? last : AHEAD;                 \
      for (int64_t e = 0; e < count; e++) {                        \
        uint64_t i = (uint64_t)(last - e), w = bits(rng_key, i);   \
        with[e] = (int64_t)((unsigned __int128)w * (i + 1) >> 64); \
        __builtin_prefetch(&v[with[e]], 1);                        \
      }                                                            \
      for (int64_t e = 0; e < count; e++) {                        \
        T t = v[last - e];                                         \
        v[last - e] = v[with[e]], v[with[e]] = t;                  \
      }                                                            \
    }                                                              \
  }
SHUFFLE(int32_t)
SHUFFLE(int64_t)
#undef SHUFFLE

/* Half as wide a list is shuffled faster; it is in the first half of the result and is spread out
   from its end. */
static void shuffle(lt_rng_key rng_key, int64_t *v, int64_t n) {
  int32_t *narrow = (int32_t *)(void *)v;
  if (n > INT32_MAX) {
    shuffle_int64_t(rng_key, v, n);
    return;
  }
  shuffle_int32_t(rng_key, narrow, n);
  for (int64_t i = n - 1; i >= 0; i--) {
    int64_t wide = narrow[i];
    memcpy(&v[i], &wide, sizeof wide);
  }
}

LT_KERNEL(randperm) {
  const lt_args_permutation *a = call->args;
  lt_tensor *y = call->out[0];
  lt_frame frame = lt_frame_open(c);
  lt_tensor *to = lt_cpu_result(c, y, LT_I64, NULL);
  if (to != NULL) shuffle(a->rng_key, lt_data(to), to->numel);
  bool ok = to != NULL && (to == y || lt_cpu_move(c, y, to));
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* Sum of a row of weights; fails naming what is not a probability. */
static bool check_row(lt_ctx *c, const double *p, int64_t n, int64_t row, double *sum,
                      int64_t *positive) {
  *sum = 0;
  *positive = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(p[i] >= 0) || isinf(p[i]))
      return lt_fail_value(c, row + 1, LT_NOT_PROBABLE,
                           "multinomial: no probability: %g at %lld (row %lld)", p[i],
                           (long long)i, (long long)row + 1);
    *sum += p[i];
    *positive += p[i] > 0;
  }
  return *sum > 0 || lt_fail_value(c, row + 1, LT_ALL_ZERO,
                                   "multinomial: all probabilities are 0 (row %lld)",
                                   (long long)row + 1);
}

/* `p` becomes the running sum, in runs (LT_RUN). */
static void sum_runs(double *p, int64_t n) {
  double before = 0;
  for (int64_t at = 0; at < n; at += LT_RUN) {
    int64_t end = at + LT_RUN < n ? at + LT_RUN : n;
    double sum = 0;
    for (int64_t i = at; i < end; i++) sum += p[i], p[i] = before + sum;
    before = p[end - 1];
  }
}

/* Inverse of the distribution function, found by halving. `p` becomes the running sum. A row is
   searched in log2(n) steps a sample; its sum is p[n - 1], so that rounding cannot leave u beyond
   the end. */
static void with_replacement(lt_rng_key t, uint64_t first, double *p, int64_t n, int64_t n_samples,
                             int64_t *out) {
  sum_runs(p, n);
  for (int64_t s = 0; s < n_samples; s++) {
    double u = unit(bits(t, first + (uint64_t)s)) * p[n - 1];
    out[s] = lt_first_above(p, n, u);
  }
}

/* Restore the heap (smallest key on top) below place i. */
static void sift(int64_t *heap, int64_t n, int64_t i, const double *key) {
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && key[heap[child + 1]] < key[heap[child]]) child++;
    if (key[heap[i]] <= key[heap[child]]) return;
    int64_t t = heap[i];
    heap[i] = heap[child], heap[child] = t;
  }
}

/* The smallest of exponentially distributed times -log(u) / p, in order: the same as drawing one
   after another. `p` becomes the times. P. Efraimidis and P. Spirakis, Weighted random sampling
   with a reservoir, 2006, where the keys are u^(1/p), the same order. A heap of all costs n once
   and log n a sample. */
static void without_replacement(lt_rng_key t, uint64_t first, double *p, int64_t n,
                                int64_t n_samples, int64_t *heap, int64_t *out) {
  for (int64_t i = 0; i < n; i++) {
    /* In (0, 1]: log(0) would be an infinite time for an element that has a weight. */
    double u = unit(bits(t, first + (uint64_t)i)) + 0x1p-53;
    p[i] = p[i] > 0 ? -lt_log_f64(u) / p[i] : INFINITY;
    heap[i] = i;
  }
  for (int64_t i = n / 2; i-- > 0;) sift(heap, n, i, p);
  for (int64_t s = 0; s < n_samples; s++) {
    out[s] = heap[0];
    heap[0] = heap[--n];
    sift(heap, n, 0, p);
  }
}

static bool sample_rows(lt_ctx *c, const lt_args_multinomial *a, double *p, int64_t rows, int64_t n,
                      int64_t *heap, int64_t *out) {
  for (int64_t r = 0; r < rows; r++, p += n, out += a->num_samples) {
    double sum;
    int64_t positive;
    if (!check_row(c, p, n, r, &sum, &positive)) return false;
    if (!a->replacement && positive < a->num_samples)
      return lt_fail_value(c, r + 1, a->num_samples,
                           "multinomial: %lld samples without replacement from %lld elements that "
                           "are not 0 (row %lld)",
                           (long long)a->num_samples, (long long)positive, (long long)r + 1);
    if (a->replacement)
      with_replacement(a->rng_key, (uint64_t)(r * a->num_samples), p, n, a->num_samples, out);
    else
      without_replacement(a->rng_key, (uint64_t)(r * n), p, n, a->num_samples, heap, out);
  }
  return true;
}

LT_KERNEL(multinomial) {
  const lt_args_multinomial *a = call->args;
  lt_tensor *x = call->in[0], *y = call->out[0];
  int64_t n = x->size[x->ndim - 1];
  if (y->numel == 0) return true;
  lt_frame frame = lt_frame_open(c);
  double *p = lt_cpu_scratch(c, LT_F64, x->numel);
  int64_t *heap = lt_cpu_scratch(c, LT_I64, n);
  lt_tensor *to = lt_cpu_result(c, y, LT_I64, NULL);
  lt_tensor *from = lt_cpu_contiguous(c, x, LT_F64);
  bool ok = p != NULL && heap != NULL && to != NULL && from != NULL;
  if (ok) {
    memcpy(p, lt_data(from), (size_t)x->numel * sizeof *p);
    ok = sample_rows(c, a, p, x->numel / n, n, heap, lt_data(to));
  }
  ok = ok && (to == y || lt_cpu_move(c, y, to));
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}
