/* runtime/cuda/softmax.cu: softmax and log_softmax along a dim, and their derivatives.

   A team of threads has a row. Rows that fit into shared memory are read once; of longer ones the
   largest x and the sum of exp(x - largest) are found together, and x is read again (M. Milakov,
   N. Gimelshein, "Online normalizer calculation for softmax", 2018). A thread reads from shared
   memory only what it wrote there. Where the dim is not the innermost, threads side by side have a
   column each. */
#include "cuda/lines.h"
#include "cuda/online_softmax.h"
#include "cuda/reduce.h"

enum { THREADS = 256, SMALL = 128, CACHE = 48 << 10 };

/* Blocks of a multiprocessor that the kernels of rows are compiled for: without a number nvcc takes
   fewer registers than they need, and spills. Three blocks of 256 threads leave 85 registers a
   thread of the 65,536 of a multiprocessor. */
static constexpr int RESIDENT = 3;

/* Operands: forward x and y; backward y, its gradient and the gradient of x. */
typedef struct job {
  lt_cuda_lines x;
  bool log, cached;
  int lanes;     /* rows: threads a line; columns: lines side by side */
  uint32_t slot; /* elements of shared memory a line and operand */
} job;

/* One element of the result. e is exp(v - most) already where `ready`. log_softmax subtracts `most`
   first: most + by would round `by` away. */
template <class T>
static __device__ inline T normal(bool log, bool ready, T v, T most, T by) {
  if (log) return v - most - by; /* most + by would round `by` away */
  return (ready ? v : row::exp(v - most)) * by;
}

/* A team a row: bound by bytes. Cached: one read of x, the exponentials in shared memory, one write
   of y. Otherwise x is read twice, with the running maximum of Milakov and Gimelshein, whose sum is
   rescaled when the maximum rises. Sums are in T over LT_CUDA_CARRY steps and in double beyond. */
template <class T>
static __global__ void __launch_bounds__(THREADS, RESIDENT) rows(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  LT_DYNAMIC(T, cache);
  uint32_t lanes = static_cast<uint32_t>(j.lanes), team = threadIdx.x / lanes;
  uint32_t line = blockIdx.x * (blockDim.x / lanes) + team, step = 4 * lanes;
  uint32_t start = 4 * (threadIdx.x % lanes), n = line < j.x.count ? j.x.length : 0;
  char *x = n > 0 ? lt_line(j.x, 0, line) : nullptr, *y = n > 0 ? lt_line(j.x, 1, line) : nullptr;
  lt_quad<T> *mine = reinterpret_cast<lt_quad<T> *>(cache + team * j.slot), q;
  lt_tally<T> t = {-INFINITY, 0, 0};
  int taken = 0;
  for (uint32_t i = start; i < n; i += lt_quads<T> * step) {
    lt_quad<T> all[lt_quads<T>];
    lt_line_load_quads<T>(j.x, 0, x, i, step, n, -INFINITY, all);
#pragma unroll
    for (int a = 0; a < lt_quads<T>; a++) {
      if (!j.cached) {
        lt_tally4(&t, all[a].v);
        continue;
      }
      if (i + a * step < n) mine[(i + a * step) / 4] = all[a];
#pragma unroll
      for (int e = 0; e < 4; e++) t.most = lt_larger()(t.most, all[a].v[e]);
    }
    if ((taken += lt_quads<T>) % LT_CUDA_CARRY == 0) lt_carry(&t.part, &t.total);
  }
  T most = static_cast<T>(lt_team_all<double>(t.most, -INFINITY, j.lanes, lt_larger(), scratch));
  if (j.cached) {
    for (uint32_t i = start; i < n; i += step) {
      lt_quad<T> e = mine[i / 4];
      for (int k = 0; k < 4; k++) e.v[k] = row::exp(e.v[k] - most);
      t.part += (e.v[0] + e.v[1]) + (e.v[2] + e.v[3]);
      if (!j.log) mine[i / 4] = e;
    }
  } else {
    lt_rescale(&t, most);
  }
  lt_carry(&t.part, &t.total);
  T sum = static_cast<T>(lt_team_sum(t.total, j.lanes, scratch)),
    by = j.log ? row::log(sum) : 1 / sum;
  for (uint32_t i = start; i < n; i += step) {
    if (j.cached)
      q = mine[i / 4];
    else
      lt_line_load4<T>(j.x, 0, x, i, n, -INFINITY, q.v);
    for (int e = 0; e < 4; e++) q.v[e] = normal(j.log, j.cached, q.v[e], most, by);
    lt_line_store4<T>(j.x, 1, y, i, n, q.v);
  }
}

