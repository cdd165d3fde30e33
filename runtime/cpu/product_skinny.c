/* runtime/cpu/product_skinny.c: skinny products of bf16 and f16, with few rows or few terms, as
   layers and gradients of weights have them over a small batch; for machines without such products.

   Multiplying costs little there beside bringing the largest of the three from memory or into it.
   So b is widened panel by panel (cpu/packed_type.h), in the cache, and the result is rounded tile
   by tile and stored once. Of a panel's columns the even ones come first: a word of memory is an
   even and an odd one, so that widening and rounding need no other order. Each sum goes over the
   terms in order, in parts of a length that depends on the shape, so that its bits depend on the
   row and the column alone.

   Packing and a tile in registers are those of K. Goto and R. van de Geijn, Anatomy of
   High-Performance Matrix Multiplication, 2008. */
#include <string.h>

#include "base/round.h"
#include "base/threads.h"
#include "cpu/operands.h"
#include "cpu/packed.h"
#include "cpu/scratch.h"
#include "ops/math/half.h"

#define T float
#define NAME(f) f##_f32
#include "cpu/packed_type.h"
#undef T
#undef NAME

/* MOST: rows or terms. With few terms: FEWEST rows and columns; ROWS, BLOCK: rows of a chunk, and
   floats of the panels that it goes over, for SOME tiles at once. With few rows: FLOATS of the
   panels that are multiplied at once, of COLUMNS columns where those lie side by side. */
enum {
  MOST = 128,
  FEWEST = 64,
  ROWS = 12 * LT_TILE_ROWS,
  BLOCK = 1 << 14,
  SOME = 2 * LT_TILE_ROWS,
  FLOATS = 1 << 12,
  COLUMNS = 64,
  TILE = LT_TILE_ROWS * PANEL_f32
};

typedef uint32_t pairs __attribute__((vector_size(LT_VECTOR)));
typedef uint32_t stored __attribute__((vector_size(LT_VECTOR), aligned(2), may_alias));

typedef struct job {
  lt_dtype dtype; /* of all three */
  int64_t m, n, k;
  const uint16_t *a, *b, *b_end; /* b_end: behind the last of b */
  int64_t a_row, a_col, b_row, b_col;
  float *tiles, *panels; /* a and b as cpu/packed_type.h takes them */
  float *bias;           /* in the order of the panels, or NULL */
  uint16_t *out;
  int64_t columns;       /* of a chunk */
  int64_t blocks;        /* few terms: chunks beside each other */
  int64_t terms;         /* few rows: of a panel */
} job;

bool LT_CPU(lt_is_thin)(const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                        const lt_tensor *out) {
  bool halves = lt_item_size(a) == 2 && lt_item_size(b) == 2 && lt_item_size(out) == 2;
  if (p->dtype != LT_F32 || !halves || b->ndim > 2 || !out->contiguous) return false;
  int64_t k = a->size[a->ndim - 1], m = a->numel / k, n = b->numel / k;
  /* Few terms: the result is what counts, so both its sides must be long. Few rows: b is. */
  bool few_terms = k <= MOST && lt_least(m, n) >= 2 * k && lt_least(m, n) >= FEWEST;
  bool few_rows = m <= MOST && m <= lt_least(k, n) && lt_least(k, n) >= LT_TILE_ROWS;
  return out->storage != a->storage && out->storage != b->storage && (few_terms || few_rows);
}

static inline float widened(lt_dtype dtype, uint16_t x) {
  return dtype == LT_BF16 ? lt_bf16_to_f32(x) : lt_f16_to_f32(x);
}

/* Where in a panel's row a column lies. */
static inline int64_t place(int64_t column) { return column / 2 + column % 2 * LANES_f32; }

/* Rows of `a` in groups of a tile's, side by side for each term; zeros behind the last. */
static void pack_tile(void *ud, int64_t tile) {
  const job *j = ud;
  int64_t i = tile * LT_TILE_ROWS, n = lt_least(j->m - i, LT_TILE_ROWS);
  const uint16_t *from = j->a + i * j->a_row;
  float *to = j->tiles + i * j->k;
  for (int64_t p = 0; p < j->k; p++, from += j->a_col, to += LT_TILE_ROWS) {
    if (j->dtype == LT_BF16 && j->a_row == 1 && n == LT_TILE_ROWS) {
      for (int q = 0; q < LT_TILE_ROWS; q++) to[q] = lt_bf16_to_f32(from[q]);
      continue;
    }
    for (int64_t q = 0; q < n; q++) to[q] = widened(j->dtype, from[q * j->a_row]);
    for (int64_t q = n; q < LT_TILE_ROWS; q++) to[q] = 0;
  }
}

