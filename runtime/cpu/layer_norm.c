/* runtime/cpu/layer_norm.c: layer_norm and its derivative; rms_norm is the same with a mean of 0
   and no bias, group_norm with a weight of each channel in the row.

   Nothing but x is kept for backward: a row's moments are found again while it is in the cache.
   Gradients of weight and bias are summed per chunk of rows (group_norm: per element of the batch),
   then over these parts in order.

   J. Ba, J. Kiros, G. Hinton, Layer Normalization, 2016; B. Zhang, R. Sennrich, Root Mean Square
   Layer Normalization, 2019; Y. Wu, K. He, Group Normalization, 2018. */
#include <math.h>
#include <string.h>

#include "cpu/lanes.h"
#include "cpu/scratch.h"

typedef struct job {
  bool wide, back;
  bool centred; /* the mean is taken off */
  int64_t rows, width;
  int64_t each, chunks; /* rows a chunk */
  int64_t groups, channels, inner; /* group_norm: in the batch's element, the group, the channel */
  int64_t parts, columns;          /* of the gradients of weight and bias */
  double eps;
  const void *x, *g, *weight, *bias;
  void *y;
  void *partial, *weight_grad, *bias_grad;
} job;

#define TYPE_FILE "cpu/layer_norm_type.h"
#include "cpu/float_types.h"
#define TYPE_FILE "cpu/group_norm_type.h"
#include "cpu/float_types.h"

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * j->each, to = from + j->each < j->rows ? from + j->each : j->rows;
  if (j->back && j->groups > 0)
    (j->wide ? group_backward_f64 : group_backward_f32)(j, from, to);
  else if (j->back)
    (j->wide ? backward_f64 : backward_f32)(j, chunk, from, to);
  else if (j->groups > 0)
    (j->wide ? group_forward_f64 : group_forward_f32)(j, from, to);
  else
    (j->wide ? forward_f64 : forward_f32)(j, from, to);
}

/* Second pass of the gradients of weight and bias: parts of all chunks, added by column. */
static void run_gather(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * LT_TILE, to = from + LT_TILE < j->columns ? from + LT_TILE : j->columns;
  (j->wide ? gather_f64 : gather_f32)(j, from, to);
}

/* `width` elements a row. */
static job plan(const lt_tensor *x, int64_t width, double eps, bool centred) {
  job j = {.wide = x->dtype == LT_F64, .width = width, .eps = eps, .centred = centred};
  j.rows = width > 0 ? x->numel / width : 0;
  /* Chunks of about LT_CHUNK elements, by the shape alone: parts are then joined in an order that
     does not depend on threads. */
  j.each = width > 0 && width < LT_CHUNK ? LT_CHUNK / width : 1;
  if (j.each > 256) j.each = 256; /* sums over a chunk are in the compute type */
  j.parts = j.chunks = (j.rows + j.each - 1) / j.each;
  j.columns = width;
  return j;
}

static int64_t product(const lt_sizes *s) {
  int64_t n = 1;
  for (int k = 0; k < s->n; k++) n *= s->size[k];
  return n;
}

/* A row is a group of an element of the batch, all its channels with their positions. */
static job plan_groups(const lt_tensor *x, const lt_args_group_norm *a) {
  int64_t batch = x->size[0], columns = x->size[1], channels = columns / a->num_groups;
  int64_t inner = batch > 0 ? x->numel / (batch * columns) : 1;
  job j = plan(x, channels * inner, a->eps, true);
  j.groups = a->num_groups;
  j.channels = channels;
  j.inner = inner;
  j.parts = batch;
  j.columns = columns;
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

/* One loop for all: layer norm takes the mean off, RMS norm does not, group norm repeats each
   weight over the positions of its channel. */
LT_KERNEL(layer_norm) {
  const lt_args_layer_norm *a = call->args;
  return run_forward(c, call, plan(call->in[0], product(&a->normalized_shape), a->eps, true));
}

LT_KERNEL(rms_norm) {
  const lt_args_rms_norm *a = call->args;
  return run_forward(c, call, plan(call->in[0], product(&a->normalized_shape), a->eps.f, false));
}

LT_KERNEL(group_norm) {
  return run_forward(c, call, plan_groups(call->in[0], call->args));
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
  if (call->n_out > 1) j.partial = lt_cpu_scratch(c, dtype, 2 * j.columns * j.parts);
  if (lt_ok(c)) {
    j.y = lt_data(to[0]);
    lt_parallel(c, j.chunks, run_chunk, &j);
    if (call->n_out > 1) {
      j.weight_grad = lt_data(to[1]);
      if (j.centred) j.bias_grad = lt_data(to[2]);
      lt_parallel(c, (j.columns + LT_TILE - 1) / LT_TILE, run_gather, &j);
    }
    for (int k = 0; k < call->n_out; k++)
      if (to[k] != y[k]) lt_cpu_move(c, y[k], to[k]);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

LT_KERNEL(layer_norm_backward) {
  const lt_args_layer_norm_backward *a = call->args;
  return run_backward(c, call, plan(call->in[1], product(&a->normalized_shape), a->eps, true));
}

LT_KERNEL(rms_norm_backward) {
  const lt_args_rms_norm_backward *a = call->args;
  return run_backward(c, call, plan(call->in[1], product(&a->normalized_shape), a->eps.f, false));
}

LT_KERNEL(group_norm_backward) {
  return run_backward(c, call, plan_groups(call->in[1], call->args));
}
