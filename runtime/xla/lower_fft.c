/* runtime/xla/lower_fft.c: Fourier transforms of lines, by StableHLO's, whose inverses are divided
   by their length. */
#include "xla/lowerings.h"

/* Lines of x, [rows, n]. */
static lt_hlo lines(lt_hlo_text *h, lt_hlo x, int64_t n) {
  return lt_hlo_reshape(h, x, 2, (int64_t[]){lt_hlo_numel(x) / n, n});
}

/* [.., n, 2] as complex lines. */
static lt_hlo complex_lines(lt_hlo_text *h, lt_hlo x) {
  int last = x.ndim - 1;
  int64_t n = x.size[last - 1];
  lt_hlo re = lines(h, lt_hlo_slice(h, x, last, 0, 1, 1), n);
  lt_hlo im = lines(h, lt_hlo_slice(h, x, last, 1, 2, 1), n);
  lt_hlo y = lt_hlo_typed(re, x.type == LT_F64 ? LT_HLO_C128 : LT_HLO_C64);
  return lt_hlo_line(h, y, "stablehlo.complex $, $ : @", &re, &im, &y);
}

static lt_hlo transform(lt_hlo_text *h, const char *kind, lt_hlo x, int64_t n, lt_hlo y) {
  return lt_hlo_line(h, y, "stablehlo.fft $, type = %s, length = [%d] : (@) -> @", &x, kind, n, &x,
                     &y);
}

static bool done(lt_lowering *l, lt_hlo y, int64_t n) {
  lt_hlo out = lt_hlo_typed(l->out[0], y.type);
  y = lt_hlo_reshape(l->h, y, out.ndim, out.size);
  l->out[0] = LT_BY(l->h, y, "a * b", y, lt_lower_number(l, "scale", lt_hlo_scalar(y.type)));
  if (n > 1) l->out[0] = lt_hlo_by(l->h, "multiply", l->out[0], (double)n);
  return true;
}

/* Complex lines as pairs. */
static lt_hlo pairs(lt_hlo_text *h, lt_hlo y, int type) {
  lt_hlo part = lt_hlo_typed(y, type), both[2];
  for (int k = 0; k < 2; k++) {
    both[k] = lt_hlo_line(h, part, "stablehlo.%s $ : (@) -> @", k == 0 ? "real" : "imag", &y, &y,
                          &part);
    both[k] = lt_hlo_reshape(h, both[k], 3, (int64_t[]){y.size[0], y.size[1], 1});
  }
  return lt_hlo_join(h, 2, both, 2);
}

LT_LOWERING(fft_complex) {
  lt_hlo x = l->in[0];
  int64_t n = x.size[x.ndim - 2];
  bool inverse = lt_lower_flag(l, "inverse");
  if (lt_hlo_numel(x) == 0) return false;
  lt_hlo y = complex_lines(l->h, x);
  y = transform(l->h, inverse ? "IFFT" : "FFT", y, n, y);
  return done(l, pairs(l->h, y, x.type), inverse ? n : 1);
}

LT_LOWERING(fft_real) {
  lt_hlo x = l->in[0];
  int64_t n = x.size[x.ndim - 1];
  if (lt_hlo_numel(x) == 0) return false;
  x = lines(l->h, x, n);
  lt_hlo y = lt_hlo_of(x.type == LT_F64 ? LT_HLO_C128 : LT_HLO_C64, 2,
                       (int64_t[]){x.size[0], n / 2 + 1});
  return done(l, pairs(l->h, transform(l->h, "RFFT", x, n, y), x.type), 1);
}

LT_LOWERING(fft_real_inverse) {
  int64_t n = lt_lower_int(l, "n");
  if (lt_hlo_numel(l->out[0]) == 0) return false;
  lt_hlo x = complex_lines(l->h, l->in[0]);
  lt_hlo y = lt_hlo_of(l->in[0].type, 2, (int64_t[]){x.size[0], n});
  return done(l, transform(l->h, "IRFFT", x, n, y), n);
}
