/* runtime/xla/formula.c: expressions of C as StableHLO: the texts of the rows of ops/unary.def,
   ops/binary.def and ops/updates.def, and of the functions below.

   A recursive-descent reader that makes lines as it reads; numbers are folded until they meet a
   value. Both branches of a condition are made, and select takes one. Statements are assignments
   ("T" before a new name may stand, and means nothing) and `repeat n { ... }`. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "ops/formula_text.h"
#include "xla/lowerings.h"

typedef struct reader {
  lt_hlo_text *h;
  const char *at;
  lt_hlo like;
  lt_terms *terms;
} reader;

/* Functions that StableHLO has. */
static const char *const direct[][2] = {
    {"exp", "exponential"},  {"expm1", "exponential_minus_one"},
    {"log", "log"},          {"log1p", "log_plus_one"},
    {"tanh", "tanh"},        {"sin", "sine"},
    {"cos", "cosine"},       {"sqrt", "sqrt"},
    {"rsqrt", "rsqrt"},      {"floor", "floor"},
    {"ceil", "ceil"},        {"round", "round_nearest_even"},
    {"abs", "abs"},          {"pow", "power"},
    {"atan2", "atan2"},      {"rem", "remainder"},
    {"shl", "shift_left"},   {"shr", "shift_right_arithmetic"},
};

/* Functions by others: of f32, f64 and i64. `wide`: f32 is that of f64, rounded. The polynomials
   are those of ops/math/f32.h, f64.h and special.h, where their errors stand. */
