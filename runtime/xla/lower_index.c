/* runtime/xla/lower_index.c: choosing by index, adding and writing by index, sorting.

   Sums of 16-bit floats are made in f32. Scatters of StableHLO leave out what is beyond the end. */
#include "xla/lowerings.h"

lt_hlo lt_lower_take(lt_hlo_text *h, lt_hlo x, lt_hlo index, int dim) {
  lt_hlo y = {.type = x.type};
  int64_t offsets[LT_HLO_DIMS], sizes[LT_HLO_DIMS];
  int n = 0;
  for (int k = 0; k < dim; k++) offsets[n++] = y.ndim, y.size[y.ndim++] = x.size[k];
  for (int k = 0; k < index.ndim; k++) y.size[y.ndim++] = index.size[k];
  for (int k = dim + 1; k < x.ndim; k++) offsets[n++] = y.ndim, y.size[y.ndim++] = x.size[k];
  for (int k = 0; k < x.ndim; k++) sizes[k] = k == dim ? 1 : x.size[k];
  if (x.size[dim] == 0 || lt_hlo_numel(y) == 0) return lt_hlo_integer(h, 0, y);
  return lt_hlo_line(
      h, y,
      "\"stablehlo.gather\"($, $) <{dimension_numbers = #stablehlo.gather<offset_dims = [%l], "
      "collapsed_slice_dims = [%d], start_index_map = [%d], index_vector_dim = %d>, slice_sizes = "
      "array<i64: %l>}> : (@, @) -> @",
      &x, &index, offsets, n, (int64_t)dim, (int64_t)dim, (int64_t)index.ndim, sizes, x.ndim, &x,
      &index, &y);
}

/* Elements or rows of `source` into x at `index` [.., parts]: one number for each of the first
   `parts` dims of x. */
static lt_hlo scatter(lt_hlo_text *h, const char *op, lt_hlo x, lt_hlo index, lt_hlo source,
                      int parts) {
  int64_t dims[LT_HLO_DIMS], windows[LT_HLO_DIMS], n = 0;
  for (int k = 0; k < x.ndim; k++) dims[k] = k;
  for (int k = index.ndim - 1; k < source.ndim; k++) windows[n++] = k;
  lt_hlo y = x;
  y.id = ++h->values, y.part = -1;
  lt_hlo_put(h, "$ = \"stablehlo.scatter\"($, $, $) <{scatter_dimension_numbers = "
             "#stablehlo.scatter<update_window_dims = [%l], inserted_window_dims = [%l], "
             "scatter_dims_to_operand_dims = [%l], index_vector_dim = %d>}> ", &y, &x, &index,
             &source, windows, (int)n, dims, parts, dims, parts, (int64_t)index.ndim - 1);
  lt_lower_region(h, op, x.type);
  lt_hlo_put(h, " : (@, @, @) -> @\n", &x, &index, &source, &y);
  return y;
}

lt_hlo lt_lower_put(lt_hlo_text *h, const char *op, lt_hlo x, lt_hlo index, lt_hlo source) {
  if (lt_hlo_numel(source) == 0) return x;
  index = lt_hlo_reshape(h, index, 2, (int64_t[]){index.size[0], 1});
  return scatter(h, op, x, index, source, 1);
}

/* As a tensor with dims. */
static lt_hlo with_dims(lt_hlo_text *h, lt_hlo x) { return x.ndim > 0 ? x : lt_hlo_flat(h, x); }

static bool done(lt_lowering *l, lt_hlo y) {
  l->out[0] = lt_hlo_reshape(l->h, y, l->out[0].ndim, l->out[0].size);
  return true;
}

LT_LOWERING(index_select) {
  lt_hlo x = with_dims(l->h, l->in[0]);
  int dim = (int)lt_lower_int(l, "dim");
  lt_hlo index = lt_lower_index(l, with_dims(l->h, l->in[1]), x.size[dim], false);
  return done(l, lt_lower_take(l->h, x, index, dim));
}

