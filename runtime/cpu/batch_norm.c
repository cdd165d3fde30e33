/* runtime/cpu/batch_norm.c: batch normalization and its derivative.

   Channels lie in planes (row-major [N, C, ...]): a chunk is a channel, done while in the cache. Or
   side by side (channels-last strides, [N, C]): blocks of rows, whose moments are joined in order.
   Both ways depend on the shape and strides alone.

   S. Ioffe, C. Szegedy, Batch Normalization, 2015. Moments of blocks are joined as T. Chan, G.
   Golub and R. LeVeque do (1979). */
#include <math.h>
#include <string.h>

#include "cpu/lanes.h"
#include "cpu/scratch.h"

/* CARRY: terms that are added up in the compute type before they go to double: 32 of f32 lose 5 of
   24 bits at most. ROWS: of a block, so that its second pass finds it in the cache. */
enum { CARRY = 32, ROWS = 512 };

typedef struct job {
  bool wide, fixed; /* f64; statistics are inputs */
  bool planes;
  int64_t outer, channels, inner; /* side by side: outer rows, inner 1 */
  int64_t each, blocks, tiles;    /* side by side: rows a block, blocks, tiles of channels */
  double eps;
  const void *x, *g, *weight, *bias; /* g: backward */
  double *mean, *variance;
  void *y, *weight_grad, *bias_grad;
  double *partial; /* [blocks][2][channels] */
  void *factors;   /* [channels][3] */
} job;

#define TYPE_FILE "cpu/batch_norm_type.h"
#include "cpu/float_types.h"

static void run_plane(void *ud, int64_t c) {
  const job *j = ud;
  if (j->g == NULL)
    (j->wide ? plane_forward_f64 : plane_forward_f32)(j, c);
  else
    (j->wide ? plane_backward_f64 : plane_backward_f32)(j, c);
}

typedef struct block {
  int64_t row, from, to, channel, n;
} block;

static block block_of(const job *j, int64_t chunk) {
  block b = {.row = chunk / j->tiles, .channel = chunk % j->tiles * LT_TILE};
  b.from = b.row * j->each;
  b.to = b.from + j->each < j->outer ? b.from + j->each : j->outer;
  b.n = j->channels - b.channel < LT_TILE ? j->channels - b.channel : LT_TILE;
  return b;
}

static void run_sums(void *ud, int64_t chunk) {
  const job *j = ud;
  block b = block_of(j, chunk);
  if (j->g == NULL)
    (j->wide ? block_moments_f64 : block_moments_f32)(j, b.row, b.from, b.to, b.channel, b.n);
  else
    (j->wide ? block_products_f64 : block_products_f32)(j, b.row, b.from, b.to, b.channel, b.n);
}

static void run_apply(void *ud, int64_t chunk) {
  const job *j = ud;
  block b = block_of(j, chunk);
  (j->wide ? block_apply_f64 : block_apply_f32)(j, b.from, b.to, b.channel, b.n);
}

/* Planes: a task does all of a channel. Side by side: moments of blocks, joined in order, then the
   application: x is read twice, since every result depends on all rows. */
static bool run(lt_ctx *c, job *j) {
  int64_t work = j->outer * j->channels * j->inner;
  if (j->planes) {
    lt_parallel_work(c, work, j->channels, run_plane, j);
    return true;
  }
  j->partial = lt_cpu_scratch(c, LT_F64, 2 * j->blocks * j->channels);
  j->factors = lt_cpu_scratch(c, LT_F64, 3 * j->channels);
  if (!lt_ok(c)) return false;
  if (j->g != NULL || !j->fixed) {
    lt_parallel_work(c, work, j->blocks * j->tiles, run_sums, j);
    for (int64_t k = 0; k < j->channels; k++) (j->wide ? join_f64 : join_f32)(j, k);
  }
  lt_parallel_work(c, work, j->blocks * j->tiles, run_apply, j);
  return true;
}

/* Sizes, and the strides in which x is read (row-major, or its own where channels come last). The
   number of the blocks depends on the shape alone, never on the threads. */
