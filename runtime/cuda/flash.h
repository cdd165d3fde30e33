/* runtime/cuda/flash.h: attention of f16 and bf16 by tensor cores, as FlashAttention-2 does it.

   Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning", 2023.
   Scores are never in memory: a warp has some rows, of queries or of keys, in registers and meets
   the others, which its block brings to shared memory tile by tile. Backward computes the scores
   again, once for each of its two kernels: nothing is added up between blocks, so runs repeat bit
   for bit. Products are of 16 bits, summed in f32, exponents of 2.

   Letters are those of attention.h; WIDTH is D or E, the larger, up to a multiple of 32. What is
   beyond D or E is 0 in registers and shared memory. */
#ifndef LT_CUDA_FLASH_H
#define LT_CUDA_FLASH_H

#include "cuda/attention.h"
#include "cuda/mma.h"
#include "cuda/tile.h"

#include <math.h>

enum {
  LT_FLASH_MOST = 128,  /* D, E */
  LT_FLASH_GROUP = 8,   /* numbers in 16 bytes */
  LT_FLASH_WARPS = 4,
  LT_FLASH_THREADS = 32 * LT_FLASH_WARPS
};

/* One call. Scores are sums of products times `scale`, and a mask's numbers; where no mask has such
   they stay sums of products. Times `factor` they are exponents of 2. */
typedef struct lt_cuda_flash {
  lt_cuda_tile all; /* of it what all tiles share */
  lt_cuda_heads q, k, v, dq, dk, dv;
  int t, s, d, e, blocks; /* blocks: of rows, of a head */
  bool adds;              /* the mask has numbers */
  float scale, factor;
  int64_t rows; /* B H T */
  float *stats; /* [3, B, H, T]: the largest score, log2 of the sum of exponents, g times out */
} lt_cuda_flash;

/* flash.cu; *taken false: it is not for these kernels, and nothing was done. */
bool lt_cuda_flash_forward(lt_ctx *c, const lt_call *call, const lt_cuda_attention *j, bool *taken);
bool lt_cuda_flash_backward(lt_ctx *c, const lt_call *call, const lt_cuda_attention *j,
                            bool *taken);

/* flash_forward.cu, flash_keys.cu (dk, dv), flash_queries.cu (dq). */
bool lt_cuda_flash_attend(lt_ctx *c, lt_cuda_flash *j);
bool lt_cuda_flash_keys(lt_ctx *c, lt_cuda_flash *j);
bool lt_cuda_flash_queries(lt_ctx *c, lt_cuda_flash *j);

typedef void (*lt_flash_kernel)(lt_cuda_flash);

static inline int lt_flash_width(const lt_cuda_flash *j) {
  return ((j->d > j->e ? j->d : j->e) + 31) / 32 * 32;
}

/* Rows of one head in memory. */
typedef struct lt_flash_rows {
  uint16_t *data;
  int64_t row;
  int rows, cols;
} lt_flash_rows;

static __device__ inline lt_flash_rows lt_flash_head(const lt_cuda_heads &h, int64_t batch,
                                                     int64_t head, int rows, int cols) {
  return {static_cast<uint16_t *>(h.data) + batch * h.batch + head * h.head, h.row, rows, cols};
}

/* Where a lane's fragments are (mma.h). */
static __device__ inline int lt_flash_row() { return static_cast<int>(threadIdx.x) % 32 / 4; }
static __device__ inline int lt_flash_pair() { return static_cast<int>(threadIdx.x) % 4 * 2; }
static __device__ inline int lt_flash_warp() { return static_cast<int>(threadIdx.x) / 32; }

/* Fragments A of 16 rows from `at` on, straight from memory, as stack m of M. */
template <int WIDTH, int M>
static __device__ inline void lt_flash_own(const lt_flash_rows &h, int at, int m,
                                           uint32_t (&a)[WIDTH / 16][M][4]) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int row = at + half * 8 + lt_flash_row();
    const uint16_t *from = h.data + (row < h.rows ? row : 0) * h.row;
#pragma unroll
    for (int k = 0; k < WIDTH / 8; k++) {
      int col = k * 8 + lt_flash_pair();
      bool there = row < h.rows && col < h.cols;
      a[k / 2][m][k % 2 * 2 + half] = there ? *reinterpret_cast<const uint32_t *>(from + col) : 0;
    }
  }
}

/* The place in a tile [.., WIDTH] of the eight numbers from column 8 (even + odd) on: groups of a
   row are exchanged, so that 8 rows of a group lie in all banks of shared memory. `even` is a
   constant, `odd` 0 or 1: few places differ by more than a constant. */
