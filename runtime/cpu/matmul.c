/* runtime/cpu/matmul.c: matmul and linear: operands are brought into a form that oneDNN takes,
   without copies where strides allow it.

   f32 and bf16 go to oneDNN (f16, and bf16 on machines without it, through f32; thin products of
   halves to cpu/product_skinny.c), f64 and integers to the loops of cpu/gemm.c. M rows, K terms, N
   columns.

   oneDNN takes any strides of which one is 1. All else is decided here by the shape and the strides
   alone, never by a measurement at run time or the number of threads: the same product has the same
   bits in each run.

   Few rows or few terms gain nothing from packing operands, which large products need: thin
   products and products in pieces have loops of their own (cpu/product_skinny.c,
   cpu/product_blocked.c). */
#include <string.h>

#include "base/threads.h"
#include "cpu/gemm.h"
#include "cpu/operands.h"
#include "cpu/scratch.h"

enum { BLOCK_ROWS = 96, BLOCK_COLS = 128 }; /* of f64 and integer products, one chunk each */
enum { TURNED_TERMS = 768, TURNED_ROWS = 512 }; /* see is_better_turned */
enum { FEW_TERMS = 16 };                        /* see goes_thin */

static lt_dtype compute_dtype(lt_dtype d) {
  if (d == LT_F32 || d == LT_F64) return d;
  if (d == LT_BF16) return lt_onednn_has_bf16() ? LT_BF16 : LT_F32;
  return lt_dtype_is_float(d) ? LT_F32 : LT_I64;
}

/* A vector on the left is a row. Beside a single matrix b, all rows of a make one matrix. */
static bool left_matrix(lt_ctx *c, lt_tensor *m, lt_tensor *a, const lt_tensor *b) {
  *m = *a;
  if (a->ndim >= 2 && (a->ndim == 2 || b->ndim > 2)) return true;
  int64_t k = a->size[a->ndim - 1], size[2] = {a->numel / k, k}, stride[2];
  if (!lt_view_strides(a, 2, size, stride)) {
    if ((a = lt_cpu_contiguous(c, a, (lt_dtype)a->dtype)) == NULL) return false;
    *m = *a;
    lt_shape_strides(lt_shape_of(2, size), stride);
  }
  lt_tensor_set_shape(m, 2, size, stride);
  return true;
}

/* A vector on the right is a column. */
static void right_matrix(lt_tensor *m, const lt_tensor *b, bool transposed) {
  *m = *b;
  int last = b->ndim - 1;
  if (b->ndim == 1)
    lt_tensor_set_shape(m, 2, (int64_t[]){b->size[0], 1}, (int64_t[]){b->stride[0], 1});
  else if (transposed)
    lt_tensor_set_shape(m, 2, (int64_t[]){b->size[last], b->size[last - 1]},
                        (int64_t[]){b->stride[last], b->stride[last - 1]});
}

/* Merge batch dims that continue each other in all three tensors. [8, 12, T, C] of one tensor is 96
   matrices at one distance: fewer dims are less work for each, and oneDNN has a limit of dims. */
static void merge_batch(lt_product *p) {
  int n = 0;
  lt_matrix *all[3] = {&p->a, &p->b, &p->out};
  for (int i = 0; i < p->n_batch; i++) {
    if (p->batch[i] == 1) continue;
    bool joins = n > 0;
    for (int k = 0; k < 3 && joins; k++)
      joins = all[k]->batch[n - 1] == all[k]->batch[i] * p->batch[i];
    if (!joins) n++;
    p->batch[n - 1] = joins ? p->batch[n - 1] * p->batch[i] : p->batch[i];
    for (int k = 0; k < 3; k++) all[k]->batch[n - 1] = all[k]->batch[i];
  }
  p->n_batch = n;
}

typedef struct job {
  const lt_product *p;
  int64_t row_blocks, col_blocks;
} job;