static job plan(const lt_tensor *x, double eps, const int64_t **stride) {
  job j = {.wide = x->dtype == LT_F64,
           .outer = x->size[0],
           .channels = x->size[1],
           .inner = 1,
           .eps = eps};
  for (int k = 2; k < x->ndim; k++) j.inner *= x->size[k];
  bool last = !x->contiguous && lt_channels_last(x);
  j.planes = j.inner > 1 && !last;
  *stride = last ? x->stride : NULL;
  if (j.planes) return j;
  j.outer *= j.inner;
  j.inner = 1;
  j.each = ROWS;
  j.blocks = (j.outer + ROWS - 1) / ROWS;
  j.tiles = (j.channels + LT_TILE - 1) / LT_TILE;
  return j;
}

static const void *values(lt_ctx *c, const lt_call *call, int k, lt_dtype dtype) {
  lt_tensor *t = call->n_in > k ? lt_cpu_contiguous(c, call->in[k], dtype) : NULL;
  return t != NULL ? lt_data(t) : NULL;
}

/* Statistics in double, in memory of their own. */
static double *statistics(lt_ctx *c, lt_tensor *t, int64_t n) {
  double *v = lt_cpu_scratch(c, LT_F64, n);
  lt_tensor *from = t != NULL ? lt_cpu_contiguous(c, t, LT_F64) : NULL;
  if (v != NULL && from != NULL) memcpy(v, lt_data(from), (size_t)n * sizeof *v);
  return v;
}

static void store(lt_ctx *c, lt_tensor *out, const double *v) {
  lt_tensor *t = lt_cpu_result(c, out, LT_F64, NULL);
  if (t == NULL) return;
  memcpy(lt_data(t), v, (size_t)t->numel * sizeof *v);
  if (t != out) lt_cpu_move(c, out, t);
}

/* (x, weight, bias, mean, variance) to y, and to mean and variance where they are not inputs. */
LT_KERNEL(batch_norm) {
  const lt_args_batch_norm *a = call->args;
  lt_tensor *x = call->in[0], *y = call->out[0];
  const int64_t *stride;
  job j = plan(x, a->eps, &stride);
  lt_dtype dtype = j.wide ? LT_F64 : LT_F32;
  lt_frame frame = lt_frame_open(c);
  j.fixed = call->n_out == 1;
  j.mean = statistics(c, j.fixed ? call->in[3] : NULL, j.channels);
  j.variance = statistics(c, j.fixed ? call->in[4] : NULL, j.channels);
  lt_tensor *from = lt_cpu_laid_out(c, x, dtype, stride);
  lt_tensor *to = lt_cpu_result(c, y, dtype, stride);
  j.weight = values(c, call, 1, dtype);
  j.bias = values(c, call, 2, dtype);
  if (lt_ok(c) && y->numel > 0) {
    j.x = lt_data(from), j.y = lt_data(to);
    if (run(c, &j) && to != y) lt_cpu_move(c, y, to);
  }
  if (lt_ok(c) && !j.fixed) {
    for (int64_t k = 0; k < j.channels && y->numel == 0; k++) j.mean[k] = j.variance[k] = NAN;
    store(c, call->out[1], j.mean);
    store(c, call->out[2], j.variance);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

/* (gradient, x, mean, variance, weight) to gradients of x, weight, bias. */
LT_KERNEL(batch_norm_backward) {
  const lt_args_batch_norm_backward *a = call->args;
  lt_tensor *x = call->in[1], *const *y = call->out, *to[3];
  const int64_t *stride;
  job j = plan(x, a->eps, &stride);
  lt_dtype dtype = j.wide ? LT_F64 : LT_F32;
  lt_frame frame = lt_frame_open(c);
  j.fixed = a->fixed;
  lt_tensor *g = lt_cpu_laid_out(c, call->in[0], dtype, stride);
  lt_tensor *from = lt_cpu_laid_out(c, x, dtype, stride);
  j.mean = statistics(c, call->in[2], j.channels);
  j.variance = statistics(c, call->in[3], j.channels);
  j.weight = values(c, call, 4, dtype);
  for (int k = 0; k < 3; k++) to[k] = lt_cpu_result(c, y[k], dtype, k == 0 ? stride : NULL);
  if (lt_ok(c)) {
    j.g = lt_data(g), j.x = lt_data(from), j.y = lt_data(to[0]);
    j.weight_grad = lt_data(to[1]), j.bias_grad = lt_data(to[2]);
    for (int k = 1; k < 3; k++)
      memset(lt_data(to[k]), 0, (size_t)to[k]->numel * lt_item_size(to[k]));
    if (x->numel == 0 || run(c, &j))
      for (int k = 0; k < 3; k++)
        if (to[k] != y[k]) lt_cpu_move(c, y[k], to[k]);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}
