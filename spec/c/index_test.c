/* spec/c/index_test.c: choosing elements by index, against loops over coordinates. */
#include "index_test.h"

/* index_select and what adds up again. */

static lt_tensor *take(lt_ctx *c, lt_tensor *x, lt_tensor *index, int64_t dim) {
  return lt_apply1(c, LT_OP_index_select, LT_IN(x, index), &(lt_args_index_select){.dim = dim});
}

static void index_select_takes_parts(void **state) {
  lt_ctx *c = *state;
  lt_tensor *base = whole(c, SHAPE(4, 3, 5), 100, 1);
  plain from = plain_of(c, base);
  for (int which = 0; which < VARIANTS; which++)
    for (int dim = 0; dim < 3; dim++) {
      lt_tensor *index = variant(c, TENSOR(c, LT_I64, SHAPE(5), 2, 0, 0, 1, 2),
                                 AS_I64 + which / STRIDED * STRIDED);
      if (which % 2 == 1) index = lt_cast(c, index, LT_I32);
      lt_tensor *y = take(c, variant(c, base, which), index, dim - 3);
      expect_ok(c);
      assert_int_equal(y->size[dim], 5);
      plain to = plain_of(c, y);
      double *wanted = values_of(c, index);
      for (int64_t k = 0; k < y->numel; k++) {
        int64_t at[LT_MAX_DIMS];
        coordinates(to.shape, k, at);
        at[dim] = (int64_t)wanted[at[dim]];
        assert_true(to.v[k] == get(&from, at));
      }
      free(to.v), free(wanted);
    }
  free(from.v);
  lt_tensor *nothing = lt_full(c, SHAPE(0), lt_scalar_int(0), LT_I64, LT_CPU_DEVICE);
  expect_shape(take(c, base, nothing, 1), SHAPE(4, 0, 5));
  expect_shape(take(c, base, TENSOR(c, LT_I64, SHAPE0, 1), 1), SHAPE(4, 1, 5));
}

static void indices_out_of_range_are_named(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(5, 3), 1, 0, 1);
  lt_tensor *seven = TENSOR(c, LT_I64, SHAPE(2), 1, 7), *below = TENSOR(c, LT_I64, SHAPE(1), -1);
  take(c, x, seven, 0);
  expect_failure(c, LT_EVALUE, "index_select: index 7 is out of 0..4 (dim 1 of [5, 3])");
  take(c, x, below, 1);
  expect_failure(c, LT_EVALUE, "index_select: index -1 is out of 0..2 (dim 2 of [5, 3])");
  take(c, lt_full(c, SHAPE(0, 3), lt_scalar_int(0), LT_F32, LT_CPU_DEVICE), seven, 0);
  expect_failure(c, LT_EVALUE, "index_select: index 1 into an empty dim (dim 1 of [0, 3])");
  take(c, x, TENSOR(c, LT_F32, SHAPE(1), 1), 0);
  expect_failure(c, LT_EDTYPE, "index_select: indices must be integers, got f32; write x:long()");
  take(c, x, TENSOR(c, LT_I64, SHAPE(1, 1), 1), 0);
  expect_failure(c, LT_ESHAPE, "index_select: the index must have one dim, got [1, 1]");
  lt_apply1(c, LT_OP_embedding, LT_IN(x, seven), NULL);
  expect_failure(c, LT_EVALUE, "embedding: index 7 is out of 0..4 (dim 1 of [5, 3])");
  lt_apply1(c, LT_OP_gather, LT_IN(x, lt_reshape(c, seven, SHAPE(2, 1))), &(lt_args_gather){0});
  expect_failure(c, LT_EVALUE, "gather: index 7 is out of 0..4 (dim 1 of [5, 3])");
}

static lt_tensor *fn_select(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return take(c, in[0], in[1], *(int *)ud);
}
static lt_tensor *fn_add(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_index_add, 3, in,
                   &(lt_args_index_add){.dim = *(int *)ud, .alpha = 2.5});
}
static lt_tensor *fn_spread(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(
      c, LT_OP_index_select_backward, 2, in,
      &(lt_args_index_select_backward){.dim = *(int *)ud, .size = 40, .skip = LT_NO_INDEX});
}