#define WIDE "wide"
#define SAME "same" /* as f32's */
static const struct definition {
  const char *name, *names, *f32, *f64, *i64;
} definitions[] = {
    {"floor", "x", NULL, NULL, "x"},
    {"ceil", "x", NULL, NULL, "x"},
    {"round", "x", NULL, NULL, "x"},
    {"trunc", "x", "x < 0 ? ceil(x) : floor(x)", SAME, "x"},
    {"mul_add", "abc", "a * b + c", SAME, NULL},
    {"tan", "x", "sin(x) / cos(x)", SAME, NULL},
    {"log2", "x", "log(x) * K(1.4426950408889634)", SAME, NULL},
    {"log10", "x", "log(x) * K(0.4342944819032518)", SAME, NULL},
    {"atan", "x", "atan2(x, K(1))", SAME, NULL},
    {"asin", "x", "2 * atan2(x, 1 + sqrt((1 - x) * (1 + x)))", SAME, NULL},
    {"acos", "x", "2 * atan2(sqrt(1 - x), sqrt(1 + x))", SAME, NULL},
    {"sinh", "x",
     "T a = abs(x); T t = expm1(a > 22 ? 22 : a); T e = exp(a * K(0.5));"
     "a = a > 22 ? e * e * K(0.5) : K(0.5) * (t + t / (t + 1)); x < 0 ? -a : a", SAME, NULL},
    {"cosh", "x", "T e = exp(abs(x) * K(0.5)); T h = e * e * K(0.5);"
     "abs(x) > 22 ? e * (e * K(0.5)) : h + K(0.25) / h", SAME, NULL},
    {"fmod", "ab", "rem(a, b)", SAME, "b == 0 ? 0 : rem(a, b)"},
    {"floormod", "ab", "T r = rem(a, b); r != 0 && (r < 0) != (b < 0) ? r + b : r", SAME,
     "a - b * floordiv(a, b)"},
    {"floordiv", "ab",
     "T r = rem(a, b); T d = (a - r) / b; d = r != 0 && (r < 0) != (b < 0) ? d - 1 : d;"
     "T w = floor(d); w = d - w > K(0.5) ? w + 1 : w;"
     "b == 0 ? a / b : d == 0 ? 0 * (a / b) : w", SAME,
     "T r = rem(a, b); T d = a / b; b == 0 ? 0 : r != 0 && (a < 0) != (b < 0) ? d - 1 : d"},
    {"shift_left", "ab", NULL, NULL, "b < 0 || b > 63 ? 0 : shl(a, b)"},
    {"shift_right", "ab", NULL, NULL, "shr(a, b < 0 || b > 63 ? 63 : b)"},
    {"erf", "x",
     "T a = abs(x); a = a > 4 ? 4 : a;"
     "T q = poly(a * a, 0.128379166, -0.376126319, 0.112836719, -0.0268581267, 0.00519789057,"
     "-0.000810708618, 8.21992653e-05);"
     "T g = poly(a, -0.000195675777, -1.12767565, -0.637182236, -0.103931598, 0.0222269204,"
     "-0.00304321712, 0.000195937217);"
     "T y = a < K(0.9275) ? a + a * q : 1 - exp(g); x < 0 ? -y : y",
     "T a = abs(x); a = a > 6 ? 6 : a; T c = a > 1 ? 1 : a; T b = a < 1 ? 1 : a;"
     "T q = poly(c * c, 0.12837916709551259, -0.37612638903183748, 0.11283791670954885,"
     "-0.026866170645077871, 0.0052239776248283899, -0.00085483269814236502,"
     "0.00012055331132901379, -1.4925595771178659e-05, 1.646100846603337e-06,"
     "-1.6350396138302395e-07, 1.4660328392687238e-08, -1.1374955276614671e-09,"
     "5.960685785356146e-11);"
     "T g = poly(b, -1.7959733525325527e-07, -1.1283773294900659, -0.63662848787985726,"
     "-0.10274725506432623, 0.019078160700848935, 0.00028048162354263301,"
     "-0.001768993123066504, 0.00064116632387411978, -4.4818195076359665e-05,"
     "-7.0368890021659658e-05, 4.5038317587295869e-05, -1.6514253995919988e-05,"
     "4.3271279686488716e-06, -8.5059330028170707e-07, 1.2570828771642993e-07,"
     "-1.3627139557671322e-08, 1.0257402806147691e-09, -4.796256259110852e-11,"
     "1.0496771114904054e-12);"
     "T y = a < 1 ? a + a * q : 1 - exp(g); x < 0 ? -y : y", NULL},
    /* W. Press and others, Numerical Recipes, 1992, section 6.2: to 1.2e-7 of itself. */
    {"erfc", "x",
     "T z = abs(x); T t = 1 / (1 + K(0.5) * z);"
     "T y = t * exp(poly(t, -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806,"
     "0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277) - z * z); x < 0 ? 2 - y : y",
     NULL, NULL},
    {"half_turn", "x", NULL, "T r = x - 2 * round(K(0.5) * x); r * K(3.141592653589793)", NULL},
    {"stirling", "x", NULL,
     "T z = x; T p = x * 0 + 1;"
     "repeat 10 { p = z < 10 ? p * z : p; z = z < 10 ? z + 1 : z; } T r = 1 / z;"
     "(z - K(0.5)) * log(z) - z + K(0.9189385332046727) + r * poly(r * r, 0.08333333333333333,"
     "-0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,"
     "0.0008417508417508418, -0.0019175269175269176, 0.00641025641025641) - log(p)", NULL},
    {"lgamma", "x", WIDE,
     "T a = abs(x); T y = stirling(a); T s = sin(half_turn(a));"
     "y = x < 0 ? log(K(3.141592653589793) / abs(s * x)) - y : y; y = x == 1 || x == 2 ? 0 : y;"
     "y = a == 0 || (x < 0 && floor(x) == x) ? 1 / K(0) : y; x - x == 0 ? y : abs(x)", NULL},
    {"digamma", "x", WIDE,
     "T z = x < 0 ? 1 - x : x; T y = x * 0;"
     "repeat 10 { y = z < 10 ? y - 1 / z : y; z = z < 10 ? z + 1 : z; } T w = 1 / (z * z);"
     "T p = poly(w, 0.08333333333333333, -0.008333333333333333, 0.003968253968253968,"
     "-0.004166666666666667, 0.007575757575757576, -0.021092796092796094, 0.08333333333333333);"
     "y = y + (z < K(1e17) ? log(z) - K(0.5) / z - w * p : log(z)); T h = half_turn(x);"
     "y = x < 0 ? (floor(x) == x ? K(0) / K(0) : y - K(3.141592653589793) * cos(h) / sin(h)) : y;"
     "x == 0 ? -1 / x : y", NULL},
    {"erfinv", "x", WIDE,
     "T a = abs(x); T z = a * a; T t = sqrt(-log((1 - a) * K(0.5)));"
     "T c = a * poly(z, 0.886226899, -1.645349621, 0.914624893, -0.140543331) /"
     "poly(z, 1, -2.118377725, 1.442710462, -0.329097515, 0.012229801);"
     "T f = poly(t, -1.970840454, -1.624906493, 3.429567803, 1.641345311) /"
     "poly(t, 1, 3.543889200, 1.637067800); T y = a <= K(0.7) ? c : f;"
     "repeat 2 { y = y - (erf(y) - a) / (K(1.1283791670955126) * exp(-y * y)); }"
     "y = a == 1 ? 1 / K(0) : a <= 1 ? y : K(0) / K(0); x < 0 ? -y : y", NULL},
};

