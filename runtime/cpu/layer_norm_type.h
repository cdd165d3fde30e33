/* runtime/cpu/layer_norm_type.h: layer norm in one compute type; included by layer_norm.c with T,
   NAME(f) defined. No guard. */

/* Mean and 1 / sqrt(variance + eps) of a row. Two passes, the second around the mean: the
   difference of mean(x^2) and mean(x)^2 cancels where the mean is large beside the spread (T. Chan,
   G. Golub, R. LeVeque, 1983). The row is in the cache for the second. */
static void NAME(moments)(const job *j, const T *x, T *mean, T *scale) {
  int64_t n = j->width;
  double sum = 0;
  if (j->centred) LT_LANE_SUM(T, sum, n, x[i]);
  T m = (T)(sum / (double)n);
  LT_LANE_SUM(T, sum, n, (x[i] - m) * (x[i] - m));
  *mean = m;
  *scale = (T)(1 / sqrt(sum / (double)n + j->eps));
}

static void NAME(row_forward)(const job *j, const T *x, T *y, const T *w, const T *b) {
  int64_t n = j->width;
  T m, s;
  NAME(moments)(j, x, &m, &s);
  if (w != NULL && b != NULL) {
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * s * w[i] + b[i];
    return;
  }
  if (w != NULL)
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * s * w[i];
  else
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * s;
  for (int64_t i = 0; i < n && b != NULL; i++) y[i] += b[i];
}

static void NAME(forward)(const job *j, int64_t from, int64_t to) {
  for (int64_t r = from, n = j->width; r < to; r++)
    NAME(row_forward)(j, (const T *)j->x + r * n, (T *)j->y + r * n, j->weight, j->bias);
}

/* With z = (x - m) s and a = g w: dx = s (a - mean(a) - z mean(a z)); mean(a) comes from m. */
static void NAME(row_backward)(const job *j, const T *g, const T *x, T *y, const T *w, T m, T s) {
  int64_t n = j->width;
  double sum = 0, product;
  if (w != NULL) {
    if (j->centred) LT_LANE_SUM(T, sum, n, g[i] * w[i]);
    LT_LANE_SUM(T, product, n, g[i] * w[i] * (x[i] - m));
  } else {
    if (j->centred) LT_LANE_SUM(T, sum, n, g[i]);
    LT_LANE_SUM(T, product, n, g[i] * (x[i] - m));
  }
  T p = (T)(sum / (double)n), q = (T)(product * (double)s * (double)s / (double)n);
  if (w != NULL)
    for (int64_t i = 0; i < n; i++) y[i] = s * (g[i] * w[i] - p - (x[i] - m) * q);
  else
    for (int64_t i = 0; i < n; i++) y[i] = s * (g[i] - p - (x[i] - m) * q);
}

/* The gradients of weight and bias are sums over all rows. A chunk adds its own into memory of its
   own (partial), as threads that shared a sum would have to lock it and add in no fixed order. */
static void NAME(backward)(const job *j, int64_t chunk, int64_t from, int64_t to) {
  int64_t n = j->width;
  T *gw = j->partial != NULL ? (T *)j->partial + 2 * n * chunk : NULL;
  if (gw != NULL) memset(gw, 0, (size_t)(2 * n) * sizeof *gw);
  for (int64_t r = from; r < to; r++) {
    const T *g = (const T *)j->g + r * n, *x = (const T *)j->x + r * n;
    T m, s;
    NAME(moments)(j, x, &m, &s);
    NAME(row_backward)(j, g, x, (T *)j->y + r * n, j->weight, m, s);
    if (gw == NULL) continue;
    for (int64_t i = 0; i < n; i++) gw[i] += g[i] * ((x[i] - m) * s);
    for (int64_t i = 0; i < n && j->centred; i++) gw[n + i] += g[i];
  }
}

/* Columns from..to-1 of the parts' sums, in order. */
static void NAME(gather)(const job *j, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) {
    double w = 0, b = 0;
    for (int64_t k = 0; k < j->parts; k++) {
      w += (double)((const T *)j->partial)[2 * j->columns * k + i];
      b += (double)((const T *)j->partial)[2 * j->columns * k + j->columns + i];
    }
    ((T *)j->weight_grad)[i] = (T)w;
    if (j->centred) ((T *)j->bias_grad)[i] = (T)b;
  }
}
