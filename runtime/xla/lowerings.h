/* runtime/xla/lowerings.h: what the lowerings (lower_*.c) share. */
#ifndef LT_XLA_LOWERINGS_H
#define LT_XLA_LOWERINGS_H

#include <string.h>

#include "xla/lower.h"
#include "xla/plugin.h"

#define LT_LOWERING(name) bool lt_lower_##name(lt_lowering *l)

static inline bool lt_has(const lt_lowering *l, int k) { return k < l->n_in && l->in[k].id != 0; }

/* Whether the op has a lowering for this dtype: rows whose functions have no formula have none. */
bool lt_lowers(int op, lt_dtype dtype);
bool lt_lower_row_takes(const char *name, int type);

/* f32 for f16 and bf16, i64 for integers and bools. */
int lt_lower_computed_in(int type);
/* An input in the type that its dtype is computed in; in f32, or f64 if it is. Absent: no name. */
lt_hlo lt_lower_in(lt_lowering *l, int k);
lt_hlo lt_lower_float(lt_lowering *l, int k);

/* `index` as i64 in 0..n-1 of dim `n`; values outside are refused, and 0 here. `wraps`: -n..-1
   count from the end. */
lt_hlo lt_lower_index(lt_lowering *l, lt_hlo index, int64_t n, bool wraps);

/* Parts of x at `index` along a dim, which becomes the dims of the index. */
lt_hlo lt_lower_take(lt_hlo_text *h, lt_hlo x, lt_hlo index, int dim);
/* x with the parts of `source` [N, ...] at `index` [N] of dim 0 added ("add") or written
   ("second"), those beyond the end not. */
lt_hlo lt_lower_put(lt_hlo_text *h, const char *op, lt_hlo x, lt_hlo index, lt_hlo source);
/* A region of two scalars with op of them; "second": the second. */
void lt_lower_region(lt_hlo_text *h, const char *op, int type);

/* Sums of x up to each place of a dim; back: from each place on. */
lt_hlo lt_lower_running_sum(lt_hlo_text *h, lt_hlo x, int64_t dim, bool back);
/* x sorted along a dim with the values of `beside`, in the order that an expression of a and b
   gives; equal ones stay in order. */
void lt_lower_sort(lt_hlo_text *h, lt_hlo x, lt_hlo beside, int dim, const char *before,
                   lt_hlo *out);

/* Numbers in [0, 1), f64 [..], of 53 bits from words at and at + 1 of each `step`; of 24 where f64
   is f32 (narrow.c). */
lt_hlo lt_lower_wide_unit(lt_hlo_text *h, lt_hlo words, int64_t at, int64_t step);
/* n random words of the argument rng_key (ui32 [n]), as base/random.h numbers them. */
lt_hlo lt_lower_words(lt_lowering *l, int64_t n);
/* Dropout of x by the words of its elements, in its shape, with the first three derived numbers:
   those that lt_derive_drop makes of a probability; returns how many. */
lt_hlo lt_lower_drop(lt_lowering *l, lt_hlo x, lt_hlo words);
int lt_derive_drop(double p, double *out);

/* A mask of the dims of an argument DIMS, of those of SIZES the values. */
unsigned lt_lower_dims(const lt_lowering *l, const char *name, int ndim);
const lt_sizes *lt_lower_sizes(const lt_lowering *l, const char *name);
lt_pair lt_lower_pair(const lt_lowering *l, const char *name);

/* Terms of a formula: names, and what they stand for. */
typedef struct lt_term {
  char name[16];
  lt_hlo value; /* id 0: a number */
  double number;
} lt_term;
enum { LT_TERMS = 40 };
typedef struct lt_terms {
  lt_term list[LT_TERMS];
  int n;
} lt_terms;
void lt_terms_set(lt_terms *t, const char *name, lt_hlo value);
lt_hlo lt_terms_get(const lt_terms *t, const char *name);
/* Statements and, at the end, an expression in C, elementwise in the shape and type of `like`.
   Without an expression at the end the result has no name. What is assigned is in the terms. */
lt_hlo lt_formula(lt_hlo_text *h, const char *text, lt_hlo like, lt_terms *terms);

/* A formula of values a, b, c, ..., each broadcast to `like`, whose type is computed in. */
lt_hlo lt_lower_by(lt_hlo_text *h, lt_hlo like, const char *text, int n, const lt_hlo *values);
#define LT_BY(h, like, text, ...)                                             \
  lt_lower_by(h, like, text, (int)(sizeof((lt_hlo[]){__VA_ARGS__}) / sizeof(lt_hlo)), \
              (lt_hlo[]){__VA_ARGS__})

/* The row of a table that has a name, which its rows begin with; NULL: none. */
const void *lt_lower_find(const void *rows, size_t n, size_t size, const char *name);
#define LT_FIND(rows, name) lt_lower_find(rows, sizeof(rows) / sizeof *(rows), sizeof *(rows), name)

/* Whether the op has this name; whether it is a row of unary.def or binary.def, of updates.def. */
bool lt_lower_is(const lt_lowering *l, const char *name);
bool lt_lower_is_row(const char *name);
bool lt_lower_is_update(const char *name);
LT_LOWERING(row);
LT_LOWERING(update);
int lt_derive_update(const lt_call *call, double *out);
#define LT_LOWERED(name) LT_LOWERING(name);
#define LT_DERIVED_OF(name) int lt_derive_##name(const lt_call *call, double *out);
#include "xla/lowerings.def"

#endif