static void sums_at_indices_undo_it(void **state) {
  lt_ctx *c = *state;
  lt_tensor *index = TENSOR(c, LT_I64, SHAPE(4), 2, 0, 2, 1);
  for (int dim = 0; dim < 2; dim++) {
    lt_shape part = SHAPE(3, 3);
    part.size[dim] = 4;
    lt_tensor *x = tensor_random(c, LT_F64, SHAPE(3, 3), 1, -1, 1);
    lt_tensor *in[] = {x, index, tensor_random(c, LT_F64, part, 2, -1, 1)};
    plain base = plain_of(c, x), src = plain_of(c, in[2]);
    for (int64_t k = 0; k < 12; k++) {
      int64_t at[2];
      coordinates(part, k, at);
      at[dim] = ((int64_t[]){2, 0, 2, 1})[at[dim]];
      base.v[place(base.shape, at)] += 2.5 * src.v[k];
    }
    expect_values(c, fn_add(c, in, &dim), base.v, 1e-14);
    in[2] = tensor_strided(c, in[2]);
    expect_values(c, fn_add(c, in, &dim), base.v, 1e-14);
    free(base.v), free(src.v);
    lt_tensor *leaves[] = {tensor_random(c, LT_F64, SHAPE(3, 3), 1, -1, 1), index,
                           tensor_random(c, LT_F64, part, 2, -1, 1)};
    check_gradient(c, fn_select, &dim, 2, leaves, 0, 1e-7);
    check_gradient(
        c, fn_add, &dim, 3,
        (lt_tensor *[]){tensor_random(c, LT_F64, SHAPE(3, 3), 1, -1, 1), index, leaves[2]}, 0,
        1e-7);
  }
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(3), 1, 2, 3), *src = TENSOR(c, LT_F32, SHAPE(2), 1, 2);
  lt_apply1(c, LT_OP_index_add, LT_IN(x, index, src), &(lt_args_index_add){.alpha = 1});
  expect_failure(c, LT_ESHAPE,
                 "index_add: 4 indices into dim 1 of [3] need a source of [4], got [2]");
}

/* Elements of lines. */

static void gather_takes_elements_of_lines(void **state) {
  lt_ctx *c = *state;
  lt_tensor *base = whole(c, SHAPE(4, 3, 5), 100, 1);
  plain from = plain_of(c, base);
  for (int which = 0; which < VARIANTS; which++)
    for (int dim = 0; dim < 3; dim++) {
      lt_shape s = SHAPE(3, 2, 4); /* smaller than x in every dim */
      s.size[dim] = 6;
      lt_tensor *index = whole(c, s, 3, 2);
      plain places = plain_of(c, index);
      if (which >= 5) index = tensor_strided(c, index);
      lt_tensor *y = lt_apply1(c, LT_OP_gather, LT_IN(variant(c, base, which), index),
                               &(lt_args_gather){.dim = dim});
      expect_ok(c);
      plain to = plain_of(c, y);
      for (int64_t k = 0; k < y->numel; k++) {
        int64_t at[LT_MAX_DIMS];
        coordinates(s, k, at);
        at[dim] = (int64_t)places.v[k];
        assert_true(to.v[k] == get(&from, at));
      }
      free(to.v), free(places.v);
    }
  free(from.v);
}

static void scatter_add_adds_them_up(void **state) {
  lt_ctx *c = *state;
  lt_tensor *base = whole(c, SHAPE(4, 3, 5), 9, 1), *source = whole(c, SHAPE(6, 6, 6), 5, 3);
  plain add = plain_of(c, source);
  for (int which = 0; which < VARIANTS; which++)
    for (int dim = 0; dim < 3; dim++) {
      lt_shape s = SHAPE(3, 2, 4);
      s.size[dim] = 6;
      lt_tensor *index = whole(c, s, 3, 2);
      plain places = plain_of(c, index), wanted = plain_of(c, base);
      for (int64_t k = 0; k < index->numel; k++) {
        int64_t at[LT_MAX_DIMS];
        coordinates(s, k, at);
        double value = get(&add, at);
        at[dim] = (int64_t)places.v[k];
        wanted.v[place(wanted.shape, at)] += value;
      }
      lt_tensor *y =
          lt_apply1(c, LT_OP_scatter_add,
                    LT_IN(variant(c, base, which), index,
                          variant(c, source, (which + STRIDED) % VARIANTS)),
                    &(lt_args_scatter_add){.dim = dim});
      expect_ok(c);
      expect_values(c, y, wanted.v, 0);
      free(wanted.v), free(places.v);
    }
  free(add.v);
}