/* dx of y = softmax: y (g - sum(y g)); of log_softmax, whose y is a logarithm: g - exp(y)
   sum(g). */
template <class T> static __device__ inline T gradient(bool log, T y, T g, T sum) {
  return log ? g - row::exp(y) * sum : y * (g - sum);
}

/* A team a row: bound by bytes, two reads and a write where the row is cached, for the sum and the
   result both need y and g. */
template <class T>
static __global__ void __launch_bounds__(THREADS, RESIDENT) rows_backward(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  LT_DYNAMIC(T, cache);
  uint32_t lanes = static_cast<uint32_t>(j.lanes), team = threadIdx.x / lanes;
  uint32_t line = blockIdx.x * (blockDim.x / lanes) + team, step = 4 * lanes;
  uint32_t start = 4 * (threadIdx.x % lanes), n = line < j.x.count ? j.x.length : 0;
  char *y = n > 0 ? lt_line(j.x, 0, line) : nullptr, *g = n > 0 ? lt_line(j.x, 1, line) : nullptr;
  lt_quad<T> *mine = reinterpret_cast<lt_quad<T> *>(cache + 2 * team * j.slot), a, b;
  T part = 0;
  double total = 0;
  int taken = 0;
  for (uint32_t i = start; i < n; i += step) {
    lt_line_load4<T>(j.x, 0, y, i, n, T(0), a.v);
    lt_line_load4<T>(j.x, 1, g, i, n, T(0), b.v);
    if (j.cached) mine[i / 4] = a, mine[(j.slot + i) / 4] = b;
    part += j.log ? (b.v[0] + b.v[1]) + (b.v[2] + b.v[3])
                  : (b.v[0] * a.v[0] + b.v[1] * a.v[1]) + (b.v[2] * a.v[2] + b.v[3] * a.v[3]);
    if (++taken % LT_CUDA_CARRY == 0) lt_carry(&part, &total);
  }
  lt_carry(&part, &total);
  T sum = static_cast<T>(lt_team_sum(total, j.lanes, scratch));
  char *out = n > 0 ? lt_line(j.x, 2, line) : nullptr;
  for (uint32_t i = start; i < n; i += step) {
    if (j.cached) {
      a = mine[i / 4], b = mine[(j.slot + i) / 4];
    } else {
      lt_line_load4<T>(j.x, 0, y, i, n, T(0), a.v);
      lt_line_load4<T>(j.x, 1, g, i, n, T(0), b.v);
    }
    for (int e = 0; e < 4; e++) a.v[e] = gradient(j.log, a.v[e], b.v[e], sum);
    lt_line_store4<T>(j.x, 2, out, i, n, a.v);
  }
}

/* `lanes` columns side by side, the other threads of the block further along them. Neighbouring
   threads read neighbouring addresses of memory although their rows run across it. No cache: up to
   32 whole columns would not fit. */
template <class T> static __global__ void __launch_bounds__(THREADS) columns(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, THREADS);
  uint32_t lanes = static_cast<uint32_t>(j.lanes), step = THREADS / lanes;
  uint32_t line = blockIdx.x * lanes + threadIdx.x % lanes, start = threadIdx.x / lanes;
  uint32_t n = line < j.x.count ? j.x.length : 0;
  char *x = n > 0 ? lt_line(j.x, 0, line) : nullptr, *y = n > 0 ? lt_line(j.x, 1, line) : nullptr;
  lt_tally<T> t = {-INFINITY, 0, 0};
  int taken = 0;
  for (uint32_t i = start; i < n; i += 4 * step) {
    T v[4];
    lt_line_load_apart<T, 4>(j.x, 0, x, i, step, n, -INFINITY, v);
    lt_tally4(&t, v);
    if (++taken % LT_CUDA_CARRY == 0) lt_carry(&t.part, &t.total);
  }
  T most = static_cast<T>(lt_column_all<double>(t.most, lanes, lt_larger(), scratch));
  lt_rescale(&t, most);
  lt_carry(&t.part, &t.total);
  T sum = static_cast<T>(lt_column_all(t.total, lanes, lt_plus(), scratch));
  T by = j.log ? row::log(sum) : 1 / sum;
  for (uint32_t i = start; i < n; i += step)
    lt_line_store<T>(j.x, 1, y, i,
                     normal(j.log, false, lt_line_load<T>(j.x, 0, x, i), most, by));
}

