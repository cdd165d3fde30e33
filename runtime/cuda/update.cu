/* runtime/cuda/update.cu: optimizer steps, and scaling of gradients, many tensors a launch.

   Formulas, constants and the zeros in the place of denormals are those of cpu/update_type.h, with
   the same products and sums in one rounding: parameters have the bits that the CPU's levels with
   FMA give them. The norm of gradients: total_norm.cu; rows of ops/updates.def: updates.cu.

   One launch for hundreds of tensors: a launch takes some microseconds, about as long as a step
   of a small tensor. */
#include "cuda/updates.h"

static __device__ inline float root_of(float x) { return lt_sqrt_f32(x); }
static __device__ inline double root_of(double x) { return lt_sqrt_f64(x); }

/* Momentum as in torch.optim.SGD (I. Sutskever and others, 2013): m = momentum m + (1 - dampening)
   g, the first step m = g. `ahead`, `direct` and `by` choose between m and Nesterov's g + momentum
   m without a branch. */
template <class T> struct sgd_args {
  T lr, decay, momentum, fresh, ahead, direct, by, sign;
  bool first;
};

/* Parameters, gradients and, for G 3, momenta. Limited by bytes, as all here. */
template <class T, int G>
static __global__ void __launch_bounds__(THREADS) sgd(LT_CONSTANT lt_list<G> l,
                                                      LT_CONSTANT sgd_args<T> a, found_inf found) {
  if (is_refused(found)) return;
  part p = part_of(l);
  const lt_list_row<G> &r = l.row[p.row];
  for (; p.at < p.to; p.at += THREADS * 4) {
    int count = count_of(p);
    T x[4], g[4], m[4] = {};
    lt_list_load(r.data[0], r.dtype, p.at, count, r.aligned, x);
    lt_list_load(r.data[1], r.dtype, p.at, count, r.aligned, g);
    if (G == 3 && !a.first)
      lt_list_load(r.data[G - 1], state_dtype<T>(), p.at, count, r.aligned, m);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      T d = a.sign * mul_add(a.decay, x[k], g[k]);
      if (G == 3 && a.first) {
        m[k] = d;
        d = a.ahead * d;
      } else if (G == 3) {
        m[k] = normal(mul_add(a.momentum, m[k], a.fresh * d));
        d = mul_add(a.direct, d, a.by * m[k]);
      }
      x[k] = mul_add(-a.lr, d, x[k]);
    }
    lt_list_store(r.data[0], r.dtype, p.at, count, r.aligned, x);
    if (G == 3) lt_list_store(r.data[G - 1], state_dtype<T>(), p.at, count, r.aligned, m);
  }
}

/* D. Kingma and J. Ba, Adam, 2015; I. Loshchilov and F. Hutter, 2019 (decoupled decay). Corrections
   of the bias are two numbers for the whole step, computed by the host in double: size = lr / (1 -
   beta1^t), root = 1 / sqrt(1 - beta2^t). */
template <class T> struct adam_args {
  T size, root, new1, new2, shrink, decay, beta2, eps, sign;
};

/* Parameters, gradients, first and second moments. */
template <class T>
static __global__ void __launch_bounds__(THREADS) adam(LT_CONSTANT lt_list<4> l,
                                                       LT_CONSTANT adam_args<T> a,
                                                       found_inf found) {
  if (is_refused(found)) return;
  part p = part_of(l);
  const lt_list_row<4> &r = l.row[p.row];
  for (; p.at < p.to; p.at += THREADS * 4) {
    int count = count_of(p);
    T x[4], g[4], m[4], v[4];
    lt_list_load(r.data[0], r.dtype, p.at, count, r.aligned, x);
    lt_list_load(r.data[1], r.dtype, p.at, count, r.aligned, g);
    lt_list_load(r.data[2], state_dtype<T>(), p.at, count, r.aligned, m);
    lt_list_load(r.data[3], state_dtype<T>(), p.at, count, r.aligned, v);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      T d = a.sign * mul_add(a.decay, x[k], g[k]);
      m[k] = normal(mul_add(a.new1, d - m[k], m[k]));
      v[k] = normal(mul_add(a.beta2, v[k], a.new2 * d * d));
      T step = m[k] / mul_add(root_of(v[k]), a.root, a.eps);
      x[k] = mul_add(a.shrink, x[k], -(a.size * step));
    }
    lt_list_store(r.data[0], r.dtype, p.at, count, r.aligned, x);
    lt_list_store(r.data[2], state_dtype<T>(), p.at, count, r.aligned, m);
    lt_list_store(r.data[3], state_dtype<T>(), p.at, count, r.aligned, v);
  }
}

