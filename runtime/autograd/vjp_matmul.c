/* runtime/autograd/vjp_matmul.c: derivatives of matrix products, which are products again.

   Transposes are views: kernels read both orders, so no operand is copied. A matrix of weights
   meets all rows of a batch at once: [B, T, C] is flattened to [B T, C], and the sum over B and T
   happens inside of the product. */
#include "autograd/vjp.h"

static lt_tensor *product(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return a == NULL || b == NULL ? NULL : lt_apply1(c, LT_OP_matmul, LT_IN(a, b), NULL);
}

static lt_tensor *transposed(lt_ctx *c, lt_tensor *x) {
  return x == NULL ? NULL : lt_transpose(c, x, x->ndim - 2, x->ndim - 1);
}

/* [.., n] as a matrix [rows, n]. */
static lt_tensor *flat(lt_ctx *c, lt_tensor *x) {
  if (x == NULL || x->ndim == 2) return x;
  int64_t n = x->size[x->ndim - 1], rows = 1;
  for (int k = 0; k < x->ndim - 1; k++) rows *= x->size[k];
  return lt_reshape(c, x, lt_shape_of(2, (int64_t[]){rows, n}));
}

/* g, given the dims that vectors lost: [.., 1, n] for a vector a, [.., m, 1] for a vector b. */
static lt_tensor *with_lost_dims(lt_ctx *c, lt_tensor *g, bool a_vector, bool b_vector) {
  lt_shape s = lt_tensor_shape(g);
  if (a_vector && b_vector) return lt_reshape(c, g, lt_shape_of(2, (int64_t[]){1, 1}));
  if (!a_vector && !b_vector) return g;
  s.ndim++;
  s.size[s.ndim - 1] = b_vector ? 1 : s.size[s.ndim - 2];
  if (a_vector) s.size[s.ndim - 2] = 1;
  return lt_reshape(c, g, s);
}

static lt_tensor *as_matrix(lt_ctx *c, lt_tensor *x, bool row) {
  if (x == NULL || x->ndim != 1) return x;
  int64_t n = x->size[0];
  return lt_reshape(c, x, lt_shape_of(2, row ? (int64_t[]){1, n} : (int64_t[]){n, 1}));
}

/* To the shape of an input: sum what was broadcast, drop the dim that a vector got. */
static lt_tensor *to_input(lt_ctx *c, lt_tensor *g, lt_shape shape, bool row) {
  if (shape.ndim != 1) return lt_sum_to(c, g, shape);
  int64_t n = shape.size[0];
  g = lt_sum_to(c, g, lt_shape_of(2, row ? (int64_t[]){1, n} : (int64_t[]){n, 1}));
  return g == NULL ? NULL : lt_reshape(c, g, shape);
}

/* Of y = a b: da = g b^T, db = a^T g; where an operand was repeated along a batch dim, the sum over
   it. */
bool lt_vjp_matmul(lt_ctx *c, lt_vjp_call *v) {
  lt_shape as = lt_in_shape(v, 0), bs = lt_in_shape(v, 1);
  lt_tensor *g = with_lost_dims(c, v->grad[0], as.ndim == 1, bs.ndim == 1);
  if (g == NULL) return false;
  if (v->need[0]) {
    lt_tensor *b = as_matrix(c, lt_saved_in(c, v, 1), false);
    v->in[0] = to_input(c, product(c, g, transposed(c, b)), as, true);
  }
  if (v->need[1]) {
    lt_tensor *a = as_matrix(c, lt_saved_in(c, v, 0), true);
    if (bs.ndim <= 2 && a != NULL) a = flat(c, a), g = flat(c, g); /* one product, not many sums */
    v->in[1] = to_input(c, product(c, transposed(c, a), g), bs, false);
  }
  return lt_ok(c);
}

/* The weight is the transpose of one that lies row by row: so is its gradient then, or whoever gets
   it would have to turn it. */
static bool is_turned(const lt_tensor *w) {
  return w != NULL && w->ndim == 2 && w->stride[0] == 1 && w->stride[1] >= w->size[0];
}

/* Of y = x w^T + b: dx = g w, dw = g^T x over all rows at once, db the sum of g over them. */
bool lt_vjp_linear(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *g = v->grad[0], *w = v->need[0] ? lt_saved_in(c, v, 1) : NULL;
  bool row = lt_in_shape(v, 1).ndim == 1; /* a weight [in]: the result lacks its dim */
  if (v->node->n_in > 2 && v->need[2]) v->in[2] = lt_sum_to(c, g, lt_in_shape(v, 2));
  if (row) {
    lt_shape s = lt_tensor_shape(g);
    s.size[s.ndim++] = 1;
    g = lt_reshape(c, g, s);
  }
  if (v->need[0]) v->in[0] = product(c, g, as_matrix(c, w, true));
  if (v->need[1]) {
    lt_tensor *x = lt_saved_in(c, v, 0);
    if (x != NULL && x->ndim == 1) x = as_matrix(c, x, true);
    lt_tensor *rows = g->ndim == 1 ? as_matrix(c, g, true) : flat(c, g);
    v->in[1] = is_turned(w) ? transposed(c, product(c, transposed(c, flat(c, x)), rows))
                            : product(c, transposed(c, rows), flat(c, x));
    if (row) v->in[1] = lt_reshape(c, v->in[1], lt_in_shape(v, 1));
  }
  return lt_ok(c);
}
