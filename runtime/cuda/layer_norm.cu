/* runtime/cuda/layer_norm.cu: rows brought to mean 0 and variance 1, and the derivative; rms_norm
   is the same with a mean of 0 and no bias.

   A team of threads has a row, which stays in shared memory where it fits: read once. Nothing but x
   is kept for backward, which finds a row's moments again and leaves them for the gradients of
   weight and bias: sums of columns, over segments of the rows, then over the segments in order. */
#include "cuda/rows.h"
#include "cuda/tally.h"
#include "cuda/teams.h"

enum { SMALL = 128, CACHE = 47 << 10, WANTED_BLOCKS = 528, LEAST_ROWS = 64 };

/* Operands: forward x, y, weight, bias; backward x, gradient, weight, gradient of x. */
typedef struct job {
  lt_cuda_lines x;
  bool cached, weight, bias;
  bool centred; /* the mean is taken off */
  int lanes;
  uint32_t slot; /* elements of shared memory a row and operand */
  double eps;
  void *stats;   /* backward: mean and 1 / sqrt(variance + eps) of each row, or nullptr */
} job;

/* One thread's part of a row. */
template <class T> struct part {
  const job *j;
  char *x;
  uint32_t line, start, step, n;
  lt_quad<T> *cache;
  double *room;
};

template <class T>
static __device__ inline part<T> part_of(const job &j, T *cache, int operands, double *room) {
  uint32_t lanes = static_cast<uint32_t>(j.lanes), team = threadIdx.x / lanes;
  uint32_t line = blockIdx.x * (blockDim.x / lanes) + team;
  bool has = line < j.x.count;
  return {&j,
          has ? lt_line(j.x, 0, line) : nullptr,
          line,
          4 * (threadIdx.x % lanes),
          4 * lanes,
          has ? j.x.length : 0,
          reinterpret_cast<lt_quad<T> *>(cache + static_cast<uint32_t>(operands) * team * j.slot),
          room};
}

/* Four values of x, after the first time from shared memory. */
template <class T>
static __device__ inline lt_quad<T> again(const part<T> &p, uint32_t i) {
  lt_quad<T> q;
  if (p.j->cached) return p.cache[i / 4];
  lt_line_load4<T>(p.j->x, 0, p.x, i, p.n, T(0), q.v);
  return q;
}

template <class T> static __device__ inline T mean_of(const part<T> &p) {
  T sum = 0;
  double whole = 0;
  int taken = 0;
  lt_quad<T> q[lt_quads<T>];
  for (uint32_t i = p.start; i < p.n; i += lt_quads<T> * p.step) {
    lt_line_load_quads<T>(p.j->x, 0, p.x, i, p.step, p.n, T(0), q);
#pragma unroll
    for (int a = 0; a < lt_quads<T>; a++) {
      if (p.j->cached && i + a * p.step < p.n) p.cache[(i + a * p.step) / 4] = q[a];
      sum += (q[a].v[0] + q[a].v[1]) + (q[a].v[2] + q[a].v[3]);
    }
    if ((taken += lt_quads<T>) % LT_CUDA_CARRY == 0) lt_carry(&sum, &whole);
  }
  if (!p.j->centred) return T(0); /* the row is in shared memory now */
  lt_carry(&sum, &whole);
  whole = lt_team_sum(whole, p.j->lanes, p.room);
  return static_cast<T>(whole / static_cast<double>(p.j->x.length));
}

/* 1 / sqrt(variance + eps) from the sum of squared distances. */
template <class T> static __device__ inline T scale_of(const job &j, double squares) {
  T variance = static_cast<T>(squares / static_cast<double>(j.x.length));
  return 1 / row::sqrt(variance + static_cast<T>(j.eps));
}

/* A team a row: bound by bytes. */
template <class T>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
forward(LT_CONSTANT job j) {
  LT_SHARED(double, room, LT_CUDA_ROOM);
  LT_DYNAMIC(T, cache);
  part<T> p = part_of(j, cache, 1, room);
  T m = mean_of(p), sum = 0, w[4] = {1, 1, 1, 1}, b[4] = {0, 0, 0, 0};
  double whole = 0;
  int taken = 0;
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) sum += i + e < p.n ? (q.v[e] - m) * (q.v[e] - m) : T(0);
    if (++taken % LT_CUDA_CARRY == 0) lt_carry(&sum, &whole);
  }
  lt_carry(&sum, &whole);
  T s = scale_of<T>(j, lt_team_sum(whole, j.lanes, room));
  char *y = p.x != nullptr ? lt_line(j.x, 1, p.line) : nullptr;
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i);
    if (j.weight) lt_line_load4<T>(j.x, 2, j.x.o[2].data, i, p.n, T(0), w);
    if (j.bias) lt_line_load4<T>(j.x, 3, j.x.o[3].data, i, p.n, T(0), b);
