/* runtime/cuda/random.cu: random tensors, dropout: the CPU's words for the CPU's elements.

   Element i in logical order is a function of the key and i alone (cpu/random.c). A thread makes 4
   neighbours: one block of Philox, or two where 32 bits an element are too few. */
#include "cuda/elementwise.h"
#include "ops/math/random.h"

enum { THREADS = 256 };

/* Operand 1 is the result, 2 what it is made of; 0 stands for the logical order. */
typedef struct job {
  lt_cuda_iter it;
  int64_t start;      /* element of the whole tensor that is the first of `it` */
  bool vectors;       /* result and operand lie in this order, on 16 bytes, from a block on */
  lt_rng_key rng_key;
  int64_t low;
  uint64_t range;     /* of integers; 0: all of 64 bits */
  uint32_t threshold; /* of dropout: words below it are dropped; scale 0: all are */
  double scale;
  lt_cuda_blame blame;
} job;

/* The words of elements 4 block .. 4 block + 3: WORDS each. Philox4x32-10 (J. Salmon and others,
   2011) is a function of a counter: threads share no state, so no generator has to be stored for
   each of them, as cuRAND's XORWOW would need. */
template <int WORDS>
static __device__ inline void draw(const lt_rng_key &t, uint64_t block, uint32_t *w) {
#pragma unroll
  for (int b = 0; b < WORDS; b++) {
    lt_random4 r = lt_philox(t, block * WORDS + static_cast<uint64_t>(b));
#pragma unroll
    for (int k = 0; k < 4; k++) w[4 * b + k] = r.word[k];
  }
}

/* What a kernel computes of words w and, with an operand, values x: y. As many bits as the dtype
   has below 1 (24, 11 or 8): more would round up to 1, which is excluded. */
struct uniform {
  enum { WORDS = 1, READS = 0 };
  typedef float type;
  static __device__ inline void make(const job &j, const uint32_t *w, const float *, float *y) {
    int dtype = j.it.o[1].dtype, shift = dtype == LT_BF16 ? 24 : dtype == LT_F16 ? 21 : 8;
    float unit = 1.0f / static_cast<float>(1u << (32 - shift));
#pragma unroll
    for (int k = 0; k < 4; k++) y[k] = static_cast<float>(w[k] >> shift) * unit;
  }
};
/* 53 bits of two words. */
struct uniform_wide {
  enum { WORDS = 2, READS = 0 };
  typedef double type;
  static __device__ inline void make(const job &, const uint32_t *w, const double *, double *y) {
#pragma unroll
    for (int k = 0; k < 4; k++) y[k] = lt_uniform_f64(w[2 * k], w[2 * k + 1]);
  }
};

/* sqrt(-2 log u) (cos, sin)(2 pi v), G. Box and M. Muller, 1958, in double with the same functions
   as cpu/random.c: the same bits. Branch-free, unlike the polar method or the ziggurat, whose
   threads would diverge. */
static __device__ inline void normal_pair(double u, double v, double *y) {
  double r = lt_sqrt_f64(-2 * lt_log_f64(u)), sine, cosine;
  lt_turn_f64(v, &sine, &cosine);
  y[0] = r * cosine;
  y[1] = r * sine;
}

struct normal {
  enum { WORDS = 1, READS = 0 };
  typedef double type;
  static __device__ inline void make(const job &, const uint32_t *w, const double *, double *y) {
#pragma unroll
    for (int k = 0; k < 4; k += 2)
      normal_pair((static_cast<double>(w[k]) + 1) * 0x1p-32,
                  static_cast<double>(w[k + 1]) * 0x1p-32, y + k);
  }
};
struct normal_wide {
  enum { WORDS = 2, READS = 0 };
  typedef double type;
  static __device__ inline void make(const job &, const uint32_t *w, const double *, double *y) {
#pragma unroll
    for (int k = 0; k < 4; k += 2)
      normal_pair(lt_uniform_f64(w[2 * k], w[2 * k + 1]) + 0x1p-53,
                  lt_uniform_f64(w[2 * k + 2], w[2 * k + 3]), y + k);
  }
};

