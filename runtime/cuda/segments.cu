/* runtime/cuda/segments.cu: sums by key, in an order that the keys alone decide.

   Positions are sorted by their key, and each row of the result adds up its own in their order, one
   thread a column: as the CPU does, bit for bit, up to 512 of them. Of more, stretches of 512 are
   summed apart, and their sums in double.

   Atomics on floats would add in the order in which threads come: another one in each run. */
#include "cuda/segments.h"

#include "cuda/index.h"
#include "cuda/radix.h"

enum { LONG = 512 };

/* Integers wrap. */
template <class T> static __device__ inline T plus(T a, T b) { return a + b; }
template <> __device__ inline int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

/* What sums of stretches are added in. */
template <class T> struct wider { typedef T type; };
template <> struct wider<float> { typedef double type; };

typedef lt_cuda_segments job;


/* The first of n sorted keys that is not below `key`. */
static __device__ inline uint32_t first_of(const uint32_t *keys, uint32_t n, uint32_t key) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* A thread a row: a binary search in the sorted keys; row i has positions start[i] to start[i +
   1]. */
static __global__ void find_starts(const uint32_t *key, uint32_t n, int64_t rows, uint32_t *start) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * LT_CUDA_THREADS + threadIdx.x;
  if (i <= rows) start[i] = first_of(key, n, static_cast<uint32_t>(i));
}

/* V columns of g, of the key that is number p in order, added to sum. */
template <class T, int V>
static __device__ inline void add_row(const job &j, int64_t o, uint32_t p, int64_t column, T *sum) {
  T v[V];
  const char *from = j.g + ((o * j.n + j.order[p]) * j.inner + column) * j.item;
  if (V == 1)
    v[0] = lt_load<T>(from, j.dtype, 0);
  else
    lt_load_row<T, V == 1 ? 4 : V>(from, j.dtype, 0, v);
#pragma unroll
  for (int e = 0; e < V; e++) sum[e] = plus(sum[e], v[e]);
}

template <class T, int V>
static __device__ inline void sum_rows(const job &j, int64_t o, uint32_t from, uint32_t to,
                                       int64_t column, T *sum) {
#pragma unroll 4
  for (uint32_t p = from; p < to; p++) add_row<T, V>(j, o, p, column, sum);
}

template <class T, int V> static __device__ inline void load_base(const job &j, int64_t at, T *v) {
#pragma unroll
  for (int e = 0; e < V; e++)
    v[e] = j.base == nullptr ? T() : lt_load<T>(j.base + (at + e) * j.item, j.dtype, 0);
}

template <class T, int V> static __device__ inline void store_row(const job &j, int64_t at, T *v) {
  if (V == 1)
    lt_store<T>(j.out + at * j.item, j.dtype, 0, v[0]);
  else
    lt_store_row<T, V == 1 ? 4 : V>(j.out + at * j.item, j.dtype, 0, v);
}

/* One thread V columns of a row of the result; bytes limit it. Leaves out long rows. */
template <class T, int V> static __global__ void sum_segments(LT_CONSTANT job j) {
  uint32_t n = lt_thread(), q = lt_quotient(n, j.columns);
  int64_t row = j.row + q, column = static_cast<int64_t>(n - q * j.columns.d) * V;
  if (row >= j.last) return;
  int64_t o = j.rows == j.last ? 0 : row / j.rows, i = row - o * j.rows;
  uint32_t from = j.start[i], to = j.start[i + 1];
  if (to - from > LONG) return;
  T sum[V];
  load_base<T, V>(j, row * j.inner + column, sum);
  sum_rows<T, V>(j, o, from, to, column, sum);
  store_row<T, V>(j, row * j.inner + column, sum);
}

/* Stretch q are keys q LONG..(q + 1) LONG - 1, of which those of long rows are summed: of the row
   of its first key into part 0, of that of its last key, if it is another, into part 1. One thread
   V columns of a part; `row` counts stretches of all o. */
template <class T, int V> static __global__ void sum_stretches(LT_CONSTANT job j) {
  typedef typename wider<T>::type wide;
  uint32_t n = lt_thread(), q = lt_quotient(n, j.columns), side = blockIdx.y;
  int64_t row = j.row + q, column = static_cast<int64_t>(n - q * j.columns.d) * V;
  if (row >= j.last) return;
  int64_t o = row / j.stretches;
  uint32_t from = static_cast<uint32_t>(row - o * j.stretches) * LONG, end = from + LONG;
  if (end > j.n) end = static_cast<uint32_t>(j.n);
  uint32_t key = j.key[side == 0 ? from : end - 1];
  if (key >= j.rows || (side == 1 && key == j.key[from])) return;
  uint32_t begins = j.start[key], ends = j.start[key + 1];
  if (ends - begins <= LONG) return;
  T sum[V] = {};
  sum_rows<T, V>(j, o, begins > from ? begins : from, ends < end ? ends : end, column, sum);
  wide *part = static_cast<wide *>(j.part) + (row * 2 + side) * j.inner + column;
#pragma unroll
  for (int e = 0; e < V; e++) part[e] = static_cast<wide>(sum[e]);
}

