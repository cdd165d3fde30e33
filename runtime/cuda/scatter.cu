/* runtime/cuda/scatter.cu: elements and rows put where indices say, and added up there.

   No atomics on floats: sums are made by sorted keys (segments.cu), of short lines of scatter_add
   by a thread each, in order. Of rows that are only written the last one for a place stays.

   atomicAdd on floats is the usual way (PyTorch's index_add_ and embedding backward use it), and
   its sum depends on which thread comes first: two runs of one script then differ. Sorting the
   indices costs a few passes over 32-bit keys; after that each place is a segment that one team
   adds in order. */
#include "cuda/index.h"
#include "cuda/segments.h"

enum { SHORT_LINE = 32, LINES_ENOUGH = 128, MOST_COLUMNS = 1 << 30 };

/* Operand 0 is the key, 1 the index, 2 the coordinate to which index times step is added. */
typedef struct key_job {
  lt_cuda_iter it;
  int64_t n, step;    /* the index is below n */
  int64_t skip, none; /* `skip`, like what is refused, has key `none` */
  lt_cuda_blame blame;
} key_job;

/* One thread an index. */
static __global__ void make_keys(LT_CONSTANT key_job j) {
  uint32_t n = lt_thread();
  int32_t at[3];
  if (n >= j.it.numel) return;
  lt_places<3>(j.it, n, at);
  int64_t k = lt_index_at(j.it.o[1].data, j.it.o[1].dtype, at[1], j.n, j.blame);
  int64_t key = k < 0 || k == j.skip ? j.none : lt_coordinate(j.it.o[2], at[2]) + k * j.step;
  reinterpret_cast<uint32_t *>(j.it.o[0].data)[at[0]] = static_cast<uint32_t>(key);
}

typedef struct key_plan {
  lt_ctx *c;
  key_job j;
} key_plan;

static bool issue_keys(void *ud, const lt_cuda_iter *it) {
  key_plan *p = static_cast<key_plan *>(ud);
  p->j.it = *it;
  return lt_cuda_grid(p->c, make_keys, lt_cuda_blocks(it->numel), LT_CUDA_THREADS, 0, p->j);
}

/* Keys of an index, row-major; its coordinates count by `stride` (null: not). Null: a failure. */
static uint32_t *keys_of(lt_ctx *c, const lt_call *call, const lt_view *index, key_plan *p,
                         const int64_t *stride) {
  lt_view v[3];
  lt_cuda_walk w;
  if (!lt_cuda_row_major_new(c, index, LT_I32, &v[0]) || !lt_cuda_blame_of(c, call, &p->j.blame))
    return nullptr;
  v[1] = *index;
  v[2] = lt_coordinates(index);
  for (int d = 0; d < index->ndim; d++) v[2].stride[d] = stride != nullptr ? stride[d] : 0;
  lt_cuda_walk_make(&w, index, 3, v);
  p->c = c;
  return lt_cuda_pieces(&w, issue_keys, p) ? static_cast<uint32_t *>(v[0].data) : nullptr;
}

/* The key of a row is its number; `rows`, one too many, is what is skipped. */
static uint32_t *row_keys(lt_ctx *c, const lt_call *call, const lt_view *index, int64_t rows,
                          int64_t skip) {
  key_plan p = {};
  p.j.n = p.j.none = rows;
  p.j.step = 1;
  p.j.skip = skip;
  return keys_of(c, call, index, &p, nullptr);
}

/* Keys that count rows or elements are of 32 bits. */
static bool fits(lt_ctx *c, int64_t rows, int64_t n, int64_t inner) {
  return (rows < INT32_MAX && n < INT32_MAX && inner <= MOST_COLUMNS) ||
         lt_cuda_fail(c, LT_EVALUE, "%lld indices into %lld rows of %lld are too many",
                      static_cast<long long>(n), static_cast<long long>(rows),
                      static_cast<long long>(inner));
}

/* Sums of g by keys into `out`, with `base` (null: zeros): any strides. The segment sums want
   row-major memory; other layouts pass through scratch. */
