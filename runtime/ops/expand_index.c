/* runtime/ops/expand_index.c: composite ops that choose elements.

   Indexing by several tensors (index_get, index_put) turns them into one list of rows: the indexed
   dims are moved to the front and joined, so that every gradient is that of index_select.

   sort is topk of all elements. */
#include <string.h>

#include "ops/expand.h"

/* x + the gradient rule of index_select, whose kernel adds rows with the same index in a fixed
   order (atomic adds would not), at the cost of a tensor of x's size. */
bool lt_expand_index_add(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_index_add *a = call->args;
  lt_tensor *x = call->in[0];
  const lt_args_index_select_backward args = {
      .dim = a->dim, .size = x->ndim > 0 ? x->size[a->dim] : 1, .skip = LT_NO_INDEX};
  lt_tensor *src = lt_times(c, call->in[2], a->alpha, "alpha");
  lt_tensor *spread = lt_apply1(c, LT_OP_index_select_backward, LT_IN(src, call->in[1]), &args);
  *out = lt_cast(c, lt_binary(c, LT_OP_add, x, spread), (lt_dtype)x->dtype);
  return *out != NULL;
}

/* The mask x != 0 decides, so NaN is nonzero; positions in row-major order, [n, dims], count from 0
   here. */
bool lt_expand_nonzero(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0];
  if (x->dtype != LT_BOOL) x = lt_binary_scalar(c, LT_OP_ne, x, lt_scalar_int(0));
  *out = lt_apply1(c, LT_OP_mask_positions, 1, &x, NULL);
  return *out != NULL;
}

/* How x lies while it is indexed: [rows, rest...]; and back. Of x [A, B, C, D] indexed in dims B
   and D: order = B D A C, rows = the product B D, rest = A C. A step in one row of [rows, rest] is
   then what a list of indices (flattened to b D + d) selects. */
typedef struct plan {
  int n;                       /* indexed dims */
  int order[LT_MAX_DIMS];      /* dims of x: the indexed ones, then the rest */
  lt_shape index, rest;        /* of all indices together; of what is not indexed */
  lt_shape moved;              /* x's sizes in `order` */
  int64_t rows;
  int at;                      /* where the index dims stand in the result */
  lt_tensor *list;             /* [N]: rows */
} plan;

static lt_shape one_dim(int64_t n) { return lt_shape_of(1, &n); }

/* The sizes of `first`, then those of `rest`. */
static lt_shape joined(lt_shape first, lt_shape rest) {
  for (int k = 0; k < rest.ndim; k++) first.size[first.ndim++] = rest.size[k];
  return first;
}

/* Before how many of the rest the index dims stand, as in PyTorch: where the first list does if no
   dim is left between the lists, else 0. An index without dims selects: it is not one of them. */
static int place_of_index(const lt_dims *dims, lt_tensor *const *index, const bool *indexed) {
  int first = -1, last = -1, at = 0;
  for (int k = 0; k < dims->n; k++) {
    if (index[k]->ndim == 0) continue;
    last = (int)dims->dim[k];
    if (first < 0) first = last;
  }
  for (int d = 0; d < last; d++) {
    if (indexed[d]) continue;
    if (d > first) return 0;
    at++;
  }
  return at;
}

/* The index tensors are broadcast against each other and flattened into one list of row numbers,
   which index_flatten checks against the sizes of x: one op on the device, so that a wrong index is
   reported without waiting (value_error.c). */