static lt_hlo expression_value(reader *r, lt_term t);

void lt_terms_set(lt_terms *t, const char *name, lt_hlo value) {
  int k = 0;
  while (k < t->n && strcmp(t->list[k].name, name) != 0) k++;
  if (k == LT_TERMS) return;
  if (k == t->n) t->n++;
  t->list[k] = (lt_term){.value = value};
  strncpy(t->list[k].name, name, sizeof t->list[k].name - 1);
}

lt_hlo lt_terms_get(const lt_terms *t, const char *name) {
  for (int k = 0; k < t->n; k++)
    if (strcmp(t->list[k].name, name) == 0) return t->list[k].value;
  return (lt_hlo){0};
}

static lt_term number(double value) { return (lt_term){.number = value}; }
static lt_term valued(lt_hlo value) { return (lt_term){.value = value}; }

static lt_term expression(reader *r);

static bool next(reader *r, const char *text) { return lt_formula_next(&r->at, text); }

static lt_term wrong(reader *r) {
  r->h->failed = true;
  r->at += strlen(r->at);
  return number(0);
}

static lt_term digits(reader *r) { return number(lt_formula_digits(&r->at)); }

static bool is_value(lt_term t) { return t.value.id != 0; }

/* A term in the type that is computed in; numbers and scalars keep no dims. */
static lt_hlo expression_value(reader *r, lt_term t) {
  lt_hlo scalar = lt_hlo_scalar(r->like.type);
  return is_value(t) ? t.value : lt_hlo_number(r->h, t.number, scalar);
}

/* Both as values of one shape. */
static void meet(reader *r, lt_term a, lt_term b, lt_hlo *x, lt_hlo *y) {
  if (is_value(a) != is_value(b)) { /* a number beside bools is one of them */
    lt_hlo v = is_value(a) ? a.value : b.value;
    lt_hlo n = lt_hlo_number(r->h, is_value(a) ? b.number : a.number, v);
    *x = is_value(a) ? v : n, *y = is_value(a) ? n : v;
    return;
  }
  *x = expression_value(r, a), *y = expression_value(r, b);
  if (x->ndim < y->ndim) *x = lt_hlo_expand(r->h, *x, *y);
  if (y->ndim < x->ndim) *y = lt_hlo_expand(r->h, *y, *x);
}

static double fold(const char *op, double a, double b) {
  if (strcmp(op, "add") == 0) return a + b;
  if (strcmp(op, "subtract") == 0) return a - b;
  if (strcmp(op, "multiply") == 0) return a * b;
  if (strcmp(op, "divide") == 0) return a / b;
  return (double)NAN;
}

static lt_term two(reader *r, const char *op, lt_term a, lt_term b) {
  lt_hlo x, y;
  bool compares = op[0] >= 'A' && op[0] <= 'Z';
  if (!is_value(a) && !is_value(b) && !compares) return number(fold(op, a.number, b.number));
  meet(r, a, b, &x, &y);
  return valued(compares ? lt_hlo_compare(r->h, op, x, y) : lt_hlo_two(r->h, op, x, y));
}

static lt_hlo as_type(lt_hlo_text *h, lt_hlo x, int type) {
  return x.id == 0 || x.type == LT_BOOL ? x : lt_hlo_convert(h, x, type);
}