/* low + floor(word range / 2^32): D. Lemire's multiplication (Fast Random Integer Generation in an
   Interval, 2019) without its rejection: the bias is below range / 2^32, and each element takes
   exactly one word. */
struct integer {
  enum { WORDS = 1, READS = 0 };
  typedef int64_t type;
  static __device__ inline void make(const job &j, const uint32_t *w, const int64_t *,
                                     int64_t *y) {
#pragma unroll
    for (int k = 0; k < 4; k++)
      y[k] = static_cast<int64_t>(static_cast<uint64_t>(j.low) + (w[k] * j.range >> 32));
  }
};
struct integer_wide {
  enum { WORDS = 2, READS = 0 };
  typedef int64_t type;
  static __device__ inline void make(const job &j, const uint32_t *w, const int64_t *,
                                     int64_t *y) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      uint64_t v = static_cast<uint64_t>(w[2 * k]) << 32 | w[2 * k + 1];
      if (j.range != 0) v = __umul64hi(v, j.range);
      y[k] = static_cast<int64_t>(static_cast<uint64_t>(j.low) + v);
    }
  }
};

/* A word below the threshold drops the element; others are divided by the share that stays. The
   mask is not stored: backward draws it again from the key. */
template <class T> struct drop {
  enum { WORDS = 1, READS = 1 };
  typedef T type;
  static __device__ inline void make(const job &j, const uint32_t *w, const T *x, T *y) {
    T scale = static_cast<T>(j.scale);
#pragma unroll
    for (int k = 0; k < 4; k++) y[k] = w[k] < j.threshold || scale == 0 ? 0 : x[k] * scale;
  }
};

/* Compares in double: 32 bits of probability. */
struct bernoulli {
  enum { WORDS = 1, READS = 1 };
  typedef double type;
  static __device__ inline void make(const job &j, const uint32_t *w, const double *x, double *y) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (!(x[k] >= 0 && x[k] <= 1))
        lt_cuda_refuse(j.blame, static_cast<int64_t>(lt_bits_f64(x[k])), 0);
      y[k] = static_cast<double>(w[k]) * 0x1p-32 < x[k] ? 1 : 0;
    }
  }
};

/* One thread 4 elements that share their blocks of words; the first may begin within one. Limited
   by the 10 rounds of Philox, then by bytes. */
template <class Kind>
static __global__ void __launch_bounds__(THREADS) fill(LT_CONSTANT job j) {
  typedef typename Kind::type T;
  uint64_t block = static_cast<uint64_t>(j.start / 4) + blockIdx.x * THREADS + threadIdx.x;
  int64_t first = static_cast<int64_t>(4 * block) - j.start; /* from -3 on */
  if (first >= j.it.numel) return;
  uint32_t w[4 * Kind::WORDS];
  T x[4] = {}, y[4];
  draw<Kind::WORDS>(j.rng_key, block, w);
  const lt_cuda_operand &to = j.it.o[1], &from = j.it.o[2];
  bool vectors = j.vectors && first + 4 <= j.it.numel;
  if (Kind::READS && vectors) lt_load_row<T, 4>(from.data, from.dtype, first, x);
  for (int k = 0; k < 4 && Kind::READS && !vectors; k++)
    if (first + k >= 0 && first + k < j.it.numel)
      x[k] = lt_load<T>(from.data, from.dtype,
                        lt_cuda_place(j.it, 2, static_cast<uint32_t>(first + k)));
  Kind::make(j, w, x, y);
  if (vectors) lt_store_row<T, 4>(to.data, to.dtype, first, y);
  for (int k = 0; k < 4 && !vectors; k++)
    if (first + k >= 0 && first + k < j.it.numel)
      lt_store<T>(to.data, to.dtype, lt_cuda_place(j.it, 1, static_cast<uint32_t>(first + k)),
                  y[k]);
}

