/* runtime/cuda/gemm.cu: brings a product into a form that cuBLASLt takes, or gives it to the own
   kernel (gemm.h).

   Copies are made of what has no stride of 1 or another dtype, and where batch dims that do not
   merge would cost many calls. */
#include "cuda/elementwise.h"
#include "cuda/gemm.h"
#include "cuda/tile.h"
#include "ops/math/matrix_strides.h"

enum { MOST_CALLS = 4 };                   /* more of them cost more than copies */
static const int64_t MOST_STACKED = 65535; /* products of one call */

/* Batch dims of one product go; those that continue each other in all three matrices merge. As in
   cpu/matmul.c: the fewer dims, the more one call does. */
static void merge_batch(lt_cuda_product *p) {
  lt_cuda_matrix *all[3] = {&p->a, &p->b, &p->d};
  int n = 0;
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

/* cuBLASLt's batch has one dim; the longest becomes it, the others are calls. */
static int longest_of(const lt_cuda_product *p) {
  int longest = 0;
  for (int i = 1; i < p->n_batch; i++)
    if (p->batch[i] > p->batch[longest]) longest = i;
  return longest;
}

/* How many calls of the library the dims beside the longest cost. More than MOST_CALLS of them cost
   more than a copy that merges the dims. */
static int64_t calls_of(const lt_cuda_product *p) {
  int64_t calls = 1;
  for (int i = 0; i < p->n_batch; i++) calls *= p->batch[i];
  return p->n_batch > 0 ? calls / p->batch[longest_of(p)] : 1;
}

static bool normalise(lt_cuda_matrix *m, int64_t rows, int64_t cols) {
  return lt_normalise_strides(&m->row, &m->col, rows, cols);
}

/* The stack as a tensor; where it repeats a matrix, `once` sees that once. */
static lt_view view_of(const lt_cuda_product *p, const lt_cuda_matrix *m, int64_t rows,
                       int64_t cols, bool once) {
  lt_view v = {};
  v.data = m->data;
  v.dtype = static_cast<lt_dtype>(m->dtype);
  for (int i = 0; i < p->n_batch; i++) {
    v.size[v.ndim] = once && m->batch[i] == 0 ? 1 : p->batch[i];
    v.stride[v.ndim++] = m->batch[i];
  }
  v.size[v.ndim] = rows, v.stride[v.ndim++] = m->row;
  v.size[v.ndim] = cols, v.stride[v.ndim++] = m->col;
  return v;
}

/* Scratch for the next copy of the product that is being issued. A convolution issues a product for
   each of its tiles: by their order copies of the next one are as large, and come after these on
   the stream. */
static void *memory_for(lt_ctx *c, int64_t bytes) {
  lt_cuda_copies *copies = &lt_cuda_now.copies;
  int k = copies->n++;
  if (k >= LT_CUDA_COPIES) return lt_cuda_scratch<char>(c, bytes);
  if (copies->memory[k] == nullptr || copies->bytes[k] < bytes) {
    copies->memory[k] = lt_cuda_scratch<char>(c, bytes);
    copies->bytes[k] = bytes;
  }
  return copies->memory[k];
}

/* Memory for the stack, row-major. */
static bool allocate(lt_ctx *c, const lt_cuda_product *p, lt_cuda_matrix *m, int dtype,
                     int64_t rows, int64_t cols, bool once) {
  int64_t n = rows * cols;
  for (int i = p->n_batch - 1; i >= 0; i--) {
    bool repeats = once && m->batch[i] == 0;
    m->batch[i] = repeats ? 0 : n;
    n *= repeats ? 1 : p->batch[i];
  }
  m->row = cols, m->col = 1, m->dtype = dtype;
  m->data = memory_for(c, n * lt_cuda_item_size(dtype));
  return m->data != nullptr;
}

/* A batch dim of stride 0 stays one, so that a weight shared by all matrices is copied once. */
static bool copy_of(lt_ctx *c, const lt_cuda_product *p, lt_cuda_matrix *m, int dtype, int64_t rows,
                    int64_t cols, bool once) {
  lt_view from = view_of(p, m, rows, cols, once);
  if (!allocate(c, p, m, dtype, rows, cols, once)) return false;
  lt_view to = view_of(p, m, rows, cols, once);
  return lt_cuda_move(c, &to, &from);
}

/* Negative strides of a batch are not for the library. */
static bool is_plain(const lt_cuda_product *p, const lt_cuda_matrix *m) {
  for (int i = 0; i < p->n_batch; i++)
    if (m->batch[i] < 0) return false;
  return true;
}

/* An operand in a form that cuBLASLt takes: in place, or a copy. */
static bool take(lt_ctx *c, const lt_cuda_product *p, lt_cuda_matrix *m, int dtype, int64_t rows,
                 int64_t cols) {
  if (m->dtype == dtype && is_plain(p, m) && normalise(m, rows, cols)) return true;
  return copy_of(c, p, m, dtype, rows, cols, true);
}

/* D, or another matrix in its place. f32 results of 16-bit operands are given directly; otherwise
   the result is made in the operands' dtype and cast. */
static bool take_result(lt_ctx *c, lt_cuda_product *p, int dtype) {
  lt_cuda_matrix d = p->d;
  bool whole = is_plain(p, &d) && normalise(&d, p->m, p->n) && (d.col == 1 || p->bias == nullptr);
  if (whole && (d.dtype == dtype || d.dtype == LT_F32)) {
    p->d = d;
    return true;
  }
  int to = d.dtype == dtype ? dtype : LT_F32;
  if (p->bias != nullptr && to != d.dtype) {
    lt_cuda_matrix bias = lt_cuda_matrix_of(p->bias, d.dtype, p->n, false);
    lt_cuda_product one = {};
    if (!copy_of(c, &one, &bias, to, 1, p->n, true)) return false;
    p->bias = bias.data;
  }
  return p->beta != 0 ? copy_of(c, p, &p->d, to, p->m, p->n, false)
                      : allocate(c, p, &p->d, to, p->m, p->n, false);
}

static bool is_one_stack(const lt_cuda_product *p, const lt_cuda_matrix *m) {
  for (int i = 1; i < p->n_batch; i++)
    if (m->batch[i - 1] != m->batch[i] * p->batch[i]) return false;
  return true;
}

/* Operands whose batch dims do not merge are copied where that saves many calls. */
static bool join_batch(lt_ctx *c, lt_cuda_product *p) {
  if (calls_of(p) <= MOST_CALLS || !is_one_stack(p, &p->d)) return true;
  if (!is_one_stack(p, &p->a) && !copy_of(c, p, &p->a, p->a.dtype, p->m, p->k, false)) return false;
  if (!is_one_stack(p, &p->b) && !copy_of(c, p, &p->b, p->b.dtype, p->k, p->n, false)) return false;
  merge_batch(p);
  return true;
}

/* cuBLASLt wants D's rows side by side: else D' = B' A'. */
static void transpose(lt_cuda_product *p) {
  lt_cuda_matrix *all[3] = {&p->a, &p->b, &p->d};
  for (int k = 0; k < 3; k++) {
    int64_t row = all[k]->row;
    all[k]->row = all[k]->col;
    all[k]->col = row;
  }
  lt_cuda_matrix a = p->a;
  p->a = p->b, p->b = a;
  int64_t m = p->m;
  p->m = p->n, p->n = m;
}

/* Product `number` of the dims of batch beside `kept`, of which it has `count` from `first` on. */
static lt_cuda_product part_of(const lt_cuda_product *p, int kept, int64_t number, int64_t first,
                               int64_t count) {
  lt_cuda_product part = *p;
  lt_cuda_matrix *all[3] = {&part.a, &part.b, &part.d};
  for (int i = p->n_batch - 1; i >= 0; i--) {
    int64_t at = i == kept ? first : number % p->batch[i];
    if (i != kept) number /= p->batch[i];
    for (int k = 0; k < 3; k++)
      all[k]->data = static_cast<char *>(all[k]->data) +
                     at * all[k]->batch[i] * lt_cuda_item_size(all[k]->dtype);
  }
  part.n_batch = p->n_batch > 0;
  part.batch[0] = count;
  for (int k = 0; k < 3; k++) all[k]->batch[0] = all[k]->batch[kept];
  return part;
}

/* What cuBLASLt has no algorithm for goes to the own kernel. */
static bool issue(lt_ctx *c, lt_cuda_product *p) {
  int longest = longest_of(p);
  int64_t calls = calls_of(p), stacked = p->n_batch > 0 ? p->batch[longest] : 1;
  if (p->d.col != 1) transpose(p);
  for (int64_t k = 0; k < calls; k++)
    for (int64_t first = 0; first < stacked; first += MOST_STACKED) {
      int64_t count = stacked - first < MOST_STACKED ? stacked - first : MOST_STACKED;
      lt_cuda_product part = part_of(p, longest, k, first, count);
      bool taken = false;
      if (!lt_cuda_gemm_library(c, &part, &taken)) return false;
      if (!taken && !lt_cuda_gemm_tiled(c, &part)) return false;
    }
  return true;
}

static bool by_library(lt_ctx *c, const lt_cuda_product *p) {
  lt_cuda_product own = *p;
  int dtype = p->a.dtype;
  lt_cuda_now.copies.n = 0;
  if (p->b.dtype != dtype || lt_cuda_compute(dtype) != LT_CUDA_F32) dtype = LT_F32;
  if (!take(c, p, &own.a, dtype, p->m, p->k) || !take(c, p, &own.b, dtype, p->k, p->n) ||
      !take_result(c, &own, dtype) || !join_batch(c, &own))
    return false;
  bool elsewhere = own.d.data != p->d.data;
  lt_cuda_product filled = own;
  if (!issue(c, &own)) return false;
  lt_view from = view_of(&filled, &filled.d, p->m, p->n, false);
  lt_view to = view_of(p, &p->d, p->m, p->n, false);
  return !elsewhere || lt_cuda_move(c, &to, &from);
}

static bool is_f32(const lt_cuda_product *p) {
  int a = lt_cuda_compute(p->a.dtype), b = lt_cuda_compute(p->b.dtype);
  return a != LT_CUDA_F64 && b != LT_CUDA_F64 && (a == LT_CUDA_F32 || b == LT_CUDA_F32);
}

/* f64 and integers, products without terms (whose result is beta D) and batches of too many dims go
   to the own kernel. */
bool lt_cuda_gemm(lt_ctx *c, const lt_cuda_product *p) {
  lt_cuda_product own = *p;
  if (p->m == 0 || p->n == 0) return true;
  for (int i = 0; i < p->n_batch; i++)
    if (p->batch[i] == 0) return true;
  merge_batch(&own);
  bool library = is_f32(p) && p->k > 0 && own.n_batch + 2 <= LT_MAX_DIMS &&
                 lt_cuda_gemm_has_library(c);
  return library ? by_library(c, &own) : lt_cuda_gemm_tiled(c, &own);
}
