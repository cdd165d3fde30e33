/* spec/c/comm_oracle.h: what collectives must give, computed one element after the other.

   Values are made from (rank, element, seed) alone, so that each rank knows those of all. */
#ifndef LT_SPEC_C_COMM_ORACLE_H
#define LT_SPEC_C_COMM_ORACLE_H

#include "comm_test.h"
#include "ops/math/half.h"

static inline uint64_t bits_of(int number, int64_t i, uint64_t seed) {
  uint64_t x = ((uint64_t)number << 40) + (uint64_t)i + seed * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* Numbers whose sum depends on the order of adding; integers of all bits. */
static inline void make(lt_dtype dtype, int number, int64_t i, uint64_t seed, void *to) {
  uint64_t x = bits_of(number, i, seed);
  double f = ((double)(x >> 11) * 0x1p-53 - 0.5) * ((x & 7) == 0 ? 100 : (x & 7) == 1 ? 1e-3 : 2);
  float f32 = (float)f;
  uint16_t half = dtype == LT_F16 ? lt_f32_to_f16(f32) : lt_f32_to_bf16(f32);
  uint8_t truth = x & 1;
  switch ((int)dtype) {
    case LT_F32: memcpy(to, &f32, 4); break;
    case LT_F64: memcpy(to, &f, 8); break;
    case LT_F16:
    case LT_BF16: memcpy(to, &half, 2); break;
    case LT_BOOL: memcpy(to, &truth, 1); break;
    default: memcpy(to, &x, lt_dtype_size(dtype)); break; /* integers */
  }
}

static inline double join_f64(double a, double b, lt_comm_reduce reduce) {
  switch (reduce) {
    case LT_COMM_MIN: return a < b ? a : b;
    case LT_COMM_MAX: return a > b ? a : b;
    case LT_COMM_PROD: return a * b;
    case LT_COMM_SUM:
    case LT_COMM_MEAN:
    case LT_COMM_REDUCE_COUNT:
    case LT_COMM_NO_REDUCE: break;
  }
  return a + b;
}

static inline float join_f32(float a, float b, lt_comm_reduce reduce) {
  return (float)join_f64((double)a, (double)b, reduce); /* exact, then rounded once */
}

/* Whether a is less than b: the upper bits of a short one are 0. */
static inline bool is_less(uint64_t a, uint64_t b, lt_dtype dtype) {
  int unused = 64 - 8 * (int)lt_dtype_size(dtype);
  if (!lt_dtype_row(dtype)->is_signed) return a < b;
  return (int64_t)(a << unused) < (int64_t)(b << unused);
}

static inline uint64_t join_int(uint64_t a, uint64_t b, lt_comm_reduce reduce, lt_dtype dtype) {
  bool less = is_less(a, b, dtype), truth = dtype == LT_BOOL;
  switch (reduce) {
    case LT_COMM_MIN: return less ? a : b;
    case LT_COMM_MAX: return less ? b : a;
    case LT_COMM_PROD: return a * b;
    case LT_COMM_SUM:
    case LT_COMM_MEAN:
    case LT_COMM_REDUCE_COUNT:
    case LT_COMM_NO_REDUCE: break;
  }
  return truth ? a | b : a + b;
}

static inline void join(void *to, const void *with, lt_dtype dtype, lt_comm_reduce reduce) {
  uint64_t a = 0, b = 0;
  size_t size = lt_dtype_size(dtype);
  memcpy(&a, to, size);
  memcpy(&b, with, size);
  float (*load)(uint16_t) = dtype == LT_F16 ? lt_f16_to_f32 : lt_bf16_to_f32;
  uint16_t (*store)(float) = dtype == LT_F16 ? lt_f32_to_f16 : lt_f32_to_bf16;
  float x, y;
  double d, e;
  switch ((int)dtype) {
    case LT_F32:
      memcpy(&x, to, 4), memcpy(&y, with, 4);
      x = join_f32(x, y, reduce);
      memcpy(to, &x, 4);
      return;
    case LT_F64:
      memcpy(&d, to, 8), memcpy(&e, with, 8);
      d = join_f64(d, e, reduce);
      memcpy(to, &d, 8);
      return;
    case LT_F16:
    case LT_BF16:
      a = store(join_f32(load((uint16_t)a), load((uint16_t)b), reduce));
      memcpy(to, &a, 2);
      return;
    default: /* integers and bool */
      a = join_int(a, b, reduce, dtype);
      memcpy(to, &a, size);
      return;
  }
}

/* T(lo, hi) of element i. */
static inline void tree(int lo, int hi, int64_t i, uint64_t seed, lt_dtype dtype,
                        lt_comm_reduce reduce, void *to) {
  if (hi - lo == 1) {
    make(dtype, lo, i, seed, to);
    return;
  }
  int half = 1;
  while (half * 2 < hi - lo) half *= 2;
  uint64_t right;
  tree(lo, lo + half, i, seed, dtype, reduce, to);
  tree(lo + half, hi, i, seed, dtype, reduce, &right);
  join(to, &right, dtype, reduce);
}

static inline void wanted_of(int n, int64_t i, uint64_t seed, lt_dtype dtype, lt_comm_reduce reduce,
                             void *to) {
  tree(0, n, i, seed, dtype, reduce, to);
  if (reduce != LT_COMM_MEAN) return;
  float x;
  double d;
  uint16_t h;
  if (dtype == LT_F32) memcpy(&x, to, 4), x /= (float)n, memcpy(to, &x, 4);
  if (dtype == LT_F64) memcpy(&d, to, 8), d /= n, memcpy(to, &d, 8);
  memcpy(&h, to, 2);
  if (dtype == LT_F16) h = lt_f32_to_f16(lt_f16_to_f32(h) / (float)n);
  if (dtype == LT_BF16) h = lt_f32_to_bf16(lt_bf16_to_f32(h) / (float)n);
  if (dtype == LT_F16 || dtype == LT_BF16) memcpy(to, &h, 2);
}

static inline lt_tensor *made(rank *r, lt_dtype dtype, int64_t n, uint64_t seed) {
  lt_tensor *t = rank_tensor(r, dtype, 1, &n);
  char *at = lt_data(t);
  for (int64_t i = 0; i < n; i++) make(dtype, r->rank, i, seed, at + (size_t)i * lt_item_size(t));
  return t;
}

/* Whether n elements are what `number` made from its element `first` on. */
static inline bool is_of(rank *r, const void *data, lt_dtype dtype, int number, int64_t first,
                         int64_t n, uint64_t seed) {
  size_t size = lt_dtype_size(dtype);
  uint64_t one;
  for (int64_t i = 0; i < n; i++) {
    make(dtype, number, first + i, seed, &one);
    if (!CHECK(r, memcmp((const char *)data + (size_t)i * size, &one, size) == 0)) return false;
  }
  return true;
}

static inline bool is_sum(rank *r, const void *data, lt_dtype dtype, lt_comm_reduce reduce,
                          int64_t first, int64_t n, uint64_t seed) {
  size_t size = lt_dtype_size(dtype);
  uint64_t one;
  for (int64_t i = 0; i < n; i++) {
    wanted_of(r->size, first + i, seed, dtype, reduce, &one);
    if (memcmp((const char *)data + (size_t)i * size, &one, size) == 0) continue;
    wrong(r, "rank %d: element %d of %d, dtype %d, reduction %d", r->rank, (int)i, (int)n, dtype,
          reduce);
    return false;
  }
  return true;
}

#endif
