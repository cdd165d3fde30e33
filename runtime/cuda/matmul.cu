/* runtime/cuda/matmul.cu: matmul and linear as products of stacks of matrices (gemm.h), without
   copies where strides allow it. M rows, K terms, N columns.

   A GPU's libraries take any row stride, and a stride for each matrix of a batch; a transposed
   operand is an option of the call. Only what has neither stride equal to 1 is copied. */
#include "cuda/elementwise.h"
#include "cuda/gemm.h"

static const int64_t SHORT = 32; /* matrices of fewer rows are better joined by a copy */

/* `n` leading dims of a view as one, at *stride; false: they do not continue each other. */
static bool join_dims(const lt_view *v, int n, int64_t *size, int64_t *stride) {
  *size = 1, *stride = 0;
  for (int d = n - 1; d >= 0; d--) {
    if (v->size[d] == 1) continue;
    if (*size > 1 && v->stride[d] != *size * *stride) return false;
    if (*size == 1) *stride = v->stride[d];
    *size *= v->size[d];
  }
  return true;
}

static bool contiguous_copy(lt_ctx *c, lt_view *v) {
  lt_view from = *v;
  int64_t n = 1;
  for (int d = v->ndim - 1; d >= 0; d--) v->stride[d] = n, n *= v->size[d];
  v->data = lt_cuda_scratch<char>(c, n * lt_cuda_item_size(v->dtype));
  return v->data != nullptr && lt_cuda_move(c, v, &from);
}

static void set_matrix(lt_view *v, int64_t rows, int64_t cols, int64_t row, int64_t col) {
  v->ndim = 2;
  v->size[0] = rows, v->size[1] = cols, v->stride[0] = row, v->stride[1] = col;
}

/* A vector on the left is a row. Beside a single matrix b, all rows of a make one matrix, unless
   they do not continue each other and are a stack of long ones. [B, T, C] times [C, D] is one
   product of B T rows, which fills the GPU where B small ones would not. */
static bool left_matrix(lt_ctx *c, lt_view *a, bool single) {
  int n = a->ndim - 1;
  int64_t rows, row;
  if (n == 1 || (n > 1 && !single)) return true;
  if (!join_dims(a, n, &rows, &row)) {
    if (a->size[n - 1] >= SHORT) return true;
    if (!contiguous_copy(c, a)) return false;
    join_dims(a, n, &rows, &row);
  }
  set_matrix(a, rows, a->size[n], rows == 1 ? a->size[n] : row, a->stride[n]);
  return true;
}

/* A vector on the right is a column. */
static void right_matrix(lt_view *b, bool transposed) {
  int last = b->ndim - 1;
  if (b->ndim == 1)
    set_matrix(b, b->size[0], 1, b->stride[0], 1);
  else if (transposed)
    set_matrix(b, b->size[last], b->size[last - 1], b->stride[last], b->stride[last - 1]);
}

/* The dims before the last two, broadcast to the n_batch of the product. */
static lt_cuda_matrix matrix_of(lt_cuda_product *p, const lt_view *v) {
  lt_cuda_matrix m = {};
  int n = v->ndim - 2, lead = p->n_batch - n;
  m.data = v->data;
  m.dtype = v->dtype;
  m.row = v->stride[n], m.col = v->stride[n + 1];
  for (int i = 0; i < n; i++) {
    m.batch[lead + i] = v->size[i] == 1 ? 0 : v->stride[i];
    if (v->size[i] != 1) p->batch[lead + i] = v->size[i];
  }
  return m;
}

/* The first and the last byte that a view may touch. Ranges of bytes: an interleaved view counts as
   overlapping, which only costs a copy. */
static bool overlaps(const lt_view *x, const lt_view *y) {
  const lt_view *views[2] = {x, y};
  uintptr_t from[2], to[2];
  for (int k = 0; k < 2; k++) {
    int64_t high = 0;
    for (int d = 0; d < views[k]->ndim; d++) high += views[k]->stride[d] * (views[k]->size[d] - 1);
    from[k] = reinterpret_cast<uintptr_t>(views[k]->data);
    to[k] = from[k] + static_cast<uintptr_t>((high + 1) * lt_cuda_item_size(views[k]->dtype));
  }
  return from[0] < to[1] && from[1] < to[0];
}