LT_LOWERING(embedding) {
  lt_hlo index = lt_lower_index(l, l->in[1], l->in[0].size[0], false);
  return done(l, lt_lower_take(l->h, l->in[0], index, 0));
}

/* (g, index): rows of g added to zeros; row `skip` gets none. */
LT_LOWERING(index_select_backward) {
  lt_hlo_text *h = l->h;
  lt_hlo g = with_dims(h, lt_lower_in(l, 0)), y = with_dims(h, l->out[0].ndim > 0 ? l->out[0] : g);
  int dim = (int)lt_lower_int(l, "dim");
  int64_t size = lt_lower_int(l, "size"), skip = lt_lower_int(l, "skip");
  y = lt_hlo_typed(y, g.type), y.size[dim] = size;
  lt_hlo index = lt_lower_index(l, with_dims(h, l->in[1]), size, false);
  if (skip != INT64_MIN) {
    lt_hlo skipped = lt_hlo_compare(h, "EQ", index, lt_hlo_integer(h, skip, index));
    index = lt_hlo_choose(h, skipped, lt_hlo_integer(h, size, index), index);
  }
  lt_hlo zeros = y;
  zeros.size[dim] = y.size[0], zeros.size[0] = size;
  zeros = lt_lower_put(h, "add", lt_hlo_integer(h, 0, zeros), index, lt_hlo_swap(h, g, 0, dim));
  return done(l, lt_hlo_swap(h, zeros, 0, dim));
}

/* The bag of each of n places: that of the last one to begin there. */
static lt_hlo bags_of(lt_lowering *l, int64_t n, int64_t bags) {
  lt_hlo_text *h = l->h;
  lt_hlo both = lt_hlo_of(LT_I64, 2, (int64_t[]){n, bags});
  lt_hlo place = lt_hlo_iota(h, LT_I64, both, 0);
  if (!lt_has(l, 2)) {
    place = lt_hlo_iota(h, LT_I64, lt_hlo_of(LT_I64, 1, &n), 0);
    return lt_hlo_by(h, "divide", place, (double)(n / bags));
  }
  lt_hlo begins = lt_hlo_along(h, lt_hlo_convert(h, l->in[2], LT_I64), both, 1);
  lt_hlo begun = lt_hlo_convert(h, lt_hlo_compare(h, "LE", begins, place), LT_I64);
  return lt_hlo_by(h, "subtract", lt_hlo_sum(h, begun, 2, false), 1);
}

/* (weight, ids, offsets, factors): rows of the weight added up by bags, without row
   `padding_idx`. */
LT_LOWERING(embedding_bag) {
  lt_hlo_text *h = l->h;
  lt_hlo weight = lt_lower_float(l, 0), ids = lt_hlo_flat(h, l->in[1]), y = l->out[0];
  int64_t n = ids.size[0], bags = y.size[0], skip = lt_lower_int(l, "padding_idx");
  y = lt_hlo_integer(h, 0, lt_hlo_typed(y, weight.type));
  if (n == 0 || bags == 0) return done(l, y);
  lt_hlo index = lt_lower_index(l, ids, weight.size[0], false), bag = bags_of(l, n, bags);
  if (skip != INT64_MIN) {
    lt_hlo skipped = lt_hlo_compare(h, "EQ", index, lt_hlo_integer(h, skip, index));
    bag = lt_hlo_choose(h, skipped, lt_hlo_integer(h, bags, bag), bag);
  }
  lt_hlo rows = lt_lower_take(h, weight, index, 0), count = lt_hlo_of(weight.type, 1, &bags);
  if (lt_has(l, 3)) {
    lt_hlo by = lt_hlo_flat(h, lt_hlo_convert(h, l->in[3], rows.type));
    rows = lt_hlo_two(h, "multiply", rows, lt_hlo_along(h, by, rows, 0));
  }
  y = lt_lower_put(h, "add", y, bag, rows);
  if (!lt_lower_flag(l, "mean")) return done(l, y);
  lt_hlo ones = lt_hlo_integer(h, 1, lt_hlo_of(weight.type, 1, &n));
  count = lt_lower_put(h, "add", lt_hlo_integer(h, 0, count), bag, ones);
  count = lt_hlo_two(h, "maximum", count, lt_hlo_integer(h, 1, count));
  return done(l, lt_hlo_two(h, "divide", y, lt_hlo_along(h, count, y, 0)));
}

