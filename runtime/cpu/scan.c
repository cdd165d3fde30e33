/* runtime/cpu/scan.c: running sums along a dim, forwards and (the gradient) backwards.

   Lines are cut over threads; within a line floats are carried in double.

   A running sum is a chain: element k needs k - 1, so that neither vectors nor threads help within
   a line. In double the error of n additions of f32 values stays below that of storing the
   result. */
#include "cpu/dim_order.h"

typedef struct job {
  lt_iter x, y;
  bool back;
  int64_t count, length;
} job;

static int64_t lines_a_chunk(const job *j) {
  return j->length >= LT_CHUNK ? 1 : LT_CHUNK / j->length;
}

/* One line, tile by tile; backwards from its end. */
#define SCAN(suffix, type, ADD)                                                   \
  static void scan_##suffix(const job *j, int64_t start) {                        \
    type scratch[LT_TILE], sum = 0;                                               \
    int64_t tiles = (j->length + LT_TILE - 1) / LT_TILE;                          \
    for (int64_t t = 0; t < tiles; t++) {                                         \
      int64_t at = (j->back ? tiles - 1 - t : t) * LT_TILE;                       \
      int64_t n = j->length - at < LT_TILE ? j->length - at : LT_TILE;            \
      const type *v = LT_CPU(lt_load_##suffix)(&j->x, 0, start + at, n, scratch); \
      for (int64_t i = 0; i < n; i++) {                                           \
        int64_t k = j->back ? n - 1 - i : i;                                      \
        sum = ADD(sum, v[k]);                                                     \
        scratch[k] = sum;                                                         \
      }                                                                           \
      LT_CPU(lt_put_##suffix)(&j->y, 0, start + at, n, scratch);                  \
    }                                                                             \
  }
#define FLOAT_ADD(a, b) ((a) + (b))
/* Integers wrap: signed overflow is undefined in C, that of unsigned is not. */
#define INT_ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
SCAN(f64, double, FLOAT_ADD)
SCAN(i64, int64_t, INT_ADD)

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t lines = lines_a_chunk(j), from = chunk * lines;
  int64_t to = from + lines < j->count ? from + lines : j->count;
  bool ints = lt_compute_of(j->x.operand[0].dtype) == LT_COMPUTE_I64;
  for (int64_t k = from; k < to; k++) (ints ? scan_i64 : scan_f64)(j, k * j->length);
}

static bool scan(lt_ctx *c, const lt_call *call, int64_t dim, bool back) {
  const lt_tensor *x = call->in[0];
  job j = {.back = back};
  int order[LT_MAX_DIMS], n = 0;
  if (x->numel == 0) return true;
  for (int k = 0; k < x->ndim; k++)
    if (k != dim) order[n++] = k;
  if (x->ndim > 0) order[n++] = (int)dim;
  LT_CPU(lt_iter_dims)(&j.x, x, n, order);
  LT_CPU(lt_iter_dims)(&j.y, call->out[0], n, order);
  j.length = x->ndim > 0 ? x->size[dim] : 1;
  j.count = x->numel / j.length;
  lt_parallel(c, (j.count + lines_a_chunk(&j) - 1) / lines_a_chunk(&j), run_chunk, &j);
  return true;
}

LT_KERNEL(cumsum) { return scan(c, call, ((const lt_args_scan *)call->args)->dim, false); }
LT_KERNEL(cumsum_backward) {
  return scan(c, call, ((const lt_args_scan_backward *)call->args)->dim, true);
}
