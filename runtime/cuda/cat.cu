/* runtime/cuda/cat.cu: concatenation and stacking, many tensors in one launch.

   cat and stack of tensors that lie row-major, of the result's dtype, copy rows: input k has a row
   for each position of the dims before the joined one, and its place in the result's longer row.
   Others are moved one by one. */
#include "cuda/index.h"

enum { MOST = 96, PER_THREAD = 4, PER_BLOCK = PER_THREAD * LT_CUDA_THREADS };

typedef struct part {
  const char *from;
  int64_t at;      /* units before its row, in the result's */
  uint32_t units;  /* of all its rows */
  lt_divider row;  /* units of a row */
  uint32_t first;  /* its first block */
} part;

typedef struct job {
  char *to;
  int64_t row; /* units of the result's row */
  int n;
  part parts[MOST];
} job;

/* One block PER_BLOCK units U of a part; bytes limit it. Parts differ in size: a block finds its
   own by bisection over their first blocks. All loads come before the stores, so that PER_THREAD
   accesses are under way at once. */
template <class U> static __global__ void join(LT_CONSTANT job j) {
  int low = 0, high = j.n - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (j.parts[middle].first <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  const part &p = j.parts[low];
  uint32_t n = (blockIdx.x - p.first) * PER_BLOCK + threadIdx.x;
  const U *from = reinterpret_cast<const U *>(p.from);
  U v[PER_THREAD];
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++)
    if (n + k * LT_CUDA_THREADS < p.units) v[k] = from[n + k * LT_CUDA_THREADS];
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++) {
    uint32_t i = n + k * LT_CUDA_THREADS;
    if (i >= p.units) break;
    uint32_t row = lt_quotient(i, p.row);
    reinterpret_cast<U *>(j.to)[row * j.row + p.at + (i - row * p.row.d)] = v[k];
  }
}

static bool issue(lt_ctx *c, const job *j, unsigned blocks, int unit) {
  switch (unit) {
    case 16: return lt_cuda_grid(c, join<uint4>, blocks, LT_CUDA_THREADS, 0, *j);
    case 8: return lt_cuda_grid(c, join<uint2>, blocks, LT_CUDA_THREADS, 0, *j);
    case 4: return lt_cuda_grid(c, join<uint32_t>, blocks, LT_CUDA_THREADS, 0, *j);
    case 2: return lt_cuda_grid(c, join<uint16_t>, blocks, LT_CUDA_THREADS, 0, *j);
    default: return lt_cuda_grid(c, join<uint8_t>, blocks, LT_CUDA_THREADS, 0, *j);
  }
}

/* What is gathered for the next launch: its parts in bytes, as long as the unit is open. */
typedef struct plan {
  lt_ctx *c;
  int64_t rows, row_bytes;
  char *to;
  int n;
  struct { const char *from; int64_t at, bytes; } parts[MOST];
} plan;

/* The widest unit that all addresses and lengths are multiples of: 16 bytes where it can be, for
   full bandwidth. */
static bool flush(plan *p) {
  uint64_t all = reinterpret_cast<uintptr_t>(p->to) | static_cast<uint64_t>(p->row_bytes);
  for (int k = 0; k < p->n; k++)
    all |= reinterpret_cast<uintptr_t>(p->parts[k].from) |
           static_cast<uint64_t>(p->parts[k].at | p->parts[k].bytes);
  int unit = 16;
  while (all % static_cast<uint64_t>(unit) != 0) unit /= 2;
  job j = {p->to, p->row_bytes / unit, p->n, {}};
  unsigned blocks = 0;
  for (int k = 0; k < p->n; k++) {
    uint32_t row = static_cast<uint32_t>(p->parts[k].bytes / unit);
    uint32_t units = row * static_cast<uint32_t>(p->rows);
    j.parts[k] = {p->parts[k].from, p->parts[k].at / unit, units, lt_divide_by(row), blocks};
    blocks += (units + PER_BLOCK - 1) / PER_BLOCK;
  }
  p->n = 0;
  return issue(p->c, &j, blocks, unit);
}

/* Adds an input whose place in the result is `to`, `at` elements from the start of a row. A
   conversion, or a layout that is not row-major, is a launch of its own; the rest is collected, up
   to MOST parts, the limit of a kernel's arguments of 4 KB. */
static bool add(plan *p, const lt_view *to, const lt_view *from, int64_t at) {
  int64_t item = lt_cuda_item_size(to->dtype), numel = lt_cuda_numel(from);
  if (numel == 0) return true;
  if (p->to == nullptr || from->dtype != to->dtype || !lt_cuda_is_row_major(from) ||
      numel * item > INT32_MAX)
    return lt_cuda_move(p->c, to, from);
  p->parts[p->n++] = {static_cast<const char *>(from->data), at * item, numel / p->rows * item};
  return p->n < MOST || flush(p);
}

/* `to` null: no rows that could be copied. */
static plan plan_of(lt_ctx *c, const lt_view *out, int64_t dim) {
  plan p = {};
  p.c = c;
  p.rows = lt_cuda_sizes_product(out, 0, dim);
  p.row_bytes = lt_cuda_sizes_product(out, dim, out->ndim) * lt_cuda_item_size(out->dtype);
  p.to = lt_cuda_is_row_major(out) ? static_cast<char *>(out->data) : nullptr;
  return p;
}

/* An empty tensor of another shape is skipped, as in PyTorch: [0] fits everywhere. */
LT_CUDA_KERNEL(cat) {
  int64_t dim = lt_cuda_args<lt_args_cat>(call)->dim, at = 0;
  lt_view out, from;
  if (!lt_cuda_view(c, call->out[0], &out)) return false;
  plan p = plan_of(c, &out, dim);
  int64_t inner = lt_cuda_sizes_product(&out, dim + 1, out.ndim);
  for (int k = 0; k < call->n_in; k++) {
    if (!lt_cuda_view(c, call->in[k], &from)) return false;
    if (from.ndim != out.ndim || lt_cuda_numel(&from) == 0) {
      if (from.ndim == out.ndim) at += from.size[dim];
      continue;
    }
    lt_view to = out;
    to.size[dim] = from.size[dim];
    to.data = static_cast<char *>(out.data) +
              at * out.stride[dim] * lt_cuda_item_size(out.dtype);
    if (!add(&p, &to, &from, at * inner)) return false;
    at += from.size[dim];
  }
  return p.n == 0 || flush(&p);
}

LT_CUDA_KERNEL(stack) {
  int64_t dim = lt_cuda_args<lt_args_stack>(call)->dim;
  lt_view out, from;
  if (!lt_cuda_view(c, call->out[0], &out)) return false;
  plan p = plan_of(c, &out, dim);
  int64_t inner = lt_cuda_sizes_product(&out, dim + 1, out.ndim);
  for (int k = 0; k < call->n_in; k++) {
    if (!lt_cuda_view(c, call->in[k], &from)) return false;
    lt_view to = from;
    to.dtype = out.dtype;
    for (int d = 0, own = 0; d < out.ndim; d++)
      if (d != dim) to.stride[own++] = out.stride[d];
    to.data = static_cast<char *>(out.data) +
              k * out.stride[dim] * lt_cuda_item_size(out.dtype);
    if (!add(&p, &to, &from, k * inner)) return false;
  }
  return p.n == 0 || flush(&p);
}
