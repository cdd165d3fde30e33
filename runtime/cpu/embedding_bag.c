/* runtime/cpu/embedding_bag.c: embedding_bag: sums and means of rows of a table, by bags of ids.

   Of halves the rows are collected and widened first, so that the table is not. A bag belongs to
   one chunk and adds its rows in the order of its ids. */
#include "cpu/index.h"

#include <string.h>

/* How many ids ahead of its use a row is asked for: rows lie anywhere in a table that is larger
   than the caches. WIDE columns are added up at a time. */
enum { AHEAD = 12, LINE = 64, WIDE = 64 };

typedef struct job {
  const void *rows, *factors; /* of T: [.., dim], and one for each id; no factors: 1 */
  const int64_t *ids, *row;   /* id of each place, and which of `rows` it has; NULL: its own */
  const int64_t *begins;      /* of each bag; NULL: bags of `size` ids */
  void *to;
  int64_t n, bags, size, dim, per_chunk, skip;
  lt_dtype dtype;
  bool mean;
} job;

static int64_t clamped(int64_t k, int64_t n) { return k < 0 ? 0 : k > n ? n : k; }

/* Places from..to-1 of bag b. Offsets come from the script: clamped, a wrong one gives an empty bag
   and no read outside. */
static void range(const job *j, int64_t b, int64_t *from, int64_t *to) {
  *from = j->begins == NULL ? b * j->size : clamped(j->begins[b], j->n);
  *to = j->begins == NULL ? *from + j->size
        : b + 1 < j->bags ? clamped(j->begins[b + 1], j->n) : j->n;
}

static void prefetch(const char *row, int64_t bytes) {
  for (int64_t k = 0; k < bytes; k += LINE) __builtin_prefetch(row + k);
}

/* Columns at..at+n-1 of bag b, in registers. WIDE sums stay in registers while rows stream past:
   the table is read once and the result written once. */
#define BAG(T)                                                                            \
  static inline void piece_##T(const job *j, int64_t b, int64_t at, int64_t n) {          \
    T sum[WIDE], *to = (T *)j->to + b * j->dim + at;                                      \
    const T *rows = (const T *)j->rows + at, *factors = j->factors;                       \
    int64_t first, end, added = 0;                                                        \
    range(j, b, &first, &end);                                                            \
    for (int64_t e = 0; e < n; e++) sum[e] = 0;                                           \
    for (int64_t k = first; k < end; k++) {                                               \
      const T *x = rows + (j->row != NULL ? j->row[k] : k) * j->dim;                      \
      if (j->row != NULL && k + AHEAD < j->n)                                             \
        prefetch((const char *)(rows + j->row[k + AHEAD] * j->dim), n * (int64_t)sizeof *x); \
      if (j->ids[k] == j->skip) continue;                                                 \
      added++;                                                                            \
      if (factors == NULL)                                                                \
        for (int64_t e = 0; e < n; e++) sum[e] += x[e];                                   \
      else                                                                                \
        for (int64_t e = 0; e < n; e++) sum[e] += x[e] * factors[k];                      \
    }                                                                                     \
    T by = j->mean && added > 1 ? (T)added : 1;                                           \
    for (int64_t e = 0; e < n; e++) to[e] = sum[e] / by;                                  \
  }                                                                                       \
  static void bag_##T(const job *j, int64_t b) {                                          \
    int64_t at = 0;                                                                       \
    for (; at + WIDE <= j->dim; at += WIDE) piece_##T(j, b, at, WIDE);                    \
    if (at < j->dim) piece_##T(j, b, at, j->dim - at);                                    \
  }
BAG(float)
BAG(double)
#undef BAG

static void chunk(void *ud, int64_t number) {
  const job *j = ud;
  int64_t b = number * j->per_chunk, to = b + j->per_chunk;
  for (; b < to && b < j->bags; b++) {
    if (j->dtype == LT_F64) bag_double(j, b);
    if (j->dtype == LT_F32) bag_float(j, b);
  }
}

/* The rows of all ids in a tensor [N, D] of the table's dtype. */
static lt_tensor *collected(lt_ctx *c, lt_tensor *table, const int64_t *ids, int64_t n) {
  lt_tensor *weight = lt_cpu_contiguous(c, table, (lt_dtype)table->dtype);
  lt_tensor *rows = lt_tensor_empty(c, LT_CPU_DEVICE, (lt_dtype)table->dtype, 2,
                                    (int64_t[]){n, table->size[1]});
  if (!lt_ok(c)) return NULL;
  LT_CPU(lt_rows_take)(c, &(lt_rows){.from = lt_data(weight), .to = lt_data(rows), .index = ids,
                                     .outer = 1, .n_from = table->size[0], .n_to = n,
                                     .bytes = table->size[1] * (int64_t)lt_item_size(table)});
  return rows;
}

LT_KERNEL(embedding_bag) {
  const lt_args_embedding_bag *a = call->args;
  lt_tensor *out = call->out[0], *table = call->in[0], *ids = call->in[1];
  lt_frame frame = lt_frame_open(c);
  lt_dtype dtype = lt_sum_dtype(table);
  const int64_t *index = LT_CPU(lt_index_values)(c, call->op, ids, table, 0);
  bool narrow = (lt_dtype)table->dtype != dtype;
  lt_tensor *rows = narrow && lt_ok(c) ? collected(c, table, index, ids->numel) : table;
  if (lt_ok(c)) rows = lt_cpu_contiguous(c, rows, dtype);
  lt_tensor *offsets = call->n_in > 2 ? lt_cpu_contiguous(c, call->in[2], LT_I64) : NULL;
  lt_tensor *factors = call->n_in > 3 ? lt_cpu_contiguous(c, call->in[3], dtype) : NULL;
  lt_tensor *y = lt_cpu_result(c, out, dtype, NULL);
  if (lt_ok(c) && out->numel > 0) {
    job j = {.rows = lt_data(rows), .factors = factors != NULL ? lt_data(factors) : NULL,
             .ids = index, .row = narrow ? NULL : index,
             .begins = offsets != NULL ? lt_data(offsets) : NULL, .to = lt_data(y),
             .n = ids->numel, .bags = out->size[0], .size = ids->numel / out->size[0],
             .dim = out->size[1], .skip = a->padding_idx, .dtype = dtype, .mean = a->mean};
    j.per_chunk = lt_rows_per_chunk(j.dim * (j.size + 1));
    lt_parallel(c, (j.bags + j.per_chunk - 1) / j.per_chunk, chunk, &j);
    if (y != out) lt_cpu_move(c, out, y);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}
