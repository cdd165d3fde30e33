/* runtime/xla/lower_product.c: matrix products and convolutions.

   f16 and bf16 are multiplied and added in f32, as elsewhere. */
#include "xla/lowerings.h"

static lt_hlo in_type(lt_lowering *l, int k) {
  return lt_hlo_convert(l->h, l->in[k], lt_lower_computed_in(l->out[0].type));
}

/* Dims before the last two broadcast; vectors are a row on the left, a column on the right. */
LT_LOWERING(matmul) {
  lt_hlo_text *h = l->h;
  lt_hlo a = in_type(l, 0), b = in_type(l, 1), out = l->out[0];
  if (a.ndim == 1) a = lt_hlo_reshape(h, a, 2, (int64_t[]){1, a.size[0]});
  if (b.ndim == 1) b = lt_hlo_reshape(h, b, 2, (int64_t[]){b.size[0], 1});
  int n = a.ndim > b.ndim ? a.ndim : b.ndim;
  if (b.ndim == 2) {
    lt_hlo y = lt_hlo_dot(h, a, b, 0, 0, 1u << (a.ndim - 1), 1);
    l->out[0] = lt_hlo_reshape(h, y, out.ndim, out.size);
    return true;
  }
  lt_hlo left = {.ndim = n}, right = {.ndim = n};
  for (int k = 0; k < n - 2; k++) {
    int64_t x = k - (n - a.ndim) >= 0 ? a.size[k - (n - a.ndim)] : 1;
    int64_t y = k - (n - b.ndim) >= 0 ? b.size[k - (n - b.ndim)] : 1;
    left.size[k] = right.size[k] = x == 1 ? y : x;
  }
  for (int k = 1; k < 3; k++)
    left.size[n - k] = a.size[a.ndim - k], right.size[n - k] = b.size[b.ndim - k];
  unsigned batch = (1u << (n - 2)) - 1;
  lt_hlo y = lt_hlo_dot(h, lt_hlo_expand(h, a, left), lt_hlo_expand(h, b, right), batch, batch,
                        1u << (n - 1), 1u << (n - 2));
  l->out[0] = lt_hlo_reshape(h, y, out.ndim, out.size);
  return true;
}

/* x [.., in], weight [out, in] and bias [out], or weight [in] and bias []. */
LT_LOWERING(linear) {
  lt_hlo x = in_type(l, 0), w = in_type(l, 1);
  lt_hlo y = lt_hlo_dot(l->h, x, w, 0, 0, 1u << (x.ndim - 1), 1u << (w.ndim - 1));
  l->out[0] = lt_has(l, 2) ? LT_BY(l->h, y, "a + b", y, l->in[2]) : y;
  return true;
}

/* One of the two spatial dims of a convolution. */
typedef struct side {
  int64_t x, k, y, stride, pad, dilation; /* sizes of x, weight and result */
} side;

typedef struct sides {
  side h, w;
  int64_t groups;
} sides;

static sides sides_of(const lt_lowering *l, const int64_t *x, const int64_t *k, const int64_t *y) {
  lt_pair stride = lt_lower_pair(l, "stride"), pad = lt_lower_pair(l, "padding");
  lt_pair dilation = lt_lower_pair(l, "dilation");
  return (sides){.h = {x[2], k[2], y[2], stride.h, pad.h, dilation.h},
                 .w = {x[3], k[3], y[3], stride.w, pad.w, dilation.w},
                 .groups = lt_lower_int(l, "groups")};
}

/* A side of a window: stride, padding before and behind, dilations of operand and window. */
typedef struct window {
  int64_t stride, low, high, of_x, of_k;
} window;

static lt_hlo convolve(lt_hlo_text *h, lt_hlo x, lt_hlo k, lt_hlo y, const char *dims, window a,
                       window b, int64_t features, int64_t batches) {
  return lt_hlo_line(
      h, y,
      "stablehlo.convolution($, $) dim_numbers = %s, window = {stride = [%d, %d], pad = [[%d, "
      "%d], [%d, %d]], lhs_dilate = [%d, %d], rhs_dilate = [%d, %d]} "
      "{batch_group_count = %d : i64, feature_group_count = %d : i64, precision_config = "
      "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (@, @) -> @",
      &x, &k, dims, a.stride, b.stride, a.low, a.high, b.low, b.high, a.of_x, b.of_x, a.of_k,
      b.of_k, batches, features, &x, &k, &y);
}

LT_LOWERING(convolution) {
  lt_hlo x = in_type(l, 0), w = in_type(l, 1), y = l->out[0];
  sides s = sides_of(l, x.size, w.size, y.size);
  y.type = x.type;
  y = convolve(l->h, x, w, y, "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
               (window){s.h.stride, s.h.pad, s.h.pad, 1, s.h.dilation},
               (window){s.w.stride, s.w.pad, s.w.pad, 1, s.w.dilation}, s.groups, 1);
  if (lt_has(l, 2)) y = LT_BY(l->h, y, "a + b", y, lt_hlo_along(l->h, in_type(l, 2), y, 1));
  l->out[0] = y;
  return true;
}

/* Of x: g spread out by the stride, with the turned window. */
static window of_input(side s) {
  int64_t low = s.dilation * (s.k - 1) - s.pad;
  int64_t high = s.x - 1 - (s.y - 1) * s.stride + s.dilation * (s.k - 1) - low;
  return (window){1, low, high, s.stride, s.dilation};
}

/* (g, weight): weight [O, C / G, ..] as [O / G, C, ..], turned. By itself: a window that the
   convolution turns has no fast kernel in XLA's CPU backend. */
LT_LOWERING(convolution_backward_input) {
  lt_hlo_text *h = l->h;
  lt_hlo g = in_type(l, 0), w = in_type(l, 1), x = l->out[0];
  sides s = sides_of(l, x.size, w.size, g.size);
  int64_t n = s.groups, each = w.size[0] / n, c = w.size[1];
  x.type = g.type;
  w = lt_hlo_reshape(h, w, 5, (int64_t[]){n, each, c, s.h.k, s.w.k});
  w = lt_hlo_permute(h, w, (int64_t[]){1, 0, 2, 3, 4});
  w = lt_hlo_reshape(h, w, 4, (int64_t[]){each, n * c, s.h.k, s.w.k});
  w = lt_hlo_line(h, w, "stablehlo.reverse $, dims = [2, 3] : @", &w, &w);
  l->out[0] = convolve(h, g, w, x, "[b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1]", of_input(s.h),
                       of_input(s.w), n, 1);
  return true;
}

/* Of the weight: x with g as a window, spread out by the stride. */
static window of_weight(side s) {
  int64_t high = s.dilation * (s.k - 1) + s.stride * (s.y - 1) + 1 - s.x - s.pad;
  return (window){s.dilation, s.pad, high, 1, s.stride};
}

/* (g, x) to the gradients of weight and bias. */
LT_LOWERING(convolution_backward_weight) {
  lt_hlo g = in_type(l, 0), x = in_type(l, 1), w = l->out[0];
  sides s = sides_of(l, x.size, w.size, g.size);
  w.type = g.type;
  l->out[0] = convolve(l->h, x, g, w, "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]", of_weight(s.h),
                       of_weight(s.w), 1, s.groups);
  if (l->n_out > 1) l->out[1] = lt_hlo_sum(l->h, g, 13, false);
  return true;
}
