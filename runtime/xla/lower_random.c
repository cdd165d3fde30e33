/* runtime/xla/lower_random.c: random numbers, with the bits of the CPU's (base/random.h); normals
   but for the last digits of a logarithm, a sine and a cosine.

   Words come from a key that is an input of the program, by unsigned arithmetic of 64 bits. Where
   the CPU computes in f64, f32 must do: not every plugin has f64. */
#include "ops/args.h"
#include "xla/lowerings.h"

/* The upper and lower 32 bits of x times a constant. */
static void product(lt_hlo_text *h, lt_hlo x, uint32_t by, lt_hlo *high, lt_hlo *low) {
  lt_hlo wide = lt_hlo_convert(h, x, LT_HLO_U64);
  wide = lt_hlo_two(h, "multiply", wide, lt_hlo_integer(h, by, wide));
  *low = lt_hlo_convert(h, wide, LT_HLO_U32);
  wide = lt_hlo_two(h, "shift_right_logical", wide, lt_hlo_integer(h, 32, wide));
  *high = lt_hlo_convert(h, wide, LT_HLO_U32);
}

/* A 64-bit scalar as two words in the shape of `like`. */
static void halves(lt_hlo_text *h, lt_hlo x, lt_hlo like, lt_hlo *low, lt_hlo *high) {
  lt_hlo up = lt_hlo_two(h, "shift_right_logical", x, lt_hlo_integer(h, 32, x));
  *low = lt_hlo_expand(h, lt_hlo_convert(h, x, LT_HLO_U32), like);
  *high = lt_hlo_expand(h, lt_hlo_convert(h, up, LT_HLO_U32), like);
}

/* Philox4x32-10 of blocks 0..blocks-1: [blocks, 4], flat. */
lt_hlo lt_lower_words(lt_lowering *l, int64_t n) {
  lt_hlo_text *h = l->h;
  int64_t blocks = (n + 3) / 4;
  lt_hlo like = lt_hlo_of(LT_HLO_U64, 1, &blocks), x[4], k[2];
  lt_hlo block = lt_hlo_two(h, "add", lt_hlo_iota(h, LT_HLO_U64, like, 0),
                            lt_hlo_expand(h, lt_lower_key(l, "rng_key", 2), like));
  halves(h, block, block, &x[0], &x[1]);
  halves(h, lt_lower_key(l, "rng_key", 1), like, &x[2], &x[3]);
  halves(h, lt_lower_key(l, "rng_key", 0), like, &k[0], &k[1]);
  for (int round = 0; round < 10; round++) {
    lt_hlo high0, low0, high1, low1;
    product(h, x[0], 0xD2511F53u, &high0, &low0);
    product(h, x[2], 0xCD9E8D57u, &high1, &low1);
    x[0] = lt_hlo_two(h, "xor", lt_hlo_two(h, "xor", high1, x[1]), k[0]);
    x[2] = lt_hlo_two(h, "xor", lt_hlo_two(h, "xor", high0, x[3]), k[1]);
    x[1] = low1, x[3] = low0;
    k[0] = lt_hlo_two(h, "add", k[0], lt_hlo_integer(h, 0x9E3779B9u, k[0]));
    k[1] = lt_hlo_two(h, "add", k[1], lt_hlo_integer(h, 0xBB67AE85u, k[1]));
  }
  for (int j = 0; j < 4; j++) x[j] = lt_hlo_reshape(h, x[j], 2, (int64_t[]){blocks, 1});
  return lt_hlo_slice(h, lt_hlo_flat(h, lt_hlo_join(h, 4, x, 1)), 0, 0, n, 1);
}

/* Every second word from `first` on. */
static lt_hlo second(lt_hlo_text *h, lt_hlo words, int64_t first, int64_t step) {
  return lt_hlo_slice(h, words, 0, first, words.size[0], step);
}

/* The upper bits of words as numbers in [0, 1): no more than the type holds below 1. */
static lt_hlo unit(lt_hlo_text *h, lt_hlo words, int64_t shift, int type) {
  words = lt_hlo_two(h, "shift_right_logical", words, lt_hlo_integer(h, shift, words));
  return lt_hlo_by(h, "multiply", lt_hlo_convert(h, words, type),
                   1 / (double)(1ll << (32 - shift)));
}

