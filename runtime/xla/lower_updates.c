/* runtime/xla/lower_updates.c: steps of optimizers: rows of ops/updates.def by their own texts, SGD
   and Adam by the same means; norms and factors of gradients.

   Numbers are derived on the host once a step: as an f32 1 - beta would lose digits. */
#include <math.h>

#include "ops/args.h"
#include "xla/lowerings.h"

static const struct update {
  const char *name;
  int most;
  const char *states[3], *text;
} updates[] = {
#define LT_UPDATE(name, fewest, most, s1, s2, s3, doc, ...) \
  {#name "_step", most, {#s1, #s2, #s3}, #__VA_ARGS__},
#include "ops/updates.def"
};

bool lt_lower_is_update(const char *name) { return LT_FIND(updates, name) != NULL; }

static double argument(const lt_call *call, const char *name) {
  return *(const double *)lt_xla_host->argument(call, name);
}

/* 1 - beta, of both. */
int lt_derive_update(const lt_call *call, double *out) {
  out[0] = 1 - argument(call, "beta1");
  out[1] = 1 - argument(call, "beta2");
  return 2;
}

/* Names of the numbers as the texts have them. */
static void numbers(lt_lowering *l, lt_terms *terms, lt_hlo scalar) {
#define NUMBER_TERM(type, name, default_value) \
  lt_terms_set(terms, "a." #name, lt_lower_number(l, #name, scalar));
  LT_UPDATE_NUMBERS(NUMBER_TERM)
#undef NUMBER_TERM
  lt_terms_set(terms, "a.new1", lt_lower_derived(l, 0, scalar));
  lt_terms_set(terms, "a.new2", lt_lower_derived(l, 1, scalar));
}

/* Writes `value` to input k, unless the step is refused. */
static void write(lt_lowering *l, int k, lt_hlo value, lt_hlo refused) {
  value = lt_hlo_convert(l->h, value, l->in[k].type);
  if (refused.id != 0)
    value = lt_hlo_choose(l->h, lt_hlo_expand(l->h, refused, value), l->in[k], value);
  l->written[k] = value;
}

/* Whether the last input of a checked step refuses it, a scalar bool. */
static lt_hlo refused_of(lt_lowering *l) {
  if (!lt_lower_flag(l, "checked") || l->n_in == 0) return (lt_hlo){0};
  lt_hlo found = lt_hlo_reshape(l->h, l->in[l->n_in - 1], 0, NULL);
  return lt_hlo_compare(l->h, "NE", found, lt_hlo_integer(l->h, 0, found));
}

/* What a state that shrinks becomes: 0 where it is subnormal. */
static lt_hlo normal(lt_hlo_text *h, lt_hlo x) {
  double least = x.type == LT_F64 ? 0x1p-1022 : 0x1p-126;
  lt_hlo size = lt_hlo_one(h, "abs", x);
  lt_hlo tiny = lt_hlo_compare(h, "LT", size, lt_hlo_number(h, least, size));
  return lt_hlo_choose(h, tiny, lt_hlo_number(h, 0, x), x);
}

static lt_hlo group(lt_lowering *l, int k, int type) {
  return lt_hlo_convert(l->h, l->in[k], type);
}

LT_LOWERING(update) {
  const struct update *u = LT_FIND(updates, lt_xla_host->op_name(l->op));
  int states = (int)lt_lower_int(l, "states"), n = l->n_in / (2 + states);
  lt_hlo refused = refused_of(l);
  const char *sign = lt_lower_flag(l, "maximize") ? "-g" : "g";
  for (int k = 0; k < n; k++) {
    lt_terms terms = {0};
    lt_hlo x = lt_lower_in(l, k), scalar = lt_hlo_scalar(x.type);
    numbers(l, &terms, scalar);
    lt_terms_set(&terms, "x", x);
    lt_terms_set(&terms, "g", group(l, n + k, x.type));
    lt_terms_set(&terms, "g", lt_formula(l->h, sign, x, &terms));
    lt_terms_set(&terms, "g", lt_formula(l->h, "a.weight_decay * x + g", x, &terms));
    lt_terms_set(&terms, "x", lt_formula(l->h, "a.shrink * x", x, &terms));
    for (int s = 0; s < u->most; s++)
      lt_terms_set(&terms, u->states[s],
                   s < states ? group(l, (2 + s) * n + k, x.type) : lt_hlo_number(l->h, 0, x));
    lt_formula(l->h, u->text, x, &terms);
    write(l, k, lt_terms_get(&terms, "x"), refused);
    for (int s = 0; s < states; s++)
      write(l, (2 + s) * n + k, normal(l->h, lt_terms_get(&terms, u->states[s])), refused);
  }
  return !l->h->failed;
}

/* Whether it is the first step. */
int lt_derive_sgd_step(const lt_call *call, double *out) {
  out[0] = *(const bool *)lt_xla_host->argument(call, "first");
  return 1;
}

/* The first step of a momentum does not use it. */
LT_LOWERING(sgd_step) {
  lt_hlo_text *h = l->h;
  const double *momentum = lt_lower_argument(l, "momentum");
  bool moves = *momentum != 0, nesterov = lt_lower_flag(l, "nesterov");
  int n = l->n_in / (moves ? 3 : 2);
  lt_hlo refused = refused_of(l);
  const char *sign = lt_lower_flag(l, "maximize") ? "-(b + -c * a)" : "b + c * a";
  for (int k = 0; k < n; k++) {
    lt_hlo x = lt_lower_in(l, k), s = lt_hlo_scalar(x.type), g = group(l, n + k, x.type);
    lt_hlo lr = lt_lower_number(l, "lr", s), by = lt_lower_number(l, "momentum", s);
    lt_hlo d = LT_BY(h, x, sign, x, g, lt_lower_number(l, "weight_decay", s)), way = d;
    if (moves) {
      lt_hlo damp = lt_lower_number(l, "dampening", s), v = group(l, 2 * n + k, x.type);
      v = normal(h, LT_BY(h, x, "e != 0 ? c : b * a + (1 - d) * c", v, by, d, damp,
                          lt_lower_derived(l, 0, s)));
      if (nesterov) way = LT_BY(h, x, "a + c * b", d, v, by);
      else way = v;
      write(l, 2 * n + k, v, refused);
    }
    write(l, k, LT_BY(h, x, "a - c * b", x, way, lr), refused);
  }
  return true;
}

/* As cpu/update.c: step size and root of the corrected moments, 1 - beta1, 1 - beta2, the factor of
   the parameter, what is added of it to the gradient, the gradient's sign. */
int lt_derive_adam_step(const lt_call *call, double *out) {
  double lr = argument(call, "lr"), beta1 = argument(call, "beta1"),
         beta2 = argument(call, "beta2");
  double decay = argument(call, "weight_decay");
  double step = (double)*(const int64_t *)lt_xla_host->argument(call, "step");
  bool decoupled = *(const bool *)lt_xla_host->argument(call, "decoupled");
  out[0] = lr / (1 - pow(beta1, step));
  out[1] = 1 / sqrt(1 - pow(beta2, step));
  out[2] = 1 - beta1;
  out[3] = 1 - beta2;
  out[4] = decoupled ? 1 - lr * decay : 1;
  out[5] = decoupled ? 0 : decay;
  return 6;
}

LT_LOWERING(adam_step) {
  static const char *const names[] = {"size", "root", "new1", "new2", "shrink", "decay"};
  lt_hlo_text *h = l->h;
  int n = l->n_in / 4;
  lt_hlo refused = refused_of(l);
  const char *text = lt_lower_flag(l, "maximize")
                         ? "d = -(g + -decay * x); m = m + new1 * (d - m);"
                           "v = beta2 * v + new2 * d * d;"
                         : "d = g + decay * x; m = m + new1 * (d - m);"
                           "v = beta2 * v + new2 * d * d;";
  for (int k = 0; k < n; k++) {
    lt_terms t = {0};
    lt_hlo x = lt_lower_in(l, k), scalar = lt_hlo_scalar(x.type);
    for (int i = 0; i < 6; i++) lt_terms_set(&t, names[i], lt_lower_derived(l, i, scalar));
    lt_terms_set(&t, "beta2", lt_lower_number(l, "beta2", scalar));
    lt_terms_set(&t, "eps", lt_lower_number(l, "eps", scalar));
    lt_terms_set(&t, "x", x);
    lt_terms_set(&t, "g", group(l, n + k, x.type));
    lt_terms_set(&t, "m", group(l, 2 * n + k, x.type));
    lt_terms_set(&t, "v", group(l, 3 * n + k, x.type));
    lt_formula(h, text, x, &t);
    lt_terms_set(&t, "m", normal(h, lt_terms_get(&t, "m")));
    lt_terms_set(&t, "v", normal(h, lt_terms_get(&t, "v")));
    write(l, k, lt_formula(h, "shrink * x - size * (m / (sqrt(v) * root + eps))", x, &t), refused);
    write(l, 2 * n + k, lt_terms_get(&t, "m"), refused);
    write(l, 3 * n + k, lt_terms_get(&t, "v"), refused);
  }
  return !h->failed;
}

/* Of each tensor by itself, then of these: sums in the widest type. */
LT_LOWERING(grads_norm) {
  lt_hlo_text *h = l->h;
  const double *power = lt_lower_argument(l, "p");
  bool largest = isinf(*power), squares = *power == 2;
  int type = l->out[0].type == LT_F64 ? LT_F64 : LT_F32;
  lt_hlo scalar = lt_hlo_scalar(type), total = lt_hlo_number(h, 0, scalar);
  for (int k = 0; k < l->n_in; k++) {
    lt_hlo x = group(l, k, type);
    unsigned all = (1u << x.ndim) - 1;
    x = squares ? lt_hlo_two(h, "multiply", x, x) : lt_hlo_one(h, "abs", x);
    if (!squares && !largest && *power != 1)
      x = lt_hlo_two(h, "power", x, lt_lower_number(l, "p", x));
    x = lt_hlo_reduce(h, largest ? "maximum" : "add", 0, x, all, false);
    total = lt_hlo_two(h, largest ? "maximum" : "add", total, x);
  }
  if (squares) total = lt_hlo_one(h, "sqrt", total);
  else if (!largest && *power != 1)
    total = LT_BY(h, total, "pow(a, 1 / b)", total, lt_lower_number(l, "p", total));
  l->out[0] = total;
  return true;
}

/* (factor, gradients...) */
LT_LOWERING(grads_scale) {
  lt_hlo factor = lt_hlo_reshape(l->h, l->in[0], 0, NULL);
  for (int k = 1; k < l->n_in; k++) {
    lt_hlo x = lt_lower_in(l, k);
    write(l, k, LT_BY(l->h, x, "a * b", x, factor), (lt_hlo){0});
  }
  return true;
}
