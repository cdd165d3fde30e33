/* runtime/cuda/online_softmax.h: online softmax: the maximum and the sum of exponentials in one
   pass (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018). */
#ifndef LT_CUDA_ONLINE_SOFTMAX_H
#define LT_CUDA_ONLINE_SOFTMAX_H

#include "cuda/elementwise_functions.h"
#include "cuda/reduce.h"

enum { LT_CUDA_CARRY = 128 }; /* so many quads are added up before they go to double */

/* The largest value so far and the sum of exp(x - largest): values below none count as nothing,
   NaN makes the sum NaN and is not the largest. */
template <class T> struct lt_tally {
  T most, part;
  double total;
};

template <class T> static __device__ inline T lt_shifted_exp(T v, T most) {
  return v == -INFINITY ? T(0) : row::exp(v - most);
}

template <class T> static __device__ inline void lt_rescale(lt_tally<T> *t, T most) {
  T by = t->most == most ? T(1) : row::exp(t->most - most);
  t->part *= by;
  t->total *= by;
  t->most = most;
}

template <class T> static __device__ inline void lt_tally4(lt_tally<T> *t, const T *v) {
  lt_larger larger;
  T most = larger(larger(v[0], v[1]), larger(v[2], v[3]));
  if (most > t->most) lt_rescale(t, most);
  t->part += (lt_shifted_exp(v[0], t->most) + lt_shifted_exp(v[1], t->most)) +
             (lt_shifted_exp(v[2], t->most) + lt_shifted_exp(v[3], t->most));
}

template <class T> static __device__ inline void lt_carry(T *part, double *total) {
  *total += static_cast<double>(*part);
  *part = 0;
}

#endif
