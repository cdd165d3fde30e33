/* runtime/cpu/layer_norm.c: rows brought to mean 0 and variance 1, and the derivative; rms_norm is
   the same with a mean of 0 and no bias.

   Nothing but x is kept for backward: a row's moments are found again while it is in the cache.
   Gradients of weight and bias are summed per chunk of rows, then over the chunks in order. */
#include <math.h>
#include <string.h>

#include "cpu/lanes.h"
#include "cpu/scratch.h"

typedef struct job {
  bool wide, back;
  bool centred; /* the mean is taken off */
  int64_t rows, width;
  int64_t each, chunks; /* rows a chunk */
  double eps;
  const void *x, *g, *weight, *bias;
  void *y;
  void *partial, *weight_grad, *bias_grad;
} job;

#define TYPE_FILE "cpu/layer_norm_type.h"
#include "cpu/float_types.h"

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * j->each, to = from + j->each < j->rows ? from + j->each : j->rows;
  if (j->back)
    (j->wide ? backward_f64 : backward_f32)(j, chunk, from, to);
  else
    (j->wide ? forward_f64 : forward_f32)(j, from, to);
}

static void run_gather(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * LT_TILE, to = from + LT_TILE < j->width ? from + LT_TILE : j->width;
  (j->wide ? gather_f64 : gather_f32)(j, from, to);
}

static job plan(const lt_tensor *x, const lt_sizes *shape, double eps, bool centred) {
  job j = {.wide = x->dtype == LT_F64, .width = 1, .eps = eps, .centred = centred};
  for (int k = 0; k < shape->n; k++) j.width *= shape->size[k];
  j.rows = j.width > 0 ? x->numel / j.width : 0;
  j.each = j.width > 0 && j.width < LT_CHUNK ? LT_CHUNK / j.width : 1;
  if (j.each > 256) j.each = 256; /* sums over a chunk are in the compute type */
  j.chunks = (j.rows + j.each - 1) / j.each;
  return j;
}

/* Values of an input in the compute type; NULL when absent or on failure. */
static const void *values(lt_ctx *c, const lt_call *call, int k, lt_dtype dtype) {
  lt_tensor *t = call->n_in > k ? lt_cpu_contiguous(c, call->in[k], dtype) : NULL;
  return t != NULL ? lt_data(t) : NULL;
}

static bool run_forward(lt_ctx *c, const lt_call *call, job j) {
  lt_tensor *y = call->out[0];
  if (y->numel == 0) return true;
  lt_dtype dtype = j.wide ? LT_F64 : LT_F32;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *to = lt_cpu_result(c, y, dtype, NULL);
  j.x = values(c, call, 0, dtype);
  j.weight = values(c, call, 1, dtype);
  j.bias = values(c, call, 2, dtype);
  if (to != NULL && lt_ok(c)) {
    j.y = lt_data(to);
    lt_parallel(c, j.chunks, run_chunk, &j);
    if (to != y) lt_cpu_move(c, y, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

LT_KERNEL(layer_norm) {
  const lt_args_layer_norm *a = call->args;
  return run_forward(c, call, plan(call->in[0], &a->normalized_shape, a->eps, true));
}

LT_KERNEL(rms_norm) {
  const lt_args_rms_norm *a = call->args;
  return run_forward(c, call, plan(call->in[0], &a->normalized_shape, a->eps.f, false));
}

/* (gradient, x, weight) to gradients of x and, with a weight, of weight and bias. */
static bool run_backward(lt_ctx *c, const lt_call *call, job j) {
  lt_tensor *const *y = call->out, *to[3] = {NULL};
  lt_dtype dtype = j.wide ? LT_F64 : LT_F32;
  lt_frame frame = lt_frame_open(c);
  j.back = true;
  j.g = values(c, call, 0, dtype);
  j.x = values(c, call, 1, dtype);
  j.weight = values(c, call, 2, dtype);
  for (int k = 0; k < call->n_out; k++) to[k] = lt_cpu_result(c, y[k], dtype, NULL);
  if (call->n_out > 1) j.partial = lt_cpu_scratch(c, dtype, 2 * j.width * j.chunks);
  if (lt_ok(c)) {
    j.y = lt_data(to[0]);
    lt_parallel(c, j.chunks, run_chunk, &j);
    if (call->n_out > 1) {
      j.weight_grad = lt_data(to[1]);
      if (j.centred) j.bias_grad = lt_data(to[2]);
      lt_parallel(c, (j.width + LT_TILE - 1) / LT_TILE, run_gather, &j);
    }
    for (int k = 0; k < call->n_out; k++)
      if (to[k] != y[k]) lt_cpu_move(c, y[k], to[k]);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

LT_KERNEL(layer_norm_backward) {
  const lt_args_layer_norm_backward *a = call->args;
  return run_backward(c, call, plan(call->in[1], &a->normalized_shape, a->eps, true));
}

LT_KERNEL(rms_norm_backward) {
  const lt_args_rms_norm_backward *a = call->args;
  return run_backward(c, call, plan(call->in[1], &a->normalized_shape, a->eps.f, false));
}
