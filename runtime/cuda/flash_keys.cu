/* runtime/cuda/flash_keys.cu: gradients of keys and values by tensor cores (flash.h).

   A warp has 16 keys, in registers, a block 64, whose values are in shared memory: registers would
   not hold both. Queries and the gradients of their results come in two halves of the rest of it,
   one filled while the other is used: of all heads that share the keys, one after the other.
   Limited by products. */
#include "cuda/flash.h"

enum { ROWS = 16 * LT_FLASH_WARPS };
/* Queries of a tile: as many as registers hold the scores of. AT_ONCE: columns, in sixteens, whose
   values come from shared memory before their products. */
template <int WIDTH> struct shape {
  enum { QUERIES = WIDTH <= 96 ? 32 : 16 };
  enum { AT_ONCE = LT_TIGHT && WIDTH == 96 ? 2 : WIDTH / 16 };
};

/* Tile `number` of a block's walk: `per` tiles of queries for each of its heads. */
typedef struct walk {
  int64_t batch, head; /* the first of its heads */
  int start, per;
} walk;

/* The queries and gradients of a tile, copied asynchronously (cp.async) while the one before is
   used. */
template <int N, int WIDTH>
static __device__ inline void bring(const lt_cuda_flash &j, const walk &w, int tile,
                                    uint16_t *staged) {
  int64_t head = w.head + tile / w.per;
  int t = w.start + tile % w.per * N;
  lt_flash_bring<N, WIDTH>(staged, lt_flash_head(j.q, w.batch, head, j.t, j.d), t);
  lt_flash_bring<N, WIDTH>(staged + N * WIDTH, lt_flash_head(j.all.g, w.batch, head, j.t, j.e), t);
}

/* p: scores become what v's gradient takes; d: gradients of what dropout left of the probabilities
   become those of the scores. Probabilities are computed again from scores and the row's
   statistics: exp2((s - most) factor - log2 sum). */
template <int N>
static __device__ inline void gradients(const lt_cuda_flash &j, int64_t number, int s, int t0,
                                        float (&p)[N / 8][4], float (&d)[N / 8][4]) {
  float keep = static_cast<float>(j.all.keep);
#pragma unroll
  for (int n = 0; n < N / 8; n++) {
    unsigned kept = j.all.drops ? lt_flash_kept<true>(j, number, s, t0 + n * 8) : 15;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int t = t0 + n * 8 + lt_flash_pair() + i;
      const float *of = j.stats + number * j.t + t;
      bool there = t < j.t;
      float most = there ? of[0] : 0, log = there ? of[j.rows] : INFINITY;
      float delta = there ? of[2 * j.rows] : 0;
#pragma unroll
      for (int k = i; k < 4; k += 2) {
        float x = lt_exp2((p[n][k] - most) * j.factor - log);
        bool keeps = (kept >> k & 1) != 0;
        d[n][k] = x * ((keeps ? d[n][k] * keep : 0) - delta);
        p[n][k] = keeps ? x * keep : 0;
      }
    }
  }
}

/* c += this warp's values times rows of g. */
template <int DTYPE, int WIDTH, int N>
static __device__ inline void times_values(float (&c)[1][N / 8][4], const uint16_t *values,
                                           const uint16_t *g) {
  int row = lt_flash_warp() * 16 + static_cast<int>(threadIdx.x) % 16;
  int odd = static_cast<int>(threadIdx.x) % 32 / 16;
#pragma unroll shape<WIDTH>::AT_ONCE
  for (int k = 0; k < WIDTH / 16; k++) {
    uint32_t a[1][4];
    lt_load_matrices(a[0], values + lt_flash_place<WIDTH>(row, k * 2, odd));
    lt_flash_scores_step<DTYPE, WIDTH, 1, N>(c, a, k, g);
  }
}

/* A block has its keys for all heads that share them (grouped queries), so their gradients are
   summed in registers, in one order. */