static lt_tensor *fn_gather(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_gather, 2, in, &(lt_args_gather){.dim = *(int *)ud});
}
static lt_tensor *fn_scatter(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_scatter_add, 3, in, &(lt_args_scatter_add){.dim = *(int *)ud});
}

static void gradients_of_lines(void **state) {
  lt_ctx *c = *state;
  for (int dim = 0; dim < 2; dim++) {
    lt_tensor *index = whole(c, SHAPE(2, 3), 2, 4);
    lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(3, 3), 1, -1, 1), index,
                       tensor_random(c, LT_F64, SHAPE(3, 4), 2, -1, 1)};
    check_gradient(c, fn_scatter, &dim, 3, in, 0, 1e-7);
    lt_tensor *two[] = {tensor_random(c, LT_F64, SHAPE(3, 3), 1, -1, 1), index};
    check_gradient(c, fn_gather, &dim, 2, two, 0, 1e-7);
  }
}

static void lines_that_do_not_fit(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(2, 3), 1, 0, 1), *flat = whole(c, SHAPE(2), 1, 1);
  lt_tensor *tall = whole(c, SHAPE(3, 3), 1, 1), *wide = whole(c, SHAPE(2, 4), 1, 1);
  int dim = 1;
  fn_gather(c, (lt_tensor *[]){x, flat}, &dim);
  expect_failure(c, LT_ESHAPE, "gather: an index of [2] does not fit into [2, 3] along dim 2");
  fn_gather(c, (lt_tensor *[]){x, tall}, &dim);
  expect_failure(c, LT_ESHAPE, "gather: an index of [3, 3] does not fit into [2, 3] along dim 2");
  fn_scatter(c, (lt_tensor *[]){x, wide, x}, &dim);
  expect_failure(c, LT_ESHAPE,
                 "scatter_add: an index of [2, 4] is larger than its source of [2, 3]");
}

/* Embedding. */

static lt_tensor *fn_embedding(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_embedding, 2, in, &(lt_args_embedding){.padding_idx = *(int64_t *)ud});
}

static void embedding_looks_rows_up(void **state) {
  lt_ctx *c = *state;
  lt_tensor *table = whole(c, SHAPE(5, 3), 50, 1), *ids = whole(c, SHAPE(2, 4), 5, 2);
  plain rows = plain_of(c, table), id = plain_of(c, ids);
  int64_t none = LT_NO_INDEX;
  for (int which = 0; which < VARIANTS; which++) {
    lt_tensor *in[] = {variant(c, table, which),
                       variant(c, ids, which >= STRIDED ? AS_U8 + STRIDED : AS_U8)};
    lt_tensor *y = fn_embedding(c, in, &none);
    expect_shape(y, SHAPE(2, 4, 3));
    plain to = plain_of(c, y);
    for (int64_t k = 0; k < 24; k++)
      assert_true(to.v[k] == rows.v[(int64_t)id.v[k / 3] * 3 + k % 3]);
    free(to.v);
  }
  free(rows.v), free(id.v);
}

static void padding_gets_no_gradient(void **state) {
  lt_ctx *c = *state;
  int64_t none = LT_NO_INDEX, last = -1;
  lt_tensor *ids = TENSOR(c, LT_I64, SHAPE(2, 2), 4, 0, 4, 2);
  lt_tensor *in[] = {tensor_random(c, LT_F64, SHAPE(5, 2), 1, -1, 1), ids};
  check_gradient(c, fn_embedding, &none, 2, in, 0, 1e-7);
  lt_tensor *table = wants_grad(tensor_random(c, LT_F32, SHAPE(5, 2), 1, -1, 1));
  in[0] = table;
  lt_tensor *y = lt_apply1(c, LT_OP_sum, LT_IN(fn_embedding(c, in, &last)), NULL);
  assert_true(lt_backward(c, y, &(lt_backward_options){0}));
  EXPECT(c, table->grad, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0);
  last = 5;
  fn_embedding(c, in, &last);
  expect_failure(c, LT_EARG, "embedding: padding_idx 5 is out of 0..4 (weight of [5, 2])");
}

static lt_tensor *fn_bag(lt_ctx *c, lt_tensor *const *in, void *ud) {
  return lt_apply1(c, LT_OP_embedding_bag, 4, in, ud);
}