/* (x, source, rows) */
LT_LOWERING(rows_put) {
  lt_hlo x = lt_lower_in(l, 0), source = lt_hlo_convert(l->h, l->in[1], x.type);
  lt_hlo rows = lt_lower_index(l, l->in[2], x.size[0], false);
  return done(l, lt_lower_put(l->h, lt_lower_flag(l, "accumulate") ? "add" : "second", x, rows,
                              source));
}

/* Places [.., ndim] of the elements that an index chooses along a dim. */
static lt_hlo places(lt_lowering *l, lt_hlo index, int64_t size, int dim) {
  lt_hlo list[LT_HLO_DIMS], one = index;
  one.size[one.ndim++] = 1;
  for (int k = 0; k < index.ndim; k++) {
    lt_hlo at = k == dim ? lt_lower_index(l, index, size, false)
                         : lt_hlo_iota(l->h, LT_I64, index, k);
    list[k] = lt_hlo_reshape(l->h, at, one.ndim, one.size);
  }
  return lt_hlo_join(l->h, index.ndim, list, one.ndim - 1);
}

LT_LOWERING(gather) {
  lt_hlo x = with_dims(l->h, l->in[0]), index = with_dims(l->h, l->in[1]);
  int dim = (int)lt_lower_int(l, "dim");
  int64_t all[LT_HLO_DIMS], ones[LT_HLO_DIMS];
  lt_hlo y = lt_hlo_typed(index, x.type), at = places(l, index, x.size[dim], dim);
  if (lt_hlo_numel(y) == 0 || lt_hlo_numel(x) == 0) return done(l, lt_hlo_integer(l->h, 0, y));
  for (int k = 0; k < x.ndim; k++) all[k] = k, ones[k] = 1;
  y = lt_hlo_line(
      l->h, y, "\"stablehlo.gather\"($, $) <{dimension_numbers = #stablehlo.gather<"
      "collapsed_slice_dims = [%l], start_index_map = [%l], index_vector_dim = %d>, slice_sizes = "
      "array<i64: %l>}> : (@, @) -> @", &x, &at, all, x.ndim, all, x.ndim, (int64_t)x.ndim, ones,
      x.ndim, &x, &at, &y);
  return done(l, y);
}

/* (x, index, source), whose part in the size of the index is added. */
LT_LOWERING(scatter_add) {
  lt_hlo_text *h = l->h;
  lt_hlo x = with_dims(h, lt_lower_in(l, 0)), index = with_dims(h, l->in[1]);
  lt_hlo source = with_dims(h, lt_hlo_convert(h, l->in[2], x.type));
  int dim = (int)lt_lower_int(l, "dim");
  for (int k = 0; k < x.ndim; k++) source = lt_hlo_slice(h, source, k, 0, index.size[k], 1);
  if (lt_hlo_numel(index) == 0) return done(l, x);
  return done(l, scatter(h, "add", x, places(l, index, x.size[dim], dim), source, x.ndim));
}

/* Several indices as one, row-major over the indexed dims. */
LT_LOWERING(index_flatten) {
  lt_hlo_text *h = l->h;
  const lt_dims *dims = lt_lower_argument(l, "dims");
  const lt_sizes *full = lt_lower_sizes(l, "full");
  lt_hlo y = {0};
  for (int k = 0; k < l->n_in; k++) {
    int64_t n = full->size[dims->dim[k]];
    lt_hlo i = lt_hlo_expand(h, lt_lower_index(l, l->in[k], n, true), l->out[0]);
    if (k > 0) i = lt_hlo_two(h, "add", lt_hlo_two(h, "multiply", y, lt_hlo_integer(h, n, y)), i);
    y = i;
  }
  l->out[0] = y;
  return true;
}