static bool sum(lt_ctx *c, const lt_view *out, const lt_view *base, const lt_view *g,
                uint32_t *keys, int64_t outer, int64_t rows, int64_t n) {
  lt_view to, from, zero = {};
  if (!lt_cuda_row_major(c, g, out->dtype, &from) || !lt_cuda_result(c, out, out->dtype, &to) ||
      (base != nullptr && !lt_cuda_row_major(c, base, out->dtype, &zero)))
    return false;
  lt_cuda_segments j = {};
  j.g = static_cast<char *>(from.data);
  j.base = static_cast<char *>(zero.data);
  j.out = static_cast<char *>(to.data);
  j.dtype = out->dtype;
  j.item = static_cast<int>(lt_cuda_item_size(out->dtype));
  j.rows = rows;
  j.n = n;
  j.inner = lt_cuda_numel(out) / (outer * rows);
  return lt_cuda_sum_segments(c, &j, keys, outer) && lt_cuda_deliver(c, out, &to);
}

/* Rows of g at the positions in `index` along `dim` of the result, added to base (or to zeros). The
   index has one dim. */
static bool spread(lt_ctx *c, const lt_call *call, const lt_view *base, lt_tensor *g_of,
                   lt_tensor *index_of, int64_t dim, int64_t skip) {
  lt_view out, g, index;
  if (!lt_cuda_view_dims(c, call->out[0], &out) || !lt_cuda_view_dims(c, g_of, &g) ||
      !lt_cuda_view_dims(c, index_of, &index))
    return false;
  int64_t rows = out.size[dim], n = index.size[0];
  int64_t inner = lt_cuda_sizes_product(&out, dim + 1, out.ndim);
  if (!fits(c, rows, n, inner)) return false;
  uint32_t *keys = row_keys(c, call, &index, rows, skip);
  if (keys == nullptr || lt_cuda_numel(&out) == 0) return keys != nullptr;
  return sum(c, &out, base, &g, keys, lt_cuda_sizes_product(&out, 0, dim), rows, n);
}

LT_CUDA_KERNEL(index_select_backward) {
  const lt_args_index_select_backward *a = lt_cuda_args<lt_args_index_select_backward>(call);
  return spread(c, call, nullptr, call->in[0], call->in[1], a->dim, a->skip);
}

/* Rows that are written, of which the last for a place stays. */
typedef struct put_job {
  const char *from;
  char *to;
  const uint32_t *key;
  int *last;  /* of each row: the greatest k that has it */
  int64_t first, n, rows, row_units;
  lt_divider units;
} put_job;

/* One thread a row. An atomic on integers: the maximum is the same in any order. The launch after
   this one writes, so that it sees the final winner of each row. */
static __global__ void claim_rows(put_job j) {
  int64_t k = static_cast<int64_t>(blockIdx.x) * LT_CUDA_THREADS + threadIdx.x;
  if (k < j.n && j.key[k] < j.rows) atomicMax(&j.last[j.key[k]], static_cast<int>(k));
}

/* One thread a unit U of a row; bytes limit it. */
template <class U> static __global__ void put_rows(put_job j) {
  uint32_t n = lt_thread(), q = lt_quotient(n, j.units);
  int64_t k = j.first + q, unit = n - q * j.units.d;
  if (k >= j.n || j.key[k] >= j.rows || j.last[j.key[k]] != k) return;
  reinterpret_cast<U *>(j.to)[j.key[k] * j.row_units + unit] =
      reinterpret_cast<const U *>(j.from)[k * j.row_units + unit];
}

template <class U> static bool put_units(lt_ctx *c, put_job j, int64_t bytes) {
  j.row_units = bytes / static_cast<int64_t>(sizeof(U));
  if (j.row_units > MOST_COLUMNS)
    return lt_cuda_fail(c, LT_EVALUE, "rows of %lld bytes are too large",
                        static_cast<long long>(bytes));
  j.units = lt_divide_by(static_cast<uint32_t>(j.row_units));
  int64_t at_once = (INT32_MAX - LT_CUDA_THREADS) / j.row_units;
  for (; j.first < j.n; j.first += at_once) {
    int64_t k = j.n - j.first < at_once ? j.n - j.first : at_once;
    unsigned blocks = lt_cuda_blocks(k * j.row_units);
    if (!lt_cuda_grid(c, put_rows<U>, blocks, LT_CUDA_THREADS, 0, j)) return false;
  }
  return true;
}