/* The bias side by side, in the dtype of the result. */
static bool take_bias(lt_ctx *c, lt_cuda_product *p, const lt_view *bias) {
  p->bias = bias->data;
  if (bias->dtype == p->d.dtype && (bias->stride[0] == 1 || bias->size[0] == 1)) return true;
  lt_view copy = *bias;
  copy.dtype = static_cast<lt_dtype>(p->d.dtype);
  copy.stride[0] = 1;
  copy.data = lt_cuda_scratch<char>(c, copy.size[0] * lt_cuda_item_size(p->d.dtype));
  p->bias = copy.data;
  return copy.data != nullptr && lt_cuda_move(c, &copy, bias);
}

/* A dim of size 1 may have any stride. */
static bool is_contiguous(const lt_view *v) {
  int64_t n = 1;
  for (int d = v->ndim - 1; d >= 0; n *= v->size[d--])
    if (v->size[d] != 1 && v->stride[d] != n) return false;
  return true;
}

/* to = a b (+ bias): contiguous, sharing no memory with the operands. */
static bool multiply(lt_ctx *c, lt_view *a, lt_view *b, const lt_view *bias, const lt_view *to,
                     bool transposed) {
  lt_cuda_product p = {};
  bool single = b->ndim <= 2;
  if (!left_matrix(c, a, single)) return false;
  right_matrix(b, transposed);
  p.n_batch = (a->ndim > b->ndim ? a->ndim : b->ndim) - 2;
  for (int i = 0; i < p.n_batch; i++) p.batch[i] = 1;
  p.m = a->size[a->ndim - 2], p.k = a->size[a->ndim - 1], p.n = b->size[b->ndim - 1];
  p.a = matrix_of(&p, a), p.b = matrix_of(&p, b);
  p.d = lt_cuda_matrix_of(to->data, to->dtype, p.n, false);
  int64_t step = p.m * p.n;
  for (int i = p.n_batch - 1; i >= 0; i--) p.d.batch[i] = step, step *= p.batch[i];
  p.alpha = 1;
  return (bias == nullptr || take_bias(c, &p, bias)) && lt_cuda_gemm(c, &p);
}

/* In place, as x:matmul(w, {out = x}), the result goes through scratch: blocks would overwrite what
   others still read. */
static bool product(lt_ctx *c, lt_view *a, lt_view *b, const lt_view *bias, const lt_view *out,
                    bool transposed) {
  lt_view to = *out;
  int64_t n = lt_cuda_numel(out);
  if (n == 0) return true;
  bool elsewhere = !is_contiguous(out) || overlaps(out, a) || overlaps(out, b);
  if (elsewhere) {
    int64_t step = 1;
    for (int d = to.ndim - 1; d >= 0; d--) to.stride[d] = step, step *= to.size[d];
    to.data = lt_cuda_scratch<char>(c, n * lt_cuda_item_size(to.dtype));
    if (to.data == nullptr) return false;
  }
  return multiply(c, a, b, bias, &to, transposed) && (!elsewhere || lt_cuda_move(c, out, &to));
}

LT_CUDA_KERNEL(matmul) {
  lt_view a, b, out;
  return lt_cuda_view(c, call->in[0], &a) && lt_cuda_view(c, call->in[1], &b) &&
         lt_cuda_view(c, call->out[0], &out) && product(c, &a, &b, nullptr, &out, false);
}

/* A weight [in] is one row, whose dim the result lacks. */
LT_CUDA_KERNEL(linear) {
  lt_view x, w, bias, out;
  lt_tensor *given = call->n_in > 2 ? call->in[2] : nullptr;
  if (!lt_cuda_view(c, call->in[0], &x) || !lt_cuda_view(c, call->in[1], &w) ||
      !lt_cuda_view(c, given, &bias) || !lt_cuda_view(c, call->out[0], &out))
    return false;
  if (w.ndim == 1) {
    set_matrix(&w, 1, w.size[0], w.size[0], w.stride[0]);
    bias.ndim = 1;
    bias.size[0] = bias.stride[0] = 1;
  }
  return product(c, &x, &w, given != nullptr ? &bias : nullptr, &out, true);
}
