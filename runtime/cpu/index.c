/* runtime/cpu/index.c: index_select and its gradient: rows chosen by index, and added up again.

   Sums have one order whatever the number of threads: contributions to a place are added by their
   position in the index, and a place belongs to one chunk. */
#include "cpu/index.h"

#include <string.h>

const int64_t *LT_CPU(lt_index_values)(lt_ctx *c, int op, lt_tensor *index, const lt_tensor *x,
                                       int64_t dim) {
  lt_tensor *t = lt_cpu_contiguous(c, index, LT_I64);
  if (t == NULL) return NULL;
  const int64_t *v = lt_data(t);
  int64_t n = x->size[dim];
  int bad = 0;
  /* Without a branch, so that it vectorises; unsigned, so that one comparison finds negative ones
     too. Which one it was is looked for only when there is one. */
  for (int64_t k = 0; k < t->numel; k++) bad |= (uint64_t)v[k] >= (uint64_t)n;
  if (!bad) return v;
  int64_t k = 0;
  while (v[k] >= 0 && v[k] < n) k++;
  if (n == 0)
    lt_fail_value(c, v[k], n, "%s: index %lld into an empty dim (dim %lld of %s)", lt_ops[op].name,
                  (long long)v[k], (long long)dim + 1, LT_TENSOR_STR(x));
  else
    lt_fail_value(c, v[k], n, "%s: index %lld is out of 0..%lld (dim %lld of %s)", lt_ops[op].name,
                  (long long)v[k], (long long)n - 1, (long long)dim + 1, LT_TENSOR_STR(x));
  return NULL;
}

static int64_t product(const lt_tensor *t, int64_t from, int64_t to) {
  int64_t n = 1;
  for (int64_t k = from; k < to; k++) n *= t->size[k];
  return n;
}

/* Whole rows. */

typedef struct take_job {
  lt_rows r;
  int64_t per_chunk;
} take_job;

/* n rows of one outer position. */
static void take_run(char *d, const char *s, const int64_t *index, int64_t n, int64_t bytes) {
  /* A copy of a known size is one instruction; memcpy of an unknown one is a call. */
  if (bytes == 4)
    for (int64_t k = 0; k < n; k++) memcpy(d + k * 4, s + index[k] * 4, 4);
  else if (bytes == 8)
    for (int64_t k = 0; k < n; k++) memcpy(d + k * 8, s + index[k] * 8, 8);
  else
    for (int64_t k = 0; k < n; k++) memcpy(d + k * bytes, s + index[k] * bytes, (size_t)bytes);
}

static void take_chunk(void *ud, int64_t chunk) {
  const take_job *j = ud;
  const lt_rows *r = &j->r;
  int64_t total = r->outer * r->n_to, row = chunk * j->per_chunk, to = row + j->per_chunk;
  if (to > total) to = total;
  while (row < to) {
    int64_t o = row / r->n_to, k = row - o * r->n_to, n = r->n_to - k;
    if (n > to - row) n = to - row;
    take_run(r->to + row * r->bytes, r->from + o * r->n_from * r->bytes, r->index + k, n, r->bytes);
    row += n;
  }
}

/* outer blocks of n_from rows of `bytes` bytes each: rows of any dtype are copied as bytes. */
void LT_CPU(lt_rows_take)(lt_ctx *c, const lt_rows *r) {
  take_job j = {.r = *r, .per_chunk = lt_rows_per_chunk(r->bytes / 4)};
  int64_t total = r->outer * r->n_to;
  lt_parallel(c, (total + j.per_chunk - 1) / j.per_chunk, take_chunk, &j);
}

