/* runtime/autograd/vjp_embedding_bag.c: derivatives of sums and means of rows by bags of ids.

   Each id has the gradient of its bag, times its factor or divided by the number of ids of the bag
   that count. N ids, B bags, D size of a row. */
#include "autograd/vjp.h"
#include "ops/expand.h"

/* [N]: the bag of each id. */
static lt_tensor *bags_of(lt_ctx *c, lt_shape ids, lt_tensor *offsets, lt_device device) {
  int64_t n = lt_shape_numel(ids);
  if (offsets == NULL)
    return lt_binary_scalar(c, LT_OP_floor_divide, lt_counting(c, n, device),
                            lt_scalar_int(ids.size[1]));
  lt_tensor *none = lt_full(c, lt_one_dim(n + 1), lt_scalar_int(0), LT_I64, device);
  lt_tensor *one = lt_full(c, lt_one_dim(offsets->numel), lt_scalar_int(1), LT_I64, device);
  lt_tensor *begun = lt_apply1(c, LT_OP_scatter_add, LT_IN(none, offsets, one),
                               &(lt_args_scatter_add){.dim = 0});
  begun = lt_apply1(c, LT_OP_cumsum, 1, &begun, &(lt_args_scan){.dim = 0});
  begun = lt_ok(c) ? lt_slice(c, begun, 0, 0, n, 1) : NULL;
  return begun == NULL ? NULL : lt_binary_scalar(c, LT_OP_sub, begun, lt_scalar_int(1));
}

/* g [B, D] divided by how many ids of each bag are not `skip`, at least 1. */
static lt_tensor *shared(lt_ctx *c, lt_tensor *g, lt_tensor *ids, lt_tensor *bags, int64_t skip) {
  lt_tensor *counts = lt_binary_scalar(c, LT_OP_ne, ids, lt_scalar_int(skip));
  lt_tensor *n = lt_full(c, lt_one_dim(g->size[0]), lt_scalar_int(0), LT_I64, g->storage->device);
  n = lt_ok(c) ? lt_apply1(c, LT_OP_scatter_add, LT_IN(n, bags, lt_cast(c, counts, LT_I64)),
                           &(lt_args_scatter_add){.dim = 0}) : NULL;
  if (n == NULL) return NULL;
  n = lt_cast(c, lt_at_least(c, n, 1), (lt_dtype)g->dtype);
  lt_shape column = {.ndim = 2, .size = {g->size[0], 1}};
  return lt_ok(c) ? lt_binary(c, LT_OP_div, g, lt_reshape(c, n, column)) : NULL;
}

/* The gradient of the factors: a product of the row and the gradient of the bag for each id. */
static lt_tensor *of_factors(lt_ctx *c, lt_vjp_call *v, lt_tensor *ids, lt_tensor *each,
                             int64_t skip) {
  lt_tensor *weight = lt_saved_in(c, v, 0);
  if (weight == NULL) return NULL;
  lt_tensor *rows = lt_apply1(c, LT_OP_embedding, LT_IN(weight, ids),
                              &(lt_args_embedding){.padding_idx = skip});
  lt_tensor *product = lt_ok(c) ? lt_summed(c, lt_mul(c, rows, each), 1, false) : NULL;
  if (product != NULL && skip != LT_NO_INDEX)
    product = lt_filled(c, product, lt_binary_scalar(c, LT_OP_eq, ids, lt_scalar_int(skip)), 0);
  return product == NULL ? NULL : lt_reshape(c, product, lt_in_shape(v, 3));
}

bool lt_vjp_embedding_bag(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_embedding_bag *a = v->args;
  bool by_offsets = lt_in_shape(v, 1).ndim == 1, by_factors = v->node->n_in > 3;
  by_factors = by_factors && lt_in_shape(v, 3).ndim > 0; /* absent: no dims */
  lt_tensor *ids = lt_saved_in(c, v, 1), *g = v->grad[0];
  lt_tensor *offsets = by_offsets ? lt_saved_in(c, v, 2) : NULL;
  lt_tensor *factors = by_factors && v->need[0] ? lt_saved_in(c, v, 3) : NULL;
  if (!lt_ok(c)) return false;
  ids = lt_cast(c, lt_flat(c, ids), LT_I64);
  lt_tensor *bags = bags_of(c, lt_in_shape(v, 1), offsets, g->storage->device);
  if (a->mean && lt_ok(c)) g = shared(c, g, ids, bags, a->padding_idx);
  lt_tensor *each = lt_ok(c) ? lt_taken(c, g, 0, bags) : NULL; /* [N, D] */
  if (by_factors && v->need[3] && each != NULL)
    v->in[3] = of_factors(c, v, ids, each, a->padding_idx);
  if (!v->need[0] || !lt_ok(c)) return lt_ok(c);
  if (factors != NULL)
    each = lt_mul(c, each, lt_reshape(c, factors, (lt_shape){.ndim = 2, .size = {ids->numel, 1}}));
  v->in[0] = lt_apply1(c, LT_OP_index_select_backward, LT_IN(each, ids),
                       &(lt_args_index_select_backward){.dim = 0, .size = lt_in_shape(v, 0).size[0],
                                                        .skip = a->padding_idx});
  return lt_ok(c);
}
