/* runtime/cuda/gemm_tiled.cu: matrix products that cuBLASLt does not take: any dtypes and strides.

   A block makes a tile of 64 x 64 of D by 16 x 16 threads of 4 x 4 elements each, 16 terms at a
   time in shared memory. Limited by operations: for f64 and integers, of which there is little to
   do in training. Terms are summed in their order.

   Blocking for shared memory and registers as in V. Volkov and J. Demmel, Benchmarking GPUs to
   Tune Dense Linear Algebra, 2008. */
#include "cuda/gemm.h"
#include "cuda/tile.h"

enum { SIDE = 64, TERMS = 16, LANES = 16, EACH = SIDE / LANES, THREADS = LANES * LANES };
/* Shared memory has 32 banks of 4 bytes: with rows of exactly SIDE elements the threads that store
   one term of neighbouring outers would all meet in one bank. */
enum { PAD = SIDE + 1, LOADS = SIDE * TERMS / THREADS }; /* PAD: columns lie in different banks */
static const int64_t MOST_STACKED = 65535; /* blocks in z */

typedef struct job {
  lt_cuda_product p;
  int64_t tiles_n, products;
  int item_a, item_b, item_d; /* bytes of an element */
} job;

template <class T> struct own_dtype { enum { id = LT_I64 }; };
template <> struct own_dtype<float> { enum { id = LT_F32 }; };
template <> struct own_dtype<double> { enum { id = LT_F64 }; };

/* float and double: the compiler fuses this into one rounding. Integers wrap, through unsigned. */
static __device__ inline float add_product(float sum, float a, float b) { return sum + a * b; }
static __device__ inline double add_product(double sum, double a, double b) { return sum + a * b; }
static __device__ inline int64_t add_product(int64_t sum, int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(sum) +
                              static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/* Elements that a product of the stack is behind the first. */
static __device__ inline int64_t stacked_at(const lt_cuda_product &p, const lt_cuda_matrix &m,
                                            int64_t number) {
  int64_t at = 0;
  for (int i = p.n_batch - 1; i >= 0; i--) {
    at += number % p.batch[i] * m.batch[i];
    number /= p.batch[i];
  }
  return at;
}

/* Which part of a tile [outer, TERMS] of an operand a thread loads: neighbouring threads read
   neighbours in memory. `across`, `along`: bytes between outers and between terms. The same loop
   serves A and B, transposed or not: 16 terms of 64 outers are 1024 elements, LOADS a thread. */
typedef struct walk {
  const char *at; /* of the first term */
  int64_t along, step, outers;
  int term, outer, next_term, next_outer;
} walk;

static __device__ inline walk walk_of(const char *data, int64_t across, int64_t along,
                                      int64_t first, int64_t outers) {
  walk w;
  int n = static_cast<int>(threadIdx.x);
  bool terms_first = along <= across;
  w.term = terms_first ? n % TERMS : n / SIDE, w.next_term = terms_first ? 0 : THREADS / SIDE;
  w.outer = terms_first ? n / TERMS : n % SIDE, w.next_outer = terms_first ? THREADS / TERMS : 0;
  w.outers = outers - first;
  w.along = along;
  w.step = w.next_outer * across + w.next_term * along;
  w.at = data + (first + w.outer) * across + w.term * along;
  return w;
}

/* The tile of `terms` terms from `term` on into scratch[term][outer]; what is outside is 0. The
   path without conversion is unrolled, so that its loads are in flight together. */
template <class T>
static __device__ inline void load_tile(const walk &w, int dtype, int64_t term, int64_t terms,
                                        T *scratch) {
  const char *at = w.at + term * w.along;
  if (dtype == own_dtype<T>::id) {
#pragma unroll
    for (int e = 0; e < LOADS; e++) {
      int k = w.term + e * w.next_term, o = w.outer + e * w.next_outer;
      bool inside = o < w.outers && k < terms - term;
      scratch[k * PAD + o] = inside ? *reinterpret_cast<const T *>(at + e * w.step) : T();
    }
    return;
  }
#pragma unroll 1
  for (int e = 0; e < LOADS; e++) {
    int k = w.term + e * w.next_term, o = w.outer + e * w.next_outer;
    bool inside = o < w.outers && k < terms - term;
    scratch[k * PAD + o] = inside ? lt_load<T>(at + e * w.step, dtype, 0) : T();
  }
}

/* One element of the result from its sum. */
template <class T>
static __device__ inline void store_sum(const job &j, char *d, int64_t row, int64_t col, T sum) {
  const lt_cuda_product &p = j.p;
  if (row >= p.m || col >= p.n) return;
  char *at = d + (row * p.d.row + col * p.d.col) * j.item_d;
  T v = p.alpha == 1 ? sum : static_cast<T>(p.alpha) * sum;
  if (p.beta != 0) v = add_product(v, static_cast<T>(p.beta), lt_load<T>(at, p.d.dtype, 0));
  if (p.bias != nullptr)
    v = add_product(v, static_cast<T>(1),
                    lt_load<T>(static_cast<const char *>(p.bias) + col * j.item_d, p.d.dtype, 0));
  lt_store<T>(at, p.d.dtype, 0, v);
}

/* Rows of a tile go by shared memory, LANES at a time, so that the code is there once. */
template <class T>
static __device__ inline void store_tile(const job &j, const T (&sum)[EACH][EACH], char *d,
                                         int64_t row, int64_t col, int ty, int tx, T *scratch) {
#pragma unroll 1
  for (int i = 0; i < EACH; i++) {
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int f = 0; f < EACH; f++)
        if (e == i) scratch[ty * SIDE + tx + f * LANES] = sum[e][f];
    __syncthreads();
#pragma unroll 1
    for (int n = static_cast<int>(threadIdx.x); n < LANES * SIDE; n += THREADS)
      store_sum(j, d, row + i * LANES + n / SIDE, col + n % SIDE, scratch[n]);
    __syncthreads();
  }
}

