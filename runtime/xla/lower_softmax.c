/* runtime/xla/lower_softmax.c: softmax and cross-entropy, with their derivatives. */
#include <math.h>

#include "ops/args.h"
#include "xla/lowerings.h"

static lt_hlo largest(lt_hlo_text *h, lt_hlo x, int dim) {
  return lt_hlo_reduce(h, "maximum", -HUGE_VAL, x, 1u << dim, true);
}

LT_LOWERING(softmax) {
  lt_hlo x = lt_lower_float(l, 0);
  int dim = (int)lt_lower_int(l, "dim");
  if (x.ndim == 0) x = lt_hlo_flat(l->h, x), dim = 0;
  lt_hlo rest = LT_BY(l->h, x, "a - b", x, largest(l->h, x, dim));
  lt_hlo e = lt_hlo_one(l->h, "exponential", rest);
  lt_hlo sum = lt_hlo_sum(l->h, e, 1u << dim, true);
  lt_hlo y = lt_lower_is(l, "softmax") ? LT_BY(l->h, x, "a / b", e, sum)
                                       : LT_BY(l->h, x, "a - b", rest,
                                               lt_hlo_one(l->h, "log", sum));
  l->out[0] = lt_hlo_reshape(l->h, y, l->out[0].ndim, l->out[0].size);
  return true;
}

LT_LOWERING(softmax_backward) {
  lt_hlo y = lt_lower_float(l, 1), g = lt_hlo_convert(l->h, l->in[0], y.type);
  int dim = (int)lt_lower_int(l, "dim");
  if (y.ndim == 0) y = lt_hlo_flat(l->h, y), g = lt_hlo_flat(l->h, g), dim = 0;
  bool log = lt_lower_is(l, "log_softmax_backward");
  lt_hlo terms = log ? g : lt_hlo_two(l->h, "multiply", g, y);
  lt_hlo sum = lt_hlo_sum(l->h, terms, 1u << dim, true);
  y = LT_BY(l->h, y, log ? "a - exp(b) * c" : "b * (a - c)", g, y, sum);
  l->out[0] = lt_hlo_reshape(l->h, y, l->out[0].ndim, l->out[0].size);
  return true;
}

/* What forward and backward of cross-entropy share: rows [R, C] in the type of computation. */
typedef struct entropy {
  lt_hlo x;              /* [R, C] */
  lt_hlo shares, weight; /* [R, C] wanted probabilities; [C], of type x, or none */
  lt_hlo counted, ids;   /* bools [R] of rows that are not ignored, none: all are; i64 [R] */
  lt_hlo smoothing;      /* scalar */
  int64_t rows, classes;
} entropy;

/* [N, C, ...] as [N ..., C]. */
static lt_hlo classes_last(lt_hlo_text *h, lt_hlo x) {
  int64_t dims[LT_HLO_DIMS], n = 0;
  for (int k = 0; k < x.ndim; k++)
    if (k != 1) dims[n++] = k;
  if (x.ndim > 1) dims[n] = 1;
  x = lt_hlo_permute(h, x, dims);
  int64_t classes = x.size[x.ndim - 1], rows = classes > 0 ? lt_hlo_numel(x) / classes : 0;
  return lt_hlo_reshape(h, x, 2, (int64_t[]){rows, classes});
}

static entropy prepare(lt_lowering *l, int x, int target, int weight) {
  lt_hlo_text *h = l->h;
  entropy e = {.x = classes_last(h, lt_lower_float(l, x))};
  lt_hlo t = l->in[target];
  e.rows = e.x.size[0], e.classes = e.x.size[1];
  e.weight = lt_has(l, weight) ? lt_hlo_convert(h, l->in[weight], e.x.type) : (lt_hlo){0};
  e.smoothing = lt_lower_number(l, "label_smoothing", lt_hlo_scalar(e.x.type));
  bool floats = t.type == LT_F32 || t.type == LT_F64 || t.type == LT_F16 || t.type == LT_BF16;
  if (floats) {
    e.shares = classes_last(h, lt_hlo_convert(h, t, e.x.type));
  } else {
    lt_hlo ids = lt_hlo_flat(h, lt_hlo_convert(h, t, LT_I64));
    lt_hlo ignored = lt_hlo_integer(h, lt_lower_int(l, "ignore_index"), ids);
    e.counted = lt_hlo_compare(h, "NE", ids, ignored);
    ids = lt_hlo_choose(h, e.counted, ids, lt_hlo_integer(h, 0, ids));
    e.ids = lt_lower_index(l, ids, e.classes, false);
    lt_hlo at = lt_hlo_iota(h, LT_I64, e.x, 1);
    lt_hlo is = lt_hlo_compare(h, "EQ", at, lt_hlo_along(h, e.ids, at, 0));
    e.shares = lt_hlo_convert(h, is, e.x.type);
  }
  /* q = ((1 - s) target + s / C) weight */
  lt_hlo w = e.weight.id != 0 ? lt_hlo_along(h, e.weight, e.x, 1) : lt_hlo_number(h, 1, e.x);
  lt_hlo n = lt_hlo_number(h, (double)e.classes, lt_hlo_scalar(e.x.type));
  e.shares = LT_BY(h, e.x, "((1 - b) * a + b / d) * c", e.shares, e.smoothing, w, n);
  return e;
}

