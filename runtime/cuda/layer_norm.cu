/* runtime/cuda/layer_norm.cu: rows brought to mean 0 and variance 1, and the derivative; rms_norm
   is the same with a mean of 0 and no bias, group_norm (group_norm.cu) with weights of channels.

   A team of threads has a row, which stays in shared memory where it fits: read once. Nothing but x
   is kept for backward, which finds a row's moments again and leaves them for the gradients of
   weight and bias (norm_columns.cu).

   Layer normalization: J. L. Ba, J. R. Kiros, G. E. Hinton, 2016; RMS: B. Zhang and R. Sennrich,
   2019. The variance is the mean of squared distances from the mean, in a second pass over the
   cached row: E[x^2] - mean^2 would cancel where the mean is large. Partial sums of a thread are
   carried into a double every LT_CUDA_CARRY fours (online_softmax.h), so that long rows lose no
   digits; threads of a team are joined in one order, which gives the same bits in each run. */
#include "cuda/norm.h"
#include "cuda/online_softmax.h"
#include "cuda/thread_groups.h"

/* CACHE leaves a little of the 48 KB of shared memory that a block gets without asking for more,
   for `scratch`. SMALL: threads of a block whose teams are warps. */
enum { SMALL = 128, CACHE = 47 << 10 };

/* Blocks side by side: rows with weights of their own (CHANNELS) take more registers. */
template <class T, bool CHANNELS> constexpr int blocks = CHANNELS ? 2 : lt_team_blocks<T>;

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

/* One thread's part of a row. The first pass over a row fills the cache; `again` reads it from
   there. */
template <class T> struct part {
  const job *j;
  char *x;
  uint32_t line, start, step, n;
  lt_quad<T> *cache;
  double *scratch;
};

template <class T>
static __device__ inline part<T> part_of(const job &j, T *cache, int operands, double *scratch) {
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
          scratch};
}

/* Four values of x, after the first time from shared memory. */
template <class T>
static __device__ inline lt_quad<T> again(const part<T> &p, uint32_t i) {
  lt_quad<T> q;
  if (p.j->cached) return p.cache[i / 4];
  lt_line_load4<T>(p.j->x, 0, p.x, i, p.n, T(0), q.v);
  return q;
}

/* The mean, and the pass that loads the row into the cache. */
template <class T> static __device__ inline T mean_of(const part<T> &p) {
  T sum = 0;
  double total = 0;
  int taken = 0;
  lt_quad<T> q[lt_quads<T>];
  for (uint32_t i = p.start; i < p.n; i += lt_quads<T> * p.step) {
    lt_line_load_quads<T>(p.j->x, 0, p.x, i, p.step, p.n, T(0), q);
#pragma unroll
    for (int a = 0; a < lt_quads<T>; a++) {
      if (p.j->cached && i + a * p.step < p.n) p.cache[(i + a * p.step) / 4] = q[a];
      sum += (q[a].v[0] + q[a].v[1]) + (q[a].v[2] + q[a].v[3]);
    }
    if ((taken += lt_quads<T>) % LT_CUDA_CARRY == 0) lt_carry(&sum, &total);
  }
  if (!p.j->centred) return T(0); /* the row is in shared memory now */
  lt_carry(&sum, &total);
  total = lt_team_sum(total, p.j->lanes, p.scratch);
  return static_cast<T>(total / static_cast<double>(p.j->x.length));
}

/* 1 / sqrt(variance + eps) from the sum of squared distances. */
template <class T> static __device__ inline T scale_of(const job &j, double squares) {
  T variance = static_cast<T>(squares / static_cast<double>(j.x.length));
  return 1 / row::sqrt(variance + static_cast<T>(j.eps));
}

/* Where a row's weights [2] or biases [3] start. */
template <bool CHANNELS> static __device__ inline char *of_row(const job &j, int k, uint32_t line) {
  return CHANNELS ? lt_line(j.x, k, line) : j.x.o[k].data;
}

