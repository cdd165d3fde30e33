/* runtime/cpu/updates_type.h: one loop per row of updates.def in one compute type; included by
   updates.c with T, NAME, OWN, K, NORMAL and the names of the mathematical functions bound.
   No guard. */

#define FIELD(type, name, default_value) T name;
typedef struct NAME(numbers) {
  LT_UPDATE_NUMBERS(FIELD) T new1, new2, sign;
} NAME(numbers);
#undef FIELD

/* Options as T, once for each call; 1 - beta is taken in double, since a beta near 1 in f32 would
   lose most of it. */
static NAME(numbers) NAME(numbers_of)(const lt_args_update *args) {
  NAME(numbers) a = {.new1 = (T)(1 - args->beta1), .new2 = (T)(1 - args->beta2)};
  a.sign = args->maximize ? -1 : 1;
#define COPY(type, name, default_value) a.name = (T)args->name;
  LT_UPDATE_NUMBERS(COPY)
#undef COPY
  return a;
}

/* at: parameters, gradients, states. */
#define LT_UPDATE(name, fewest, most, s1_, s2_, s3_, doc, ...)                                   \
  static void NAME(name)(int64_t n, NAME(numbers) a, T *const *at) {                             \
    T *x_ = at[0], *p_ = at[2], *q_ = at[3], *r_ = at[4];                                        \
    const T *g_ = at[1];                                                                         \
    (void)q_, (void)r_;                                                                          \
    LT_EACH {                                                                                    \
      T x = x_[i], g = mul_add(a.weight_decay, x, a.sign * g_[i]);                               \
      T s1_ = p_[i], s2_ = (most) > 1 ? q_[i] : 0, s3_ = (most) > 2 ? r_[i] : 0;                 \
      x = a.shrink * x;                                                                          \
      (void)s2_, (void)s3_;                                                                      \
      __VA_ARGS__                                                                                \
      x_[i] = x;                                                                                 \
      p_[i] = NORMAL(s1_);                                                                       \
      if ((most) > 1) q_[i] = NORMAL(s2_);                                                       \
      if ((most) > 2) r_[i] = NORMAL(s3_);                                                       \
    }                                                                                            \
  }
#include "ops/updates.def"

typedef void (*NAME(loop))(int64_t n, NAME(numbers) a, T *const *at);

static NAME(loop) NAME(loop_of)(int op) {
  switch (op) {
#define LT_UPDATE(name, ...) \
  case LT_OP_##name##_step: return NAME(name);
#include "ops/updates.def"
  default: return NULL;
  }
}

/* A state of the row that is not given is a tile of zeros, and no store follows. */
static void NAME(update)(const job *j, int64_t chunk) {
  part p = part_of(j, chunk, OWN);
  NAME(numbers) a = NAME(numbers_of)(j->args);
  NAME(loop) loop = NAME(loop_of)(j->op);
  T scratch[GROUPS][LT_TILE], *at[GROUPS] = {NULL};
  int due = 2 + most_of(j->op);
  if (j->groups < due) p.run = LT_TILE;
  for (int64_t from = p.from; from < p.to; from += p.run) {
    int64_t n = p.to - from < p.run ? p.to - from : p.run;
    for (int g = 0; g < j->groups; g++)
      at[g] = (T *)(uintptr_t)LT_CPU(NAME(lt_load))(&p.it, g, from, n, scratch[g]);
    for (int g = j->groups; g < due; g++) at[g] = memset(scratch[g], 0, sizeof scratch[g]);
    loop(n, a, at);
    for (int g = 0; g < j->groups; g++)
      if (g != 1) LT_CPU(NAME(lt_store))(&p.it, g, from, n, at[g]);
  }
}

#undef T
#undef NAME
#undef OWN
#undef K
#undef NORMAL
#undef sqrt
#undef abs
#undef mul_add