static void bags_add_rows_up(void **state) {
  lt_ctx *c = *state;
  lt_args_embedding_bag args = {.padding_idx = 2};
  lt_tensor *table = TENSOR(c, LT_F32, SHAPE(3, 2), 1, 8, 2, 4, 6, 2);
  lt_tensor *ids = TENSOR(c, LT_I64, SHAPE(5), 0, 1, 2, 1, 1);
  lt_tensor *offsets = TENSOR(c, LT_I64, SHAPE(4), 0, 3, 3, 4);
  lt_tensor *in[] = {table, ids, offsets, NULL};
  EXPECT(c, fn_bag(c, in, &args), 0, 3, 12, 0, 0, 2, 4, 2, 4);
  args.mean = true;
  EXPECT(c, fn_bag(c, in, &args), 0, 1.5, 6, 0, 0, 2, 4, 2, 4);
  in[0] = lt_cast(c, table, LT_BF16); /* exact in bf16 */
  EXPECT(c, fn_bag(c, in, &args), 0, 1.5, 6, 0, 0, 2, 4, 2, 4);
  in[0] = tensor_random(c, LT_F64, SHAPE(3, 2), 1, -1, 1);
  check_gradient(c, fn_bag, &args, 4, in, 0, 1e-7);
  args.mean = false;
  in[0] = tensor_random(c, LT_F64, SHAPE(3, 2), 2, -1, 1);
  in[3] = tensor_random(c, LT_F64, SHAPE(5), 3, -1, 1);
  check_gradient(c, fn_bag, &args, 4, in, 0, 1e-7);
  in[1] = TENSOR(c, LT_I64, SHAPE(5), 0, 1, 3, 1, 1);
  fn_bag(c, in, &args);
  expect_failure(c, LT_EVALUE, "embedding_bag: index 3 is out of 0..2 (dim 1 of [3, 2])");
}

static void sums_do_not_depend_on_threads(void **state) {
  lt_ctx *c = *state;
  int dim = 0;
  lt_tensor *in[] = {tensor_random(c, LT_F32, SHAPE(3000, 65), 1, -1, 1),
                     whole(c, SHAPE(3000), 40, 2)};
  check_threads(c, fn_spread, &dim, in);
  lt_tensor *wide[] = {tensor_random(c, LT_F32, SHAPE(65, 3000), 1, -1, 1), in[1]};
  dim = 1;
  check_threads(c, fn_spread, &dim, wide);
  lt_tensor *x = tensor_random(c, LT_F32, SHAPE(300, 300), 3, -1, 1);
  lt_tensor *lines[] = {x, whole(c, SHAPE(300, 300), 300, 4), x};
  for (dim = 0; dim < 2; dim++) {
    check_threads(c, fn_gather, &dim, lines);
    check_threads(c, fn_scatter, &dim, lines);
  }
}

static void half_sums_are_made_in_f32(void **state) {
  lt_ctx *c = *state;
  int dim = 0;
  lt_tensor *ones = lt_full(c, SHAPE(1000), lt_scalar_of(1), LT_BF16, LT_CPU_DEVICE);
  lt_tensor *index = lt_full(c, SHAPE(1000), lt_scalar_int(1), LT_I64, LT_CPU_DEVICE);
  lt_tensor *y = fn_spread(c, (lt_tensor *[]){ones, index}, &dim);
  assert_int_equal(y->dtype, LT_BF16);
  assert_true(value_at(c, y, 1) == 1000); /* adding in bf16 stops at 256 */
}

/* By several index tensors. */

typedef struct way {
  lt_dims dims;
  bool accumulate;
} way;

static lt_tensor *fn_get(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const way *w = ud;
  return lt_apply1(c, LT_OP_index_get, 1 + w->dims.n, in, &(lt_args_index_get){.dims = w->dims});
}
static lt_tensor *fn_put(lt_ctx *c, lt_tensor *const *in, void *ud) {
  const way *w = ud;
  const lt_args_index_put args = {.dims = w->dims, .accumulate = w->accumulate};
  return lt_apply1(c, LT_OP_index_put, 2 + w->dims.n, in, &args);
}

/* Where result coordinates `at` read x: PyTorch's rule for dims next to each other and apart. The
   indices together have the shape [2, 3]: the first is [2, 1], the others [3]. */