#pragma unroll
    for (int e = 0; e < 4; e++) q.v[e] = (q.v[e] - m) * s * w[e] + b[e];
    lt_line_store4<T>(j.x, 1, y, i, p.n, q.v);
  }
}

/* Four values of the gradient times the weight. */
template <class T>
static __device__ inline lt_quad<T> weighted(const part<T> &p, char *g, uint32_t i) {
  lt_quad<T> a;
  T w[4];
  lt_line_load4<T>(p.j->x, 1, g, i, p.n, T(0), a.v);
  if (!p.j->weight) return a;
  lt_line_load4<T>(p.j->x, 2, p.j->x.o[2].data, i, p.n, T(0), w);
#pragma unroll
  for (int e = 0; e < 4; e++) a.v[e] *= w[e];
  return a;
}

/* With z = (x - m) s and a = g w: dx = s (a - mean(a) - z mean(a z)). */
template <class T>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
backward(LT_CONSTANT job j) {
  LT_SHARED(double, room, LT_CUDA_ROOM);
  LT_DYNAMIC(T, cache);
  part<T> p = part_of(j, cache, 2, room);
  char *g = p.x != nullptr ? lt_line(j.x, 1, p.line) : nullptr;
  T m = mean_of(p), sum = 0, product = 0, square = 0;
  double sums = 0, products = 0, squares = 0, n = static_cast<double>(j.x.length);
  int taken = 0;
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i), a = weighted(p, g, i);
    if (j.cached) p.cache[(j.slot + i) / 4] = a;
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
      T d = i + e < p.n ? q.v[e] - m : T(0);
      sum += a.v[e], product += a.v[e] * d, square += d * d;
    }
    if (++taken % LT_CUDA_CARRY != 0) continue;
    lt_carry(&sum, &sums);
    lt_carry(&product, &products);
    lt_carry(&square, &squares);
  }
  lt_carry(&sum, &sums);
  lt_carry(&product, &products);
  lt_carry(&square, &squares);
  T s = scale_of<T>(j, lt_team_sum(squares, j.lanes, room));
  T mean = j.centred ? static_cast<T>(lt_team_sum(sums, j.lanes, room) / n) : T(0);
  T by = static_cast<T>(lt_team_sum(products, j.lanes, room) / n) * s * s;
  if (p.x == nullptr) return;
  if (j.stats != nullptr && p.start == 0) {
    T *stats = static_cast<T *>(j.stats) + 2 * (j.x.first + p.line);
    stats[0] = m, stats[1] = s;
  }
  char *out = lt_line(j.x, 3, p.line);
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i), a = j.cached ? p.cache[(j.slot + i) / 4] : weighted(p, g, i);
#pragma unroll
    for (int e = 0; e < 4; e++) q.v[e] = s * (a.v[e] - mean - (q.v[e] - m) * by);
    lt_line_store4<T>(j.x, 3, out, i, p.n, q.v);
  }
}

/* Gradients of weight and bias. Lines are columns; operands: x, gradient, the two results. */
typedef struct columns_job {
  lt_cuda_lines x;
  int lanes;
  uint32_t segment, segments;
  const void *stats;
  double *partial; /* [segments][2][columns] */
} columns_job;

/* Neighbouring threads have neighbouring columns, the block a segment of the rows: bound by
   bytes. */
