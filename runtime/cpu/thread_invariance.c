/* runtime/cpu/thread_invariance.c: tests by trial whether a matrix product has the same bits with
   one thread and with several.

   oneDNN documents no order of its sums and may cut terms among threads, by the shape and the
   version: what it does with this shape is tried once, with random numbers, whose sums round
   differently in any other order.

   Why it matters: where other processes have the cores, a product on one thread finishes sooner
   than one whose threads wait for each other, but a run must not change its results because of
   it. */
#include "cpu/thread_invariance.h"

#include <string.h>

#include "device/device.h"

#define MOST_WORK 0x1p28       /* multiplications: a tenth of a second is no trial */
enum {
  ENOUGH_RESULTS = 256,   /* bits of fewer may agree by chance */
  MOST_NUMBERS = 1 << 22, /* of an operand, with the gaps between its rows */
};

static void *operand(lt_ctx *c, lt_dtype dtype, int64_t n) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, &n);
  return t != NULL ? lt_data(t) : NULL;
}

static int64_t results_of(const lt_product *p) {
  int64_t n = p->m * p->n;
  for (int i = 0; i < p->n_batch; i++) n *= p->batch[i];
  return n;
}

static int64_t extent(const lt_product *p, const lt_matrix *m, int64_t rows, int64_t cols) {
  int64_t last = (rows - 1) * m->row + (cols - 1) * m->col;
  for (int i = 0; i < p->n_batch; i++) last += (p->batch[i] - 1) * m->batch[i];
  return last + 1;
}

/* Numbers in -1..1; a bf16 is the upper half of a float. A linear congruential generator (constants
   of Numerical Recipes, 1992, section 7.1): any numbers whose sums round will do. */
static void fill(lt_dtype dtype, void *data, int64_t n, uint32_t *seed) {
  for (int64_t i = 0; i < n; i++) {
    *seed = *seed * 1664525u + 1013904223u;
    float v = (float)(int32_t)*seed * 0x1p-31f;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (dtype == LT_F32)
      ((float *)data)[i] = v;
    else
      ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
  }
}

static bool is_same(lt_ctx *c, const lt_product *p, lt_product_fn run) {
  int64_t n_a = extent(p, &p->a, p->m, p->k), n_b = extent(p, &p->b, p->k, p->n);
  int64_t n = results_of(p), tried = 0;
  lt_product one = *p, all;
  one.a.data = operand(c, p->dtype, n_a);
  one.b.data = operand(c, p->dtype, n_b);
  one.out.data = operand(c, p->dtype, n);
  all = one;
  all.out.data = operand(c, p->dtype, n);
  bool same = lt_ok(c);
  uint32_t seed = 1;
  while (same && tried < ENOUGH_RESULTS) {
    fill(p->dtype, one.a.data, n_a, &seed);
    fill(p->dtype, one.b.data, n_b, &seed);
    same = run(c, &one, 1) && run(c, &all, c->threads) &&
           memcmp(one.out.data, all.out.data, (size_t)n * lt_dtype_size(p->dtype)) == 0;
    tried += n;
  }
  return same;
}

static bool is_small(const lt_product *p) {
  return (double)results_of(p) * (double)p->k <= MOST_WORK &&
         extent(p, &p->a, p->m, p->k) <= MOST_NUMBERS &&
         extent(p, &p->b, p->k, p->n) <= MOST_NUMBERS;
}

bool lt_product_trial(lt_ctx *c, const lt_product *p, lt_product_fn run) {
  if (!is_small(p)) return false;
  lt_frame frame = lt_frame_open(c);
  bool same = is_same(c, p, run);
  lt_frame_close(c, frame, 0, NULL);
  lt_take_failure(c, NULL); /* no memory to try with */
  return same;
}
