/* runtime/autograd/vjp_index.c: derivatives of indexing: gather, index_select, embedding, where,
   masked_fill, topk, triangles.

   Reading at an index is linear in x, and its adjoint adds at the index: where an element was read
   twice, its gradient is the sum of both. So each op that reads has a backward op that scatters
   with addition, and the derivative of that one reads again. Indices have no derivative. */
#include "autograd/vjp.h"

static lt_tensor *zeros(lt_ctx *c, lt_shape shape, const lt_tensor *like) {
  return lt_full(c, shape, lt_scalar_of(0), (lt_dtype)like->dtype, like->storage->device);
}

/* g where `mask` is false, 0 elsewhere. */
static lt_tensor *clear(lt_ctx *c, lt_tensor *g, lt_tensor *mask) {
  return lt_apply1(c, LT_OP_masked_fill, LT_IN(g, mask),
                   &(lt_args_masked_fill){.value = lt_scalar_of(0)});
}

static lt_tensor *take(lt_ctx *c, lt_tensor *x, lt_tensor *index, int64_t dim) {
  return lt_apply1(c, LT_OP_index_select, LT_IN(x, index), &(lt_args_index_select){.dim = dim});
}

static lt_tensor *select_backward(lt_ctx *c, lt_tensor *g, lt_tensor *index, int64_t dim,
                                  int64_t size, int64_t skip) {
  return lt_apply1(c, LT_OP_index_select_backward, LT_IN(g, index),
                   &(lt_args_index_select_backward){.dim = dim, .size = size, .skip = skip});
}

bool lt_vjp_index_select(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_index_select *a = v->args;
  lt_tensor *index = lt_saved_in(c, v, 1);
  if (index == NULL) return false;
  lt_shape in = lt_in_shape(v, 0);
  int64_t size = in.ndim > 0 ? in.size[a->dim] : 1;
  v->in[0] = select_backward(c, v->grad[0], index, a->dim, size, LT_NO_INDEX);
  return lt_ok(c);
}

bool lt_vjp_index_select_backward(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_index_select_backward *a = v->args;
  lt_tensor *index = lt_saved_in(c, v, 1), *g = v->grad[0];
  if (index == NULL) return false;
  if (a->skip != LT_NO_INDEX) { /* row `skip` got nothing from anywhere */
    lt_shape one = lt_tensor_shape(g);
    for (int k = 0; k < one.ndim; k++) one.size[k] = k == a->dim ? index->numel : 1;
    lt_tensor *mask = lt_binary_scalar(c, LT_OP_eq, index, lt_scalar_int(a->skip));
    mask = mask == NULL ? NULL : lt_reshape(c, mask, one);
    v->in[0] = clear(c, take(c, g, index, a->dim), mask);
    return lt_ok(c);
  }
  v->in[0] = take(c, g, index, a->dim);
  return lt_ok(c);
}

/* ids of any shape are flattened, and the rows of g are added at them: the gradient has the size of
   the complete table, also if a batch uses few of its rows, as in PyTorch with sparse = false. */
bool lt_vjp_embedding(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_embedding *a = v->args;
  lt_tensor *ids = lt_saved_in(c, v, 1);
  lt_shape table = lt_in_shape(v, 0);
  if (ids == NULL) return false;
  lt_tensor *g =
      lt_reshape(c, v->grad[0], (lt_shape){.ndim = 2, .size = {ids->numel, table.size[1]}});
  ids = lt_reshape(c, ids, (lt_shape){.ndim = 1, .size = {ids->numel}});
  v->in[0] = select_backward(c, g, ids, 0, table.size[0], a->padding_idx);
  return lt_ok(c);
}

/* zeros of `shape`, plus g at `index` */
static lt_tensor *scatter(lt_ctx *c, lt_shape shape, lt_tensor *index, lt_tensor *g, int64_t dim) {
  lt_tensor *out = zeros(c, shape, g);
  const lt_args_scatter_add args = {.dim = dim};
  return lt_apply(c, LT_OP_scatter_add, LT_IN(out, index, g), &args, 1, &out) ? out : NULL;
}

