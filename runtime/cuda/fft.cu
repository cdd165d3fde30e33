/* runtime/cuda/fft.cu: Fourier transforms of lines, all real ones as complex ones.

   A power of 2 up to IN_SHARED is transformed in shared memory, a block a line (T. Stockham, 1966);
   another length up to BY_SUMS by the sums as they are written, a thread a result; longer lines run
   on the CPU.

   Sums of n terms for each of n results are n^2 operations, which BY_SUMS bounds; the CPU's FFT
   (cpu/fft.c) takes n log n for any length. */
#include "cuda/index.h"

enum { IN_SHARED = 1024, BY_SUMS = 4096, MOST_BLOCKS = 65535 };
enum { COMPLEX, REAL, REAL_INVERSE };

typedef struct job {
  const void *x;
  void *y;
  int64_t lines, x_line, y_line; /* numbers of a line */
  int shape;
  uint32_t n, results;
  bool inverse;
  double scale;
} job;

static __device__ inline void sin_cos(float x, float *s, float *c) { sincospif(x, s, c); }
static __device__ inline void sin_cos(double x, double *s, double *c) { sincospi(x, s, c); }

/* e^(-2 pi i k / n), its conjugate for an inverse. */
template <class T>
static __device__ inline void turn_of(const job &j, uint32_t k, uint32_t n, T *re, T *im) {
  sin_cos(T(2) * static_cast<T>(k) / static_cast<T>(n), im, re);
  if (!j.inverse) *im = -*im;
}

/* Number i of a line; behind its middle a half continues with conjugates. */
template <class T>
static __device__ inline void fetch(const job &j, const T *x, uint32_t i, T *re, T *im) {
  if (j.shape == REAL) {
    *re = x[i], *im = 0;
  } else if (j.shape == COMPLEX) {
    *re = x[2 * i], *im = x[2 * i + 1];
  } else {
    bool second = i > j.n / 2, real = i == 0 || 2 * i == j.n;
    const T *v = x + 2 * (second ? j.n - i : i);
    *re = v[0], *im = real ? T(0) : second ? -v[1] : v[1];
  }
}

template <class T>
static __device__ inline void give(const job &j, T *y, uint32_t i, T re, T im) {
  T scale = static_cast<T>(j.scale);
  if (j.shape == REAL_INVERSE) {
    y[i] = re * scale;
    return;
  }
  y[2 * i] = re * scale;
  y[2 * i + 1] = im * scale;
}

/* A block a line, a thread the butterflies of 2: bound by shared memory. Stockham's form sorts
   while it goes (autosort): no pass that reverses bits. Sines of pi times a fraction are exact at
   the corners. */
template <class T>
static __global__ void __launch_bounds__(LT_CUDA_THREADS) in_shared(LT_CONSTANT job j) {
  LT_DYNAMIC(T, scratch);
  for (int64_t line = blockIdx.x; line < j.lines; line += gridDim.x) {
    const T *x = static_cast<const T *>(j.x) + line * j.x_line;
    T *from = scratch, *to = scratch + 2 * j.n;
    for (uint32_t i = threadIdx.x; i < j.n; i += LT_CUDA_THREADS)
      fetch(j, x, i, from + 2 * i, from + 2 * i + 1);
    __syncthreads();
    for (uint32_t half = 1; half < j.n; half *= 2) { /* of transforms that are done */
      for (uint32_t k = threadIdx.x; k < j.n / 2; k += LT_CUDA_THREADS) {
        uint32_t at = k % half, out = 2 * (k - at) + at;
        T c, s;
        turn_of(j, at, 2 * half, &c, &s);
        const T *a = from + 2 * k, *b = from + 2 * (k + j.n / 2);
        T re = b[0] * c - b[1] * s, im = b[0] * s + b[1] * c;
        to[2 * out] = a[0] + re, to[2 * out + 1] = a[1] + im;
        to[2 * (out + half)] = a[0] - re, to[2 * (out + half) + 1] = a[1] - im;
      }
      T *done = from;
      from = to, to = done;
      __syncthreads();
    }
    T *y = static_cast<T *>(j.y) + line * j.y_line;
    for (uint32_t i = threadIdx.x; i < j.results; i += LT_CUDA_THREADS)
      give(j, y, i, from[2 * i], from[2 * i + 1]);
    __syncthreads();
  }
}

