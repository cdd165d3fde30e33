/* runtime/autograd/formula.c: a recursive-descent evaluator of formulas; there is no tree.

   Numbers are folded. A condition that is a number chooses a branch, and the other is only read;
   one that is a tensor makes both and takes `where`.

   The text is the derivative column of a row in ops/unary.def or ops/binary.def, which the C
   preprocessor also compiles into the backward kernel. A backward that is recorded needs it as
   operations with derivatives of their own; to read the text again at run time keeps one definition
   for both. Precedence climbing (M. Richards and C. Whitby-Strevens, BCPL: the language and its
   compiler, 1979): the levels of SIGNS are those of C, since it is a C expression. */
#include "autograd/formula.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "ops/formula_text.h"

typedef struct reader {
  lt_ctx *c;
  const char *at;
  const lt_terms *terms;
  const lt_tensor *like; /* some tensor of the terms: dtype and device of constants */
  bool idle;             /* read on without computing: a branch that is not taken */
} reader;

static const struct sign {
  const char *text;
  int level;
  lt_op op;
} SIGNS[] = {
    {"||", 1, LT_OP_logical_or}, {"&&", 2, LT_OP_logical_and}, {"==", 3, LT_OP_eq},
    {"!=", 3, LT_OP_ne},         {"<=", 4, LT_OP_le},          {">=", 4, LT_OP_ge},
    {"<", 4, LT_OP_lt},          {">", 4, LT_OP_gt},           {"+", 5, LT_OP_add},
    {"-", 5, LT_OP_sub},         {"*", 6, LT_OP_mul},          {"/", 6, LT_OP_div},
};

static lt_term number(double value) { return (lt_term){.number = value}; }

static lt_term expression(reader *r);

static bool next(reader *r, const char *text) { return lt_formula_next(&r->at, text); }

static lt_term wrong(reader *r) {
  lt_fail(r->c, LT_EINTERNAL, "backward: cannot read this derivative from here: %s", r->at);
  r->at += strlen(r->at);
  return number(0);
}

static lt_term digits(reader *r) { return number(lt_formula_digits(&r->at)); }

static lt_tensor *as_tensor(reader *r, lt_term t) {
  if (t.tensor != NULL || !lt_ok(r->c)) return t.tensor;
  return lt_full(r->c, (lt_shape){.ndim = 0}, lt_scalar_of(t.number), (lt_dtype)r->like->dtype,
                 r->like->storage->device);
}

/* Of the operators alone: calls have a tensor. */
static double compute_numbers(lt_op op, double a, double b) {
  switch ((int)op) {
    case LT_OP_logical_or: return a != 0 || b != 0;
    case LT_OP_logical_and: return a != 0 && b != 0;
    case LT_OP_eq: return a == b;
    case LT_OP_ne: return a != b;
    case LT_OP_le: return a <= b;
    case LT_OP_ge: return a >= b;
    case LT_OP_lt: return a < b;
    case LT_OP_gt: return a > b;
    case LT_OP_add: return a + b;
    case LT_OP_sub: return a - b;
    case LT_OP_mul: return a * b;
    case LT_OP_div: return a / b;
    default: return NAN;
  }
}

/* One operator on two terms. A number beside a tensor stays a scalar argument: a tensor of 0 dims
   would promote the dtype, and cost an allocation and a fill. */
static lt_term two(reader *r, lt_op op, lt_term a, lt_term b) {
  if (r->idle) return number(0);
  if (a.tensor != NULL && b.tensor != NULL)
    return (lt_term){.tensor = lt_binary(r->c, op, a.tensor, b.tensor)};
  if (a.tensor != NULL)
    return (lt_term){.tensor = lt_binary_scalar(r->c, op, a.tensor, lt_scalar_of(b.number))};
  if (b.tensor == NULL) return number(compute_numbers(op, a.number, b.number));
  const lt_args_binary args = {.a = lt_scalar_of(a.number)};
  return (lt_term){.tensor = lt_apply1(r->c, op, 1, &b.tensor, &args)};
}

