/* runtime/cpu/pool.c: max_window and its gradient, in f32 (f16 and bf16 through it), f64 and i64
   (the other integers through it).

   Channels-last images run over their channels, row-major ones count as N C images of one channel
   and run along rows. A position in a window is row * width + column.

   The loops run over kernel positions outside and results inside: each position is a vectorised
   maximum of a row of pixels with the row of results so far. Results that a position has outside of
   the image are left out by bounds that are computed once for a row (run_of), instead of a test for
   each element.

   avg_pool is not here: it is expanded into other operations (ops/expand_avg_pool.c). */
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/scratch.h"
#include "cpu/tile.h"

/* n images [h, w, c] and their results [oh, ow, c]. */
typedef struct job {
  int64_t n, c, h, w, oh, ow;
  lt_pair kernel, stride, padding, dilation;
  void *x, *y, *at;
} job;

/* Results of row oh for which kernel position k lies inside: n from `first` on, the first of which
   reads pixel x; the others stride.w pixels on. */
typedef struct run {
  int64_t first, n, x;
} run;

static bool run_of(const job *j, int64_t oh, int64_t k, run *r) {
  int64_t kh = k / j->kernel.w, kw = k % j->kernel.w;
  int64_t h = oh * j->stride.h - j->padding.h + kh * j->dilation.h;
  int64_t before = j->padding.w - kw * j->dilation.w;
  if (h < 0 || h >= j->h) return false;
  int64_t first = before > 0 ? (before + j->stride.w - 1) / j->stride.w : 0;
  int64_t scratch = j->w - 1 + before, last = scratch < 0 ? -1 : scratch / j->stride.w;
  if (last >= j->ow) last = j->ow - 1;
  *r = (run){.first = first, .n = last - first + 1, .x = h * j->w + first * j->stride.w - before};
  return r->n > 0;
}

/* The first of a window's positions that is not before the image. */
static int64_t first_inside(int64_t from, int64_t dilation) {
  return from < 0 ? (-from + dilation - 1) / dilation : 0;
}

/* NaN wins, as in PyTorch: `v > b` alone is false for it. Positions are u8 where a window has at
   most 256 of them, a quarter of the memory that backward reads. */
#define T       float
#define LOWEST  -INFINITY
#define ABOVE(v, b) (((v) > (b)) | ((v) != (v)))
#define I       uint8_t
#define NAME(f) f##_f32_u8
#include "cpu/pool_type.h"
#undef I
#undef NAME
#define I       int32_t
#define NAME(f) f##_f32_i32
#include "cpu/pool_type.h"
#undef I
#undef NAME
#undef T
#undef LOWEST
#undef ABOVE
#define T       double
#define LOWEST  -INFINITY
#define ABOVE(v, b) (((v) > (b)) | ((v) != (v)))
#define I       uint8_t
#define NAME(f) f##_f64_u8
#include "cpu/pool_type.h"
#undef I
#undef NAME
#define I       int32_t
#define NAME(f) f##_f64_i32
#include "cpu/pool_type.h"
#undef I
#undef NAME
#undef T
#undef LOWEST
#undef ABOVE
#define T       int64_t
#define LOWEST  INT64_MIN
#define ABOVE(v, b) ((v) > (b))
#define I       uint8_t
#define NAME(f) f##_i64_u8
#include "cpu/pool_type.h"
#undef I
#undef NAME
#define I       int32_t
#define NAME(f) f##_i64_i32
#include "cpu/pool_type.h"
#undef I
#undef NAME
#undef T
#undef LOWEST
#undef ABOVE

/* By compute type, then by the type of the positions: u8, i32. */
typedef void (*loop)(void *ud, int64_t n);
static const loop forwards[][2] = {[LT_COMPUTE_F32] = {forward_f32_u8, forward_f32_i32},
                                   [LT_COMPUTE_F64] = {forward_f64_u8, forward_f64_i32},
                                   [LT_COMPUTE_I64] = {forward_i64_u8, forward_i64_i32}};
