/* runtime/cpu/attention_type.h: the loops of cpu/attention.c in one compute type.

   Included with T, NAME(f), EXP(x) for x <= 0, and GEMM(ta, tb, m, n, k, alpha, a, lda, b, ldb,
   add, out, ld), which gives false without memory. No guard. */

/* Add what the mask says to the scores of row t. */
static void NAME(mask_row)(const job *j, int64_t b, int64_t h, int64_t t, int64_t n, T *row) {
  int64_t at = b * j->mask_stride[0] + h * j->mask_stride[1] + t * j->mask_stride[2];
  int64_t step = j->mask_stride[3];
  if (j->mask_is_bool) {
    const uint8_t *m = (const uint8_t *)j->mask + at;
    for (int64_t s = 0; s < n; s++) row[s] = m[s * step] != 0 ? row[s] : -(T)INFINITY;
  } else {
    const T *m = (const T *)j->mask + at;
    for (int64_t s = 0; s < n; s++) row[s] += m[s * step];
  }
}

/* row = exp(row - shift); returns the sum. */
static T NAME(exponents)(T *row, int64_t n, T shift) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t s = 0; s < n; s++) {
    T e = EXP(row[s] - shift);
    row[s] = e;
    sum += e;
  }
  return sum;
}

/* The first n scores of a row, each dropped or divided by 1 - p by the word of its element. */
static void NAME(drop_row)(const job *j, int64_t b, int64_t h, int64_t t, int64_t n, T *row) {
  int64_t from = ((b * j->all_heads + j->first_head + h) * j->t + t) * j->s;
  T keep = (T)j->keep;
  uint32_t words[LT_WORDS];
  for (int64_t at = from / 4 * 4; at < from + n; at += LT_WORDS) {
    int64_t end = at + LT_WORDS < from + n ? at + LT_WORDS : from + n;
    lt_philox_fill(j->rng_key, (uint64_t)(at / 4), (end - at + 3) / 4, words);
    for (int64_t i = at > from ? at : from; i < end; i++)
      row[i - from] = words[i - at] < j->threshold || keep == 0 ? 0 : row[i - from] * keep;
  }
}

static T NAME(dot)(const T *a, const T *b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* p = exp(p - shift) share, dp = p (dp - delta). */
static void NAME(backward_row)(T *restrict p, T *restrict dp, int64_t n, T shift, T share,
                               T delta) {
  for (int64_t s = 0; s < n; s++) {
    T x = EXP(p[s] - shift) * share;
    p[s] = x;
    dp[s] = x * (dp[s] - delta);
  }
}

/* Whole vectors are faster than remainders: up to 15 keys that a row does not see get -infinity.
   Returns how many scores the row now has, of n. */
static int64_t NAME(close_row)(T *row, int64_t own, int64_t n) {
  int64_t padded = (own + 15) / 16 * 16;
  if (padded > n) padded = n;
  for (int64_t s = own; s < padded; s++) row[s] = -(T)INFINITY;
  return padded;
}

/* A row of scores becomes exp(score - max), its sum goes to *sum; returns the max. Rows in which
   nothing takes part become 0, unless they hold NaN. The largest is taken off first, so that exp
   does not overflow (softmax does not change). */
static T NAME(softmax_row)(T *row, int64_t n, T *sum) {
  T most = NAME(lt_lane_max)(row, n), nan = 0;
  *sum = 1;
  if (most == -(T)INFINITY) {
    for (int64_t s = 0; s < n; s++) nan = row[s] != row[s] ? row[s] : nan;
    for (int64_t s = 0; s < n; s++) row[s] = nan;
    return nan != nan ? nan : most;
  }
  *sum = NAME(exponents)(row, n, most);
  return most;
}

/* Scores of `rows` queries from t0 on against the first n keys. */
static bool NAME(scores)(const job *j, int64_t b, int64_t h, int64_t t0, int64_t rows, int64_t n,
                         T *out) {
  const T *q = (const T *)start(&j->q, b, h, t0);
  const T *k = (const T *)start(&j->k, b, h / j->group, 0);
  if (!GEMM(false, true, rows, n, j->d, j->scale, q, j->q.row, k, j->k.row, false, out, n))
    return false;
  for (int64_t i = 0; i < rows && j->mask != NULL; i++)
    NAME(mask_row)(j, b, h, t0 + i, n, out + i * n);
  return true;
}

static bool NAME(forward_tile)(const job *j, int64_t b, int64_t h, int64_t t0, T *p) {
  int64_t rows = rows_of(j, t0), n = keys_of(j, t0 + rows - 1);
  T *most = (T *)j->stats + (b * j->heads + h) * j->t + t0;
  T *sum = most + j->batches * j->heads * j->t;
  if (!NAME(scores)(j, b, h, t0, rows, n, p)) return false;
  for (int64_t i = 0; i < rows; i++) {
    int64_t padded = NAME(close_row)(p + i * n, keys_of(j, t0 + i), n);
    most[i] = NAME(softmax_row)(p + i * n, padded, &sum[i]);
    if (j->drops) NAME(drop_row)(j, b, h, t0 + i, padded, p + i * n);
    for (int64_t s = padded; s < n; s++) p[i * n + s] = 0;
  }
  T *out = (T *)start(&j->out, b, h, t0);
  const T *v = (const T *)start(&j->v, b, h / j->group, 0);
  if (!GEMM(false, false, rows, j->e, n, 1, p, n, v, j->v.row, false, out, j->out.row))
    return false;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t e = 0; e < j->e; e++) out[i * j->out.row + e] /= sum[i];
  return true;
}

