/* runtime/xla/lowerings.c: the lowering of each op, by its name; and what lowerings share. */
#include "xla/lowerings.h"

static const struct entry {
  const char *name;
  lt_lower *lower;
} entries[] = {
#define LT_LOWERED(name) {#name, lt_lower_##name},
#define LT_LOWERED_BY(name, by) {#name, lt_lower_##by},
#include "xla/lowerings.def"
};

static const struct derived {
  const char *name;
  lt_derive *derive;
} derivations[] = {
#define LT_DERIVED_OF(name) {#name, lt_derive_##name},
#define LT_DERIVED_BY(name, by) {#name, lt_derive_##by},
#include "xla/lowerings.def"
};

lt_lower *lt_lower_of(int op) {
  const char *name = lt_xla_host->op_name(op);
  for (size_t k = 0; k < sizeof entries / sizeof *entries; k++)
    if (strcmp(entries[k].name, name) == 0) return entries[k].lower;
  if (lt_lower_is_update(name)) return lt_lower_update;
  return lt_lower_is_row(name) ? lt_lower_row : NULL;
}

lt_derive *lt_derive_of(int op) {
  const char *name = lt_xla_host->op_name(op);
  for (size_t k = 0; k < sizeof derivations / sizeof *derivations; k++)
    if (strcmp(derivations[k].name, name) == 0) return derivations[k].derive;
  return lt_lower_is_update(name) ? lt_derive_update : NULL;
}

bool lt_lowers(int op, lt_dtype dtype) {
  lt_lower *lower = lt_lower_of(op);
  return lower == lt_lower_row ? lt_lower_row_takes(lt_xla_host->op_name(op), dtype)
                               : lower != NULL;
}

bool lt_lower_is(const lt_lowering *l, const char *name) {
  return strcmp(lt_xla_host->op_name(l->op), name) == 0;
}

lt_hlo lt_lower_in(lt_lowering *l, int k) {
  if (!lt_has(l, k)) return (lt_hlo){0};
  return lt_hlo_convert(l->h, l->in[k], lt_lower_computed_in(l->in[k].type));
}

lt_hlo lt_lower_float(lt_lowering *l, int k) {
  if (!lt_has(l, k)) return (lt_hlo){0};
  return lt_hlo_convert(l->h, l->in[k], l->in[k].type == LT_F64 ? LT_F64 : LT_F32);
}

unsigned lt_lower_dims(const lt_lowering *l, const char *name, int ndim) {
  const lt_dims *dims = lt_lower_argument(l, name);
  unsigned mask = 0;
  for (int k = 0; k < dims->n; k++) mask |= 1u << dims->dim[k];
  return dims->n > 0 ? mask : (1u << ndim) - 1;
}

const lt_sizes *lt_lower_sizes(const lt_lowering *l, const char *name) {
  return lt_lower_argument(l, name);
}

lt_pair lt_lower_pair(const lt_lowering *l, const char *name) {
  return *(const lt_pair *)lt_lower_argument(l, name);
}

lt_hlo lt_lower_index(lt_lowering *l, lt_hlo index, int64_t n, bool wraps) {
  lt_hlo_text *h = l->h;
  lt_hlo i = lt_hlo_convert(h, index, LT_I64), zero = lt_hlo_integer(h, 0, i);
  lt_hlo size = lt_hlo_integer(h, n, i);
  lt_hlo negative = lt_hlo_compare(h, "LT", i, zero), at = i;
  if (wraps) {
    at = lt_hlo_choose(h, negative, lt_hlo_two(h, "add", i, size), i);
    negative = lt_hlo_compare(h, "LT", at, zero);
  }
  lt_hlo bad = lt_hlo_two(h, "or", negative, lt_hlo_compare(h, "GE", at, size));
  if (lt_hlo_numel(i) > 0) lt_lower_check(l, bad, i, n);
  return lt_hlo_choose(h, bad, zero, at);
}

void lt_lower_region(lt_hlo_text *h, const char *op, int type) {
  lt_hlo x = lt_hlo_scalar(type), a = x, b = x;
  a.id = ++h->values, b.id = ++h->values;
  lt_hlo_put(h, "({\n^bb0($: @, $: @):\n", &a, &x, &b, &x);
  lt_hlo y = strcmp(op, "second") == 0 ? b : lt_hlo_two(h, op, a, b);
  lt_hlo_put(h, "stablehlo.return $ : @\n})", &y, &y);
}
