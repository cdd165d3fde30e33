/* runtime/cuda/rows.cu: every elementwise row, by one kernel a compute type and layout.

   Loads, stores and the walk over dims are compiled once; the row is a jump that all threads
   take alike. One thread makes 4 neighbours, 8 where all memory is of 16 bits: what limits it are
   bytes. Float rows: 40 registers at 256 threads, 6 blocks a multiprocessor (launch bounds). */
#include "cuda/rows.h"

#include <math.h>

enum { THREADS = 256 };

/* A piece of a call. */
typedef struct job {
  lt_cuda_iter it;
  int op, n_in;
  double p, q;
  int64_t pi, qi;
  bool check; /* refuse divisors of 0 and negative powers */
  lt_cuda_blame blame;
} job;

#define CASE(name, types)                                                         \
  case LT_OP_##name:                                                              \
    if constexpr (lt_row_types<T>::types) y = row::name##_<T>(x, p, q);           \
    break;
#define CASE_any(name) CASE(name, any)
#define CASE_float(name) CASE(name, floats)

template <class T> static __device__ inline T apply_row(int op, const T *x, T p, T q) {
  T y = 0;
  switch (op) {
#define LT_UNARY_ARGS(name, kind, dtype, ...) CASE_##dtype(name) CASE_float(name##_backward)
#define LT_UNARY(name, dtype, ...) CASE_##dtype(name) CASE_float(name##_backward)
#define LT_TEST(name, ...) CASE_any(name)
#include "ops/unary.def"
#define LT_BINARY(name, dtype, ...) \
  CASE_##dtype(name) CASE_float(name##_backward_a) CASE_float(name##_backward_b)
#define LT_COMPARE(name, ...) CASE_any(name)
#include "ops/binary.def"
    case LT_ROW_COPY: y = row::copy_<T>(x, p, q); break;
    case LT_ROW_FILL: y = row::fill_<T>(x, p, q); break;
    case LT_ROW_WHERE: y = row::where_<T>(x, p, q); break;
    case LT_ROW_MASKED_FILL: y = row::masked_fill_<T>(x, p, q); break;
  }
  return y;
}

template <class T> static __device__ inline T number_of(double, int64_t i) {
  return static_cast<T>(i);
}
template <> __device__ inline float number_of<float>(double f, int64_t) {
  return static_cast<float>(f);
}
template <> __device__ inline double number_of<double>(double f, int64_t) { return f; }

/* Operand k of elements first..first+N-1; those beyond the end are 0. */
template <class T, int N, bool LINEAR>
static __device__ inline void load(const job &j, int k, uint32_t first, T *v) {
  const lt_cuda_operand &o = j.it.o[k];
  if (o.data == nullptr) {
#pragma unroll
    for (int e = 0; e < N; e++) v[e] = lt_number<T>(o);
  } else if (LINEAR && first + N <= j.it.numel) {
    lt_load_row<T, N>(o.data, o.dtype, first, v);
  } else {
#pragma unroll
    for (int e = 0; e < N; e++)
      v[e] = first + e < j.it.numel
                 ? lt_load<T>(o.data, o.dtype,
                              LINEAR ? static_cast<int32_t>(first + e)
                                     : lt_cuda_place(j.it, k, first + e))
                 : T();
  }
}

template <class T, int N, bool LINEAR>
static __device__ inline void store(const job &j, uint32_t first, const T *y) {
  const lt_cuda_operand &o = j.it.o[0];
  if (LINEAR && first + N <= j.it.numel) {
    lt_store_row<T, N>(o.data, o.dtype, first, y);
    return;
  }
#pragma unroll
  for (int e = 0; e < N; e++)
    if (first + e < j.it.numel)
      lt_store<T>(o.data, o.dtype, LINEAR ? static_cast<int32_t>(first + e)
                                          : lt_cuda_place(j.it, 0, first + e), y[e]);
}

template <class T, int N, bool LINEAR>
static __global__ void __launch_bounds__(THREADS, sizeof(T) == 4 && N == 4 ? 6 : 1)
    rows(LT_CONSTANT job j) {
  uint32_t first = (blockIdx.x * THREADS + threadIdx.x) * N;
  if (first >= j.it.numel) return;
  T v[4][N], y[N], p = number_of<T>(j.p, j.pi), q = number_of<T>(j.q, j.qi);
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (k < j.n_in) load<T, N, LINEAR>(j, k + 1, first, v[k]);
#pragma unroll
  for (int e = 0; e < N; e++) {
    T x[4] = {v[0][e], j.n_in > 1 ? v[1][e] : T(), j.n_in > 2 ? v[2][e] : T(),
              j.n_in > 3 ? v[3][e] : T()};
    if (sizeof(T) == 8 && j.check && first + e < j.it.numel &&
        (j.op == LT_OP_pow ? x[1] < 0 : x[1] == 0))
      lt_cuda_refuse(j.blame, static_cast<int64_t>(x[1]), 0);
    y[e] = apply_row<T>(j.op, x, p, q);
  }
  store<T, N, LINEAR>(j, first, y);
}

typedef struct plan {
  lt_ctx *c;
  job *j;
  int compute;
} plan;

static bool is_half(int dtype) { return dtype == LT_F16 || dtype == LT_BF16; }

/* Whether all memory starts on 16 bytes; and whether all of it is of 16 bits. */
static bool is_aligned(const job *j, bool *halves) {
  bool aligned = true;
  *halves = true;
  for (int k = 0; k <= j->n_in; k++) {
    const lt_cuda_operand *o = &j->it.o[k];
    if (o->data == nullptr) continue;
    if (reinterpret_cast<uintptr_t>(o->data) % 16 != 0) aligned = false;
    if (!is_half(o->dtype)) *halves = false;
  }
  return aligned;
}

