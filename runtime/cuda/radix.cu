/* runtime/cuda/radix.cu: a stable sort of (key, position) by digits of 8 bits, lowest first.

   A tile of 2048 keys is ranked by one block: each warp has its own stretch and finds the lanes of
   the same digit by ballots. Lines of one tile are sorted whole in shared memory, by one launch;
   lines of up to 32 by a warp each, by counting. Longer ones take three launches a digit: digits of
   each tile are counted, the counts of a digit added up over the tiles of a line, keys moved to
   their place. Nothing depends on the order in which blocks run.

   LSD radix sort (D. Knuth, The Art of Computer Programming, volume 3, section 5.2.5); the three
   steps of a digit are those of N. Satish, M. Harris and M. Garland, Designing Efficient Sorting
   Algorithms for Manycore GPUs, 2009.

   Stable, because equal keys must keep their order: sums by sorted keys and topk depend on it.
   Indices and 16-bit floats need fewer passes than the width of the key: `bits` says how many are
   used. */
#include "cuda/radix.h"

enum { THREADS = 256, WARPS = 8, ROUNDS = 8, TILE = THREADS * ROUNDS, DIGITS = 256, SHORT = 32 };

static __device__ inline uint32_t lanes_below(void) { return (1u << threadIdx.x % 32) - 1; }

/* Which lanes that take part have the same digit. A bit at a time: what lanes agree in is narrowed
   by eight ballots, without a shared counter. */
static __device__ inline uint32_t same_digit(uint32_t digit, bool part) {
  uint32_t same = __ballot_sync(0xffffffffu, part);
#pragma unroll
  for (int b = 0; b < 8; b++) {
    bool one = (digit >> b & 1) != 0;
    uint32_t ones = __ballot_sync(0xffffffffu, one);
    same &= one ? ones : ~ones;
  }
  return same;
}

/* Key r of a thread is number slot(r, rounds) of the tile. */
static __device__ inline uint32_t slot(int r, int rounds) {
  return (threadIdx.x / 32 * static_cast<uint32_t>(rounds) + static_cast<uint32_t>(r)) * 32 +
         threadIdx.x % 32;
}

/* place[r]: where key r of this thread stands when the n keys of the tile are in order of a digit;
   start[d]: where digit d begins. `count`: [WARPS, DIGITS], `scratch`: [WARPS]. */
template <class K>
static __device__ inline void rank_tile(const K *key, uint32_t n, int rounds, int shift,
                                        uint32_t *count, uint32_t *start, uint32_t *scratch,
                                        uint32_t *place) {
  uint32_t *own = count + threadIdx.x / 32 * DIGITS, running = 0, all;
#pragma unroll
  for (int w = 0; w < WARPS; w++) count[w * DIGITS + threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    if (r >= rounds) break;
    bool part = slot(r, rounds) < n;
    uint32_t digit = static_cast<uint32_t>(key[r] >> shift) & (DIGITS - 1);
    uint32_t same = same_digit(digit, part), before = part ? own[digit] : 0;
    __syncwarp();
    if (part && (same & lanes_below()) == 0)
      own[digit] = before + static_cast<uint32_t>(__popc(same));
    __syncwarp();
    place[r] = before + static_cast<uint32_t>(__popc(same & lanes_below()));
  }
  __syncthreads();
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    uint32_t k = count[w * DIGITS + threadIdx.x];
    count[w * DIGITS + threadIdx.x] = running;
    running += k;
  }
  start[threadIdx.x] = lt_block_before(running, scratch, &all);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    if (r >= rounds) break;
    uint32_t digit = static_cast<uint32_t>(key[r] >> shift) & (DIGITS - 1);
    if (slot(r, rounds) < n) place[r] += own[digit] + start[digit];
  }
}

/* One block a line of up to TILE keys, all digits; shuffles and shared memory limit it. */
template <class K>
static __global__ void __launch_bounds__(THREADS)
    sort_lines(K *keys, uint32_t *index, uint32_t n, int bits) {
  LT_SHARED(K, sorted, TILE);
  LT_SHARED(uint32_t, position, TILE);
  LT_SHARED(uint32_t, count, WARPS * DIGITS);
  LT_SHARED(uint32_t, start, DIGITS);
  LT_SHARED(uint32_t, scratch, WARPS);
  K *line = keys + static_cast<int64_t>(blockIdx.x) * n, key[ROUNDS] = {};
  uint32_t from[ROUNDS] = {}, place[ROUNDS] = {};
  int rounds = static_cast<int>((n + THREADS - 1) / THREADS);
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    from[r] = slot(r, rounds);
    if (r < rounds && from[r] < n) key[r] = line[from[r]];
  }
  for (int shift = 0; shift < bits; shift += 8) {
    rank_tile<K>(key, n, rounds, shift, count, start, scratch, place);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
      if (r < rounds && slot(r, rounds) < n)
        sorted[place[r]] = key[r], position[place[r]] = from[r];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
      if (r < rounds && slot(r, rounds) < n)
        key[r] = sorted[slot(r, rounds)], from[r] = position[slot(r, rounds)];
    __syncthreads();
  }
  index += static_cast<int64_t>(blockIdx.x) * n;