static bool make_plan(lt_ctx *c, plan *p, const lt_tensor *x, const lt_dims *dims,
                      lt_tensor *const *index) {
  *p = (plan){.n = dims->n, .rows = 1};
  bool indexed[LT_MAX_DIMS] = {false};
  for (int k = 0; k < dims->n; k++) {
    indexed[dims->dim[k]] = true;
    p->order[k] = (int)dims->dim[k];
    p->rows *= x->size[dims->dim[k]];
  }
  p->at = place_of_index(dims, index, indexed);
  for (int k = 0; k < x->ndim; k++) {
    if (indexed[k]) continue;
    p->order[p->n + p->rest.ndim] = k;
    p->rest.size[p->rest.ndim++] = x->size[k];
  }
  p->moved.ndim = x->ndim;
  for (int k = 0; k < x->ndim; k++) p->moved.size[k] = x->size[p->order[k]];
  lt_args_index_flatten args = {.dims = *dims, .full = {.n = x->ndim}};
  memcpy(args.full.size, x->size, sizeof args.full.size);
  lt_tensor *list = lt_apply1(c, LT_OP_index_flatten, dims->n, index, &args);
  if (list == NULL) return false;
  p->index = lt_tensor_shape(list);
  if (p->index.ndim + p->rest.ndim > LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "%s: the result of indices of %s in %s has too many dims", c->op,
                   LT_SHAPE_STR(p->index), LT_TENSOR_STR(x));
  p->list = lt_reshape(c, list, one_dim(list->numel));
  return p->list != NULL;
}

/* x as [rows, rest...] */
static lt_tensor *as_rows(lt_ctx *c, const plan *p, lt_tensor *x) {
  lt_tensor *moved = lt_permute(c, x, p->order);
  return moved == NULL ? NULL : lt_reshape(c, moved, joined(one_dim(p->rows), p->rest));
}

/* Order of the result's dims, given as [index..., rest...]: its dim k is that of order[k]. */
static void result_order(const plan *p, int *order) {
  int n = p->index.ndim + p->rest.ndim;
  for (int k = 0; k < n; k++)
    order[k] = k < p->at                    ? p->index.ndim + k
               : k < p->at + p->index.ndim ? k - p->at
                                            : k;
}

/* x[i, j, ...]: index_select of rows, one gather in place of a loop over indices. A single index
   needs no permutation, and so no copy of x: the usual case (x:index_select, rows of a table). */
bool lt_expand_index_get(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_index_get *a = call->args;
  lt_tensor *x = call->in[0];
  plan p;
  if (!make_plan(c, &p, x, &a->dims, call->in + 1)) return false;
  if (p.n == 1) { /* one index: no dim moves */
    lt_shape s = lt_shape_of((int)a->dims.dim[0], x->size);
    s = joined(s, p.index);
    for (int k = (int)a->dims.dim[0] + 1; k < x->ndim; k++) s.size[s.ndim++] = x->size[k];
    lt_tensor *y = lt_apply1(c, LT_OP_index_select, LT_IN(x, p.list),
                             &(lt_args_index_select){.dim = a->dims.dim[0]});
    *out = y == NULL ? NULL : lt_reshape(c, y, s);
    return *out != NULL;
  }
  x = as_rows(c, &p, x);
  lt_tensor *y =
      lt_apply1(c, LT_OP_index_select, LT_IN(x, p.list), &(lt_args_index_select){.dim = 0});
  if (y == NULL) return false;
  int order[LT_MAX_DIMS];
  result_order(&p, order);
  y = lt_reshape(c, y, joined(p.index, p.rest));
  *out = y == NULL ? NULL : lt_permute(c, y, order);
  return *out != NULL;
}

/* Values, broadcast to the indexed part and laid out as [N, rest...]. */
static lt_tensor *values_as_rows(lt_ctx *c, const plan *p, lt_tensor *v) {
  int order[LT_MAX_DIMS], back[LT_MAX_DIMS];
  lt_shape whole = joined(p->index, p->rest), placed = whole;
  result_order(p, order);
  for (int k = 0; k < whole.ndim; k++) placed.size[k] = whole.size[order[k]];
  for (int k = 0; k < whole.ndim; k++) back[order[k]] = k;
  lt_shape fit = placed;
  if (!lt_shape_broadcast(&fit, lt_tensor_shape(v)) || !lt_shape_equal(fit, placed)) {
    lt_fail(c, LT_ESHAPE, "index: values of %s do not fit into the indexed part %s",
            LT_TENSOR_STR(v), LT_SHAPE_STR(placed));
    return NULL;
  }
  v = lt_expand_to(c, v, placed);
  v = v == NULL ? NULL : lt_permute(c, v, back);
  return v == NULL ? NULL : lt_reshape(c, v, joined(one_dim(p->list->numel), p->rest));
}

