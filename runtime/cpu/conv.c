/* runtime/cpu/conv.c: convolution and its gradients. Activations lie channels last, by oneDNN in
   f32 and bf16 (f16, and bf16 on machines without it, through f32), by plain loops in f64.

   N images, C input channels, O output channels, K kernel positions.

   y[n, o, i] = bias[o] + sum over c and k of x[n, c, i stride - padding + k dilation] weight[o, c,
   k]: a cross-correlation, as in PyTorch. Both gradients are sums over the same triples of
   elements, which is why one walk (each_run) serves all three.

   Channels last, because the innermost loop then runs over memory in order whatever the kernel's
   size; oneDNN's kernels take this order as it is. Weights stay row-major as parameters are: oneDNN
   brings them into its own layout, which is small work. */
#include <string.h>

#include "base/threads.h"
#include "cpu/onednn.h"
#include "cpu/scratch.h"

/* One call: its geometry and its tensors in the layout that the loops want. */
typedef struct job {
  lt_conv v;
  void *x, *weight, *bias, *y;
} job;

/* f16 through f32: sums of many products need more than its 11 bits, and x86 before AVX512-FP16 has
   no arithmetic in it. bf16 in hardware accumulates in f32 as well. */
static lt_dtype compute_dtype(lt_dtype d) {
  if (d == LT_F64) return d;
  return d == LT_BF16 && lt_onednn_has_bf16() ? LT_BF16 : LT_F32;
}

static lt_conv geometry(const lt_tensor *x, const lt_tensor *w, const lt_tensor *y,
                        const lt_args_convolution *a) {
  return (lt_conv){.dtype = compute_dtype((lt_dtype)x->dtype),
                   .n = x->size[0],
                   .c = x->size[1],
                   .h = x->size[2],
                   .w = x->size[3],
                   .o = w->size[0],
                   .kh = w->size[2],
                   .kw = w->size[3],
                   .oh = y->size[2],
                   .ow = y->size[3],
                   .groups = a->groups,
                   .stride = a->stride,
                   .padding = a->padding,
                   .dilation = a->dilation};
}

/* `t` [N, C, H, W] channels last, in `dtype`. */
static lt_tensor *taken(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  int64_t stride[4];
  lt_shape_channels_last(lt_tensor_shape(t), stride);
  return lt_cpu_laid_out(c, t, dtype, stride);
}

static lt_tensor *made(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  int64_t stride[4];
  lt_shape_channels_last(lt_tensor_shape(t), stride);
  return lt_cpu_result(c, t, dtype, stride);
}

static bool give(lt_ctx *c, lt_tensor *out, lt_tensor *made_in) {
  return made_in == out || lt_cpu_move(c, out, made_in);
}

/* f64. Calls fn(j, o, y, x, w) with the offsets of a run of C / groups products, for each output
   channel o and each kernel position that lies inside, of image n. The definition, term by term:
   f64 is what gradients are checked in. */
typedef void (*run_fn)(const job *j, int64_t o, int64_t y, int64_t x, int64_t w);

static void each_run(const job *j, int64_t n, int64_t o, run_fn fn) {
  const lt_conv *v = &j->v;
  int64_t per_group = v->c / v->groups, first = o / (v->o / v->groups) * per_group;
  for (int64_t oh = 0; oh < v->oh; oh++)
    for (int64_t ow = 0; ow < v->ow; ow++)
      for (int64_t k = 0; k < v->kh * v->kw; k++) {
        int64_t kh = k / v->kw, kw = k % v->kw;
        int64_t h = oh * v->stride.h - v->padding.h + kh * v->dilation.h;
        int64_t w = ow * v->stride.w - v->padding.w + kw * v->dilation.w;
        if (h < 0 || h >= v->h || w < 0 || w >= v->w) continue;
        fn(j, o, ((n * v->oh + oh) * v->ow + ow) * v->o + o,
           ((n * v->h + h) * v->w + w) * v->c + first, o * per_group * v->kh * v->kw + k);
      }
}

static void add_forward(const job *j, int64_t o, int64_t y, int64_t x, int64_t w) {
  (void)o;
  double sum = 0;
  for (int64_t i = 0; i < j->v.c / j->v.groups; i++)
    sum += ((double *)j->x)[x + i] * ((double *)j->weight)[w + i * j->v.kh * j->v.kw];
  ((double *)j->y)[y] += sum;
}

static void add_input(const job *j, int64_t o, int64_t y, int64_t x, int64_t w) {
  (void)o;
  double g = ((double *)j->y)[y];
  for (int64_t i = 0; i < j->v.c / j->v.groups; i++)
    ((double *)j->x)[x + i] += g * ((double *)j->weight)[w + i * j->v.kh * j->v.kw];
}

static void add_weight(const job *j, int64_t o, int64_t y, int64_t x, int64_t w) {
  (void)o;
  double g = ((double *)j->y)[y];
  for (int64_t i = 0; i < j->v.c / j->v.groups; i++)
    ((double *)j->weight)[w + i * j->v.kh * j->v.kw] += g * ((double *)j->x)[x + i];
}

/* A thread has an image, whose results nobody else writes. */
static void forward_image(void *ud, int64_t n) {
  const job *j = ud;
  double *y = (double *)j->y + n * j->v.oh * j->v.ow * j->v.o;
  for (int64_t i = 0; i < j->v.oh * j->v.ow * j->v.o; i++)
    y[i] = j->bias != NULL ? ((double *)j->bias)[i % j->v.o] : 0;
  for (int64_t o = 0; o < j->v.o; o++) each_run(j, n, o, add_forward);
}

