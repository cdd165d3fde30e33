/* runtime/cuda/flash_queries.cu: gradients of queries by tensor cores (flash.h).

   A warp has 16 queries, a block 64; keys and values come as in flash_forward.cu. Limited by
   products.

   Two kernels for backward, this one and flash_keys.cu, in place of one with atomic additions as in
   FlashAttention-2: gradients of queries are sums over keys, those of keys and values are sums over
   queries. Scores are computed twice, and the results have the same bits in each run. */
#include "cuda/flash.h"

template <int WIDTH> struct shape {
  enum { ROWS = 16 * LT_FLASH_WARPS, KEYS = WIDTH <= 64 ? 64 : 32 };
};

/* What is known of this lane's two queries. */
typedef struct two_rows {
  float most[2], log[2], delta[2];
} two_rows;

static __device__ inline two_rows rows_of(const lt_cuda_flash &j, int64_t number, int at) {
  two_rows r;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int t = at + half * 8 + lt_flash_row();
    const float *of = j.stats + number * j.t + t;
    bool there = t < j.t;
    r.most[half] = there ? of[0] : 0;
    r.log[half] = there ? of[j.rows] : INFINITY;
    r.delta[half] = there ? of[2 * j.rows] : 0;
  }
  return r;
}

/* d: gradients of what dropout left of the probabilities become those of the scores. ds = p (dp -
   delta), where p = exp(score - max) / sum comes from the saved statistics, its division being a
   subtraction of the logarithm in the exponent; delta is g . out of the row. */
template <int N>
static __device__ inline void gradients(const lt_cuda_flash &j, int64_t number, int t, int s,
                                        const two_rows &r, const float (&scores)[N / 8][4],
                                        float (&d)[N / 8][4]) {
  float keep = static_cast<float>(j.all.keep);
#pragma unroll
  for (int n = 0; n < N / 8; n++) {
    unsigned kept = j.all.drops ? lt_flash_kept<false>(j, number, t, s + n * 8) : 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float x = lt_exp2((scores[n][i] - r.most[i / 2]) * j.factor - r.log[i / 2]);
      d[n][i] = x * (((kept >> i & 1) != 0 ? d[n][i] * keep : 0) - r.delta[i / 2]);
    }
  }
}

/* Blocks of late queries, which see most keys, come first: with a causal mask the short ones fill
   the end of the grid. */
template <int DTYPE, int WIDTH>
static __global__ void __launch_bounds__(LT_FLASH_THREADS, 2) queries(LT_CONSTANT lt_cuda_flash j) {
  const int N = shape<WIDTH>::KEYS, ROWS = shape<WIDTH>::ROWS;
  LT_DYNAMIC(uint16_t, staged);
  int64_t number = blockIdx.x / j.blocks, batch = number / j.all.heads;
  int64_t head = number % j.all.heads;
  int block = static_cast<int>(blockIdx.x % j.blocks);
  int first = (j.blocks - 1 - block) * ROWS, own = first + lt_flash_warp() * 16;
  lt_flash_rows q = lt_flash_head(j.q, batch, head, j.t, j.d);
  lt_flash_rows g = lt_flash_head(j.all.g, batch, head, j.t, j.e);
  lt_flash_rows k = lt_flash_head(j.k, batch, head / j.all.group, j.s, j.d);
  lt_flash_rows v = lt_flash_head(j.v, batch, head / j.all.group, j.s, j.e);
  int end = j.all.causal && first + ROWS < j.s ? first + ROWS : j.s;
  uint32_t of_q[WIDTH / 16][1][4], of_g[WIDTH / 16][1][4];
  float dq[1][WIDTH / 8][4] = {};
  lt_flash_bring<N, WIDTH>(staged, k, 0);
  lt_flash_bring<N, WIDTH>(staged + N * WIDTH, v, 0);
  lt_flash_own<WIDTH, 1>(q, own, 0, of_q);
  lt_flash_own<WIDTH, 1>(g, own, 0, of_g);
  two_rows r = rows_of(j, number, own);
  for (int s = 0, side = 0; s < end; s += N, side ^= 1) {
    const uint16_t *keys = staged + side * 2 * N * WIDTH, *values = keys + N * WIDTH;
    uint16_t *other = staged + (side ^ 1) * 2 * N * WIDTH;
    lt_copies_wait();
    __syncthreads();
    if (s + N < end) {
      lt_flash_bring<N, WIDTH>(other, k, s + N);
      lt_flash_bring<N, WIDTH>(other + N * WIDTH, v, s + N);
    }
    if (j.all.causal && s > own + 15) continue; /* this warp sees none of them */
    float c[1][N / 8][4] = {}, d[1][N / 8][4] = {};
    lt_flash_scores<DTYPE, WIDTH, 1, N>(c, of_q, keys);
    lt_flash_hide<N, false>(j, number, own, s, c[0]);
    lt_flash_scores<DTYPE, WIDTH, 1, N>(d, of_g, values);
    gradients<N>(j, number, own, s, r, c[0], d[0]);
    lt_flash_sums<DTYPE, WIDTH, 1, N>(dq, d, keys);
  }
  lt_flash_rows to = lt_flash_head(j.dq, batch, head, j.t, j.d);
  lt_flash_write<DTYPE, WIDTH>(to, own, dq[0], j.scale, j.scale);
}

template <int WIDTH>
static bool issue(lt_ctx *c, lt_cuda_flash *j, lt_flash_kernel kernel) {
  return lt_flash_issue<shape<WIDTH>, WIDTH>(c, j, kernel);
}

bool lt_cuda_flash_queries(lt_ctx *c, lt_cuda_flash *j) {
  bool f16 = j->q.dtype == LT_F16;
  switch (lt_flash_width(j)) {
  case 32: return issue<32>(c, j, f16 ? queries<LT_F16, 32> : queries<LT_BF16, 32>);
  case 64: return issue<64>(c, j, f16 ? queries<LT_F16, 64> : queries<LT_BF16, 64>);
  case 96: return issue<96>(c, j, f16 ? queries<LT_F16, 96> : queries<LT_BF16, 96>);
  default: return issue<128>(c, j, f16 ? queries<LT_F16, 128> : queries<LT_BF16, 128>);
  }
}
