/* runtime/cpu/attention.c: scaled dot product attention in tiles of query rows.

   A tile of ROWS queries meets all keys it may see at once: long products keep oneDNN busy, and the
   memory grows with S, never with T x S. Forward keeps the largest score of each row and the sum of
   exp(score - largest); backward computes the scores again. f32 (f16 and bf16 through it) by
   oneDNN's sgemm, f64 by cpu/gemm.c.

   With dropout element (b, h, t, s) of the probabilities [B, H, T, S] uses the word of that
   element, as dropout does: nothing of it is kept. Where the call has some heads of a module, H
   there is the number of all, so that each head draws the same on whatever rank it is.

   B batch, H heads, T queries, S keys, D width of queries and keys, E width of values.

   That the softmax of T x S scores needs not be kept, only two numbers a row: M. Rabe and C.
   Staats, Self-attention Does Not Need O(n^2) Memory, 2021; T. Dao and others, FlashAttention,
   2022. */
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/gemm.h"
#include "cpu/lanes.h"
#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "cpu/onednn.h"
#include "cpu/scratch.h"
#include "cpu/philox_words.h"

/* 64 rows of scores against some thousand keys fit into the second cache; fewer make the products
   too thin for oneDNN. */
enum { ROWS = 64 };

/* A tensor [B, H, rows, cols] whose columns lie side by side; strides in elements. */
typedef struct operand {
  char *data;
  int64_t batch, head, row;
  size_t size; /* of an element */
} operand;

typedef struct job {
  int64_t batches, heads, group, t, s, d, e; /* group: heads of queries for one of keys */
  int64_t first_head, all_heads;             /* what dropout numbers heads by */
  operand q, k, v, out, g, dq, dk, dv;
  const void *mask;
  bool mask_is_bool, causal;
  int64_t mask_stride[4];
  double scale, keep; /* keep: what dropout multiplies by, 0 where it drops all */
  uint32_t threshold; /* words below it are dropped */
  bool drops;
  lt_rng_key rng_key;
  void *stats;   /* [2, B, H, T]: the largest scores, then the sums */
  void *dscores; /* [B, H, T, S] or NULL */
  char *scratch;
  size_t scratch_bytes; /* of one thread */
  int threads;
  atomic_bool failed;
} job;

static void *start(const operand *r, int64_t b, int64_t h, int64_t row) {
  return r->data + (size_t)(b * r->batch + h * r->head + row * r->row) * r->size;
}

static int64_t rows_of(const job *j, int64_t t0) { return j->t - t0 < ROWS ? j->t - t0 : ROWS; }

/* How many keys query t sees. */
static int64_t keys_of(const job *j, int64_t t) { return j->causal && t + 1 < j->s ? t + 1 : j->s; }

static char *scratch_of(const job *j) {
  return j->scratch + (size_t)(omp_get_thread_num() % j->threads) * j->scratch_bytes;
}

/* e^x for x <= 0; what is far below counts as 0. NaN passes. A little below
   -87 floats are no longer normal. Clamped before, not after: the polynomial has a range. */
static inline float exp_down_f32(float x) {
  float y = lt_exp_mid_f32(x < -87.0f ? -87.0f : x);
  return x < -87.0f ? 0.0f : y;
}

static bool gemm_f64(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
                     const double *a, int64_t lda, const double *b, int64_t ldb, bool add,
                     double *out, int64_t ld) {
  LT_CPU(lt_gemm_f64)
  (&(lt_gemm){.m = m,
              .n = n,
              .k = k,
              .a = a,
              .b = b,
              .out = out,
              .a_row = ta ? 1 : lda,
              .a_col = ta ? lda : 1,
              .b_row = tb ? 1 : ldb,
              .b_col = tb ? ldb : 1,
              .out_row = ld,
              .out_col = 1,
              .alpha = alpha,
              .add = add});
  return true;
}

#define T       float
#define NAME(f) f##_f32
#define EXP(x)  exp_down_f32(x)
#define GEMM(ta, tb, m, n, k, alpha, a, lda, b, ldb, add, out, ld)                                 \
  lt_onednn_sgemm(ta, tb, m, n, k, (float)(alpha), a, lda, b, ldb, add ? 1.0f : 0.0f, out, ld)
#include "cpu/attention_type.h"
#undef T
#undef NAME
#undef EXP
#undef GEMM