#pragma unroll
  for (int r = 0; r < ROUNDS; r++)
    if (r < rounds && slot(r, rounds) < n)
      line[slot(r, rounds)] = key[r], index[slot(r, rounds)] = from[r];
}

/* One warp a line of up to 32 keys: each lane counts those that come before its own. */
template <class K>
static __global__ void __launch_bounds__(THREADS)
    sort_short(K *keys, uint32_t *index, int64_t lines, uint32_t n) {
  int64_t line = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
  uint32_t lane = threadIdx.x % 32, before = 0;
  bool part = line < lines && lane < n;
  K key = part ? keys[line * n + lane] : 0;
  for (uint32_t k = 0; k < n; k++) {
    K other = __shfl_sync(0xffffffffu, key, static_cast<int>(k));
    before += other < key || (other == key && k < lane);
  }
  __syncwarp(); /* shuffles order no memory: all lanes have read before one writes */
  if (!part) return;
  keys[line * n + before] = key;
  index[line * n + before] = lane;
}

/* A pass over one digit of long lines. */
template <class K> struct pass {
  const K *from;
  const uint32_t *index; /* null: keys stand where they stood */
  K *to;
  uint32_t *to_index;
  uint32_t *count; /* [lines, DIGITS, tiles]: of a digit in a tile, then before the tile */
  uint32_t *total; /* [lines, DIGITS] */
  uint32_t n, tiles;
  int shift;
};

/* One block a tile. The first of three launches of a digit: a histogram of each tile. */
template <class K> static __global__ void __launch_bounds__(THREADS) count_digits(pass<K> p) {
  LT_SHARED(uint32_t, count, DIGITS);
  uint32_t tile = blockIdx.x % p.tiles, first = tile * TILE + threadIdx.x;
  int64_t line = blockIdx.x / p.tiles;
  const K *from = p.from + line * p.n;
  count[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (uint32_t r = 0; r < ROUNDS; r++)
    if (first + r * THREADS < p.n)
      /* Atomics of integers: their sum does not depend on the order. */
      atomicAdd(&count[from[first + r * THREADS] >> p.shift & (DIGITS - 1)], 1u);
  __syncthreads();
  p.count[(line * DIGITS + threadIdx.x) * p.tiles + tile] = count[threadIdx.x];
}

/* One warp a line and digit. The second: prefix sums over the tiles, so that a tile knows where its
   keys of a digit begin. */
static __global__ void __launch_bounds__(THREADS)
    add_counts(uint32_t *count, uint32_t *total, int64_t rows, uint32_t tiles) {
  int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
  uint32_t lane = threadIdx.x % 32, before = 0;
  if (row >= rows) return; /* a whole warp */
  for (uint32_t at = lane; at - lane < tiles; at += 32) {
    uint32_t own = at < tiles ? count[row * tiles + at] : 0, sum = own;
    /* The prefix sum of W. Hillis and G. Steele, Data Parallel Algorithms, 1986. */
    for (uint32_t d = 1; d < 32; d *= 2) {
      uint32_t left = __shfl_up_sync(0xffffffffu, sum, d);
      if (lane >= d) sum += left;
    }
    if (at < tiles) count[row * tiles + at] = before + sum - own;
    before += __shfl_sync(0xffffffffu, sum, 31);
  }
  if (lane == 0) total[row] = before;
}

/* One block a tile: in order within the tile first, so that neighbours are written together. The
   third. Keys that go to the same digit's range lie side by side, so that writes fill cache lines;
   written straight from the input each would touch a line of its own. */
template <class K> static __global__ void __launch_bounds__(THREADS) move_keys(pass<K> p) {
  LT_SHARED(K, sorted, TILE);
  LT_SHARED(uint32_t, position, TILE);
  LT_SHARED(uint32_t, count, WARPS * DIGITS);
  LT_SHARED(uint32_t, start, DIGITS);
  LT_SHARED(uint32_t, scratch, WARPS);
  uint32_t tile = blockIdx.x % p.tiles, first = tile * TILE, place[ROUNDS] = {}, all;
  uint32_t n = p.n - first < TILE ? p.n - first : static_cast<uint32_t>(TILE);
  int64_t line = blockIdx.x / p.tiles, row = line * DIGITS + threadIdx.x;
  K key[ROUNDS] = {};
#pragma unroll
  for (int r = 0; r < ROUNDS; r++)
    if (slot(r, ROUNDS) < n) key[r] = p.from[line * p.n + first + slot(r, ROUNDS)];
  rank_tile<K>(key, n, ROUNDS, p.shift, count, start, scratch, place);
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    uint32_t at = first + slot(r, ROUNDS);
    if (slot(r, ROUNDS) >= n) continue;
    sorted[place[r]] = key[r];
    position[place[r]] = p.index == nullptr ? at : p.index[line * p.n + at];
  }
  uint32_t before = lt_block_before(p.total[row], scratch, &all);
  before += p.count[row * p.tiles + tile] - start[threadIdx.x];
  __syncthreads();
  count[threadIdx.x] = before; /* from a digit's place in the tile to that in the line */
  __syncthreads();
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    uint32_t at = static_cast<uint32_t>(r) * THREADS + threadIdx.x;
    if (at >= n) break;
    uint32_t digit = static_cast<uint32_t>(sorted[at] >> p.shift) & (DIGITS - 1);
    int64_t to = line * p.n + (at + count[digit]);
    p.to[to] = sorted[at];
    p.to_index[to] = position[at];
  }
}

