/* runtime/xla/lower_attention.c: attention with its scores written out, which XLA fuses; as
   cpu/attention.c in what rows that see nothing give, and in the statistics that are kept.

   B batch, H heads, T queries, S keys, D; 2 to 4 dims. */
#include <math.h>

#include "base/random.h"
#include "xla/lowerings.h"

typedef struct heads {
  lt_hlo q, k, v;  /* in one type; of k and v each head as often as q has it */
  lt_hlo scores;   /* [.., T, S], -inf where a key takes no part */
  lt_hlo words;    /* of dropout, none without */
  unsigned batch;  /* dims before the last two */
  int n;
  bool shared;     /* k and v have fewer heads */
} heads;

/* [.., Hk, S, D] as [.., H, S, D]. */
static lt_hlo repeated(lt_hlo_text *h, lt_hlo x, lt_hlo q) {
  int at = x.ndim - 3;
  if (at < 0 || x.size[at] == q.size[at]) return x;
  lt_hlo many = x, whole = x;
  int64_t dims[LT_HLO_DIMS];
  for (int k = x.ndim; k > at + 1; k--) many.size[k] = x.size[k - 1];
  many.ndim++, many.size[at + 1] = q.size[at] / x.size[at], whole.size[at] = q.size[at];
  for (int k = 0; k < x.ndim; k++) dims[k] = k <= at ? k : k + 1;
  return lt_hlo_reshape(h, lt_hlo_spread(h, x, many, dims), whole.ndim, whole.size);
}

/* Its derivative: sums over the heads that share one. */
static lt_hlo summed(lt_hlo_text *h, lt_hlo g, lt_hlo x) {
  int at = x.ndim - 3;
  if (at < 0 || x.size[at] == g.size[at]) return g;
  lt_hlo many = x;
  for (int k = x.ndim; k > at + 1; k--) many.size[k] = g.size[k - 1];
  many.ndim++, many.size[at + 1] = g.size[at] / x.size[at],
                              many.size[many.ndim - 1] = g.size[g.ndim - 1];
  return lt_hlo_sum(h, lt_hlo_reshape(h, g, many.ndim, many.size), 1u << (at + 1), false);
}

static lt_hlo words_of(lt_lowering *l, lt_hlo scores) {
  int at = scores.ndim - 3;
  lt_hlo all = scores;
  if (at >= 0) all.size[at] = lt_lower_int(l, "all_heads");
  lt_hlo words = lt_lower_words(l, lt_hlo_numel(all));
  words = lt_hlo_reshape(l->h, words, all.ndim, all.size);
  if (at < 0) return words;
  int64_t first = lt_lower_int(l, "first_head");
  return lt_hlo_slice(l->h, words, at, first, first + scores.size[at], 1);
}

static heads heads_of(lt_lowering *l, int q, int mask) {
  lt_hlo_text *h = l->h;
  heads a = {
      .q = lt_lower_float(l, q), .k = lt_lower_float(l, q + 1), .v = lt_lower_float(l, q + 2)};
  a.k = repeated(h, a.k, a.q), a.v = repeated(h, a.v, a.q);
  a.n = a.q.ndim;
  a.batch = (1u << (a.n - 2)) - 1;
  unsigned last = 1u << (a.n - 1);
  lt_hlo s = lt_hlo_dot(h, a.q, a.k, a.batch, a.batch, last, last);
  s = lt_hlo_two(h, "multiply", s, lt_lower_number(l, "scale", s));
  lt_hlo none = lt_hlo_number(h, -HUGE_VAL, s);
  if (lt_has(l, mask) && l->in[mask].type == LT_BOOL)
    s = lt_hlo_choose(h, lt_hlo_expand(h, l->in[mask], s), s, none);
  else if (lt_has(l, mask))
    s = LT_BY(h, s, "a + b", s, l->in[mask]);
  if (lt_lower_flag(l, "causal")) {
    lt_hlo row = lt_hlo_iota(h, LT_I32, s, a.n - 2), column = lt_hlo_iota(h, LT_I32, s, a.n - 1);
    s = lt_hlo_choose(h, lt_hlo_compare(h, "LE", column, row), s, none);
  }
  a.scores = s;
  const lt_rng_key *key = lt_lower_argument(l, "rng_key");
  if (key->drawn) a.words = words_of(l, s);
  return a;
}

