/* runtime/xla/lower_sampling.c: multinomial, with the CPU's random bits (cpu/sampling.c): by the
   inverse of the distribution function, or the smallest of exponential times. */
#include "ops/args.h"
#include "xla/lowerings.h"

static void refuse(lt_lowering *l, lt_hlo rows_bad, int64_t limit) {
  lt_hlo row = lt_hlo_iota(l->h, LT_I64, rows_bad, 0);
  lt_lower_check(l, rows_bad, lt_hlo_by(l->h, "add", row, 1), limit);
}

/* Refuses rows of p [R, N] with an element that is negative or not finite, without a positive one,
   or with fewer of these than samples that are to differ. */
static void check(lt_lowering *l, lt_hlo p, int64_t samples, bool replacement) {
  lt_hlo_text *h = l->h;
  lt_hlo some = LT_BY(h, p, "a > 0", p), wide = lt_hlo_convert(h, some, LT_I64);
  lt_hlo improper = lt_hlo_one(h, "not", LT_BY(h, p, "a >= 0 && a - a == 0", p));
  lt_hlo positive = lt_hlo_sum(h, wide, 2, false);
  refuse(l, lt_hlo_reduce(h, "or", 0, improper, 2, false), LT_NOT_PROBABLE);
  refuse(l, lt_hlo_compare(h, "EQ", positive, lt_hlo_integer(h, 0, positive)), LT_ALL_ZERO);
  if (!replacement)
    refuse(l, lt_hlo_compare(h, "LT", positive, lt_hlo_integer(h, samples, positive)), samples);
}

/* How many of the running sums of p [R, N] are at most u times the last [R, S]. */
static lt_hlo with_replacement(lt_hlo_text *h, lt_hlo p, lt_hlo u) {
  int64_t r = p.size[0], n = p.size[1], s = u.size[1];
  lt_hlo sums = lt_lower_running_sum(h, p, 1, false);
  u = lt_hlo_two(h, "multiply", u, lt_hlo_expand(h, lt_hlo_slice(h, sums, 1, n - 1, n, 1), u));
  lt_hlo all = lt_hlo_of(LT_F64, 3, (int64_t[]){r, s, n});
  sums = lt_hlo_expand(h, lt_hlo_reshape(h, sums, 3, (int64_t[]){r, 1, n}), all);
  u = lt_hlo_expand(h, lt_hlo_reshape(h, u, 3, (int64_t[]){r, s, 1}), all);
  lt_hlo passed = lt_hlo_convert(h, lt_hlo_compare(h, "LE", sums, u), LT_I64);
  lt_hlo at = lt_hlo_sum(h, passed, 4, false);
  return lt_hlo_two(h, "minimum", at, lt_hlo_integer(h, n - 1, at));
}

static lt_hlo without_replacement(lt_hlo_text *h, lt_hlo p, lt_hlo u, int64_t samples) {
  lt_hlo sorted[2], time = LT_BY(h, p, "a > 0 ? -log(b + K(1.1102230246251565e-16)) / a : 1 / K(0)",
                                 p, u);
  lt_lower_sort(h, time, lt_hlo_iota(h, LT_I64, time, 1), 1, "a < b", sorted);
  return lt_hlo_slice(h, sorted[1], 1, 0, samples, 1);
}

LT_LOWERING(multinomial) {
  lt_hlo_text *h = l->h;
  lt_hlo out = l->out[0], x = l->in[0];
  int64_t samples = lt_lower_int(l, "num_samples"), n = x.size[x.ndim - 1];
  bool replacement = lt_lower_flag(l, "replacement");
  if (lt_hlo_numel(out) == 0 || lt_hlo_numel(x) == 0) return false;
  int64_t rows = lt_hlo_numel(x) / n, drawn = replacement ? samples : n;
  lt_hlo p = lt_hlo_reshape(h, lt_hlo_convert(h, x, LT_F64), 2, (int64_t[]){rows, n});
  check(l, p, samples, replacement);
  lt_hlo u = lt_lower_wide_unit(h, lt_lower_words(l, 2 * rows * drawn), 0, 2);
  u = lt_hlo_reshape(h, u, 2, (int64_t[]){rows, drawn});
  lt_hlo y = replacement ? with_replacement(h, p, u) : without_replacement(h, p, u, samples);
  l->out[0] = lt_hlo_reshape(h, y, out.ndim, out.size);
  return true;
}
