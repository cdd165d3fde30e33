/* runtime/cuda/updates.h: what the files of optimizer steps share. */
#ifndef LT_CUDA_UPDATES_H
#define LT_CUDA_UPDATES_H

#include <float.h>

#include "cuda/multi_tensor.h"

enum { THREADS = LT_LIST_THREADS };

/* Where both sides of a sum are products, which of them is rounded is said here. */
static __device__ inline float mul_add(float a, float b, float c) { return fmaf(a, b, c); }
static __device__ inline double mul_add(double a, double b, double c) { return fma(a, b, c); }
static __device__ inline float normal(float x) { return x < FLT_MIN && x > -FLT_MIN ? 0 : x; }
static __device__ inline double normal(double x) { return x < DBL_MIN && x > -DBL_MIN ? 0 : x; }

/* The number that says whether a step is taken: it is where this is absent, or 0. */
typedef struct found_inf {
  const void *data;
  int dtype;
} found_inf;

static __device__ inline bool is_refused(found_inf v) {
  return v.data != nullptr && lt_load<double>(v.data, v.dtype, 0) != 0;
}

/* What a thread works on: 4 neighbours at a time of a chunk of row `row`. */
typedef struct part {
  int row;
  int64_t at, to;
} part;

template <int G> static __device__ inline part part_of(const lt_list<G> &l) {
  part p;
  p.row = lt_list_find(l);
  int64_t from = static_cast<int64_t>(blockIdx.x - l.row[p.row].first) * LT_LIST_CHUNK;
  p.to = from + LT_LIST_CHUNK < l.row[p.row].n ? from + LT_LIST_CHUNK : l.row[p.row].n;
  p.at = from + threadIdx.x * 4;
  return p;
}

static __device__ inline int count_of(const part &p) {
  return p.to - p.at < 4 ? static_cast<int>(p.to - p.at) : 4;
}

template <class T> static __device__ inline int state_dtype() {
  return sizeof(T) == 8 ? LT_F64 : LT_F32;
}

static inline bool not_gradients(int group) { return group != 1; }

/* The list of a step, and its last input, which may say that it is not taken. */
static inline bool begin(lt_ctx *c, const lt_call *call, int groups, bool checked,
                         lt_list_job *j, found_inf *found) {
  lt_view v;
  *j = {c, call, call->in, call->n_in / groups, groups, not_gradients, nullptr};
  *found = {nullptr, LT_F32};
  if (checked && call->n_in > 0) {
    if (!lt_cuda_view(c, call->in[call->n_in - 1], &v)) return false;
    *found = {v.data, v.dtype};
  }
  return lt_list_begin(j);
}

#endif