static const loop backwards[][2] = {[LT_COMPUTE_F32] = {backward_f32_u8, backward_f32_i32},
                                    [LT_COMPUTE_F64] = {backward_f64_u8, backward_f64_i32},
                                    [LT_COMPUTE_I64] = {backward_i64_u8, backward_i64_i32}};
static const lt_dtype computed_in[] = {
    [LT_COMPUTE_F32] = LT_F32, [LT_COMPUTE_F64] = LT_F64, [LT_COMPUTE_I64] = LT_I64};

static job job_of(lt_shape x, lt_shape y, bool last, const lt_args_max_window *a) {
  return (job){.n = last ? x.size[0] : x.size[0] * x.size[1],
               .c = last ? x.size[1] : 1,
               .h = x.size[2],
               .w = x.size[3],
               .oh = y.size[2],
               .ow = y.size[3],
               .kernel = a->kernel_size,
               .stride = a->stride,
               .padding = a->padding,
               .dilation = a->dilation};
}

/* The result's layout decides. */
static const int64_t *layout(const lt_tensor *result, int64_t *stride, lt_shape s) {
  if (result->contiguous) return NULL;
  lt_shape_channels_last(s, stride);
  return stride;
}

static bool forward(lt_ctx *c, const lt_call *call) {
  const lt_args_max_window *a = call->args;
  lt_tensor *out = call->out[0], *at = call->out[1];
  lt_compute compute = lt_compute_of((lt_dtype)call->in[0]->dtype);
  lt_dtype dtype = computed_in[compute];
  int64_t scratch[2][LT_MAX_DIMS];
  lt_shape xs = lt_tensor_shape(call->in[0]), ys = lt_tensor_shape(out);
  const int64_t *stride = layout(at, scratch[0], ys);
  lt_tensor *x = lt_cpu_laid_out(c, call->in[0], dtype, layout(at, scratch[1], xs));
  lt_tensor *y = lt_cpu_result(c, out, dtype, stride);
  if (!lt_ok(c)) return false;
  job j = job_of(xs, ys, stride != NULL, a);
  j.x = lt_data(x), j.y = lt_data(y), j.at = lt_data(at);
  lt_parallel_work(c, lt_shape_numel(xs), j.n, forwards[compute][at->dtype != LT_U8], &j);
  return y == out || lt_cpu_move(c, out, y);
}

static bool backward(lt_ctx *c, const lt_call *call) {
  const lt_args_max_window_backward *a = call->args;
  lt_tensor *out = call->out[0], *at = call->in[1];
  lt_compute compute = lt_compute_of((lt_dtype)out->dtype);
  lt_dtype dtype = computed_in[compute];
  int64_t scratch[2][LT_MAX_DIMS];
  lt_shape xs = lt_tensor_shape(out), ys = lt_tensor_shape(at);
  const int64_t *stride = layout(at, scratch[0], ys);
  lt_tensor *g = lt_cpu_laid_out(c, call->in[0], dtype, stride);
  lt_tensor *x = lt_cpu_result(c, out, dtype, layout(at, scratch[1], xs));
  if (!lt_ok(c)) return false;
  const lt_args_max_window window = {.kernel_size = a->kernel_size,
                                     .stride = a->stride,
                                     .padding = a->padding,
                                     .dilation = a->dilation};
  job j = job_of(xs, ys, stride != NULL, &window);
  j.x = lt_data(x), j.y = lt_data(g), j.at = lt_data(at);
  lt_parallel_work(c, lt_shape_numel(xs), j.n, backwards[compute][at->dtype != LT_U8], &j);
  return x == out || lt_cpu_move(c, out, x);
}

LT_KERNEL(max_window) { return lt_cpu_in_frame(c, call, forward); }
LT_KERNEL(max_window_backward) { return lt_cpu_in_frame(c, call, backward); }
