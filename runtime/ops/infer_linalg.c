/* runtime/ops/infer_linalg.c: shapes of linear algebra: batches of matrices [.., M, N].

   16-bit dtypes are refused, as in PyTorch: factorizations in 8 or 11 bits are of no use, and
   LAPACK's algorithms have no such versions. */
#include "ops/infer.h"

/* A batch of matrices of f32 or f64, which must be square. */
static bool matrices(lt_ctx *c, const lt_infer *i, int k, bool square) {
  const lt_tensor *x = i->in[k];
  lt_dtype d = (lt_dtype)x->dtype;
  if (d != LT_F32 && d != LT_F64)
    return lt_fail(c, LT_EDTYPE, "%s: needs f32 or f64, got %s; write x:to('f32')", i->op->name,
                   lt_dtype_name(d));
  if (x->ndim < 2)
    return lt_fail(c, LT_ESHAPE, "%s: needs matrices [.., M, N], got %s", i->op->name,
                   LT_TENSOR_STR(x));
  return !square || x->size[x->ndim - 2] == x->size[x->ndim - 1] ||
         lt_fail(c, LT_ESHAPE, "%s: needs square matrices, got %s", i->op->name, LT_TENSOR_STR(x));
}

/* Result k: matrices of `rows` and `columns` for each of x; without columns vectors, without rows
   numbers. */
static void gives(lt_infer *i, int k, int64_t rows, int64_t columns) {
  lt_shape s = lt_tensor_shape(i->in[0]);
  s.ndim -= 2;
  if (rows >= 0) s.size[s.ndim++] = rows;
  if (columns >= 0) s.size[s.ndim++] = columns;
  i->out[k] = (lt_meta){.shape = s, .dtype = (lt_dtype)i->in[0]->dtype};
}

bool lt_infer_linalg_cholesky(lt_ctx *c, lt_infer *i) {
  if (!matrices(c, i, 0, true)) return false;
  int64_t n = i->in[0]->size[i->in[0]->ndim - 1];
  gives(i, 0, n, n);
  return true;
}

bool lt_infer_linalg_det(lt_ctx *c, lt_infer *i) {
  if (!matrices(c, i, 0, true)) return false;
  gives(i, 0, -1, -1);
  return true;
}

bool lt_infer_linalg_slogdet(lt_ctx *c, lt_infer *i) {
  if (!matrices(c, i, 0, true)) return false;
  gives(i, 0, -1, -1);
  gives(i, 1, -1, -1);
  return true;
}

bool lt_infer_linalg_eigh(lt_ctx *c, lt_infer *i) {
  if (!matrices(c, i, 0, true)) return false;
  int64_t n = i->in[0]->size[i->in[0]->ndim - 1];
  gives(i, 0, n, -1);
  gives(i, 1, n, n);
  return true;
}

bool lt_infer_linalg_qr(lt_ctx *c, lt_infer *i) {
  const lt_args_linalg_qr *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!matrices(c, i, 0, false)) return false;
  int64_t m = x->size[x->ndim - 2], n = x->size[x->ndim - 1], k = m < n || a->complete ? m : n;
  gives(i, 0, m, k);
  gives(i, 1, k, n);
  return true;
}

bool lt_infer_linalg_svd(lt_ctx *c, lt_infer *i) {
  const lt_args_linalg_svd *a = i->args;
  const lt_tensor *x = i->in[0];
  if (!matrices(c, i, 0, false)) return false;
  int64_t m = x->size[x->ndim - 2], n = x->size[x->ndim - 1], k = m < n ? m : n;
  gives(i, 0, m, a->full_matrices ? m : k);
  gives(i, 1, k, -1);
  gives(i, 2, a->full_matrices ? n : k, n);
  return true;
}

/* (a [.., N, N], b [.., N, K]), of the same batch. */
bool lt_infer_linalg_solve(lt_ctx *c, lt_infer *i) {
  const lt_tensor *a = i->in[0], *b = i->in[1];
  if (!matrices(c, i, 0, true) || !matrices(c, i, 1, false)) return false;
  lt_shape fits = lt_tensor_shape(b);
  fits.size[fits.ndim - 1] = a->size[a->ndim - 1];
  if (!lt_shape_equal(fits, lt_tensor_shape(a)))
    return lt_fail(c, LT_ESHAPE, "%s: %s and %s do not fit", i->op->name, LT_TENSOR_STR(a),
                   LT_TENSOR_STR(b));
  gives(i, 0, b->size[b->ndim - 2], b->size[b->ndim - 1]);
  return true;
}

bool lt_infer_linalg_solve_triangular(lt_ctx *c, lt_infer *i) {
  return lt_infer_linalg_solve(c, i);
}