template <class K>
static bool sort_long(lt_ctx *c, K *keys, uint32_t *index, int64_t lines, uint32_t n, int bits,
                      lt_cuda_sorted<K> *out) {
  uint32_t tiles = (n + TILE - 1) / TILE;
  int64_t all = lines * n, counts = lines * DIGITS * tiles;
  if (lines * tiles > INT32_MAX) return lt_cuda_fail(c, LT_EVALUE, "too many lines to sort");
  size_t bytes = static_cast<size_t>(all) * sizeof(K);
  bytes += static_cast<size_t>(all + counts + lines * DIGITS) * sizeof(uint32_t);
  char *memory = lt_cuda_scratch<char>(c, static_cast<int64_t>(bytes));
  if (memory == nullptr) return false;
  K *other = reinterpret_cast<K *>(memory);
  uint32_t *other_index = reinterpret_cast<uint32_t *>(other + all), *count = other_index + all;
  pass<K> p = {keys, nullptr, other, other_index, count, count + counts, n, tiles, 0};
  unsigned blocks = static_cast<unsigned>(lines * tiles);
  unsigned scans = static_cast<unsigned>(lines * (DIGITS / WARPS));
  for (; p.shift < bits; p.shift += 8) {
    if (!lt_cuda_grid(c, count_digits<K>, blocks, THREADS, 0, p) ||
        !lt_cuda_grid(c, add_counts, scans, THREADS, 0, p.count, p.total, lines * DIGITS, tiles) ||
        !lt_cuda_grid(c, move_keys<K>, blocks, THREADS, 0, p))
      return false;
    *out = {p.to, p.to_index};
    p.to = const_cast<K *>(p.from);
    p.to_index = p.index == nullptr ? index : const_cast<uint32_t *>(p.index);
    p.from = out->key;
    p.index = out->index;
  }
  return true;
}

template <class K>
static bool sort(lt_ctx *c, K *keys, int64_t lines, int64_t n, int bits, lt_cuda_sorted<K> *out) {
  uint32_t *index = lt_cuda_scratch<uint32_t>(c, lines * n > 0 ? lines * n : 1);
  *out = {keys, index};
  if (index == nullptr) return false;
  if (lines * n == 0) return true;
  if (n > INT32_MAX || lines > INT32_MAX)
    return lt_cuda_fail(c, LT_EVALUE, "%lld lines of %lld elements are too many to sort",
                        static_cast<long long>(lines), static_cast<long long>(n));
  unsigned blocks = static_cast<unsigned>(lines);
  uint32_t length = static_cast<uint32_t>(n);
  if (n <= SHORT)
    return lt_cuda_grid(c, sort_short<K>, (blocks + WARPS - 1) / WARPS, THREADS, 0, keys, index,
                        lines, length);
  if (n <= TILE)
    return lt_cuda_grid(c, sort_lines<K>, blocks, THREADS, 0, keys, index, length, bits);
  return sort_long(c, keys, index, lines, length, bits, out);
}

bool lt_cuda_sort(lt_ctx *c, uint32_t *keys, int64_t lines, int64_t n, int bits,
                  lt_cuda_sorted<uint32_t> *out) {
  return sort(c, keys, lines, n, bits, out);
}

bool lt_cuda_sort(lt_ctx *c, uint64_t *keys, int64_t lines, int64_t n, int bits,
                  lt_cuda_sorted<uint64_t> *out) {
  return sort(c, keys, lines, n, bits, out);
}
