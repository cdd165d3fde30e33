/* runtime/xla/lower_reduce.c: reductions, extrema with their places, running sums. */
#include <math.h>

#include "xla/lowerings.h"

/* The smallest or largest value of a type. */
static double limit_of(int type, bool most) {
  if (type == LT_I64) return most ? (double)INT64_MAX : (double)INT64_MIN;
  return most ? HUGE_VAL : -HUGE_VAL;
}

static lt_hlo extreme(lt_hlo_text *h, lt_hlo x, unsigned dims, bool least, bool keep) {
  if (x.type != LT_I64)
    return lt_hlo_reduce(h, least ? "minimum" : "maximum", limit_of(x.type, least), x, dims, keep);
  /* INT64_MAX is not a double. */
  lt_hlo y = lt_hlo_reduce(h, "maximum", (double)INT64_MIN, least ? lt_hlo_one(h, "not", x) : x,
                           dims, keep);
  return least ? lt_hlo_one(h, "not", y) : y;
}

static lt_hlo shaped(lt_lowering *l, lt_hlo y) {
  return lt_hlo_reshape(l->h, y, l->out[0].ndim, l->out[0].size);
}

LT_LOWERING(sum) {
  lt_hlo x = lt_lower_in(l, 0);
  unsigned dims = lt_lower_dims(l, "dims", x.ndim);
  if (lt_lower_is(l, "sum")) x = lt_hlo_sum(l->h, x, dims, false);
  else if (lt_lower_is(l, "prod")) x = lt_hlo_reduce(l->h, "multiply", 1, x, dims, false);
  else x = extreme(l->h, x, dims, lt_lower_is(l, "amin"), false);
  l->out[0] = shaped(l, x);
  return true;
}

LT_LOWERING(mean) {
  lt_hlo x = l->in[0];
  x = lt_hlo_convert(l->h, x, x.type == LT_F64 ? LT_F64 : LT_F32);
  lt_hlo sum = shaped(l, lt_hlo_sum(l->h, x, lt_lower_dims(l, "dims", x.ndim), false));
  double n = (double)lt_hlo_numel(x) / (double)lt_hlo_numel(sum);
  l->out[0] = lt_hlo_by(l->h, "divide", sum, n);
  return true;
}

LT_LOWERING(any) {
  lt_hlo x = lt_hlo_convert(l->h, l->in[0], LT_BOOL);
  bool all = lt_lower_is(l, "all");
  unsigned dims = lt_lower_dims(l, "dims", x.ndim);
  l->out[0] = shaped(l, lt_hlo_reduce(l->h, all ? "and" : "or", all, x, dims, false));
  return true;
}

/* The first place of the extremum along a dim: NaN is one, before all numbers. */
static lt_hlo place_of(lt_hlo_text *h, lt_hlo x, lt_hlo value, int dim) {
  lt_hlo at = lt_hlo_iota(h, LT_I64, x, dim), best = lt_hlo_expand(h, value, x);
  lt_hlo is = lt_hlo_compare(h, "EQ", x, best);
  if (x.type != LT_I64) is = lt_hlo_two(h, "or", is, lt_hlo_compare(h, "NE", x, x));
  lt_hlo beyond = lt_hlo_integer(h, x.size[dim], at);
  return lt_hlo_reduce(h, "minimum", (double)x.size[dim], lt_hlo_choose(h, is, at, beyond),
                       1u << dim, true);
}

/* max, min, argmax and argmin: along a dim, or of all elements. */
LT_LOWERING(max) {
  lt_hlo x = lt_lower_in(l, 0);
  bool least = lt_lower_is(l, "min") || lt_lower_is(l, "argmin");
  bool of_place = lt_lower_is(l, "argmax") || lt_lower_is(l, "argmin");
  int64_t dim = lt_lower_int(l, "dim");
  if (dim == INT64_MIN || x.ndim == 0) x = lt_hlo_flat(l->h, x), dim = 0;
  lt_hlo value = extreme(l->h, x, 1u << dim, least, true);
  if (of_place || l->n_out > 1) {
    lt_hlo at = place_of(l->h, x, value, (int)dim);
    l->out[!of_place] = lt_hlo_reshape(l->h, at, l->out[0].ndim, l->out[0].size);
  }
  if (!of_place) l->out[0] = shaped(l, value);
  return true;
}

/* (g, indices), both with the dim at size 1. */
LT_LOWERING(extremum_backward) {
  int dim = (int)lt_lower_int(l, "dim");
  if (l->out[0].ndim == 0) {
    l->out[0] = l->in[0];
    return true;
  }
  lt_hlo at = lt_hlo_iota(l->h, LT_I64, l->out[0], dim);
  lt_hlo wanted = lt_hlo_expand(l->h, lt_hlo_convert(l->h, l->in[1], LT_I64), at);
  lt_hlo g = lt_hlo_expand(l->h, l->in[0], at);
  l->out[0] = lt_hlo_choose(l->h, lt_hlo_compare(l->h, "EQ", at, wanted), g,
                            lt_hlo_integer(l->h, 0, g));
  return true;
}

/* Sums of windows that reach to the start of the dim, or to its end. */
lt_hlo lt_lower_running_sum(lt_hlo_text *h, lt_hlo x, int64_t dim, bool back) {
  lt_hlo zero = lt_hlo_integer(h, 0, lt_hlo_scalar(x.type));
  int64_t window[LT_HLO_DIMS], ones[LT_HLO_DIMS];
  if (x.ndim == 0 || lt_hlo_numel(x) == 0) return x;
  for (int k = 0; k < x.ndim; k++) ones[k] = 1, window[k] = k == dim ? x.size[k] : 1;
  lt_hlo y = x;
  y.id = ++h->values, y.part = -1;
  lt_hlo_put(h, "$ = \"stablehlo.reduce_window\"($, $) <{window_dimensions = array<i64: %l>, "
             "window_strides = array<i64: %l>, padding = dense<[", &y, &x, &zero, window, x.ndim,
             ones, x.ndim);
  for (int k = 0; k < x.ndim; k++)
    lt_hlo_put(h, "%s[%d, %d]", k > 0 ? ", " : "", back ? (int64_t)0 : window[k] - 1,
               back ? window[k] - 1 : (int64_t)0);
  lt_hlo_put(h, "]> : tensor<%dx2xi64>}> ", (int64_t)x.ndim);
  lt_lower_region(h, "add", x.type);
  lt_hlo_put(h, " : (@, @) -> @\n", &x, &zero, &y);
  return y;
}

LT_LOWERING(cumsum) {
  bool back = lt_lower_is(l, "cumsum_backward");
  l->out[0] = lt_lower_running_sum(l->h, lt_lower_in(l, 0), lt_lower_int(l, "dim"), back);
  return true;
}