static void input_image(void *ud, int64_t n) {
  const job *j = ud;
  int64_t size = j->v.h * j->v.w * j->v.c;
  memset((double *)j->x + n * size, 0, (size_t)size * sizeof(double));
  for (int64_t o = 0; o < j->v.o; o++) each_run(j, n, o, add_input);
}

/* By output channel: each owns its weights and adds the images in order, so no two threads meet. */
static void weight_channel(void *ud, int64_t o) {
  const job *j = ud;
  int64_t size = j->v.c / j->v.groups * j->v.kh * j->v.kw;
  memset((double *)j->weight + o * size, 0, (size_t)size * sizeof(double));
  for (int64_t n = 0; n < j->v.n; n++) each_run(j, n, o, add_weight);
  if (j->bias == NULL) return;
  double sum = 0;
  for (int64_t i = 0; i < j->v.n * j->v.oh * j->v.ow; i++) sum += ((double *)j->y)[i * j->v.o + o];
  ((double *)j->bias)[o] = sum;
}

static bool convolve(lt_ctx *c, lt_conv_pass pass, job *j) {
  if (j->v.dtype != LT_F64) return lt_onednn_conv(c, pass, &j->v, j->x, j->weight, j->bias, j->y);
  if (pass == LT_CONV_FORWARD) lt_parallel(c, j->v.n, forward_image, j);
  if (pass == LT_CONV_INPUT) lt_parallel(c, j->v.n, input_image, j);
  if (pass == LT_CONV_WEIGHT) lt_parallel(c, j->v.o, weight_channel, j);
  return true;
}

static void *data_of(lt_tensor *t) { return t != NULL ? lt_data(t) : NULL; }

static bool clear(lt_tensor *t) {
  memset(lt_data(t), 0, (size_t)t->numel * lt_item_size(t));
  return true;
}

static bool forward(lt_ctx *c, const lt_call *call) {
  lt_tensor *out = call->out[0];
  job j = {.v = geometry(call->in[0], call->in[1], out, call->args)};
  if (out->numel == 0) return true;
  lt_tensor *x = taken(c, call->in[0], j.v.dtype);
  lt_tensor *w = lt_cpu_contiguous(c, call->in[1], j.v.dtype);
  lt_tensor *bias = call->n_in > 2 ? lt_cpu_contiguous(c, call->in[2], j.v.dtype) : NULL;
  lt_tensor *y = made(c, out, j.v.dtype);
  if (!lt_ok(c)) return false;
  j.x = data_of(x), j.weight = data_of(w), j.bias = data_of(bias), j.y = data_of(y);
  return convolve(c, LT_CONV_FORWARD, &j) && give(c, out, y);
}

/* Where g has no elements the gradient is 0 all the same: x may have some. */
static bool backward_input(lt_ctx *c, const lt_call *call) {
  const lt_args_conv_input *a = call->args;
  const lt_args_convolution args = {
      .stride = a->stride, .padding = a->padding, .dilation = a->dilation, .groups = a->groups};
  lt_tensor *out = call->out[0], *x = made(c, out, compute_dtype((lt_dtype)out->dtype));
  if (x == NULL || out->numel == 0) return x != NULL;
  job j = {.v = geometry(x, call->in[1], call->in[0], &args)};
  lt_tensor *g = taken(c, call->in[0], j.v.dtype);
  lt_tensor *w = lt_cpu_contiguous(c, call->in[1], j.v.dtype);
  if (!lt_ok(c)) return false;
  j.x = data_of(x), j.weight = data_of(w), j.y = data_of(g);
  return (g->numel == 0 ? clear(x) : convolve(c, LT_CONV_INPUT, &j)) && give(c, out, x);
}

static bool backward_weight(lt_ctx *c, const lt_call *call) {
  const lt_args_conv_weight *a = call->args;
  const lt_args_convolution args = {
      .stride = a->stride, .padding = a->padding, .dilation = a->dilation, .groups = a->groups};
  lt_dtype dtype = compute_dtype((lt_dtype)call->in[1]->dtype);
  lt_tensor *w = lt_cpu_result(c, call->out[0], dtype, NULL);
  lt_tensor *bias = call->n_out > 1 ? lt_cpu_result(c, call->out[1], dtype, NULL) : NULL;
  if (!lt_ok(c)) return false;
  job j = {.v = geometry(call->in[1], w, call->in[0], &args)};
  lt_tensor *g = taken(c, call->in[0], dtype), *x = taken(c, call->in[1], dtype);
  if (!lt_ok(c)) return false;
  j.x = data_of(x), j.weight = data_of(w), j.bias = data_of(bias), j.y = data_of(g);
  if (g->numel == 0 || x->numel == 0)
    clear(w), bias != NULL &&clear(bias);
  else if (!convolve(c, LT_CONV_WEIGHT, &j))
    return false;
  return give(c, call->out[0], w) && (bias == NULL || give(c, call->out[1], bias));
}

LT_KERNEL(convolution) { return lt_cpu_in_frame(c, call, forward); }
LT_KERNEL(convolution_backward_input) { return lt_cpu_in_frame(c, call, backward_input); }
LT_KERNEL(convolution_backward_weight) { return lt_cpu_in_frame(c, call, backward_weight); }