lt_hlo lt_lower_wide_unit(lt_hlo_text *h, lt_hlo words, int64_t at, int64_t step) {
  if (lt_hlo_stored(LT_F64) != LT_F64)
    return unit(h, second(h, words, at, step), 8, LT_F64);
  lt_hlo high = lt_hlo_convert(h, second(h, words, at, step), LT_HLO_U64);
  lt_hlo low = lt_hlo_convert(h, second(h, words, at + 1, step), LT_HLO_U64);
  high = lt_hlo_two(h, "shift_left", high, lt_hlo_integer(h, 21, high));
  low = lt_hlo_two(h, "shift_right_logical", low, lt_hlo_integer(h, 11, low));
  return lt_hlo_by(h, "multiply", lt_hlo_convert(h, lt_hlo_two(h, "or", high, low), LT_F64),
                   0x1p-53);
}

static bool done(lt_lowering *l, lt_hlo flat) {
  l->out[0] = lt_hlo_reshape(l->h, flat, l->out[0].ndim, l->out[0].size);
  return true;
}

static bool nothing(lt_lowering *l) {
  if (lt_hlo_numel(l->out[0]) > 0) return false;
  l->out[0] = lt_hlo_integer(l->h, 0, l->out[0]);
  return true;
}

LT_LOWERING(rand) {
  int type = l->out[0].type;
  int64_t n = lt_hlo_numel(l->out[0]);
  if (nothing(l)) return true;
  if (type == LT_F64) return done(l, lt_lower_wide_unit(l->h, lt_lower_words(l, 2 * n), 0, 2));
  int64_t shift = type == LT_BF16 ? 24 : type == LT_F16 ? 21 : 8;
  return done(l, unit(l->h, lt_lower_words(l, n), shift, LT_F32));
}

/* Pairs by Box and Muller: sqrt(-2 log u) (cos, sin)(2 pi v), u in (0, 1]. */
static void pairs_of_f64(lt_hlo_text *h, lt_hlo words, lt_hlo *out) {
  lt_hlo u = lt_lower_wide_unit(h, words, 0, 4), v = lt_lower_wide_unit(h, words, 2, 4);
  lt_hlo r = LT_BY(h, u, "sqrt(-2 * log(a))", lt_hlo_by(h, "add", u, 0x1p-53));
  out[0] = LT_BY(h, r, "a * cos(b * K(6.283185307179586))", r, v);
  out[1] = LT_BY(h, r, "a * sin(b * K(6.283185307179586))", r, v);
}

/* u = (w + 1) / 2^32: an f32 has its digits near 0, and those of 1 - u near 1. */
static lt_hlo radius(lt_hlo_text *h, lt_hlo w) {
  lt_hlo u = lt_hlo_convert(h, w, LT_F32);
  lt_hlo rest = lt_hlo_convert(h, lt_hlo_one(h, "not", w), LT_F32);
  return LT_BY(h, u, "sqrt(-2 * (a < 2147483648 ? log((a + 1) * K(2.3283064365386963e-10))"
                     ": log1p(-b * K(2.3283064365386963e-10))))", u, rest);
}

/* v = w / 2^32 as the nearest quarter of a turn, and the signed rest, whose f32 is exact to 2^-27
   of a turn. */
static void pairs_of_f32(lt_hlo_text *h, lt_hlo words, lt_hlo *out) {
  lt_hlo r = radius(h, second(h, words, 0, 2)), w = second(h, words, 1, 2);
  lt_hlo quarter = lt_hlo_two(h, "add", w, lt_hlo_integer(h, 1 << 29, w));
  quarter = lt_hlo_two(h, "shift_right_logical", quarter, lt_hlo_integer(h, 30, w));
  lt_hlo begin = lt_hlo_two(h, "shift_left", quarter, lt_hlo_integer(h, 30, w));
  lt_hlo rest = lt_hlo_bits(h, lt_hlo_two(h, "subtract", w, begin), LT_I32);
  rest = lt_hlo_by(h, "multiply", lt_hlo_convert(h, rest, LT_F32), 0x1.921fb54442d18p-30);
  lt_hlo c = lt_hlo_one(h, "cosine", rest), s = lt_hlo_one(h, "sine", rest);
  quarter = lt_hlo_convert(h, quarter, LT_F32);
  out[0] = LT_BY(h, r, "a * (d == 0 ? b : d == 1 ? -c : d == 2 ? -b : c)", r, c, s, quarter);
  out[1] = LT_BY(h, r, "a * (d == 0 ? c : d == 1 ? b : d == 2 ? -c : -b)", r, c, s, quarter);
}

LT_LOWERING(randn) {
  lt_hlo_text *h = l->h;
  int64_t n = lt_hlo_numel(l->out[0]), pairs = (n + 1) / 2;
  if (nothing(l)) return true;
  bool wide = l->out[0].type == LT_F64;
  lt_hlo words = lt_lower_words(l, (wide ? 4 : 2) * pairs), both[2];
  if (wide) pairs_of_f64(h, words, both);
  else pairs_of_f32(h, words, both);
  for (int k = 0; k < 2; k++) both[k] = lt_hlo_reshape(h, both[k], 2, (int64_t[]){pairs, 1});
  return done(l, lt_hlo_slice(h, lt_hlo_flat(h, lt_hlo_join(h, 2, both, 1)), 0, 0, n, 1));
}

