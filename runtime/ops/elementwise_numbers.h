/* runtime/ops/elementwise_numbers.h: the two numbers (p and q in unary.def) of a parametrised
   elementwise function. */
#ifndef LT_OPS_ELEMENTWISE_NUMBERS_H
#define LT_OPS_ELEMENTWISE_NUMBERS_H

#include "ops/args.h"
#include "ops/ids.h"

/* A number for floats, and for integers what is left of it without its fraction. */
static inline void lt_row_number(double value, lt_scalar *s) {
  s->f = value;
  if (value != value) s->i = 0;
  else if (value >= 0x1p63) s->i = INT64_MAX;
  else s->i = value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

/* A bound of clamp; one that is not given lets all pass. */
static inline void lt_row_bound(lt_scalar bound, double beyond, int64_t beyond_int, lt_scalar *s) {
  bool given = bound.kind != LT_NO_SCALAR;
  s->f = given ? bound.f : beyond;
  s->i = given ? bound.i : beyond_int;
}

/* Leaves p and q as they are for rows that have none. */
static inline void lt_row_numbers(lt_kind kind, const void *args, lt_scalar *p, lt_scalar *q) {
  if (kind == LT_KIND_clamp || kind == LT_KIND_clamp_backward) {
    const lt_args_clamp *a = (const lt_args_clamp *)args;
    lt_row_bound(a->min, -INFINITY, INT64_MIN, p);
    lt_row_bound(a->max, INFINITY, INT64_MAX, q);
  }
  if (kind == LT_KIND_unary_numbers || kind == LT_KIND_unary_numbers_backward) {
    const lt_args_unary_numbers *a = (const lt_args_unary_numbers *)args;
    lt_row_number(a->p, p);
    lt_row_number(a->q, q);
  }
}

#endif
