/* runtime/cpu/batch_norm_type.h: batch norm in one compute type; included by batch_norm.c with T
   and NAME(f) defined. No guard.

   y = x a + b for each channel. Backward, with z = (x - mean) scale: dx = scale w (g - mean(g) -
   z mean(g z)), which is g p + x q + r for each channel; with fixed statistics dx = g scale w. */

static double NAME(value)(const void *v, int64_t i, double without) {
  return v != NULL ? (double)((const T *)v)[i] : without;
}

/* From mean, variance, weight, bias to the factor and the term of a channel. Folding mean and
   weight into one factor and one term leaves one multiply-add for each element. */
static void NAME(factors)(const job *j, int64_t c, T *a, T *b) {
  double w = NAME(value)(j->weight, c, 1), mean = j->mean[c];
  double scale = w / sqrt(j->variance[c] + j->eps);
  *a = (T)scale;
  *b = (T)(NAME(value)(j->bias, c, 0) - mean * scale);
}

/* From the sums of g and g (x - mean) to p, q, r, and the gradients of weight and bias. One
   multiply-add and another an element, all else once a channel. */
static void NAME(back_factors)(const job *j, int64_t c, double sum, double product, T *pqr) {
  double scale = 1 / sqrt(j->variance[c] + j->eps), w = NAME(value)(j->weight, c, 1);
  double m = (double)j->outer * (double)j->inner;
  double p = scale * w, q = j->fixed ? 0 : -p * product * scale * scale / m;
  ((T *)j->weight_grad)[c] = (T)(product * scale);
  ((T *)j->bias_grad)[c] = (T)sum;
  pqr[0] = (T)p;
  pqr[1] = (T)q;
  pqr[2] = j->fixed ? 0 : (T)(-p * sum / m - q * j->mean[c]);
}

/* Channels in planes: one channel is `outer` runs of `inner` elements. */

/* Two passes for mean and variance, as in layer norm: E[x^2] - E[x]^2 cancels. Each plane is in the
   cache for the second and the third. */
static void NAME(plane_forward)(const job *j, int64_t c) {
  int64_t n = j->inner, step = j->channels * n;
  const T *x = (const T *)j->x + c * n;
  T *y = (T *)j->y + c * n, a, b;
  if (!j->fixed) {
    double total = 0, sum, m = (double)j->outer * (double)n;
    for (int64_t o = 0; o < j->outer; o++) {
      const T *v = x + o * step;
      LT_LANE_SUM(T, sum, n, v[i]);
      total += sum;
    }
    T mean = (T)(total / m);
    /* What rounding the mean to T took off: sums of squares around the rounded mean are too large
       by its square. */
    double rest = total / m - (double)mean;
    total = 0;
    for (int64_t o = 0; o < j->outer; o++) {
      const T *v = x + o * step;
      LT_LANE_SUM(T, sum, n, (v[i] - mean) * (v[i] - mean));
      total += sum;
    }
    j->mean[c] = (double)mean + rest;
    j->variance[c] = total / m - rest * rest;
  }
  NAME(factors)(j, c, &a, &b);
  for (int64_t o = 0; o < j->outer; o++)
    for (int64_t i = 0; i < n; i++) y[o * step + i] = x[o * step + i] * a + b;
}

static void NAME(plane_backward)(const job *j, int64_t c) {
  int64_t n = j->inner, step = j->channels * n;
  const T *x = (const T *)j->x + c * n, *g = (const T *)j->g + c * n;
  T *y = (T *)j->y + c * n, mean = (T)j->mean[c], f[3];
  double total = 0, products = 0, sum;
  for (int64_t o = 0; o < j->outer; o++) {
    const T *v = x + o * step, *d = g + o * step;
    LT_LANE_SUM(T, sum, n, d[i]);
    total += sum;
    LT_LANE_SUM(T, sum, n, d[i] * (v[i] - mean));
    products += sum;
  }
  /* The same for the products: they were taken around the rounded mean. */
  products -= total * (j->mean[c] - (double)mean);
  NAME(back_factors)(j, c, total, products, f);
  T p = f[0], q = f[1], r = f[2];
  for (int64_t o = 0; o < j->outer; o++)
    for (int64_t i = 0; i < n; i++)
      y[o * step + i] = g[o * step + i] * p + (x[o * step + i] * q + r);
}

/* Channels side by side: rows from..to-1 of channels c..c+n-1, n at most a tile. Sums go from the
   compute type to double every few rows. */

static void NAME(carry)(double *wide, T *acc, int64_t n) {
  for (int64_t i = 0; i < n; i++) wide[i] += (double)acc[i], acc[i] = 0;
}

