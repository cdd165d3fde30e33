/* runtime/cuda/attention_rows.cu: what attention does with rows of scores between its products.

   A row is a team's work: a warp, or a block where rows are long (reduce.h). Threads take
   neighbours in fours. Limited by bytes; scores are read twice, the second time from a cache.

   softmax_rows: the largest score is subtracted before e^x, so that nothing overflows; p stays
   unnormalised, and its sum divides the result of the product with v (finish_rows), E values a row
   in place of S. The largest and the sum of each row are kept for backward, which computes p again
   from the scores and keeps no T x S matrix. */
#include "cuda/attention.h"
#include "cuda/reduce.h"
#include "cuda/tile.h"

#include <math.h>

enum { THREADS = 256, FOUR = 4 };

/* e^x for x <= 0; what is far below counts as 0. NaN passes. */
static __device__ inline float exp_down(float x) {
  float y = lt_exp_mid_f32(x < -87.0f ? -87.0f : x);
  return x < -87.0f ? 0.0f : y;
}
static __device__ inline double exp_down(double x) { return lt_exp_f64(x); }

/* A row of a tile. */
typedef struct row_place {
  int64_t at, batch, head, t; /* at: of the row in the tile */
  int64_t number;             /* of [B, H, T] */
  int seen;                   /* keys that the query sees: less than 2^31 */
  int64_t first;              /* element of [B, H, T, S] */
  int64_t drawn;              /* the same with H = all_heads */
  int shift;                  /* of that in its four: dropout has a word for each of those */
} row_place;

/* Fours begin at a multiple of 4 of [B, all heads, T, S]: Philox gives four words a block, and an
   element's word must be the same whatever the tile or the team (`shift`). */
static __device__ inline row_place place_of(const lt_cuda_tile &j, int64_t row) {
  row_place r;
  int64_t in_tile = row % j.rows, head = row / j.rows; /* head: of units * group */
  r.at = head * j.full_rows + in_tile;
  int64_t all = j.first_unit * j.group + head; /* of B * H */
  r.batch = all / j.heads, r.head = all % j.heads;
  r.t = j.t0 + in_tile;
  r.number = all * j.t + r.t;
  r.seen = static_cast<int>(j.causal && r.t + 1 < j.n ? r.t + 1 : j.n);
  r.first = r.number * j.s;
  r.drawn = ((r.batch * j.all_heads + j.first_head + r.head) * j.t + r.t) * j.s;
  r.shift = j.drops ? static_cast<int>(r.drawn % FOUR) : 0;
  return r;
}

/* Of floats and bools. */
static __device__ inline int item_of(int dtype) {
  return dtype == LT_F64 ? 8 : dtype == LT_F32 ? 4 : dtype == LT_BOOL ? 1 : 2;
}

/* Four elements within the row, on an address where one access takes them all. */
static __device__ inline bool is_whole(const void *at, int item, int s, int n) {
  return s >= 0 && s + FOUR <= n && reinterpret_cast<uintptr_t>(at) % (FOUR * item) == 0;
}

template <class T>
static __device__ inline void store_one(void *data, int dtype, int64_t at, T v) {
  if (dtype == LT_F32)
    static_cast<float *>(data)[at] = static_cast<float>(v);
  else if (dtype == LT_F64)
    static_cast<double *>(data)[at] = v;
  else
    static_cast<uint16_t *>(data)[at] =
        static_cast<uint16_t>(lt_to_half(dtype, static_cast<float>(v)));
}

/* Elements s..s+3 of a row of scores; those outside of 0..n-1 are `otherwise`. f64 goes one by one:
   four are 32 bytes, two accesses in any case. */
template <class T>
static __device__ inline void load_four(const T *row, int s, int n, T otherwise, T *v) {
  if (sizeof(T) == 4 && is_whole(row + s, sizeof(T), s, n)) {
    float4 f = *reinterpret_cast<const float4 *>(row + s);
    v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
    return;
  }
#pragma unroll
  for (int k = 0; k < FOUR; k++) v[k] = s + k >= 0 && s + k < n ? row[s + k] : otherwise;
}