/* f(a) or f(a, b): a row of that name. */
static lt_term call(reader *r, const char *name, size_t length) {
  lt_term a = expression(r), b = number(0);
  bool pair = next(r, ",");
  if (pair) b = expression(r);
  if (!next(r, ")")) return wrong(r);
  if (length == 1 && *name == 'K') return a;
  char text[32] = "";
  if (length < sizeof text) memcpy(text, name, length);
  lt_op op = strcmp(text, "floordiv") == 0 ? LT_OP_floor_divide : lt_op_by_name(text);
  if (op == LT_OP_COUNT || lt_ops[op].kind != (pair ? LT_KIND_binary : LT_KIND_unary))
    return wrong(r);
  if (r->idle) return number(0);
  lt_tensor *x = as_tensor(r, a);
  return pair ? two(r, op, (lt_term){.tensor = x}, b) : (lt_term){.tensor = lt_unary(r->c, op, x)};
}

static lt_term variable(reader *r, char name) {
  switch (name) {
    case 'x': return r->terms->x;
    case 'y': return r->terms->y;
    case 'a': return r->terms->a;
    case 'b': return r->terms->b;
    case 'p': return r->terms->p;
    case 'q': return r->terms->q;
    default: return wrong(r);
  }
}

/* A minus sign, parentheses, a literal, a call or a variable. The sign binds tighter than every
   operator of the table, as in C. */
static lt_term primary(reader *r) {
  if (next(r, "-")) {
    lt_term t = primary(r);
    return t.tensor == NULL ? number(-t.number)
                            : (lt_term){.tensor = lt_unary(r->c, LT_OP_neg, t.tensor)};
  }
  if (next(r, "(")) {
    lt_term t = expression(r);
    return next(r, ")") ? t : wrong(r);
  }
  if (isdigit((unsigned char)*r->at)) return digits(r);
  const char *name = r->at;
  while (isalnum((unsigned char)*r->at) || *r->at == '_') r->at++;
  size_t length = (size_t)(r->at - name);
  if (length > 0 && next(r, "(")) return call(r, name, length);
  return length == 1 ? variable(r, *name) : wrong(r);
}

static const struct sign *next_sign(reader *r, int level) {
  for (size_t k = 0; k < sizeof SIGNS / sizeof *SIGNS; k++)
    if (SIGNS[k].level >= level && next(r, SIGNS[k].text)) return &SIGNS[k];
  return NULL;
}

/* Operands joined by signs that bind at least as tightly as `level`. All operators associate to the
   left: the right operand stops before a sign of the same level. */
static lt_term joined(reader *r, int level) {
  lt_term left = primary(r);
  const struct sign *s;
  while ((s = next_sign(r, level)) != NULL) left = two(r, s->op, left, joined(r, s->level + 1));
  return left;
}

static lt_term expression(reader *r) {
  lt_term condition = joined(r, 1);
  if (!next(r, "?")) return condition;
  bool idle = r->idle, chosen = condition.tensor == NULL;
  r->idle = idle || (chosen && condition.number == 0);
  lt_term yes = expression(r);
  if (!next(r, ":")) return wrong(r);
  r->idle = idle || (chosen && condition.number != 0);
  lt_term no = expression(r);
  r->idle = idle;
  if (chosen || idle) return condition.number != 0 ? yes : no;
  lt_tensor *a = as_tensor(r, yes), *b = as_tensor(r, no);
  return (lt_term){.tensor = lt_apply1(r->c, LT_OP_where, LT_IN(condition.tensor, a, b), NULL)};
}

lt_term lt_formula(lt_ctx *c, const char *text, const lt_terms *terms) {
  reader r = {.c = c, .at = text, .terms = terms};
  const lt_term *all[] = {&terms->x, &terms->y, &terms->a, &terms->b};
  for (size_t k = 0; k < sizeof all / sizeof *all && r.like == NULL; k++) r.like = all[k]->tensor;
  lt_term value = expression(&r);
  return *r.at == 0 ? value : wrong(&r);
}
