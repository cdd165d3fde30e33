/* runtime/autograd/vjp_linalg.c: derivatives of linear algebra, in operations that have
   derivatives; the formulas are those of M. Giles, "Collected matrix derivative results", 2008,
   and for QR of M. Walter and L. Lehmann, arXiv:1001.1654. */
#include "autograd/vjp.h"
#include "ops/expand.h"

static lt_tensor *product(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_apply1(c, LT_OP_matmul, LT_IN(a, b), NULL);
}
static lt_tensor *turned(lt_ctx *c, lt_tensor *x) {
  return x == NULL ? NULL : lt_transpose(c, x, x->ndim - 2, x->ndim - 1);
}
static lt_tensor *solved(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_apply1(c, LT_OP_linalg_solve, LT_IN(a, b), NULL);
}
static lt_tensor *solved_triangle(lt_ctx *c, lt_tensor *a, lt_tensor *b, bool upper, bool unit) {
  return lt_apply1(c, LT_OP_linalg_solve_triangular, LT_IN(a, b),
                   &(lt_args_linalg_solve_triangular){.upper = upper, .unitriangular = unit});
}
static lt_tensor *triangle(lt_ctx *c, lt_tensor *x, lt_op op, int64_t diagonal) {
  return lt_apply1(c, op, 1, &x, &(lt_args_triangle){.diagonal = diagonal});
}
static lt_tensor *quotient(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return lt_binary(c, LT_OP_div, a, b);
}

/* [.., n] as [.., n, 1] (at = 0) or [.., 1, n] (at = -1); [..] as [.., 1, 1]. */
static lt_tensor *beside(lt_ctx *c, lt_tensor *x, int at) {
  return x == NULL ? NULL
                   : lt_apply1(c, LT_OP_unsqueeze, 1, &x,
                               &(lt_args_unsqueeze){.dim = x->ndim + at});
}
static lt_tensor *column(lt_ctx *c, lt_tensor *x) { return beside(c, x, 0); }
static lt_tensor *row(lt_ctx *c, lt_tensor *x) { return beside(c, x, -1); }
static lt_tensor *number(lt_ctx *c, lt_tensor *x) { return beside(c, beside(c, x, 0), 0); }

static lt_tensor *eye(lt_ctx *c, const lt_tensor *like) {
  int64_t n = like->size[like->ndim - 1];
  return lt_apply1(c, LT_OP_eye, 0, NULL,
                   &(lt_args_eye){.n = n, .m = n, .dtype = (lt_dtype)like->dtype,
                                  .device = like->storage->device});
}
static lt_tensor *skew(lt_ctx *c, lt_tensor *x) { return lt_sub(c, x, turned(c, x)); }

/* a + b, where one of them may be absent. */
static lt_tensor *sum_of(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return a == NULL ? b : b == NULL ? a : lt_add(c, a, b);
}

/* Of a x = b: db solves a^T db = g, and da = -db x^T: no inverse is made. */
bool lt_vjp_linalg_solve(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *a = lt_saved_in(c, v, 0), *x = lt_saved_out(c, v, 0);
  lt_tensor *g = solved(c, turned(c, a), v->grad[0]);
  if (v->need[0]) v->in[0] = lt_unary(c, LT_OP_neg, product(c, g, turned(c, x)));
  if (v->need[1]) v->in[1] = g;
  return lt_ok(c);
}

bool lt_vjp_linalg_solve_triangular(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_linalg_solve_triangular *o = v->args;
  lt_tensor *a = lt_saved_in(c, v, 0), *x = lt_saved_out(c, v, 0);
  lt_tensor *g = solved_triangle(c, turned(c, a), v->grad[0], !o->upper, o->unitriangular);
  if (v->need[0]) {
    lt_tensor *whole = lt_unary(c, LT_OP_neg, product(c, g, turned(c, x)));
    int64_t within = o->unitriangular ? 1 : 0;
    v->in[0] = triangle(c, whole, o->upper ? LT_OP_triu : LT_OP_tril, o->upper ? within : -within);
  }
  if (v->need[1]) v->in[1] = g;
  return lt_ok(c);
}

/* The inverse transposed, each matrix times its number of g. */
static lt_tensor *times_inverse(lt_ctx *c, lt_tensor *a, lt_tensor *g) {
  if (!lt_ok(c)) return NULL;
  return solved(c, turned(c, a), lt_mul(c, eye(c, a), number(c, g)));
}

/* The cofactors, which singular matrices have too: U D Vh with the products of the other singular
   values in D. */
