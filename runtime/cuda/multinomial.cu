/* runtime/cuda/multinomial.cu: samples from a distribution: the CPU's sums, so the CPU's ids
   (cpu/sampling.c). N rows, C classes, S samples a row. */
#include "cuda/elementwise.h"
#include "ops/math/random.h"

enum { THREADS = 256 };

/* Weights [N, C] of any strides, in elements; where ids [N, S] go. */
typedef struct job {
  const char *x;
  char *y;
  int dtype, item;
  int64_t row, column, y_row, y_column;
  int64_t n_classes, n_samples, runs; /* runs: of LT_RUN weights, in a row */
  lt_rng_key rng_key;
  lt_cuda_blame blame;
} job;

/* 64 random bits, number `i` of a key, as a double in [0, 1). */
static __device__ inline double draw(const lt_rng_key &t, uint64_t i) {
  lt_random4 r = lt_philox(t, i / 2);
  return i % 2 == 0 ? lt_uniform_f64(r.word[0], r.word[1]) : lt_uniform_f64(r.word[2], r.word[3]);
}

static __device__ inline double weight_of(const job &j, int64_t row, int64_t i) {
  double p = lt_load<double>(j.x + (row * j.row + i * j.column) * j.item, j.dtype, 0);
  if (!(p >= 0) || isinf(p)) lt_cuda_refuse(j.blame, row + 1, LT_NOT_PROBABLE);
  return p;
}

static __device__ inline void put(const job &j, int64_t row, int64_t sample, int64_t id) {
  reinterpret_cast<int64_t *>(j.y)[row * j.y_row + sample * j.y_column] = id;
}

/* Running sums within runs (LT_RUN): one thread a run, and its sum to `totals`. Limited by the
   latency of the sums of a run, 8 to 40 cycles each; all runs side by side. */
static __global__ void __launch_bounds__(THREADS) sum_runs(LT_CONSTANT job j, int64_t n,
                                                           double *sums, double *totals) {
  int64_t run = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (run >= n) return;
  int64_t row = run / j.runs, from = run % j.runs * LT_RUN;
  int64_t to = from + LT_RUN < j.n_classes ? from + LT_RUN : j.n_classes;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = from; i < to; i++) {
    sum += weight_of(j, row, i);
    sums[row * j.n_classes + i] = sum;
  }
  totals[run] = sum;
}

/* Running sums of the totals of a row's runs, one after the other as on the CPU, by one thread out
   of shared memory; one block a row. */
static __global__ void __launch_bounds__(THREADS) sum_totals(LT_CONSTANT job j, double *totals) {
  LT_SHARED(double, tile, THREADS);
  double *own = totals + blockIdx.x * j.runs, sum = 0;
  for (int64_t at = 0; at < j.runs; at += THREADS) {
    int64_t i = at + threadIdx.x;
    tile[threadIdx.x] = i < j.runs ? own[i] : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll 8
      for (int k = 0; k < THREADS; k++) sum += tile[k], tile[k] = sum;
    }
    __syncthreads();
    if (i < j.runs) own[i] = tile[threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.x == 0 && !(sum > 0)) lt_cuda_refuse(j.blame, blockIdx.x + 1, LT_ALL_ZERO);
}

/* Adds to each sum that of the runs before its own: one thread an element. */
static __global__ void __launch_bounds__(THREADS) add_totals(LT_CONSTANT job j, int64_t n,
                                                             double *sums,
                                                             const double *__restrict__ totals) {
  int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= n) return;
  int64_t row = at / j.n_classes, run = at % j.n_classes / LT_RUN;
  if (run > 0) sums[at] += totals[row * j.runs + run - 1];
}

/* Inverse of the distribution function, found by halving: one thread a sample. */
static __global__ void __launch_bounds__(THREADS) find(LT_CONSTANT job j, int64_t n,
                                                       const double *__restrict__ sums) {
  int64_t s = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (s >= n) return;
  const double *p = sums + s / j.n_samples * j.n_classes;
  double u = draw(j.rng_key, static_cast<uint64_t>(s)) * p[j.n_classes - 1];
  put(j, s / j.n_samples, s % j.n_samples, lt_first_above(p, j.n_classes, u));
}

/* Exponentially distributed times -log(u) / p, whose smallest are the samples: one block a row. */
static __global__ void __launch_bounds__(THREADS) times_of(LT_CONSTANT job j, double *times) {
  LT_SHARED(int, positive, 1);
  int64_t row = blockIdx.x;
  int own = 0;
  if (threadIdx.x == 0) positive[0] = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < j.n_classes; i += THREADS) {
    double p = weight_of(j, row, i);
    double u = draw(j.rng_key, static_cast<uint64_t>(row * j.n_classes + i)) + 0x1p-53;
    times[row * j.n_classes + i] = p > 0 ? -lt_log_f64(u) / p : INFINITY;
    own += p > 0;
  }
  atomicAdd(&positive[0], own);
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (positive[0] == 0) lt_cuda_refuse(j.blame, row + 1, LT_ALL_ZERO);
  if (positive[0] < j.n_samples) lt_cuda_refuse(j.blame, row + 1, j.n_samples);
}