/* One thread V columns of the long row that begins within a stretch, if one does. */
template <class T, int V> static __global__ void join_stretches(LT_CONSTANT job j) {
  typedef typename wider<T>::type wide;
  uint32_t n = lt_thread(), q = lt_quotient(n, j.columns);
  int64_t row = j.row + q, column = static_cast<int64_t>(n - q * j.columns.d) * V;
  if (row >= j.last) return;
  int64_t o = row / j.stretches;
  uint32_t stretch = static_cast<uint32_t>(row - o * j.stretches), end = (stretch + 1) * LONG;
  if (end >= j.n) return; /* what is long continues */
  uint32_t key = j.key[end - 1];
  if (key >= j.rows) return;
  uint32_t begins = j.start[key], ends = j.start[key + 1];
  if (begins / LONG != stretch || ends - begins <= LONG) return;
  int64_t at = (o * j.rows + key) * j.inner + column;
  T y[V];
  load_base<T, V>(j, at, y);
  wide sum[V];
#pragma unroll
  for (int e = 0; e < V; e++) sum[e] = static_cast<wide>(y[e]);
  for (uint32_t s = stretch; s <= (ends - 1) / LONG; s++) {
    int64_t side = begins > s * LONG ? 1 : 0;
    const wide *part =
        static_cast<const wide *>(j.part) + ((o * j.stretches + s) * 2 + side) * j.inner + column;
#pragma unroll
    for (int e = 0; e < V; e++) sum[e] = plus(sum[e], part[e]);
  }
#pragma unroll
  for (int e = 0; e < V; e++) y[e] = static_cast<T>(sum[e]);
  store_row<T, V>(j, at, y);
}

/* A grid of threads for columns of rows 0..rows-1, in pieces that 32 bits count. */
static bool by_rows(lt_ctx *c, void (*kernel)(LT_CONSTANT job j), job *j, int64_t rows,
                    unsigned sides) {
  int64_t columns = j->columns.d, most = (INT32_MAX - LT_CUDA_THREADS) / columns;
  for (j->row = 0; j->row < rows; j->row = j->last) {
    j->last = rows - j->row < most ? rows : j->row + most;
    dim3 grid(lt_cuda_blocks((j->last - j->row) * columns), sides);
    if (!lt_cuda_grid(c, kernel, grid, LT_CUDA_THREADS, 0, *j)) return false;
  }
  return true;
}

template <class T, int V> static bool run_sums(lt_ctx *c, job *j, int64_t outer) {
  j->columns = lt_divide_by(static_cast<uint32_t>(j->inner / V));
  if (!by_rows(c, sum_segments<T, V>, j, outer * j->rows, 1)) return false;
  if (j->n <= LONG) return true;
  j->stretches = static_cast<uint32_t>((j->n + LONG - 1) / LONG);
  j->part = lt_cuda_scratch<typename wider<T>::type>(c, outer * j->stretches * 2 * j->inner);
  return j->part != nullptr && by_rows(c, sum_stretches<T, V>, j, outer * j->stretches, 2) &&
         by_rows(c, join_stretches<T, V>, j, outer * j->stretches, 1);
}

template <class T> static bool run_type(lt_ctx *c, job *j, int64_t outer) {
  uintptr_t all = reinterpret_cast<uintptr_t>(j->g) | reinterpret_cast<uintptr_t>(j->out);
  bool whole = j->inner % 4 == 0 && all % 16 == 0;
  return whole ? run_sums<T, 4>(c, j, outer) : run_sums<T, 1>(c, j, outer);
}

/* The sort is stable, so that equal keys stay in the order of the index, the CPU's order of
   sums. */
bool lt_cuda_sum_segments(lt_ctx *c, job *j, uint32_t *keys, int64_t outer) {
  lt_cuda_sorted<uint32_t> sorted;
  uint32_t *start = lt_cuda_scratch<uint32_t>(c, j->rows + 1);
  int bits = lt_cuda_bits(static_cast<uint64_t>(j->rows));
  if (start == nullptr || !lt_cuda_sort(c, keys, 1, j->n, bits, &sorted)) return false;
  const uint32_t *key = sorted.key;
  uint32_t n = static_cast<uint32_t>(j->n);
  if (!lt_cuda_grid(c, find_starts, lt_cuda_blocks(j->rows + 1), LT_CUDA_THREADS, 0, key, n,
                    j->rows, start))
    return false;
  j->key = key;
  j->order = sorted.index;
  j->start = start;
  int compute = lt_cuda_compute(j->dtype);
  if (compute == LT_CUDA_F64) return run_type<double>(c, j, outer);
  return compute == LT_CUDA_F32 ? run_type<float>(c, j, outer) : run_type<int64_t>(c, j, outer);
}
