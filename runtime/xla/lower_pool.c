/* runtime/xla/lower_pool.c: the largest element of each window, its place, and its derivative.

   Written out by places of the window, in order, as strided parts of x: so the first of equal
   elements is kept, and NaN is above all. Windows of more places run on the CPU. */
#include <math.h>

#include "xla/lowerings.h"

enum { PLACES = 81 };

typedef struct pool {
  lt_pair kernel, stride, pad, dilation;
  int64_t h, w, oh, ow;
} pool;

static pool pool_of(const lt_lowering *l, const int64_t *x, const int64_t *y) {
  return (pool){.kernel = lt_lower_pair(l, "kernel_size"), .stride = lt_lower_pair(l, "stride"),
                .pad = lt_lower_pair(l, "padding"), .dilation = lt_lower_pair(l, "dilation"),
                .h = x[2], .w = x[3], .oh = y[2], .ow = y[3]};
}

/* x with `value` around, as far as windows reach. */
static lt_hlo padded(lt_hlo_text *h, const pool *p, lt_hlo x, double value) {
  int64_t low[4] = {0, 0, p->pad.h, p->pad.w}, high[4] = {0};
  high[2] = (p->oh - 1) * p->stride.h + p->dilation.h * (p->kernel.h - 1) + 1 - p->h - p->pad.h;
  high[3] = (p->ow - 1) * p->stride.w + p->dilation.w * (p->kernel.w - 1) + 1 - p->w - p->pad.w;
  return lt_hlo_pad(h, x, value, low, high);
}

/* The elements of padded x at place k of the windows. */
static lt_hlo at_place(lt_hlo_text *h, const pool *p, lt_hlo x, int64_t k) {
  int64_t top = k / p->kernel.w * p->dilation.h, left = k % p->kernel.w * p->dilation.w;
  x = lt_hlo_slice(h, x, 2, top, top + (p->oh - 1) * p->stride.h + 1, p->stride.h);
  return lt_hlo_slice(h, x, 3, left, left + (p->ow - 1) * p->stride.w + 1, p->stride.w);
}

LT_LOWERING(max_window) {
  lt_hlo_text *h = l->h;
  lt_hlo x = lt_lower_in(l, 0), best = l->out[0];
  pool p = pool_of(l, x.size, best.size);
  int64_t places = p.kernel.h * p.kernel.w;
  if (places > PLACES || lt_hlo_numel(best) == 0) return false;
  lt_hlo inside = x;
  inside.size[0] = inside.size[1] = 1;
  inside = padded(h, &p, lt_hlo_integer(h, 1, lt_hlo_typed(inside, LT_BOOL)), 0);
  lt_hlo wide = padded(h, &p, x, 0), at = {0};
  for (int64_t k = 0; k < places; k++) {
    lt_hlo v = at_place(h, &p, wide, k), in = at_place(h, &p, inside, k);
    if (k == 0) {
      best = v;
      at = lt_hlo_integer(h, -1, lt_hlo_typed(v, LT_I32));
    }
    lt_hlo more = LT_BY(h, v, x.type == LT_I64 ? "d && (c < 0 || a > b)"
                                               : "d && (c < 0 || a > b || (a != a && b == b))",
                        v, best, at, in);
    best = lt_hlo_choose(h, more, v, best);
    at = lt_hlo_choose(h, more, lt_hlo_integer(h, k, at), at);
  }
  l->out[0] = best;
  l->out[1] = at;
  return true;
}

/* g at a place of each window, back where x had it. */
static lt_hlo put_back(lt_hlo_text *h, const pool *p, lt_hlo g, lt_hlo x, int64_t k) {
  int64_t low_h = k / p->kernel.w * p->dilation.h - p->pad.h;
  int64_t low_w = k % p->kernel.w * p->dilation.w - p->pad.w;
  lt_hlo zero = lt_hlo_integer(h, 0, lt_hlo_scalar(g.type));
  x.type = g.type;
  return lt_hlo_line(h, x, "stablehlo.pad $, $, low = [0, 0, %d, %d], high = [0, 0, %d, %d], "
                     "interior = [0, 0, %d, %d] : (@, @) -> @", &g, &zero, low_h, low_w,
                     p->h - low_h - (p->oh - 1) * p->stride.h - 1,
                     p->w - low_w - (p->ow - 1) * p->stride.w - 1, p->stride.h - 1,
                     p->stride.w - 1, &g, &zero, &x);
}

LT_LOWERING(max_window_backward) {
  lt_hlo_text *h = l->h;
  lt_hlo g = lt_lower_in(l, 0), at = lt_hlo_convert(h, l->in[1], LT_I32), x = l->out[0], sum = {0};
  pool p = pool_of(l, x.size, g.size);
  int64_t places = p.kernel.h * p.kernel.w;
  if (places > PLACES || lt_hlo_numel(g) == 0) return false;
  for (int64_t k = 0; k < places; k++) {
    lt_hlo here = lt_hlo_compare(h, "EQ", at, lt_hlo_integer(h, k, at));
    lt_hlo part = lt_hlo_choose(h, here, g, lt_hlo_integer(h, 0, g));
    part = put_back(h, &p, part, x, k);
    sum = k == 0 ? part : lt_hlo_two(h, "add", sum, part);
  }
  l->out[0] = sum;
  return true;
}
