/* spec/bench/halves.c: time of linear's three products in bf16 over that in f32, through lt_apply.

     ./dev bench halves                                        as this processor multiplies bf16
     ONEDNN_MAX_CPU_ISA=AVX512_CORE ./dev bench halves         as one without such products
     ONEDNN_MAX_CPU_ISA=AVX2 LTRAIN_CPU_LEVEL=v3 ./dev bench halves

   F forward, D gradient by the input, W gradient by the weight, on one thread. Both take turns, and
   the least CPU time of each counts, so that what else runs on the machine matters little. */
#include <stdio.h>
#include <time.h>

#include "ops/op.h"
#include "registry.h"

enum { ROUNDS = 20 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct layer {
  lt_tensor *x, *w, *b, *g, *gt;
} layer;

static lt_tensor *filled(lt_ctx *c, int64_t rows, int64_t cols, lt_dtype dtype) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, (int64_t[]){rows, cols});
  float *x = lt_data(t);
  for (int64_t i = 0; i < rows * cols; i++) x[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
  return lt_cast(c, t, dtype);
}

static layer layer_of(lt_ctx *c, const int64_t *size, lt_dtype dtype) {
  int64_t m = size[0], k = size[1], n = size[2];
  layer l = {.x = filled(c, m, k, dtype),
             .w = filled(c, n, k, dtype),
             .g = filled(c, m, n, dtype)};
  l.b = lt_reshape(c, filled(c, 1, n, dtype), lt_shape_of(1, &n));
  l.gt = lt_transpose(c, l.g, 0, 1);
  return l;
}

/* Seconds a call. */
static double seconds(lt_ctx *c, const layer *l, int which, int calls) {
  double start = now();
  for (int i = 0; i < calls; i++) {
    lt_frame f = lt_frame_open(c);
    if (which == 0) lt_apply1(c, LT_OP_linear, LT_IN(l->x, l->w, l->b), NULL);
    if (which == 1) lt_apply1(c, LT_OP_matmul, LT_IN(l->g, l->w), NULL);
    if (which == 2) lt_apply1(c, LT_OP_matmul, LT_IN(l->gt, l->x), NULL);
    lt_frame_close(c, f, 0, NULL);
  }
  return (now() - start) / calls;
}

static double ratio(lt_ctx *c, const layer *l, int which) {
  double best[2] = {1e9, 1e9};
  for (int h = 0; h < 2; h++) seconds(c, &l[h], which, 2);
  int calls = (int)(0.002 / seconds(c, &l[0], which, 1)) + 1;
  for (int round = 0; round < ROUNDS; round++)
    for (int h = 0; h < 2; h++) {
      double t = seconds(c, &l[h], which, calls);
      if (t < best[h]) best[h] = t;
    }
  return best[1] / best[0];
}

int main(void) {
  static const int64_t sizes[][3] = {
      {8, 1024, 4096},    {16, 512, 512},    {16, 1024, 1024},  {16, 4096, 4096}, {32, 512, 512},
      {32, 784, 256},     {32, 2048, 2048},  {32, 4096, 4096},  {64, 512, 512},   {64, 784, 256},
      {64, 1024, 4096},   {64, 4096, 1024},  {128, 1024, 1024}, {256, 1024, 1024}, {512, 784, 256},
      {1024, 768, 3072},  {3072, 128, 512}};
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  c->modes.grad = false;
  c->threads = 1;
  printf("%-18s %6s %6s %6s\n", "M, K, N: bf16/f32", "F", "D", "W");
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes && lt_ok(c); s++) {
    lt_frame f = lt_frame_open(c);
    layer l[2] = {layer_of(c, sizes[s], LT_F32), layer_of(c, sizes[s], LT_BF16)};
    printf("%4lld, %4lld, %4lld  ", (long long)sizes[s][0], (long long)sizes[s][1],
           (long long)sizes[s][2]);
    for (int which = 0; which < 3; which++) printf(" %6.2f", ratio(c, l, which));
    printf("\n");
    lt_frame_close(c, f, 0, NULL);
  }
  bool ok = lt_ok(c);
  if (!ok) printf("%s\n", c->failure.text);
  lt_ctx_release(c);
  return ok ? 0 : 1;
}