#define T       double
#define NAME(f) f##_f64
#define EXP(x)  lt_exp_f64(x)
#define GEMM    gemm_f64
#include "cpu/attention_type.h"

/* Strides of `t` [.., rows, cols] with up to two leading dims, the last of them heads. */
static operand rows_in(const lt_tensor *t) {
  int n = t->ndim;
  operand r = {.data = lt_data(t),
               .row = t->stride[n - 2],
               .size = lt_item_size(t),
               .batch = n > 3 ? t->stride[0] : 0,
               .head = n > 2 ? t->stride[n - 3] : 0};
  /* A single row may have any stride, also 0, which BLAS refuses. */
  if (t->size[n - 2] == 1 || t->size[n - 1] == 0) r.row = t->size[n - 1] > 0 ? t->size[n - 1] : 1;
  return r;
}

/* An operand in `dtype`, in place when its columns lie side by side and its rows apart. */
static operand taken(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  if (t == NULL) return (operand){.data = NULL};
  int64_t cols = t->size[t->ndim - 1], n = t->size[t->ndim - 2];
  bool fits = (lt_dtype)t->dtype == dtype && (t->stride[t->ndim - 1] == 1 || cols == 1) &&
              (t->stride[t->ndim - 2] >= cols || n == 1);
  if (!fits) t = lt_cpu_contiguous(c, t, dtype);
  return t != NULL ? rows_in(t) : (operand){.data = NULL};
}

/* The same for a result; *own must be moved into `out` at the end if it is another tensor. */
static operand made(lt_ctx *c, lt_tensor *out, lt_dtype dtype, lt_tensor **own) {
  *own = out;
  int n = out->ndim;
  bool fits = (lt_dtype)out->dtype == dtype && out->stride[n - 1] == 1 &&
              (out->stride[n - 2] >= out->size[n - 1] || out->size[n - 2] == 1);
  if (!fits) *own = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, n, out->size);
  return *own != NULL ? rows_in(*own) : (operand){.data = NULL};
}

static void take_mask(lt_ctx *c, job *j, lt_tensor *mask, lt_shape scores, lt_dtype dtype) {
  if (mask == NULL) return;
  j->mask_is_bool = mask->dtype == LT_BOOL;
  if (!j->mask_is_bool && (lt_dtype)mask->dtype != dtype) mask = lt_cpu_contiguous(c, mask, dtype);
  if (mask == NULL) return;
  j->mask = lt_data(mask);
  int64_t stride[LT_MAX_DIMS];
  lt_broadcast_strides(mask, scores, stride);
  int n = scores.ndim;
  j->mask_stride[0] = n > 3 ? stride[0] : 0;
  j->mask_stride[1] = n > 2 ? stride[n - 3] : 0;
  j->mask_stride[2] = stride[n - 2], j->mask_stride[3] = stride[n - 1];
}

/* Sizes, operands and scratch memory for `buffers` tiles of scores a thread. */
static bool prepare(lt_ctx *c, job *j, lt_tensor *q, lt_tensor *k, lt_tensor *v, lt_tensor *mask,
                    lt_dtype dtype, int buffers) {
  int n = q->ndim;
  lt_shape scores = lt_tensor_shape(q);
  scores.size[n - 1] = k->size[n - 2];
  j->batches = n > 3 ? q->size[0] : 1;
  j->heads = n > 2 ? q->size[n - 3] : 1;
  j->group = n > 2 && k->size[n - 3] > 0 ? j->heads / k->size[n - 3] : 1;
  j->t = q->size[n - 2], j->d = q->size[n - 1], j->s = k->size[n - 2], j->e = v->size[n - 1];
  j->q = taken(c, q, dtype), j->k = taken(c, k, dtype), j->v = taken(c, v, dtype);
  take_mask(c, j, mask, scores, dtype);
  /* Threads' tiles begin 16 elements apart: no line of the cache belongs to two. */
  int64_t tile = ((j->t < ROWS ? j->t : ROWS) * j->s * buffers + 15) / 16 * 16;
  j->threads = c->threads > 1 ? c->threads : 1;
  j->scratch_bytes = (size_t)tile * lt_dtype_size(dtype);
  j->scratch = lt_cpu_scratch(c, dtype, tile * j->threads);
  return lt_ok(c);
}

