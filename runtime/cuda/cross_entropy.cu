/* runtime/cuda/cross_entropy.cu: softmax and negative log likelihood in one, and the derivative.

   A team of threads has a row of C classes, which lie along any dim of any stride. Forward finds
   the largest logit m and the sum of exp(x - m) in one pass over x, and keeps both; only label
   smoothing and probabilities as targets read the row once more. Backward reads x once. Rows'
   losses are joined within a block, then over the blocks in order.

   Neither the probabilities nor their logarithms are stored: for a vocabulary of 50,000 they would
   be the largest tensor of a language model (llm.c's fused classifier avoids them for the same
   reason). Two numbers a row are.

   The one pass is the online softmax (M. Milakov, N. Gimelshein, "Online normalizer calculation for
   softmax", 2018): a partial sum is rescaled when a larger logit turns up (cuda/online_softmax.h).
   Two partial results (m, sum) join by the same rule, in a tree of fixed shape. */
#include "cuda/online_softmax.h"
#include "cuda/thread_groups.h"

enum { FINISH = 1024 };

/* Operands of the lines: x, target, then forward the rows' losses (reduction "none"), backward the
   gradient of x and the gradients of the rows' losses. */
typedef struct job {
  lt_cuda_lines x;
  bool shares, each_row; /* targets are probabilities; a loss for each row */
  int lanes;
  lt_view weight;        /* data nullptr: none */
  int64_t weight_step;   /* bytes */
  int64_t ignore_index;
  double smoothing;
  void *stats;           /* [2, rows] of the compute type */
  double *partial;       /* forward: [2, blocks], losses and weights */
  double *weight_sum;    /* backward: of all classes, where it matters */
  const double *total;   /* backward: what the mean divides by */
  char *grad;            /* backward: of the one loss */
  int grad_dtype;
  lt_cuda_blame blame;
} job;

/* The weight of class i, 1 without weights. */
template <class T> static __device__ inline T weight_of(const job &j, int64_t i) {
  if (j.weight.data == nullptr) return 1;
  return lt_load<T>(static_cast<const char *>(j.weight.data) + i * j.weight_step,
                    j.weight.dtype, 0);
}

/* The share of each class apart from the target id: smoothing / C times its weight. */
template <class T> static __device__ inline T spread_of(const job &j, int64_t i) {
  return static_cast<T>(j.smoothing / static_cast<double>(j.x.length)) * weight_of<T>(j, i);
}

/* The class of a row; -1: it is ignored, or refused. Only the leading thread reports an id that is
   out of range: a row is one error. */
static __device__ inline int64_t id_of(const job &j, uint32_t line, bool leads) {
  int64_t id = lt_load<int64_t>(lt_line(j.x, 1, line), j.x.o[1].dtype, 0);
  if (id == j.ignore_index) return -1;
  if (id >= 0 && id < j.x.length) return id;
  if (leads) lt_cuda_refuse(j.blame, id, j.x.length);
  return -1;
}

/* The sum of term(class, value of x, probability) of a thread; what is not given counts as 0. */
template <class T, bool COLUMNS, class F>
static __device__ inline double sum_of(const job &j, const lt_team &t, char *x, F term) {
  char *shares = j.shares ? lt_line(j.x, 1, t.line) : nullptr;
  T part = 0, v[4] = {0, 0, 0, 0}, p[4] = {0, 0, 0, 0};
  double carried = 0;
  int taken = 0;
  for (uint32_t i = t.start; i < j.x.length; i += t.step) {
    if (x != nullptr) lt_team_load4<COLUMNS, T>(j.x, 0, x, t, i, j.x.length, T(0), v);
    if (j.shares) lt_team_load4<COLUMNS, T>(j.x, 1, shares, t, i, j.x.length, T(0), p);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
      uint32_t k = i + e * t.stride;
      if (k < j.x.length) part += term(k, v[e], p[e]);
    }
    if (++taken % LT_CUDA_CARRY == 0) lt_carry(&part, &carried);
  }
  lt_carry(&part, &carried);
  return carried;
}

/* What smoothing and probabilities add: sum of q (l - (x - m)), of a thread. l - (x - m) is -log p
   without m + l, which would round; q the share of the class in the target. */
