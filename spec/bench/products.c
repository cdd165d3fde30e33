/* spec/bench/products.c: time of linear's three products, through lt_apply.

   F forward, D gradient by the input, W gradient by the weight; GFLOP/s on 1 and 2 threads. The
   rows are the layers of the mlp and GPT examples and larger ones; the last line is the sum over
   an MLP 784-256-128-10 at batch 64, forward and backward without the first D. */
#include <stdio.h>
#include <time.h>

#include "ops/op.h"
#include "registry.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct layer {
  lt_tensor *x, *w, *b, *g, *gt;
} layer;

static lt_tensor *filled(lt_ctx *c, int64_t rows, int64_t cols) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, (int64_t[]){rows, cols});
  float *x = lt_data(t);
  for (int64_t i = 0; i < rows * cols; i++) x[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
  return t;
}

static void run(lt_ctx *c, const layer *l, int which) {
  lt_frame f = lt_frame_open(c);
  if (which == 0) lt_apply1(c, LT_OP_linear, LT_IN(l->x, l->w, l->b), NULL);
  if (which == 1) lt_apply1(c, LT_OP_matmul, LT_IN(l->g, l->w), NULL);
  if (which == 2) lt_apply1(c, LT_OP_matmul, LT_IN(l->gt, l->x), NULL);
  lt_frame_close(c, f, 0, NULL);
}

/* Least seconds a call of several samples. */
static double seconds(lt_ctx *c, const layer *l, int which) {
  double start = now(), best = 1e9;
  for (int n = 0; n < 3; n++) run(c, l, which);
  int calls = (int)(0.02 / ((now() - start) / 3)) + 1;
  for (int sample = 0; sample < 5; sample++) {
    start = now();
    for (int n = 0; n < calls; n++) run(c, l, which);
    double t = (now() - start) / calls;
    if (t < best) best = t;
  }
  return best;
}

int main(void) {
  static const int64_t sizes[][3] = {{64, 784, 256},    {64, 256, 128},    {64, 128, 10},
                                     {512, 784, 256},   {64, 9216, 128},   {768, 128, 512},
                                     {768, 128, 65},    {3072, 512, 128},  {3072, 128, 512},
                                     {1024, 768, 2304}, {1024, 768, 3072}, {1024, 3072, 768}};
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  c->modes.grad = false;
  double mlp[2] = {0};
  printf("%-18s %22s %22s %22s\n", "M, K, N: GFLOP/s", "F 1T / 2T", "D 1T / 2T", "W 1T / 2T");
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
    lt_frame f = lt_frame_open(c);
    layer l = {.x = filled(c, m, k), .w = filled(c, n, k), .g = filled(c, m, n)};
    l.b = lt_reshape(c, filled(c, 1, n), lt_shape_of(1, &n));
    l.gt = lt_transpose(c, l.g, 0, 1);
    printf("%4lld, %4lld, %4lld  ", (long long)m, (long long)k, (long long)n);
    for (int which = 0; which < 3; which++) {
      double rate[2];
      for (int t = 0; t < 2; t++) {
        c->threads = t + 1;
        double one = seconds(c, &l, which);
        rate[t] = 2e-9 * (double)(m * k * n) / one;
        if (s < 3 && (s > 0 || which != 1)) mlp[t] += one;
      }
      printf(" %10.1f / %9.1f", rate[0], rate[1]);
    }
    printf("\n");
    lt_frame_close(c, f, 0, NULL);
  }
  printf("mlp, ms: %.3f / %.3f\n", 1e3 * mlp[0], 1e3 * mlp[1]);
  bool ok = lt_ok(c);
  if (!ok) printf("%s\n", c->failure.text);
  lt_ctx_release(c);
  return ok ? 0 : 1;
}
