/* runtime/cpu/combine.c: what ranks add up: two arrays joined elementwise, a mean's division and a
   weight's product.

   f16 and bf16 compute in f32 and round at the end of each call; integers wrap (-fwrapv); sum and
   max of bool are "or", prod and min "and". A NaN in either operand stays, as in max and min of
   tensors. dst may be a or b: loops go elementwise and do nothing else. */
#include "cpu/half.h"
#include "cpu/level.h"
#include "cpu/tile.h"
#include "ltrain/comm.h"

#define SUM(x, y) ((x) + (y))
#define PROD(x, y) ((x) * (y))
#define MIN(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))
#define MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define OR(x, y) ((x) | (y))
#define AND(x, y) ((x) & (y))
#define SAME(x) (x)

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

#define KIND(name, type, own, load, store, sum, prod, min, max)             \
  static void name(void *dst, const void *a, const void *b, int64_t n,      \
                   lt_comm_reduce reduce) {                                 \
    switch (reduce) {                                                       \
    case LT_COMM_PROD: LOOP(type, own, load, store, prod)                   \
    case LT_COMM_MIN: LOOP(type, own, load, store, min)                     \
    case LT_COMM_MAX: LOOP(type, own, load, store, max)                     \
    default: LOOP(type, own, load, store, sum)                              \
    }                                                                       \
  }

KIND(combine_f32, float, float, SAME, SAME, SUM, PROD, MIN, MAX)
KIND(combine_f64, double, double, SAME, SAME, SUM, PROD, MIN, MAX)
KIND(combine_f16, uint16_t, float, lt_f16_to_f32, lt_f32_to_f16, SUM, PROD, MIN, MAX)
KIND(combine_bf16, uint16_t, float, lt_bf16_to_f32, lt_f32_to_bf16, SUM, PROD, MIN, MAX)
KIND(combine_i64, int64_t, int64_t, SAME, SAME, SUM, PROD, MIN, MAX)
KIND(combine_i32, int32_t, int32_t, SAME, SAME, SUM, PROD, MIN, MAX)
KIND(combine_u8, uint8_t, uint8_t, SAME, SAME, SUM, PROD, MIN, MAX)
KIND(combine_bool, uint8_t, uint8_t, SAME, SAME, OR, AND, AND, OR)

#undef KIND
#undef LOOP

/* The members of the table of devices: the work is done when they return, without a ctx. */
bool LT_CPU(lt_cpu_combine)(lt_ctx *c, int index, lt_stream *stream, void *dst, const void *a,
                            const void *b, int64_t n, lt_dtype dtype, lt_comm_reduce reduce);
bool LT_CPU(lt_cpu_combine)(lt_ctx *c, int index, lt_stream *stream, void *dst, const void *a,
                            const void *b, int64_t n, lt_dtype dtype, lt_comm_reduce reduce) {
  (void)c, (void)index, (void)stream;
  switch (dtype) {
  case LT_F32: combine_f32(dst, a, b, n, reduce); break;
  case LT_F64: combine_f64(dst, a, b, n, reduce); break;
  case LT_F16: combine_f16(dst, a, b, n, reduce); break;
  case LT_BF16: combine_bf16(dst, a, b, n, reduce); break;
  case LT_I64: combine_i64(dst, a, b, n, reduce); break;
  case LT_I32: combine_i32(dst, a, b, n, reduce); break;
  case LT_U8: combine_u8(dst, a, b, n, reduce); break;
  case LT_BOOL: combine_bool(dst, a, b, n, reduce); break;
  default: break;
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

#define EACH_FLOAT(join)                                                    \
  switch (dtype) {                                                          \
  case LT_F32: EACH(float, float, SAME, SAME, join)                         \
  case LT_F64: EACH(double, double, SAME, SAME, join)                       \
  case LT_F16: EACH(uint16_t, float, lt_f16_to_f32, lt_f32_to_f16, join)    \
  case LT_BF16: EACH(uint16_t, float, lt_bf16_to_f32, lt_f32_to_bf16, join) \
  default: break;                                                           \
  }

bool LT_CPU(lt_cpu_divide)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                           lt_dtype dtype, int by);
bool LT_CPU(lt_cpu_divide)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                           lt_dtype dtype, int by) {
  (void)c, (void)index, (void)stream;
  EACH_FLOAT(QUOTIENT)
  return true;
}

bool LT_CPU(lt_cpu_scale)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                          lt_dtype dtype, double by);
bool LT_CPU(lt_cpu_scale)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n,
                          lt_dtype dtype, double by) {
  (void)c, (void)index, (void)stream;
  EACH_FLOAT(PROD)
  return true;
}
#undef EACH_FLOAT
#undef EACH
