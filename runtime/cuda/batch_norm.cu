/* runtime/cuda/batch_norm.cu: batch normalization and its derivative.

   A channel is a line over all other dims, in planes or side by side with others, as x lies. Blocks
   find the moments of segments of the lines (a segment is read twice, the second time from the
   cache), which are joined in order; then y = x a + b, or dx = g p + x q + r, with factors of each
   channel. With z = (x - mean) scale: dx = scale w (g - mean(g) - z mean(g z)), and with given
   statistics g scale w.

   Two passes over x: the mean of squares less the square of the mean would cancel, and a running
   update in one pass (Welford) divides once an element.

   S. Ioffe and C. Szegedy, Batch Normalization, 2015. Three launches: moments of segments, factors
   of channels, elements. Factors are computed in double and used in T: two numbers a channel cost
   nothing, and their rounding would be in every element. */
#include <math.h>

#include "cuda/elementwise.h"
#include "cuda/online_softmax.h"
#include "cuda/thread_groups.h"

/* WANTED_BLOCKS: eight for each of the 132 multiprocessors of an H100, so that few channels fill it
   too. SEGMENTS bounds the scratch and the work of the warp that joins them; LEAST: elements below
   which a block is not worth its launch. */
enum { WANTED_BLOCKS = 1056, SEGMENTS = 512, LEAST = 4096 };

/* A value for each channel. */
typedef struct channels {
  char *data; /* nullptr: there are none */
  int dtype;
  int64_t step; /* bytes */
} channels;

/* Operands of the lines: forward x, y; backward x, gradient, gradient of x. */
typedef struct job {
  lt_cuda_lines x;
  bool given, back;
  int lanes;
  uint32_t segment, segments;
  double eps;
  channels weight, bias, mean, variance; /* mean, variance: given, or of the forward pass */
  channels out[2];   /* forward mean and variance, backward gradients of weight and bias */
  double *partial;   /* [segments][2][channels] */
  double *factors;   /* [3][channels] */
} job;

static __device__ inline double value_of(const channels &v, uint32_t c, double without) {
  return v.data != nullptr ? lt_load<double>(v.data + c * v.step, v.dtype, 0) : without;
}
static __device__ inline void put(const channels &v, uint32_t c, double value) {
  if (v.data != nullptr) lt_store<double>(v.data + c * v.step, v.dtype, 0, value);
}

/* The segment of this block. */
static __device__ inline uint32_t segment_of(const job &j, uint32_t *end) {
  uint32_t from = blockIdx.y * j.segment;
  *end = from + j.segment < j.x.length ? from + j.segment : j.x.length;
  return from;
}

/* Moments of a segment, joined later by T. Chan, G. Golub and R. LeVeque's formula (1979): the mean
   of all and the sum of squares around it, without the cancellation of raw sums. */
static __device__ inline void put_partial(const job &j, const lt_team &t, double a, double b) {
  double *out = j.partial + 2 * static_cast<int64_t>(blockIdx.y) * j.x.count + t.line;
  out[0] = a, out[j.x.count] = b;
}

template <class T> static __device__ inline T sum_of(const lt_quad<T> &a) {
  return (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]);
}
template <class T> static __device__ inline lt_quad<T> less(const lt_quad<T> &a, T m) {
  return {{a.v[0] - m, a.v[1] - m, a.v[2] - m, a.v[3] - m}};
}
template <class T>
static __device__ inline lt_quad<T> times(const lt_quad<T> &a, const lt_quad<T> &b) {
  return {{a.v[0] * b.v[0], a.v[1] * b.v[1], a.v[2] * b.v[2], a.v[3] * b.v[3]}};
}

