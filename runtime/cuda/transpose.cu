/* runtime/cuda/transpose.cu: copies between memory in which different dims run fastest.

   Neighbours in the result lie apart in the source: each would be read with 32 bytes of which the
   rest is thrown away. A block reads a square along the source's fastest dim into shared memory and
   writes it along the result's (G. Ruetsch and P. Micikevicius, Optimizing Matrix Transpose in
   CUDA, 2009). Elements are moved as they are, by their size. */
#include "cuda/elementwise.h"

/* LEAST: shorter dims would leave most of a square empty. */
enum { THREADS = 256, SIDE = 32, STEP = THREADS / SIDE, LEAST = 16 };

/* Dim 0 of the iteration is the result's fastest, dim `fast` the source's; the squares that cover
   them stand side by side for each place of the other dims. */
typedef struct job {
  lt_cuda_iter it;
  int fast;
  lt_divider across, down; /* squares along dim 0, along dim `fast` */
} job;

/* Elements beside each row of a square in shared memory, so that a column lies in all banks. */
template <class T> constexpr uint32_t row_of_square = SIDE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1);

/* A block a square: bound by bytes. */
template <class T>
static __global__ void __launch_bounds__(THREADS) squares(LT_CONSTANT job j) {
  LT_SHARED(T, square, SIDE * row_of_square<T>);
  const lt_cuda_operand &to = j.it.o[0], &from = j.it.o[1];
  const uint32_t lane = threadIdx.x % SIDE, first = threadIdx.x / SIDE;
  uint32_t line = lt_quotient(blockIdx.x, j.across), rest = lt_quotient(line, j.down);
  uint32_t x = (blockIdx.x - line * j.across.d) * SIDE, y = (line - rest * j.down.d) * SIDE;
  uint32_t at_to = 0, at_from = 0;
  for (int d = 1; d < j.it.ndim; d++) {
    if (d == j.fast) continue;
    uint32_t q = lt_quotient(rest, j.it.size[d]), i = rest - q * j.it.size[d].d;
    at_to += i * static_cast<uint32_t>(to.stride[d]);
    at_from += i * static_cast<uint32_t>(from.stride[d]);
    rest = q;
  }
  const T *source = reinterpret_cast<const T *>(from.data) + static_cast<int32_t>(at_from);
  T *result = reinterpret_cast<T *>(to.data) + static_cast<int32_t>(at_to);
  const int64_t apart = from.stride[0], along = to.stride[j.fast];
  const uint32_t width = j.it.size[0].d, height = j.it.size[j.fast].d;
#pragma unroll
  for (uint32_t r = first; r < SIDE; r += STEP)
    if (x + r < width && y + lane < height)
      square[r * row_of_square<T> + lane] = source[(x + r) * apart + y + lane];
  __syncthreads();
#pragma unroll
  for (uint32_t r = first; r < SIDE; r += STEP)
    if (x + lane < width && y + r < height)
      result[(y + r) * along + x + lane] = square[lane * row_of_square<T> + r];
}

/* The dim that runs fastest in the source, if it is another than in the result, and both are long
   enough; else 0. */
static int fast_of(const lt_cuda_iter *it) {
  if (it->o[0].stride[0] != 1 || it->size[0].d < LEAST) return 0;
  for (int d = 1; d < it->ndim; d++)
    if (it->o[1].stride[d] == 1 && it->size[d].d >= LEAST) return it->o[1].stride[0] != 1 ? d : 0;
  return 0;
}

static bool issue(lt_ctx *c, const job *j, unsigned blocks) {
  switch (lt_cuda_item_size(j->it.o[0].dtype)) {
    case 1: return lt_cuda_grid(c, squares<uint8_t>, blocks, THREADS, 0, *j);
    case 2: return lt_cuda_grid(c, squares<uint16_t>, blocks, THREADS, 0, *j);
    case 4: return lt_cuda_grid(c, squares<uint32_t>, blocks, THREADS, 0, *j);
    default: return lt_cuda_grid(c, squares<uint64_t>, blocks, THREADS, 0, *j);
  }
}

bool lt_cuda_transpose(lt_ctx *c, const lt_cuda_iter *it, bool *taken) {
  job j = {};
  j.it = *it;
  j.fast = fast_of(it);
  *taken = j.fast > 0 && it->o[0].dtype == it->o[1].dtype;
  if (!*taken) return true;
  uint32_t width = it->size[0].d, height = it->size[j.fast].d;
  j.across = lt_divide_by((width + SIDE - 1) / SIDE);
  j.down = lt_divide_by((height + SIDE - 1) / SIDE);
  return issue(c, &j, it->numel / width / height * j.across.d * j.down.d);
}