template <class T, bool COLUMNS>
static __device__ inline double rest_of(const job &j, const lt_team &t, char *x, T m, T l) {
  T keep = static_cast<T>(1 - j.smoothing);
  return sum_of<T, COLUMNS>(j, t, x, [&](uint32_t k, T v, T p) {
    T q = spread_of<T>(j, k);
    if (j.shares) q += keep * p * weight_of<T>(j, k);
    return q * (l - (v - m));
  });
}

/* A team a row: bound by bytes. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
forward(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_THREADS);
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr;
  int64_t id = has && !j.shares ? id_of(j, t.line, t.leads) : -1;
  lt_tally<T> tally = {-INFINITY, 0, 0};
  T v[4];
  int taken = 0;
  for (uint32_t i = t.start; has && i < j.x.length; i += t.step) {
    lt_team_load4<COLUMNS, T>(j.x, 0, x, t, i, j.x.length, T(-INFINITY), v);
    lt_tally4(&tally, v);
    if (++taken % LT_CUDA_CARRY == 0) lt_carry(&tally.part, &tally.total);
  }
  T m = static_cast<T>(lt_join<COLUMNS, double>(t, tally.most, -INFINITY, lt_larger(), scratch));
  lt_rescale(&tally, m);
  lt_carry(&tally.part, &tally.total);
  T sum = static_cast<T>(lt_join<COLUMNS>(t, tally.total, 0.0, lt_plus(), scratch));
  if (m == -INFINITY) sum = NAN;
  T l = row::log(sum);
  bool counts = has && (j.shares || id >= 0);
  double loss = 0, weight = 0;
  if (j.shares || j.smoothing != 0) {
    loss = counts ? rest_of<T, COLUMNS>(j, t, x, m, l) : 0;
    loss = lt_join<COLUMNS>(t, loss, 0.0, lt_plus(), scratch);
  }
  if (has && t.leads) {
    T *stats = static_cast<T *>(j.stats) + t.line;
    stats[0] = m, stats[j.x.count] = sum;
    if (id >= 0) {
      weight = weight_of<double>(j, id);
      T at = lt_line_load<T>(j.x, 0, x, static_cast<uint32_t>(id));
      loss += (1 - j.smoothing) * weight *
              (static_cast<double>(l) - (static_cast<double>(at) - static_cast<double>(m)));
    } else if (j.shares) {
      weight = 1;
    }
    if (j.each_row) lt_store<double>(lt_line(j.x, 2, t.line), j.x.o[2].dtype, 0, loss);
  } else {
    loss = 0;
  }
  loss = lt_block_sum(loss, scratch);
  weight = lt_block_sum(weight, scratch);
  if (threadIdx.x == 0) j.partial[blockIdx.x] = loss, j.partial[gridDim.x + blockIdx.x] = weight;
}

/* The blocks' losses and weights to the loss and the divisor: one block, few values. Division by
   the sum of weights comes last, on the device: the host never waits for it. */
static __global__ void __launch_bounds__(FINISH)
finish(const double *partial, int64_t blocks, bool mean, double *total, char *out, int dtype) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  double loss = 0, weight = 0;
  for (int64_t i = threadIdx.x; i < blocks; i += FINISH)
    loss += partial[i], weight += partial[blocks + i];
  loss = lt_block_sum(loss, scratch);
  weight = lt_block_sum(weight, scratch);
  if (threadIdx.x != 0) return;
  *total = mean ? weight : 1;
  if (out != nullptr) lt_store<double>(out, dtype, 0, loss / *total);
}

/* What a row's derivative is made of: g (by exp(x - m) - q), with q `own` for the target id. */
template <class T> struct row_grad {
  T g, m, by, own;
  int64_t id;
};

template <class T>
static __device__ inline row_grad<T> row_grad_of(const job &j, uint32_t line, int64_t id,
                                                 double shares) {
  const T *stats = static_cast<const T *>(j.stats) + line;
  const char *grad = j.each_row ? lt_line(j.x, 3, line) : j.grad;
  double weights = j.weight_sum != nullptr ? *j.weight_sum : static_cast<double>(j.x.length);
  double spread = j.smoothing * weights / static_cast<double>(j.x.length);
  double g = lt_load<double>(grad, j.grad_dtype, 0) * (1 / *j.total);
  T keep = static_cast<T>(1 - j.smoothing), own = id >= 0 ? keep * weight_of<T>(j, id) : T(0);
  row_grad<T> r = {static_cast<T>(g), stats[0], 1 / stats[j.x.count], own, id};
  r.by *= j.shares ? static_cast<T>(shares + spread) : own + static_cast<T>(spread);
  return r;
}

