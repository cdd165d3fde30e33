/* runtime/cpu/softmax.c: softmax and log_softmax along a dim, and their derivatives.

   The tensor is seen as [outer, length, inner]: rows where inner is 1, else columns. */
#include "cpu/lanes.h"
#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "cpu/scratch.h"

typedef struct job {
  bool log;
  int64_t outer, length, inner;
  int64_t rows, blocks;  /* rows a chunk; blocks of columns an outer index */
  const void *a, *b;     /* x; or gradient and y */
  void *y;
  bool wide;             /* f64 */
} job;

#define TYPE_FILE "cpu/softmax_type.h"
#include "cpu/float_types.h"

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  (j->wide ? chunk_f64 : chunk_f32)(j, chunk);
}

/* Forward has x alone, backward the gradient and y: y, since the derivative is a function of it. */
static bool run(lt_ctx *c, const lt_call *call, int64_t dim, bool log) {
  lt_tensor *y = call->out[0];
  if (y->numel == 0) return true;
  job j = {.log = log, .wide = call->in[0]->dtype == LT_F64, .outer = 1, .length = 1, .inner = 1};
  for (int k = 0; k < y->ndim; k++)
    *(k < dim ? &j.outer : k > dim ? &j.inner : &j.length) *= y->size[k];
  j.rows = j.length < LT_CHUNK / 4 ? LT_CHUNK / 4 / j.length : 1;
  j.blocks = (j.inner + LT_TILE - 1) / LT_TILE;
  lt_dtype dtype = j.wide ? LT_F64 : LT_F32;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *to = lt_cpu_result(c, y, dtype, NULL);
  lt_tensor *a = lt_cpu_contiguous(c, call->in[0], dtype);
  lt_tensor *b = call->n_in > 1 ? lt_cpu_contiguous(c, call->in[1], dtype) : NULL;
  bool ok = to != NULL && a != NULL && (call->n_in < 2 || b != NULL);
  if (ok) {
    j.a = lt_data(a), j.b = b != NULL ? lt_data(b) : NULL, j.y = lt_data(to);
    int64_t chunks = j.inner > 1 ? j.outer * j.blocks : (j.outer + j.rows - 1) / j.rows;
    lt_parallel(c, chunks, run_chunk, &j);
    ok = to == y || lt_cpu_move(c, y, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

LT_KERNEL(softmax) { return run(c, call, ((const lt_args_softmax *)call->args)->dim, false); }
LT_KERNEL(log_softmax) { return run(c, call, ((const lt_args_softmax *)call->args)->dim, true); }
LT_KERNEL(softmax_backward) {
  return run(c, call, ((const lt_args_softmax_backward *)call->args)->dim, false);
}
LT_KERNEL(log_softmax_backward) {
  return run(c, call, ((const lt_args_softmax_backward *)call->args)->dim, true);
}