/* (logits, target, weight) to (loss, [2, R]: the largest and the sum of exp(x - largest),
   divisor). */
LT_LOWERING(cross_entropy) {
  lt_hlo_text *h = l->h;
  entropy e = prepare(l, 0, 1, 2);
  lt_hlo most = largest(h, e.x, 1), rest = LT_BY(h, e.x, "a - b", e.x, most);
  lt_hlo sum = lt_hlo_sum(h, lt_hlo_one(h, "exponential", rest), 2, true);
  /* A share of 0 takes no part, whatever its logit. */
  lt_hlo part = LT_BY(h, e.x, "b == 0 ? 0 : b * (log(c) - a)", rest, e.shares, sum);
  lt_hlo loss = lt_hlo_sum(h, part, 2, false), total = lt_hlo_number(h, 1, lt_hlo_scalar(LT_F64));
  if (e.counted.id != 0)
    loss = lt_hlo_choose(h, e.counted, loss, lt_hlo_number(h, 0, loss));
  int64_t reduction = lt_lower_int(l, "reduction");
  if (reduction == LT_REDUCTION_mean && e.counted.id == 0)
    total = lt_hlo_number(h, (double)e.rows, total);
  if (reduction == LT_REDUCTION_mean && e.counted.id != 0) {
    lt_hlo w = e.weight.id != 0 ? lt_lower_take(h, e.weight, e.ids, 0) : lt_hlo_number(h, 1, loss);
    w = lt_hlo_choose(h, e.counted, w, lt_hlo_number(h, 0, w));
    total = lt_hlo_convert(h, lt_hlo_sum(h, w, 1, false), LT_F64);
  }
  lt_hlo stats[2] = {lt_hlo_reshape(h, most, 2, (int64_t[]){1, e.rows}),
                     lt_hlo_reshape(h, sum, 2, (int64_t[]){1, e.rows})};
  if (reduction != LT_REDUCTION_none)
    loss = lt_hlo_two(h, "divide", lt_hlo_sum(h, loss, 1, false),
                      lt_hlo_convert(h, total, loss.type));
  l->out[0] = lt_hlo_reshape(h, loss, l->out[0].ndim, l->out[0].size);
  l->out[1] = lt_hlo_join(h, 2, stats, 0);
  l->out[2] = total;
  return true;
}

/* (g, logits, target, stats, total, weight) to g (softmax(x) sum q - q) / total. */
LT_LOWERING(cross_entropy_backward) {
  lt_hlo_text *h = l->h;
  entropy e = prepare(l, 1, 2, 5);
  lt_hlo stats = lt_hlo_convert(h, l->in[3], e.x.type);
  lt_hlo most = lt_hlo_reshape(h, lt_hlo_slice(h, stats, 0, 0, 1, 1), 2, (int64_t[]){e.rows, 1});
  lt_hlo sum = lt_hlo_reshape(h, lt_hlo_slice(h, stats, 0, 1, 2, 1), 2, (int64_t[]){e.rows, 1});
  lt_hlo g = lt_hlo_convert(h, l->in[0], e.x.type);
  lt_hlo total = lt_hlo_convert(h, l->in[4], e.x.type);
  int64_t each = lt_hlo_numel(g) == e.rows ? e.rows : 1;
  g = lt_hlo_reshape(h, g, 2, (int64_t[]){each, 1});
  lt_hlo all = lt_hlo_sum(h, e.shares, 2, true);
  lt_hlo y = LT_BY(h, e.x, "e / f * (exp(a - b) / c * d - g)", e.x, most, sum, all, g, total,
                   e.shares);
  if (e.counted.id != 0)
    y = lt_hlo_choose(h, lt_hlo_along(h, e.counted, y, 0), y, lt_hlo_number(h, 0, y));
  /* Back to [N, C, ...]. */
  lt_hlo out = l->out[0], moved = out;
  int64_t dims[LT_HLO_DIMS];
  int n = out.ndim;
  for (int k = 1; k + 1 < n; k++) moved.size[k] = out.size[k + 1], dims[k + 1] = k;
  dims[0] = 0;
  if (n > 1) moved.size[n - 1] = out.size[1], dims[1] = n - 1;
  l->out[0] = lt_hlo_permute(h, lt_hlo_reshape(h, y, n, moved.size), dims);
  return true;
}