/* Of y[k] = x[index[k]]: each g is added where its element came from; an element that was taken
   twice has both. */
bool lt_vjp_gather(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_gather *a = v->args;
  lt_tensor *index = lt_saved_in(c, v, 1);
  v->in[0] = index == NULL ? NULL : scatter(c, lt_in_shape(v, 0), index, v->grad[0], a->dim);
  return lt_ok(c);
}

/* (x, index, src); src may be larger than the index. */
bool lt_vjp_scatter_add(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_scatter_add *a = v->args;
  if (v->need[0]) v->in[0] = v->grad[0];
  lt_tensor *index = v->need[2] ? lt_saved_in(c, v, 1) : NULL;
  if (index == NULL) return lt_ok(c);
  lt_shape src = lt_in_shape(v, 2);
  lt_tensor *g = lt_apply1(c, LT_OP_gather, LT_IN(v->grad[0], index),
                           &(lt_args_gather){.dim = a->dim});
  if (g != NULL && lt_shape_numel(src) == g->numel) {
    g = lt_reshape(c, g, src);
  } else if (g != NULL) {
    lt_args_as_strided_backward pad = {
        .full = {.n = src.ndim}, .size = {.n = src.ndim}, .stride = {.n = src.ndim}};
    lt_shape_strides(src, pad.stride.size);
    for (int k = 0; k < src.ndim; k++)
      pad.full.size[k] = src.size[k], pad.size.size[k] = g->size[k];
    g = lt_apply1(c, LT_OP_as_strided_backward, 1, &g, &pad);
  }
  v->in[2] = g;
  return lt_ok(c);
}

/* (x, src, rows): without accumulate, x is overwritten at the rows. */
bool lt_vjp_rows_put(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_rows_put *a = v->args;
  lt_tensor *g = v->grad[0], *rows = lt_saved_in(c, v, 2);
  if (rows == NULL) return false;
  if (v->need[0] && a->accumulate) v->in[0] = g;
  if (v->need[0] && !a->accumulate)
    v->in[0] =
        lt_apply1(c, LT_OP_rows_put, LT_IN(g, zeros(c, lt_in_shape(v, 1), g), rows), v->args);
  if (v->need[1]) v->in[1] = take(c, g, rows, 0);
  return lt_ok(c);
}

bool lt_vjp_masked_fill(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *mask = lt_saved_in(c, v, 1);
  v->in[0] = mask == NULL ? NULL : lt_sum_to(c, clear(c, v->grad[0], mask), lt_in_shape(v, 0));
  return lt_ok(c);
}

/* (condition, a, b) */
bool lt_vjp_where(lt_ctx *c, lt_vjp_call *v) {
  lt_tensor *mask = lt_saved_in(c, v, 0), *g = v->grad[0];
  if (mask == NULL) return false;
  if (v->need[1]) {
    lt_tensor *other = lt_unary(c, LT_OP_logical_not, mask);
    v->in[1] = lt_sum_to(c, clear(c, g, other), lt_in_shape(v, 1));
  }
  if (v->need[2]) v->in[2] = lt_sum_to(c, clear(c, g, mask), lt_in_shape(v, 2));
  return lt_ok(c);
}

bool lt_vjp_triangle(lt_ctx *c, lt_vjp_call *v) {
  v->in[0] = lt_apply1(c, v->node->op, 1, &v->grad[0], v->args);
  return lt_ok(c);
}

/* The values are x at the indices that forward found; the indices, integers, have no gradient. */
bool lt_vjp_topk(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_topk *a = v->args;
  lt_shape shape = lt_in_shape(v, 0);
  lt_tensor *index = lt_saved_out(c, v, 1);
  if (index == NULL || v->grad[0] == NULL) return lt_ok(c);
  v->in[0] = shape.ndim == 0 ? v->grad[0] : scatter(c, shape, index, v->grad[0], a->dim);
  return lt_ok(c);
}
