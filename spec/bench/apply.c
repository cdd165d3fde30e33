/* spec/bench/apply.c: what one call of lt_apply costs: an 8-element f32 add in C, without
   and with the tape. Prints nanoseconds a call. */
#include <stdio.h>
#include <time.h>

#include "autograd/backward.h"
#include "registry.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double measure(lt_ctx *c, lt_tensor *a, lt_tensor *b, int calls) {
  double best = 1e9;
  for (int round = 0; round < 9; round++) {
    double start = now();
    for (int i = 0; i < calls; i++) {
      lt_frame frame = lt_frame_open(c);
      lt_binary(c, LT_OP_add, a, b);
      lt_frame_close(c, frame, 0, NULL);
    }
    double each = (now() - start) / calls;
    if (each < best) best = each;
  }
  return best * 1e9;
}

int main(void) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_shape eight = {.ndim = 1, .size = {8}};
  lt_tensor *a = lt_full(c, eight, lt_scalar_of(1), LT_F32, LT_CPU_DEVICE);
  lt_tensor *b = lt_full(c, eight, lt_scalar_of(2), LT_F32, LT_CPU_DEVICE);
  printf("add of 8 f32, no tape: %.0f ns\n", measure(c, a, b, 100000));
  a->flags |= LT_REQUIRES_GRAD;
  printf("add of 8 f32, tape:    %.0f ns\n", measure(c, a, b, 100000));
  lt_ctx_release(c);
  return 0;
}