template <int WIDTH> static __device__ inline int lt_flash_place(int row, int even, int odd) {
  const int FEW = WIDTH % 64 == 0 ? 8 : 4;
  int flip = FEW == 8 ? row & 7 : row >> 1 & 3;
  return row * WIDTH + even / FEW * FEW * LT_FLASH_GROUP +
         (even % FEW ^ (flip ^ odd)) * LT_FLASH_GROUP;
}

/* Begins to bring rows from `at` on to a tile [N, WIDTH]. */
template <int N, int WIDTH>
static __device__ inline void lt_flash_bring(uint16_t *tile, const lt_flash_rows &h, int at) {
  const int groups = WIDTH / LT_FLASH_GROUP;
#pragma unroll
  for (int i = 0; i < N * groups; i += LT_FLASH_THREADS) {
    int k = i + static_cast<int>(threadIdx.x), row = k / groups, group = k % groups;
    if (N * groups % LT_FLASH_THREADS != 0 && row >= N) break;
    bool there = at + row < h.rows && group * LT_FLASH_GROUP < h.cols;
    const uint16_t *from = there ? h.data + (at + row) * h.row + group * LT_FLASH_GROUP : h.data;
    lt_copy_16(tile + lt_flash_place<WIDTH>(row, group / 2 * 2, group % 2), from, there);
  }
}

/* Columns 16 k to 16 k + 15 of the next: c += a tile', for M stacks of 16 rows of a; the tile's N
   rows are c's columns. */
template <int DTYPE, int WIDTH, int M, int N>
static __device__ inline void lt_flash_scores_step(float (&c)[M][N / 8][4],
                                                   const uint32_t (&a)[M][4], int k,
                                                   const uint16_t *tile) {
  int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < N / 16; n++) {
    uint32_t b[4];
    int row = n * 16 + lane / 16 * 8 + lane % 8;
    lt_load_matrices(b, tile + lt_flash_place<WIDTH>(row, k * 2, lane / 8 % 2));
#pragma unroll
    for (int m = 0; m < M; m++) {
      lt_mma<DTYPE>(c[m][2 * n], a[m], b);
      lt_mma<DTYPE>(c[m][2 * n + 1], a[m], b + 2);
    }
  }
}

/* The same of all columns. */
template <int DTYPE, int WIDTH, int M, int N>
static __device__ inline void lt_flash_scores(float (&c)[M][N / 8][4],
                                              const uint32_t (&a)[WIDTH / 16][M][4],
                                              const uint16_t *tile) {
#pragma unroll
  for (int k = 0; k < WIDTH / 16; k++) lt_flash_scores_step<DTYPE, WIDTH, M, N>(c, a[k], k, tile);
}

/* c += p tile, where p's columns, rounded, meet the tile's N rows. */
template <int DTYPE, int WIDTH, int M, int N>
static __device__ inline void lt_flash_sums(float (&c)[M][WIDTH / 8][4],
                                            const float (&p)[M][N / 8][4], const uint16_t *tile) {
  int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < N / 16; k++) {
    uint32_t a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float *two = p[m][2 * k + i / 2] + i % 2 * 2;
        a[m][i] = lt_pack<DTYPE>(two[0], two[1]);
      }
#pragma unroll
    for (int n = 0; n < WIDTH / 16; n++) {
      uint32_t b[4];
      lt_load_transposed(b, tile + lt_flash_place<WIDTH>(k * 16 + lane % 16, n * 2, lane / 16));
#pragma unroll
      for (int m = 0; m < M; m++) {
        lt_mma<DTYPE>(c[m][2 * n], a[m], b);
        lt_mma<DTYPE>(c[m][2 * n + 1], a[m], b + 2);
      }
    }
  }
}

/* Writes 16 rows from `at` on, times a number for each of the lane's two rows. */
template <int DTYPE, int WIDTH>
static __device__ inline void lt_flash_write(const lt_flash_rows &h, int at,
                                             const float (&c)[WIDTH / 8][4], float first,
                                             float second) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int row = at + half * 8 + lt_flash_row();
    float times = half == 0 ? first : second;
    if (row >= h.rows) continue;
#pragma unroll
    for (int n = 0; n < WIDTH / 8; n++) {
      int col = n * 8 + lt_flash_pair();
      if (col < h.cols)
        *reinterpret_cast<uint32_t *>(h.data + row * h.row + col) =
            lt_pack<DTYPE>(c[n][half * 2] * times, c[n][half * 2 + 1] * times);
    }
  }
}