/* A team a row: bound by bytes. */
template <class T, bool CHANNELS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, blocks<T, CHANNELS>)
forward(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  LT_DYNAMIC(T, cache);
  part<T> p = part_of(j, cache, 1, scratch);
  char *weight = of_row<CHANNELS>(j, 2, p.line), *bias = of_row<CHANNELS>(j, 3, p.line);
  T m = mean_of(p), sum = 0, w[4] = {1, 1, 1, 1}, b[4] = {0, 0, 0, 0};
  double total = 0;
  int taken = 0;
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) sum += i + e < p.n ? (q.v[e] - m) * (q.v[e] - m) : T(0);
    if (++taken % LT_CUDA_CARRY == 0) lt_carry(&sum, &total);
  }
  lt_carry(&sum, &total);
  T s = scale_of<T>(j, lt_team_sum(total, j.lanes, scratch));
  char *y = p.x != nullptr ? lt_line(j.x, 1, p.line) : nullptr;
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i);
    if (j.weight) lt_line_load4<T>(j.x, 2, weight, i, p.n, T(0), w);
    if (j.bias) lt_line_load4<T>(j.x, 3, bias, i, p.n, T(0), b);
#pragma unroll
    for (int e = 0; e < 4; e++) q.v[e] = (q.v[e] - m) * s * w[e] + b[e];
    lt_line_store4<T>(j.x, 1, y, i, p.n, q.v);
  }
}

/* Four values of the gradient times the weight. */
template <class T, bool CHANNELS>
static __device__ inline lt_quad<T> weighted(const part<T> &p, char *g, uint32_t i) {
  lt_quad<T> a;
  T w[4];
  lt_line_load4<T>(p.j->x, 1, g, i, p.n, T(0), a.v);
  if (!p.j->weight) return a;
  lt_line_load4<T>(p.j->x, 2, of_row<CHANNELS>(*p.j, 2, p.line), i, p.n, T(0), w);
#pragma unroll
  for (int e = 0; e < 4; e++) a.v[e] *= w[e];
  return a;
}

/* With z = (x - m) s and a = g w: dx = s (a - mean(a) - z mean(a z)). */
template <class T, bool CHANNELS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, blocks<T, CHANNELS>)
backward(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  LT_DYNAMIC(T, cache);
  part<T> p = part_of(j, cache, 2, scratch);
  char *g = p.x != nullptr ? lt_line(j.x, 1, p.line) : nullptr;
  T m = mean_of(p), sum = 0, product = 0, square = 0;
  double sums = 0, products = 0, squares = 0, n = static_cast<double>(j.x.length);
  int taken = 0;
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i), a = weighted<T, CHANNELS>(p, g, i);
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
  T s = scale_of<T>(j, lt_team_sum(squares, j.lanes, scratch));
  T mean = j.centred ? static_cast<T>(lt_team_sum(sums, j.lanes, scratch) / n) : T(0);
  T by = static_cast<T>(lt_team_sum(products, j.lanes, scratch) / n) * s * s;
  if (p.x == nullptr) return;
  if (j.stats != nullptr && p.start == 0) {
    T *stats = static_cast<T *>(j.stats) + 2 * (j.x.first + p.line);
    stats[0] = m, stats[1] = s;
  }
  char *out = lt_line(j.x, 3, p.line);
  for (uint32_t i = p.start; i < p.n; i += p.step) {
    lt_quad<T> q = again(p, i);
    lt_quad<T> a = j.cached ? p.cache[(j.slot + i) / 4] : weighted<T, CHANNELS>(p, g, i);
#pragma unroll
    for (int e = 0; e < 4; e++) q.v[e] = s * (a.v[e] - mean - (q.v[e] - m) * by);
    lt_line_store4<T>(j.x, 3, out, i, p.n, q.v);
  }
}

typedef struct state {
  lt_ctx *c;
  job j;
  bool back, wide, channels;
} state;

/* Rows that do not fit are read again from global memory in each pass: slower, the same sums in the
   same order. */
template <class T, bool CHANNELS> static bool issue(state *s) {
  job *j = &s->j;
  j->lanes = lt_cuda_team(j->x.count, j->x.length);
  j->slot = (j->x.length + 3) / 4 * 4;
  unsigned threads = j->lanes > 32 ? unsigned(LT_CUDA_THREADS) : unsigned(SMALL);
  unsigned teams = threads / static_cast<unsigned>(j->lanes);
  size_t shared = sizeof(T) * j->slot * teams * (s->back ? 2 : 1);
  j->cached = shared <= CACHE;
  return lt_cuda_grid(s->c, s->back ? backward<T, CHANNELS> : forward<T, CHANNELS>,
                      (j->x.count + teams - 1) / teams, threads, j->cached ? shared : 0, *j);
}