/* A task is a block of the result, whose panels of a and b fit into the second cache. */
static void block(void *ud, int64_t chunk) {
  const job *j = ud;
  const lt_product *p = j->p;
  int64_t jb = chunk % j->col_blocks * BLOCK_COLS;
  int64_t ib = chunk / j->col_blocks % j->row_blocks * BLOCK_ROWS;
  int64_t batch = chunk / j->col_blocks / j->row_blocks, a = 0, b = 0, out = 0;
  for (int i = p->n_batch - 1; i >= 0; i--) {
    int64_t at = batch % p->batch[i];
    batch /= p->batch[i];
    a += at * p->a.batch[i], b += at * p->b.batch[i], out += at * p->out.batch[i];
  }
  lt_gemm g = {.m = p->m - ib < BLOCK_ROWS ? p->m - ib : BLOCK_ROWS,
               .n = p->n - jb < BLOCK_COLS ? p->n - jb : BLOCK_COLS,
               .k = p->k,
               .alpha = 1,
               .a_row = p->a.row,
               .a_col = p->a.col,
               .b_row = p->b.row,
               .b_col = p->b.col,
               .out_row = p->out.row,
               .out_col = p->out.col};
  g.a = (int64_t *)p->a.data + a + ib * p->a.row; /* elements of both types have 8 bytes */
  g.b = (int64_t *)p->b.data + b + jb * p->b.col;
  g.out = (int64_t *)p->out.data + out + ib * p->out.row + jb * p->out.col;
  if (p->dtype == LT_F64)
    LT_CPU(lt_gemm_f64)(&g);
  else
    LT_CPU(lt_gemm_i64)(&g);
}

/* The product in f64 or i64, bias included; its rows lie one after the other. */
static bool own_product(lt_ctx *c, const lt_product *p) {
  job j = {.p = p,
           .row_blocks = (p->m + BLOCK_ROWS - 1) / BLOCK_ROWS,
           .col_blocks = (p->n + BLOCK_COLS - 1) / BLOCK_COLS};
  int64_t products = 1;
  for (int i = 0; i < p->n_batch; i++) products *= p->batch[i];
  lt_parallel(c, products * j.row_blocks * j.col_blocks, block, &j);
  for (int64_t i = 0; p->bias != NULL && i < products * p->m; i++)
    for (int64_t q = 0; q < p->n; q++)
      if (p->dtype == LT_F64)
        ((double *)p->out.data)[i * p->n + q] += ((const double *)p->bias)[q];
      else
        ((int64_t *)p->out.data)[i * p->n + q] += ((const int64_t *)p->bias)[q];
  return true;
}

/* out = a b (+ bias); `to` is row-major, of p->dtype, and shares no memory with the operands. */
static bool multiply(lt_ctx *c, lt_product *p, lt_tensor *a, lt_tensor *b, lt_tensor *to) {
  lt_shape batch = lt_shape_of(a->ndim - 2, a->size);
  lt_shape_broadcast(&batch, lt_shape_of(b->ndim - 2, b->size));
  p->n_batch = batch.ndim;
  memcpy(p->batch, batch.size, (size_t)batch.ndim * sizeof *batch.size);
  p->m = a->size[a->ndim - 2], p->k = a->size[a->ndim - 1], p->n = b->size[b->ndim - 1];
  if (!LT_CPU(lt_take_operands)(c, p, a, b)) return false;
  p->out = (lt_matrix){.data = lt_data(to), .row = p->n, .col = 1};
  int64_t step = p->m * p->n;
  for (int i = p->n_batch - 1; i >= 0; i--) p->out.batch[i] = step, step *= p->batch[i];
  merge_batch(p);
  bool onednn = p->dtype == LT_F32 || p->dtype == LT_BF16;
  return onednn ? lt_onednn_product(c, p) : own_product(c, p);
}

/* A product without terms: the bias, or 0, in every row. */
static bool without_terms(lt_ctx *c, lt_tensor *bias, lt_tensor *out) {
  int64_t stride[LT_MAX_DIMS] = {0};
  lt_tensor *zero = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 0, NULL);
  if (zero == NULL) return false;
  *(float *)lt_data(zero) = 0;
  lt_tensor row = bias != NULL ? *bias : *zero;
  if (bias != NULL) stride[out->ndim - 1] = bias->stride[0];
  lt_tensor_set_shape(&row, out->ndim, out->size, stride);
  return lt_cpu_move(c, out, &row);
}

/* Whether a^T b is made as the transpose of b^T a: gradients of weights with many more outputs than
   inputs over many rows, as recurrent layers have them. oneDNN packs the larger operand of these
   badly where it is the transposed one: 1024 x 4096 x 256 takes 0.8 times as long turned, the
   transposing of its result included. The rule depends on the shape alone. */
static bool is_better_turned(const lt_product *p, const lt_tensor *a, const lt_tensor *b) {
  if (p->dtype != LT_F32 || p->bias != NULL || a->ndim != 2 || b->ndim != 2) return false;
  int64_t m = a->size[0], k = a->size[1], n = b->size[1];
  return a->stride[0] == 1 && b->stride[1] == 1 && m >= 2 * n && k >= 2 * n && k >= TURNED_TERMS &&
         m >= TURNED_ROWS;
}