static lt_tensor *cofactors(lt_ctx *c, lt_tensor *a) {
  lt_tensor *f[3] = {NULL};
  if (!lt_apply(c, LT_OP_linalg_svd, 1, &a, NULL, 3, f)) return NULL;
  lt_tensor *others = lt_filled(c, lt_expand_to(c, row(c, f[1]), lt_tensor_shape(a)),
                                lt_cast(c, eye(c, a), LT_BOOL), 1);
  others = lt_reduced(c, LT_OP_prod, others, a->ndim - 1, false);
  lt_tensor *sign = lt_mul(c, lt_apply1(c, LT_OP_linalg_det, 1, &f[0], NULL),
                           lt_apply1(c, LT_OP_linalg_det, 1, &f[2], NULL));
  return lt_mul(c, product(c, lt_mul(c, f[0], row(c, others)), f[2]), number(c, sign));
}

/* d a^-T; of a singular matrix, which has no inverse, the cofactors, by its singular values. */
bool lt_vjp_linalg_det(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *a = lt_saved_in(c, v, 0), *d = lt_saved_out(c, v, 0), *g = v->grad[0];
  lt_scalar singular = {.i = 0};
  if (!lt_ok(c)) return false;
  if (d->numel > 0 && !lt_item(c, lt_unary(c, LT_OP_any, lt_equals(c, d, 0)), &singular))
    return false;
  v->in[0] = singular.i != 0 ? lt_mul(c, cofactors(c, a), number(c, g))
                             : times_inverse(c, a, lt_mul(c, g, d));
  return lt_ok(c);
}

/* Of log |det a|: a^-T, whatever the size of the determinant. */
bool lt_vjp_linalg_slogdet(lt_ctx *c, lt_vjp_call *v) {
  if (v->grad[1] != NULL) v->in[0] = times_inverse(c, lt_saved_in(c, v, 0), v->grad[1]);
  return lt_ok(c); /* the sign is constant */
}

/* L^-T phi(L^T g) L^-1, its symmetric part; phi: the lower triangle, half of the diagonal. */
bool lt_vjp_linalg_cholesky(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *up = turned(c, lt_saved_out(c, v, 0)), *p = product(c, up, v->grad[0]);
  p = lt_add(c, triangle(c, p, LT_OP_tril, 0), triangle(c, p, LT_OP_tril, -1));
  p = solved_triangle(c, up, lt_scaled(c, p, 0.5), true, false);
  p = solved_triangle(c, up, turned(c, p), true, false);
  v->in[0] = lt_scaled(c, lt_add(c, p, turned(c, p)), 0.5);
  return lt_ok(c);
}

/* Differences of the values of [.., n], value j - value i; 1 on the diagonal. Eigenvalues or
   squared singular values that are equal divide by 0: their vectors are not unique, and a loss that
   depends on the choice has no derivative. As in PyTorch the gradient is then infinite or NaN
   rather than silently wrong. */
static lt_tensor *gaps(lt_ctx *c, lt_tensor *x) {
  lt_tensor *d = lt_sub(c, row(c, x), column(c, x));
  return d == NULL ? NULL : lt_add(c, d, eye(c, d));
}

/* V (diag(gw) + S / gaps) V^T with the skew part S of V^T gV: symmetric, as the matrices are, so
   that a step along it leaves them so. */
bool lt_vjp_linalg_eigh(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *w = lt_saved_out(c, v, 0), *vectors = lt_saved_out(c, v, 1), *inner = NULL;
  if (!lt_ok(c)) return false;
  if (v->grad[1] != NULL) {
    lt_tensor *turn = skew(c, product(c, turned(c, vectors), v->grad[1]));
    inner = quotient(c, lt_scaled(c, turn, 0.5), gaps(c, w));
  }
  if (v->grad[0] != NULL)
    inner = sum_of(c, inner, lt_mul(c, eye(c, vectors), column(c, v->grad[0])));
  if (inner != NULL) v->in[0] = product(c, product(c, vectors, inner), turned(c, vectors));
  return lt_ok(c);
}

/* The first k of a dim. */
static lt_tensor *first_of(lt_ctx *c, lt_tensor *x, int back, int64_t k) {
  if (x == NULL || x->size[x->ndim - back] == k) return x;
  return lt_slice(c, x, x->ndim - back, 0, k, 1);
}

/* What a gradient has outside of the columns of u: g - u u^T g. */
static lt_tensor *outside(lt_ctx *c, lt_tensor *u, lt_tensor *g) {
  return lt_sub(c, g, product(c, u, product(c, turned(c, u), g)));
}

