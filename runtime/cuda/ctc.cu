/* runtime/cuda/ctc.cu: connectionist temporal classification, in logarithms and doubles as on the
   CPU (cpu/ctc.c). A block a sequence, a thread a state: bound by the latency of a step.

   A. Graves and others, Connectionist Temporal Classification, 2006. States are the labels with
   blanks around them, 2 S + 1; alpha[t][s] is the logarithm of the probability of all alignments
   that are at state s after step t, beta the same from the end. In double: sums of exponentials
   over hundreds of steps lose digits in f32. */
#include "cuda/index.h"

static const double NOTHING = -INFINITY; /* the logarithm of 0 */

typedef struct job {
  bool wide, zero_infinity;
  int64_t n, steps, classes, labels, blank; /* labels: S of the longest target */
  const void *x;                            /* [N, T, C] */
  const int64_t *targets, *step_counts, *label_counts; /* [N, S], [N], [N] */
  double *alpha, *beta;                     /* [N, T, 2 S + 1] */
  void *loss;                               /* forward: [N] */
  const void *grad;                         /* backward: [N] */
  void *out;                                /* backward: [N, T, C] */
  lt_cuda_blame blame;
} job;

/* A sequence, with lengths that are within the memory. */
typedef struct sequence {
  const int64_t *targets;
  int64_t first, steps, states; /* first: row of [N T] */
} sequence;

/* log-probabilities are f32 or f64. */
static __device__ inline double real_at(const void *x, bool wide, int64_t i) {
  if (wide) return static_cast<const double *>(x)[i];
  return static_cast<double>(static_cast<const float *>(x)[i]);
}

/* A value that is out of range is reported and counts as 0, so that no thread leaves the memory. */
static __device__ inline int64_t within(const job &j, int64_t v, int64_t most, bool says) {
  if (v >= 0 && v <= most) return v;
  if (says) lt_cuda_refuse(j.blame, v, most + 1);
  return 0;
}

static __device__ inline sequence sequence_of(const job &j, int64_t k) {
  bool says = threadIdx.x == 0;
  sequence q = {j.targets + k * j.labels, k * j.steps, within(j, j.step_counts[k], j.steps, says),
                2 * within(j, j.label_counts[k], j.labels, says) + 1};
  return q;
}

static __device__ inline int64_t label(const job &j, const sequence &q, int64_t s) {
  return s % 2 == 0 ? j.blank : within(j, q.targets[s / 2], j.classes - 1, true);
}
/* A label may follow the one before it without a blank between, unless they are equal. */
static __device__ inline bool skips(const job &j, const sequence &q, int64_t s) {
  return s % 2 == 1 && label(j, q, s) != label(j, q, s + 2);
}

/* log(e^a + e^b) */
static __device__ inline double join(double a, double b) {
  double most = a > b ? a : b, least = a > b ? b : a;
  if (isinf(least) || (isinf(most) && most > 0)) return most;
  return most + log1p(exp(least - most));
}

/* The last label or the blank behind it. Without steps only the empty target is possible. */
static __device__ inline double loss_of(const job &j, const sequence &q) {
  if (q.steps == 0) return q.states == 1 ? 0 : -NOTHING;
  const double *last = j.alpha + (q.first + q.steps - 1) * (2 * j.labels + 1);
  return -(q.states > 1 ? join(last[q.states - 1], last[q.states - 2]) : last[0]);
}

/* The states before a state, or (back) those behind it, in the step before or the next one. */
static __device__ inline double arrived(const job &j, const sequence &q, const double *other,
                                        int64_t s, bool back) {
  double v = other[s];
  int64_t next = back ? s + 1 : s - 1, over = back ? s + 2 : s - 2;
  if (next >= 0 && next < q.states) v = join(v, other[next]);
  if (over >= 0 && over < q.states && skips(j, q, back ? s : over)) v = join(v, other[over]);
  return v;
}

/* Alpha of all steps, or (back) beta from the last one on. */
static __device__ void walk(const job &j, const sequence &q, double *all, bool back) {
  int64_t wide = 2 * j.labels + 1;
  for (int64_t i = 0; i < q.steps; i++) {
    int64_t t = q.first + (back ? q.steps - 1 - i : i);
    double *own = all + t * wide, *other = back ? own + wide : own - wide;
    for (int64_t s = threadIdx.x; s < q.states; s += blockDim.x) {
      bool begins = back ? s >= q.states - 2 : s < 2;
      double v = i > 0 ? arrived(j, q, other, s, back) : begins ? 0 : NOTHING;
      own[s] = v + real_at(j.x, j.wide, t * j.classes + label(j, q, s));
    }
    __syncthreads();
  }
}

static __global__ void __launch_bounds__(LT_CUDA_THREADS) forward(LT_CONSTANT job j) {
  int64_t k = blockIdx.x, wide = 2 * j.labels + 1;
  sequence q = sequence_of(j, k);
  for (int64_t i = threadIdx.x; i < j.steps * wide; i += blockDim.x)
    j.alpha[q.first * wide + i] = NOTHING;
  __syncthreads();
  walk(j, q, j.alpha, false);
  if (threadIdx.x != 0) return;
  if (j.wide)
    static_cast<double *>(j.loss)[k] = loss_of(j, q);
  else
    static_cast<float *>(j.loss)[k] = static_cast<float>(loss_of(j, q));
}

static __global__ void __launch_bounds__(LT_CUDA_THREADS, 3) make_beta(LT_CONSTANT job j) {
  walk(j, sequence_of(j, blockIdx.x), j.beta, true);
}

