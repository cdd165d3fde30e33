/* runtime/cuda/updates.cu: the optimizer steps that are rows of ops/updates.def, many tensors a
   launch. */
#include "cuda/updates.h"

/* The numbers of an optimizer's step, rounded once to the compute type; new1 and new2 are 1 - beta,
   in double before that. */
template <class T> struct numbers {
#define FIELD(type, name, default_value) T name;
  LT_UPDATE_NUMBERS(FIELD) T new1, new2, sign;
#undef FIELD
};

namespace row {

#define K(c) static_cast<T>(c)

/* One element by the row of `op`. Weight decay, decoupled (shrink) or added to the gradient, is the
   same for all rows and done here. */
template <class T>
static __device__ inline void update(int op, const numbers<T> &a, T &x, T g, T *s) {
  g = mul_add(a.weight_decay, x, a.sign * g);
  x = a.shrink * x;
  switch (op) {
#define LT_UPDATE(name, fewest, most, s1_, s2_, s3_, doc, ...)                       \
  case LT_OP_##name##_step: {                                                        \
    T s1_ = s[0], s2_ = s[1], s3_ = s[2];                                            \
    __VA_ARGS__                                                                      \
    s[0] = normal(s1_), s[1] = normal(s2_), s[2] = normal(s3_);                      \
    break;                                                                           \
  }
#include "ops/updates.def"
  }
}

#undef K

} // namespace row

/* Parameters, gradients and G - 2 kinds of state; those that the row has besides are 0. Limited by
   bytes: all threads of a launch take the same branch. */
template <class T, int G>
static __global__ void __launch_bounds__(THREADS) update(LT_CONSTANT lt_list<G> l, int op,
                                                         LT_CONSTANT numbers<T> a,
                                                         found_inf found) {
  if (is_refused(found)) return;
  part p = part_of(l);
  const lt_list_row<G> &r = l.row[p.row];
  for (; p.at < p.to; p.at += THREADS * 4) {
    int count = count_of(p);
    T x[4], g[4], s[3][4] = {};
    lt_list_load(r.data[0], r.dtype, p.at, count, r.aligned, x);
    lt_list_load(r.data[1], r.dtype, p.at, count, r.aligned, g);
#pragma unroll
    for (int k = 0; k < G - 2; k++)
      lt_list_load(r.data[2 + k], state_dtype<T>(), p.at, count, r.aligned, s[k]);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      T own[3] = {s[0][k], s[1][k], s[2][k]};
      row::update(op, a, x[k], g[k], own);
      s[0][k] = own[0], s[1][k] = own[1], s[2][k] = own[2];
    }
    lt_list_store(r.data[0], r.dtype, p.at, count, r.aligned, x);
#pragma unroll
    for (int k = 0; k < G - 2; k++)
      lt_list_store(r.data[2 + k], state_dtype<T>(), p.at, count, r.aligned, s[k]);
  }
}

template <class T, int G>
static bool run_update(lt_list_job *j, const lt_args_update *args, found_inf found) {
  numbers<T> a;
#define COPY(type, name, default_value) a.name = static_cast<T>(args->name);
  LT_UPDATE_NUMBERS(COPY)
#undef COPY
  a.new1 = static_cast<T>(1 - args->beta1), a.new2 = static_cast<T>(1 - args->beta2);
  a.sign = args->maximize ? -1 : 1;
  return lt_list_each<T, G>(j, [&](const lt_list<G> &l) {
    return lt_cuda_grid(j->c, update<T, G>, l.chunks, THREADS, 0, l, j->call->op, a, found);
  });
}

/* A list may have parameters of f64 among others of f32 and 16 bits: each launch takes those of its
   compute type. */
template <int G> static bool run_both(lt_list_job *j, const lt_args_update *a, found_inf found) {
  return run_update<float, G>(j, a, found) && run_update<double, G>(j, a, found);
}

LT_CUDA_KERNEL(updates) {
  const lt_args_update *a = lt_cuda_args<lt_args_update>(call);
  lt_list_job j;
  found_inf found;
  if (!begin(c, call, 2 + static_cast<int>(a->states), a->checked, &j, &found)) return false;
  bool ok = j.groups == 3   ? run_both<3>(&j, a, found)
            : j.groups == 4 ? run_both<4>(&j, a, found)
                            : run_both<5>(&j, a, found);
  return ok && lt_list_end(&j);
}
