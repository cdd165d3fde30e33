/* runtime/cuda/elementwise.cu: all elementwise operations, by one kernel per compute type and
   layout.

   Loads, stores and the walk over dims are compiled once; the row is a jump that all threads
   take alike. One thread makes 4 neighbours, 8 where all memory is of 16 bits: what limits it are
   bytes.

   A kernel a row would be some hundred rows times dtypes times layouts: minutes of compiling and
   tens of megabytes. The switch costs a jump that is the same for all threads of a launch, hidden
   behind the loads. */
#include "cuda/elementwise.h"

#include <math.h>

#include "ops/elementwise_numbers.h"

enum { THREADS = 256, OPERANDS = 5 };

/* A piece of a call. */
typedef struct job {
  lt_cuda_iter it;
  int op, n_in;
  double p, q;
  int64_t pi, qi;
  bool check; /* refuse divisors of 0 and negative powers */
  lt_cuda_blame blame;
} job;

/* How the memory of a piece lies: all of it in the order of the iteration; the fastest dim in runs
   of whole accesses, which each operand has or repeats; in any way; in any way, for rows that call
   functions: a kernel of their own, so that those calls cost the others no registers. RUNS covers
   broadcasting along the inner dim and channels-last slices without a division for each element. */
enum { LINEAR, RUNS, STRIDED, CALLED };

/* Rows that call functions. */
static __host__ __device__ constexpr bool calls(int op) {
  switch (op) {
#define LT_SPECIAL(name)  \
  case LT_OP_##name:      \
  case LT_OP_##name##_backward:
#define LT_SPECIAL2(name)         \
  case LT_OP_##name:              \
  case LT_OP_##name##_backward_a: \
  case LT_OP_##name##_backward_b:
#include "ops/math/special.def"
    case LT_OP_lgamma:
    case LT_OP_lgamma_backward:
    case LT_OP_ndtr: return true;
    default: return false;
  }
}

