/* runtime/cuda/flash_forward.cu: attention of f16 and bf16 by tensor cores (flash.h).

   A warp has 16 or 32 queries, a block 64 or 128; keys and values come in two halves of shared
   memory, one filled while the other is used. Limited by products.

   FlashAttention (T. Dao and others, 2022; the order of the loops is that of T. Dao,
   FlashAttention-2, 2023): a block keeps its queries and their sums in registers and walks over
   keys and values, so that scores never reach memory. What remains is T S (D + E) multiplications
   against (T + S) (D + E) elements read.

   Sums over values are divided by the sum of the exponentials once, at the end. e^x is 2^(x log2
   e), whose factor is folded into the scale of the scores: the hardware has exp2 alone. */
#include "cuda/flash.h"
#include "cuda/reduce.h"

/* Widths up to 64 leave registers for two stacks of 16 rows, which share what comes from shared
   memory. */
template <int WIDTH> struct shape {
  enum { STACKS = WIDTH <= 64 ? 2 : 1, ROWS = 16 * STACKS * LT_FLASH_WARPS };
  enum { KEYS = WIDTH <= 32 ? 64 : 32 };
};

/* Scores become exponentials relative to the largest so far; what was summed before follows. Sums
   are of this lane's columns. The online softmax (M. Milakov, N. Gimelshein, 2018): sums over
   values are corrected whenever a larger score turns up, so that scores are needed once only. */
template <int N, int WIDTH>
static __device__ inline void exponents(float (&c)[N / 8][4], float (&o)[WIDTH / 8][4],
                                        float *most, float *sum, float factor) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float top = most[half], add = 0;
#pragma unroll
    for (int n = 0; n < N / 8; n++)
      top = fmaxf(top, fmaxf(c[n][half * 2], c[n][half * 2 + 1]));
    top = lt_lanes_all(top, 4, lt_larger());
    float base = top == -INFINITY ? 0 : top;
    float before = lt_exp2((most[half] - base) * factor);
    most[half] = top;
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
      for (int i = half * 2; i < half * 2 + 2; i++) {
        c[n][i] = lt_exp2((c[n][i] - base) * factor);
        add += c[n][i];
      }
    sum[half] = sum[half] * before + add;
#pragma unroll
    for (int n = 0; n < WIDTH / 8; n++) o[n][half * 2] *= before, o[n][half * 2 + 1] *= before;
  }
}

/* Dropout of probabilities; their sum is of all, as softmax comes before dropout. */
template <int N>
static __device__ inline void drop(const lt_cuda_flash &j, int64_t number, int row, int col,
                                   float (&c)[N / 8][4]) {
#pragma unroll
  for (int n = 0; n < N / 8; n++) {
    unsigned kept = lt_flash_kept<false>(j, number, row, col + n * 8);
#pragma unroll
    for (int i = 0; i < 4; i++) c[n][i] = (kept >> i & 1) != 0 ? c[n][i] : 0;
  }
}

/* Statistics of this lane's two rows; *times: what the sums over values are multiplied by. */
static __device__ inline void finish(const lt_cuda_flash &j, int64_t number, int at,
                                     const float *most, const float *sum, float *times) {
  float unit = j.adds ? 1 : j.scale;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int row = at + half * 8 + lt_flash_row();
    float total = lt_lanes_all(sum[half], 4, lt_plus());
    bool empty = total == 0;
    times[half] = empty ? 0 : static_cast<float>(j.all.keep) / total;
    if (row >= j.t || lt_flash_pair() != 0) continue;
    int64_t to = number * j.t + row;
    static_cast<float *>(j.all.most)[to] = total != total ? NAN : most[half] * unit;
    static_cast<float *>(j.all.sum)[to] = empty ? 1 : total;
  }
}

/* Causal blocks differ in length: the longest come first, so that short ones fill the end of the
   launch (j.blocks - 1 - block). */