typedef struct plan {
  lt_ctx *c;
  job *j;
  void (*kernel)(job);
} plan;

static bool on_16(const lt_cuda_operand &o) {
  return reinterpret_cast<uintptr_t>(o.data) % 16 == 0;
}

/* Pieces come in logical order. */
static bool run_piece(void *ud, const lt_cuda_iter *it) {
  plan *p = static_cast<plan *>(ud);
  p->j->it = *it;
  p->j->vectors = it->linear && p->j->start % 4 == 0 && on_16(it->o[1]) && on_16(it->o[2]);
  int64_t blocks = (p->j->start + it->numel + 3) / 4 - p->j->start / 4;
  unsigned grid = static_cast<unsigned>((blocks + THREADS - 1) / THREADS);
  bool ok = lt_cuda_grid(p->c, p->kernel, grid, THREADS, 0, *p->j);
  p->j->start += it->numel;
  return ok;
}

/* A view without memory, of row-major strides, keeps the dims in logical order. Elements are
   numbered in logical order whatever the strides: a mask of dropout is the same in backward, where
   the gradient may lie differently. */
static bool run(lt_ctx *c, const lt_call *call, job *j, void (*kernel)(job)) {
  lt_view v[3];
  if (!lt_cuda_view(c, call->out[0], &v[1]) ||
      !lt_cuda_view(c, call->n_in > 0 ? call->in[0] : nullptr, &v[2]))
    return false;
  v[0] = v[1];
  v[0].data = nullptr;
  int64_t n = 1;
  for (int d = v[0].ndim - 1; d >= 0; n *= v[0].size[d], d--) v[0].stride[d] = n;
  if (n == 0) return true;
  lt_cuda_walk w;
  plan p = {c, j, kernel};
  lt_cuda_walk_make(&w, &v[1], 3, v);
  return lt_cuda_pieces(&w, run_piece, &p);
}

static job job_of(lt_rng_key rng_key) {
  job j = {};
  j.rng_key = rng_key;
  return j;
}

static bool is_f64(lt_ctx *c, lt_tensor *t) {
  lt_view v;
  return lt_cuda_view(c, t, &v) && v.dtype == LT_F64;
}

LT_CUDA_KERNEL(rand) {
  job j = job_of(lt_cuda_args<lt_args_random>(call)->rng_key);
  return run(c, call, &j, is_f64(c, call->out[0]) ? fill<uniform_wide> : fill<uniform>);
}

LT_CUDA_KERNEL(randn) {
  job j = job_of(lt_cuda_args<lt_args_random>(call)->rng_key);
  return run(c, call, &j, is_f64(c, call->out[0]) ? fill<normal_wide> : fill<normal>);
}

LT_CUDA_KERNEL(randint) {
  const lt_args_random_int *a = lt_cuda_args<lt_args_random_int>(call);
  job j = job_of(a->rng_key);
  j.low = a->low;
  j.range = static_cast<uint64_t>(a->high) - static_cast<uint64_t>(a->low);
  return run(c, call, &j, j.range > 0xffffffffu ? fill<integer_wide> : fill<integer>);
}

LT_CUDA_KERNEL(bernoulli) {
  job j = job_of(lt_cuda_args<lt_args_bernoulli>(call)->rng_key);
  return lt_cuda_blame_of(c, call, &j.blame) && run(c, call, &j, fill<bernoulli>);
}

LT_CUDA_KERNEL(dropout) {
  const lt_args_dropout *a = lt_cuda_args<lt_args_dropout>(call);
  job j = job_of(a->rng_key);
  j.threshold = a->p < 1 ? static_cast<uint32_t>(a->p * 0x1p32) : 0;
  j.scale = a->p < 1 ? 1 / (1 - a->p) : 0;
  return run(c, call, &j, is_f64(c, call->in[0]) ? fill<drop<double>> : fill<drop<float>>);
}