/* A factor of 1 changes nothing, NaN neither. */
template <class T>
static __global__ void __launch_bounds__(THREADS) scale(LT_CONSTANT lt_list<1> l,
                                                        found_inf factor) {
  double by = lt_load<double>(factor.data, factor.dtype, 0);
  if (by == 1) return;
  part p = part_of(l);
  const lt_list_row<1> &r = l.row[p.row];
  for (; p.at < p.to; p.at += THREADS * 4) {
    int count = count_of(p);
    T x[4];
    lt_list_load(r.data[0], r.dtype, p.at, count, r.aligned, x);
#pragma unroll
    for (int k = 0; k < 4; k++) x[k] *= static_cast<T>(by);
    lt_list_store(r.data[0], r.dtype, p.at, count, r.aligned, x);
  }
}

static bool all_groups(int group) { return group >= 0; }

template <class T, int G>
static bool run_sgd(lt_list_job *j, const lt_args_sgd_step *a, found_inf found) {
  sgd_args<T> s = {};
  s.sign = a->maximize ? -1 : 1;
  s.lr = static_cast<T>(a->lr), s.decay = s.sign * static_cast<T>(a->weight_decay);
  s.momentum = static_cast<T>(a->momentum), s.fresh = static_cast<T>(1 - a->dampening);
  s.ahead = a->nesterov ? 1 + s.momentum : 1;
  s.direct = a->nesterov ? 1 : 0, s.by = a->nesterov ? s.momentum : 1;
  s.first = a->first;
  return lt_list_each<T, G>(j, [&](const lt_list<G> &l) {
    return lt_cuda_grid(j->c, sgd<T, G>, l.chunks, THREADS, 0, l, s, found);
  });
}

LT_CUDA_KERNEL(sgd_step) {
  const lt_args_sgd_step *a = lt_cuda_args<lt_args_sgd_step>(call);
  lt_list_job j;
  found_inf found;
  if (!begin(c, call, a->momentum != 0 ? 3 : 2, a->checked, &j, &found)) return false;
  bool ok = j.groups == 3 ? run_sgd<float, 3>(&j, a, found) && run_sgd<double, 3>(&j, a, found)
                          : run_sgd<float, 2>(&j, a, found) && run_sgd<double, 2>(&j, a, found);
  return ok && lt_list_end(&j);
}

template <class T>
static bool run_adam(lt_list_job *j, const lt_args_adam_step *a, found_inf found) {
  double correction1 = 1 - pow(a->beta1, static_cast<double>(a->step));
  double correction2 = 1 - pow(a->beta2, static_cast<double>(a->step));
  adam_args<T> s;
  s.size = static_cast<T>(a->lr / correction1);
  s.root = static_cast<T>(1 / sqrt(correction2));
  s.new1 = static_cast<T>(1 - a->beta1), s.new2 = static_cast<T>(1 - a->beta2);
  s.shrink = static_cast<T>(a->decoupled ? 1 - a->lr * a->weight_decay : 1);
  s.sign = a->maximize ? -1 : 1;
  s.decay = s.sign * static_cast<T>(a->decoupled ? 0 : a->weight_decay);
  s.beta2 = static_cast<T>(a->beta2), s.eps = static_cast<T>(a->eps);
  return lt_list_each<T, 4>(j, [&](const lt_list<4> &l) {
    return lt_cuda_grid(j->c, adam<T>, l.chunks, THREADS, 0, l, s, found);
  });
}

/* `found`: a number on the device that loss scaling has set where a gradient is infinite or NaN.
   The kernels read it and leave all as it was, so that the host need not wait to decide. */
LT_CUDA_KERNEL(adam_step) {
  const lt_args_adam_step *a = lt_cuda_args<lt_args_adam_step>(call);
  lt_list_job j;
  found_inf found;
  return begin(c, call, 4, a->checked, &j, &found) && run_adam<float>(&j, a, found) &&
         run_adam<double>(&j, a, found) && lt_list_end(&j);
}

/* The factor is a number on the device too, of clipping by a norm that was computed there. */
template <class T> static bool run_scale(lt_list_job *j, found_inf factor) {
  return lt_list_each<T, 1>(j, [&](const lt_list<1> &l) {
    return lt_cuda_grid(j->c, scale<T>, l.chunks, THREADS, 0, l, factor);
  });
}

LT_CUDA_KERNEL(grads_scale) {
  lt_list_job j = {c, call, call->in + 1, call->n_in - 1, 1, all_groups, nullptr};
  lt_view v;
  if (!lt_cuda_view(c, call->in[0], &v)) return false;
  found_inf factor = {v.data, v.dtype};
  return lt_list_begin(&j) && run_scale<float>(&j, factor) && run_scale<double>(&j, factor) &&
         lt_list_end(&j);
}
