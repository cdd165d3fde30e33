/* runtime/cpu/cross_entropy_type.h: cross-entropy in one compute type; included by cross_entropy.c
   with T, NAME(f), EXP and LOG defined. No guard.

   With smoothing s the wanted distribution is q = (1 - s) target + s / C, each class times its
   weight; a row's loss is sum q (l - (x - m)), its derivative softmax(x) sum q - q, with m its
   largest logit and l the logarithm of its sum of exp(x - m): m + l would round l away. */
#include "cpu/row_sums_type.h"

/* The share of each class apart from the target id: s / C times its weight. */
static inline T NAME(spread)(const job *j, int64_t i) {
  const T *w = j->weight;
  return (T)(j->smoothing / (double)j->classes) * (w != NULL ? w[i] : 1);
}

/* Sums in double: l - (x - m) is at most some tens, but there may be 10^5 classes. */
static double NAME(row_loss)(const job *j, int64_t r, T l) {
  const T *x = (const T *)j->x + r * j->classes, *w = j->weight, m = ((const T *)j->stats)[r];
  double loss = 0;
  if (j->ids != NULL) {
    int64_t t = j->ids[r];
    double own = (1 - j->smoothing) * (w != NULL ? (double)w[t] : 1);
    loss = own * ((double)l - ((double)x[t] - (double)m));
    if (j->smoothing == 0) return loss;
    double rest;
    LT_LANE_SUM(T, rest, j->classes, NAME(spread)(j, i) * (l - (x[i] - m)));
    return loss + rest;
  }
  const T *p = (const T *)j->shares + r * j->classes;
  T keep = (T)(1 - j->smoothing);
  if (w != NULL)
    LT_LANE_SUM(T, loss, j->classes, (keep * p[i] * w[i] + NAME(spread)(j, i)) * (l - (x[i] - m)));
  else
    LT_LANE_SUM(T, loss, j->classes, (keep * p[i] + NAME(spread)(j, i)) * (l - (x[i] - m)));
  return loss;
}

/* The largest logit and the sum of exp(x - m) of the rows from..to-1. Short rows are done many at a
   time (row_sums_type.h), long ones one by one in lanes. */
static void NAME(row_stats)(const job *j, int64_t from, int64_t to) {
  int64_t n = j->classes, group = n <= LT_TILE / 2 ? LT_TILE / n : 1;
  T *m = j->stats, *sum = m + j->n, e[LT_TILE];
  for (int64_t r = from; r < to; r += group) {
    const T *x = (const T *)j->x + r * n;
    if (group > 1) {
      NAME(row_sums)(x, n, to - r < group ? to - r : group, e, m + r, sum + r);
      continue;
    }
    m[r] = NAME(lt_lane_max)(x, n);
    double total;
    LT_LANE_SUM(T, total, n, EXP(x[i] - m[r]));
    sum[r] = (T)total;
  }
}

static void NAME(forward)(const job *j, int64_t from, int64_t to) {
  const T *sum = (const T *)j->stats + j->n;
  NAME(row_stats)(j, from, to);
  for (int64_t r = from; r < to; r++) j->loss[r] = (double)LOG(sum[r]);
  for (int64_t r = from; r < to; r++)
    j->loss[r] = ignored(j, r) ? 0 : NAME(row_loss)(j, r, (T)j->loss[r]);
}

/* With ids q is nearly all zeros: softmax is scaled first, then the target's element is
   corrected. */
static void NAME(backward_row)(const job *j, int64_t r, T g) {
  const T *x = (const T *)j->x + r * j->classes, *w = j->weight;
  T *out = (T *)j->out + r * j->classes;
  const T *stats = j->stats, m = stats[r], share = 1 / stats[j->n + r];
  T keep = (T)(1 - j->smoothing);
  if (j->ids != NULL) {
    int64_t t = j->ids[r];
    T own = keep * (w != NULL ? w[t] : 1), all = own + (T)j->spread;
    T scale = g * all * share;
    for (int64_t i = 0; i < j->classes; i++) out[i] = scale * EXP(x[i] - m);
    if (j->smoothing != 0)
      for (int64_t i = 0; i < j->classes; i++) out[i] -= g * NAME(spread)(j, i);
    out[t] -= g * own;
    return;
  }
  const T *p = (const T *)j->shares + r * j->classes;
  double sum;
  if (w != NULL)
    LT_LANE_SUM(T, sum, j->classes, keep * p[i] * w[i]);
  else
    LT_LANE_SUM(T, sum, j->classes, keep * p[i]);
  T all = (T)(sum + j->spread) * share;
  for (int64_t i = 0; i < j->classes; i++) {
    T q = keep * p[i] * (w != NULL ? w[i] : 1) + NAME(spread)(j, i);
    out[i] = g * (all * EXP(x[i] - m) - q);
  }
}

static void NAME(backward)(const job *j, int64_t from, int64_t to) {
  for (int64_t r = from; r < to; r++) {
    if (ignored(j, r))
      memset((T *)j->out + r * j->classes, 0, (size_t)j->classes * sizeof(T));
    else
      NAME(backward_row)(j, r, (T)(j->grad[j->each_row ? r : 0] * j->scale));
  }
}