/* An infinite g meets no 0 but those of the formula: with ids it is multiplied in first. The
   derivative of a row: g (p sum(q) - q), p the softmax and q the target's shares, which sum to the
   row's weight. */
template <class T>
static __device__ inline T class_grad(const job &j, const row_grad<T> &r, uint32_t k, T x, T p) {
  T e = row::exp(x - r.m);
  if (j.shares) {
    T q = static_cast<T>(1 - j.smoothing) * p * weight_of<T>(j, k);
    return r.g * (r.by * e - (q + spread_of<T>(j, k)));
  }
  T y = r.g * r.by * e;
  if (j.smoothing != 0) y -= r.g * spread_of<T>(j, k);
  return k == r.id ? y - r.g * r.own : y;
}

/* The sum of a row's probabilities, each times its weight, of a thread. */
template <class T, bool COLUMNS>
static __device__ inline double shares_of(const job &j, const lt_team &t) {
  T keep = static_cast<T>(1 - j.smoothing);
  return sum_of<T, COLUMNS>(j, t, nullptr, [&](uint32_t k, T, T p) {
    return keep * p * weight_of<T>(j, k);
  });
}

/* A team a row: bound by bytes. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, 2)
backward(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_THREADS);
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  bool has = t.line < j.x.count;
  int64_t id = has && !j.shares ? id_of(j, t.line, t.leads) : -1;
  double sum = 0;
  if (j.shares) {
    sum = has ? shares_of<T, COLUMNS>(j, t) : 0;
    sum = lt_join<COLUMNS>(t, sum, 0.0, lt_plus(), scratch);
  }
  if (!has) return;
  bool counts = j.shares || id >= 0;
  row_grad<T> r = row_grad_of<T>(j, t.line, id, sum);
  T v[4], p[4] = {0, 0, 0, 0};
  char *x = lt_line(j.x, 0, t.line), *out = lt_line(j.x, 2, t.line);
  char *shares = j.shares ? lt_line(j.x, 1, t.line) : nullptr;
  for (uint32_t i = t.start; i < j.x.length; i += t.step) {
    lt_team_load4<COLUMNS, T>(j.x, 0, x, t, i, j.x.length, T(0), v);
    if (j.shares) lt_team_load4<COLUMNS, T>(j.x, 1, shares, t, i, j.x.length, T(0), p);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
      uint32_t k = i + e * t.stride;
      if (k >= j.x.length) continue;
      v[e] = counts ? class_grad<T>(j, r, k, v[e], p[e]) : T(0);
    }
    lt_team_store4<COLUMNS, T>(j.x, 2, out, t, i, j.x.length, v);
  }
}

/* The sum of the weights of all classes, in one block. */
static __global__ void __launch_bounds__(FINISH) sum_weights(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  double sum = 0;
  for (uint32_t i = threadIdx.x; i < j.x.length; i += FINISH) sum += weight_of<double>(j, i);
  sum = lt_block_sum(sum, scratch);
  if (threadIdx.x == 0) *j.weight_sum = sum;
}

typedef struct state {
  lt_ctx *c;
  job j;
  bool back;
  int64_t blocks;
} state;

/* One partial loss and weight for each block; `finish` adds them. */
template <class T> static bool issue(state *s) {
  job *j = &s->j;
  unsigned lines;
  j->lanes = lt_cuda_team_lanes(&j->x, &lines);
  unsigned blocks = (j->x.count + lines - 1) / lines;
  s->blocks = blocks;
  if (s->back)
    return lt_cuda_grid(s->c, j->x.columns ? backward<T, true> : backward<T, false>, blocks,
                        LT_CUDA_THREADS, 0, *j);
  j->partial = lt_cuda_scratch<double>(s->c, 2 * s->blocks);
  return j->partial != nullptr &&
         lt_cuda_grid(s->c, j->x.columns ? forward<T, true> : forward<T, false>, blocks,
                      LT_CUDA_THREADS, 0, *j);
}

