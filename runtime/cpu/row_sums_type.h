/* runtime/cpu/row_sums_type.h: sums of exponentials of short rows, for softmax and cross-entropy;
   included by their _type.h with T, NAME(f) and EXP defined. No guard. */

/* Rows of n elements that fit into a tile together: e = exp(x - m), m the row's largest, and each
   row's sum of e. The exponentials are one loop over the tile. */
static void NAME(row_sums)(const T *x, int64_t n, int64_t rows, T *e, T *m, T *sum) {
  for (int64_t r = 0; r < rows; r++) {
    m[r] = NAME(lt_lane_max)(x + r * n, n);
    for (int64_t i = 0; i < n; i++) e[r * n + i] = x[r * n + i] - m[r];
  }
  for (int64_t i = 0; i < rows * n; i++) e[i] = EXP(e[i]);
  for (int64_t r = 0; r < rows; r++) {
    double s;
    LT_LANE_SUM(T, s, n, e[r * n + i]);
    sum[r] = (T)s;
  }
}