static void source_of(const way *w, const plain *index, int ndim, const int64_t *at,
                      int64_t *from) {
  bool adjacent = w->dims.dim[w->dims.n - 1] - w->dims.dim[0] == w->dims.n - 1;
  int block = adjacent ? (int)w->dims.dim[0] : 0; /* where the two index dims stand */
  int64_t i = at[block], j = at[block + 1];
  int next = 0;
  for (int d = 0; d < ndim; d++) {
    int which = -1;
    for (int k = 0; k < w->dims.n; k++)
      if (w->dims.dim[k] == d) which = k;
    if (which < 0) {
      if (next == block) next += 2;
      from[d] = at[next++];
      continue;
    }
    double v = which == 0 && w->dims.n > 1 ? index[0].v[i]
               : which == 0               ? index[0].v[i * 3 + j]
                                          : index[which].v[j];
    from[d] = (int64_t)v;
  }
}

static const lt_dims ways[] = {
    {.n = 1, .dim = {0}},       {.n = 1, .dim = {1}},    {.n = 1, .dim = {2}},
    {.n = 2, .dim = {0, 1}},    {.n = 2, .dim = {1, 2}}, {.n = 2, .dim = {0, 2}},
    {.n = 3, .dim = {0, 1, 2}}, {.n = 2, .dim = {1, 3}}, {.n = 2, .dim = {2, 3}},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Index tensors of a way: values in 0..1, or the same counted from the end of dims of size 3. */
static void indices(lt_ctx *c, const way *w, lt_tensor **in, plain *p) {
  for (int k = 0; k < w->dims.n; k++) {
    lt_shape s = w->dims.n == 1 ? SHAPE(2, 3) : k == 0 ? SHAPE(2, 1) : SHAPE(3);
    in[k] = whole(c, s, 2, (uint64_t)k + 7);
    p[k] = plain_of(c, in[k]);
    if (k == 1) in[k] = lt_binary_scalar(c, LT_OP_sub, in[k], lt_scalar_int(3));
  }
}

static void index_tensors_choose(void **state) {
  lt_ctx *c = *state;
  lt_tensor *base = whole(c, SHAPE(3, 3, 3, 3), 100, 1);
  plain from = plain_of(c, base);
  for (int k = 0; k < WAYS; k++)
    for (int which = 0; which < VARIANTS; which += 5) {
      way w = {.dims = ways[k]};
      lt_tensor *in[4] = {variant(c, base, which)};
      plain p[3];
      indices(c, &w, in + 1, p);
      lt_tensor *y = fn_get(c, in, &w);
      expect_ok(c);
      assert_int_equal(y->ndim, 4 - w.dims.n + 2);
      plain to = plain_of(c, y);
      for (int64_t e = 0; e < y->numel; e++) {
        int64_t at[LT_MAX_DIMS], source[LT_MAX_DIMS];
        coordinates(to.shape, e, at);
        source_of(&w, p, 4, at, source);
        assert_true(to.v[e] == get(&from, source));
      }
      free(to.v);
      for (int j = 0; j < w.dims.n; j++) free(p[j].v);
    }
  free(from.v);
}

static void index_tensors_write(void **state) {
  lt_ctx *c = *state;
  lt_tensor *base = whole(c, SHAPE(3, 3, 3, 3), 100, 1);
  for (int k = 0; k < WAYS; k++)
    for (int mode = 0; mode < 4; mode++) {
      way w = {.dims = ways[k], .accumulate = mode >= 2};
      lt_tensor *in[5] = {variant(c, base, mode % 2 * STRIDED)};
      plain p[3], wanted = plain_of(c, base);
      indices(c, &w, in + 2, p);
      lt_tensor *shape = fn_get(c, (lt_tensor *[]){in[0], in[2], in[3], in[4]}, &w);
      expect_ok(c);
      in[1] = whole(c, lt_tensor_shape(shape), 50, 3);
      plain values = plain_of(c, in[1]);
      for (int64_t e = 0; e < in[1]->numel; e++) {
        int64_t at[LT_MAX_DIMS], target[LT_MAX_DIMS];
        coordinates(values.shape, e, at);
        source_of(&w, p, 4, at, target);
        double *to = &wanted.v[place(wanted.shape, target)];
        *to = w.accumulate ? *to + values.v[e] : values.v[e];
      }
      expect_values(c, fn_put(c, in, &w), wanted.v, 0);
      free(values.v), free(wanted.v);
      for (int j = 0; j < w.dims.n; j++) free(p[j].v);
    }
}

static void values_broadcast_into_the_part(void **state) {
  lt_ctx *c = *state;
  lt_tensor *x = TENSOR(c, LT_F32, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
  lt_tensor *rows = TENSOR(c, LT_I64, SHAPE(2), -1, 0), *three = TENSOR(c, LT_I64, SHAPE(1), 7);
  lt_tensor *columns = TENSOR(c, LT_F32, SHAPE(2, 1), 10, 20),
            *pair = TENSOR(c, LT_F32, SHAPE(2), 1, 2);
  way first = {.dims = {.n = 1, .dim = {0}}};
  EXPECT(c, fn_put(c, (lt_tensor *[]){x, columns, rows}, &first), 0, 20, 20, 20, 10, 10, 10);
  lt_tensor *into = x; /* in place */
  assert_true(lt_apply(c, LT_OP_index_put, LT_IN(x, TENSOR(c, LT_F32, SHAPE0, 0), rows), NULL, 1,
                       &into));
  EXPECT(c, x, 0, 0, 0, 0, 0, 0, 0);
  fn_put(c, (lt_tensor *[]){x, pair, rows}, &first);
  expect_failure(c, LT_ESHAPE, "index: values of [2] do not fit into the indexed part [2, 3]");
  fn_get(c, (lt_tensor *[]){x, three}, &first);
  expect_failure(c, LT_EVALUE, "index: 7 is out of -2..1 (dim 1 of [2, 3])");
  way two = {.dims = {.n = 2, .dim = {0, 1}}};
  fn_get(
      c,
      (lt_tensor *[]){x, TENSOR(c, LT_I64, SHAPE(2), 0, 1), TENSOR(c, LT_I64, SHAPE(3), 0, 1, 2)},
      &two);
  expect_failure(c, LT_ESHAPE, "index: the shapes of the indices do not broadcast: [2] and [3]");
}

static void index_tensors_pass_gradients(void **state) {
  lt_ctx *c = *state;
  for (int k = 0; k < WAYS; k++) {
    way w = {.dims = ways[k]};
    lt_tensor *in[5] = {tensor_random(c, LT_F64, SHAPE(2, 3, 2, 2), 1, -1, 1)};
    for (int j = 0; j < w.dims.n; j++) in[1 + j] = TENSOR(c, LT_I64, SHAPE(3), 1, 0, 1);
    check_gradient(c, fn_get, &w, 1 + w.dims.n, in, 0, 1e-7);
    w.accumulate = true;
    lt_tensor *part = fn_get(c, in, &w);
    lt_tensor *put[5] = {tensor_random(c, LT_F64, SHAPE(2, 3, 2, 2), 1, -1, 1),
                         tensor_random(c, LT_F64, lt_tensor_shape(part), 2, -1, 1)};
    for (int j = 0; j < w.dims.n; j++) put[2 + j] = in[1 + j];
    check_gradient(c, fn_put, &w, 2 + w.dims.n, put, 0, 1e-7);
    w.accumulate = false; /* each place once: two writes to one have no derivative */
    for (int j = 0; j < w.dims.n; j++) put[2 + j] = TENSOR(c, LT_I64, SHAPE(2), 1, 0);
    put[0] = tensor_random(c, LT_F64, SHAPE(2, 3, 2, 2), 1, -1, 1);
    in[0] = put[0];
    for (int j = 0; j < w.dims.n; j++) in[1 + j] = put[2 + j];
    put[1] = tensor_random(c, LT_F64, lt_tensor_shape(fn_get(c, in, &w)), 2, -1, 1);
    check_gradient(c, fn_put, &w, 2 + w.dims.n, put, 0, 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OP_TEST(index_select_takes_parts),
      OP_TEST(indices_out_of_range_are_named),
      OP_TEST(sums_at_indices_undo_it),
      OP_TEST(gather_takes_elements_of_lines),
      OP_TEST(scatter_add_adds_them_up),
      OP_TEST(gradients_of_lines),
      OP_TEST(lines_that_do_not_fit),
      OP_TEST(embedding_looks_rows_up),
      OP_TEST(bags_add_rows_up),
      OP_TEST(padding_gets_no_gradient),
      OP_TEST(sums_do_not_depend_on_threads),
      OP_TEST(half_sums_are_made_in_f32),
      OP_TEST(index_tensors_choose),
      OP_TEST(index_tensors_write),
      OP_TEST(values_broadcast_into_the_part),
      OP_TEST(index_tensors_pass_gradients),
  };
  return cmocka_run_group_tests_name("indexing", tests, NULL, NULL);
}