/* One term of a panel whose columns lie side by side. A bf16 is the upper half of a float: shifting
   a word gives its even element, masking it the odd one. */
static inline void split(const uint16_t *from, float *to) {
  pairs v = *(const stored *)from;
  *(lanes_f32 *)to = (vector_f32)(v << 16);
  *(lanes_f32 *)(to + LANES_f32) = (vector_f32)(v & 0xffff0000u);
}

/* `k` terms of `n` columns as a panel. Behind the last column is anything, of which nothing comes
   into the result. */
static void pack_columns(const job *j, int64_t k, int64_t n, const uint16_t *from, float *to) {
  for (int64_t p = 0; p < k; p++, from += j->b_row, to += PANEL_f32) {
    if (j->dtype == LT_BF16 && j->b_col == 1 && j->b_end - from >= PANEL_f32) {
      split(from, to);
      continue;
    }
    for (int64_t q = 0; q < n; q++) to[place(q)] = widened(j->dtype, from[q * j->b_col]);
    for (int64_t q = n; q < PANEL_f32; q++) to[place(q)] = 0;
  }
}

/* Of the lanes of x and y, one after the other, those at `from`. */
static inline __attribute__((always_inline)) pairs choose(pairs x, pairs y, pairs from) {
#ifdef __clang__
  pairs out = x;
  for (int l = 0; l < LANES_f32; l++)
    out[l] = from[l] < LANES_f32 ? x[from[l]] : y[from[l] - LANES_f32];
  return out;
#else
  return __builtin_shuffle(x, y, from);
#endif
}

/* Transposes LANES x LANES pairs: blocks of 1, 2, 4, ... swap places. log2(LANES) steps of
   exchanges between registers (Eklundh's method, 1972), instead of LANES^2 loads of two bytes. */
static inline __attribute__((always_inline)) void transpose(pairs *v) {
  static const uint32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const pairs l = *(const stored *)lane;
#pragma GCC unroll 4
  for (uint32_t s = 1; s < LANES_f32; s *= 2) {
    pairs low = l + (l & s) / s * (LANES_f32 - s), high = low + s;
#pragma GCC unroll 16
    for (uint32_t i = 0; i < LANES_f32; i++)
      if ((i & s) == 0) {
        pairs x = v[i], y = v[i + s];
        v[i] = choose(x, y, low);
        v[i + s] = choose(x, y, high);
      }
  }
}

/* PANEL terms of every other column from `first` on, of `n`, the terms side by side, to half a
   panel. Beyond the last column it is taken again. In words of two bytes each, every row of v is
   PANEL terms of one column: after the transpose each register is one pair of terms of all
   columns. */
static void turn(const uint16_t *from, int64_t along, int64_t n, int64_t first, float *to) {
  pairs v[LANES_f32];
#pragma GCC unroll 16
  for (int i = 0; i < LANES_f32; i++)
    v[i] = *(const stored *)(from + lt_least(first + 2 * i, n - 1) * along);
  transpose(v);
#pragma GCC unroll 16
  for (int i = 0; i < LANES_f32; i++) {
    *(lanes_f32 *)(to + 2 * i * PANEL_f32) = (vector_f32)(v[i] << 16);
    *(lanes_f32 *)(to + (2 * i + 1) * PANEL_f32) = (vector_f32)(v[i] & 0xffff0000u);
  }
}

/* The same as pack_columns where the terms lie side by side; the last PANEL terms may overlap those
   before. */
static void pack_turned(const job *j, int64_t k, int64_t n, const uint16_t *from, float *to) {
  for (int64_t p = 0; p < k; p += PANEL_f32) {
    int64_t at = lt_least(p, k - PANEL_f32);
    turn(from + at, j->b_col, n, 0, to + at * PANEL_f32);
    turn(from + at, j->b_col, n, 1, to + at * PANEL_f32 + LANES_f32);
  }
}

