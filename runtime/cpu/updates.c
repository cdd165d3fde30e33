/* runtime/cpu/updates.c: the optimizer steps that are rows of ops/updates.def.

   What gradients that stay 0 leave of a state becomes 0 where it is subnormal, as in
   update_type.h. */
#include <float.h>
#include <string.h>

#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "cpu/multi_tensor.h"

/* How many kinds of state a row takes. */
static int most_of(int op) {
  switch (op) {
#define LT_UPDATE(name, fewest, most, ...) \
  case LT_OP_##name##_step: return most;
#include "ops/updates.def"
  default: return 0;
  }
}

#ifdef __FMA__
/* Fused where the level has it, as the compiler may or may not do on its own: the same source gives
   the same bits on each level that has it. */
static inline float mul_add_f32(float a, float b, float c) { return fmaf(a, b, c); }
static inline double mul_add_f64(double a, double b, double c) { return fma(a, b, c); }
#else
static inline float mul_add_f32(float a, float b, float c) { return a * b + c; }
static inline double mul_add_f64(double a, double b, double c) { return a * b + c; }
#endif

#define LT_EACH LT_INDEPENDENT for (int64_t i = 0; i < n; i++)

#define T float
#define NAME(f) f##_f32
#define OWN LT_F32
#define K(x) ((float)(x))
#define NORMAL(x) ((x) < FLT_MIN && (x) > -FLT_MIN ? 0 : (x))
#define sqrt(x) lt_sqrt_f32(x)
#define abs(x) lt_abs_f32(x)
#define mul_add(a, b, c) mul_add_f32(a, b, c)
#include "cpu/updates_type.h"

#define T double
#define NAME(f) f##_f64
#define OWN LT_F64
#define K(x) ((double)(x))
#define NORMAL(x) ((x) < DBL_MIN && (x) > -DBL_MIN ? 0 : (x))
#define sqrt(x) lt_sqrt_f64(x)
#define abs(x) lt_abs_f64(x)
#define mul_add(a, b, c) mul_add_f64(a, b, c)
#include "cpu/updates_type.h"

static void update_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  if (j->in[tensor_of(j, chunk)]->dtype == LT_F64)
    update_f64(j, chunk);
  else
    update_f32(j, chunk);
}

LT_KERNEL(updates) {
  const lt_args_update *a = call->args;
  job j = {.op = call->op, .groups = 2 + (int)a->states, .args = a};
  if (is_refused(c, call, a->checked)) return lt_ok(c);
  return run(c, &j, call, update_chunk);
}
