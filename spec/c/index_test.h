/* spec/c/index_test.h: tensors as loops read them, for the tests that follow coordinates. */
#ifndef LT_SPEC_C_INDEX_TEST_H
#define LT_SPEC_C_INDEX_TEST_H

#include "tensor_test.h"

/* A copy of a tensor that loops can read: values in logical order. */
typedef struct plain {
  lt_shape shape;
  double *v;
} plain;

static inline plain plain_of(lt_ctx *c, lt_tensor *t) {
  double *v = values_of(c, t);
  return (plain){lt_tensor_shape(t), v};
}

static inline int64_t place(lt_shape s, const int64_t *at) {
  int64_t k = 0;
  for (int d = 0; d < s.ndim; d++) k = k * s.size[d] + at[d];
  return k;
}

static inline void coordinates(lt_shape s, int64_t k, int64_t *at) {
  for (int d = s.ndim - 1; d >= 0; d--) at[d] = k % s.size[d], k /= s.size[d];
}

static inline double get(const plain *p, const int64_t *at) { return p->v[place(p->shape, at)]; }

/* The same values in another dtype and, from STRIDED on, over other strides. */
enum { STRIDED = 8, VARIANTS = 2 * STRIDED, AS_I64 = 3, AS_U8 = 4 };
static inline lt_tensor *variant(lt_ctx *c, lt_tensor *t, int which) {
  static const lt_dtype dtypes[STRIDED] = {LT_F32, LT_F64, LT_BF16, LT_I64, LT_U8, LT_I16, LT_U16,
                                          LT_I8};
  bool grad = c->modes.grad;
  c->modes.grad = false;
  t = lt_cast(c, t, dtypes[which % STRIDED]);
  c->modes.grad = grad;
  return which >= STRIDED ? tensor_strided(c, t) : t;
}

/* Whole numbers, which every dtype holds. */
static inline lt_tensor *whole(lt_ctx *c, lt_shape s, int64_t below, uint64_t seed) {
  int64_t n = lt_shape_numel(s);
  double *v = malloc((size_t)(n + 1) * sizeof *v);
  for (int64_t k = 0; k < n; k++) v[k] = floor(test_random(seed, (uint64_t)k) * (double)below);
  lt_tensor *t = tensor_of(c, LT_I64, s, v);
  free(v);
  return t;
}

#endif
