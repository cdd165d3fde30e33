/* runtime/xla/lower_make.c: making, copying, choosing and joining. */
#include "xla/lowerings.h"

/* Uninitialised elsewhere; here a value that is replaced costs nothing. */
LT_LOWERING(empty) {
  l->out[0] = lt_hlo_integer(l->h, 0, l->out[0]);
  return true;
}

LT_LOWERING(full) {
  l->out[0] = lt_lower_number(l, lt_lower_is(l, "full") ? "fill_value" : "value", l->out[0]);
  return true;
}

LT_LOWERING(cast) {
  l->out[0] = lt_hlo_convert(l->h, l->in[0], l->out[0].type);
  return true;
}

static lt_hlo fitted(lt_lowering *l, lt_hlo x) {
  return lt_hlo_expand(l->h, lt_hlo_convert(l->h, x, l->out[0].type), l->out[0]);
}

LT_LOWERING(copy) {
  l->out[0] = fitted(l, l->in[1]);
  return true;
}

LT_LOWERING(where) {
  lt_hlo condition = lt_hlo_expand(l->h, lt_hlo_convert(l->h, l->in[0], LT_BOOL), l->out[0]);
  l->out[0] = lt_hlo_choose(l->h, condition, fitted(l, l->in[1]), fitted(l, l->in[2]));
  return true;
}

LT_LOWERING(masked_fill) {
  lt_hlo mask = lt_hlo_expand(l->h, lt_hlo_convert(l->h, l->in[1], LT_BOOL), l->out[0]);
  lt_hlo value = lt_lower_number(l, "value", l->out[0]);
  l->out[0] = lt_hlo_choose(l->h, mask, value, fitted(l, l->in[0]));
  return true;
}

LT_LOWERING(tril) {
  lt_hlo x = l->in[0], zero = lt_hlo_integer(l->h, 0, x);
  lt_hlo row = lt_hlo_iota(l->h, LT_I64, x, x.ndim - 2);
  lt_hlo column = lt_hlo_iota(l->h, LT_I64, x, x.ndim - 1);
  lt_hlo edge = lt_hlo_integer(l->h, lt_lower_int(l, "diagonal"), row);
  lt_hlo kept = lt_hlo_compare(l->h, lt_lower_is(l, "tril") ? "LE" : "GE", column,
                               lt_hlo_two(l->h, "add", row, edge));
  l->out[0] = lt_hlo_choose(l->h, kept, x, zero);
  return true;
}

/* A tensor of shape [0] fits into every list. */
LT_LOWERING(cat) {
  lt_hlo list[64];
  int n = 0, dim = (int)lt_lower_int(l, "dim");
  for (int k = 0; k < l->n_in; k++) {
    if (l->in[k].ndim != l->out[0].ndim || l->in[k].size[dim] == 0) continue;
    if (n == 64) list[0] = lt_hlo_join(l->h, n, list, dim), n = 1;
    list[n++] = lt_hlo_convert(l->h, l->in[k], l->out[0].type);
  }
  l->out[0] = n > 0 ? lt_hlo_join(l->h, n, list, dim) : lt_hlo_integer(l->h, 0, l->out[0]);
  return true;
}

LT_LOWERING(stack) {
  lt_hlo list[64], one = l->out[0];
  int n = 0, dim = (int)lt_lower_int(l, "dim");
  one.size[dim] = 1;
  for (int k = 0; k < l->n_in; k++) {
    lt_hlo x = lt_hlo_convert(l->h, l->in[k], l->out[0].type);
    if (n == 64) list[0] = lt_hlo_join(l->h, n, list, dim), n = 1;
    list[n++] = lt_hlo_reshape(l->h, x, one.ndim, one.size);
  }
  l->out[0] = lt_hlo_join(l->h, n, list, dim);
  return true;
}

/* Places of a strided part in the row-major whole, i64 [n]. */
static lt_hlo places(lt_lowering *l) {
  const lt_sizes *size = lt_lower_sizes(l, "size"), *stride = lt_lower_sizes(l, "stride");
  lt_hlo like = lt_hlo_of(LT_I64, size->n, size->size);
  lt_hlo at = lt_hlo_integer(l->h, lt_lower_int(l, "offset"), like);
  for (int k = 0; k < size->n; k++) {
    lt_hlo step = lt_hlo_integer(l->h, stride->size[k], like);
    at = lt_hlo_two(l->h, "add", at,
                    lt_hlo_two(l->h, "multiply", lt_hlo_iota(l->h, LT_I64, like, k), step));
  }
  return lt_hlo_flat(l->h, at);
}

static bool strided(lt_lowering *l, lt_hlo whole, lt_hlo part) {
  lt_hlo flat = lt_hlo_flat(l->h, lt_hlo_convert(l->h, whole, l->out[0].type));
  part = lt_hlo_flat(l->h, lt_hlo_convert(l->h, part, l->out[0].type));
  if (part.size[0] > 0) flat = lt_lower_put(l->h, "second", flat, places(l), part);
  l->out[0] = lt_hlo_reshape(l->h, flat, l->out[0].ndim, l->out[0].size);
  return true;
}

LT_LOWERING(as_strided_scatter) { return strided(l, l->in[0], l->in[1]); }

LT_LOWERING(as_strided_zero) {
  const lt_sizes *size = lt_lower_sizes(l, "size");
  lt_hlo part = lt_hlo_of(l->out[0].type, size->n, size->size);
  return strided(l, l->in[0], lt_hlo_integer(l->h, 0, part));
}

LT_LOWERING(as_strided_backward) {
  return strided(l, lt_hlo_integer(l->h, 0, l->out[0]), l->in[0]);
}