/* Mean and sum of squared distances of a segment; in double from the mean as T is. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
moments(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_THREADS);
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr;
  uint32_t end, from = segment_of(j, &end);
  double n = static_cast<double>(end - from), sums = 0, squares = 0;
  const int many = lt_quads<T>;
  lt_quad<T> v[many];
  T sum = 0;
  int taken = 0;
  for (uint32_t i = from + t.start; has && i < end; i += many * t.step) {
    lt_team_load_many<COLUMNS, T>(j.x, 0, x, t, i, end, T(0), v);
#pragma unroll
    for (int a = 0; a < many; a++) sum += sum_of(v[a]);
    if ((taken += many) % LT_CUDA_CARRY == 0) lt_carry(&sum, &sums);
  }
  lt_carry(&sum, &sums);
  double mean = lt_join<COLUMNS>(t, sums, 0.0, lt_plus(), scratch) / n;
  T m = static_cast<T>(mean);
  for (uint32_t i = from + t.start; has && i < end; i += many * t.step) {
    lt_team_load_many<COLUMNS, T>(j.x, 0, x, t, i, end, m, v);
#pragma unroll
    for (int a = 0; a < many; a++) {
      lt_quad<T> d = less(v[a], m);
      sum += sum_of(times(d, d));
    }
    if ((taken += many) % LT_CUDA_CARRY == 0) lt_carry(&sum, &squares);
  }
  lt_carry(&sum, &squares);
  squares = lt_join<COLUMNS>(t, squares, 0.0, lt_plus(), scratch);
  double rest = mean - static_cast<double>(m);
  if (has && t.leads) put_partial(j, t, mean, squares - rest * rest * n);
}

/* Sums of g and g (x - mean) of a segment. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
products(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_THREADS);
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr, *g = has ? lt_line(j.x, 1, t.line) : nullptr;
  uint32_t end, from = segment_of(j, &end);
  double mean = has ? value_of(j.mean, t.line, 0) : 0, sums = 0, all = 0;
  T m = static_cast<T>(mean), sum = 0, product = 0;
  const int many = lt_quads<T>;
  lt_quad<T> v[many], d[many];
  int taken = 0;
  for (uint32_t i = from + t.start; has && i < end; i += many * t.step) {
    lt_team_load_many<COLUMNS, T>(j.x, 0, x, t, i, end, m, v);
    lt_team_load_many<COLUMNS, T>(j.x, 1, g, t, i, end, T(0), d);
#pragma unroll
    for (int a = 0; a < many; a++) {
      sum += sum_of(d[a]);
      product += sum_of(times(d[a], less(v[a], m)));
    }
    if ((taken += many) % LT_CUDA_CARRY != 0) continue;
    lt_carry(&sum, &sums);
    lt_carry(&product, &all);
  }
  lt_carry(&sum, &sums);
  lt_carry(&product, &all);
  sums = lt_join<COLUMNS>(t, sums, 0.0, lt_plus(), scratch);
  all = lt_join<COLUMNS>(t, all, 0.0, lt_plus(), scratch);
  if (has && t.leads) put_partial(j, t, sums, all - sums * (mean - static_cast<double>(m)));
}

/* Moments of some segments together (Chan, Golub and LeVeque 1979). */
typedef struct joined {
  double n, mean, squares;
} joined;

/* Without cancellation for any order of sizes; n = 0 is the neutral element. */
static __device__ inline void join(joined *a, double n, double mean, double squares) {
  if (n == 0) return;
  double d = mean - a->mean, all = a->n + n;
  a->squares += squares + d * d * a->n * n / all;
  a->mean += d * n / all;
  a->n = all;
}

/* A warp a channel joins the segments, in one order: lane 0's. The butterfly of shuffles joins
   pairs in both orders: the two sides may differ in the last bit, so one lane's result is used. */
static __device__ inline joined join_moments(const job &j, uint32_t c) {
  joined a = {0, 0, 0};
  for (uint32_t k = threadIdx.x % 32; c < j.x.count && k < j.segments; k += 32) {
    const double *from = j.partial + 2 * static_cast<int64_t>(k) * j.x.count + c;
    uint32_t n = k + 1 < j.segments ? j.segment : j.x.length - k * j.segment;
    join(&a, n, from[0], from[j.x.count]);
  }
  for (int d = 16; d > 0; d /= 2) {
    double n = __shfl_xor_sync(0xffffffffu, a.n, d);
    double mean = __shfl_xor_sync(0xffffffffu, a.mean, d);
    double squares = __shfl_xor_sync(0xffffffffu, a.squares, d);
    join(&a, n, mean, squares);
  }
  return a;
}

/* Lanes add every 32nd segment, then the warp: one order, whatever the order of the blocks was. */
static __device__ inline double sum_partial(const job &j, uint32_t c, int which) {
  double sum = 0;
  for (uint32_t k = threadIdx.x % 32; c < j.x.count && k < j.segments; k += 32)
    sum += j.partial[(2 * static_cast<int64_t>(k) + which) * j.x.count + c];
  return lt_warp_sum(sum);
}

