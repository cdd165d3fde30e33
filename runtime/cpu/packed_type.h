/* runtime/cpu/packed_type.h: products with a matrix that is packed once and multiplied many times,
   in one type; included with T and NAME(f) defined. No guard.

   Panels of NAME(PANEL) columns lie one row after the other, zeros behind the last column. A tile
   of up to NAME(ROWS) rows times a panel stays in registers. Each sum goes over the terms in order,
   on any number of rows, columns and threads. */

typedef T NAME(vector) __attribute__((vector_size(LT_VECTOR), aligned(sizeof(T))));
enum {
  NAME(LANES) = LT_VECTOR / (int)sizeof(T),
  NAME(PANEL) = 2 * NAME(LANES),
  NAME(ROWS) = LT_TILE_ROWS,
};

/* Columns of b [k, n] by strides as a panel, n <= PANEL. */
static void NAME(pack)(const T *b, int64_t k, int64_t n, int64_t row, int64_t col, T *panel) {
  for (int64_t p = 0; p < k; p++) {
    for (int64_t q = 0; q < n; q++) panel[p * NAME(PANEL) + q] = b[p * row + q * col];
    for (int64_t q = n; q < NAME(PANEL); q++) panel[p * NAME(PANEL) + q] = 0;
  }
}

/* out [rows, PANEL] = a [rows, k] times the panel. */
static inline __attribute__((always_inline)) void NAME(tile)(const int rows, int64_t k, const T *a,
                                                             int64_t ld, const T *panel, T *out) {
  NAME(vector) low[LT_TILE_ROWS], high[LT_TILE_ROWS];
  for (int r = 0; r < rows; r++) low[r] = high[r] = (NAME(vector)){0};
  for (int64_t p = 0; p < k; p++) {
    NAME(vector) b = *(const NAME(vector) *)(panel + p * NAME(PANEL));
    NAME(vector) d = *(const NAME(vector) *)(panel + p * NAME(PANEL) + NAME(LANES));
    for (int r = 0; r < rows; r++) {
      T x = a[r * ld + p];
      low[r] += x * b;
      high[r] += x * d;
    }
  }
  for (int r = 0; r < rows; r++) {
    *(NAME(vector) *)(out + r * NAME(PANEL)) = low[r];
    *(NAME(vector) *)(out + r * NAME(PANEL) + NAME(LANES)) = high[r];
  }
}

static void NAME(times_panel)(int64_t rows, int64_t k, const T *a, int64_t ld, const T *panel,
                              T *out) {
  switch (rows) {
    case 1: NAME(tile)(1, k, a, ld, panel, out); return;
    case 2: NAME(tile)(2, k, a, ld, panel, out); return;
    case 3: NAME(tile)(3, k, a, ld, panel, out); return;
    case 4: NAME(tile)(4, k, a, ld, panel, out); return;
    case 5: NAME(tile)(5, k, a, ld, panel, out); return;
    case 6: NAME(tile)(6, k, a, ld, panel, out); return;
    case 7: NAME(tile)(7 < LT_TILE_ROWS ? 7 : LT_TILE_ROWS, k, a, ld, panel, out); return;
    default: NAME(tile)(LT_TILE_ROWS, k, a, ld, panel, out); return;
  }
}
