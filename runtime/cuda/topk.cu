/* runtime/cuda/topk.cu: the k largest or smallest of each line, in order.

   A value becomes a key, an unsigned number in the same order: -0 has that of 0, every NaN the
   highest; for the largest first its bits are turned. Keys are sorted with their positions, which
   keeps equal ones in their order, and values are fetched from where the first k stood. Of many
   long lines a block each finds the k-th key digit by digit; only what comes up to it is sorted.

   The choice by digits is radix select: the histogram of the highest 8 bits shows in which bin the
   k-th key is, and only that bin is looked at for the next 8 (T. Alabi and others, "Fast
   k-selection algorithms for graphics processing units", 2012). After four rounds the k-th of
   32-bit keys is known, whatever their values. */
#include "cuda/index.h"
#include "cuda/radix.h"

/* Bits of the keys of a dtype. */
static int bits_of(int dtype) { return static_cast<int>(lt_cuda_item_size(dtype)) * 8; }

/* The bits of a floating number, in order. IEEE's bits are in order as sign and magnitude: of
   negative numbers all bits are turned, of others the sign. */
template <class K> static __device__ inline K float_key(K bits, bool zero, bool nan) {
  const K sign = static_cast<K>(1) << (sizeof(K) * 8 - 1);
  if (nan) return static_cast<K>(~static_cast<K>(0));
  if (zero) return sign;
  return static_cast<K>((bits & sign) != 0 ? ~bits : bits | sign);
}

/* Signed integers become unsigned ones in the same order by turning their highest bit. */
template <class K> static __device__ inline K key_of(const void *x, int dtype, int64_t i);
template <> __device__ inline uint32_t key_of<uint32_t>(const void *x, int dtype, int64_t i) {
  switch (static_cast<lt_dtype>(dtype)) {
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
    case LT_I8: return static_cast<const uint8_t *>(x)[i] ^ 1u << 7;
    case LT_U8:
    case LT_BOOL: return static_cast<const uint8_t *>(x)[i];
    case LT_F64: /* of 64 bits: below */
    case LT_I64:
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: break;
  }
  return 0;
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
  const uint32_t *order; /* [lines, length] */
  const uint32_t *chosen; /* [lines, length]: where what was sorted stood; null: there */
  int64_t n, length, all; /* all: lines k */
  uint32_t k;
  int item;
} job;

/* One thread an element of the result. Values are fetched, not rebuilt from keys: -0 and the
   payload of a NaN come back as they were. */
static __global__ void fetch(job j) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * LT_CUDA_THREADS + threadIdx.x;
  if (i >= j.all) return;
  int64_t line = i / j.k, at = j.order[line * j.length + (i - line * j.k)];
  if (j.chosen != nullptr) at = j.chosen[line * j.length + at];
  j.index[i] = at;
  lt_store_bits(j.value, i, j.item, lt_load_bits(j.x, line * j.n + at, j.item));
}

/* One block a line: the first k keys and where they stood, in the order of their places. The k-th
   key is found by counting digits, the highest first. Bytes limit it: each digit reads the line. */