template <class T>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
columns(LT_CONSTANT columns_job j) {
  LT_SHARED(double, room, LT_CUDA_THREADS);
  lt_team t = lt_team_of<true>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr, *g = has ? lt_line(j.x, 1, t.line) : nullptr;
  uint32_t from = blockIdx.y * j.segment, to = from + j.segment;
  if (to > j.x.length) to = j.x.length;
  const T *stats = static_cast<const T *>(j.stats);
  T w = 0, b = 0;
  double ws = 0, bs = 0;
  int taken = 0;
  for (uint32_t i = from + t.start; has && i < to; i += t.stride) {
    T d = lt_line_load<T>(j.x, 1, g, i);
    w += d * ((lt_line_load<T>(j.x, 0, x, i) - stats[2 * i]) * stats[2 * i + 1]);
    b += d;
    if (++taken % LT_CUDA_CARRY != 0) continue;
    lt_carry(&w, &ws);
    lt_carry(&b, &bs);
  }
  lt_carry(&w, &ws);
  lt_carry(&b, &bs);
  ws = lt_join<true>(t, ws, 0.0, lt_plus(), room);
  bs = lt_join<true>(t, bs, 0.0, lt_plus(), room);
  if (!has || !t.leads) return;
  double *out = j.partial + 2 * static_cast<int64_t>(blockIdx.y) * j.x.count + t.line;
  out[0] = ws, out[j.x.count] = bs;
}

/* A thread a column joins the segments. */
static __global__ void __launch_bounds__(LT_CUDA_THREADS) finish(LT_CONSTANT columns_job j) {
  uint32_t line = blockIdx.x * LT_CUDA_THREADS + threadIdx.x;
  if (line >= j.x.count) return;
  double w = 0, b = 0;
  for (uint32_t k = 0; k < j.segments; k++) {
    const double *from = j.partial + 2 * static_cast<int64_t>(k) * j.x.count + line;
    w += from[0], b += from[j.x.count];
  }
  lt_store<double>(lt_line(j.x, 2, line), j.x.o[2].dtype, 0, w);
  if (j.x.o[3].data != nullptr) lt_store<double>(lt_line(j.x, 3, line), j.x.o[3].dtype, 0, b);
}

typedef struct state {
  lt_ctx *c;
  job j;
  columns_job k;
  bool back, wide;
} state;

template <class T> static bool issue(state *s) {
  job *j = &s->j;
  j->lanes = lt_cuda_team(j->x.count, j->x.length);
  j->slot = (j->x.length + 3) / 4 * 4;
  unsigned threads = j->lanes > 32 ? unsigned(LT_CUDA_THREADS) : unsigned(SMALL);
  unsigned teams = threads / static_cast<unsigned>(j->lanes);
  size_t shared = sizeof(T) * j->slot * teams * (s->back ? 2 : 1);
  j->cached = shared <= CACHE;
  return lt_cuda_grid(s->c, s->back ? backward<T> : forward<T>, (j->x.count + teams - 1) / teams,
                      threads, j->cached ? shared : 0, *j);
}

static bool run_rows(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  s->j.x = *x;
  return s->wide ? issue<double>(s) : issue<float>(s);
}

static bool run_columns(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  columns_job *k = &s->k;
  unsigned side = 1;
  while (side < 32 && side < x->count) side *= 2;
  unsigned blocks = (x->count + side - 1) / side, most = x->length / LEAST_ROWS;
  unsigned segments = blocks < WANTED_BLOCKS ? WANTED_BLOCKS / blocks : 1;
  if (segments > most) segments = most > 0 ? most : 1;
  k->x = *x;
  k->lanes = static_cast<int>(side);
  k->segment = (x->length + segments - 1) / segments;
  k->segments = (x->length + k->segment - 1) / k->segment;
  k->stats = s->j.stats;
  k->partial = lt_cuda_scratch<double>(s->c, 2 * static_cast<int64_t>(k->segments) * x->count);
  return k->partial != nullptr &&
         lt_cuda_grid(s->c, s->wide ? columns<double> : columns<float>, dim3(blocks, k->segments),
                      LT_CUDA_THREADS, 0, *k) &&
         lt_cuda_grid(s->c, finish, (x->count + LT_CUDA_THREADS - 1) / LT_CUDA_THREADS,
                      LT_CUDA_THREADS, 0, *k);
}

/* A view of the normalized shape under all dims of x; an absent one has no data. */
static bool view_under(lt_ctx *c, const lt_call *call, int k, const lt_view *x, lt_view *out) {
  lt_view v;
  if (!lt_cuda_view(c, call->n_in > k ? call->in[k] : nullptr, &v)) return false;
  *out = v;
  out->ndim = x->ndim;
  for (int d = 0; d < x->ndim; d++) {
    int own = d - (x->ndim - v.ndim);
    out->size[d] = own >= 0 ? v.size[own] : 1;
    out->stride[d] = own >= 0 ? v.stride[own] : 0;
  }
  return true;
}

