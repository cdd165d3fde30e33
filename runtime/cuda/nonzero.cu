/* runtime/cuda/nonzero.cu: coordinates of the true elements of a mask, as torch.nonzero, in
   row-major order.

   Trues of each tile are counted, the counts added up, and each true writes its coordinates where
   the trues before it end. How many there are was read when the result was made. */
#include "cuda/index.h"
#include "cuda/radix.h"

enum { ROUNDS = 8, TILE = ROUNDS * LT_CUDA_THREADS };

typedef struct job {
  const uint8_t *mask; /* row-major */
  int64_t *out;        /* [trues, ndim], row-major */
  uint32_t *before;    /* [tiles]: trues of a tile; then those before it */
  int64_t n, rows;
  bool words; /* the mask is on 8 bytes */
  int ndim;
  int64_t size[LT_MAX_DIMS];
} job;

/* Elements first..first+7 of a thread, one bit each. Eight bytes are one load where the mask is
   aligned. */
static __device__ inline uint32_t trues_of(const job &j, int64_t first) {
  uint32_t bits = 0;
  uint64_t word = 0;
  if (j.words && first + ROUNDS <= j.n) word = *reinterpret_cast<const uint64_t *>(j.mask + first);
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    if (!(j.words && first + ROUNDS <= j.n) && first + r < j.n)
      word |= static_cast<uint64_t>(j.mask[first + r]) << 8 * r;
    if ((word >> 8 * r & 255) != 0) bits |= 1u << r;
  }
  return bits;
}

static __device__ inline int64_t first_of(void) {
  return static_cast<int64_t>(blockIdx.x) * TILE + threadIdx.x * ROUNDS;
}

/* One block a tile, one thread 8 neighbours. */
static __global__ void count_trues(LT_CONSTANT job j) {
  LT_SHARED(uint32_t, scratch, 8);
  uint32_t all;
  lt_block_before(static_cast<uint32_t>(__popc(trues_of(j, first_of()))), scratch, &all);
  if (threadIdx.x == 0) j.before[blockIdx.x] = all;
}

/* One block in all, for one number a tile of 2048. A million tiles are two billion elements: one
   block is enough. */
static __global__ void add_tiles(uint32_t *before, uint32_t tiles) {
  LT_SHARED(uint32_t, scratch, 8);
  uint32_t sum = 0, all;
  for (uint32_t first = 0; first < tiles; first += LT_CUDA_THREADS) {
    uint32_t at = first + threadIdx.x, own = at < tiles ? before[at] : 0;
    uint32_t left = lt_block_before(own, scratch, &all);
    if (at < tiles) before[at] = sum + left;
    sum += all;
  }
}

/* As count_trues. The mask is read again instead of keeping bits: it has a byte for each element,
   the coordinates 8 for each dim. */
static __global__ void write_trues(LT_CONSTANT job j) {
  LT_SHARED(uint32_t, scratch, 8);
  uint32_t bits = trues_of(j, first_of()), all;
  int64_t row = lt_block_before(static_cast<uint32_t>(__popc(bits)), scratch, &all);
  if (gridDim.x > 1) row += j.before[blockIdx.x];
  for (int r = 0; r < ROUNDS; r++) {
    if ((bits >> r & 1) == 0) continue;
    if (row >= j.rows) return;
    int64_t left = first_of() + r, *to = j.out + row++ * j.ndim;
    for (int d = j.ndim - 1; d >= 0; d--) {
      int64_t q = left / j.size[d];
      to[d] = left - q * j.size[d];
      left = q;
    }
  }
}

/* A mask of one tile needs no counts of others, and one launch. */
LT_CUDA_KERNEL(mask_positions) {
  lt_view mask, flat, out, to;
  if (!lt_cuda_view(c, call->in[0], &mask) || !lt_cuda_view(c, call->out[0], &out)) return false;
  job j = {};
  j.n = lt_cuda_numel(&mask);
  j.rows = out.size[0];
  j.ndim = mask.ndim;
  if (j.n == 0 || j.ndim == 0 || j.rows == 0) return true;
  if (j.n > UINT32_MAX)
    return lt_cuda_fail(c, LT_EVALUE, "a mask of %lld elements is too large",
                        static_cast<long long>(j.n));
  uint32_t tiles = static_cast<uint32_t>((j.n + TILE - 1) / TILE);
  j.before = lt_cuda_scratch<uint32_t>(c, tiles);
  if (j.before == nullptr || !lt_cuda_row_major(c, &mask, LT_BOOL, &flat) ||
      !lt_cuda_result(c, &out, LT_I64, &to))
    return false;
  j.mask = static_cast<uint8_t *>(flat.data);
  j.out = static_cast<int64_t *>(to.data);
  for (int d = 0; d < j.ndim; d++) j.size[d] = mask.size[d];
  j.words = reinterpret_cast<uintptr_t>(flat.data) % 8 == 0;
  if (tiles > 1 && (!lt_cuda_grid(c, count_trues, tiles, LT_CUDA_THREADS, 0, j) ||
                    !lt_cuda_grid(c, add_tiles, 1, LT_CUDA_THREADS, 0, j.before, tiles)))
    return false;
  return lt_cuda_grid(c, write_trues, tiles, LT_CUDA_THREADS, 0, j) &&
         lt_cuda_deliver(c, &out, &to);
}