LT_LOWERING(one_hot) {
  int64_t n = lt_lower_int(l, "num_classes");
  lt_hlo index = lt_lower_index(l, l->in[0], n, false), out = l->out[0], dims = index;
  dims.size[dims.ndim++] = 1;
  lt_hlo at = lt_hlo_iota(l->h, LT_I64, out, out.ndim - 1);
  index = lt_hlo_expand(l->h, lt_hlo_reshape(l->h, index, dims.ndim, dims.size), at);
  l->out[0] = lt_hlo_convert(l->h, lt_hlo_compare(l->h, "EQ", at, index), LT_I64);
  return true;
}

void lt_lower_sort(lt_hlo_text *h, lt_hlo x, lt_hlo beside, int dim, const char *before,
                   lt_hlo *out) {
  lt_hlo s = lt_hlo_scalar(x.type), t = lt_hlo_scalar(beside.type), a = s, b = s, c = t, d = t;
  out[0] = x, out[1] = beside;
  out[0].id = out[1].id = ++h->values, out[0].part = 0, out[1].part = 1;
  a.id = ++h->values, b.id = ++h->values, c.id = ++h->values, d.id = ++h->values;
  lt_hlo_put(h, "%%%d:2 = \"stablehlo.sort\"($, $) <{dimension = %d : i64, is_stable = true}> ({\n"
             "^bb0($: @, $: @, $: @, $: @):\n", (int64_t)out[0].id, &x, &beside, (int64_t)dim, &a,
             &s, &b, &s, &c, &t, &d, &t);
  lt_hlo y = LT_BY(h, s, before, a, b);
  lt_hlo_put(h, "stablehlo.return $ : @\n}) : (@, @) -> (@, @)\n", &y, &y, &x, &beside, &x,
             &beside);
}

/* Equal elements stay in order; NaN is above all numbers. */
LT_LOWERING(topk) {
  lt_hlo_text *h = l->h;
  lt_hlo x = with_dims(h, lt_lower_in(l, 0)), sorted[2], out = l->out[0];
  int dim = (int)lt_lower_int(l, "dim");
  int64_t k = lt_lower_int(l, "k");
  bool largest = lt_lower_flag(l, "largest"), ints = x.type == LT_I64;
  const char *floats = largest ? "a > b || (a != a && b == b)" : "a < b || (a == a && b != b)";
  lt_lower_sort(h, x, lt_hlo_iota(h, LT_I64, x, dim), dim,
                !ints ? floats : largest ? "a > b" : "a < b", sorted);
  for (int i = 0; i < 2; i++)
    l->out[i] = lt_hlo_reshape(h, lt_hlo_slice(h, sorted[i], dim, 0, k, 1), out.ndim, out.size);
  return true;
}

/* Places of the trues, in order: those of the false ones are sorted behind and cut off. */
LT_LOWERING(mask_positions) {
  lt_hlo_text *h = l->h;
  lt_hlo mask = l->in[0], sorted[2], list[LT_HLO_DIMS], out = l->out[0];
  int64_t n = out.size[0];
  if (n == 0 || mask.ndim == 0) {
    l->out[0] = lt_hlo_integer(h, 0, out);
    return true;
  }
  lt_hlo flat = lt_hlo_convert(h, lt_hlo_flat(h, lt_hlo_convert(h, mask, LT_BOOL)), LT_I64);
  lt_lower_sort(h, flat, lt_hlo_iota(h, LT_I64, flat, 0), 0, "a > b", sorted);
  lt_hlo at = lt_hlo_slice(h, sorted[1], 0, 0, n, 1);
  for (int k = mask.ndim - 1; k >= 0; k--) {
    lt_hlo size = lt_hlo_integer(h, mask.size[k], at);
    list[k] = lt_hlo_reshape(h, lt_hlo_two(h, "remainder", at, size), 2, (int64_t[]){n, 1});
    at = lt_hlo_two(h, "divide", at, size);
  }
  l->out[0] = lt_hlo_join(h, mask.ndim, list, 1);
  return true;
}
