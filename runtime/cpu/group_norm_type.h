/* runtime/cpu/group_norm_type.h: group norm in one compute type, whose rows are the groups of each
   element of the batch; included by layer_norm.c after layer_norm_type.h. No guard. */

static void NAME(group_forward)(const job *j, int64_t from, int64_t to) {
  for (int64_t r = from, n = j->inner; r < to; r++) {
    int64_t first = r % j->groups * j->channels;
    const T *x = (const T *)j->x + r * j->width;
    const T *w = j->weight != NULL ? (const T *)j->weight + first : NULL;
    const T *b = j->bias != NULL ? (const T *)j->bias + first : NULL;
    T *y = (T *)j->y + r * j->width, m, s;
    if (n == 1) {
      NAME(row_forward)(j, x, y, w, b);
      continue;
    }
    NAME(moments)(j, x, &m, &s);
    for (int64_t k = 0; k < j->channels; k++, x += n, y += n) {
      T scale = w != NULL ? s * w[k] : s, term = b != NULL ? b[k] : 0;
      for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * scale + term;
    }
  }
}

/* What a row adds to the gradients of its channels' weights and biases, gw and gb; and as
   row_backward, with the means of a and a z from the sums of each channel. Sums by channel serve
   both: the gradients of weight and bias need them, and weighted they add up to the sums of the
   row. */
static void NAME(channels_backward)(const job *j, const T *g, const T *x, T *y, const T *w, T *gw,
                                    T *gb, T m, T s) {
  int64_t n = j->inner;
  double sum = 0, product = 0, width = (double)j->width;
  for (int64_t k = 0; k < j->channels; k++) {
    const T *d = g + k * n, *v = x + k * n;
    double b, p, weight = w != NULL ? (double)w[k] : 1;
    LT_LANE_SUM(T, b, n, d[i]);
    LT_LANE_SUM(T, p, n, d[i] * (v[i] - m));
    gw[k] = (T)(p * (double)s);
    gb[k] = (T)b;
    sum += weight * b;
    product += weight * p;
  }
  T p = (T)(sum / width) * s, q = (T)(product * (double)s * (double)s / width) * s;
  for (int64_t k = 0; k < j->channels; k++, g += n, x += n, y += n) {
    T scale = w != NULL ? s * w[k] : s;
    for (int64_t i = 0; i < n; i++) y[i] = g[i] * scale - p - (x[i] - m) * q;
  }
}

static void NAME(group_backward)(const job *j, int64_t from, int64_t to) {
  for (int64_t r = from, n = j->width; r < to; r++) {
    int64_t first = r % j->groups * j->channels;
    const T *g = (const T *)j->g + r * n, *x = (const T *)j->x + r * n;
    const T *w = j->weight != NULL ? (const T *)j->weight + first : NULL;
    T *y = (T *)j->y + r * n, m, s;
    T *gw = (T *)j->partial + 2 * j->columns * (r / j->groups) + first, *gb = gw + j->columns;
    NAME(moments)(j, x, &m, &s);
    if (j->inner > 1) {
      NAME(channels_backward)(j, g, x, y, w, gw, gb, m, s);
      continue;
    }
    NAME(row_backward)(j, g, x, y, w, m, s);
    for (int64_t i = 0; i < n; i++) gw[i] = g[i] * ((x[i] - m) * s);
    memcpy(gb, g, (size_t)n * sizeof *gb);
  }
}
