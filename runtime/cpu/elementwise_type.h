/* runtime/cpu/elementwise_type.h: one loop per row of unary.def and binary.def in one compute type;
   included by elementwise.c with T, NAME and OWN bound; IF_float and IF_derivative drop what
   integers do not have, IF_int what only they have. No guard.

   A row's derivative `df` becomes a loop name##_backward, g times df, of x or of y: whichever
   forward saved is passed, and both names stand for it. */

#define LOOP(name, ...)                                                                  \
  static void NAME(name)(int64_t n, const T *const *in, T *out, T p, T q) {              \
    (void)p, (void)q;                                                                    \
    __VA_ARGS__                                                                          \
  }
#define UNARY_LOOPS(name, f, df)                                                         \
  LOOP(name, const T *x_ = in[0]; LT_EACH { T x = x_[i]; out[i] = (T)(f); })             \
  IF_derivative(LOOP(name##_backward, const T *g_ = in[0], *v_ = in[1]; LT_EACH {        \
    T x = v_[i], y = x;                                                                  \
    (void)x, (void)y;                                                                    \
    out[i] = g_[i] * (T)(df);                                                            \
  }))
#define LT_UNARY(name, dtype, cast, f, df, saves, lo, hi, doc) IF_##dtype(UNARY_LOOPS(name, f, df))
#define LT_UNARY_ARGS(name, kind, dtype, cast, f, df, saves, lo, hi, doc) \
  IF_##dtype(UNARY_LOOPS(name, f, df))
#define LT_TEST(name, f, doc) \
  LOOP(name, const T *x_ = in[0]; LT_EACH { T x = x_[i]; out[i] = (f) ? 1 : 0; })
#include "ops/unary.def"

#define BACKWARD(name, df)                                                               \
  LOOP(name, const T *g_ = in[0], *a_ = in[1], *b_ = in[2], *y_ = in[3]; LT_EACH {       \
    T a = a_[i], b = b_[i], y = y_[i];                                                   \
    (void)a, (void)b, (void)y;                                                           \
    out[i] = g_[i] * (T)(df);                                                            \
  })
#define BINARY_LOOPS(name, f, da, db)                                                    \
  LOOP(name, const T *a_ = in[0], *b_ = in[1];                                           \
       LT_EACH { T a = a_[i], b = b_[i]; out[i] = (T)(f); })                             \
  IF_derivative(BACKWARD(name##_backward_a, da) BACKWARD(name##_backward_b, db))
#define LT_BINARY(name, dtype, cast, f, da, sa, db, sb, lo, hi, doc) \
  IF_##dtype(BINARY_LOOPS(name, f, da, db))
#define LT_COMPARE(name, f, doc)           \
  LOOP(name, const T *a_ = in[0], *b_ = in[1]; \
       LT_EACH { T a = a_[i], b = b_[i]; out[i] = (f) ? 1 : 0; })
#include "ops/binary.def"
#undef BACKWARD
#undef LOOP

typedef void (*NAME(loop))(int64_t n, const T *const *in, T *out, T p, T q);

#define ENTRY(name) [LT_OP_##name] = NAME(name),
static const NAME(loop) NAME(loops)[LT_OP_COUNT] = {
#define LT_UNARY(name, dtype, ...) \
  IF_##dtype(ENTRY(name) IF_derivative(ENTRY(name##_backward)))
#define LT_UNARY_ARGS(name, kind, dtype, ...) \
  IF_##dtype(ENTRY(name) IF_derivative(ENTRY(name##_backward)))
#define LT_TEST(name, ...) ENTRY(name)
#include "ops/unary.def"
#define LT_BINARY(name, dtype, ...) \
  IF_##dtype(ENTRY(name) IF_derivative(ENTRY(name##_backward_a) ENTRY(name##_backward_b)))
#define LT_COMPARE(name, ...) ENTRY(name)
#include "ops/binary.def"
};
#undef ENTRY

/* Elements from..to-1: tiles in, loop, tiles out. Operands that are numbers fill a tile once, so
   that loops need no variant for them. */
static void NAME(chunk)(const job *j, int64_t from, int64_t to) {
  T scratch[LT_ITER_OPERANDS][LT_TILE];
  const T *in[LT_ITER_OPERANDS];
  for (int k = 0; k < j->n_in; k++) {
    in[k] = scratch[k];
    if (!j->constant[k]) continue;
    T value = (T)NAME(scalar)(j->scalar[k]);
    for (int i = 0; i < LT_TILE; i++) scratch[k][i] = value;
  }
  for (int64_t at = from; at < to; at += LT_TILE) {
    int64_t n = to - at < LT_TILE ? to - at : LT_TILE;
    for (int k = 0; k < j->n_in; k++)
      if (!j->constant[k]) in[k] = LT_CPU(NAME(lt_load))(&j->it, k + 1, at, n, scratch[k]);
    T *out = LT_CPU(lt_target)(&j->it, 0, at, OWN, scratch[LT_ITER_OPERANDS - 1]);
    NAME(loops)[j->op](n, in, out, (T)NAME(scalar)(j->p), (T)NAME(scalar)(j->q));
    LT_CPU(NAME(lt_store))(&j->it, 0, at, n, out);
  }
}

#undef T
#undef NAME
#undef OWN
#undef IF_any
#undef IF_float
#undef IF_int
#undef IF_derivative