static bool begin(lt_ctx *c, const lt_view *x, double eps, bool centred, state *s) {
  s->c = c;
  s->j.centred = centred;
  s->wide = x->dtype == LT_F64;
  s->j.eps = eps;
  return lt_cuda_numel(x) > 0;
}

static uint32_t last_dims(const lt_view *x, int n) {
  return ((1u << x->ndim) - 1) & ~((1u << (x->ndim - n)) - 1);
}

static bool run_forward(lt_ctx *c, const lt_call *call, int dims, double eps, bool centred) {
  lt_view v[4];
  lt_cuda_lines_plan p;
  state s = {};
  if (!lt_cuda_view(c, call->in[0], &v[0]) || !lt_cuda_view(c, call->out[0], &v[1]) ||
      !view_under(c, call, 1, &v[0], &v[2]) || !view_under(c, call, 2, &v[0], &v[3]))
    return false;
  if (!begin(c, &v[0], eps, centred, &s)) return true;
  s.j.weight = v[2].data != nullptr, s.j.bias = v[3].data != nullptr;
  lt_cuda_lines_make(&p, last_dims(&v[0], dims), LT_LINES_IN_ORDER, false, 4, v);
  return lt_cuda_lines_pieces(c, &p, run_rows, &s);
}

LT_CUDA_KERNEL(layer_norm) {
  const lt_args_layer_norm *a = lt_cuda_args<lt_args_layer_norm>(call);
  return run_forward(c, call, a->normalized_shape.n, a->eps, true);
}

LT_CUDA_KERNEL(rms_norm) {
  const lt_args_rms_norm *a = lt_cuda_args<lt_args_rms_norm>(call);
  return run_forward(c, call, a->normalized_shape.n, a->eps.f, false);
}

/* (gradient, x, weight) to gradients of x and, with a weight, of weight and bias. */
static bool run_backward(lt_ctx *c, const lt_call *call, int dims, double eps, bool centred) {
  lt_view v[4];
  lt_cuda_lines_plan p;
  state s = {};
  s.back = true;
  bool grads = call->n_out > 1;
  if (!lt_cuda_view(c, call->in[1], &v[0]) || !lt_cuda_view(c, call->in[0], &v[1]) ||
      !view_under(c, call, 2, &v[0], &v[2]) || !lt_cuda_view(c, call->out[0], &v[3]))
    return false;
  s.j.weight = v[2].data != nullptr;
  bool any = begin(c, &v[0], eps, centred, &s);
  uint32_t along = last_dims(&v[0], dims);
  if (any) {
    lt_cuda_lines_make(&p, along, LT_LINES_IN_ORDER, false, 4, v);
    if (grads && (s.j.stats = lt_cuda_scratch<double>(c, 2 * p.count)) == nullptr) return false;
    if (!lt_cuda_lines_pieces(c, &p, run_rows, &s)) return false;
  }
  if (!grads) return true;
  if (!lt_cuda_view(c, call->out[1], &v[2])) return false;
  v[3] = v[2];
  v[3].data = nullptr; /* without a bias */
  if (centred && !lt_cuda_view(c, call->out[2], &v[3])) return false;
  if (!any)
    return lt_cuda_fill_view(c, &v[2], lt_cuda_number(0)) &&
           (!centred || lt_cuda_fill_view(c, &v[3], lt_cuda_number(0)));
  uint32_t all = (1u << v[0].ndim) - 1;
  lt_cuda_lines_make(&p, all & ~along, LT_LINES_BY_MEMORY, false, 4, v);
  return lt_cuda_lines_pieces(c, &p, run_columns, &s);
}

LT_CUDA_KERNEL(layer_norm_backward) {
  const lt_args_layer_norm_backward *a = lt_cuda_args<lt_args_layer_norm_backward>(call);
  return run_backward(c, call, a->normalized_shape.n, a->eps, true);
}

LT_CUDA_KERNEL(rms_norm_backward) {
  const lt_args_rms_norm_backward *a = lt_cuda_args<lt_args_rms_norm_backward>(call);
  return run_backward(c, call, a->normalized_shape.n, a->eps.f, false);
}
