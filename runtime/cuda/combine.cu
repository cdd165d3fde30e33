/* runtime/cuda/combine.cu: reductions between ranks, elementwise and in place, as cpu/combine.c.

   For collectives of ranks that share memory: `a` and `b` may be any two of dst and peers, read and
   written element by element. 16-bit values are added in f32 and rounded after each rank, as on the
   CPU, so that both give the same bits. */
#include "cuda/device.h"
#include "cuda/tile.h"

enum { THREADS = 256 };
static const int64_t MOST_BLOCKS = 4096;

/* Of bools, 0 or 1: min and prod are "and", max and sum "or". */
template <class T>
static __device__ inline T join(lt_comm_reduce reduce, bool is_bool, T x, T y) {
  switch (reduce) {
    case LT_COMM_SUM:
    case LT_COMM_MEAN: return is_bool ? (x > y ? x : y) : x + y;
    case LT_COMM_MIN: return x < y || x != x ? x : y;
    case LT_COMM_MAX: return x > y || x != x ? x : y;
    case LT_COMM_PROD: return x * y;
    case LT_COMM_REDUCE_COUNT:
    case LT_COMM_NO_REDUCE: break;
  }
  return x;
}
/* Integers wrap. */
template <>
__device__ inline int64_t join(lt_comm_reduce reduce, bool is_bool, int64_t x, int64_t y) {
  uint64_t a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
  switch (reduce) {
    case LT_COMM_SUM:
    case LT_COMM_MEAN: return is_bool ? x | y : static_cast<int64_t>(a + b);
    case LT_COMM_MIN: return x < y ? x : y;
    case LT_COMM_MAX: return x > y ? x : y;
    case LT_COMM_PROD: return static_cast<int64_t>(a * b);
    case LT_COMM_REDUCE_COUNT:
    case LT_COMM_NO_REDUCE: break;
  }
  return x;
}

/* Elements beyond 2^31 come in pieces, each with its own start. */
template <class T>
static __global__ void combine(char *dst, const char *a, const char *b, uint32_t n, int dtype,
                               lt_comm_reduce reduce) {
  for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
    lt_store<T>(dst, dtype, i, join<T>(reduce, dtype == LT_BOOL, lt_load<T>(a, dtype, i),
                                       lt_load<T>(b, dtype, i)));
}

/* A mean divides by the number of ranks, exactly rounded; a multiplication by 1 / n would not be
   for all n. */
template <class T>
static __global__ void scale(char *data, uint32_t n, int dtype, T by, bool divides) {
  for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
    T x = lt_load<T>(data, dtype, i);
    lt_store<T>(data, dtype, i, divides ? x / by : x * by);
  }
}

/* Each thread takes several elements beyond MOST_BLOCKS (a grid-stride loop), as the start of a
   block is not free. */
static unsigned blocks_of(int64_t n) {
  int64_t blocks = (n + THREADS - 1) / THREADS;
  return static_cast<unsigned>(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

/* What issues outside of `launch`: the same thread state, for lt_cuda_grid. */
static bool enter(lt_ctx *c, int index, lt_stream *stream, lt_cuda_launch_state *before) {
  if (!lt_cuda_use(c, index)) return false;
  *before = lt_cuda_now;
  lt_cuda_now = {c, index, static_cast<cudaStream_t>(lt_cuda_stream_native(stream)), "all_reduce"};
  return true;
}

/* The position of the stream moves on, so that an event recorded now stands for this work. */
static bool leave(lt_stream *stream, const lt_cuda_launch_state *before, bool ok) {
  lt_cuda_stream_issued(stream);
  lt_cuda_now = *before;
  return ok;
}

static const int64_t PIECE = 1 << 30;

/* dst = a joined with b, of n elements; asynchronous, on `stream`. */
bool lt_cuda_combine(lt_ctx *c, int index, lt_stream *stream, void *dst, const void *a,
                     const void *b, int64_t n, lt_dtype dtype, lt_comm_reduce reduce) {
  lt_cuda_launch_state before;
  bool ok = enter(c, index, stream, &before);
  if (!ok) return false;
  int64_t item = lt_cuda_item_size(dtype);
  int compute = lt_cuda_compute(dtype);
  auto kernel = compute == LT_CUDA_F32   ? combine<float>
                : compute == LT_CUDA_F64 ? combine<double>
                                         : combine<int64_t>;
  for (int64_t at = 0; at < n && ok; at += PIECE) {
    int64_t part = n - at < PIECE ? n - at : PIECE;
    ok = lt_cuda_grid(c, kernel, blocks_of(part), THREADS, 0, static_cast<char *>(dst) + at * item,
                      static_cast<const char *>(a) + at * item,
                      static_cast<const char *>(b) + at * item, static_cast<uint32_t>(part),
                      static_cast<int>(dtype), reduce);
  }
  return leave(stream, &before, ok);
}

static bool multiply(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n, lt_dtype dtype,
                     double by, bool divides) {
  lt_cuda_launch_state before;
  bool ok = enter(c, index, stream, &before);
  if (!ok) return false;
  for (int64_t at = 0; at < n && ok; at += PIECE) {
    uint32_t part = static_cast<uint32_t>(n - at < PIECE ? n - at : PIECE);
    char *from = static_cast<char *>(data) + at * lt_cuda_item_size(dtype);
    int d = dtype;
    if (lt_cuda_compute(dtype) == LT_CUDA_F64)
      ok = lt_cuda_grid(c, scale<double>, blocks_of(part), THREADS, 0, from, part, d, by, divides);
    if (lt_cuda_compute(dtype) == LT_CUDA_F32)
      ok = lt_cuda_grid(c, scale<float>, blocks_of(part), THREADS, 0, from, part, d,
                        static_cast<float>(by), divides);
  }
  return leave(stream, &before, ok);
}

bool lt_cuda_divide(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n, lt_dtype dtype,
                    int by) {
  return multiply(c, index, stream, data, n, dtype, by, true);
}

bool lt_cuda_scale(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n, lt_dtype dtype,
                   double by) {
  return multiply(c, index, stream, data, n, dtype, by, false);
}