/* Mean and sum of squared distances within this block of rows. */
static void NAME(block_moments)(const job *j, int64_t block, int64_t from, int64_t to, int64_t c,
                                int64_t n) {
  T acc[LT_TILE], mean[LT_TILE];
  double *wide = j->partial + (2 * block) * j->channels + c, *squares = wide + j->channels;
  for (int64_t i = 0; i < n; i++) acc[i] = 0, wide[i] = 0, squares[i] = 0;
  for (int64_t r = from; r < to; r++) {
    const T *x = (const T *)j->x + r * j->channels + c;
    for (int64_t i = 0; i < n; i++) acc[i] += x[i];
    if ((r - from) % CARRY == CARRY - 1) NAME(carry)(wide, acc, n);
  }
  NAME(carry)(wide, acc, n);
  for (int64_t i = 0; i < n; i++) mean[i] = (T)(wide[i] /= (double)(to - from));
  for (int64_t r = from; r < to; r++) {
    const T *x = (const T *)j->x + r * j->channels + c;
    for (int64_t i = 0; i < n; i++) acc[i] += (x[i] - mean[i]) * (x[i] - mean[i]);
    if ((r - from) % CARRY == CARRY - 1) NAME(carry)(squares, acc, n);
  }
  NAME(carry)(squares, acc, n);
  for (int64_t i = 0; i < n; i++) {
    double rest = wide[i] - (double)mean[i];
    squares[i] -= rest * rest * (double)(to - from);
  }
}

/* Sums of g and g (x - mean) within this block of rows. */
static void NAME(block_products)(const job *j, int64_t block, int64_t from, int64_t to, int64_t c,
                                 int64_t n) {
  T acc[LT_TILE], product[LT_TILE], mean[LT_TILE];
  double *wide = j->partial + (2 * block) * j->channels + c, *products = wide + j->channels;
  for (int64_t i = 0; i < n; i++) acc[i] = product[i] = 0, wide[i] = products[i] = 0;
  for (int64_t i = 0; i < n; i++) mean[i] = (T)j->mean[c + i];
  for (int64_t r = from; r < to; r++) {
    const T *x = (const T *)j->x + r * j->channels + c, *g = (const T *)j->g + r * j->channels + c;
    for (int64_t i = 0; i < n; i++) acc[i] += g[i];
    for (int64_t i = 0; i < n; i++) product[i] += g[i] * (x[i] - mean[i]);
    if ((r - from) % CARRY != CARRY - 1) continue;
    NAME(carry)(wide, acc, n);
    NAME(carry)(products, product, n);
  }
  NAME(carry)(wide, acc, n);
  NAME(carry)(products, product, n);
  for (int64_t i = 0; i < n; i++) products[i] -= wide[i] * (j->mean[c + i] - (double)mean[i]);
}

/* y = x a + b or dx = g p + x q + r over a block of rows. */
static void NAME(block_apply)(const job *j, int64_t from, int64_t to, int64_t c, int64_t n) {
  T p[LT_TILE], q[LT_TILE], r[LT_TILE];
  for (int64_t i = 0; i < n; i++) {
    T f[3] = {0};
    if (j->g == NULL)
      NAME(factors)(j, c + i, &f[0], &f[2]);
    else
      memcpy(f, (const T *)j->factors + 3 * (c + i), sizeof f);
    p[i] = f[0], q[i] = f[1], r[i] = f[2];
  }
  for (int64_t row = from; row < to; row++) {
    const T *x = (const T *)j->x + row * j->channels + c;
    const T *g = j->g != NULL ? (const T *)j->g + row * j->channels + c : NULL;
    T *y = (T *)j->y + row * j->channels + c;
    if (g == NULL)
      for (int64_t i = 0; i < n; i++) y[i] = x[i] * p[i] + r[i];
    else
      for (int64_t i = 0; i < n; i++) y[i] = g[i] * p[i] + (x[i] * q[i] + r[i]);
  }
}

/* All blocks of rows together, in order. */
static void NAME(join)(const job *j, int64_t c) {
  double count = 0, a = 0, b = 0;
  for (int64_t k = 0; k < j->blocks; k++) {
    double n = (double)(k + 1 < j->blocks ? j->each : j->outer - k * j->each);
    double u = j->partial[2 * k * j->channels + c], v = j->partial[(2 * k + 1) * j->channels + c];
    if (j->g == NULL) { /* Chan, Golub and LeVeque 1979 */
      double d = u - a;
      b += v + d * d * count * n / (count + n);
      a += d * n / (count + n);
      count += n;
    } else {
      a += u, b += v;
    }
  }
  if (j->g == NULL)
    j->mean[c] = a, j->variance[c] = b / count;
  else
    NAME(back_factors)(j, c, a, b, (T *)j->factors + 3 * c);
}
