/* runtime/cpu/packed_type.h: products with a matrix that is packed once and multiplied many times,
   in one type; included after cpu/packed.h, with T and NAME(f) defined. No guard.

   Panels of NAME(PANEL) columns lie one row after the other, zeros behind the last column. A tile
   of up to NAME(ROWS) rows times a panel stays in registers. Each sum goes over the terms in order,
   on any number of rows, columns and threads. */

typedef T NAME(vector) __attribute__((vector_size(LT_VECTOR)));
typedef T NAME(lanes) __attribute__((vector_size(LT_VECTOR), aligned(sizeof(T)))); /* in memory */
enum {
  NAME(LANES) = LT_VECTOR / (int)sizeof(T),
  NAME(PANEL) = 2 * NAME(LANES),
  NAME(ROWS) = LT_TILE_ROWS,
};

/* Columns of b [k, n] by strides as a panel, n <= PANEL. */
static inline void NAME(pack)(const T *b, int64_t k, int64_t n, int64_t row, int64_t col,
                              T *panel) {
  for (int64_t p = 0; p < k; p++) {
    for (int64_t q = 0; q < n; q++) panel[p * NAME(PANEL) + q] = b[p * row + q * col];
    for (int64_t q = n; q < NAME(PANEL); q++) panel[p * NAME(PANEL) + q] = 0;
  }
}

/* out [rows, PANEL] = a [rows, k] times the panel; `row` and `term` are the strides of a. Inlined
   with a constant number of rows, so that the sums are registers: 2 rows of vectors for each of up
   to LT_TILE_ROWS. */
static inline __attribute__((always_inline)) void NAME(tile)(const int rows, int64_t k, const T *a,
                                                             int64_t row, int64_t term,
                                                             const T *panel, T *out) {
  NAME(vector) low[LT_TILE_ROWS], high[LT_TILE_ROWS];
#pragma GCC unroll 8 /* else gcc keeps the sums in memory too */
  for (int r = 0; r < rows; r++) low[r] = high[r] = (NAME(vector)){0};
  for (int64_t p = 0; p < k; p++) {
    NAME(vector) b = *(const NAME(lanes) *)(panel + p * NAME(PANEL));
    NAME(vector) d = *(const NAME(lanes) *)(panel + p * NAME(PANEL) + NAME(LANES));
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      T x = a[r * row + p * term];
      low[r] += x * b;
      high[r] += x * d;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    *(NAME(lanes) *)(out + r * NAME(PANEL)) = low[r];
    *(NAME(lanes) *)(out + r * NAME(PANEL) + NAME(LANES)) = high[r];
  }
}

static void NAME(times_panel)(int64_t rows, int64_t k, const T *a, int64_t row, int64_t term,
                              const T *panel, T *out) {
  switch (rows) {
    case 1: NAME(tile)(1, k, a, row, term, panel, out); return;
    case 2: NAME(tile)(2, k, a, row, term, panel, out); return;
    case 3: NAME(tile)(3, k, a, row, term, panel, out); return;
    case 4: NAME(tile)(4, k, a, row, term, panel, out); return;
    case 5: NAME(tile)(5, k, a, row, term, panel, out); return;
    case 6: NAME(tile)(6, k, a, row, term, panel, out); return;
    case 7: NAME(tile)(7 < LT_TILE_ROWS ? 7 : LT_TILE_ROWS, k, a, row, term, panel, out); return;
    default: NAME(tile)(LT_TILE_ROWS, k, a, row, term, panel, out); return;
  }
}