template <class K>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, 4)
    choose(const void *x, int dtype, uint32_t n, uint32_t k, int bits, K turn, K *key,
           uint32_t *chosen) {
  LT_SHARED(uint32_t, count, LT_CUDA_THREADS);
  LT_SHARED(uint32_t, scratch, 8);
  LT_SHARED(uint32_t, found, 2);
  int64_t line = blockIdx.x;
  uint32_t left = k, all, t = threadIdx.x; /* left: of those that share the digits so far */
  K last = 0, known = 0;
  for (int shift = bits - 8; shift >= 0; shift -= 8) {
    count[t] = 0;
    __syncthreads();
#pragma unroll 4
    for (uint32_t i = t; i < n; i += LT_CUDA_THREADS) {
      K own = key_of<K>(x, dtype, line * n + i) ^ turn;
      if ((own & known) == last) atomicAdd(&count[own >> shift & 255], 1u);
    }
    __syncthreads();
    uint32_t own = count[t], before = lt_block_before(own, scratch, &all);
    if (before < left && left <= before + own) found[0] = t, found[1] = before;
    __syncthreads();
    last |= static_cast<K>(found[0]) << shift;
    known |= static_cast<K>(255) << shift;
    left -= found[1];
    __syncthreads();
  }
  uint32_t less = 0, equal = 0; /* before these, in the line */
  for (uint32_t first = 0; first < n; first += LT_CUDA_THREADS) {
    uint32_t i = first + t;
    K own = i < n ? key_of<K>(x, dtype, line * n + i) ^ turn : 0;
    bool is_less = i < n && own < last, is_equal = i < n && own == last;
    uint32_t both = (is_less ? 1u : 0) | (is_equal ? 1u << 16 : 0);
    uint32_t before = lt_block_before(both, scratch, &all);
    uint32_t equals = equal + (before >> 16), at = less + (before & 0xffffu);
    if (is_less || (is_equal && equals < left)) {
      at += equals < left ? equals : left;
      key[line * k + at] = own;
      chosen[line * k + at] = i;
    }
    less += all & 0xffffu;
    equal += all >> 16;
  }
}

/* Where choosing pays: what is chosen must be sorted by one block, and there must be lines enough
   to occupy the GPU with a block each. */
enum { MOST_CHOSEN = 2048, LEAST_LINES = 16 };

/* What of each line is sorted: all, or the first k. */
template <class K>
static bool sort_keys(lt_ctx *c, const lt_view *x, int64_t lines, bool largest, job *j) {
  const void *from = x->data;
  int dtype = x->dtype, bits = bits_of(dtype);
  K turn = largest ? static_cast<K>(~static_cast<K>(0)) >> (sizeof(K) * 8 - bits) : 0;
  bool few = j->n > MOST_CHOSEN && j->n <= INT32_MAX && j->k <= MOST_CHOSEN &&
             j->k <= j->n / 4 && lines >= LEAST_LINES && lines <= INT32_MAX;
  j->length = few ? j->k : j->n;
  int64_t n = lines * j->length;
  K *key = lt_cuda_scratch<K>(c, n);
  uint32_t *chosen = few ? lt_cuda_scratch<uint32_t>(c, n) : nullptr;
  lt_cuda_sorted<K> sorted;
  if (key == nullptr || (few && chosen == nullptr)) return false;
  bool ok;
  if (few)
    ok = lt_cuda_grid(c, choose<K>, static_cast<unsigned>(lines), LT_CUDA_THREADS, 0, from, dtype,
                      static_cast<uint32_t>(j->n), j->k, bits, turn, key, chosen);
  else
    ok = lt_cuda_grid(c, make_keys<K>, lt_cuda_blocks((n + 3) / 4), LT_CUDA_THREADS, 0, from, dtype,
                      n, turn, key);
  if (!ok || !lt_cuda_sort(c, key, lines, j->length, bits, &sorted)) return false;
  j->order = sorted.index;
  j->chosen = chosen;
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

/* Row-major lines are needed for sorting; the results are made so and moved where they belong. */
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
           static_cast<int64_t *>(place.data), nullptr, nullptr, n, n, all,
           static_cast<uint32_t>(a->k), static_cast<int>(lt_cuda_item_size(x.dtype))};
  bool ok = bits_of(x.dtype) == 64 ? sort_keys<uint64_t>(c, &from, lines, a->largest, &j)
                                   : sort_keys<uint32_t>(c, &from, lines, a->largest, &j);
  return ok && lt_cuda_grid(c, fetch, lt_cuda_blocks(all), LT_CUDA_THREADS, 0, j) &&
         lt_cuda_deliver(c, &value, &best) && lt_cuda_deliver(c, &index, &place);
}
