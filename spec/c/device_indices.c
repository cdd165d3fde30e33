/* spec/c/device_indices.c: part of device_conformance: calls that choose, order and place
   elements. */
#include "device_cases.h"

static lt_tensor *mask_of(lt_ctx *c, lt_shape s) {
  return lt_cast(c, values(c, LT_I64, s, 9, 0, 2), LT_BOOL);
}

bool embedding_trial(lt_ctx *c, trial *t) {
  if (t->number > 1) return false;
  put(c, t, 0, SHAPE(10, 6));
  put_ids(c, t, 1, t->number == 0 ? SHAPE(3, 4) : SHAPE(0), 10);
  return true;
}

bool embedding_bag_trial(lt_ctx *c, trial *t) {
  if (t->number > 1) return false;
  *(bool *)(void *)t->args = t->number == 1;
  put(c, t, 0, SHAPE(10, 6));
  put_ids(c, t, 1, SHAPE(3, 4), 10);
  return true;
}

bool index_select_trial(lt_ctx *c, trial *t) {
  *(int64_t *)(void *)t->args = t->number;
  if (t->number > 1) return false;
  put(c, t, 0, SHAPE(5, 5));
  put_ids(c, t, 1, SHAPE(7), 5);
  return true;
}

/* As many rows as index_select took, some of them from one place; one place gets none. */
bool index_select_backward_trial(lt_ctx *c, trial *t) {
  lt_args_index_select_backward *a = (lt_args_index_select_backward *)(void *)t->args;
  int64_t n = t->number == 2 ? 700 : 7;
  if (t->number > 2) return false;
  a->dim = t->number == 1;
  a->size = 5;
  if (t->number == 0) a->skip = 2;
  put(c, t, 0, a->dim == 1 ? SHAPE(6, n) : SHAPE(n, 6));
  put_ids(c, t, 1, SHAPE(n), 5);
  t->slack = 60;
  return true;
}

bool gather_trial(lt_ctx *c, trial *t) {
  *(int64_t *)(void *)t->args = t->number;
  if (t->number > 1) return false;
  put(c, t, 0, SHAPE(5, 5));
  put_ids(c, t, 1, SHAPE(4, 3), 5);
  return true;
}

bool where_trial(lt_ctx *c, trial *t) {
  if (t->number >= SHAPES) return false;
  for (int k = 1; k < 3; k++) put(c, t, k, shape_of(t->number));
  t->in[0] = mask_of(c, shape_of(t->number));
  return true;
}

bool masked_fill_trial(lt_ctx *c, trial *t) {
  ((lt_args_masked_fill *)(void *)t->args)->value = lt_scalar_int(3);
  if (t->number >= SHAPES) return false;
  put(c, t, 0, shape_of(t->number));
  t->in[1] = mask_of(c, shape_of(t->number));
  t->n = 2;
  return true;
}

bool triangle_trial(lt_ctx *c, trial *t) {
  ((lt_args_triangle *)(void *)t->args)->diagonal = t->number - 1;
  put(c, t, 0, SHAPE(2, 5, 7));
  return t->number < 3;
}

bool join_trial(lt_ctx *c, trial *t) {
  if (t->number > 1) return false;
  *(int64_t *)(void *)t->args = t->number;
  for (int k = 0; k < 3; k++) put(c, t, k, SHAPE(4, 5));
  return true;
}


/* Several sources for one place. */
bool scatter_add_trial(lt_ctx *c, trial *t) {
  *(int64_t *)(void *)t->args = t->number % 2;
  if (t->number > 2) return false;
  int64_t n = t->number == 2 ? 301 : 4;
  put(c, t, 0, SHAPE(5, 5));
  put_ids(c, t, 1, SHAPE(n, 3), 5);
  put(c, t, 2, SHAPE(n, 4));
  t->slack = 60;
  return true;
}