/* A function of the table, by its text in this type, or in f64. */
static lt_term defined(reader *r, const struct definition *d, lt_term *arguments) {
  const char *text = r->like.type == LT_F32 ? d->f32 : r->like.type == LT_F64 ? d->f64 : d->i64;
  bool wide = text != NULL && strcmp(text, WIDE) == 0;
  if (text != NULL && strcmp(text, SAME) == 0) text = d->f32;
  if (wide) text = d->f64;
  if (text == NULL) return wrong(r);
  lt_terms terms = {0};
  for (int k = 0; d->names[k] != 0; k++) {
    char name[2] = {d->names[k], 0};
    lt_terms_set(&terms, name, arguments[k].value);
    terms.list[k].number = arguments[k].number;
    if (wide) terms.list[k].value = as_type(r->h, arguments[k].value, LT_F64);
  }
  lt_hlo like = lt_hlo_typed(r->like, wide ? LT_F64 : r->like.type);
  lt_hlo y = lt_formula(r->h, text, like, &terms);
  return valued(as_type(r->h, y, r->like.type));
}

/* poly(x, c0, c1, ...): c0 + x (c1 + x (...)). */
static lt_term polynomial(reader *r) {
  lt_term x = expression(r), list[24], y;
  int n = 0;
  while (n < 24 && next(r, ",")) list[n++] = expression(r);
  if (n == 0 || !next(r, ")")) return wrong(r);
  y = list[--n];
  while (n-- > 0) y = two(r, "add", list[n], two(r, "multiply", x, y));
  return y;
}

static lt_term call(reader *r, const char *name, size_t length) {
  if (length == 4 && strncmp(name, "poly", 4) == 0) return polynomial(r);
  lt_term list[3] = {expression(r)};
  int n = 1;
  while (n < 3 && next(r, ",")) list[n++] = expression(r);
  if (!next(r, ")")) return wrong(r);
  if (length == 1 && *name == 'K') return list[0];
  int column = r->like.type == LT_I64;
  for (size_t k = 0; k < sizeof definitions / sizeof *definitions; k++) {
    const struct definition *d = &definitions[k];
    if (strlen(d->name) != length || strncmp(d->name, name, length) != 0) continue;
    if ((column ? d->i64 : r->like.type == LT_F64 ? d->f64 : d->f32) == NULL) continue;
    return (int)strlen(d->names) == n ? defined(r, d, list) : wrong(r);
  }
  for (size_t k = 0; k < sizeof direct / sizeof *direct; k++) {
    if (strlen(direct[k][0]) != length || strncmp(direct[k][0], name, length) != 0) continue;
    if (n == 1) return valued(lt_hlo_one(r->h, direct[k][1], expression_value(r, list[0])));
    lt_hlo x, y;
    meet(r, list[0], list[1], &x, &y);
    return valued(lt_hlo_two(r->h, direct[k][1], x, y));
  }
  return wrong(r);
}

static lt_term variable(reader *r, const char *name, size_t length) {
  for (int k = 0; k < r->terms->n; k++) {
    const lt_term *t = &r->terms->list[k];
    if (strlen(t->name) == length && strncmp(t->name, name, length) == 0) return *t;
  }
  return wrong(r);
}

static size_t word(reader *r) {
  const char *from = r->at;
  while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.') r->at++;
  return (size_t)(r->at - from);
}

static lt_term primary(reader *r) {
  if (next(r, "-")) {
    lt_term t = primary(r);
    return is_value(t) ? valued(lt_hlo_one(r->h, "negate", t.value)) : number(-t.number);
  }
  if (next(r, "(")) {
    if (next(r, "T)")) return primary(r);
    lt_term t = expression(r);
    return next(r, ")") ? t : wrong(r);
  }
  if (isdigit((unsigned char)*r->at)) return digits(r);
  const char *name = r->at;
  size_t length = word(r);
  if (length > 0 && next(r, "(")) return call(r, name, length);
  return length > 0 ? variable(r, name, length) : wrong(r);
}