/* A thread a result: bound by sines. In double: an error of f32 would grow with the length. */
template <class T>
static __global__ void __launch_bounds__(LT_CUDA_THREADS) by_sums(LT_CONSTANT job j) {
  uint32_t k = blockIdx.y * LT_CUDA_THREADS + threadIdx.x;
  if (k >= j.results) return;
  for (int64_t line = blockIdx.x; line < j.lines; line += gridDim.x) {
    const T *x = static_cast<const T *>(j.x) + line * j.x_line;
    double re = 0, im = 0;
    for (uint32_t i = 0; i < j.n; i++) {
      T a, b, c, s;
      fetch(j, x, i, &a, &b);
      turn_of(j, i * k % j.n, j.n, &c, &s);
      re += a * c - b * s;
      im += a * s + b * c;
    }
    give(j, static_cast<T *>(j.y) + line * j.y_line, k, static_cast<T>(re), static_cast<T>(im));
  }
}

/* Two arrays of complex numbers in shared memory: 4 n values. IN_SHARED numbers of f64 in two
   arrays take 32 KB, within the 48 KB that every GPU allows. */
template <class T> static bool issue(lt_ctx *c, const job &j) {
  const int64_t most = MOST_BLOCKS;
  unsigned blocks = static_cast<unsigned>(j.lines < most ? j.lines : most);
  if ((j.n & (j.n - 1)) == 0 && j.n <= IN_SHARED)
    return lt_cuda_grid(c, in_shared<T>, blocks, LT_CUDA_THREADS, 4 * j.n * sizeof(T), j);
  unsigned parts = (j.results + LT_CUDA_THREADS - 1) / LT_CUDA_THREADS;
  return lt_cuda_grid(c, by_sums<T>, dim3(blocks, parts), LT_CUDA_THREADS, 0, j);
}

/* A real transform of n numbers has n / 2 + 1 results; the other half is their conjugates. */
static bool run(lt_ctx *c, const lt_call *call, int shape, int64_t n, bool inverse, double scale) {
  lt_view x, y, own_x, own_y;
  if (n > BY_SUMS) return lt_cuda_host->run_on_cpu(c, call);
  if (!lt_cuda_view(c, call->in[0], &x) || !lt_cuda_view(c, call->out[0], &y)) return false;
  if (lt_cuda_numel(&y) == 0) return true;
  if (!lt_cuda_row_major(c, &x, x.dtype, &own_x) || !lt_cuda_result(c, &y, y.dtype, &own_y))
    return false;
  job j = {};
  j.x = own_x.data, j.y = own_y.data;
  j.shape = shape, j.inverse = inverse, j.scale = scale;
  j.n = static_cast<uint32_t>(n);
  j.results = shape == REAL ? j.n / 2 + 1 : j.n;
  j.x_line = shape == COMPLEX ? 2 * n : shape == REAL ? n : 2 * (n / 2 + 1);
  j.y_line = shape == COMPLEX ? 2 * n : shape == REAL ? 2 * (n / 2 + 1) : n;
  j.lines = lt_cuda_numel(&x) / j.x_line;
  bool ok = x.dtype == LT_F64 ? issue<double>(c, j) : issue<float>(c, j);
  return ok && lt_cuda_deliver(c, &y, &own_y);
}

LT_CUDA_KERNEL(fft_complex) {
  const lt_args_fft_complex *a = lt_cuda_args<lt_args_fft_complex>(call);
  lt_view x;
  return lt_cuda_view(c, call->in[0], &x) &&
         run(c, call, COMPLEX, x.size[x.ndim - 2], a->inverse, a->scale);
}

LT_CUDA_KERNEL(fft_real) {
  const lt_args_fft_real *a = lt_cuda_args<lt_args_fft_real>(call);
  lt_view x;
  return lt_cuda_view(c, call->in[0], &x) &&
         run(c, call, REAL, x.size[x.ndim - 1], false, a->scale);
}

LT_CUDA_KERNEL(fft_real_inverse) {
  const lt_args_fft_real_inverse *a = lt_cuda_args<lt_args_fft_real_inverse>(call);
  return run(c, call, REAL_INVERSE, a->n, true, a->scale);
}
