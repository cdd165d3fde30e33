/* runtime/cuda/extremum.cu: the largest and smallest element along a dim and where it is.

   NaN is better than any number, of equals the first is: so threads and segments of a line may be
   joined in any order. A line has at most 2^30 elements.

   An order by value, then by position, is total, so candidates may be joined in any tree: the first
   of equal elements wins as on the CPU. NaN beats all. */
#include <math.h>

#include "cuda/thread_groups.h"

enum { WANTED_BLOCKS = 1056, SEGMENTS = 1024 };

/* Operands: x, the value and the index (data nullptr: not wanted). */
typedef struct job {
  lt_cuda_lines x;
  bool least;
  int lanes;
  uint32_t segment, segments;
  void *values;      /* [segments][count], where there are several */
  uint32_t *places;
} job;

template <class T> struct best {
  T value;
  uint32_t at;
};

template <class T> static __device__ inline T worst(bool least) {
  return least ? T(INFINITY) : T(-INFINITY);
}
template <> __device__ inline int64_t worst<int64_t>(bool least) {
  return least ? INT64_MAX : INT64_MIN;
}

/* A total order of (value, place), so that joining is associative and commutative: NaN above all,
   then the value, then the lower place. It needs no order of threads to be deterministic. */
template <class T>
static __device__ inline void improve(best<T> *a, T value, uint32_t at, bool least) {
  bool nan = value != value, was = a->value != a->value;
  bool better = least ? value < a->value : value > a->value;
  bool same = nan || was ? nan && was : value == a->value;
  if ((nan && !was) || (better && !was) || (same && at < a->at)) a->value = value, a->at = at;
}

template <class T>
static __device__ inline best<T> of_lanes(best<T> b, int lanes, bool least) {
  for (int d = lanes / 2; d > 0; d /= 2) {
    T value = __shfl_xor_sync(0xffffffffu, b.value, d);
    uint32_t at = __shfl_xor_sync(0xffffffffu, b.at, d);
    improve(&b, value, at, least);
  }
  return b;
}

/* Of the threads of a team, for the one that leads. Two arrays rather than one of pairs: no
   padding, and no bank is hit twice. */
template <bool COLUMNS, class T>
static __device__ inline best<T> of_team(const lt_team &t, best<T> b, bool least, T *values,
                                         uint32_t *places) {
  if (!COLUMNS && t.lanes <= 32) return of_lanes(b, t.lanes, least);
  uint32_t lanes = COLUMNS ? static_cast<uint32_t>(t.lanes) : 1;
  values[threadIdx.x] = b.value, places[threadIdx.x] = b.at;
  for (uint32_t d = LT_CUDA_THREADS / lanes / 2; d > 0; d /= 2) {
    __syncthreads();
    if (threadIdx.x >= d * lanes) continue;
    improve(&b, values[threadIdx.x + d * lanes], places[threadIdx.x + d * lanes], least);
    values[threadIdx.x] = b.value, places[threadIdx.x] = b.at;
  }
  return b;
}

template <class T>
static __device__ inline void put(const job &j, uint32_t line, const best<T> &b) {
  if (j.x.o[1].data != nullptr) lt_store<T>(lt_line(j.x, 1, line), j.x.o[1].dtype, 0, b.value);
  if (j.x.o[2].data != nullptr)
    lt_store<int64_t>(lt_line(j.x, 2, line), j.x.o[2].dtype, 0, static_cast<int64_t>(b.at));
}

