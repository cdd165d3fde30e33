/* runtime/cuda/topk.cu: the k largest or smallest of each line, in order.

   A value becomes a key, an unsigned number in the same order: -0 has that of 0, every NaN the
   highest; for the largest first its bits are turned. Keys are sorted with their positions, which
   keeps equal ones in their order, and values are fetched from where the first k stood. */
#include "cuda/index.h"
#include "cuda/radix.h"

/* Bits of the keys of a dtype. */
static int bits_of(int dtype) { return static_cast<int>(lt_cuda_item_size(dtype)) * 8; }

/* The bits of a floating number, in order. */
template <class K> static __device__ inline K float_key(K bits, bool zero, bool nan) {
  const K sign = static_cast<K>(1) << (sizeof(K) * 8 - 1);
  if (nan) return static_cast<K>(~static_cast<K>(0));
  if (zero) return sign;
  return static_cast<K>((bits & sign) != 0 ? ~bits : bits | sign);
}

template <class K> static __device__ inline K key_of(const void *x, int dtype, int64_t i);
template <> __device__ inline uint32_t key_of<uint32_t>(const void *x, int dtype, int64_t i) {
  switch (dtype) {
    case LT_F32: {
      float v = static_cast<const float *>(x)[i];
      return float_key<uint32_t>(static_cast<const uint32_t *>(x)[i], v == 0, v != v);
    }
    case LT_F16:
    case LT_BF16: {
      uint16_t bits = static_cast<const uint16_t *>(x)[i];
      float v = lt_of_half(dtype, bits);
      return float_key<uint16_t>(bits, v == 0, v != v);
    }
    case LT_I32: return static_cast<const uint32_t *>(x)[i] ^ 1u << 31;
    case LT_I16: return static_cast<const uint16_t *>(x)[i] ^ 1u << 15;
    case LT_U16: return static_cast<const uint16_t *>(x)[i];
    default: return static_cast<const uint8_t *>(x)[i];
  }
}
template <> __device__ inline uint64_t key_of<uint64_t>(const void *x, int dtype, int64_t i) {
  uint64_t bits = static_cast<const uint64_t *>(x)[i];
  double v = static_cast<const double *>(x)[i];
  return dtype == LT_F64 ? float_key<uint64_t>(bits, v == 0, v != v) : bits ^ 1ull << 63;
}

/* One thread 4 elements; bytes limit it. */
template <class K>
static __global__ void make_keys(const void *x, int dtype, int64_t n, K turn, K *key) {
  int64_t first = static_cast<int64_t>(blockIdx.x) * (4 * LT_CUDA_THREADS) + threadIdx.x;
#pragma unroll
  for (int r = 0; r < 4; r++) {
    int64_t i = first + r * LT_CUDA_THREADS;
    if (i < n) key[i] = key_of<K>(x, dtype, i) ^ turn;
  }
}

typedef struct job {
  const char *x;
  char *value;
  int64_t *index;
  const uint32_t *order; /* [lines, n] */
  int64_t n, all;        /* all: lines k */
  uint32_t k;
  int item;
} job;

/* One thread an element of the result. */
static __global__ void fetch(job j) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * LT_CUDA_THREADS + threadIdx.x;
  if (i >= j.all) return;
  int64_t line = i / j.k, at = j.order[line * j.n + (i - line * j.k)];
  j.index[i] = at;
  lt_store_bits(j.value, i, j.item, lt_load_bits(j.x, line * j.n + at, j.item));
}

template <class K>
static bool sort_keys(lt_ctx *c, const lt_view *x, int64_t lines, int64_t n, bool largest, job *j) {
  int bits = bits_of(x->dtype);
  K turn = largest ? static_cast<K>(~static_cast<K>(0)) >> (sizeof(K) * 8 - bits) : 0;
  K *key = lt_cuda_scratch<K>(c, lines * n);
  lt_cuda_sorted<K> sorted;
  const void *from = x->data;
  int dtype = x->dtype;
  unsigned blocks = static_cast<unsigned>((lines * n + 4 * LT_CUDA_THREADS - 1) /
                                          (4 * LT_CUDA_THREADS));
  if (key == nullptr ||
      !lt_cuda_grid(c, make_keys<K>, blocks, LT_CUDA_THREADS, 0, from, dtype, lines * n, turn, key))
    return false;
  if (!lt_cuda_sort(c, key, lines, n, bits, &sorted)) return false;
  j->order = sorted.index;
  return true;
}

/* A view with `dim` as its last one. */
static bool view_dim_last(lt_ctx *c, lt_tensor *t, int64_t dim, lt_view *out) {
  lt_view v;
  if (!lt_cuda_view_dims(c, t, &v)) return false;
  *out = v;
  int n = 0;
  for (int d = 0; d < v.ndim; d++)
    if (d != dim) out->size[n] = v.size[d], out->stride[n++] = v.stride[d];
  out->size[n] = v.size[dim];
  out->stride[n] = v.stride[dim];
  return true;
}

LT_CUDA_KERNEL(topk) {
  const lt_args_topk *a = lt_cuda_args<lt_args_topk>(call);
  lt_view x, value, index, from, best, place;
  if (!view_dim_last(c, call->in[0], a->dim, &x) ||
      !view_dim_last(c, call->out[0], a->dim, &value) ||
      !view_dim_last(c, call->out[1], a->dim, &index))
    return false;
  int64_t all = lt_cuda_numel(&value), n = x.size[x.ndim - 1], lines = all / (a->k > 0 ? a->k : 1);
  if (all == 0) return true;
  if (!lt_cuda_row_major(c, &x, x.dtype, &from) || !lt_cuda_result(c, &value, x.dtype, &best) ||
      !lt_cuda_result(c, &index, LT_I64, &place))
    return false;
  job j = {static_cast<const char *>(from.data), static_cast<char *>(best.data),
           static_cast<int64_t *>(place.data), nullptr, n, all, static_cast<uint32_t>(a->k),
           static_cast<int>(lt_cuda_item_size(x.dtype))};
  bool ok = bits_of(x.dtype) == 64 ? sort_keys<uint64_t>(c, &from, lines, n, a->largest, &j)
                                   : sort_keys<uint32_t>(c, &from, lines, n, a->largest, &j);
  return ok && lt_cuda_grid(c, fetch, lt_cuda_blocks(all), LT_CUDA_THREADS, 0, j) &&
         lt_cuda_deliver(c, &value, &best) && lt_cuda_deliver(c, &index, &place);
}