/* Operators with their precedence in C. */
static const struct sign {
  const char *text;
  int level;
  const char *op;
} signs[] = {
    {"||", 1, "or"},  {"&&", 2, "and"}, {"==", 6, "EQ"}, {"!=", 6, "NE"},  {"<=", 7, "LE"},
    {">=", 7, "GE"},  {"<", 7, "LT"},   {">", 7, "GT"},  {"+", 8, "add"},  {"-", 8, "subtract"},
    {"*", 9, "multiply"}, {"/", 9, "divide"}, {"|", 3, "or"}, {"^", 4, "xor"}, {"&", 5, "and"},
};

static const struct sign *next_sign(reader *r, int level) {
  for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
    if (signs[k].level >= level && next(r, signs[k].text)) return &signs[k];
  return NULL;
}

/* `&` must not take the first half of `&&` where that binds less. */
static lt_term joined(reader *r, int level) {
  lt_term left = primary(r);
  const struct sign *s;
  while (true) {
    while (isspace((unsigned char)*r->at)) r->at++;
    bool both = (*r->at == '&' || *r->at == '|') && r->at[1] == *r->at;
    if (both && level > (*r->at == '&' ? 2 : 1)) return left;
    s = next_sign(r, level);
    if (s == NULL) return left;
    left = two(r, s->op, left, joined(r, s->level + 1));
  }
}

static lt_term expression(reader *r) {
  lt_term condition = joined(r, 1);
  if (!next(r, "?")) return condition;
  lt_term yes = expression(r);
  if (!next(r, ":")) return wrong(r);
  lt_term no = expression(r);
  if (!is_value(condition)) return condition.number != 0 ? yes : no;
  lt_hlo a, b, c = condition.value;
  meet(r, yes, no, &a, &b);
  if (a.ndim < c.ndim) a = lt_hlo_expand(r->h, a, c), b = lt_hlo_expand(r->h, b, c);
  if (c.ndim < a.ndim) c = lt_hlo_expand(r->h, c, a);
  return valued(lt_hlo_choose(r->h, c, a, b));
}

static lt_hlo statements(reader *r);

/* repeat 10 { ... } */
static void repeated(reader *r) {
  int n = (int)digits(r).number;
  if (!next(r, "{")) wrong(r);
  const char *from = r->at;
  for (int k = 0; k < n && !r->h->failed; k++) r->at = from, statements(r);
  if (!next(r, "}")) wrong(r);
}

/* name = expression; */
static bool assignment(reader *r) {
  const char *from = r->at;
  next(r, "T ");
  while (isspace((unsigned char)*r->at)) r->at++;
  const char *name = r->at;
  size_t length = word(r);
  bool assigns = length > 0 && next(r, "=") && *r->at != '=';
  if (!assigns) {
    r->at = from;
    return false;
  }
  char text[16] = "";
  if (length < sizeof text) memcpy(text, name, length);
  lt_term t = expression(r);
  lt_terms_set(r->terms, text, expression_value(r, t));
  if (!next(r, ";")) wrong(r);
  return true;
}

static lt_hlo statements(reader *r) {
  while (!r->h->failed) {
    while (isspace((unsigned char)*r->at)) r->at++;
    if (*r->at == 0 || *r->at == '}') return (lt_hlo){0};
    if (next(r, "repeat ")) repeated(r);
    else if (!assignment(r))
      return lt_hlo_expand(r->h, expression_value(r, expression(r)), r->like);
  }
  return (lt_hlo){0};
}

lt_hlo lt_formula(lt_hlo_text *h, const char *text, lt_hlo like, lt_terms *terms) {
  reader r = {.h = h, .at = text, .like = like, .terms = terms};
  next(&r, "{");
  lt_hlo y = statements(&r);
  next(&r, "}");
  next(&r, "");
  while (isspace((unsigned char)*r.at)) r.at++;
  if (*r.at != 0) h->failed = true;
  return y;
}

lt_hlo lt_lower_by(lt_hlo_text *h, lt_hlo like, const char *text, int n, const lt_hlo *values) {
  lt_terms terms = {0};
  for (int k = 0; k < n; k++) {
    char name[2] = {(char)('a' + k), 0};
    if (values[k].id == 0) continue;
    lt_hlo x = values[k].type == LT_BOOL ? values[k] : lt_hlo_convert(h, values[k], like.type);
    lt_terms_set(&terms, name, lt_hlo_expand(h, x, like));
  }
  return lt_formula(h, text, like, &terms);
}