static bool finish(lt_ctx *c, job *j) {
  return !atomic_load(&j->failed) || lt_fail(c, LT_EMEMORY, "%s: out of memory in oneDNN", c->op);
}

static lt_dtype compute_dtype(const lt_tensor *q) { return q->dtype == LT_F64 ? LT_F64 : LT_F32; }

static bool zero(lt_ctx *c, lt_tensor *t) {
  lt_tensor *none = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 0, NULL);
  if (none == NULL) return false;
  *(float *)lt_data(none) = 0;
  lt_tensor zeros = *none;
  lt_tensor_set_shape(&zeros, t->ndim, t->size, (int64_t[LT_MAX_DIMS]){0});
  return lt_cpu_move(c, t, &zeros);
}

static job job_of(const lt_args_attention *a, const lt_tensor *stats) {
  return (job){.causal = a->causal,
               .scale = a->scale.f,
               .first_head = a->first_head,
               .all_heads = a->all_heads,
               .drops = a->dropout_p > 0,
               .threshold = a->dropout_p < 1 ? (uint32_t)(a->dropout_p * 0x1p32) : 0,
               .keep = a->dropout_p < 1 ? 1 / (1 - a->dropout_p) : 0,
               .rng_key = a->rng_key,
               .stats = lt_data(stats)};
}

static bool forward(lt_ctx *c, const lt_call *call) {
  lt_tensor *q = call->in[0], *out = call->out[0], *own;
  lt_dtype dtype = compute_dtype(q);
  job j = job_of(call->args, call->out[1]);
  if (call->in[1]->size[q->ndim - 2] == 0) return zero(c, out) && zero(c, call->out[1]);
  if (out->numel == 0 && call->out[1]->numel == 0) return true;
  j.out = made(c, out, dtype, &own);
  if (!prepare(c, &j, q, call->in[1], call->in[2], call->n_in > 3 ? call->in[3] : NULL, dtype, 1))
    return false;
  int64_t tiles = (j.t + ROWS - 1) / ROWS;
  lt_parallel(c, j.batches * j.heads * tiles, dtype == LT_F64 ? forward_f64 : forward_f32, &j);
  return finish(c, &j) && (own == out || lt_cpu_move(c, out, own));
}

static bool backward(lt_ctx *c, const lt_call *call) {
  const lt_args_attention_backward *a = call->args;
  const lt_args_attention same = {.causal = a->causal,
                                  .scale = a->scale,
                                  .dropout_p = a->dropout_p,
                                  .first_head = a->first_head,
                                  .all_heads = a->all_heads,
                                  .rng_key = a->rng_key};
  lt_tensor *const *in = call->in;
  lt_tensor *own[3];
  lt_dtype dtype = compute_dtype(in[1]);
  job j = job_of(&same, in[5]);
  /* Without keys or queries there are no products to make, and BLAS takes no size 0. */
  if (in[5]->numel == 0 || in[2]->numel == 0 || in[3]->numel == 0) {
    for (int k = 0; k < call->n_out; k++)
      if (!zero(c, call->out[k])) return false;
    return true;
  }
  if (!prepare(c, &j, in[1], in[2], in[3], call->n_in > 6 ? in[6] : NULL, dtype, 2)) return false;
  j.g = taken(c, in[0], dtype), j.out = taken(c, in[4], dtype);
  j.dq = made(c, call->out[0], dtype, &own[0]);
  j.dk = made(c, call->out[1], dtype, &own[1]);
  j.dv = made(c, call->out[2], dtype, &own[2]);
  if (a->of_mask) j.dscores = lt_data(call->out[3]);
  if (!lt_ok(c)) return false;
  /* By head of keys, not by tile: tiles of queries add to the same dk and dv, and one thread that
     adds them in order needs no atomics and gives the same bits on any number of threads. */
  lt_parallel(c, j.batches * j.heads / j.group, dtype == LT_F64 ? backward_f64 : backward_f32, &j);
  for (int k = 0; k < 3; k++)
    if (own[k] != call->out[k] && !lt_cpu_move(c, call->out[k], own[k])) return false;
  return finish(c, &j);
}

LT_KERNEL(scaled_dot_product_attention) { return lt_cpu_in_frame(c, call, forward); }
LT_KERNEL(scaled_dot_product_attention_backward) { return lt_cpu_in_frame(c, call, backward); }
