/* runtime/cuda/flash.cu: which calls of attention tensor cores take (flash.h), and what a row of
   queries is to backward. */
#include "cuda/flash.h"
#include "cuda/reduce.h"

enum { THREADS = 256, LANES = LT_FLASH_MOST / LT_FLASH_GROUP };
static const int64_t MOST_BLOCKS = INT32_MAX;
static const float LOG2_E = 1.44269504f;

/* Whether groups of eight numbers lie side by side on borders of 16 bytes. Copies to shared memory
   are of 16 bytes. */
static bool in_groups(const lt_cuda_heads *h, int64_t cols) {
  return h->col == 1 && cols % LT_FLASH_GROUP == 0 && h->row % LT_FLASH_GROUP == 0 &&
         h->head % LT_FLASH_GROUP == 0 && h->batch % LT_FLASH_GROUP == 0 &&
         reinterpret_cast<uintptr_t>(h->data) % (2 * LT_FLASH_GROUP) == 0;
}

static bool take_heads(lt_ctx *c, lt_tensor *t, int64_t cols, lt_cuda_heads *out, bool *taken) {
  if (!lt_cuda_attention_heads(c, t, out)) return false;
  *taken = *taken && in_groups(out, cols);
  return true;
}

/* What both directions ask of a call and a device. A scale that is not positive would turn the
   order of scores around, and the largest product would not be the largest score. Counts are kept
   below 2^31, the most blocks of a grid. */
static bool take(lt_ctx *c, const lt_cuda_attention *a, lt_cuda_flash *j, bool *taken) {
  const lt_cuda_tile *t = &a->tile;
  int major = 0;
  *j = {};
  j->all = *t;
  j->d = static_cast<int>(a->d), j->e = static_cast<int>(t->e);
  j->t = static_cast<int>(t->t), j->s = static_cast<int>(t->s);
  j->rows = a->batches * t->heads * t->t;
  j->adds = t->mask != nullptr && t->mask_dtype != LT_BOOL;
  j->scale = static_cast<float>(a->scale);
  j->factor = j->adds ? LOG2_E : LOG2_E * j->scale;
  *taken = (a->dtype == LT_F16 || a->dtype == LT_BF16) && a->d > 0 && a->d <= LT_FLASH_MOST &&
           t->e > 0 && t->e <= LT_FLASH_MOST && j->scale > 0 && isfinite(j->scale) &&
           (!t->drops || t->s % 4 == 0) && t->t <= INT32_MAX / 2 &&
           j->rows + a->units * t->s <= MOST_BLOCKS;
  if (!*taken) return true;
  if (!lt_cuda_ok(c, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                            lt_cuda_now.index), "compute capability"))
    return false;
  *taken = major >= LT_MMA_CAPABILITY;
  return true;
}

bool lt_cuda_flash_forward(lt_ctx *c, const lt_call *call, const lt_cuda_attention *a,
                           bool *taken) {
  lt_cuda_flash j;
  lt_tensor *const *in = call->in;
  if (!take(c, a, &j, taken)) return false;
  if (!*taken) return true;
  if (!take_heads(c, in[0], j.d, &j.q, taken) || !take_heads(c, in[1], j.d, &j.k, taken) ||
      !take_heads(c, in[2], j.e, &j.v, taken) ||
      !take_heads(c, call->out[0], j.e, &j.all.out, taken))
    return false;
  return !*taken || lt_cuda_flash_attend(c, &j);
}

/* Sixteen lanes a row of queries, each eight numbers; limited by bytes. Rows that saw nothing get
   probabilities of 0. g times out is what the sum of p dp over all keys comes to (T. Dao and
   others, FlashAttention, 2022). */
static __global__ void __launch_bounds__(THREADS) describe_rows(LT_CONSTANT lt_cuda_flash j) {
  int lane = static_cast<int>(threadIdx.x) % LANES;
  int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
  bool idle = row >= j.rows; /* comes to the shuffles all the same */
  int64_t number = (idle ? 0 : row) / j.t, t = (idle ? 0 : row) % j.t;
  int64_t batch = number / j.all.heads, head = number % j.all.heads;
  lt_flash_rows g = lt_flash_head(j.all.g, batch, head, j.t, j.e);
  lt_flash_rows out = lt_flash_head(j.all.out, batch, head, j.t, j.e);
  float sum = 0;
  if (lane * LT_FLASH_GROUP < j.e) {
    float x[LT_FLASH_GROUP], y[LT_FLASH_GROUP];
    lt_load_row<float, LT_FLASH_GROUP>(g.data + t * g.row, j.q.dtype, lane * LT_FLASH_GROUP, x);
    lt_load_row<float, LT_FLASH_GROUP>(out.data + t * out.row, j.q.dtype, lane * LT_FLASH_GROUP, y);
#pragma unroll
    for (int k = 0; k < LT_FLASH_GROUP; k++) sum += x[k] * y[k];
  }
  sum = lt_lanes_all(sum, LANES, lt_plus());
  if (idle || lane != 0) return;
  float most = static_cast<const float *>(j.all.most)[row];
  bool empty = most == -INFINITY;
  j.stats[row] = empty ? 0 : j.adds ? most : most / j.scale;
  j.stats[j.rows + row] =
      empty ? INFINITY : log2f(static_cast<const float *>(j.all.sum)[row]);
  j.stats[2 * j.rows + row] = sum;
}

bool lt_cuda_flash_backward(lt_ctx *c, const lt_call *call, const lt_cuda_attention *a,
                            bool *taken) {
  lt_cuda_flash j;
  lt_tensor *const *in = call->in, *const *out = call->out;
  if (!take(c, a, &j, taken)) return false;
  if (!*taken) return true;
  *taken = a->tile.dscores == nullptr; /* memory of T x S is for the other kernels */
  if (!take_heads(c, in[0], j.e, &j.all.g, taken) || !take_heads(c, in[1], j.d, &j.q, taken) ||
      !take_heads(c, in[2], j.d, &j.k, taken) || !take_heads(c, in[3], j.e, &j.v, taken) ||
      !take_heads(c, in[4], j.e, &j.all.out, taken) ||
      !take_heads(c, out[0], j.d, &j.dq, taken) || !take_heads(c, out[1], j.d, &j.dk, taken) ||
      !take_heads(c, out[2], j.e, &j.dv, taken))
    return false;
  if (!*taken) return true;
  j.stats = lt_cuda_scratch<float>(c, 3 * j.rows);
  if (j.stats == nullptr) return false;
  int64_t blocks = (j.rows + THREADS / LANES - 1) / (THREADS / LANES);
  return lt_cuda_grid(c, describe_rows, static_cast<unsigned>(blocks), THREADS, 0, j) &&
         lt_cuda_flash_keys(c, &j) && lt_cuda_flash_queries(c, &j);
}
