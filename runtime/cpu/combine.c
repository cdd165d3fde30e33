/* runtime/cpu/combine.c: elementwise combination of two arrays, for reductions between ranks: sums,
   maxima, a mean's division, a weight's product.

   f16 and bf16 compute in f32 and round at the end of each call; integers wrap (-fwrapv); sum and
   max of bool are "or", prod and min "and". A NaN in either operand stays, as in max and min of
   tensors. dst may be a or b: loops go elementwise and do nothing else. */
#include "ops/math/half.h"
#include "cpu/simd_level.h"
#include "cpu/tile.h"
#include "ltrain/comm.h"

#define SUM(x, y) ((x) + (y))
#define PROD(x, y) ((x) * (y))
#define MIN(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))
#define MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))

/* One loop: `type` in memory, `own` to compute in, with ways there and back. */
#define LOOP(type, own, load, store, join)                                  \
  {                                                                         \
    type *d = dst;                                                          \
    const type *p = a, *q = b;                                              \
    LT_INDEPENDENT for (int64_t i = 0; i < n; i++) {                        \
      own x = load(p[i]), y = load(q[i]);                                   \
      d[i] = (type)store((own)join(x, y));                                  \
    }                                                                       \
    return;                                                                 \
  }

/* One function a row. Bools are 0 or 1: of them min and prod are "and", max is "or". true + true is
   true: a sum in u8 would wrap to 0 at 256 ranks. */
#define SUM_FLOATING SUM
#define SUM_INTEGER SUM
#define SUM_BOOLEAN MAX

#define LT_DTYPE(id, category, memory, own, half, ...)                              \
  static void combine_##id(void *dst, const void *a, const void *b, int64_t n,      \
                           lt_comm_reduce reduce) {                                 \
    switch (reduce) {                                                               \
      case LT_COMM_SUM:                                                             \
      case LT_COMM_MEAN: LOOP(memory, own, FROM_##half, TO_##half, SUM_##category)  \
      case LT_COMM_MIN: LOOP(memory, own, FROM_##half, TO_##half, MIN)              \
      case LT_COMM_MAX: LOOP(memory, own, FROM_##half, TO_##half, MAX)              \
      case LT_COMM_PROD: LOOP(memory, own, FROM_##half, TO_##half, PROD)            \
      case LT_COMM_REDUCE_COUNT:                                                    \
      case LT_COMM_NO_REDUCE: return;                                               \
    }                                                                               \
  }
#include "tensor/dtype.def"
#undef LOOP
#undef SUM_FLOATING
#undef SUM_INTEGER
#undef SUM_BOOLEAN

/* The members of the table of devices: the work is done when they return, without a ctx. */
bool LT_CPU(lt_cpu_combine)(lt_ctx *c, int index, lt_stream *stream, void *dst, const void *a,
                            const void *b, int64_t n, lt_dtype dtype, lt_comm_reduce reduce);
bool LT_CPU(lt_cpu_combine)(lt_ctx *c, int index, lt_stream *stream, void *dst, const void *a,
                            const void *b, int64_t n, lt_dtype dtype, lt_comm_reduce reduce) {
  (void)c, (void)index, (void)stream;
  switch (dtype) {
#define LT_DTYPE(id, ...) \
  case LT_##id: combine_##id(dst, a, b, n, reduce); break;
#include "tensor/dtype.def"
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: break;
  }
  return true;
}

#define EACH(type, own, load, store, join)                                  \
  {                                                                         \
    type *d = data;                                                         \
    own k = (own)by;                                                        \
    LT_INDEPENDENT for (int64_t i = 0; i < n; i++)                          \
      d[i] = (type)store((own)join(load(d[i]), k));                         \
    break;                                                                  \
  }
#define QUOTIENT(x, y) ((x) / (y))

/* Of the floating rows alone. */
#define EACH_FLOATING(...) EACH(__VA_ARGS__)
#define EACH_INTEGER(...) break;
#define EACH_BOOLEAN(...) break;

/* Mean: each rank divides the sum; dividing before the sum would round each term. */
bool LT_CPU(lt_cpu_divide)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                           lt_dtype dtype, int by);
bool LT_CPU(lt_cpu_divide)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                           lt_dtype dtype, int by) {
  (void)c, (void)index, (void)stream;
  switch (dtype) {
#define LT_DTYPE(id, category, memory, own, half, ...) \
  case LT_##id: EACH_##category(memory, own, FROM_##half, TO_##half, QUOTIENT)
#include "tensor/dtype.def"
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: break;
  }
  return true;
}

/* A weighted mean's 1 / (sum of weights), a double that is rounded once to the type. */
bool LT_CPU(lt_cpu_scale)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                          lt_dtype dtype, double by);
bool LT_CPU(lt_cpu_scale)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                          lt_dtype dtype, double by) {
  (void)c, (void)index, (void)stream;
  switch (dtype) {
#define LT_DTYPE(id, category, memory, own, half, ...) \
  case LT_##id: EACH_##category(memory, own, FROM_##half, TO_##half, PROD)
#include "tensor/dtype.def"
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: break;
  }
  return true;
}
#undef EACH
#undef EACH_FLOATING
#undef EACH_INTEGER
#undef EACH_BOOLEAN