/* Block x: a tile; z: the products of the stack, in strides. Each element is read SIDE times less
   often from memory than in the textbook's loop; sums stay in registers, terms in order. */
template <class T>
static __global__ void __launch_bounds__(THREADS, 2) tiled(LT_CONSTANT job j) {
  LT_SHARED(T, a_tile, TERMS * PAD);
  LT_SHARED(T, b_tile, TERMS * PAD);
  const lt_cuda_product &p = j.p;
  int ty = static_cast<int>(threadIdx.x) / LANES, tx = static_cast<int>(threadIdx.x) % LANES;
  int64_t row = blockIdx.x / j.tiles_n * SIDE, col = blockIdx.x % j.tiles_n * SIDE;
  for (int64_t number = blockIdx.z; number < j.products; number += gridDim.z) {
    const char *a = static_cast<char *>(p.a.data) + stacked_at(p, p.a, number) * j.item_a;
    const char *b = static_cast<char *>(p.b.data) + stacked_at(p, p.b, number) * j.item_b;
    walk at_a = walk_of(a, p.a.row * j.item_a, p.a.col * j.item_a, row, p.m);
    walk at_b = walk_of(b, p.b.col * j.item_b, p.b.row * j.item_b, col, p.n);
    T sum[EACH][EACH] = {};
    for (int64_t term = 0; term < p.k; term += TERMS) {
      load_tile(at_a, p.a.dtype, term, p.k, a_tile);
      load_tile(at_b, p.b.dtype, term, p.k, b_tile);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < TERMS; k++) {
        T x[EACH], y[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          x[e] = a_tile[k * PAD + ty + e * LANES];
          y[e] = b_tile[k * PAD + tx + e * LANES];
        }
#pragma unroll
        for (int e = 0; e < EACH; e++)
#pragma unroll
          for (int f = 0; f < EACH; f++) sum[e][f] = add_product(sum[e][f], x[e], y[f]);
      }
      __syncthreads();
    }
    char *d = static_cast<char *>(p.d.data) + stacked_at(p, p.d, number) * j.item_d;
    store_tile(j, sum, d, row, col, ty, tx, a_tile);
  }
}

static int item(int dtype) { return static_cast<int>(lt_cuda_item_size(dtype)); }

/* Operands may differ in dtype (f16 by f64): the wider compute type is that of the sums. */
bool lt_cuda_gemm_tiled(lt_ctx *c, const lt_cuda_product *p) {
  job j = {};
  j.p = *p;
  j.item_a = item(p->a.dtype), j.item_b = item(p->b.dtype), j.item_d = item(p->d.dtype);
  j.products = 1;
  for (int i = 0; i < p->n_batch; i++) j.products *= p->batch[i];
  j.tiles_n = (p->n + SIDE - 1) / SIDE;
  int64_t tiles = (p->m + SIDE - 1) / SIDE * j.tiles_n;
  if (tiles > INT32_MAX)
    return lt_cuda_fail(c, LT_ESHAPE, "%s: a product of %lld x %lld is too large", lt_cuda_now.op,
                        static_cast<long long>(p->m), static_cast<long long>(p->n));
  int64_t stacked = j.products < MOST_STACKED ? j.products : MOST_STACKED;
  dim3 grid(static_cast<unsigned>(tiles), 1, static_cast<unsigned>(stacked));
  int a = lt_cuda_compute(p->a.dtype), b = lt_cuda_compute(p->b.dtype);
  int compute = a == LT_CUDA_F64 || b == LT_CUDA_F64   ? LT_CUDA_F64
                : a == LT_CUDA_F32 || b == LT_CUDA_F32 ? LT_CUDA_F32
                                                       : LT_CUDA_I64;
  if (compute == LT_CUDA_F64) return lt_cuda_grid(c, tiled<double>, grid, THREADS, 0, j);
  if (compute == LT_CUDA_F32) return lt_cuda_grid(c, tiled<float>, grid, THREADS, 0, j);
  return lt_cuda_grid(c, tiled<int64_t>, grid, THREADS, 0, j);
}