static __device__ inline void put(const job &j, int64_t i, double v) {
  if (j.wide)
    static_cast<double *>(j.out)[i] = v;
  else
    static_cast<float *>(j.out)[i] = static_cast<float>(v);
}

/* The share of the alignments that are at state s, and at later ones of the same label. */
static __device__ double share_of(const job &j, const sequence &q, int64_t t, int64_t s) {
  const double *alpha = j.alpha + t * (2 * j.labels + 1), *beta = j.beta + t * (2 * j.labels + 1);
  int64_t own = label(j, q, s);
  double share = NOTHING;
  for (int64_t i = s; i < q.states; i++)
    if (label(j, q, i) == own) share = join(share, alpha[i] + beta[i]);
  return share;
}

/* A block a step of a sequence. First e^x for all classes, then a thread each label that stands in
   the states for the first time. Who has a label first adds up all its states in order: two threads
   never write to one class. */
static __global__ void __launch_bounds__(LT_CUDA_THREADS) backward(LT_CONSTANT job j) {
  int64_t row = blockIdx.x, k = row / j.steps, t = row - k * j.steps, at = row * j.classes;
  sequence q = sequence_of(j, k);
  double loss = loss_of(j, q), g = real_at(j.grad, j.wide, k);
  bool none = t >= q.steps || (j.zero_infinity && isinf(loss)), lost = isinf(loss);
  for (int64_t i = threadIdx.x; i < j.classes; i += blockDim.x) {
    double x = real_at(j.x, j.wide, at + i);
    put(j, at + i, none ? 0 : lost ? static_cast<double>(NAN) : exp(x) * g);
  }
  __syncthreads();
  if (none || lost) return;
  for (int64_t s = threadIdx.x; s < q.states; s += blockDim.x) {
    int64_t own = label(j, q, s);
    bool first = true;
    for (int64_t i = 0; i < s && first; i++) first = label(j, q, i) != own;
    double share = first ? share_of(j, q, row, s) : NOTHING;
    double x = real_at(j.x, j.wide, at + own);
    if (!isinf(share)) put(j, at + own, (exp(x) - exp(share + loss - x)) * g);
  }
}

/* log_probs, targets and lengths from in[0] on, as rows. */
static bool prepare(lt_ctx *c, const lt_call *call, int first, job *j) {
  lt_view v[4], own[4];
  for (int k = 0; k < 4; k++) {
    if (!lt_cuda_view(c, call->in[first + k], &v[k]) ||
        !lt_cuda_row_major(c, &v[k], k == 0 ? v[0].dtype : LT_I64, &own[k]))
      return false;
  }
  j->wide = v[0].dtype == LT_F64;
  j->n = v[0].size[0], j->steps = v[0].size[1], j->classes = v[0].size[2];
  j->labels = v[1].size[1];
  j->x = own[0].data;
  j->targets = static_cast<const int64_t *>(own[1].data);
  j->step_counts = static_cast<const int64_t *>(own[2].data);
  j->label_counts = static_cast<const int64_t *>(own[3].data);
  return lt_cuda_blame_of(c, call, &j->blame);
}

LT_CUDA_KERNEL(ctc_paths) {
  lt_view loss, alpha, own_loss, own_alpha;
  job j = {};
  j.blank = lt_cuda_args<lt_args_ctc_paths>(call)->blank;
  if (!prepare(c, call, 0, &j) || !lt_cuda_view(c, call->out[0], &loss) ||
      !lt_cuda_view(c, call->out[1], &alpha) ||
      !lt_cuda_result(c, &loss, j.wide ? LT_F64 : LT_F32, &own_loss) ||
      !lt_cuda_result(c, &alpha, LT_F64, &own_alpha))
    return false;
  j.loss = own_loss.data;
  j.alpha = static_cast<double *>(own_alpha.data);
  return lt_cuda_grid(c, forward, static_cast<unsigned>(j.n), LT_CUDA_THREADS, 0, j) &&
         lt_cuda_deliver(c, &loss, &own_loss) && lt_cuda_deliver(c, &alpha, &own_alpha);
}

/* (gradient, log_probs, targets, input_lengths, target_lengths, alpha) */
LT_CUDA_KERNEL(ctc_paths_backward) {
  const lt_args_ctc_paths_backward *a = lt_cuda_args<lt_args_ctc_paths_backward>(call);
  lt_view grad, alpha, out, own_grad, own_alpha, own_out;
  job j = {};
  j.blank = a->blank, j.zero_infinity = a->zero_infinity;
  if (!prepare(c, call, 1, &j)) return false;
  lt_dtype dtype = j.wide ? LT_F64 : LT_F32;
  if (!lt_cuda_view(c, call->in[0], &grad) || !lt_cuda_view(c, call->in[5], &alpha) ||
      !lt_cuda_view(c, call->out[0], &out) || !lt_cuda_row_major(c, &grad, dtype, &own_grad) ||
      !lt_cuda_row_major(c, &alpha, LT_F64, &own_alpha) ||
      !lt_cuda_result(c, &out, dtype, &own_out))
    return false;
  j.grad = own_grad.data, j.out = own_out.data;
  j.alpha = static_cast<double *>(own_alpha.data);
  j.beta = lt_cuda_scratch<double>(c, lt_cuda_numel(&alpha));
  if (j.beta == nullptr) return false;
  unsigned n = static_cast<unsigned>(j.n), rows = static_cast<unsigned>(j.n * j.steps);
  return lt_cuda_grid(c, make_beta, n, LT_CUDA_THREADS, 0, j) &&
         lt_cuda_grid(c, backward, rows, LT_CUDA_THREADS, 0, j) &&
         lt_cuda_deliver(c, &out, &own_out);
}
