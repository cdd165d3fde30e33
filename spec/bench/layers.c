/* spec/bench/layers.c: time of the convolution part of a small CNN and of attention, ms on 1 and 2
   threads.

   cnn: conv 1 -> 32 -> 64, 3x3, 28x28, batch 64, relu after each, max pooling by 2; forward and
   backward without the gradient by the images. Attention: causal, T 256, heads read from one
   projection [B, T, 3, H, D]. */
#include <stdio.h>
#include <time.h>

#include "autograd/backward.h"
#include "registry.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static lt_tensor *filled(lt_ctx *c, lt_shape s, double scale) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, s.ndim, s.size);
  float *x = lt_data(t);
  for (int64_t i = 0; i < t->numel; i++)
    x[i] = (float)(scale * ((double)(i * 7919 % 1009) / 504 - 1));
  return t;
}

#define SHAPE(...)                                                                                 \
  lt_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* What is measured: forward and backward by hand, since leaves would add up gradients. */
typedef struct work {
  lt_tensor *in[5];
  bool (*forward)(lt_ctx *c, const struct work *w, lt_tensor **out);
  bool (*backward)(lt_ctx *c, const struct work *w, lt_tensor **out);
} work;

static bool cnn(lt_ctx *c, const work *w, lt_tensor **out) {
  const lt_args_convolution a = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  const lt_args_max_window p = {.kernel_size = {2, 2}, .stride = {2, 2},
                                .dilation = {1, 1}};
  lt_tensor *h = lt_apply1(c, LT_OP_convolution, LT_IN(w->in[0], w->in[1], w->in[2]), &a);
  h = lt_unary(c, LT_OP_relu, h);
  h = lt_apply1(c, LT_OP_convolution, LT_IN(h, w->in[3], w->in[4]), &a);
  h = lt_unary(c, LT_OP_relu, h);
  return lt_apply(c, LT_OP_max_window, 1, &h, &p, 2, out);
}

static bool cnn_backward(lt_ctx *c, const work *w, lt_tensor **out) {
  (void)w;
  return lt_backward(c, out[0], &(lt_backward_options){.seed = out[0]});
}

static bool attention(lt_ctx *c, const work *w, lt_tensor **out) {
  const lt_args_attention a = {.causal = true};
  return lt_apply(c, LT_OP_scaled_dot_product_attention, 3, w->in, &a, 2, out);
}

static bool attention_backward(lt_ctx *c, const work *w, lt_tensor **out) {
  const lt_args_attention_backward a = {.causal = true,
                                        .scale = lt_scalar_of(1 / sqrt((double)w->in[0]->size[3]))};
  lt_tensor *grad[3] = {NULL};
  return lt_apply(c, LT_OP_scaled_dot_product_attention_backward,
                  LT_IN(out[0], w->in[0], w->in[1], w->in[2], out[0], out[1]), &a, 3, grad);
}

static void measure(lt_ctx *c, const char *name, const work *w) {
  double best[2][2] = {{1e9, 1e9}, {1e9, 1e9}};
  for (int t = 0; t < 2; t++) {
    c->threads = t + 1;
    for (int round = 0; round < 25 && lt_ok(c); round++) {
      lt_frame f = lt_frame_open(c);
      double start = now();
      lt_tensor *out[2] = {NULL};
      if (!w->forward(c, w, out)) break;
      double middle = now();
      if (!w->backward(c, w, out)) break;
      double end = now();
      if (middle - start < best[0][t]) best[0][t] = middle - start;
      if (end - middle < best[1][t]) best[1][t] = end - middle;
      lt_frame_close(c, f, 0, NULL);
    }
  }
  printf("%-24s forward %7.2f / %7.2f   backward %7.2f / %7.2f\n", name, best[0][0], best[0][1],
         best[1][0], best[1][1]);
}

static void measure_attention(lt_ctx *c, int64_t b, int64_t heads, int64_t d) {
  lt_tensor *qkv = filled(c, SHAPE(b, 256, 3, heads, d), 1);
  work w = {.forward = attention, .backward = attention_backward};
  for (int k = 0; k < 3; k++)
    w.in[k] = lt_permute(c, lt_select(c, qkv, 2, k), (const int[]){0, 2, 1, 3});
  char name[64];
  snprintf(name, sizeof name, "attention B%d H%d D%d", (int)b, (int)heads, (int)d);
  measure(c, name, &w);
}

int main(void) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  c->modes.grad = true;
  work w = {.in = {filled(c, SHAPE(64, 1, 28, 28), 1), filled(c, SHAPE(32, 1, 3, 3), 0.3),
                   filled(c, SHAPE(32), 0.1), filled(c, SHAPE(64, 32, 3, 3), 0.05),
                   filled(c, SHAPE(64), 0.1)},
            .forward = cnn,
            .backward = cnn_backward};
  for (int k = 1; k < 5; k++) w.in[k]->flags |= LT_REQUIRES_GRAD;
  measure(c, "cnn", &w);
  measure_attention(c, 12, 4, 32);
  measure_attention(c, 4, 12, 64);
  bool ok = lt_ok(c);
  if (!ok) printf("%s\n", c->failure.text);
  lt_ctx_release(c);
  return ok ? 0 : 1;
}
