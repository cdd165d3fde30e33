/* runtime/xla/lower_rows.c: the rows of ops/unary.def and ops/binary.def, by their own texts.

   A row is computed in f32, f64 or i64, as on the CPU; a comparison in the type of its inputs. */
#include <math.h>

#include "xla/lowerings.h"

typedef enum row_kind {
  of_unary, of_unary_numbers, of_clamp, of_test, of_binary, of_compare, of_unary_backward,
  of_unary_numbers_backward, of_clamp_backward, of_binary_backward
} row_kind;

/* Texts of values and derivatives. K stays in them: it means nothing to the reader. */
static const struct row {
  const char *name, *text;
  row_kind kind;
  const char *p, *q; /* what a script calls the numbers */
} rows[] = {
#define PAIR(name, kind, f, df, ...)             \
  {#name, #f, of_##kind, __VA_ARGS__},          \
  {#name "_backward", "g * (" #df ")", of_##kind##_backward, __VA_ARGS__},
#define LT_UNARY_ARGS(name, kind, dtype, cast, f, df, ...) PAIR(name, kind, f, df, "min", "max")
#define LT_UNARY_NUMBERS(name, numbers, dtype, cast, f, df, ...) \
  PAIR(name, unary_numbers, f, df, numbers)
#define P(p_, p_default) #p_, NULL
#define PQ(p_, p_default, q_, q_default) #p_, #q_
#define LT_UNARY(name, ...) LT_UNARY_ARGS(name, unary, __VA_ARGS__)
#define LT_TEST(name, f, doc) {#name, #f, of_test, NULL, NULL},
#define K(x) x
#include "ops/unary.def"
#define BINARY_ROWS(name, dtype, cast, f, da, sa, db, sb, ...)                  \
  {#name, #f, of_binary, NULL, NULL},                                           \
  {#name "_backward_a", "g * (" #da ")", of_binary_backward, NULL, NULL},       \
  {#name "_backward_b", "g * (" #db ")", of_binary_backward, NULL, NULL},
#define LT_BINARY(name, ...) BINARY_ROWS(name, __VA_ARGS__) /* their macros expand */
#define LT_COMPARE(name, f, doc) {#name, #f, of_compare, NULL, NULL},
#include "ops/binary.def"
#undef K
};

bool lt_lower_is_row(const char *name) { return LT_FIND(rows, name) != NULL; }

static lt_scalar_kind scalar_kind(const lt_lowering *l, const char *name) {
  const lt_scalar *s = lt_lower_argument(l, name);
  return s == NULL ? LT_NO_SCALAR : s->kind;
}

static int wider(int a, int b) {
  if (a == LT_F64 || b == LT_F64) return LT_F64;
  return a == LT_F32 || b == LT_F32 ? LT_F32 : LT_I64;
}

/* Comparisons and tests give bools, which say nothing about what they compare. */
static int computed_in(const lt_lowering *l, row_kind kind) {
  if (kind != of_compare && kind != of_test) return lt_lower_computed_in(l->out[0].type);
  int type = LT_I64;
  for (int k = 0; k < l->n_in; k++)
    if (lt_has(l, k)) type = wider(type, lt_lower_computed_in(l->in[k].type));
  bool number = kind == of_compare && (scalar_kind(l, "a") == LT_SCALAR_FLOAT ||
                                       scalar_kind(l, "b") == LT_SCALAR_FLOAT);
  return number ? wider(type, LT_F32) : type;
}

static void operand(lt_lowering *l, lt_terms *terms, const char *name, int k, int type) {
  if (!lt_has(l, k)) return;
  lt_hlo x = lt_hlo_convert(l->h, l->in[k], type);
  lt_terms_set(terms, name, lt_hlo_expand(l->h, x, l->out[0]));
}

static void scalar(lt_lowering *l, lt_terms *terms, const char *name, const char *argument,
                   int type) {
  lt_terms_set(terms, name, lt_lower_number(l, argument, lt_hlo_scalar(type)));
}

/* Two tensors, or one and a number on either side. */
static void pair(lt_lowering *l, lt_terms *terms, int first, int type) {
  bool a = scalar_kind(l, "a") != LT_NO_SCALAR, b = scalar_kind(l, "b") != LT_NO_SCALAR;
  int at = first;
  if (a) scalar(l, terms, "a", "a", type);
  else operand(l, terms, "a", at++, type);
  if (b) scalar(l, terms, "b", "b", type);
  else operand(l, terms, "b", at, type);
}

/* (g, a, b, y): of the backward of a pair; a number is an argument, its place empty. */
static void pair_backward(lt_lowering *l, lt_terms *terms, int type) {
  static const char *const names[] = {"g", "a", "b", "y"};
  for (int k = 0; k < 4; k++) operand(l, terms, names[k], k, type);
  for (int k = 1; k < 3; k++)
    if (!lt_has(l, k) && scalar_kind(l, names[k]) != LT_NO_SCALAR)
      scalar(l, terms, names[k], names[k], type);
}

/* A bound of clamp that is not given lets all pass. */
static void bound(lt_lowering *l, lt_terms *terms, const char *name, const char *argument,
                  int type) {
  lt_hlo like = lt_hlo_scalar(type);
  bool low = name[0] == 'p';
  if (scalar_kind(l, argument) != LT_NO_SCALAR) {
    scalar(l, terms, name, argument, type);
    return;
  }
  lt_terms_set(terms, name,
               type == LT_I64 ? lt_hlo_integer(l->h, low ? INT64_MIN : INT64_MAX, like)
                              : lt_hlo_number(l->h, low ? -HUGE_VAL : HUGE_VAL, like));
}

LT_LOWERING(row) {
  const struct row *r = LT_FIND(rows, lt_xla_host->op_name(l->op));
  int type = computed_in(l, r->kind);
  bool backward = r->kind >= of_unary_backward;
  lt_terms terms = {0};
  if (r->kind == of_binary || r->kind == of_compare) {
    pair(l, &terms, 0, type);
  } else if (r->kind == of_binary_backward) {
    pair_backward(l, &terms, type);
  } else {
    if (backward) operand(l, &terms, "g", 0, type);
    operand(l, &terms, "x", backward, type);
    operand(l, &terms, "y", backward, type);
  }
  if (r->kind == of_clamp || r->kind == of_clamp_backward) {
    bound(l, &terms, "p", "min", type);
    bound(l, &terms, "q", "max", type);
  } else if (r->kind == of_unary_numbers || r->kind == of_unary_numbers_backward) {
    scalar(l, &terms, "p", r->p, type);
    if (r->q != NULL) scalar(l, &terms, "q", r->q, type);
  }
  l->out[0] = lt_formula(l->h, r->text, lt_hlo_typed(l->out[0], type), &terms);
  return !l->h->failed;
}

/* The text is read without keeping any, of operands that have a name each. */
bool lt_lower_row_takes(const char *name, int type) {
  static const char *const names[] = {"g", "x", "y", "a", "b", "p", "q"};
  const struct row *r = LT_FIND(rows, name);
  lt_hlo_text text = {.discard = true};
  lt_terms terms = {0};
  lt_hlo like = lt_hlo_scalar(lt_lower_computed_in(type)), x = like;
  x.id = 1, x.part = -1;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) lt_terms_set(&terms, names[k], x);
  lt_formula(&text, r->text, like, &terms);
  return !text.failed;
}