/* Ranges of more than 32 bits need products of 128. */
LT_LOWERING(randint) {
  lt_hlo_text *h = l->h;
  int64_t low = lt_lower_int(l, "low"), high = lt_lower_int(l, "high");
  uint64_t range = (uint64_t)high - (uint64_t)low;
  if (nothing(l)) return true;
  if (range > 0xffffffffu) return false;
  lt_hlo w = lt_hlo_convert(h, lt_lower_words(l, lt_hlo_numel(l->out[0])), LT_HLO_U64);
  w = lt_hlo_two(h, "multiply", w, lt_hlo_integer(h, (int64_t)range, w));
  w = lt_hlo_two(h, "shift_right_logical", w, lt_hlo_integer(h, 32, w));
  lt_hlo v = lt_hlo_convert(h, w, LT_I64);
  return done(l, lt_hlo_two(h, "add", v, lt_hlo_integer(h, low, v)));
}

/* The bits of a double of the same value, i64; a subnormal f32 has those of 0. */
static lt_hlo double_bits(lt_hlo_text *h, lt_hlo x) {
  if (lt_hlo_stored(x.type) == LT_F64) return lt_hlo_bits(h, x, LT_I64);
  lt_hlo b = lt_hlo_convert(h, lt_hlo_bits(h, x, LT_HLO_U32), LT_I64);
  return LT_BY(h, b, "T m = a & 2147483647; T e = m < 2139095040 ? 7516192768 : 15032385536;"
                     "shl(a - m, 32) + (m < 8388608 ? 0 : shl(m + e, 29))", b);
}

/* w / 2^32 < p where w is less than p 2^32, which is exact, rounded up. */
LT_LOWERING(bernoulli) {
  lt_hlo_text *h = l->h;
  if (nothing(l)) return true;
  lt_hlo p = lt_hlo_flat(h, lt_lower_float(l, 0));
  lt_hlo good = LT_BY(h, p, "a >= 0 && a <= 1", p);
  lt_lower_check(l, lt_hlo_one(h, "not", good), double_bits(h, p), 0);
  lt_hlo w = lt_hlo_convert(h, lt_lower_words(l, p.size[0]), LT_I64);
  lt_hlo bound = lt_hlo_convert(h, LT_BY(h, p, "ceil(a * K(4294967296))", p), LT_I64);
  return done(l, lt_hlo_compare(h, "LT", w, bound));
}

/* The upper and lower half of the threshold of words that are dropped, as an f32 has 24 bits; the
   factor of the others: 0 where all are. */
int lt_derive_drop(double p, double *out) {
  uint32_t threshold = p < 1 ? (uint32_t)(p * 0x1p32) : 0;
  out[0] = (double)(threshold >> 16);
  out[1] = (double)(threshold & 0xffff);
  out[2] = p < 1 ? 1 / (1 - p) : 0;
  return 3;
}

int lt_derive_dropout(const lt_call *call, double *out) {
  return lt_derive_drop(*(const double *)lt_xla_host->argument(call, "p"), out);
}

lt_hlo lt_lower_drop(lt_lowering *l, lt_hlo x, lt_hlo words) {
  lt_hlo one = lt_hlo_scalar(LT_F32);
  lt_hlo high = lt_hlo_convert(l->h, lt_lower_derived(l, 0, one), LT_HLO_U32);
  lt_hlo low = lt_hlo_convert(l->h, lt_lower_derived(l, 1, one), LT_HLO_U32);
  high = lt_hlo_two(l->h, "shift_left", high, lt_hlo_integer(l->h, 16, high));
  lt_hlo threshold = lt_hlo_expand(l->h, lt_hlo_two(l->h, "or", high, low), words);
  lt_hlo scale = lt_lower_derived(l, 2, lt_hlo_scalar(x.type));
  lt_hlo dropped = lt_hlo_compare(l->h, "LT", words, threshold);
  return LT_BY(l->h, x, "c || b == 0 ? 0 : a * b", x, scale, dropped);
}

LT_LOWERING(dropout) {
  lt_hlo x = lt_lower_in(l, 0), words = x;
  if (nothing(l)) return true;
  if (!lt_lower_flag(l, "training")) {
    l->out[0] = x;
    return true;
  }
  words = lt_lower_words(l, lt_hlo_numel(x));
  l->out[0] = lt_lower_drop(l, x, lt_hlo_reshape(l->h, words, x.ndim, x.size));
  return true;
}