/* Scores of 16 rows and N columns, queries and keys or, with KEYS_DOWN, keys and queries: those
   that take no part become -infinity; a mask's numbers are added. `number`: of [B, H]. */
template <int N, bool KEYS_DOWN>
static __device__ inline void lt_flash_hide(const lt_cuda_flash &j, int64_t number, int row,
                                            int col, float (&c)[N / 8][4]) {
  int t0 = KEYS_DOWN ? col : row, s0 = KEYS_DOWN ? row : col, keys = KEYS_DOWN ? 16 : N;
  bool edge = s0 + keys > j.s || (j.all.causal && s0 + keys - 1 > t0);
  const int64_t *step = j.all.mask_stride;
  if (!edge && j.all.mask == nullptr) return;
  int64_t at = number / j.all.heads * step[0] + number % j.all.heads * step[1];
#pragma unroll
  for (int n = 0; n < N / 8; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int down = row + i / 2 * 8 + lt_flash_row(), along = col + n * 8 + lt_flash_pair() + i % 2;
      int t = KEYS_DOWN ? along : down, s = KEYS_DOWN ? down : along;
      bool seen = s < j.s && (!j.all.causal || s <= t);
      if (j.adds) c[n][i] *= j.scale;
      if (j.all.mask != nullptr && seen && t < j.t) {
        float m = lt_attention_load<float>(j.all.mask, j.all.mask_dtype,
                                           at + t * step[2] + s * step[3]);
        if (j.adds)
          c[n][i] += m;
        else
          seen = m != 0;
      }
      if (!seen) c[n][i] = -INFINITY;
    }
}

/* Which of four neighbouring keys of a query dropout keeps, as bits: one word of random numbers
   each. S is a multiple of 4. */
static __device__ inline unsigned lt_flash_draw(const lt_cuda_flash &j, int64_t number, int t,
                                                int s) {
  if (j.all.all_heads != j.all.heads) /* in 32 bits: a division in 64 takes many registers */
    number += static_cast<uint32_t>(number) / static_cast<uint32_t>(j.all.heads) *
                  static_cast<uint32_t>(j.all.all_heads - j.all.heads) +
              static_cast<uint32_t>(j.all.first_head);
  int64_t first = (number * j.t + t) * j.s + s;
  lt_random4 w = lt_philox(j.all.rng_key, static_cast<uint64_t>(first / 4));
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) bits |= (w.word[k] >= j.all.threshold ? 1u : 0u) << k;
  return j.all.keep == 0 ? 0 : bits;
}

/* Which of a lane's four numbers of 16 rows and 8 columns are kept. Each lane draws once, and
   neighbours share what they drew. */
template <bool KEYS_DOWN>
static __device__ inline unsigned lt_flash_kept(const lt_cuda_flash &j, int64_t number, int row,
                                                int col) {
  const unsigned all = 0xffffffffu;
  int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, of_four = lane % 4;
  unsigned kept = 0;
  if (!KEYS_DOWN) { /* even lanes draw for the upper row, odd ones for the lower: 4 keys each */
    unsigned mine =
        lt_flash_draw(j, number, row + of_four % 2 * 8 + g, col + of_four / 2 * 4);
    unsigned other = __shfl_xor_sync(all, mine, 1);
    unsigned upper = of_four % 2 == 0 ? mine : other, lower = of_four % 2 == 0 ? other : mine;
    return (upper >> of_four % 2 * 2 & 3) | (lower >> of_four % 2 * 2 & 3) << 2;
  }
  /* Lanes of the same pair of queries draw for one of them, and 4 of the 16 keys. */
  unsigned mine = lt_flash_draw(j, number, col + lt_flash_pair() + g % 2, row + g / 2 * 4);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int from = (g / 4 + i / 2 * 2) * 2 + i % 2;
    kept |= (__shfl_sync(all, mine, from * 4 + of_four) >> g % 4 & 1) << i;
  }
  return kept;
}

/* The grid of a kernel whose blocks have ROWS queries each and walk KEYS keys at a time. */
template <class SHAPE, int WIDTH>
static bool lt_flash_issue(lt_ctx *c, lt_cuda_flash *j, lt_flash_kernel kernel) {
  const int ROWS = SHAPE::ROWS, N = SHAPE::KEYS;
  j->blocks = (j->t + ROWS - 1) / ROWS;
  int64_t heads = j->rows / j->t;
  return lt_cuda_grid(c, kernel, static_cast<unsigned>(heads * j->blocks), LT_FLASH_THREADS,
                      4 * N * WIDTH * sizeof(uint16_t), *j);
}

#endif