template <int DTYPE, int WIDTH>
static __global__ void __launch_bounds__(LT_FLASH_THREADS, 2) keys(LT_CONSTANT lt_cuda_flash j) {
  const int N = shape<WIDTH>::QUERIES;
  LT_DYNAMIC(uint16_t, values);
  uint16_t *staged = values + ROWS * WIDTH;
  int64_t shared = blockIdx.x / j.blocks, heads = j.all.heads / j.all.group; /* of keys */
  int64_t batch = shared / heads, head = shared % heads;
  int first = static_cast<int>(blockIdx.x % j.blocks) * ROWS, own = first + lt_flash_warp() * 16;
  int start = j.all.causal ? first / N * N : 0;
  int per = start < j.t ? (j.t - start + N - 1) / N : 0;
  int tiles = per * static_cast<int>(j.all.group);
  walk w = {batch, head * j.all.group, start, per};
  lt_flash_rows k = lt_flash_head(j.k, batch, head, j.s, j.d);
  lt_flash_rows v = lt_flash_head(j.v, batch, head, j.s, j.e);
  uint32_t of_k[WIDTH / 16][1][4];
  float dk[1][WIDTH / 8][4] = {}, dv[1][WIDTH / 8][4] = {};
  if (tiles > 0) {
    lt_flash_bring<ROWS, WIDTH>(values, v, first);
    bring<N, WIDTH>(j, w, 0, staged);
  }
  lt_flash_own<WIDTH, 1>(k, own, 0, of_k);
  for (int i = 0; i < tiles; i++) {
    const uint16_t *q = staged + i % 2 * 2 * N * WIDTH, *g = q + N * WIDTH;
    lt_copies_wait();
    __syncthreads();
    if (i + 1 < tiles) bring<N, WIDTH>(j, w, i + 1, staged + (i + 1) % 2 * 2 * N * WIDTH);
    int64_t number = batch * j.all.heads + w.head + i / per;
    int t = start + i % per * N;
    if (j.all.causal && own > t + N - 1) continue; /* none of them sees this warp's keys */
    float p[1][N / 8][4] = {}, d[1][N / 8][4] = {};
    lt_flash_scores<DTYPE, WIDTH, 1, N>(p, of_k, q);
    lt_flash_hide<N, true>(j, number, own, t, p[0]);
    times_values<DTYPE, WIDTH, N>(d, values, g);
    gradients<N>(j, number, own, t, p[0], d[0]);
    lt_flash_sums<DTYPE, WIDTH, 1, N>(dv, p, g);
    lt_flash_sums<DTYPE, WIDTH, 1, N>(dk, d, q);
  }
  lt_flash_rows to_k = lt_flash_head(j.dk, batch, head, j.s, j.d);
  lt_flash_rows to_v = lt_flash_head(j.dv, batch, head, j.s, j.e);
  lt_flash_write<DTYPE, WIDTH>(to_k, own, dk[0], j.scale, j.scale);
  lt_flash_write<DTYPE, WIDTH>(to_v, own, dv[0], 1, 1);
}

template <int WIDTH>
static bool issue(lt_ctx *c, lt_cuda_flash *j, lt_flash_kernel kernel) {
  const int N = shape<WIDTH>::QUERIES;
  j->blocks = (j->s + ROWS - 1) / ROWS;
  int64_t heads = j->rows / j->t / j->all.group;
  return lt_cuda_grid(c, kernel, static_cast<unsigned>(heads * j->blocks), LT_FLASH_THREADS,
                      (ROWS + 4 * N) * WIDTH * sizeof(uint16_t), *j);
}

bool lt_cuda_flash_keys(lt_ctx *c, lt_cuda_flash *j) {
  bool f16 = j->q.dtype == LT_F16;
  switch (lt_flash_width(j)) {
  case 32: return issue<32>(c, j, f16 ? keys<LT_F16, 32> : keys<LT_BF16, 32>);
  case 64: return issue<64>(c, j, f16 ? keys<LT_F16, 64> : keys<LT_BF16, 64>);
  case 96: return issue<96>(c, j, f16 ? keys<LT_F16, 96> : keys<LT_BF16, 96>);
  default: return issue<128>(c, j, f16 ? keys<LT_F16, 128> : keys<LT_BF16, 128>);
  }
}