static bool run_rows(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  s->j.x = *x;
  if (s->channels) return s->wide ? issue<double, true>(s) : issue<float, true>(s);
  return s->wide ? issue<double, false>(s) : issue<float, false>(s);
}

/* Rows in order: `stats` are numbered by them. */
bool lt_cuda_norm_rows(lt_ctx *c, const lt_cuda_norm *n, bool back, const lt_view *v) {
  lt_cuda_lines_plan p;
  state s = {};
  s.c = c;
  s.back = back;
  s.wide = v[0].dtype == LT_F64;
  s.channels = n->groups > 0;
  s.j.eps = n->eps;
  s.j.centred = n->centred;
  s.j.stats = n->stats;
  s.j.weight = v[2].data != nullptr;
  s.j.bias = !back && v[3].data != nullptr;
  lt_cuda_lines_make(&p, n->along, LT_LINES_IN_ORDER, false, 4, v);
  return lt_cuda_lines_pieces(c, &p, run_rows, &s);
}

/* The rows' gradients first, which leave mean and scale of each row, then the columns. Without
   elements the weights' gradients are zeros, not untouched memory. */
bool lt_cuda_norm_backward(lt_ctx *c, lt_cuda_norm *n, const lt_view *v, const lt_view *grads) {
  int64_t numel = lt_cuda_numel(&v[0]), length = 1;
  bool wanted = grads[0].data != nullptr;
  for (int d = 0; d < v[0].ndim; d++)
    if (n->along >> d & 1) length *= v[0].size[d];
  if (numel == 0) {
    for (int k = 0; k < 2; k++)
      if (grads[k].data != nullptr && !lt_cuda_fill_view(c, &grads[k], lt_cuda_number(0)))
        return false;
    return true;
  }
  if (wanted && (n->stats = lt_cuda_scratch<double>(c, 2 * (numel / length))) == nullptr)
    return false;
  const lt_view all[4] = {v[0], v[1], grads[0], grads[1]};
  return lt_cuda_norm_rows(c, n, true, v) && (!wanted || lt_cuda_norm_columns(c, n, all));
}

/* A view of the normalized shape under all dims of x; an absent one has no data. Weights need no
   copy of their own for broadcasting: a stride of 0 under the dims that they lack. */
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

/* As bits, one a dim. */
static uint32_t last_dims(const lt_view *x, int n) {
  return ((1u << x->ndim) - 1) & ~((1u << (x->ndim - n)) - 1);
}

static bool run_forward(lt_ctx *c, const lt_call *call, int dims, double eps, bool centred) {
  lt_view v[4];
  if (!lt_cuda_view(c, call->in[0], &v[0]) || !lt_cuda_view(c, call->out[0], &v[1]) ||
      !view_under(c, call, 1, &v[0], &v[2]) || !view_under(c, call, 2, &v[0], &v[3]))
    return false;
  lt_cuda_norm n = {last_dims(&v[0], dims), eps, centred, nullptr, 0};
  return lt_cuda_numel(&v[0]) == 0 || lt_cuda_norm_rows(c, &n, false, v);
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
  if (!lt_cuda_view(c, call->in[1], &v[0]) || !lt_cuda_view(c, call->in[0], &v[1]) ||
      !view_under(c, call, 2, &v[0], &v[2]) || !lt_cuda_view(c, call->out[0], &v[3]))
    return false;
  lt_cuda_norm n = {last_dims(&v[0], dims), eps, centred, nullptr, 0};
  lt_view grads[2] = {}; /* without data: absent */
  for (int k = 1; k < call->n_out; k++)
    if (!lt_cuda_view(c, call->out[k], &grads[k - 1])) return false;
  return lt_cuda_norm_backward(c, &n, v, grads);
}

LT_CUDA_KERNEL(layer_norm_backward) {
  const lt_args_layer_norm_backward *a = lt_cuda_args<lt_args_layer_norm_backward>(call);
  return run_backward(c, call, a->normalized_shape.n, a->eps, true);
}

LT_CUDA_KERNEL(rms_norm_backward) {
  const lt_args_rms_norm_backward *a = lt_cuda_args<lt_args_rms_norm_backward>(call);
  return run_backward(c, call, a->normalized_shape.n, a->eps.f, false);
}
