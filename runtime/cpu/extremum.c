/* runtime/cpu/extremum.c: the largest and smallest element along a dim and where it is.

   torch.max with a dim gives the first index of the largest value, and NaN beats every number. With
   threads or vectors the "first" must be kept through every join: candidates are compared by value,
   then by index.

   Two loops: along the line where its elements are neighbours in memory (rows), over a tile of
   lines at once where they are not (columns), so that both read memory in order. */
#include <stdlib.h>
#include <string.h>

#include "cpu/dim_order.h"
#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "cpu/scratch.h"

enum { LANES = 16 };

typedef struct job {
  const lt_ctx *c;
  lt_iter x, value, index;
  bool with_value, with_index, least;
  bool columns;  /* the memory runs along the lines' neighbours, not along the lines */
  int64_t count, length;
  lt_compute compute;
} job;

/* Floats as integers: the bits of negative ones are turned; -0 becomes 0. Order of the integers is
   then order of the floats, without a branch, and NaN is above all. Adding 0.0 makes -0 into 0, so
   that both compare equal; IEEE 754's layout makes the rest work. */
static inline int32_t key_f32(float x) {
  int32_t i = (int32_t)lt_bits_f32(x + 0.0f);
  i ^= (int32_t)((uint32_t)(i >> 31) >> 1);
  return x != x ? INT32_MAX : i;
}
static inline int64_t key_f64(double x) {
  int64_t i = (int64_t)lt_bits_f64(x + 0.0);
  i ^= (int64_t)((uint64_t)(i >> 63) >> 1);
  return x != x ? INT64_MAX : i;
}

#define T float
#define IS_NAN(x) ((x) != (x))
#define INDEX int32_t
#define KEY key_f32
#define NAME(f) f##_f32
#include "cpu/extremum_type.h"

#define T double
#define IS_NAN(x) ((x) != (x))
#define INDEX int64_t
#define KEY key_f64
#define NAME(f) f##_f64
#include "cpu/extremum_type.h"

#define T int64_t
#define IS_NAN(x) false
#define INDEX int64_t
#define KEY(x) (x)
#define NAME(f) f##_i64
#include "cpu/extremum_type.h"

/* Lines that one task handles: about LT_CHUNK elements, so that the start of a task is small beside
   its work. */
static int64_t lines_a_chunk(const job *j) {
  return j->columns ? LT_TILE : j->length >= LT_CHUNK ? 1 : LT_CHUNK / j->length;
}

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t lines = lines_a_chunk(j), from = chunk * lines;
  int64_t to = from + lines < j->count ? from + lines : j->count;
  if (j->compute == LT_COMPUTE_F32) (j->columns ? columns_f32 : rows_f32)(j, from, to);
  if (j->compute == LT_COMPUTE_F64) (j->columns ? columns_f64 : rows_f64)(j, from, to);
  if (j->compute == LT_COMPUTE_I64) (j->columns ? columns_i64 : rows_i64)(j, from, to);
}

/* Best of each line of x along `dim` (LT_NO_DIM: of all), into the outputs that are not NULL. */
static bool find(lt_ctx *c, const lt_tensor *x, int64_t dim, bool keepdim, bool least,
                 const lt_tensor *value, const lt_tensor *index) {
  job j = {.c = c, .least = least, .compute = lt_compute_of((lt_dtype)x->dtype)};
  int order[LT_MAX_DIMS], of_out[LT_MAX_DIMS], n = 0;
  bool whole = dim == LT_NO_DIM || x->ndim == 0;
  for (int k = 0; k < x->ndim && !whole; k++)
    if (k != dim && x->size[k] > 1 && llabs(x->stride[k]) < llabs(x->stride[dim])) j.columns = true;
  j.length = whole ? x->numel : x->size[dim];
  j.columns = j.columns && j.length <= INT32_MAX;
  if (j.columns) order[n++] = (int)dim;
  for (int k = 0; k < x->ndim; k++)
    if (whole || k != dim) order[n++] = k;
  if (!whole && !j.columns) order[n++] = (int)dim;
  LT_CPU(lt_iter_dims)(&j.x, x, n, order);
  n = 0;
  for (int k = 0; k < x->ndim && !whole; k++)
    if (k != dim) of_out[n] = keepdim ? k : n, n++;
  j.count = j.length == 0 ? 0 : x->numel / j.length;
  j.with_value = value != NULL;
  j.with_index = index != NULL;
  if (value != NULL) LT_CPU(lt_iter_dims)(&j.value, value, n, of_out);
  if (index != NULL) LT_CPU(lt_iter_dims)(&j.index, index, n, of_out);
  if (j.count == 0) return true;
  lt_parallel(c, (j.count + lines_a_chunk(&j) - 1) / lines_a_chunk(&j), run_chunk, &j);
  return true;
}

static bool arg_reduce(lt_ctx *c, const lt_call *call, bool least) {
  const lt_args_arg_reduce *a = call->args;
  return find(c, call->in[0], a->dim, a->keepdim, least, NULL, call->out[0]);
}
LT_KERNEL(argmax) { return arg_reduce(c, call, false); }
LT_KERNEL(argmin) { return arg_reduce(c, call, true); }

static bool extremum(lt_ctx *c, const lt_call *call, bool least) {
  const lt_args_extremum *a = call->args;
  return find(c, call->in[0], a->dim, a->keepdim, least, call->out[0],
              call->n_out > 1 ? call->out[1] : NULL);
}
LT_KERNEL(max) { return extremum(c, call, false); }
LT_KERNEL(min) { return extremum(c, call, true); }

/* Zeros, and each gradient where its element came from. Each line has one index: no two gradients
   meet, so a store is enough where a scatter would add. */
LT_KERNEL(extremum_backward) {
  const lt_args_extremum_backward *a = call->args;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *y = call->out[0];
  lt_dtype compute = y->dtype == LT_F64 ? LT_F64 : LT_F32;
  lt_tensor *to = lt_cpu_result(c, y, compute, NULL);
  lt_tensor *g = lt_cpu_contiguous(c, call->in[0], compute);
  lt_tensor *index = lt_cpu_contiguous(c, call->in[1], LT_I64);
  bool ok = to != NULL && g != NULL && index != NULL;
  if (ok) {
    int64_t inner = 1, length = y->ndim > 0 ? a->size : 1, n = g->numel;
    for (int k = (int)a->dim + 1; k < y->ndim; k++) inner *= y->size[k];
    memset(lt_data(to), 0, (size_t)to->numel * lt_item_size(to));
    const int64_t *at = lt_data(index);
    for (int64_t i = 0; i < n; i++) {
      int64_t place = (i / inner * length + at[i]) * inner + i % inner;
      if (compute == LT_F64)
        ((double *)lt_data(to))[place] = ((const double *)lt_data(g))[i];
      else
        ((float *)lt_data(to))[place] = ((const float *)lt_data(g))[i];
    }
    ok = to == y || lt_cpu_move(c, y, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}
