/* runtime/cpu/product_thin.c: products of bf16 and f16 with few terms, as gradients of weights over
   a small batch, for machines without such products.

   The result is by far the largest of the three, so that what counts is how it is written: its
   tiles are added up in registers, rounded and stored once, in half of the bytes that f32 takes.
   Both operands are brought into f32 and into the order of the tiles before. Each sum goes over the
   terms in order, so that its bits depend on the row and the column alone. */
#include <string.h>

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

/* MOST: terms; FEWEST: rows and columns; ROWS, BLOCK: rows of a chunk, and floats of the panels
   that it goes over, which stay in the cache of a core; STRIP: panels. */
enum {
  MOST = 128,
  FEWEST = 64,
  ROWS = 12 * LT_TILE_ROWS,
  BLOCK = 1 << 14,
  STRIP = 8,
  TILE = LT_TILE_ROWS * PANEL_f32
};

typedef struct job {
  lt_dtype dtype; /* of all three */
  int64_t m, n, k;
  const uint16_t *a, *b;
  int64_t a_row, a_col, b_row, b_col;
  float *tiles, *panels; /* a and b as cpu/packed_type.h takes them */
  const float *bias;     /* or NULL */
  uint16_t *out;
  int64_t columns, blocks; /* of a chunk; chunks beside each other */
} job;

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

bool LT_CPU(lt_is_thin)(const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                        const lt_tensor *out) {
  bool halves = lt_item_size(a) == 2 && lt_item_size(b) == 2 && lt_item_size(out) == 2;
  if (p->dtype != LT_F32 || !halves || b->ndim > 2 || !out->contiguous) return false;
  int64_t k = a->size[a->ndim - 1], m = a->numel / k, n = b->numel / k;
  return out->storage != a->storage && out->storage != b->storage && k <= MOST &&
         least(m, n) >= 2 * k && least(m, n) >= FEWEST;
}

static inline void widen(lt_dtype dtype, int64_t n, const uint16_t *from, int64_t step, float *to) {
  if (dtype == LT_BF16)
    for (int64_t q = 0; q < n; q++) to[q] = lt_bf16_to_f32(from[q * step]);
  else
    for (int64_t q = 0; q < n; q++) to[q] = lt_f16_to_f32(from[q * step]);
}

/* `n` rows or columns of `k` terms, side by side in groups of `width`, a constant; zeros behind the
   last. */
static inline void pack(lt_dtype dtype, int64_t k, int64_t n, const int width, const uint16_t *from,
                        int64_t along, int64_t term, float *to) {
  for (int64_t p = 0; p < k; p++, from += term, to += width) {
    if (along == 1 && n == width)
      widen(dtype, width, from, 1, to);
    else
      widen(dtype, n, from, along, to);
    for (int64_t q = n; q < width; q++) to[q] = 0;
  }
}

static void pack_tile(void *ud, int64_t tile) {
  const job *j = ud;
  int64_t i = tile * LT_TILE_ROWS;
  pack(j->dtype, j->k, least(j->m - i, LT_TILE_ROWS), LT_TILE_ROWS, j->a + i * j->a_row, j->a_row,
       j->a_col, j->tiles + i * j->k);
}

static void pack_panel(void *ud, int64_t panel) {
  const job *j = ud;
  int64_t i = panel * PANEL_f32;
  pack(j->dtype, j->k, least(j->n - i, PANEL_f32), PANEL_f32, j->b + i * j->b_col, j->b_col,
       j->b_row, j->panels + i * j->k);
}

/* NaN with lower bits aside, of which sums of products of bf16 have none: what is NaN among them
   came from an operand or from the processor. Half the last place is added, less if that one is
   even; the carry is the upper bit of a mean, for which there is an instruction. */
static inline void round_bf16(const float *restrict from, uint16_t *restrict to) {
  typedef uint16_t word __attribute__((may_alias));
  const word *words = (const word *)from;
  for (int q = 0; q < TILE; q++) {
    uint16_t low = words[2 * q], high = words[2 * q + 1];
    uint16_t half = (uint16_t)(0x7ffeu | (high & 1u)), mean = (uint16_t)((low + half + 1u) >> 1);
    to[q] = (uint16_t)(high + (mean >> 15));
  }
}