/* Row statistics [2, .., T]. */
static lt_hlo kept(lt_hlo_text *h, lt_hlo x) {
  lt_hlo y = x;
  for (int k = 1; k < x.ndim; k++) y.size[k] = x.size[k - 1];
  y.size[0] = 1;
  return lt_hlo_reshape(h, x, y.ndim, y.size);
}

static lt_hlo row_of(lt_hlo_text *h, lt_hlo stats, int64_t which, lt_hlo scores) {
  lt_hlo y = scores;
  y.size[y.ndim - 1] = 1;
  return lt_hlo_reshape(h, lt_hlo_slice(h, stats, 0, which, which + 1, 1), y.ndim, y.size);
}

int lt_derive_scaled_dot_product_attention(const lt_call *call, double *out) {
  return lt_derive_drop(*(const double *)lt_xla_host->argument(call, "dropout_p"), out);
}

/* A row of -infinity alone gives zeros. */
LT_LOWERING(scaled_dot_product_attention) {
  lt_hlo_text *h = l->h;
  heads a = heads_of(l, 0, 3);
  unsigned last = 1u << (a.n - 1);
  lt_hlo most = lt_hlo_reduce(h, "maximum", -HUGE_VAL, a.scores, last, true);
  lt_hlo p = LT_BY(h, a.scores, "b - b != 0 && b < 0 ? 0 : exp(a - b)", a.scores, most);
  lt_hlo sum = lt_hlo_sum(h, p, last, true);
  sum = LT_BY(h, sum, "b - b != 0 && b < 0 ? 1 : a", sum, most);
  lt_hlo stats[2] = {kept(h, most), kept(h, sum)};
  if (a.words.id != 0) p = lt_lower_drop(l, p, a.words);
  lt_hlo y = lt_hlo_dot(h, p, a.v, a.batch, a.batch, last, 1u << (a.n - 2));
  l->out[0] = LT_BY(h, y, "a / b", y, sum);
  l->out[1] = lt_hlo_join(h, 2, stats, 0);
  return true;
}

/* (g, q, k, v, out, stats, mask): gradients of q, k and v, and of the scores if wanted. */
LT_LOWERING(scaled_dot_product_attention_backward) {
  lt_hlo_text *h = l->h;
  heads a = heads_of(l, 1, 6);
  int type = a.q.type;
  unsigned last = 1u << (a.n - 1), rows = 1u << (a.n - 2);
  lt_hlo g = lt_hlo_convert(h, l->in[0], type), out = lt_hlo_convert(h, l->in[4], type);
  lt_hlo stats = lt_hlo_convert(h, l->in[5], type);
  lt_hlo most = row_of(h, stats, 0, a.scores), sum = row_of(h, stats, 1, a.scores);
  lt_hlo p = LT_BY(h, a.scores, "b - b != 0 && b < 0 ? 0 : exp(a - b) / c", a.scores, most, sum);
  lt_hlo of_p = lt_hlo_dot(h, g, a.v, a.batch, a.batch, last, last), dropped = p;
  if (a.words.id != 0)
    of_p = lt_lower_drop(l, of_p, a.words), dropped = lt_lower_drop(l, p, a.words);
  lt_hlo delta = lt_hlo_sum(h, lt_hlo_two(h, "multiply", g, out), last, true);
  lt_hlo of_scores = LT_BY(h, p, "a == 0 ? 0 : a * (b - c)", p, of_p, delta);
  if (l->n_out > 3) l->out[3] = of_scores;
  lt_hlo scaled = lt_hlo_two(h, "multiply", of_scores, lt_lower_number(l, "scale", of_scores));
  l->out[0] = lt_hlo_dot(h, scaled, a.k, a.batch, a.batch, last, rows);
  l->out[1] = summed(h, lt_hlo_dot(h, scaled, a.q, a.batch, a.batch, rows, rows), l->in[2]);
  l->out[2] = summed(h, lt_hlo_dot(h, dropped, g, a.batch, a.batch, rows, rows), l->in[3]);
  return true;
}