static void NAME(forward)(void *ud, int64_t chunk) {
  job *j = ud;
  int64_t tiles = (j->t + ROWS - 1) / ROWS, head = chunk / tiles;
  if (!NAME(forward_tile)(j, head / j->heads, head % j->heads, chunk % tiles * ROWS,
                          (T *)scratch_of(j)))
    atomic_store(&j->failed, true);
}

/* p = probabilities of the tile, from the saved statistics; dp: the gradients of its scores. */
static bool NAME(backward_scores)(const job *j, int64_t b, int64_t h, int64_t t0, int64_t rows,
                                  int64_t n, T *p, T *dp) {
  const T *most = (const T *)j->stats + (b * j->heads + h) * j->t + t0;
  const T *sum = most + j->batches * j->heads * j->t;
  const T *g = (const T *)start(&j->g, b, h, t0), *out = (const T *)start(&j->out, b, h, t0);
  const T *v = (const T *)start(&j->v, b, h / j->group, 0);
  if (!NAME(scores)(j, b, h, t0, rows, n, p) ||
      !GEMM(false, true, rows, n, j->e, 1, g, j->g.row, v, j->v.row, false, dp, n))
    return false;
  for (int64_t i = 0; i < rows; i++) {
    T *pi = p + i * n, *di = dp + i * n;
    int64_t own = most[i] == -(T)INFINITY ? 0 : keys_of(j, t0 + i); /* 0: nothing took part */
    int64_t padded = NAME(close_row)(pi, own, n);
    /* The sum over keys of p dp equals g . out (T. Dao and others, 2022): E products in place of
       S. */
    T delta = NAME(dot)(g + i * j->g.row, out + i * j->out.row, j->e);
    if (j->drops) NAME(drop_row)(j, b, h, t0 + i, padded, di);
    NAME(backward_row)(pi, di, padded, most[i], 1 / sum[i], delta);
    if (j->drops) NAME(drop_row)(j, b, h, t0 + i, padded, pi);
    for (int64_t s = own; s < n; s++) pi[s] = di[s] = 0;
  }
  return true;
}

/* The gradients of the tile's scores to where the mask's gradient is summed from. */
static void NAME(keep_scores)(const job *j, int64_t b, int64_t h, int64_t t0, int64_t rows,
                              int64_t n, const T *dp) {
  T *out = (T *)j->dscores + ((b * j->heads + h) * j->t + t0) * j->s;
  for (int64_t i = 0; i < rows; i++) {
    memcpy(out + i * j->s, dp + i * n, (size_t)n * sizeof(T));
    memset(out + i * j->s + n, 0, (size_t)(j->s - n) * sizeof(T));
  }
}

static bool NAME(backward_tile)(const job *j, int64_t b, int64_t h, int64_t t0, T *p) {
  int64_t rows = rows_of(j, t0), n = keys_of(j, t0 + rows - 1);
  int64_t kept = h / j->group;
  T *dp = p + rows * n;
  const T *q = (const T *)start(&j->q, b, h, t0), *k = (const T *)start(&j->k, b, kept, 0);
  const T *g = (const T *)start(&j->g, b, h, t0);
  T *dq = (T *)start(&j->dq, b, h, t0), *dk = (T *)start(&j->dk, b, kept, 0);
  T *dv = (T *)start(&j->dv, b, kept, 0);
  if (!NAME(backward_scores)(j, b, h, t0, rows, n, p, dp)) return false;
  if (j->dscores != NULL) NAME(keep_scores)(j, b, h, t0, rows, n, dp);
  return GEMM(true, false, n, j->e, rows, 1, p, n, g, j->g.row, true, dv, j->dv.row) &&
         GEMM(true, false, n, j->d, rows, j->scale, dp, n, q, j->q.row, true, dk, j->dk.row) &&
         GEMM(false, false, rows, j->d, n, j->scale, dp, n, k, j->k.row, false, dq, j->dq.row);
}

/* The heads of queries that share a head of keys: later ones add to the same gradients of keys and
   values. */
static void NAME(backward)(void *ud, int64_t number) {
  job *j = ud;
  int64_t shared = j->heads / j->group, b = number / shared, kept = number % shared;
  for (int64_t s = 0; s < j->s; s++) {
    memset(start(&j->dk, b, kept, s), 0, (size_t)j->d * sizeof(T));
    memset(start(&j->dv, b, kept, s), 0, (size_t)j->e * sizeof(T));
  }
  for (int64_t h = kept * j->group; h < (kept + 1) * j->group; h++)
    for (int64_t t0 = 0; t0 < j->t; t0 += ROWS)
      if (!NAME(backward_tile)(j, b, h, t0, (T *)scratch_of(j))) atomic_store(&j->failed, true);
}