/* A team a segment of a line: bound by bytes. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS) find(LT_CONSTANT job j) {
  LT_SHARED(T, values, LT_CUDA_THREADS);
  LT_SHARED(uint32_t, places, LT_CUDA_THREADS);
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr;
  uint32_t from = blockIdx.y * j.segment, end = from + j.segment;
  if (end > j.x.length) end = j.x.length;
  best<T> b = {worst<T>(j.least), UINT32_MAX};
  T none = b.value, v[4];
  for (uint32_t i = from + t.start; has && i < end; i += t.step) {
    lt_team_load4<COLUMNS, T>(j.x, 0, x, t, i, end, none, v);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++)
      if (i + e * t.stride < end) improve(&b, v[e], i + e * t.stride, j.least);
  }
  b = of_team<COLUMNS>(t, b, j.least, values, places);
  if (!has || !t.leads) return;
  if (j.segments == 1) {
    put(j, t.line, b);
    return;
  }
  int64_t at = static_cast<int64_t>(blockIdx.y) * j.x.count + t.line;
  static_cast<T *>(j.values)[at] = b.value;
  j.places[at] = b.at;
}

/* A team a line joins its segments. */
template <class T>
static __global__ void __launch_bounds__(LT_CUDA_THREADS) finish(LT_CONSTANT job j) {
  uint32_t line = blockIdx.x * (LT_CUDA_THREADS / 32) + threadIdx.x / 32;
  best<T> b = {worst<T>(j.least), UINT32_MAX};
  for (uint32_t s = threadIdx.x % 32; line < j.x.count && s < j.segments; s += 32) {
    int64_t at = static_cast<int64_t>(s) * j.x.count + line;
    improve(&b, static_cast<const T *>(j.values)[at], j.places[at], j.least);
  }
  b = of_lanes(b, 32, j.least);
  if (threadIdx.x % 32 == 0 && line < j.x.count) put(j, line, b);
}

/* Operands: the gradient of x, the gradient and the index of each line. A team writes a segment of
   a line. Zeros and the gradient in one write; a fill followed by a scatter would be two. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS) spread(LT_CONSTANT job j) {
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  if (t.line >= j.x.count) return;
  uint32_t from = blockIdx.y * j.segment, end = from + j.segment;
  if (end > j.x.length) end = j.x.length;
  char *out = lt_line(j.x, 0, t.line);
  T g = lt_load<T>(lt_line(j.x, 1, t.line), j.x.o[1].dtype, 0), v[4];
  int64_t at = lt_load<int64_t>(lt_line(j.x, 2, t.line), j.x.o[2].dtype, 0);
  for (uint32_t i = from + t.start; i < end; i += t.step) {
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) v[e] = i + e * t.stride == at ? g : T(0);
    lt_team_store4<COLUMNS, T>(j.x, 0, out, t, i, end, v);
  }
}

/* What a piece needs beside its lines: large tensors are walked in pieces (cuda/lines.h). */
typedef struct state {
  lt_ctx *c;
  job j;
} state;

/* Lanes, segments and the grid. Segments only where there are too few lines for the GPU; a second
   launch joins them then. Ends are multiples of 4, so that loads of fours stay whole. */
static dim3 cut(job *j) {
  unsigned lines;
  j->lanes = lt_cuda_team_lanes(&j->x, &lines);
  unsigned blocks = (j->x.count + lines - 1) / lines, least = 4096 / lines;
  unsigned segments = blocks < WANTED_BLOCKS ? WANTED_BLOCKS / blocks : 1;
  unsigned most = j->x.length / (least > 64 ? least : 64);
  if (segments > most) segments = most;
  if (segments > SEGMENTS) segments = SEGMENTS;
  if (segments < 1) segments = 1;
  j->segment = ((j->x.length + segments - 1) / segments + 3) / 4 * 4;
  j->segments = (j->x.length + j->segment - 1) / j->segment;
  return dim3(blocks, j->segments);
}

/* An order that is total makes the number of segments a matter of speed alone. */
template <class T> static bool issue(state *s) {
  job *j = &s->j;
  dim3 grid = cut(j);
  int64_t n = static_cast<int64_t>(j->segments) * j->x.count;
  if (j->segments > 1) {
    j->values = lt_cuda_scratch<T>(s->c, n);
    j->places = lt_cuda_scratch<uint32_t>(s->c, n);
    if (j->values == nullptr || j->places == nullptr) return false;
  }
  if (!lt_cuda_grid(s->c, j->x.columns ? find<T, true> : find<T, false>, grid, LT_CUDA_THREADS, 0,
                    *j))
    return false;
  unsigned warps = LT_CUDA_THREADS / 32;
  return j->segments == 1 || lt_cuda_grid(s->c, finish<T>, (j->x.count + warps - 1) / warps,
                                          LT_CUDA_THREADS, 0, *j);
}

