/* runtime/xla/lower_norm.c: normalizations and their derivatives.

   All are one form: x over some dims by its mean and variance, times a weight, plus a bias. */
#include "xla/lowerings.h"

typedef struct moments {
  lt_hlo mean, scale, variance; /* dims of size 1 where they were taken over */
} moments;

static lt_hlo mean_of(lt_hlo_text *h, lt_hlo x, unsigned dims) {
  lt_hlo sum = lt_hlo_sum(h, x, dims, true);
  return lt_hlo_by(h, "divide", sum, (double)lt_hlo_numel(x) / (double)lt_hlo_numel(sum));
}

static lt_hlo root_of(lt_lowering *l, lt_hlo variance) {
  lt_hlo eps = lt_lower_number(l, "eps", lt_hlo_scalar(variance.type));
  return LT_BY(l->h, variance, "1 / sqrt(a + b)", variance, eps);
}

/* Two passes, the second around the mean. */
static moments moments_of(lt_lowering *l, lt_hlo x, unsigned dims, bool centred) {
  moments m = {.mean = centred ? mean_of(l->h, x, dims) : (lt_hlo){0}};
  lt_hlo square = centred ? LT_BY(l->h, x, "(a - b) * (a - b)", x, m.mean)
                          : lt_hlo_two(l->h, "multiply", x, x);
  m.variance = mean_of(l->h, square, dims);
  m.scale = root_of(l, m.variance);
  return m;
}

/* (x - mean) scale. */
static lt_hlo normal(lt_hlo_text *h, lt_hlo x, moments m) {
  return m.mean.id != 0 ? LT_BY(h, x, "(a - b) * c", x, m.mean, m.scale)
                        : LT_BY(h, x, "a * b", x, m.scale);
}

/* scale (a - mean(a) - z mean(a z)) of a = g w. */
static lt_hlo gradient(lt_hlo_text *h, lt_hlo a, lt_hlo z, moments m, unsigned dims) {
  lt_hlo of_z = mean_of(h, lt_hlo_two(h, "multiply", a, z), dims);
  if (m.mean.id == 0) return LT_BY(h, a, "d * (a - b * c)", a, z, of_z, m.scale);
  return LT_BY(h, a, "d * (a - e - b * c)", a, z, of_z, m.scale, mean_of(h, a, dims));
}

static lt_hlo times(lt_hlo_text *h, lt_hlo x, lt_hlo weight) {
  return weight.id == 0 ? x : LT_BY(h, x, "a * b", x, weight);
}

static unsigned last_dims(const lt_lowering *l, int ndim) {
  int n = lt_lower_sizes(l, "normalized_shape")->n;
  return ((1u << n) - 1) << (ndim - n);
}

LT_LOWERING(layer_norm) {
  lt_hlo x = lt_lower_float(l, 0);
  moments m = moments_of(l, x, last_dims(l, x.ndim), lt_lower_is(l, "layer_norm"));
  lt_hlo y = times(l->h, normal(l->h, x, m), lt_lower_float(l, 1));
  l->out[0] = lt_has(l, 2) ? LT_BY(l->h, y, "a + b", y, l->in[2]) : y;
  return true;
}

/* (g, x, weight) to gradients of x, weight and, of layer_norm, bias. */
LT_LOWERING(layer_norm_backward) {
  lt_hlo_text *h = l->h;
  lt_hlo x = lt_lower_float(l, 1), g = lt_hlo_convert(h, l->in[0], x.type);
  unsigned dims = last_dims(l, x.ndim), rows = ((1u << x.ndim) - 1) & ~dims;
  moments m = moments_of(l, x, dims, lt_lower_is(l, "layer_norm_backward"));
  lt_hlo z = normal(h, x, m);
  lt_hlo of_x = gradient(h, times(h, g, lt_lower_float(l, 2)), z, m, dims);
  if (l->n_out > 1) l->out[1] = lt_hlo_sum(h, lt_hlo_two(h, "multiply", g, z), rows, false);
  if (l->n_out > 2) l->out[2] = lt_hlo_sum(h, g, rows, false);
  l->out[0] = of_x;
  return true;
}

/* x [N, C, ...] as [N, G, C / G, rest]; values of channels as [1, G, C / G, 1]. */
static lt_hlo grouped(lt_lowering *l, lt_hlo x, bool channels) {
  int64_t n = lt_lower_int(l, "num_groups");
  if (x.id == 0) return x;
  int64_t batch = channels ? 1 : x.size[0], each = x.size[!channels] / n;
  int64_t rest = channels ? 1 : lt_hlo_numel(x) / (batch > 0 ? batch * n * each : 1);
  return lt_hlo_reshape(l->h, x, 4, (int64_t[]){batch, n, each, rest});
}