bool extremum_backward_trial(lt_ctx *c, trial *t) {
  lt_args_extremum_backward *a = (lt_args_extremum_backward *)(void *)t->args;
  if (t->number > 1) return false;
  a->dim = t->number;
  a->size = 9;
  put(c, t, 0, t->number == 0 ? SHAPE(1, 7) : SHAPE(7, 1));
  put_ids(c, t, 1, lt_tensor_shape(t->in[0]), 9);
  return true;
}

/* The largest or smallest k of rows; all of them are a sort. */
bool topk_trial(lt_ctx *c, trial *t) {
  lt_args_topk *a = (lt_args_topk *)(void *)t->args;
  int64_t n = t->number < 2 ? 9 : t->number == 2 ? 1500 : 5001;
  bool long_rows = t->dtype == LT_F32 || t->dtype == LT_BF16 || t->dtype == LT_I64;
  if (t->number > (long_rows ? 4 : 1)) return false;
  a->dim = t->number % 2;
  a->k = t->number == 2 ? 1500 : t->number == 3 ? 40 : 4;
  a->largest = t->number != 1;
  put(c, t, 0, a->dim == 0 ? SHAPE(n, 3) : SHAPE(3, n));
  return true;
}

bool one_hot_trial(lt_ctx *c, trial *t) {
  ((lt_args_one_hot *)(void *)t->args)->num_classes = 5;
  put_ids(c, t, 0, SHAPE(3, 7), 5);
  return t->number == 0;
}

bool mask_positions_trial(lt_ctx *c, trial *t) {
  t->in[0] = mask_of(c, t->number == 0 ? SHAPE(4, 301) : SHAPE(0, 3));
  t->n = 1;
  return t->number < 2;
}

/* Row numbers in a [5, 7] of two indices that broadcast. */
bool index_flatten_trial(lt_ctx *c, trial *t) {
  lt_args_index_flatten *a = (lt_args_index_flatten *)(void *)t->args;
  a->dims = (lt_dims){.n = 2, .dim = {0, 1}};
  a->full = (lt_sizes){.n = 2, .size = {5, 7}};
  put_ids(c, t, 0, SHAPE(3, 1), 5);
  put_ids(c, t, 1, SHAPE(4), 7);
  return t->number == 0;
}

/* Set, with no row twice: which of two wins is not defined. Added: several to one row. */
bool rows_put_trial(lt_ctx *c, trial *t) {
  bool add = ((lt_args_rows_put *)(void *)t->args)->accumulate = t->number == 1;
  if (t->number > 1) return false;
  put(c, t, 0, SHAPE(9, 6));
  put(c, t, 1, SHAPE(4, 6));
  if (add)
    put_ids(c, t, 2, SHAPE(4), 3);
  else
    t->in[2] = lt_slice(c, lt_apply1(c, LT_OP_randperm, 0, NULL, &(lt_args_permutation){.n = 9,
                                     .dtype = LT_I64, .device = LT_CPU_DEVICE}), 0, 0, 4, 1);
  t->n = 3;
  t->slack = 5;
  return lt_ok(c);
}

/* A part of [6, 8]: every second column of rows 2 to 4. */
static lt_args_as_strided part(void) {
  return (lt_args_as_strided){.size = {.n = 2, .size = {3, 4}}, .stride = {.n = 2, .size = {8, 2}},
                              .offset = 9};
}

bool as_strided_trial(lt_ctx *c, trial *t) { /* _scatter with a source, _zero */
  lt_args_as_strided a = part();
  memcpy(t->args, &a, sizeof a);
  put(c, t, 0, SHAPE(6, 8));
  if (lt_ops[t->op].kind == LT_KIND_as_strided_scatter) put(c, t, 1, SHAPE(3, 4));
  return t->number == 0;
}

bool as_strided_backward_trial(lt_ctx *c, trial *t) {
  lt_args_as_strided a = part();
  lt_args_as_strided_backward b = {.full = {.n = 2, .size = {6, 8}}, .size = a.size,
                                   .stride = a.stride, .offset = a.offset};
  memcpy(t->args, &b, sizeof b);
  put(c, t, 0, SHAPE(3, 4));
  return t->number == 0;
}