static bool run_piece(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  s->j.x = *x;
  int compute = lt_cuda_compute(x->o[0].dtype);
  return compute == LT_CUDA_F32   ? issue<float>(s)
         : compute == LT_CUDA_F64 ? issue<double>(s)
                                  : issue<int64_t>(s);
}

/* Best of each line along `dim` (LT_NO_DIM: of all), into the outputs that are not nullptr. */
static bool run(lt_ctx *c, const lt_call *call, int64_t dim, bool least, lt_tensor *value,
                lt_tensor *index) {
  lt_view v[3];
  lt_cuda_lines_plan p;
  state s = {};
  if (!lt_cuda_view(c, call->in[0], &v[0]) || !lt_cuda_view(c, value, &v[1]) ||
      !lt_cuda_view(c, index, &v[2]))
    return false;
  if (lt_cuda_numel(&v[0]) == 0) return true;
  uint32_t all = (1u << v[0].ndim) - 1;
  s.c = c;
  s.j.least = least;
  lt_cuda_lines_make(&p, dim == LT_NO_DIM ? all : all & 1u << dim, LT_LINES_BY_MEMORY, false, 3, v);
  return lt_cuda_lines_pieces(c, &p, run_piece, &s);
}

static bool arg_reduce(lt_ctx *c, const lt_call *call, bool least) {
  const lt_args_arg_reduce *a = lt_cuda_args<lt_args_arg_reduce>(call);
  return run(c, call, a->dim, least, nullptr, call->out[0]);
}
LT_CUDA_KERNEL(argmax) { return arg_reduce(c, call, false); }
LT_CUDA_KERNEL(argmin) { return arg_reduce(c, call, true); }

static bool extremum(lt_ctx *c, const lt_call *call, bool least) {
  const lt_args_extremum *a = lt_cuda_args<lt_args_extremum>(call);
  return run(c, call, a->dim, least, call->out[0], call->n_out > 1 ? call->out[1] : nullptr);
}
LT_CUDA_KERNEL(max) { return extremum(c, call, false); }
LT_CUDA_KERNEL(min) { return extremum(c, call, true); }

/* No scatter: each element asks whether it is the one (spread). Gradients are floats always: float
   for f32 and halves, double for f64. */
static bool spread_piece(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  s->j.x = *x;
  dim3 grid = cut(&s->j);
  auto kernel = x->o[0].dtype == LT_F64 ? x->columns ? spread<double, true> : spread<double, false>
                : x->columns            ? spread<float, true>
                                        : spread<float, false>;
  return lt_cuda_grid(s->c, kernel, grid, LT_CUDA_THREADS, 0, s->j);
}

/* (gradient, indices), both with the dim at size 1: zeros, and each gradient where its element came
   from. One pass that writes every element of the result. */
LT_CUDA_KERNEL(extremum_backward) {
  const lt_args_extremum_backward *a = lt_cuda_args<lt_args_extremum_backward>(call);
  lt_view v[3];
  lt_cuda_lines_plan p;
  state s = {};
  if (!lt_cuda_view(c, call->out[0], &v[0]) || !lt_cuda_view(c, call->in[0], &v[1]) ||
      !lt_cuda_view(c, call->in[1], &v[2]))
    return false;
  if (lt_cuda_numel(&v[0]) == 0) return true;
  s.c = c;
  lt_cuda_lines_make(&p, ((1u << v[0].ndim) - 1) & 1u << a->dim, LT_LINES_BY_MEMORY, false, 3, v);
  return lt_cuda_lines_pieces(c, &p, spread_piece, &s);
}
