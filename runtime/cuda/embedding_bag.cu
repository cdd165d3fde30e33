/* runtime/cuda/embedding_bag.cu: sums and means of rows of a table, by bags of ids.

   As torch.nn.functional.embedding_bag: [B, L] ids, or a list with the offset of each bag. Sums are
   in the order of the ids. Rows are gathered and summed in one kernel: embedding followed by a sum
   would write and read N D numbers more. */
#include "cuda/index.h"

typedef struct job {
  const char *table;
  const void *factors;         /* for each id; nullptr: 1 */
  const int64_t *ids, *begins; /* begins: of each bag; nullptr: bags of `size` ids */
  void *out;                   /* [B, D] */
  int64_t n, rows, bags, size, dim, row_bytes, skip;
  int dtype, item;
  bool mean;
  lt_cuda_blame blame;
} job;

/* Where bag b begins; n: it has no valid offset. */
static __device__ inline int64_t begin_of(const job &j, int64_t b) {
  if (b == j.bags) return j.n;
  if (j.begins == nullptr) return b * j.size;
  int64_t k = j.begins[b], limit = b == 0 ? 1 : j.n + 1;
  if (k >= 0 && k < limit) return k;
  lt_cuda_refuse(j.blame, k, limit);
  return j.n;
}

/* A thread an element of the result, the elements of a row side by side: bytes limit it.
   Neighbouring threads read neighbouring numbers of one row, so accesses fill cache lines wherever
   the row lies in the table. */
template <class T> static __global__ void sums(LT_CONSTANT job j) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * LT_CUDA_THREADS + threadIdx.x;
  if (i >= j.bags * j.dim) return;
  int64_t b = i / j.dim, n = 0, to = begin_of(j, b + 1);
  int32_t e = static_cast<int32_t>(i - b * j.dim);
  T sum = 0;
  for (int64_t k = begin_of(j, b); k < to; k++) {
    int64_t id = lt_index_at(j.ids + k, LT_I64, 0, j.rows, j.blame);
    if (id < 0 || id == j.skip) continue;
    T x = lt_load<T>(j.table + id * j.row_bytes, j.dtype, e);
    if (j.factors != nullptr)
      x *= lt_load<T>(static_cast<const char *>(j.factors) + k * j.item, j.dtype, 0);
    sum += x;
    n++;
  }
  if (j.mean && n > 1) sum /= static_cast<T>(n);
  lt_store<T>(static_cast<char *>(j.out) + i * j.item, j.dtype, 0, sum);
}

/* Input k, if it is there, row-major in `dtype`. */
static bool input(lt_ctx *c, const lt_call *call, int k, int dtype, lt_view *v) {
  lt_view own;
  *v = {};
  if (k >= call->n_in || call->in[k] == nullptr) return true;
  return lt_cuda_view(c, call->in[k], &own) && lt_cuda_row_major(c, &own, dtype, v);
}

/* (weight [V, D], ids, offsets, factors) -> [B, D] */
LT_CUDA_KERNEL(embedding_bag) {
  const lt_args_embedding_bag *a = lt_cuda_args<lt_args_embedding_bag>(call);
  lt_view out, own, table, ids, begins, factors;
  if (!lt_cuda_view(c, call->out[0], &out)) return false;
  int dtype = out.dtype;
  if (!lt_cuda_result(c, &out, dtype, &own) || !input(c, call, 0, dtype, &table) ||
      !input(c, call, 1, LT_I64, &ids) || !input(c, call, 2, LT_I64, &begins) ||
      !input(c, call, 3, dtype, &factors))
    return false;
  int64_t item = lt_cuda_item_size(dtype), numel = lt_cuda_numel(&out);
  if (numel == 0) return true;
  job j = {};
  j.table = static_cast<const char *>(table.data);
  j.factors = factors.data;
  j.ids = static_cast<const int64_t *>(ids.data);
  j.begins = static_cast<const int64_t *>(begins.data);
  j.out = own.data;
  j.n = lt_cuda_numel(&ids);
  j.rows = table.size[0];
  j.bags = out.size[0];
  j.size = j.n / j.bags;
  j.dim = out.size[1];
  j.row_bytes = j.dim * item;
  j.skip = a->padding_idx;
  j.dtype = dtype;
  j.item = static_cast<int>(item);
  j.mean = a->mean;
  return lt_cuda_blame_of(c, call, &j.blame) &&
         (dtype == LT_F64
              ? lt_cuda_grid(c, sums<double>, lt_cuda_blocks(numel), LT_CUDA_THREADS, 0, j)
              : lt_cuda_grid(c, sums<float>, lt_cuda_blocks(numel), LT_CUDA_THREADS, 0, j)) &&
         lt_cuda_deliver(c, &out, &own);
}