/* Writes rows of `from` over those of `to`: both row-major. */
static bool put(lt_ctx *c, const lt_view *to, const lt_view *from, const uint32_t *keys,
                int64_t n) {
  lt_view last = *to;
  last.ndim = 1;
  if (!lt_cuda_row_major_new(c, &last, LT_I32, &last)) return false;
  put_job j = {};
  j.from = static_cast<char *>(from->data);
  j.to = static_cast<char *>(to->data);
  j.key = keys;
  j.last = static_cast<int *>(last.data);
  j.n = n;
  j.rows = to->size[0];
  if (!lt_cuda_fill_view(c, &last, lt_cuda_number(-1)) ||
      !lt_cuda_grid(c, claim_rows, lt_cuda_blocks(n), LT_CUDA_THREADS, 0, j))
    return false;
  int64_t bytes = lt_cuda_sizes_product(to, 1, to->ndim) * lt_cuda_item_size(to->dtype);
  uint64_t all = reinterpret_cast<uintptr_t>(j.from) | reinterpret_cast<uintptr_t>(j.to);
  all |= static_cast<uint64_t>(bytes);
  if (all % 16 == 0) return put_units<uint4>(c, j, bytes);
  return all % 4 == 0 ? put_units<uint32_t>(c, j, bytes) : put_units<uint8_t>(c, j, bytes);
}

/* (x [P, ...], source [N, ...], rows [N]) */
LT_CUDA_KERNEL(rows_put) {
  lt_view base, out, source, index, to, from;
  if (!lt_cuda_view_dims(c, call->in[0], &base) || !lt_cuda_view_dims(c, call->out[0], &out))
    return false;
  if (lt_cuda_args<lt_args_rows_put>(call)->accumulate)
    return spread(c, call, &base, call->in[1], call->in[2], 0, LT_NO_INDEX);
  if (!lt_cuda_view_dims(c, call->in[1], &source) || !lt_cuda_view_dims(c, call->in[2], &index) ||
      !fits(c, out.size[0], index.size[0], 0))
    return false;
  uint32_t *keys = row_keys(c, call, &index, out.size[0], LT_NO_INDEX);
  if (keys == nullptr || lt_cuda_numel(&out) == 0) return keys != nullptr;
  return lt_cuda_row_major(c, &source, out.dtype, &from) &&
         lt_cuda_result(c, &out, out.dtype, &to) && lt_cuda_move(c, &to, &base) &&
         put(c, &to, &from, keys, index.size[0]) && lt_cuda_deliver(c, &out, &to);
}

/* Lines of an index along a dim: operand 0 is the result, 1 the source, 2 the index. */
typedef struct line_job {
  lt_cuda_iter it;
  int64_t step[3]; /* along the dim, in elements */
  int64_t n, length;
  int item[3];
  lt_cuda_blame blame;
} line_job;

/* Of integers through unsigned: signed overflow is undefined, and torch wraps. */
template <class T> static __device__ inline T add(T a, T b) { return a + b; }
template <> __device__ inline int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

/* One thread a line: another line has other places. */
template <class T> static __global__ void add_lines(LT_CONSTANT line_job j) {
  uint32_t n = lt_thread();
  int32_t at[3];
  if (n >= j.it.numel) return;
  lt_places<3>(j.it, n, at);
  T *to = reinterpret_cast<T *>(j.it.o[0].data) + at[0];
  for (int64_t l = 0; l < j.length; l++) {
    const char *index = j.it.o[2].data + l * j.step[2] * j.item[2];
    int64_t k = lt_index_at(index, j.it.o[2].dtype, at[2], j.n, j.blame);
    if (k < 0) continue;
    T v = lt_load<T>(j.it.o[1].data + l * j.step[1] * j.item[1], j.it.o[1].dtype, at[1]);
    to[k * j.step[0]] = add(to[k * j.step[0]], v);
  }
}

