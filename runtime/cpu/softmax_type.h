/* runtime/cpu/softmax_type.h: softmax and its derivative in one compute type; included by softmax.c
   with T, NAME(f), EXP and LOG defined. No guard.

   exp(x - m) / sum exp(x - m) with m the largest of the row: exp then never exceeds 1, and the sum
   is at least 1, so that nothing overflows and the logarithm is of a normal number. The logarithm
   of softmax is x - m - log(sum) itself: log of a quotient would lose all of a small
   probability. */
#include "cpu/row_sums_type.h"

/* One contiguous row. The largest is taken off first, so that exp does not overflow. */
static void NAME(row)(const job *j, const T *x, T *y, int64_t n) {
  T m = NAME(lt_lane_max)(x, n);
  double sum;
  if (j->log) {
    LT_LANE_SUM(T, sum, n, EXP(x[i] - m));
    T l = (T)log(sum);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] - m - l; /* m + l would round l away */
    return;
  }
  for (int64_t i = 0; i < n; i++) y[i] = EXP(x[i] - m);
  LT_LANE_SUM(T, sum, n, y[i]);
  T scale = (T)(1 / sum);
  for (int64_t i = 0; i < n; i++) y[i] *= scale;
}

/* y (g - sum g y), or g - exp(y) sum g of the logarithm. Sums are carried in double: with 50 000
   classes most terms are far below the sum. */
static void NAME(row_backward)(const job *j, const T *g, const T *y, T *out, int64_t n) {
  double sum;
  if (j->log) {
    LT_LANE_SUM(T, sum, n, g[i]);
    T s = (T)sum;
    for (int64_t i = 0; i < n; i++) out[i] = g[i] - EXP(y[i]) * s;
  } else {
    LT_LANE_SUM(T, sum, n, g[i] * y[i]);
    T s = (T)sum;
    for (int64_t i = 0; i < n; i++) out[i] = y[i] * (g[i] - s);
  }
}

/* Several short rows, which fit into a tile. Classes of a classifier are ten as a rule: a loop over
   each of them would be all overhead. */
static void NAME(short_rows)(const job *j, const T *x, T *y, int64_t n, int64_t rows) {
  T e[LT_TILE], m[LT_TILE], sum[LT_TILE];
  NAME(row_sums)(x, n, rows, e, m, sum);
  for (int64_t r = 0; r < rows; r++) sum[r] = j->log ? LOG(sum[r]) : 1 / sum[r];
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = r * n; i < (r + 1) * n; i++)
      y[i] = j->log ? x[i] - m[r] - sum[r] : e[i] * sum[r];
}

/* `width` neighbouring columns of `n` elements each, j->inner apart. Softmax over a dim that is not
   the last one: a tile of columns at a time, so that memory is read along its rows. */
static void NAME(columns)(const job *j, const T *x, T *y, int64_t n, int64_t width) {
  T m[LT_TILE], sum[LT_TILE];
  for (int64_t i = 0; i < width; i++) m[i] = -INFINITY, sum[i] = 0;
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < width; i++) {
      T v = x[k * j->inner + i];
      m[i] = v > m[i] ? v : m[i];
    }
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < width; i++) {
      T e = EXP(x[k * j->inner + i] - m[i]);
      sum[i] += e;
      y[k * j->inner + i] = e;
    }
  for (int64_t i = 0; i < width; i++) sum[i] = j->log ? LOG(sum[i]) : 1 / sum[i];
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < width; i++) {
      int64_t at = k * j->inner + i;
      y[at] = j->log ? x[at] - m[i] - sum[i] : y[at] * sum[i];
    }
}

static void NAME(columns_backward)(const job *j, const T *g, const T *y, T *out, int64_t n,
                                   int64_t width) {
  T sum[LT_TILE];
  for (int64_t i = 0; i < width; i++) sum[i] = 0;
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < width; i++) {
      int64_t at = k * j->inner + i;
      sum[i] += j->log ? g[at] : g[at] * y[at];
    }
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < width; i++) {
      int64_t at = k * j->inner + i;
      out[at] = j->log ? g[at] - EXP(y[at]) * sum[i] : y[at] * (g[at] - sum[i]);
    }
}

/* Softmax over the last dim goes by rows, over another one by tiles of columns. */
static void NAME(chunk)(const job *j, int64_t chunk) {
  const T *a = j->a, *b = j->b;
  T *y = j->y;
  if (j->inner > 1) {
    int64_t o = chunk / j->blocks, from = chunk % j->blocks * LT_TILE;
    int64_t width = j->inner - from < LT_TILE ? j->inner - from : LT_TILE;
    int64_t at = o * j->length * j->inner + from;
    if (b == NULL)
      NAME(columns)(j, a + at, y + at, j->length, width);
    else
      NAME(columns_backward)(j, a + at, b + at, y + at, j->length, width);
    return;
  }
  int64_t from = chunk * j->rows, to = from + j->rows < j->outer ? from + j->rows : j->outer;
  int64_t n = j->length, group = b == NULL && n <= LT_TILE / 2 ? LT_TILE / n : 1;
  for (int64_t r = from; r < to; r += group)
    if (b != NULL)
      NAME(row_backward)(j, a + r * n, b + r * n, y + r * n, n);
    else if (group == 1)
      NAME(row)(j, a + r * n, y + r * n, n);
    else
      NAME(short_rows)(j, a + r * n, y + r * n, n, to - r < group ? to - r : group);
}