/* A thread an element: how many of its row come before it is the place of its sample. n * n
   comparisons a row, of integers, in tiles: as fast as sorting up to some 100,000 classes. Times
   are not negative: their bits are in their order. Grid: [tiles of C, rows]. */
static __global__ void __launch_bounds__(THREADS) ranks(LT_CONSTANT job j, int64_t first_row,
                                                        const double *__restrict__ times) {
  LT_SHARED(uint64_t, tile, THREADS);
  int64_t row = first_row + blockIdx.y;
  int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const double *t = times + row * j.n_classes;
  uint64_t own = i < j.n_classes ? lt_bits_f64(t[i]) : UINT64_MAX;
  int64_t before = 0;
  for (int64_t at = 0; at < j.n_classes; at += THREADS) {
    int64_t other = at + threadIdx.x;
    tile[threadIdx.x] = other < j.n_classes ? lt_bits_f64(t[other]) : UINT64_MAX;
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < THREADS; k++)
      before += tile[k] < own || (tile[k] == own && at + k < i);
    __syncthreads();
  }
  if (i < j.n_classes && before < j.n_samples) put(j, row, before, i);
}

static unsigned blocks_of(int64_t n) { return static_cast<unsigned>((n + THREADS - 1) / THREADS); }

/* Samples are independent: inversion of the distribution function, log2 C steps each. */
static bool with_replacement(lt_ctx *c, const job *j, int64_t rows, double *scratch) {
  int64_t n = rows * j->n_samples, runs = rows * j->runs, weights = rows * j->n_classes;
  double *totals = lt_cuda_scratch<double>(c, runs);
  return totals != nullptr &&
         lt_cuda_grid(c, sum_runs, blocks_of(runs), THREADS, 0, *j, runs, scratch, totals) &&
         lt_cuda_grid(c, sum_totals, static_cast<unsigned>(rows), THREADS, 0, *j, totals) &&
         lt_cuda_grid(c, add_totals, blocks_of(weights), THREADS, 0, *j, weights, scratch,
                      totals) &&
         lt_cuda_grid(c, find, blocks_of(n), THREADS, 0, *j, n, scratch);
}

/* P. Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir", 2006: the S smallest
   of exponential times with rates p are a sample without replacement, in one pass without
   dependence between the draws. */
static bool without_replacement(lt_ctx *c, const job *j, int64_t rows, double *scratch) {
  const int64_t most = 65535; /* of a grid's second dim */
  bool ok = lt_cuda_grid(c, times_of, static_cast<unsigned>(rows), THREADS, 0, *j, scratch);
  for (int64_t at = 0; at < rows && ok; at += most) {
    unsigned part = static_cast<unsigned>(rows - at < most ? rows - at : most);
    ok = lt_cuda_grid(c, ranks, dim3(blocks_of(j->n_classes), part), THREADS, 0, *j, at, scratch);
  }
  return ok;
}

/* Scratch of a double for each weight: running sums or times. */
LT_CUDA_KERNEL(multinomial) {
  const lt_args_multinomial *a = lt_cuda_args<lt_args_multinomial>(call);
  lt_view x, y;
  job j = {};
  if (!lt_cuda_view(c, call->in[0], &x) || !lt_cuda_view(c, call->out[0], &y) ||
      !lt_cuda_blame_of(c, call, &j.blame))
    return false;
  if (lt_cuda_numel(&y) == 0) return true;
  int last = x.ndim - 1;
  int64_t rows = last > 0 ? x.size[0] : 1;
  j.x = static_cast<const char *>(x.data), j.y = static_cast<char *>(y.data);
  j.dtype = x.dtype, j.item = static_cast<int>(lt_cuda_item_size(x.dtype));
  j.n_classes = x.size[last], j.n_samples = a->num_samples;
  j.runs = (j.n_classes + LT_RUN - 1) / LT_RUN;
  j.row = last > 0 ? x.stride[0] : 0, j.column = x.stride[last];
  j.y_row = last > 0 ? y.stride[0] : 0, j.y_column = y.stride[last];
  j.rng_key = a->rng_key;
  double *scratch = lt_cuda_scratch<double>(c, rows * j.n_classes);
  return scratch != nullptr && (a->replacement ? with_replacement(c, &j, rows, scratch)
                                               : without_replacement(c, &j, rows, scratch));
}