/* The same to a row of floats, from its element `row_at` on. */
template <class T>
static __device__ inline void store_four(void *data, int dtype, int64_t row_at, int s, int n,
                                         const T *v) {
  int item = item_of(dtype);
  char *at = static_cast<char *>(data) + (row_at + s) * item;
  if (item < 8 && is_whole(at, item, s, n)) {
    float f[FOUR] = {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2]),
                     static_cast<float>(v[3])};
    if (dtype == LT_F32)
      *reinterpret_cast<float4 *>(at) = float4{f[0], f[1], f[2], f[3]};
    else
      *reinterpret_cast<uint2 *>(at) =
          uint2{lt_to_half(dtype, f[0]) | lt_to_half(dtype, f[1]) << 16,
                lt_to_half(dtype, f[2]) | lt_to_half(dtype, f[3]) << 16};
    return;
  }
#pragma unroll
  for (int k = 0; k < FOUR; k++)
    if (s + k >= 0 && s + k < n) store_one(at, dtype, k, v[k]);
}

/* Adds what the mask says; keys that are not seen stay at -infinity. */
template <class T>
static __device__ inline void add_mask(const lt_cuda_tile &j, const row_place &r, int s, T *v) {
  int64_t row = r.batch * j.mask_stride[0] + r.head * j.mask_stride[1] + r.t * j.mask_stride[2];
#pragma unroll
  for (int k = 0; k < FOUR; k++) {
    if (s + k < 0 || s + k >= r.seen) continue;
    T m = lt_attention_load<T>(j.mask, j.mask_dtype, row + (s + k) * j.mask_stride[3]);
    v[k] = j.mask_dtype != LT_BOOL ? v[k] + m : m != 0 ? v[k] : -static_cast<T>(INFINITY);
  }
}

template <class T>
static __device__ inline void load_scores(const lt_cuda_tile &j, const row_place &r, int s,
                                          T *v) {
  const T *row = static_cast<const T *>(j.scores) + r.at * j.ld;
  load_four(row, s, r.seen, -static_cast<T>(INFINITY), v);
  if (j.mask != nullptr) add_mask(j, r, s, v);
}

/* Which of four elements dropout keeps, as bits. The same bits in forward and backward, from the
   key: no mask is stored. */
static __device__ inline unsigned kept_of(const lt_cuda_tile &j, const row_place &r, int s) {
  if (!j.drops) return 15;
  if (j.keep == 0) return 0;
  lt_random4 w = lt_philox(j.rng_key, static_cast<uint64_t>((r.drawn + s) / FOUR));
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < FOUR; k++) bits |= (w.word[k] >= j.threshold ? 1u : 0u) << k;
  return bits;
}

/* Rows without keys that take part become 0, unless they hold NaN. */
template <class T>
static __device__ inline void close_row(const lt_cuda_tile &j, const row_place &r, int lane,
                                        int lanes, bool has_nan) {
  int n = static_cast<int>(j.n);
  T fill = has_nan ? static_cast<T>(NAN) : T();
#pragma unroll 1
  for (int s = lane * FOUR; s < n; s += lanes * FOUR) {
    T v[FOUR];
#pragma unroll
    for (int k = 0; k < FOUR; k++) v[k] = s + k < r.seen ? fill : T();
    store_four(j.p, j.p_dtype, r.at * j.ld, s, n, v);
  }
}

/* The largest score of a row, NaN passed over; *has_nan: there is one. The scores are written back
   with what the mask says: the same thread reads them again. */