/* As columns: y and g are read twice. */
template <class T>
static __global__ void __launch_bounds__(THREADS) columns_backward(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, THREADS);
  uint32_t lanes = static_cast<uint32_t>(j.lanes), step = THREADS / lanes;
  uint32_t line = blockIdx.x * lanes + threadIdx.x % lanes, start = threadIdx.x / lanes;
  uint32_t n = line < j.x.count ? j.x.length : 0;
  char *y = n > 0 ? lt_line(j.x, 0, line) : nullptr, *g = n > 0 ? lt_line(j.x, 1, line) : nullptr;
  T part = 0;
  double total = 0;
  int taken = 0;
  for (uint32_t i = start; i < n; i += step) {
    T d = lt_line_load<T>(j.x, 1, g, i);
    part += j.log ? d : d * lt_line_load<T>(j.x, 0, y, i);
    if (++taken % LT_CUDA_CARRY == 0) lt_carry(&part, &total);
  }
  lt_carry(&part, &total);
  T sum = static_cast<T>(lt_column_all(total, lanes, lt_plus(), scratch));
  char *out = n > 0 ? lt_line(j.x, 2, line) : nullptr;
  for (uint32_t i = start; i < n; i += step)
    lt_line_store<T>(j.x, 2, out, i,
                     gradient(j.log, lt_line_load<T>(j.x, 0, y, i),
                              lt_line_load<T>(j.x, 1, g, i), sum));
}

typedef struct state {
  lt_ctx *c;
  job j;
  bool back;
} state;

/* Lanes, shared memory and the grid. A block has 128 threads where several teams share it, so that
   short rows spread over more multiprocessors. */
template <class T> static bool issue(state *s) {
  job *j = &s->j;
  if (j->x.columns) {
    unsigned side = 1;
    while (side < 32 && side < j->x.count) side *= 2;
    j->lanes = static_cast<int>(side);
    unsigned blocks = (j->x.count + side - 1) / side;
    return lt_cuda_grid(s->c, s->back ? columns_backward<T> : columns<T>, blocks, THREADS, 0, *j);
  }
  j->lanes = lt_cuda_team(j->x.count, j->x.length);
  j->slot = (j->x.length + 3) / 4 * 4;
  unsigned threads = j->lanes > 32 ? THREADS : SMALL;
  unsigned teams = threads / static_cast<unsigned>(j->lanes);
  size_t shared = sizeof(T) * j->slot * teams * (s->back ? 2 : 1);
  j->cached = shared <= CACHE - 1024; /* `scratch` needs some */
  return lt_cuda_grid(s->c, s->back ? rows_backward<T> : rows<T>, (j->x.count + teams - 1) / teams,
                      threads, j->cached ? shared : 0, *j);
}

static bool run_piece(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  s->j.x = *x;
  return x->o[0].dtype == LT_F64 ? issue<double>(s) : issue<float>(s);
}

static bool run(lt_ctx *c, const lt_call *call, int64_t dim, bool log) {
  lt_view in[2], v[3];
  lt_cuda_lines_plan p;
  state s = {};
  s.c = c;
  s.back = call->n_in > 1;
  s.j.log = log;
  for (int k = 0; k < call->n_in; k++)
    if (!lt_cuda_view(c, call->in[k], &in[k])) return false;
  v[0] = in[s.back ? 1 : 0]; /* y is before its gradient */
  v[1] = in[0];
  if (!lt_cuda_view(c, call->out[0], &v[s.back ? 2 : 1])) return false;
  if (lt_cuda_numel(&v[0]) == 0) return true;
  uint32_t along = v[0].ndim > 0 ? 1u << dim : 0;
  lt_cuda_lines_make(&p, along, LT_LINES_BY_MEMORY, false, s.back ? 3 : 2, v);
  return lt_cuda_lines_pieces(c, &p, run_piece, &s);
}

LT_CUDA_KERNEL(softmax) { return run(c, call, lt_cuda_args<lt_args_softmax>(call)->dim, false); }
LT_CUDA_KERNEL(log_softmax) { return run(c, call, lt_cuda_args<lt_args_softmax>(call)->dim, true); }
LT_CUDA_KERNEL(softmax_backward) {
  return run(c, call, lt_cuda_args<lt_args_softmax_backward>(call)->dim, false);
}
LT_CUDA_KERNEL(log_softmax_backward) {
  return run(c, call, lt_cuda_args<lt_args_softmax_backward>(call)->dim, true);
}