static bool run_piece(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  s->j.x = *x;
  if (s->j.weight_sum != nullptr && !lt_cuda_grid(s->c, sum_weights, 1, FINISH, 0, s->j))
    return false;
  return x->o[0].dtype == LT_F64 ? issue<double>(s) : issue<float>(s);
}

/* What forward and backward share: views of x, target and two more, to lines of classes. */
static bool run(lt_ctx *c, const lt_call *call, int first, lt_tensor *weight, int n, lt_view *v,
                const lt_args_cross_entropy *a, state *s) {
  lt_cuda_lines_plan p;
  job *j = &s->j;
  s->c = c;
  if (!lt_cuda_view(c, call->in[first], &v[0]) || !lt_cuda_view(c, call->in[first + 1], &v[1]) ||
      !lt_cuda_view(c, weight, &j->weight) || !lt_cuda_blame_of(c, call, &j->blame))
    return false;
  j->shares = lt_cuda_compute(v[1].dtype) != LT_CUDA_I64;
  j->each_row = a->reduction == LT_REDUCTION_none;
  j->weight_step = weight != nullptr ? j->weight.stride[0] * lt_cuda_item_size(j->weight.dtype) : 0;
  j->ignore_index = a->ignore_index;
  j->smoothing = a->label_smoothing;
  if (s->back && weight != nullptr && j->smoothing != 0 &&
      (j->weight_sum = lt_cuda_scratch<double>(c, 1)) == nullptr)
    return false;
  lt_cuda_lines_make(&p, v[0].ndim > 1 ? 2u : 1u, LT_LINES_IN_ORDER, false, n, v);
  if (p.count > LT_CUDA_LINES_MOST)
    return lt_cuda_fail(c, LT_EARG, "cross_entropy: %lld rows: at most 2^30 on a GPU",
                        static_cast<long long>(p.count));
  return lt_cuda_lines_pieces(c, &p, run_piece, s);
}

static lt_tensor *weight_of_call(const lt_call *call, int at) {
  return call->n_in > at ? call->in[at] : nullptr;
}

/* (x, target, weight) to (loss, stats, total). */
LT_CUDA_KERNEL(cross_entropy) {
  const lt_args_cross_entropy *a = lt_cuda_args<lt_args_cross_entropy>(call);
  lt_view v[4], stats, total;
  state s = {};
  bool none = a->reduction == LT_REDUCTION_none, mean = a->reduction == LT_REDUCTION_mean;
  if (!lt_cuda_view(c, call->in[0], &v[0]) || !lt_cuda_view(c, call->out[0], &v[2]) ||
      !lt_cuda_view(c, call->out[1], &stats) || !lt_cuda_view(c, call->out[2], &total))
    return false;
  if (v[0].size[v[0].ndim > 1 ? 1 : 0] == 0) return lt_cuda_host->run_on_cpu(c, call); /* refuses */
  s.j.stats = stats.data;
  if (!run(c, call, 0, weight_of_call(call, 2), none ? 3 : 2, v, a, &s)) return false;
  return lt_cuda_grid(c, finish, 1, FINISH, 0, s.j.partial, s.blocks, mean,
                      static_cast<double *>(total.data),
                      none ? nullptr : static_cast<char *>(v[2].data),
                      static_cast<int>(v[2].dtype));
}

/* (gradient of the loss, x, target, stats, total, weight) to the gradient of x. */
LT_CUDA_KERNEL(cross_entropy_backward) {
  const lt_args_cross_entropy *a =
      static_cast<const lt_args_cross_entropy *>(call->args); /* the kinds have the same */
  lt_view v[4], stats, total;
  state s = {};
  s.back = true;
  bool none = a->reduction == LT_REDUCTION_none;
  if (!lt_cuda_view(c, call->out[0], &v[2]) || !lt_cuda_view(c, call->in[0], &v[3]) ||
      !lt_cuda_view(c, call->in[3], &stats) || !lt_cuda_view(c, call->in[4], &total))
    return false;
  if (lt_cuda_numel(&v[2]) == 0) return true;
  s.j.stats = stats.data;
  s.j.total = static_cast<const double *>(total.data);
  s.j.grad = static_cast<char *>(v[3].data);
  s.j.grad_dtype = v[3].dtype;
  return run(c, call, 1, weight_of_call(call, 5), none ? 4 : 3, v, a, &s);
}