template <class T>
static __device__ inline T largest_of(const lt_cuda_tile &j, const row_place &r, int seen, int lane,
                                      int lanes, double *scratch, bool *has_nan) {
  T most = -static_cast<T>(INFINITY);
  double nan = 0;
#pragma unroll 1
  for (int s = lane * FOUR - r.shift; s < seen; s += lanes * FOUR) {
    T v[FOUR];
    load_scores(j, r, s, v);
    if (j.mask != nullptr)
      store_four(j.scores, sizeof(T) == 8 ? LT_F64 : LT_F32, r.at * j.ld, s, seen, v);
#pragma unroll
    for (int k = 0; k < FOUR; k++) {
      most = v[k] > most ? v[k] : most;
      nan = v[k] != v[k] ? 1 : nan;
    }
  }
  *has_nan = lt_team_sum(nan, lanes, scratch) != 0;
  return static_cast<T>(lt_team_all(static_cast<double>(most), -static_cast<double>(INFINITY),
                                    lanes, lt_larger(), scratch));
}

template <class T>
static __global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 4 : 2)
    softmax_rows(LT_CONSTANT lt_cuda_tile j, int lanes, int64_t rows) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  int lane = static_cast<int>(threadIdx.x) % lanes;
  int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / lanes) + threadIdx.x / lanes;
  bool idle = row >= rows, has_nan; /* an idle one comes to the barriers all the same */
  row_place r = place_of(j, idle ? 0 : row);
  T most = largest_of<T>(j, r, idle ? 0 : r.seen, lane, lanes, scratch, &has_nan), sum = 0;
  int n = static_cast<int>(j.n);
  bool empty = most == -static_cast<T>(INFINITY);
#pragma unroll 1
  for (int s = lane * FOUR - r.shift; s < n && !empty && !idle; s += lanes * FOUR) {
    T v[FOUR];
    load_four(static_cast<const T *>(j.scores) + r.at * j.ld, s, r.seen,
              -static_cast<T>(INFINITY), v);
    unsigned kept = kept_of(j, r, s);
#pragma unroll
    for (int k = 0; k < FOUR; k++) {
      v[k] = exp_down(v[k] - most);
      sum += v[k];
      v[k] = (kept >> k & 1) != 0 ? v[k] : T();
    }
    store_four(j.p, j.p_dtype, r.at * j.ld, s, n, v);
  }
  T total = static_cast<T>(lt_team_sum(static_cast<double>(sum), lanes, scratch));
  if (idle) return;
  if (empty) close_row<T>(j, r, lane, lanes, has_nan);
  if (lane != 0) return;
  static_cast<T *>(j.most)[r.number] = empty && has_nan ? static_cast<T>(NAN) : most;
  static_cast<T *>(j.sum)[r.number] = empty ? T(1) : total;
}

/* Operands have any strides but along columns: heads are usually views of one product [B, T, 3
   C]. */
static __device__ inline int64_t start_of(const lt_cuda_heads &h, const row_place &r) {
  return r.batch * h.batch + r.head * h.head + r.t * h.row;
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    finish_rows(LT_CONSTANT lt_cuda_tile j, int lanes, int64_t rows, LT_CONSTANT lt_cuda_heads to,
                const void *product) {
  int lane = static_cast<int>(threadIdx.x) % lanes;
  int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / lanes) + threadIdx.x / lanes;
  if (row >= rows) return;
  row_place r = place_of(j, row);
  T sum = static_cast<const T *>(j.sum)[r.number], keep = static_cast<T>(j.keep);
  int64_t out = start_of(to, r);
  const T *from = static_cast<const T *>(product) + r.at * j.e;
  for (int64_t e = lane; e < j.e; e += lanes)
    store_one(to.data, to.dtype, out + e * to.col, from[e] * keep / sum);
}

/* The gradient of a row's sum: g times out. With p = softmax(x), dx = p (dp - sum(p dp)), and sum(p
   dp) = g . out: E products in place of S (T. Dao and others, FlashAttention, 2022). */