template <class T, int N, bool LINEAR> static bool issue(lt_ctx *c, const job *j) {
  uint32_t threads = (j->it.numel + N - 1) / N;
  return lt_cuda_grid(c, rows<T, N, LINEAR>, (threads + THREADS - 1) / THREADS, THREADS, 0, *j);
}

static bool run_piece(void *ud, const lt_cuda_iter *it) {
  plan *p = static_cast<plan *>(ud);
  bool halves;
  p->j->it = *it;
  bool linear = is_aligned(p->j, &halves) && it->linear;
  if (p->compute == LT_CUDA_F32 && linear && halves) return issue<float, 8, true>(p->c, p->j);
  if (p->compute == LT_CUDA_F32)
    return linear ? issue<float, 4, true>(p->c, p->j) : issue<float, 4, false>(p->c, p->j);
  if (p->compute == LT_CUDA_F64)
    return linear ? issue<double, 4, true>(p->c, p->j) : issue<double, 4, false>(p->c, p->j);
  return linear ? issue<int64_t, 4, true>(p->c, p->j) : issue<int64_t, 4, false>(p->c, p->j);
}

static bool run_job(lt_ctx *c, job *j, lt_dtype compute, int n, const lt_view *views,
                    const lt_scalar *numbers) {
  lt_cuda_walk w;
  plan p = {c, j, lt_cuda_compute(compute)};
  lt_cuda_walk_make(&w, &views[0], n, views);
  for (int k = 0; k < n && numbers != nullptr; k++) w.number[k] = numbers[k];
  j->n_in = n - 1;
  return lt_cuda_pieces(&w, run_piece, &p);
}

bool lt_cuda_row(lt_ctx *c, int op, lt_dtype compute, int n, const lt_view *views,
                 const lt_scalar *numbers, lt_scalar p, lt_scalar q) {
  job j = {};
  j.op = op;
  j.p = p.f, j.pi = p.i, j.q = q.f, j.qi = q.i;
  return run_job(c, &j, compute, n, views, numbers);
}

/* Numbers stand in the place of the operand that is one; values that a derivative does not read are
   0. */
static bool place_operands(lt_ctx *c, const lt_call *call, int kind, lt_view *views,
                           lt_scalar *numbers, int *n) {
  lt_view in[4];
  for (int k = 0; k < call->n_in; k++)
    if (!lt_cuda_view(c, call->in[k], &in[k])) return false;
  bool pair = kind == LT_KIND_binary || kind == LT_KIND_compare;
  if (!pair && kind != LT_KIND_binary_backward) {
    for (int k = 0; k < call->n_in; k++) views[k + 1] = in[k];
    *n = 1 + call->n_in;
    return true;
  }
  const lt_args_binary *args = lt_cuda_args<lt_args_binary>(call);
  bool a = args->a.kind != LT_NO_SCALAR;
  int first = pair ? 1 : 2; /* g comes first */
  *n = pair ? 3 : 5;
  for (int k = 0; k < call->n_in; k++) views[k + 1] = in[k];
  for (int k = call->n_in + 1; k < *n; k++) lt_cuda_view(c, nullptr, &views[k]);
  if (pair && a) {
    views[2] = in[0];
    lt_cuda_view(c, nullptr, &views[1]);
  }
  numbers[first] = args->a;
  numbers[first + 1] = args->b;
  return true;
}

/* A bound of clamp that is not given lets all pass. */
static void place_bounds(const lt_call *call, int compute, job *j) {
  const lt_args_clamp *a = lt_cuda_args<lt_args_clamp>(call);
  bool whole = compute == LT_CUDA_I64, low = a->min.kind != LT_NO_SCALAR;
  bool high = a->max.kind != LT_NO_SCALAR;
  (void)whole;
  j->p = low ? a->min.f : -INFINITY, j->pi = low ? a->min.i : INT64_MIN;
  j->q = high ? a->max.f : INFINITY, j->qi = high ? a->max.i : INT64_MAX;
}

static int kind_of(int op) {
  switch (op) {
#define LT_UNARY_ARGS(name, kind, ...)                \
  case LT_OP_##name: return LT_KIND_##kind;           \
  case LT_OP_##name##_backward: return LT_KIND_##kind##_backward;
#define LT_UNARY(name, ...) LT_UNARY_ARGS(name, unary)
#define LT_TEST(name, ...) case LT_OP_##name: return LT_KIND_test;
#include "ops/unary.def"
#define LT_BINARY(name, ...)                          \
  case LT_OP_##name: return LT_KIND_binary;           \
  case LT_OP_##name##_backward_a:                     \
  case LT_OP_##name##_backward_b: return LT_KIND_binary_backward;
#define LT_COMPARE(name, ...) case LT_OP_##name: return LT_KIND_compare;
#include "ops/binary.def"
    default: return LT_KIND_COUNT;
  }
}

LT_CUDA_KERNEL(rows) {
  int kind = kind_of(call->op), n = 0;
  lt_view views[5];
  lt_scalar numbers[5] = {};
  lt_dtype compute = lt_cuda_host->computed_in(call);
  job j = {};
  j.op = call->op;
  if (!lt_cuda_view(c, call->out[0], &views[0]) ||
      !place_operands(c, call, kind, views, numbers, &n))
    return false;
  if (kind == LT_KIND_clamp || kind == LT_KIND_clamp_backward)
    place_bounds(call, lt_cuda_compute(compute), &j);
  j.check = lt_cuda_compute(compute) == LT_CUDA_I64 &&
            (j.op == LT_OP_pow || j.op == LT_OP_floor_divide || j.op == LT_OP_remainder);
  if (j.check && !lt_cuda_blame_of(c, call, &j.blame)) return false;
  return run_job(c, &j, compute, n, views, numbers);
}
