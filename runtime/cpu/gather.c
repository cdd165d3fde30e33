/* runtime/cpu/gather.c: gather, and its gradient scatter_add: one element of a line for each index.

   A line belongs to one chunk and is worked off in order: sums do not depend on threads.

   Within a line several indices may name one element, whose contributions are added in the order of
   the index; two lines never meet. Atomic additions would add in another order in each run. */
#include "cpu/index.h"

/* Lines of an index tensor along `dim`: element l of line q chooses within line q of x. `other` is
   what is written by gather and read by scatter_add. */

typedef struct line_job {
  const int64_t *index;
  char *x, *other;
  int64_t n, lines, per_chunk;                 /* elements of a line, lines */
  int ndim;                                    /* dims other than `dim` */
  int64_t size[LT_MAX_DIMS];
  int64_t index_stride[LT_MAX_DIMS], x_stride[LT_MAX_DIMS], other_stride[LT_MAX_DIMS];
  int64_t index_step, x_step, other_step;      /* along `dim` */
  size_t item;
  lt_dtype dtype;
} line_job;

static line_job line_job_of(const lt_tensor *index, const int64_t *values, const lt_tensor *x,
                            const lt_tensor *other, int64_t dim) {
  line_job j = {.index = values, .x = lt_data(x), .other = lt_data(other), .n = index->size[dim],
                .lines = 1, .x_step = x->stride[dim], .other_step = other->stride[dim],
                .item = lt_item_size(x), .dtype = (lt_dtype)x->dtype};
  int64_t stride[LT_MAX_DIMS];
  lt_shape_strides(lt_tensor_shape(index), stride);
  j.index_step = stride[dim];
  for (int k = 0; k < index->ndim; k++) {
    if (k == dim) continue;
    j.index_stride[j.ndim] = stride[k];
    j.x_stride[j.ndim] = x->stride[k];
    j.other_stride[j.ndim] = other->stride[k];
    j.lines *= j.size[j.ndim++] = index->size[k];
  }
  j.per_chunk = lt_rows_per_chunk(j.n);
  return j;
}

typedef struct line {
  const int64_t *index;
  int64_t x, other; /* offsets in elements */
} line;

/* Once a line: dividing costs more than the elements of a short one. */
static line line_at(const line_job *j, int64_t q) {
  line at = {.index = j->index};
  for (int k = j->ndim - 1; k >= 0; k--) {
    int64_t i = q % j->size[k];
    q /= j->size[k];
    at.index += i * j->index_stride[k];
    at.x += i * j->x_stride[k];
    at.other += i * j->other_stride[k];
  }
  return at;
}

/* Copies go by the size of an element, not by its dtype: four loops serve eleven types. */
#define GATHER(T)                                                              \
  {                                                                            \
    const T *x = (const T *)(const void *)j->x + at.x;                         \
    T *y = (T *)(void *)j->other + at.other;                                   \
    for (int64_t l = 0; l < j->n; l++)                                         \
      y[l * j->other_step] = x[at.index[l * j->index_step] * j->x_step];       \
  }
#define SCATTER(T)                                                             \
  {                                                                            \
    T *x = (T *)(void *)j->x + at.x;                                           \
    const T *src = (const T *)(const void *)j->other + at.other;               \
    for (int64_t l = 0; l < j->n; l++)                                         \
      x[at.index[l * j->index_step] * j->x_step] += src[l * j->other_step];    \
  }

static void gather_chunk(void *ud, int64_t chunk) {
  const line_job *j = ud;
  int64_t from = chunk * j->per_chunk, to = from + j->per_chunk;
  for (int64_t q = from; q < to && q < j->lines; q++) {
    line at = line_at(j, q);
    if (j->item == 1) GATHER(uint8_t)
    if (j->item == 2) GATHER(uint16_t)
    if (j->item == 4) GATHER(uint32_t)
    if (j->item == 8) GATHER(uint64_t)
  }
}

static void scatter_chunk(void *ud, int64_t chunk) {
  const line_job *j = ud;
  int64_t from = chunk * j->per_chunk, to = from + j->per_chunk;
  for (int64_t q = from; q < to && q < j->lines; q++) {
    line at = line_at(j, q);
    if (j->dtype == LT_F32) SCATTER(float)
    if (j->dtype == LT_F64) SCATTER(double)
    if (j->dtype == LT_I64) SCATTER(int64_t)
  }
}
#undef GATHER
#undef SCATTER

/* Indices are checked before anything is written: an error leaves the result as it was. */
LT_KERNEL(gather) {
  const lt_args_gather *a = call->args;
  lt_tensor result = lt_with_dims(call->out[0]), *out = &result;
  lt_tensor from = lt_with_dims(call->in[0]), *x = &from, index = lt_with_dims(call->in[1]);
  lt_frame frame = lt_frame_open(c);
  const int64_t *v = LT_CPU(lt_index_values)(c, call->op, &index, x, a->dim);
  lt_tensor *y = lt_cpu_result(c, out, (lt_dtype)x->dtype, NULL);
  if (lt_ok(c) && out->numel > 0) {
    line_job j = line_job_of(&index, v, x, y, a->dim);
    lt_parallel(c, (j.lines + j.per_chunk - 1) / j.per_chunk, gather_chunk, &j);
    if (y != out) lt_cpu_move(c, out, y);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

/* Sums of f16 and bf16 are made in f32 and rounded once; integers in i64. */
LT_KERNEL(scatter_add) {
  const lt_args_scatter_add *a = call->args;
  lt_tensor result = lt_with_dims(call->out[0]), *out = &result;
  lt_tensor at = lt_with_dims(call->in[1]), *index = &at;
  lt_frame frame = lt_frame_open(c);
  lt_dtype dtype = lt_sum_dtype(out);
  const int64_t *v = LT_CPU(lt_index_values)(c, call->op, index, out, a->dim);
  lt_tensor from = lt_with_dims(call->in[2]), *src = &from;
  lt_tensor x = lt_with_dims(call->in[0]);
  if ((lt_dtype)src->dtype != dtype) src = lt_cpu_contiguous(c, src, dtype);
  lt_tensor *y = lt_cpu_result(c, out, dtype, NULL);
  if (lt_ok(c) && lt_cpu_move(c, y, &x) && index->numel > 0) {
    line_job j = line_job_of(index, v, y, src, a->dim);
    lt_parallel(c, (j.lines + j.per_chunk - 1) / j.per_chunk, scatter_chunk, &j);
  }
  if (lt_ok(c) && y != out) lt_cpu_move(c, out, y);
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}
