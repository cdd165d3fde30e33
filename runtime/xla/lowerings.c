/* runtime/xla/lowerings.c: the lowering of each op, by its name. */
#include <stdatomic.h>
#include <stdlib.h>

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

static lt_lower *find_lower(const char *name) {
  const struct entry *e = LT_FIND(entries, name);
  if (e != NULL) return e->lower;
  if (lt_lower_is_update(name)) return lt_lower_update;
  return lt_lower_is_row(name) ? lt_lower_row : NULL;
}

static lt_derive *find_derive(const char *name) {
  const struct derived *d = LT_FIND(derivations, name);
  if (d != NULL) return d->derive;
  return lt_lower_is_update(name) ? lt_derive_update : NULL;
}

/* By op id. What a row takes is asked for in each call, and read from its text in the first. */
static struct found {
  lt_lower *lower;
  lt_derive *derive;
  atomic_schar takes[LT_DTYPE_COUNT]; /* 0: not known, 1: yes, -1: no */
} *found;

bool lt_lowerings_open(void) {
  found = calloc((size_t)lt_xla_host->n_ops, sizeof *found);
  for (int op = 0; found != NULL && op < lt_xla_host->n_ops; op++) {
    const char *name = lt_xla_host->op_name(op);
    found[op].lower = find_lower(name);
    found[op].derive = find_derive(name);
  }
  return found != NULL;
}

lt_lower *lt_lower_of(int op) { return found[op].lower; }

lt_derive *lt_derive_of(int op) { return found[op].derive; }

bool lt_lowers(int op, lt_dtype dtype) {
  lt_lower *lower = lt_lower_of(op);
  if (lower != lt_lower_row) return lower != NULL;
  atomic_schar *takes = &found[op].takes[dtype];
  if (*takes == 0) *takes = lt_lower_row_takes(lt_xla_host->op_name(op), dtype) ? 1 : -1;
  return *takes > 0;
}
