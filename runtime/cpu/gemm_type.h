/* runtime/cpu/gemm_type.h: the product of cpu/gemm.c in one type.

   Included with T (the type), NAME(f) and SCALE(sum). Columns of b are packed eight at a time; six
   rows by eight columns of the result stay in registers. No guard.

   The register tile and the packed panel are those of K. Goto and R. van de Geijn, "Anatomy of
   high-performance matrix multiplication", 2008: 48 sums in registers mean that each element that
   is loaded takes part in 6 or 8 products. The k terms of a sum are added in order within a block
   of TERMS, then block by block, whatever the shape of the rest. */

/* Columns beyond n are zeros: the inner loop then has no case for an edge. */
static void NAME(pack)(const lt_gemm *g, int64_t k0, int64_t k1, int64_t j, T *panel) {
  const T *b = (const T *)g->b + k0 * g->b_row + j * g->b_col;
  int64_t cols = g->n - j < COLS ? g->n - j : COLS;
  for (int64_t p = 0; p < k1 - k0; p++) {
    for (int64_t q = 0; q < cols; q++) panel[p * COLS + q] = b[p * g->b_row + q * g->b_col];
    for (int64_t q = cols; q < COLS; q++) panel[p * COLS + q] = 0;
  }
}

/* Six rows from row i on; rows past the end repeat the last one and are not stored. */
static void NAME(tile)(const lt_gemm *g, int64_t k0, int64_t k1, int64_t i, int64_t j,
                       const T *restrict panel) {
  T sum[ROWS][COLS] = {{0}};
  const T *a[ROWS];
  for (int64_t r = 0; r < ROWS; r++)
    a[r] = (const T *)g->a + (i + r < g->m ? i + r : g->m - 1) * g->a_row + k0 * g->a_col;
  for (int64_t p = 0; p < k1 - k0; p++)
    for (int r = 0; r < ROWS; r++) {
      T x = a[r][p * g->a_col];
      for (int q = 0; q < COLS; q++) sum[r][q] += x * panel[p * COLS + q];
    }
  bool add = g->add || k0 > 0;
  for (int64_t r = 0; r < ROWS && i + r < g->m; r++)
    for (int64_t q = 0; q < COLS && j + q < g->n; q++) {
      T *out = (T *)g->out + (i + r) * g->out_row + (j + q) * g->out_col;
      *out = (add ? *out : 0) + SCALE(sum[r][q]);
    }
}

void LT_CPU(NAME(lt_gemm))(const lt_gemm *g) {
  T panel[TERMS * COLS];
  int64_t k0 = 0;
  do { /* once even without terms: the result is then 0 */
    int64_t k1 = k0 + TERMS < g->k ? k0 + TERMS : g->k;
    for (int64_t j = 0; j < g->n; j += COLS) {
      NAME(pack)(g, k0, k1, j, panel);
      for (int64_t i = 0; i < g->m; i += ROWS) NAME(tile)(g, k0, k1, i, j, panel);
    }
    k0 = k1;
  } while (k0 < g->k);
}