static void pack_panel(void *ud, int64_t panel) {
  const job *j = ud;
  int64_t i = panel * PANEL_f32;
  pack_columns(j, j->k, lt_least(j->n - i, PANEL_f32), j->b + i * j->b_col, j->panels + i * j->k);
}

/* NaN with lower bits aside, of which sums of products of bf16 have none: what is NaN among them
   came from an operand or from the processor. Half the last place is added, less if that one is
   even. Round to nearest, ties to even: IEEE 754's rule. */
static inline pairs round_up(pairs x) { return x - ((~(x >> 16) & 1u) | 0xffff8000u); }

static inline pairs round_bf16(const float *from) {
  pairs even = *(const stored *)from, odd = *(const stored *)(from + LANES_f32);
  return round_up(even) >> 16 | (round_up(odd) & 0xffff0000u);
}

static void add_bias(const float *bias, float *sums) {
  for (int64_t r = 0; r < LT_TILE_ROWS; r++)
    for (int64_t q = 0; q < PANEL_f32; q++) sums[r * PANEL_f32 + q] += bias[q];
}

/* The sums of a tile to the result, from row i and column `col` on. */
static inline void finish(const job *j, int64_t i, int64_t col, float *sums) {
  int64_t rows = lt_least(j->m - i, LT_TILE_ROWS), n = lt_least(j->n - col, PANEL_f32);
  uint16_t *out = j->out + i * j->n + col, rounded[PANEL_f32];
  if (j->bias != NULL) add_bias(j->bias + col, sums);
  if (j->dtype == LT_BF16 && rows == LT_TILE_ROWS && n == PANEL_f32) {
#pragma GCC unroll 8
    for (int r = 0; r < LT_TILE_ROWS; r++)
      *(stored *)(out + r * j->n) = round_bf16(sums + r * PANEL_f32);
    return;
  }
  for (int64_t r = 0; r < rows; r++, out += j->n, sums += PANEL_f32) {
    if (j->dtype == LT_BF16)
      *(stored *)rounded = round_bf16(sums);
    else
      for (int64_t q = 0; q < PANEL_f32; q++) rounded[q] = lt_f32_to_f16(sums[place(q)]);
    memcpy(out, rounded, (size_t)n * sizeof *out);
  }
}

/* A whole tile, rounded in registers. */
static void whole_tile(const job *j, int64_t i, int64_t col) {
  float sums[TILE];
  uint16_t *out = j->out + i * j->n + col;
  tile_f32(LT_TILE_ROWS, j->k, j->tiles + i * j->k, 1, LT_TILE_ROWS, j->panels + col * j->k, sums);
#pragma GCC unroll 8
  for (int r = 0; r < LT_TILE_ROWS; r++)
    *(stored *)(out + r * j->n) = round_bf16(sums + r * PANEL_f32);
}

/* Few terms: rows times panels. */
static void block(void *ud, int64_t chunk) {
  const job *j = ud;
  _Alignas(64) float sums[TILE];
  int64_t from = chunk / j->blocks * ROWS, to = lt_least(from + ROWS, j->m);
  int64_t left = chunk % j->blocks * j->columns, right = lt_least(left + j->columns, j->n);
  for (; from < to; from += SOME)
    for (int64_t col = left; col < right; col += PANEL_f32)
      for (int64_t i = from; i < lt_least(from + SOME, to); i += LT_TILE_ROWS) {
        bool whole = j->m - i >= LT_TILE_ROWS && j->n - col >= PANEL_f32;
        if (whole && j->dtype == LT_BF16 && j->bias == NULL) {
          whole_tile(j, i, col);
          continue;
        }
        times_panel_f32(LT_TILE_ROWS, j->k, j->tiles + i * j->k, 1, LT_TILE_ROWS,
                        j->panels + col * j->k, sums);
        finish(j, i, col, sums);
      }
}

/* Some terms of a chunk's panels; those whose columns lie side by side are read row by row. */
static void pack_group(const job *j, int64_t k, int64_t n, const uint16_t *from, float *panels) {
  int64_t step = j->terms * PANEL_f32;
  bool turned = j->dtype == LT_BF16 && j->b_row == 1 && k >= PANEL_f32;
  if (j->dtype == LT_BF16 && j->b_col == 1)
    for (; k > 0 && j->b_end - from >= j->columns; k--, from += j->b_row, panels += PANEL_f32)
      for (int64_t q = 0; q < j->columns; q += PANEL_f32) split(from + q, panels + q * j->terms);
  for (int64_t left = 0; left < n; left += PANEL_f32, panels += step)
    (turned ? pack_turned : pack_columns)(j, k, lt_least(n - left, PANEL_f32),
                                          from + left * j->b_col, panels);
}