LT_KERNEL(index_select) {
  const lt_args_index_select *a = call->args;
  lt_tensor result = lt_with_dims(call->out[0]), *out = &result, source = lt_with_dims(call->in[0]);
  lt_frame frame = lt_frame_open(c);
  lt_tensor *x = lt_cpu_contiguous(c, &source, (lt_dtype)source.dtype);
  const int64_t *index = LT_CPU(lt_index_values)(c, call->op, call->in[1], &source, a->dim);
  lt_tensor *y = lt_cpu_result(c, out, (lt_dtype)source.dtype, NULL);
  if (lt_ok(c)) {
    const lt_rows r = {.from = lt_data(x), .to = lt_data(y), .index = index,
                       .outer = product(x, 0, a->dim), .n_from = x->size[a->dim],
                       .n_to = out->size[a->dim],
                       .bytes = product(x, a->dim + 1, x->ndim) * (int64_t)lt_item_size(x)};
    LT_CPU(lt_rows_take)(c, &r);
    if (y != out) lt_cpu_move(c, out, y);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

/* Sums of rows: for each o, row i of the result gets the rows k of `from` with index[k] == i.
   `order` lists the k of each row: order[start[i]..start[i + 1] - 1], rising. */

typedef struct add_rows_job {
  const void *from;
  void *to;
  const int64_t *start, *order;
  int64_t outer, rows, n, inner, per_chunk;
  lt_dtype dtype;
  bool keep; /* add to what is there */
} add_rows_job;

#define ADD_ROWS(T)                                                                   \
  static void add_rows_##T(const add_rows_job *j, int64_t o, int64_t i) {             \
    T *to = (T *)j->to + (o * j->rows + i) * j->inner;                                \
    const T *from = (const T *)j->from + o * j->n * j->inner;                         \
    if (j->inner == 1) {                                                              \
      T sum = j->keep ? *to : 0;                                                      \
      for (int64_t k = j->start[i]; k < j->start[i + 1]; k++) sum += from[j->order[k]]; \
      *to = sum;                                                                      \
      return;                                                                         \
    }                                                                                 \
    if (!j->keep) memset(to, 0, (size_t)j->inner * sizeof *to);                       \
    for (int64_t k = j->start[i]; k < j->start[i + 1]; k++) {                         \
      const T *s = from + j->order[k] * j->inner;                                     \
      for (int64_t e = 0; e < j->inner; e++) to[e] += s[e];                           \
    }                                                                                 \
  }
ADD_ROWS(float)
ADD_ROWS(double)
ADD_ROWS(int64_t)
#undef ADD_ROWS

static void add_rows_chunk(void *ud, int64_t chunk) {
  const add_rows_job *j = ud;
  int64_t from = chunk * j->per_chunk, to = from + j->per_chunk, total = j->outer * j->rows;
  if (to > total) to = total;
  int64_t o = from / j->rows, i = from % j->rows;
  for (int64_t row = from; row < to; row++, i++) {
    if (i == j->rows) o++, i = 0;
    if (j->dtype == LT_F32) add_rows_float(j, o, i);
    if (j->dtype == LT_F64) add_rows_double(j, o, i);
    if (j->dtype == LT_I64) add_rows_int64_t(j, o, i);
  }
}

/* Sort positions by their row, keeping their order (counting). Those of row `skip` are left out. A
   counting sort (D. Knuth, The Art of Computer Programming, volume 3, section 5.2): stable, which
   is what keeps sums in the order of the index. */
static bool sort_positions(lt_ctx *c, add_rows_job *j, const int64_t *index, int64_t skip) {
  int64_t *start = lt_cpu_scratch(c, LT_I64, j->rows + 2);
  int64_t *order = lt_cpu_scratch(c, LT_I64, j->n);
  if (!lt_ok(c)) return false;
  memset(start, 0, (size_t)(j->rows + 2) * sizeof *start);
  for (int64_t k = 0; k < j->n; k++)
    if (index[k] != skip) start[index[k] + 2]++;
  for (int64_t i = 2; i < j->rows + 2; i++) start[i] += start[i - 1];
  for (int64_t k = 0; k < j->n; k++) /* start[i + 1]: where the next k of row i goes */
    if (index[k] != skip) order[start[index[k] + 1]++] = k;
  j->start = start;
  j->order = order;
  return true;
}

/* out = base (zeros when NULL) + rows of g at `index` along `dim`. A scatter with additions turned
   around: for each row of the result the list of its contributions, found by sorting. Threads own
   rows of the result, so no additions need be atomic, and their order is fixed. */
static bool add_rows(lt_ctx *c, const lt_call *call, lt_tensor *base, lt_tensor *g,
                     lt_tensor *index, int64_t dim, int64_t skip) {
  lt_tensor result = lt_with_dims(call->out[0]), *out = &result, parts = lt_with_dims(g);
  lt_frame frame = lt_frame_open(c);
  lt_dtype dtype = lt_sum_dtype(out);
  const int64_t *v = LT_CPU(lt_index_values)(c, call->op, index, out, dim);
  lt_tensor *from = lt_cpu_contiguous(c, &parts, dtype);
  lt_tensor *to = lt_cpu_result(c, out, dtype, NULL);
  if (lt_ok(c) && out->numel > 0) {
    add_rows_job j = {.from = lt_data(from), .to = lt_data(to), .outer = product(out, 0, dim),
                      .rows = out->size[dim], .n = from->size[dim], .dtype = dtype,
                      .inner = product(out, dim + 1, out->ndim), .keep = base != NULL};
    j.per_chunk = lt_rows_per_chunk(j.inner);
    if ((base == NULL || lt_cpu_move(c, to, base)) && sort_positions(c, &j, v, skip))
      lt_parallel(c, (j.outer * j.rows + j.per_chunk - 1) / j.per_chunk, add_rows_chunk, &j);
    if (to != out) lt_cpu_move(c, out, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

LT_KERNEL(index_select_backward) {
  const lt_args_index_select_backward *a = call->args;
  return add_rows(c, call, NULL, call->in[0], call->in[1], a->dim, a->skip);
}

/* Rows written one after the other: of several for one place the last stays. */
LT_KERNEL(rows_put) {
  const lt_args_rows_put *a = call->args;
  if (a->accumulate)
    return add_rows(c, call, call->in[0], call->in[1], call->in[2], 0, LT_NO_INDEX);
  lt_tensor *out = call->out[0];
  lt_frame frame = lt_frame_open(c);
  const int64_t *rows = LT_CPU(lt_index_values)(c, call->op, call->in[2], out, 0);
  lt_tensor *from = lt_cpu_contiguous(c, call->in[1], (lt_dtype)out->dtype);
  lt_tensor *to = lt_cpu_result(c, out, (lt_dtype)out->dtype, NULL);
  if (lt_ok(c) && lt_cpu_move(c, to, call->in[0])) {
    size_t bytes = (size_t)product(out, 1, out->ndim) * lt_item_size(out);
    for (int64_t k = 0; k < from->size[0]; k++)
      memcpy((char *)lt_data(to) + (size_t)rows[k] * bytes,
             (const char *)lt_data(from) + (size_t)k * bytes, bytes);
    if (to != out) lt_cpu_move(c, out, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

/* Several indices as one, row-major over the indexed dims. Negative ones count from the end. */
LT_KERNEL(index_flatten) {
  const lt_args_index_flatten *a = call->args;
  lt_tensor *out = call->out[0];
  int64_t *list = lt_data(out), tile[LT_TILE];
  memset(list, 0, (size_t)out->numel * sizeof *list);
  for (int k = 0; k < call->n_in; k++) {
    lt_iter it;
    lt_tensor *operands[2] = {out, call->in[k]};
    LT_CPU(lt_iter_make)(&it, lt_tensor_shape(out), 2, operands);
    int64_t n = a->full.size[a->dims.dim[k]];
    for (int64_t at = 0; at < out->numel; at += LT_TILE) {
      int64_t count = out->numel - at < LT_TILE ? out->numel - at : LT_TILE;
      const int64_t *v = LT_CPU(lt_load_i64)(&it, 1, at, count, tile);
      for (int64_t e = 0; e < count; e++) {
        if (v[e] < -n || v[e] >= n)
          return lt_fail_value(c, v[e], n, "index: %lld is out of %lld..%lld (dim %lld of %s)",
                               (long long)v[e], (long long)-n, (long long)n - 1,
                               (long long)a->dims.dim[k] + 1,
                               LT_SHAPE_STR(lt_shape_of(a->full.n, a->full.size)));
        list[at + e] = list[at + e] * n + (v[e] < 0 ? v[e] + n : v[e]);
      }
    }
  }
  return true;
}