/* U (skew(U^T gU) / gaps S + S skew(V^T gV) / gaps + diag(gs)) V^T, plus, for matrices that are not
   square, what gU and gV have outside of the columns of U and V. Only the first k columns have a
   derivative: the others of full matrices are any basis of the complement. */
bool lt_vjp_linalg_svd(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *u = lt_saved_out(c, v, 0), *s = lt_saved_out(c, v, 1), *vh = lt_saved_out(c, v, 2);
  if (!lt_ok(c)) return false;
  int64_t k = s->size[s->ndim - 1];
  u = first_of(c, u, 1, k), vh = first_of(c, vh, 2, k);
  lt_tensor *gu = first_of(c, v->grad[0], 1, k), *gs = v->grad[1];
  lt_tensor *gv = turned(c, first_of(c, v->grad[2], 2, k)), *right = turned(c, vh), *inner = NULL;
  lt_tensor *gap = gu != NULL || gv != NULL ? gaps(c, lt_mul(c, s, s)) : NULL;
  if (!lt_ok(c)) return false;
  if (gu != NULL)
    inner = lt_mul(c, quotient(c, skew(c, product(c, turned(c, u), gu)), gap), row(c, s));
  if (gv != NULL)
    inner = sum_of(c, inner, lt_mul(c, quotient(c, skew(c, product(c, vh, gv)), gap),
                                    column(c, s)));
  if (gs != NULL) inner = sum_of(c, inner, lt_mul(c, column(c, gs), eye(c, s)));
  if (inner == NULL) return lt_ok(c);
  lt_tensor *g = product(c, product(c, u, inner), vh);
  if (gu != NULL && u->size[u->ndim - 2] > k)
    g = lt_add(c, g, product(c, outside(c, u, quotient(c, gu, row(c, s))), vh));
  if (gv != NULL && vh->size[vh->ndim - 1] > k)
    g = lt_add(c, g, product(c, u, turned(c, outside(c, right, quotient(c, gv, row(c, s))))));
  v->in[0] = g;
  return lt_ok(c);
}

/* x R^-T for an upper triangular R. */
static lt_tensor *over(lt_ctx *c, lt_tensor *x, lt_tensor *r) {
  return turned(c, solved_triangle(c, r, turned(c, x), true, false));
}

/* With M = gR R^T - Q^T gQ: tall matrices (gQ + Q sym(triu(M))) R^-T; of wide ones the first square
   part gets (Q tril(M^T - M)) R^-T, half of its diagonal, and all Q gR. */
bool lt_vjp_linalg_qr(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_linalg_qr *o = v->args;
  lt_tensor *q = lt_saved_out(c, v, 0), *r = lt_saved_out(c, v, 1);
  if (!lt_ok(c)) return false;
  lt_tensor *gq = v->grad[0], *gr = v->grad[1];
  int64_t m = q->size[q->ndim - 2], n = r->size[r->ndim - 1];
  if (o->complete && m > n)
    return lt_fail(c, LT_EARG, "linalg.qr: mode 'complete' of %lld x %lld has no derivative: use "
                               "'reduced'", (long long)m, (long long)n);
  lt_tensor *middle = gr == NULL ? NULL : product(c, gr, turned(c, r));
  if (gq != NULL) {
    lt_tensor *minus = lt_unary(c, LT_OP_neg, product(c, turned(c, q), gq));
    middle = sum_of(c, middle, minus);
  }
  if (middle == NULL) return lt_ok(c);
  if (m >= n) {
    lt_tensor *up = triangle(c, middle, LT_OP_triu, 0);
    up = lt_add(c, up, turned(c, triangle(c, middle, LT_OP_triu, 1)));
    v->in[0] = over(c, sum_of(c, product(c, q, up), gq), r);
    return lt_ok(c);
  }
  lt_tensor *low = triangle(c, lt_sub(c, turned(c, middle), middle), LT_OP_tril, -1);
  lt_tensor *square = over(c, product(c, q, low), first_of(c, r, 1, m));
  if (square == NULL) return false;
  lt_shape rest = lt_tensor_shape(r);
  rest.size[rest.ndim - 1] = n - m;
  lt_tensor *none = lt_full(c, rest, lt_scalar_of(0), (lt_dtype)r->dtype, r->storage->device);
  square = lt_joined(c, square, none, r->ndim - 1);
  v->in[0] = gr == NULL ? square : lt_add(c, square, product(c, q, gr));
  return lt_ok(c);
}
