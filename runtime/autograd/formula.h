/* runtime/autograd/formula.h: derivatives of elementwise rows: the row's text, evaluated with
   operations.

   A row's derivative is compiled into a kernel, which is fast and has no derivative of its own.
   When a backward is recorded, the same text is evaluated here instead, operation by operation
   through lt_apply: the result has derivatives of every order. */
#ifndef LT_AUTOGRAD_FORMULA_H
#define LT_AUTOGRAD_FORMULA_H

#include "ops/op.h"

/* A tensor, or a number where `tensor` is NULL. */
typedef struct lt_term {
  lt_tensor *tensor;
  double number;
} lt_term;

/* What the names in a formula stand for. */
typedef struct lt_terms {
  lt_term x, y, a, b, p, q;
} lt_terms;

/* The value of `text`, an expression of C as in unary.def and binary.def. */
lt_term lt_formula(lt_ctx *c, const char *text, const lt_terms *terms);

#endif