/* y = x a + b, as three factors of which the first, of a gradient, is not used. */
static __global__ void __launch_bounds__(LT_CUDA_THREADS) forward_factors(LT_CONSTANT job j) {
  uint32_t c = blockIdx.x * (LT_CUDA_THREADS / 32) + threadIdx.x / 32;
  joined a = {0, 0, 0};
  if (!j.given) a = join_moments(j, c);
  if (c >= j.x.count || threadIdx.x % 32 != 0) return;
  double mean = j.given ? value_of(j.mean, c, 0) : a.mean;
  double variance = j.given ? value_of(j.variance, c, 0) : a.squares / a.n;
  double scale = value_of(j.weight, c, 1) / sqrt(variance + j.eps);
  put(j.out[0], c, mean);
  put(j.out[1], c, variance);
  j.factors[j.x.count + c] = scale;
  j.factors[2 * j.x.count + c] = value_of(j.bias, c, 0) - mean * scale;
}

/* dx = g p + x q + r. */
static __global__ void __launch_bounds__(LT_CUDA_THREADS) backward_factors(LT_CONSTANT job j) {
  uint32_t c = blockIdx.x * (LT_CUDA_THREADS / 32) + threadIdx.x / 32;
  double sum = sum_partial(j, c, 0), product = sum_partial(j, c, 1);
  if (c >= j.x.count || threadIdx.x % 32 != 0) return;
  double scale = 1 / sqrt(value_of(j.variance, c, 0) + j.eps), share = 1.0 / j.x.length;
  double p = scale * value_of(j.weight, c, 1);
  double q = j.given ? 0 : -p * product * scale * scale * share;
  put(j.out[0], c, product * scale);
  put(j.out[1], c, sum);
  j.factors[c] = p;
  j.factors[j.x.count + c] = q;
  j.factors[2 * j.x.count + c] = j.given ? 0 : -p * sum * share - q * value_of(j.mean, c, 0);
}

/* A segment of a channel a team: bound by bytes. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
apply(LT_CONSTANT job j) {
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  uint32_t end, from = segment_of(j, &end);
  if (t.line >= j.x.count) return;
  int result = j.back ? 2 : 1;
  char *x = lt_line(j.x, 0, t.line), *g = lt_line(j.x, 1, t.line);
  char *y = lt_line(j.x, result, t.line);
  const double *f = j.factors + t.line;
  T p = j.back ? static_cast<T>(f[0]) : T(0), q = static_cast<T>(f[j.x.count]), v[4], d[4];
  T r = static_cast<T>(f[2 * static_cast<int64_t>(j.x.count)]);
  for (uint32_t i = from + t.start; i < end; i += t.step) {
    lt_team_load4<COLUMNS, T>(j.x, 0, x, t, i, end, T(0), v);
    if (j.back) lt_team_load4<COLUMNS, T>(j.x, 1, g, t, i, end, T(0), d);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      v[e] = v[e] * q + r;
      if (j.back) v[e] = j.given ? d[e] * p : d[e] * p + v[e];
    }
    lt_team_store4<COLUMNS, T>(j.x, result, y, t, i, end, v);
  }
}

typedef struct state {
  lt_ctx *c;
  job j;
} state;

template <class T, bool COLUMNS> static bool issue(lt_ctx *c, const job *j, dim3 grid) {
  bool sums = j->back || !j->given;
  unsigned warps = LT_CUDA_THREADS / 32, channel_blocks = (j->x.count + warps - 1) / warps;
  auto sum = j->back ? products<T, COLUMNS> : moments<T, COLUMNS>;
  auto factors = j->back ? backward_factors : forward_factors;
  return (!sums || lt_cuda_grid(c, sum, grid, LT_CUDA_THREADS, 0, *j)) &&
         lt_cuda_grid(c, factors, channel_blocks, LT_CUDA_THREADS, 0, *j) &&
         lt_cuda_grid(c, apply<T, COLUMNS>, grid, LT_CUDA_THREADS, 0, *j);
}

/* Threads and segments: enough blocks for a large GPU, enough elements for each. */
static bool run_piece(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  job *j = &s->j;
  unsigned lines;
  j->x = *x;
  j->lanes = lt_cuda_team_lanes(x, &lines);
  unsigned blocks = (x->count + lines - 1) / lines, least = LEAST / lines;
  unsigned segments = blocks < WANTED_BLOCKS ? WANTED_BLOCKS / blocks : 1;
  unsigned most = x->length / (least > 64 ? least : 64);
  if (segments > most) segments = most;
  if (segments > SEGMENTS) segments = SEGMENTS;
  if (segments < 1) segments = 1;
  j->segment = ((x->length + segments - 1) / segments + 3) / 4 * 4;
  j->segments = (x->length + j->segment - 1) / j->segment;
  j->partial = lt_cuda_scratch<double>(s->c, 2 * static_cast<int64_t>(j->segments) * x->count);
  j->factors = lt_cuda_scratch<double>(s->c, 3 * static_cast<int64_t>(x->count));
  if (j->partial == nullptr || j->factors == nullptr) return false;
  dim3 grid(blocks, j->segments);
  if (x->o[0].dtype == LT_F64)
    return x->columns ? issue<double, true>(s->c, j, grid) : issue<double, false>(s->c, j, grid);
  return x->columns ? issue<float, true>(s->c, j, grid) : issue<float, false>(s->c, j, grid);
}