template <int DTYPE, int WIDTH>
static __global__ void __launch_bounds__(LT_FLASH_THREADS, 2) attend(LT_CONSTANT lt_cuda_flash j) {
  const int M = shape<WIDTH>::STACKS, ROWS = shape<WIDTH>::ROWS, N = shape<WIDTH>::KEYS;
  LT_DYNAMIC(uint16_t, staged);
  int64_t number = blockIdx.x / j.blocks, batch = number / j.all.heads;
  int64_t head = number % j.all.heads;
  int block = static_cast<int>(blockIdx.x % j.blocks);
  int first = (j.blocks - 1 - block) * ROWS, own = first + lt_flash_warp() * 16 * M;
  lt_flash_rows q = lt_flash_head(j.q, batch, head, j.t, j.d);
  lt_flash_rows k = lt_flash_head(j.k, batch, head / j.all.group, j.s, j.d);
  lt_flash_rows v = lt_flash_head(j.v, batch, head / j.all.group, j.s, j.e);
  lt_flash_rows out = lt_flash_head(j.all.out, batch, head, j.t, j.e);
  int end = j.all.causal && first + ROWS < j.s ? first + ROWS : j.s;
  uint32_t a[WIDTH / 16][M][4];
  float o[M][WIDTH / 8][4] = {}, most[M][2], sum[M][2] = {};
  lt_flash_bring<N, WIDTH>(staged, k, 0);
  lt_flash_bring<N, WIDTH>(staged + N * WIDTH, v, 0);
#pragma unroll
  for (int m = 0; m < M; m++) {
    lt_flash_own<WIDTH, M>(q, own + m * 16, m, a);
    most[m][0] = most[m][1] = -INFINITY;
  }
  for (int s = 0, side = 0; s < end; s += N, side ^= 1) {
    const uint16_t *keys = staged + side * 2 * N * WIDTH, *values = keys + N * WIDTH;
    uint16_t *other = staged + (side ^ 1) * 2 * N * WIDTH;
    lt_copies_wait();
    __syncthreads();
    if (s + N < end) {
      lt_flash_bring<N, WIDTH>(other, k, s + N);
      lt_flash_bring<N, WIDTH>(other + N * WIDTH, v, s + N);
    }
    if (j.all.causal && s > own + 16 * M - 1) continue; /* this warp sees none of them */
    float c[M][N / 8][4] = {};
    lt_flash_scores<DTYPE, WIDTH, M, N>(c, a, keys);
#pragma unroll
    for (int m = 0; m < M; m++) {
      lt_flash_hide<N, false>(j, number, own + m * 16, s, c[m]);
      exponents<N, WIDTH>(c[m], o[m], most[m], sum[m], j.factor);
      if (j.all.drops) drop<N>(j, number, own + m * 16, s, c[m]);
    }
    lt_flash_sums<DTYPE, WIDTH, M, N>(o, c, values);
  }
#pragma unroll
  for (int m = 0; m < M; m++) {
    float times[2];
    finish(j, number, own + m * 16, most[m], sum[m], times);
    lt_flash_write<DTYPE, WIDTH>(out, own + m * 16, o[m], times[0], times[1]);
  }
}

template <int WIDTH>
static bool issue(lt_ctx *c, lt_cuda_flash *j, lt_flash_kernel kernel) {
  return lt_flash_issue<shape<WIDTH>, WIDTH>(c, j, kernel);
}

bool lt_cuda_flash_attend(lt_ctx *c, lt_cuda_flash *j) {
  bool f16 = j->q.dtype == LT_F16;
  switch (lt_flash_width(j)) {
  case 32: return issue<32>(c, j, f16 ? attend<LT_F16, 32> : attend<LT_BF16, 32>);
  case 64: return issue<64>(c, j, f16 ? attend<LT_F16, 64> : attend<LT_BF16, 64>);
  case 96: return issue<96>(c, j, f16 ? attend<LT_F16, 96> : attend<LT_BF16, 96>);
  default: return issue<128>(c, j, f16 ? attend<LT_F16, 128> : attend<LT_BF16, 128>);
  }
}
