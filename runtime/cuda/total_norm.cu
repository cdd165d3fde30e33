/* runtime/cuda/total_norm.cu: the total norm of a list of gradients.

   A block sums its chunk in f64, a last one what they found: the order is fixed by the shapes.

   In f64, since squares of many small gradients would stop growing a sum in f32. The host does not
   read the norm: the factor of clipping is computed on the device as well. */
#include "cuda/multi_tensor.h"
#include "cuda/reduce.h"

enum { THREADS = LT_LIST_THREADS };

typedef enum power { POWER_2, POWER_1, POWER_MAX, POWER_P } power;

static power power_of(double p) {
  return p == 2 ? POWER_2 : p == 1 ? POWER_1 : isinf(p) ? POWER_MAX : POWER_P;
}

/* The largest is NaN where one is. */
struct join {
  int kind;
  __device__ double operator()(double a, double b) const {
    if (kind != POWER_MAX) return a + b;
    return a != a || a > b ? a : b;
  }
};

/* One block a chunk, 4 neighbours a thread. `partial`: of the first chunk of this launch. USUAL:
   power 2 or infinity, which need no pow. Limited by bytes. */
template <class T, bool USUAL>
static __global__ void __launch_bounds__(THREADS) norm(LT_CONSTANT lt_list<1> l, int kind, double p,
                                                       double *partial) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  join by = {kind};
  const lt_list_row<1> &r = l.row[lt_list_find(l)];
  int64_t from = static_cast<int64_t>(blockIdx.x - r.first) * LT_LIST_CHUNK;
  int64_t to = from + LT_LIST_CHUNK < r.n ? from + LT_LIST_CHUNK : r.n;
  double sum = 0;
  for (int64_t at = from + threadIdx.x * 4; at < to; at += THREADS * 4) {
    T x[4];
    lt_list_load(r.data[0], r.dtype, at, to - at < 4 ? static_cast<int>(to - at) : 4, r.aligned, x);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      double v = lt_abs_f64(static_cast<double>(x[k]));
      if (kind == POWER_2) v *= v;
      if (!USUAL && kind == POWER_P) v = lt_pow_f64(v, p);
      sum = by(v, sum);
    }
  }
  sum = lt_block_all(sum, 0.0, by, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* One block for all partial sums: n / 256 a thread. The root is taken once of the sum over all
   tensors, not of norms of norms. */
static __global__ void __launch_bounds__(THREADS) finish(const double *__restrict__ partial,
                                                         int64_t n, int kind, double p, void *out,
                                                         int dtype) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  join by = {kind};
  double sum = 0;
  for (int64_t k = threadIdx.x; k < n; k += THREADS) sum = by(sum, partial[k]);
  sum = lt_block_all(sum, 0.0, by, scratch);
  if (threadIdx.x != 0) return;
  if (kind == POWER_2) sum = lt_sqrt_f64(sum);
  if (kind == POWER_P) sum = lt_pow_f64(sum, 1 / p);
  lt_store<double>(out, dtype, 0, sum);
}

typedef struct norm_job {
  power kind;
  double p, *partial;
} norm_job;

template <class T> static bool run(lt_list_job *j, norm_job *n) {
  bool usual = n->kind == POWER_2 || n->kind == POWER_MAX;
  auto kernel = usual ? norm<T, true> : norm<T, false>;
  return lt_list_each<T, 1>(j, [&](const lt_list<1> &l) {
    bool ok = lt_cuda_grid(j->c, kernel, l.chunks, THREADS, 0, l, static_cast<int>(n->kind), n->p,
                           n->partial);
    n->partial += l.chunks;
    return ok;
  });
}

/* Lists of hundreds of tensors are passed in several launches (multi_tensor.h); partial sums of all
   of them lie one after the other. */
static int64_t chunks_of(const lt_list_job *j, bool *ok) {
  int64_t sum = 0;
  lt_view v;
  for (int k = 0; k < j->n && *ok; k++) {
    *ok = lt_cuda_view(j->c, j->in[k], &v);
    sum += (lt_cuda_numel(&v) + LT_LIST_CHUNK - 1) / LT_LIST_CHUNK;
  }
  return sum;
}

static bool no_group(int group) { return group < 0; }

LT_CUDA_KERNEL(grads_norm) {
  const lt_args_grads_norm *a = lt_cuda_args<lt_args_grads_norm>(call);
  lt_list_job j = {c, call, call->in, call->n_in, 1, no_group, nullptr};
  lt_view out;
  bool ok = lt_cuda_view(c, call->out[0], &out);
  int64_t chunks = chunks_of(&j, &ok);
  double *partial = ok ? lt_cuda_scratch<double>(c, chunks > 0 ? chunks : 1) : nullptr;
  norm_job n = {power_of(a->p), a->p, partial};
  if (partial == nullptr || !lt_list_begin(&j) || !run<float>(&j, &n) || !run<double>(&j, &n))
    return false;
  return lt_cuda_grid(c, finish, 1, THREADS, 0, partial, chunks, static_cast<int>(n.kind), a->p,
                      out.data, static_cast<int>(out.dtype));
}