static bool turned_product(lt_ctx *c, lt_product *p, const lt_tensor *a, const lt_tensor *b,
                           lt_tensor *out) {
  lt_tensor left, right, turned;
  right_matrix(&left, b, true);
  right_matrix(&right, a, true);
  lt_tensor *to = lt_tensor_empty(c, LT_CPU_DEVICE, p->dtype, 2,
                                  (int64_t[]){b->size[1], a->size[0]});
  if (to == NULL || !multiply(c, p, &left, &right, to)) return false;
  right_matrix(&turned, to, true);
  return lt_cpu_move(c, out, &turned);
}

/* Whether cpu/product_skinny.c makes the product, in f32. Of so few terms it is faster than bf16 in
   hardware too: what counts is how the result is written. */
static bool goes_thin(lt_product *p, const lt_tensor *a, const lt_tensor *b, const lt_tensor *out) {
  lt_dtype dtype = p->dtype;
  if (dtype == LT_BF16 && a->size[a->ndim - 1] <= FEW_TERMS) p->dtype = LT_F32;
  if (LT_CPU(lt_is_thin)(p, a, b, out)) return true;
  p->dtype = dtype;
  return false;
}

static bool product(lt_ctx *c, lt_tensor *a, lt_tensor *b, lt_tensor *bias, lt_tensor *out,
                    bool transposed) {
  if (out->numel == 0) return true;
  if (a->size[a->ndim - 1] == 0) return without_terms(c, bias, out);
  lt_product p = {.dtype = compute_dtype(lt_dtype_promote((lt_dtype)a->dtype, (lt_dtype)b->dtype))};
  bool thin = goes_thin(&p, a, b, out);
  if (bias != NULL && (bias = lt_cpu_contiguous(c, bias, p.dtype)) == NULL) return false;
  if (bias != NULL) p.bias = lt_data(bias);
  lt_tensor left, right;
  if (thin || LT_CPU(lt_goes_in_pieces)(&p, a, b, out)) {
    if (!left_matrix(c, &left, a, b)) return false;
    right_matrix(&right, b, transposed);
    return thin ? LT_CPU(lt_product_thin)(c, &p, &left, &right, out)
                : LT_CPU(lt_product_in_pieces)(c, &p, &left, &right, out);
  }
  if (!transposed && is_better_turned(&p, a, b)) return turned_product(c, &p, a, b, out);
  lt_tensor *to = lt_cpu_result(c, out, p.dtype, NULL);
  /* In place, as x:matmul(w, {out = x}): rows would be overwritten that are still to be read. */
  if (to != NULL && (to->storage == a->storage || to->storage == b->storage))
    to = lt_tensor_empty(c, LT_CPU_DEVICE, p.dtype, out->ndim, out->size);
  if (to == NULL || !left_matrix(c, &left, a, b)) return false;
  right_matrix(&right, b, transposed);
  return multiply(c, &p, &left, &right, to) && (to == out || lt_cpu_move(c, out, to));
}

LT_KERNEL(matmul) {
  lt_frame frame = lt_frame_open(c);
  bool ok = product(c, call->in[0], call->in[1], NULL, call->out[0], false);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* `t` with one more dim of size 1 at `dim`; lives on the caller's stack. */
static lt_tensor with_dim(const lt_tensor *t, int dim) {
  lt_tensor v = *t;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS];
  for (int k = 0; k <= t->ndim; k++) {
    size[k] = k == dim ? 1 : t->size[k < dim ? k : k - 1];
    stride[k] = k == dim ? 1 : t->stride[k < dim ? k : k - 1];
  }
  if (dim == 0 && t->ndim > 0) stride[0] = t->size[0] * t->stride[0];
  lt_tensor_set_shape(&v, t->ndim + 1, size, stride);
  return v;
}

/* A weight [in] is one row, whose dim the result lacks. */
LT_KERNEL(linear) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *bias = call->n_in > 2 ? call->in[2] : NULL, *w = call->in[1], *out = call->out[0];
  lt_tensor row, one, column;
  if (w->ndim == 1) {
    row = with_dim(w, 0), w = &row;
    column = with_dim(out, out->ndim), out = &column;
    if (bias != NULL) one = with_dim(bias, 0), bias = &one;
  }
  bool ok = product(c, call->in[0], w, bias, out, true);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}
