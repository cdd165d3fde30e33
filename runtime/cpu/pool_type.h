/* runtime/cpu/pool_type.h: the loops of cpu/pool.c for one element type and one index type.

   Included with T (element), its LOWEST, ABOVE(v, b) where NaN is above all, I (index) and NAME(f).
   No guard. */

/* best[i], at[i] = the larger of best and x[i * step], NaN above all; k is where x stands. */
static void NAME(take)(T *restrict best, I *restrict at, const T *restrict x, int64_t n,
                       int64_t step, I k) {
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) {
      T v = x[i], b = best[i];
      int more = ABOVE(v, b);
      best[i] = more ? v : b;
      at[i] = more ? k : at[i];
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      T v = x[i * step], b = best[i];
      int more = ABOVE(v, b);
      best[i] = more ? v : b;
      at[i] = more ? k : at[i];
    }
  }
}

/* dx[i * step] += g[i] where the maximum stood at k. */
static void NAME(put)(T *restrict dx, const T *restrict g, const I *restrict at, int64_t n,
                      int64_t step, I k) {
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) {
      T v = g[i];
      dx[i] += at[i] == k ? v : 0;
    }
  } else {
    for (int64_t i = 0; i < n; i++) dx[i * step] += at[i] == k ? g[i] : 0;
  }
}

/* The first position inside is where a maximum of -infinity stands. */
static void NAME(start)(const job *j, int64_t oh, T *best, I *at) {
  int64_t h = oh * j->stride.h - j->padding.h, kh = first_inside(h, j->dilation.h);
  for (int64_t ow = 0; ow < j->ow; ow++) {
    int64_t w = ow * j->stride.w - j->padding.w, kw = first_inside(w, j->dilation.w);
    for (int64_t i = 0; i < j->c; i++) {
      best[ow * j->c + i] = LOWEST;
      at[ow * j->c + i] = (I)(kh * j->kernel.w + kw);
    }
  }
}

/* An image: for each row of results all kernel positions in order, so that of equal elements the
   first is kept. */
static void NAME(forward)(void *ud, int64_t n) {
  const job *j = ud;
  const T *x = (const T *)j->x + n * j->h * j->w * j->c;
  for (int64_t oh = 0; oh < j->oh; oh++) {
    T *best = (T *)j->y + (n * j->oh + oh) * j->ow * j->c;
    I *at = (I *)j->at + (n * j->oh + oh) * j->ow * j->c;
    NAME(start)(j, oh, best, at);
    run r;
    for (int64_t k = 0; k < j->kernel.h * j->kernel.w; k++) {
      if (!run_of(j, oh, k, &r)) continue;
      if (j->c == 1)
        NAME(take)(best + r.first, at + r.first, x + r.x, r.n, j->stride.w, (I)k);
      else
        for (int64_t i = 0; i < r.n; i++)
          NAME(take)
          (best + (r.first + i) * j->c, at + (r.first + i) * j->c,
           x + (r.x + i * j->stride.w) * j->c, j->c, 1, (I)k);
    }
  }
}

/* The same walk with each result's gradient added at the position that forward noted: windows that
   overlap may add to one pixel, but an image belongs to one thread. */
static void NAME(backward)(void *ud, int64_t n) {
  const job *j = ud;
  T *dx = (T *)j->x + n * j->h * j->w * j->c;
  memset(dx, 0, (size_t)(j->h * j->w * j->c) * sizeof *dx);
  for (int64_t oh = 0; oh < j->oh; oh++) {
    const T *g = (const T *)j->y + (n * j->oh + oh) * j->ow * j->c;
    const I *at = (const I *)j->at + (n * j->oh + oh) * j->ow * j->c;
    run r;
    for (int64_t k = 0; k < j->kernel.h * j->kernel.w; k++) {
      if (!run_of(j, oh, k, &r)) continue;
      if (j->c == 1)
        NAME(put)(dx + r.x, g + r.first, at + r.first, r.n, j->stride.w, (I)k);
      else
        for (int64_t i = 0; i < r.n; i++)
          NAME(put)
          (dx + (r.x + i * j->stride.w) * j->c, g + (r.first + i) * j->c, at + (r.first + i) * j->c,
           j->c, 1, (I)k);
    }
  }
}