/* The row of N neighbours: the switch goes the same way in all threads, and once a thread. */
#define CASE(name, types)                                                             \
  case LT_OP_##name:                                                                  \
    if constexpr (lt_row_types<T>::types && (HOW == CALLED) == calls(LT_OP_##name))   \
      EACH(row::name##_<T>)                                                           \
    break;
#define EACH(f)                                                                       \
  {                                                                                   \
    _Pragma("unroll") for (int e = 0; e < N; e++) {                                   \
      T x[4] = {v[0][e], v[1][e], v[2][e], v[3][e]};                                  \
      y[e] = f(x, p, q);                                                              \
    }                                                                                 \
  }
#define CASE_f32(id, f)                                           \
  case LT_ROW_##id:                                               \
    if constexpr (sizeof(T) == sizeof(float) && HOW != CALLED)    \
      EACH(row::f<T>)                                             \
    break;
#define CASE_any(name) CASE(name, any)
#define CASE_float(name) CASE(name, floats)
#define CASE_int(name) CASE(name, ints)

/* Instances differ by which rows they contain: one that T or HOW does not have is no case of the
   switch. */
template <class T, int N, int HOW>
static __device__ inline void apply_row(int op, const T (*v)[N], T *y, T p, T q) {
  switch (op) {
#define LT_UNARY_ARGS(name, kind, dtype, ...) CASE_##dtype(name) CASE_float(name##_backward)
#define LT_UNARY(name, dtype, ...) CASE_##dtype(name) CASE_float(name##_backward)
#define LT_TEST(name, ...) CASE_any(name)
#include "ops/unary.def"
#define LT_BINARY(name, dtype, ...) \
  CASE_##dtype(name) CASE_float(name##_backward_a) CASE_float(name##_backward_b)
#define LT_COMPARE(name, ...) CASE_any(name)
#include "ops/binary.def"
    case LT_ROW_COPY: EACH(row::copy_<T>) break;
    case LT_ROW_FILL: EACH(row::fill_<T>) break;
    case LT_ROW_WHERE: EACH(row::where_<T>) break;
    case LT_ROW_MASKED_FILL: EACH(row::masked_fill_<T>) break;
    CASE_f32(TO_FLOAT8, to_float8_)
    CASE_f32(OF_FLOAT8, of_float8_)
    CASE_f32(GELU_HALF, gelu_half_)
    CASE_f32(GELU_HALF_BACKWARD, gelu_half_backward_)
  }
}

template <class T> static __device__ inline T number_of(double, int64_t i) {
  return static_cast<T>(i);
}
template <> __device__ inline float number_of<float>(double f, int64_t) {
  return static_cast<float>(f);
}
template <> __device__ inline double number_of<double>(double f, int64_t) { return f; }

/* Where element n is in each operand. All operands at once: the divisions are shared. By
   multiplication in place of division (lt_quotient): sizes are the same for all threads, their
   reciprocals are computed on the host. */
static __device__ inline void place(const job &j, uint32_t n, int32_t *at) {
#pragma unroll
  for (int k = 0; k < OPERANDS; k++) at[k] = 0;
  for (int d = 0; d < j.it.ndim; d++) {
    uint32_t rest = lt_quotient(n, j.it.size[d]);
    int32_t i = static_cast<int32_t>(n - rest * j.it.size[d].d);
#pragma unroll
    for (int k = 0; k < OPERANDS; k++) at[k] += i * j.it.o[k].stride[d];
    n = rest;
  }
}

/* Whether an operand is one number in the N neighbours. */
template <int HOW> static __device__ inline bool is_one(const lt_cuda_operand &o) {
  return o.data == nullptr || (HOW == RUNS && o.stride[0] == 0);
}

template <class T> static __device__ inline T one_of(const lt_cuda_operand &o, int32_t at) {
  return o.data == nullptr ? lt_number<T>(o) : lt_load<T>(o.data, o.dtype, at);
}

/* N neighbours of each operand, from element at[k] of its memory on. Halves are converted when the
   loads of all operands are under way. Eight halves are one load of 16 bytes. */
template <class T, int N, int HOW, int IN>
static __device__ inline void load_runs(const job &j, const int32_t *at, T (*v)[N]) {
  uint32_t w[IN][(N + 1) / 2];
#pragma unroll
  for (int k = 0; k < IN; k++) {
    const lt_cuda_operand &o = j.it.o[k + 1];
    if (k >= j.n_in) continue;
    if (is_one<HOW>(o)) {
      v[k][0] = one_of<T>(o, at[k + 1]);
#pragma unroll
      for (int e = 1; e < N; e++) v[k][e] = v[k][0];
    } else if (N == 8) {
      lt_load_words<N>(o.data, at[k + 1], w[k]);
    } else {
      lt_load_row<T, N>(o.data, o.dtype, at[k + 1], v[k]);
    }
  }
  if constexpr (N == 8) {
#pragma unroll
    for (int k = 0; k < IN; k++)
      if (k < j.n_in && !is_one<HOW>(j.it.o[k + 1]))
        lt_of_halves<T, N>(j.it.o[k + 1].dtype, w[k], v[k]);
  }
}

/* One by one, as far as there are elements. */
template <class T, int N, int HOW, int IN>
static __device__ inline void load_each(const job &j, uint32_t first, T (*v)[N]) {
#pragma unroll
  for (int e = 0; e < N; e++) {
    int32_t at[OPERANDS];
    uint32_t n = first + e < j.it.numel ? first + e : first;
    if (HOW >= STRIDED) place(j, n, at);
#pragma unroll
    for (int k = 0; k < IN; k++) {
      const lt_cuda_operand &o = j.it.o[k + 1];
      int32_t from = HOW >= STRIDED ? at[k + 1] : static_cast<int32_t>(n);
      if (k < j.n_in)
        v[k][e] = o.data == nullptr ? lt_number<T>(o) : lt_load<T>(o.data, o.dtype, from);
    }
  }
}

template <class T, int N, int HOW>
static __device__ inline void store_each(const job &j, uint32_t first, const T *y) {
  const lt_cuda_operand &o = j.it.o[0];
#pragma unroll
  for (int e = 0; e < N; e++)
    if (first + e < j.it.numel)
      lt_store<T>(o.data, o.dtype, HOW >= STRIDED ? lt_cuda_place(j.it, 0, first + e)
                                                  : static_cast<int32_t>(first + e), y[e]);
}

/* Integers divided by 0 and negative powers of integers have no value: they are reported when the
   host waits. */
template <class T>
static __device__ inline void check(const job &j, T b) {
  if (j.op == LT_OP_pow ? b < 0 : b == 0)
    lt_cuda_refuse(j.blame, static_cast<int64_t>(b), 0);
}

/* IN: operands at most, which bounds the registers. */
template <class T, int N, int HOW, int IN>
static __global__ void __launch_bounds__(THREADS, sizeof(T) == 8       ? 1
                                                  : HOW >= STRIDED     ? 4
                                                  : N == 8 && IN == 4  ? 4 - 2 * LT_TIGHT
                                                  : N == 8 && HOW == LINEAR ? 5 - LT_TIGHT
                                                  : N == 8             ? 5 - 3 * LT_TIGHT
                                                  : HOW == LINEAR      ? 6 - LT_TIGHT
                                                                       : 5)
    rows(LT_CONSTANT job j) {
  uint32_t first = (blockIdx.x * THREADS + threadIdx.x) * N;
  if (first >= j.it.numel) return;
  bool whole = HOW < STRIDED && first + N <= j.it.numel;
  T v[4][N], y[N], p = number_of<T>(j.p, j.pi), q = number_of<T>(j.q, j.qi);
  int32_t at[OPERANDS];
#pragma unroll
  for (int k = 0; k < OPERANDS; k++) at[k] = static_cast<int32_t>(first);
  if (HOW == RUNS) place(j, first, at);
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int e = 0; e < N; e++) v[k][e] = T();
  if (whole)
    load_runs<T, N, HOW, IN>(j, at, v);
  else
    load_each<T, N, HOW, IN>(j, first, v);
  if (sizeof(T) == 8 && j.check)
    for (int e = 0; e < N && first + e < j.it.numel; e++) check<T>(j, v[1][e]);
#pragma unroll
  for (int e = 0; e < N; e++) y[e] = T();
  apply_row<T, N, HOW>(j.op, v, y, p, q);
  if (whole)
    lt_store_row<T, N>(j.it.o[0].data, j.it.o[0].dtype, static_cast<uint32_t>(at[0]), y);
  else
    store_each<T, N, HOW>(j, first, y);
}

typedef struct plan {
  lt_ctx *c;
  job *j;
  int compute;
} plan;

static bool is_half(int dtype) { return dtype == LT_F16 || dtype == LT_BF16; }

/* Whether all memory is of 16 bits. */
static bool is_of_halves(const job *j) {
  for (int k = 0; k <= j->n_in; k++)
    if (j->it.o[k].data != nullptr && !is_half(j->it.o[k].dtype)) return false;
  return true;
}

/* How memory lies for accesses of `n` elements, which a view may start beside. An access of n
   elements needs its address to be a multiple of its bytes: memory on 16 bytes, and strides of the
   other dims in whole accesses. */
static int layout_of(const job *j, int n) {
  bool runs = j->it.size[0].d % static_cast<uint32_t>(n) == 0;
  for (int k = 0; k <= j->n_in; k++) {
    const lt_cuda_operand *o = &j->it.o[k];
    if (o->data == nullptr) continue;
    if (reinterpret_cast<uintptr_t>(o->data) % 16 != 0) return STRIDED;
    if (o->stride[0] != 1 && (o->stride[0] != 0 || k == 0)) runs = false;
    for (int d = 1; d < j->it.ndim && o->stride[0] == 1; d++)
      if (o->stride[d] % n != 0) runs = false;
  }
  return j->it.linear ? LINEAR : runs ? RUNS : STRIDED;
}

template <class T, int N, int HOW, int IN = 4> static bool issue(lt_ctx *c, const job *j) {
  uint32_t threads = (j->it.numel + N - 1) / N;
  return lt_cuda_grid(c, rows<T, N, HOW, IN>, (threads + THREADS - 1) / THREADS, THREADS, 0, *j);
}

/* The same for all layouts of memory: a view gets the bits that a copy of it gets. */
static int row_of_halves(int op) {
  return op == LT_OP_gelu            ? LT_ROW_GELU_HALF
         : op == LT_OP_gelu_backward ? LT_ROW_GELU_HALF_BACKWARD
                                     : op;
}

/* Kernels of eight elements are for halves only, where they make an access of 16 bytes; those with
   two operands have a form with fewer registers, and so more threads at a time. */
static bool run_piece(void *ud, const lt_cuda_iter *it) {
  plan *p = static_cast<plan *>(ud);
  lt_ctx *c = p->c;
  job *j = p->j;
  bool taken = false;
  if (j->op == LT_ROW_COPY && (!lt_cuda_transpose(c, it, &taken) || taken)) return taken;
  j->it = *it;
  if (p->compute == LT_CUDA_F32 && is_of_halves(j)) j->op = row_of_halves(j->op);
  int how = layout_of(j, 4);
  if (calls(j->op))
    return p->compute == LT_CUDA_F32 ? issue<float, 4, CALLED>(c, j)
                                     : issue<double, 2, CALLED>(c, j);
  if (p->compute == LT_CUDA_F32 && is_of_halves(j)) {
    int wide = layout_of(j, 8);
    if (wide == LINEAR && j->n_in <= 2) return issue<float, 8, LINEAR, 2>(c, j);
    if (wide == RUNS && j->n_in <= 2) return issue<float, 8, RUNS, 2>(c, j);
    if (wide == LINEAR) return issue<float, 8, LINEAR>(c, j);
    if (wide == RUNS) return issue<float, 8, RUNS>(c, j);
  }
  if (p->compute == LT_CUDA_F32 && how == LINEAR) return issue<float, 4, LINEAR>(c, j);
  if (p->compute == LT_CUDA_F32 && how == RUNS) return issue<float, 4, RUNS>(c, j);
  if (p->compute == LT_CUDA_F32) return issue<float, 4, STRIDED>(c, j);
  if (p->compute == LT_CUDA_F64)
    return how == LINEAR ? issue<double, 2, LINEAR>(c, j) : issue<double, 2, STRIDED>(c, j);
  return how == LINEAR ? issue<int64_t, 2, LINEAR>(c, j) : issue<int64_t, 2, STRIDED>(c, j);
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

/* The backend has no table of ops: a device's op numbers are the rows' own (ops.def), whose kinds
   are listed here at compile time. */
static lt_kind kind_of(int op) {
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
  lt_kind kind = kind_of(call->op);
  int n = 0;
  lt_view views[5];
  lt_scalar numbers[5] = {}, p = {}, q = {};
  lt_dtype compute = lt_cuda_host->computed_in(call);
  job j = {};
  j.op = call->op;
  if (!lt_cuda_view(c, call->out[0], &views[0]) ||
      !place_operands(c, call, kind, views, numbers, &n))
    return false;
  lt_row_numbers(kind, call->args, &p, &q);
  j.p = p.f, j.pi = p.i, j.q = q.f, j.qi = q.i;
  j.check = lt_cuda_compute(compute) == LT_CUDA_I64 &&
            (j.op == LT_OP_pow || j.op == LT_OP_floor_divide || j.op == LT_OP_remainder ||
             j.op == LT_OP_fmod);
  if (j.check && !lt_cuda_blame_of(c, call, &j.blame)) return false;
  return run_job(c, &j, compute, n, views, numbers);
}