template <class T>
static __device__ inline T delta_of(const lt_cuda_tile &j, const row_place &r, int lane, int lanes,
                                    double *scratch) {
  T sum = 0;
  int64_t g = start_of(j.g, r), out = start_of(j.out, r);
  for (int64_t e = lane; e < j.e; e += lanes)
    sum += lt_attention_load<T>(j.g.data, j.g.dtype, g + e * j.g.col) *
           lt_attention_load<T>(j.out.data, j.out.dtype, out + e * j.out.col);
  return static_cast<T>(lt_team_sum(static_cast<double>(sum), lanes, scratch));
}

/* Where nothing took part, or nothing is seen, gradients are 0. */
template <class T>
static __global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 4 : 2)
    gradient_rows(LT_CONSTANT lt_cuda_tile j, int lanes, int64_t rows) {
  LT_SHARED(double, scratch, LT_CUDA_SCRATCH);
  int lane = static_cast<int>(threadIdx.x) % lanes;
  int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / lanes) + threadIdx.x / lanes;
  bool idle = row >= rows;
  row_place r = place_of(j, idle ? 0 : row);
  T delta = delta_of<T>(j, r, lane, lanes, scratch);
  if (idle) return;
  T most = static_cast<const T *>(j.most)[r.number], keep = static_cast<T>(j.keep);
  T share = 1 / static_cast<const T *>(j.sum)[r.number];
  int n = static_cast<int>(j.n), keys = static_cast<int>(j.s);
  int own = most == -static_cast<T>(INFINITY) ? 0 : r.seen;
  int end = j.dscores != nullptr ? keys : n;
#pragma unroll 1
  for (int s = lane * FOUR - r.shift; s < end; s += lanes * FOUR) {
    T p[FOUR], d[FOUR];
    load_scores(j, r, s, p);
    load_four(static_cast<const T *>(j.dp) + r.at * j.ld, s, own, T(), d);
    unsigned kept = kept_of(j, r, s);
#pragma unroll
    for (int k = 0; k < FOUR; k++) {
      bool keeps = (kept >> k & 1) != 0, seen = s + k < own;
      T x = exp_down(p[k] - most) * share;
      d[k] = seen ? x * ((keeps ? d[k] * keep : T()) - delta) : T();
      p[k] = seen && keeps ? x * keep : T();
    }
    store_four(j.p, j.p_dtype, r.at * j.ld, s, n, p);
    store_four(j.ds, j.p_dtype, r.at * j.ld, s, n, d);
    if (j.dscores != nullptr)
      store_four(j.dscores, sizeof(T) == 8 ? LT_F64 : LT_F32, r.first, s, keys, d);
  }
}

/* Short rows get a warp. */
static int lanes_for(const lt_cuda_tile *j) { return j->n <= 1024 ? 32 : THREADS; }

/* Issues the kernel of the scores' dtype for the rows of a tile, each a team of `lanes`. */
template <class... P, class... A>
static bool issue(lt_ctx *c, const lt_cuda_tile *tile, int lanes, void (*wide)(P...),
                  void (*narrow)(P...), const A &...rest) {
  int64_t rows = tile->units * tile->group * tile->rows, a_block = THREADS / lanes;
  unsigned blocks = static_cast<unsigned>((rows + a_block - 1) / a_block);
  return lt_cuda_grid(c, tile->wide ? wide : narrow, blocks, THREADS, 0, *tile, lanes, rows,
                      rest...);
}

/* The three steps between the products of a tile: scores to probabilities, sums over values to
   results, gradients of probabilities to those of scores. */
bool lt_cuda_attention_softmax(lt_ctx *c, const lt_cuda_tile *tile) {
  return issue(c, tile, lanes_for(tile), softmax_rows<double>, softmax_rows<float>);
}

bool lt_cuda_attention_finish(lt_ctx *c, const lt_cuda_tile *tile, const void *product,
                              const lt_cuda_heads *to) {
  return issue(c, tile, 32, finish_rows<double>, finish_rows<float>, *to, product);
}

bool lt_cuda_attention_gradient(lt_ctx *c, const lt_cuda_tile *tile) {
  return issue(c, tile, lanes_for(tile), gradient_rows<double>, gradient_rows<float>);
}