typedef struct line_plan {
  lt_ctx *c;
  line_job j;
  int compute;
} line_plan;

static bool issue_lines(void *ud, const lt_cuda_iter *it) {
  line_plan *p = static_cast<line_plan *>(ud);
  unsigned blocks = lt_cuda_blocks(it->numel);
  p->j.it = *it;
  if (p->compute == LT_CUDA_F64)
    return lt_cuda_grid(p->c, add_lines<double>, blocks, LT_CUDA_THREADS, 0, p->j);
  if (p->compute == LT_CUDA_I64)
    return lt_cuda_grid(p->c, add_lines<int64_t>, blocks, LT_CUDA_THREADS, 0, p->j);
  return lt_cuda_grid(p->c, add_lines<float>, blocks, LT_CUDA_THREADS, 0, p->j);
}

/* For short lines, and for many: each thread adds in the order of the index, without a sort. */
static bool scatter_lines(lt_ctx *c, const lt_call *call, const lt_view *out, const lt_view *x,
                          const lt_view *index, const lt_view *source, int64_t dim) {
  line_plan p = {c, {}, lt_cuda_compute(out->dtype)};
  lt_cuda_walk w;
  lt_view to, v[3];
  if (!lt_cuda_result(c, out, lt_cuda_own(out->dtype), &to) || !lt_cuda_move(c, &to, x) ||
      !lt_cuda_blame_of(c, call, &p.j.blame))
    return false;
  v[0] = to, v[1] = *source, v[2] = *index;
  lt_view over = *index;
  over.size[dim] = 1;
  for (int k = 0; k < 3; k++) {
    p.j.step[k] = v[k].stride[dim];
    p.j.item[k] = static_cast<int>(lt_cuda_item_size(v[k].dtype));
    for (int d = 0; d < over.ndim; d++) v[k].size[d] = over.size[d];
  }
  p.j.n = out->size[dim];
  p.j.length = index->size[dim];
  lt_cuda_walk_make(&w, &over, 3, v);
  return lt_cuda_pieces(&w, issue_lines, &p) && lt_cuda_deliver(c, out, &to);
}

/* (x, index, source), of which x and source may be larger than the index. Short lines, or many: a
   thread each. Else keys are element numbers of the result, and all contributions are sorted at
   once. */
LT_CUDA_KERNEL(scatter_add) {
  int64_t dim = lt_cuda_args<lt_args_scatter_add>(call)->dim;
  lt_view out, x, index, source;
  if (!lt_cuda_view_dims(c, call->out[0], &out) || !lt_cuda_view_dims(c, call->in[0], &x) ||
      !lt_cuda_view_dims(c, call->in[1], &index) || !lt_cuda_view_dims(c, call->in[2], &source))
    return false;
  int64_t n = lt_cuda_numel(&index), rows = lt_cuda_numel(&out), stride[LT_MAX_DIMS], step = 1;
  if (n == 0) return lt_cuda_move(c, &out, &x);
  int64_t length = index.size[dim]; /* many lines keep a GPU busy with a thread each */
  if (length <= SHORT_LINE || n / length >= LINES_ENOUGH * length)
    return scatter_lines(c, call, &out, &x, &index, &source, dim);
  key_plan p = {};
  for (int d = out.ndim - 1; d >= 0; d--) {
    stride[d] = d == dim ? 0 : step;
    if (d == dim) p.j.step = step;
    step *= out.size[d];
  }
  p.j.n = out.size[dim];
  p.j.none = rows;
  p.j.skip = LT_NO_INDEX;
  if (!fits(c, rows, n, 1)) return false;
  uint32_t *keys = keys_of(c, call, &index, &p, stride);
  if (keys == nullptr || rows == 0) return keys != nullptr;
  for (int d = 0; d < index.ndim; d++) source.size[d] = index.size[d];
  return sum(c, &out, &x, &source, keys, 1, rows, n);
}