LT_LOWERING(group_norm) {
  lt_hlo x = grouped(l, lt_lower_float(l, 0), false), out = l->out[0];
  lt_hlo weight = lt_lower_float(l, 1), bias = lt_lower_float(l, 2);
  lt_hlo y = times(l->h, normal(l->h, x, moments_of(l, x, 12, true)), grouped(l, weight, true));
  if (bias.id != 0) y = LT_BY(l->h, y, "a + b", y, grouped(l, bias, true));
  l->out[0] = lt_hlo_reshape(l->h, y, out.ndim, out.size);
  return true;
}

LT_LOWERING(group_norm_backward) {
  lt_hlo_text *h = l->h;
  lt_hlo x = grouped(l, lt_lower_float(l, 1), false),
         weight = grouped(l, lt_lower_float(l, 2), true);
  lt_hlo g = grouped(l, lt_hlo_convert(h, l->in[0], x.type), false), out = l->out[0];
  moments m = moments_of(l, x, 12, true);
  lt_hlo z = normal(h, x, m), of_x = gradient(h, times(h, g, weight), z, m, 12);
  l->out[0] = lt_hlo_reshape(h, of_x, out.ndim, out.size);
  if (l->n_out > 1) {
    lt_hlo product = lt_hlo_two(h, "multiply", g, z);
    l->out[1] = lt_hlo_flat(h, lt_hlo_sum(h, product, 9, false));
  }
  if (l->n_out > 2) l->out[2] = lt_hlo_flat(h, lt_hlo_sum(h, g, 9, false));
  return true;
}

/* A value of each channel beside x [N, C, ...], with dims of size 1. */
static lt_hlo by_channel(lt_hlo_text *h, lt_hlo v, lt_hlo x) {
  lt_hlo shape = x;
  if (v.id == 0) return v;
  for (int k = 0; k < x.ndim; k++) shape.size[k] = k == 1 ? x.size[1] : 1;
  return lt_hlo_reshape(h, lt_hlo_convert(h, v, x.type), shape.ndim, shape.size);
}

static unsigned all_but_channels(lt_hlo x) { return ((1u << x.ndim) - 1) & ~2u; }

/* (x, weight, bias, mean, variance) to y, and to mean and variance where they are not inputs. */
LT_LOWERING(batch_norm) {
  lt_hlo_text *h = l->h;
  lt_hlo x = lt_lower_float(l, 0);
  moments m;
  if (lt_has(l, 3) && lt_has(l, 4)) {
    m.mean = by_channel(h, l->in[3], x);
    m.scale = root_of(l, by_channel(h, l->in[4], x));
  } else {
    m = moments_of(l, x, all_but_channels(x), true);
    l->out[1] = lt_hlo_flat(h, m.mean);
    l->out[2] = lt_hlo_flat(h, m.variance);
  }
  lt_hlo y = times(h, normal(h, x, m), by_channel(h, lt_lower_float(l, 1), x));
  if (lt_has(l, 2)) y = LT_BY(h, y, "a + b", y, by_channel(h, l->in[2], x));
  l->out[0] = y;
  return true;
}

/* (g, x, mean, variance, weight) to gradients of x, weight, bias. */
LT_LOWERING(batch_norm_backward) {
  lt_hlo_text *h = l->h;
  lt_hlo x = lt_lower_float(l, 1), g = lt_hlo_convert(h, l->in[0], x.type);
  lt_hlo weight = by_channel(h, lt_has(l, 4) ? l->in[4] : (lt_hlo){0}, x);
  unsigned dims = all_but_channels(x);
  moments m = {.mean = by_channel(h, l->in[2], x),
               .scale = root_of(l, by_channel(h, l->in[3], x))};
  lt_hlo z = normal(h, x, m), a = times(h, g, weight);
  l->out[0] = lt_lower_flag(l, "fixed") ? LT_BY(h, a, "a * b", a, m.scale)
                                        : gradient(h, a, z, m, dims);
  l->out[1] = lt_hlo_sum(h, lt_hlo_two(h, "multiply", g, z), dims, false);
  l->out[2] = lt_hlo_sum(h, g, dims, false);
  return true;
}