/* x with values at the indices: a copy of x as rows, rows_put, and the permutation back.
   `accumulate` adds where rows repeat; without it the last value stays. */
bool lt_expand_index_put(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_index_put *a = call->args;
  lt_tensor *x = call->in[0];
  plan p;
  if (!make_plan(c, &p, x, &a->dims, call->in + 2)) return false;
  lt_tensor *v = values_as_rows(c, &p, call->in[1]);
  lt_tensor *rows = v == NULL ? NULL : as_rows(c, &p, x);
  if (rows == NULL) return false;
  lt_tensor *y = lt_apply1(c, LT_OP_rows_put, LT_IN(rows, v, p.list),
                           &(lt_args_rows_put){.accumulate = a->accumulate});
  y = y == NULL ? NULL : lt_reshape(c, y, p.moved);
  int back[LT_MAX_DIMS];
  for (int k = 0; k < x->ndim; k++) back[p.order[k]] = k;
  *out = y == NULL ? NULL : lt_permute(c, y, back);
  return *out != NULL;
}

/* One index tensor a dim of the mask: the columns of nonzero. */
static bool columns(lt_ctx *c, lt_tensor *mask, lt_tensor **index) {
  lt_tensor *positions = lt_apply1(c, LT_OP_mask_positions, 1, &mask, NULL);
  for (int k = 0; k < mask->ndim && positions != NULL; k++)
    index[k] = lt_select(c, positions, 1, k);
  return lt_ok(c);
}

/* x where the mask is true, as a list: of the flattened broadcast pair the positions, then
   index_select. Its gradient is zeros with the gradient's elements at these positions. */
bool lt_expand_masked_select(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *x = call->in[0], *mask = call->in[1];
  lt_shape both = lt_tensor_shape(x);
  if (!lt_assert(c, lt_shape_broadcast(&both, lt_tensor_shape(mask)))) return false;
  const lt_shape list = one_dim(lt_shape_numel(both));
  x = lt_reshape(c, lt_expand_to(c, x, both), list);
  mask = lt_reshape(c, lt_expand_to(c, mask, both), list);
  lt_tensor *index;
  if (x == NULL || mask == NULL || !columns(c, mask, &index)) return false;
  *out = lt_apply1(c, LT_OP_index_select, LT_IN(x, index), &(lt_args_index_select){.dim = 0});
  return *out != NULL;
}

/* x with `values` where a mask over its first dims is true. One value for all is `where`, which
   needs no positions and does not wait for the device to count them. */
bool lt_expand_masked_put(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  lt_tensor *in[2 + LT_MAX_DIMS] = {call->in[0], call->in[2]}, *mask = call->in[1];
  if (call->in[2]->ndim == 0 || mask->ndim == 0) { /* one value for all */
    lt_shape s = lt_tensor_shape(mask);
    while (s.ndim < in[0]->ndim) s.size[s.ndim++] = 1;
    mask = lt_reshape(c, mask, s);
    *out = lt_cast(c, lt_apply1(c, LT_OP_where, LT_IN(mask, in[1], in[0]), NULL),
                   (lt_dtype)in[0]->dtype);
    return *out != NULL;
  }
  if (!columns(c, mask, in + 2)) return false;
  *out = lt_apply1(c, LT_OP_index_put, 2 + mask->ndim, in, NULL);
  return *out != NULL;
}

/* One kernel serves both, so that they order NaNs and
   equal elements alike. */
bool lt_expand_sort(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_sort *a = call->args;
  const lt_tensor *x = call->in[0];
  const lt_args_topk args = {.k = x->ndim > 0 ? x->size[a->dim] : 1, .dim = a->dim,
                             .largest = a->descending, .sorted = true};
  return lt_apply(c, LT_OP_topk, 1, call->in, &args, 2, out);
}

bool lt_expand_argsort(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_argsort *a = call->args;
  lt_tensor *both[2] = {NULL};
  const lt_args_sort args = {.dim = a->dim, .descending = a->descending};
  if (!lt_apply(c, LT_OP_sort, 1, call->in, &args, 2, both)) return false;
  *out = both[1];
  return true;
}