/* A strided vector is read where it is. */
static bool channels_of(lt_ctx *c, lt_tensor *t, channels *out) {
  lt_view v;
  if (!lt_cuda_view(c, t, &v)) return false;
  out->data = static_cast<char *>(v.data);
  out->dtype = v.dtype;
  out->step = t != nullptr ? v.stride[0] * lt_cuda_item_size(v.dtype) : 0;
  return true;
}

static bool run(lt_ctx *c, int n, const lt_view *v, state *s) {
  lt_cuda_lines_plan p;
  uint32_t all = (1u << v[0].ndim) - 1;
  s->c = c;
  lt_cuda_lines_make(&p, all & ~2u, LT_LINES_IN_ORDER, true, n, v);
  return lt_cuda_lines_pieces(c, &p, run_piece, s);
}

/* Of an empty batch: the mean of nothing is NaN, as PyTorch's; gradients are sums of nothing. */
static bool fill_all(lt_ctx *c, const lt_call *call, double value) {
  for (int k = 1; k < call->n_out; k++) {
    lt_view v;
    if (!lt_cuda_view(c, call->out[k], &v) || !lt_cuda_fill_view(c, &v, lt_cuda_number(value)))
      return false;
  }
  return true;
}

static lt_tensor *input(const lt_call *call, int k) {
  return call->n_in > k ? call->in[k] : nullptr;
}

/* (x, weight, bias, mean, variance) to y, and to mean and variance where they are not given. */
LT_CUDA_KERNEL(batch_norm) {
  lt_view v[2];
  state s = {};
  job *j = &s.j;
  j->eps = lt_cuda_args<lt_args_batch_norm>(call)->eps;
  j->given = call->n_out == 1;
  if (!lt_cuda_view(c, call->in[0], &v[0]) || !lt_cuda_view(c, call->out[0], &v[1]) ||
      !channels_of(c, input(call, 1), &j->weight) || !channels_of(c, input(call, 2), &j->bias) ||
      !channels_of(c, j->given ? input(call, 3) : nullptr, &j->mean) ||
      !channels_of(c, j->given ? input(call, 4) : nullptr, &j->variance))
    return false;
  for (int k = 0; k < 2 && !j->given; k++)
    if (!channels_of(c, call->out[k + 1], &j->out[k])) return false;
  if (lt_cuda_numel(&v[0]) == 0) return fill_all(c, call, NAN);
  return run(c, 2, v, &s);
}

/* (gradient, x, mean, variance, weight) to gradients of x, weight, bias. */
LT_CUDA_KERNEL(batch_norm_backward) {
  const lt_args_batch_norm_backward *a = lt_cuda_args<lt_args_batch_norm_backward>(call);
  lt_view v[3];
  state s = {};
  job *j = &s.j;
  j->eps = a->eps;
  j->given = a->fixed;
  j->back = true;
  if (!lt_cuda_view(c, call->in[1], &v[0]) || !lt_cuda_view(c, call->in[0], &v[1]) ||
      !lt_cuda_view(c, call->out[0], &v[2]) || !channels_of(c, call->in[2], &j->mean) ||
      !channels_of(c, call->in[3], &j->variance) || !channels_of(c, input(call, 4), &j->weight))
    return false;
  for (int k = 0; k < 2; k++)
    if (!channels_of(c, call->out[k + 1], &j->out[k])) return false;
  if (lt_cuda_numel(&v[0]) == 0) return fill_all(c, call, 0);
  return run(c, 3, v, &s);
}