/* Few rows: the panels of a chunk, some terms at a time, times all rows. */
static void group(void *ud, int64_t chunk) {
  const job *j = ud;
  _Alignas(64) float panels[FLOATS], sums[(MOST + LT_TILE_ROWS) * COLUMNS], part[TILE];
  int64_t left = chunk * j->columns, right = lt_least(left + j->columns, j->n);
  for (int64_t p = 0; p < j->k; p += j->terms) {
    int64_t k = lt_least(j->k - p, j->terms);
    const float *panel = panels;
    float *to = sums;
    pack_group(j, k, right - left, j->b + left * j->b_col + p * j->b_row, panels);
    for (int64_t col = left; col < right; col += PANEL_f32, panel += j->terms * PANEL_f32)
      for (int64_t i = 0; i < j->m; i += LT_TILE_ROWS, to += TILE) {
        int64_t rows = lt_least(j->m - i, LT_TILE_ROWS);
        times_panel_f32(rows, k, j->tiles + i * j->k + p * LT_TILE_ROWS, 1, LT_TILE_ROWS, panel,
                        p == 0 ? to : part);
        for (int64_t q = 0; q < rows * PANEL_f32 && p > 0; q++) to[q] += part[q];
      }
  }
  float *sum = sums;
  for (int64_t col = left; col < right; col += PANEL_f32)
    for (int64_t i = 0; i < j->m; i += LT_TILE_ROWS, sum += TILE) finish(j, i, col, sum);
}

static bool lay_bias(lt_ctx *c, job *j, const float *bias) {
  int64_t padded = lt_round_up(j->n, PANEL_f32);
  j->bias = lt_cpu_scratch(c, LT_F32, padded);
  for (int64_t i = 0; j->bias != NULL && i < padded; i++)
    j->bias[i / PANEL_f32 * PANEL_f32 + place(i % PANEL_f32)] = i < j->n ? bias[i] : 0;
  return j->bias != NULL;
}

bool LT_CPU(lt_product_thin)(lt_ctx *c, const lt_product *p, const lt_tensor *a,
                             const lt_tensor *b, const lt_tensor *out) {
  int64_t m = a->size[0], k = a->size[1], n = b->size[1];
  int64_t tiles = (m + LT_TILE_ROWS - 1) / LT_TILE_ROWS, panels = (n + PANEL_f32 - 1) / PANEL_f32;
  job j = {.dtype = (lt_dtype)out->dtype, .m = m, .n = n, .k = k,
           .a = lt_data(a), .b = lt_data(b), .out = lt_data(out),
           .a_row = a->stride[0], .a_col = a->stride[1],
           .b_row = b->stride[0], .b_col = b->stride[1],
           .tiles = lt_cpu_scratch(c, LT_F32, tiles * LT_TILE_ROWS * k)};
  j.b_end = j.b + (k - 1) * j.b_row + (n - 1) * j.b_col + 1;
  if (j.tiles == NULL || (p->bias != NULL && !lay_bias(c, &j, p->bias))) return false;
  lt_parallel_work(c, m * k, tiles, pack_tile, &j);
  if (m <= MOST && m <= k) {
    j.columns = j.b_col == 1 ? COLUMNS : PANEL_f32;
    j.terms = FLOATS / j.columns;
    lt_parallel_work(c, n * k, (n + j.columns - 1) / j.columns, group, &j);
    return true;
  }
  j.panels = lt_cpu_scratch(c, LT_F32, panels * PANEL_f32 * k);
  if (j.panels == NULL) return false;
  j.columns = lt_least(panels, BLOCK / PANEL_f32 / k) * PANEL_f32;
  j.blocks = (n + j.columns - 1) / j.columns;
  lt_parallel_work(c, n * k, panels, pack_panel, &j);
  lt_parallel_work(c, m * n, (m + ROWS - 1) / ROWS * j.blocks, block, &j);
  return true;
}