static void round_f16(const float *restrict from, uint16_t *restrict to) {
  for (int q = 0; q < TILE; q++) to[q] = lt_f32_to_f16(from[q]);
}

static void add_bias(int64_t n, const float *bias, float *sums) {
  for (int64_t r = 0; r < LT_TILE_ROWS; r++)
    for (int64_t q = 0; q < n; q++) sums[r * PANEL_f32 + q] += bias[q];
}

/* Some rows times one panel after the other. The lines that results go to are asked for before. */
static void strip(const job *j, int64_t i, int64_t left, int64_t right) {
  _Alignas(64) float sums[TILE];
  _Alignas(64) uint16_t rounded[STRIP * TILE];
  int64_t rows = least(j->m - i, LT_TILE_ROWS);
  uint16_t *out = j->out + i * j->n, *to = rounded;
  for (int64_t col = left; col < right; col += PANEL_f32, to += TILE) {
    for (int64_t r = 0; r < LT_TILE_ROWS; r++) __builtin_prefetch(out + r * j->n + col, 1);
    times_panel_f32(LT_TILE_ROWS, j->k, j->tiles + i * j->k, 1, LT_TILE_ROWS,
                    j->panels + col * j->k, sums);
    if (j->bias != NULL) add_bias(least(right - col, PANEL_f32), j->bias + col, sums);
    if (j->dtype == LT_BF16)
      round_bf16(sums, to);
    else
      round_f16(sums, to);
  }
  for (int64_t r = 0; r < rows; r++, out += j->n) {
    const uint16_t *from = rounded + r * PANEL_f32;
    int64_t col = left;
    for (; col + PANEL_f32 <= right; col += PANEL_f32, from += TILE)
      memcpy(out + col, from, PANEL_f32 * sizeof *out);
    if (col < right) memcpy(out + col, from, (size_t)(right - col) * sizeof *out);
  }
}

static void block(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk / j->blocks * ROWS, to = least(from + ROWS, j->m);
  int64_t left = chunk % j->blocks * j->columns, right = least(left + j->columns, j->n);
  for (int64_t i = from; i < to; i += LT_TILE_ROWS)
    for (int64_t col = left; col < right; col += STRIP * PANEL_f32)
      strip(j, i, col, least(col + STRIP * PANEL_f32, right));
}

bool LT_CPU(lt_product_thin)(lt_ctx *c, const lt_product *p, const lt_tensor *a,
                             const lt_tensor *b, const lt_tensor *out) {
  int64_t m = a->size[0], k = a->size[1], n = b->size[1];
  int64_t tiles = (m + LT_TILE_ROWS - 1) / LT_TILE_ROWS, panels = (n + PANEL_f32 - 1) / PANEL_f32;
  job j = {.dtype = (lt_dtype)out->dtype, .m = m, .n = n, .k = k,
           .a = lt_data(a), .b = lt_data(b), .out = lt_data(out), .bias = p->bias,
           .a_row = a->stride[0], .a_col = a->stride[1],
           .b_row = b->stride[0], .b_col = b->stride[1],
           .tiles = lt_cpu_scratch(c, LT_F32, tiles * LT_TILE_ROWS * k),
           .panels = lt_cpu_scratch(c, LT_F32, panels * PANEL_f32 * k)};
  if (j.tiles == NULL || j.panels == NULL) return false;
  j.columns = least(panels, BLOCK / PANEL_f32 / k) * PANEL_f32;
  j.blocks = (n + j.columns - 1) / j.columns;
  lt_parallel_work(c, m * k, tiles, pack_tile, &j);
  lt_parallel_work(c, n * k, panels, pack_panel, &j);
  lt_parallel_work(c, m * n, (m + ROWS - 1) / ROWS * j.blocks, block, &j);
  return true;
}
