/* runtime/ops/table.c: the tables of ops and kinds, derived from their rows. */
#include <string.h>

#include "ops/expand.h"
#include "ops/infer.h"

/* `saves` of the unary rows and of the sides of binary rows. */
enum {
  UNARY_NONE = 0, UNARY_IN = 1, UNARY_OUT = 1 << 16,
  SIDE_NONE = 0, SIDE_A = LT_SAVES_A, SIDE_B = LT_SAVES_B, SIDE_AB = LT_SAVES_A | LT_SAVES_B,
  SIDE_Y = LT_SAVES_Y, SIDE_BY = LT_SAVES_B | LT_SAVES_Y,
  SIDE_ABY = LT_SAVES_A | LT_SAVES_B | LT_SAVES_Y
};

#define HAS_ALL true
#define HAS_ALL_EXPAND true
#define HAS_HOST true
#define HAS_EXPAND false
#define HAS_VIEW false
#define HAS_COPY false
#define IS_ONE(text) (sizeof(text) == 2 && (text)[0] == '1')

/* Composite ops name their definition; the others have none. */
#define EXPAND_OF_ALL(name) NULL
#define EXPAND_OF_HOST(name) NULL
#define EXPAND_OF_VIEW(name) NULL
#define EXPAND_OF_COPY(name) NULL
#define EXPAND_OF_EXPAND(name) lt_expand_##name
#define EXPAND_OF_ALL_EXPAND(name) lt_expand_##name

#define VJP_IS(vjp) (sizeof(#vjp) != sizeof("none") || memcmp(#vjp, "none", 4) != 0)

const lt_op_info lt_ops[LT_OP_COUNT] = {
#define LT_UNARY_ARGS(name_, kind_, dtype_, cast_, f, df, saves_, lo_, hi_, doc_)              \
  [LT_OP_##name_] = {.name = #name_, .kind = LT_KIND_##kind_, .dtype = LT_DTYPE_##dtype_,      \
                     .cast = LT_CAST_##cast_, .saves = UNARY_##saves_, .differentiable = true, \
                     .has_kernel = true, .backward = LT_OP_##name_##_backward,                 \
                     .derivative = {#df}, .lo = lo_, .hi = hi_, .doc = doc_},                  \
  [LT_OP_##name_##_backward] = {.name = #name_ "_backward", .kind = LT_KIND_##kind_##_backward, \
                                .dtype = LT_DTYPE_first, .has_kernel = true, .hidden = true,   \
                                .backward = LT_OP_COUNT, .doc = "Gradient of " #name_ "."},
#define LT_UNARY(name, ...) LT_UNARY_ARGS(name, unary, __VA_ARGS__)
#define LT_TEST(name_, f, doc_)                                                                 \
  [LT_OP_##name_] = {.name = #name_, .kind = LT_KIND_test, .dtype = LT_DTYPE_any,               \
                     .has_kernel = true, .backward = LT_OP_COUNT, .doc = doc_},
#define K(x) x
#include "ops/unary.def"
/* Rows of integers have no derivative: its rule `int` says so. */
#define BACKWARD_OF(dtype_) \
  (LT_DTYPE_##dtype_ == LT_DTYPE_int ? LT_DTYPE_int : LT_DTYPE_first)
#define BINARY_BACKWARD(name_, side, dtype_)                                                    \
  [LT_OP_##name_##_backward_##side] = {.name = #name_ "_backward_" #side,                       \
                                       .kind = LT_KIND_binary_backward,                         \
                                       .dtype = BACKWARD_OF(dtype_), .has_kernel = true,        \
                                       .hidden = true, .backward = LT_OP_COUNT,                 \
                                       .doc = "Gradient of " #name_ " by " #side "."},
#define LT_BINARY(name_, dtype_, cast_, f, da, saves_a, db, saves_b, lo_, hi_, doc_)            \
  [LT_OP_##name_] = {.name = #name_, .kind = LT_KIND_binary, .dtype = LT_DTYPE_##dtype_,        \
                     .cast = LT_CAST_##cast_, .saves_side = {SIDE_##saves_a, SIDE_##saves_b},   \
                     .pass_side = {IS_ONE(#da), IS_ONE(#db)}, .derivative = {#da, #db},         \
                     .differentiable = LT_DTYPE_##dtype_ != LT_DTYPE_int,                       \
                     .has_kernel = true, .backward = LT_OP_##name_##_backward_a, .lo = lo_,     \
                     .hi = hi_, .doc = doc_},                                                   \
  BINARY_BACKWARD(name_, a, dtype_) BINARY_BACKWARD(name_, b, dtype_)
#define LT_COMPARE(name_, f, doc_)                                                              \
  [LT_OP_##name_] = {.name = #name_, .kind = LT_KIND_compare, .dtype = LT_DTYPE_any,            \
                     .has_kernel = true, .backward = LT_OP_COUNT, .doc = doc_},
#include "ops/binary.def"
#define LT_UPDATE(name_, fewest, most, first, second, third, doc_, ...)                           \
  [LT_OP_##name_##_step] = {.name = #name_ "_step", .kind = LT_KIND_update,                       \
                            .dtype = LT_DTYPE_own, .has_kernel = true, .backward = LT_OP_COUNT,   \
                            .doc = doc_},
#include "ops/updates.def"
#define I(n) (1u << (n))
#define O(n) (1u << (16 + (n)))
#define NONE 0u
#define LT_OP(name_, kind_, dtype_, cast_, vjp_, saves_, devices_, doc_)                        \
  [LT_OP_##name_] = {.name = #name_, .kind = LT_KIND_##kind_, .dtype = LT_DTYPE_##dtype_,       \
                     .cast = LT_CAST_##cast_, .saves = (saves_), .differentiable = VJP_IS(vjp_),\
                     .has_kernel = HAS_##devices_, .backward = LT_OP_COUNT,                     \
                     .expand = EXPAND_OF_##devices_(name_), .doc = doc_},
#include "ops/ops.def"
};

/* Arguments. Each kind gets two functions of its own, in which `this_kind` is its struct. */
#define REQUIRED {0}
/* Its eighth letter tells REQUIRED from other texts of its length; of texts of another length the
   first is asked for, as an index beyond them would not compile (and strcmp is not constant). */
#define TEXT_IS_REQUIRED(text) \
  (sizeof(text) == sizeof("REQUIRED") && (text)[sizeof(text) == sizeof("REQUIRED") ? 7 : 0] == 'D')
#define ARG_DEFAULT(type_, name_, default_) \
  {                                         \
    LT_CTYPE_##type_ value = default_;      \
    args->name_ = value;                    \
  }
#define CHOICES_INT(name) NULL
#define CHOICES_NUMBER(name) NULL
#define CHOICES_FLAG(name) NULL
#define CHOICES_DIM(name) NULL
#define CHOICES_DIMS(name) NULL
#define CHOICES_POS(name) NULL
#define CHOICES_SIZES(name) NULL
#define CHOICES_PAIR(name) NULL
#define CHOICES_EACH(name) NULL
#define CHOICES_PADDING(name) NULL
#define CHOICES_SCALAR(name) NULL
#define CHOICES_DTYPE(name) NULL
#define CHOICES_DEVICE(name) NULL
#define CHOICES_RNG_KEY(name) NULL
#define CHOICES_CHOICE(name) LT_CHOICES_##name
#define ARG_ROW(type_, name_, default_)                                             \
  {.name = #name_, .type = LT_ARG_##type_, .required = TEXT_IS_REQUIRED(#default_), \
   .default_text = #default_, .choices = CHOICES_##type_(name_),                      \
   .offset = offsetof(this_kind, name_)},
#define LT_KIND(name_, ...)                                                             \
  static void defaults_##name_(void *memory) {                                          \
    lt_args_##name_ *args = memory;                                                     \
    (void)args;                                                                         \
    LT_ARGS_##name_(ARG_DEFAULT)                                                        \
  }                                                                                     \
  static const lt_arg *args_##name_(int *n) {                                           \
    typedef lt_args_##name_ this_kind;                                                  \
    static const lt_arg rows[] = {LT_ARGS_##name_(ARG_ROW){.offset = sizeof(this_kind)}}; \
    *n = (int)(sizeof rows / sizeof *rows) - 1;                                         \
    return rows;                                                                        \
  }
#include "ops/kinds.def"

#define VIEW LT_KIND_VIEW
#define LIST LT_KIND_LIST
#define MUTATES LT_KIND_MUTATES
#define HIDDEN LT_KIND_HIDDEN
#define FIRST LT_KIND_FIRST

const char *const lt_kind_places[LT_KIND_COUNT] = {
#define LT_PLACES(name, places) [LT_KIND_##name] = places,
#include "ops/kinds.def"
};

const lt_kind_info lt_kinds[LT_KIND_COUNT] = {
#define LT_KIND(name_, inputs_, min_, max_, out_, flags_)                                     \
  [LT_KIND_##name_] = {.name = #name_, .inputs = inputs_, .min_in = min_, .max_in = max_,     \
                       .n_out = out_, .flags = flags_, .args = args_##name_,                  \
                       .defaults = defaults_##name_, .args_size = sizeof(lt_args_##name_),    \
                       .infer = lt_infer_##name_},
#include "ops/kinds.def"
};

/* What rows call their numbers p and q, and the defaults. */
#undef REQUIRED
#define REQUIRED 0
#define NUMBER(place, name_, text)                                           \
  {.name = name_, .type = LT_ARG_NUMBER, .required = TEXT_IS_REQUIRED(text), \
   .default_text = text, .offset = offsetof(lt_args_unary_numbers, place)}
#define P(p_, p_default) .n = 1, .args = {NUMBER(p, #p_, #p_default)}, .defaults = {p_default}
#define PQ(p_, p_default, q_, q_default)                                     \
  .n = 2, .args = {NUMBER(p, #p_, #p_default), NUMBER(q, #q_, #q_default)},  \
  .defaults = {p_default, q_default}

static const struct {
  int n;
  lt_arg args[2];
  double defaults[2];
} numbers_of[LT_OP_COUNT] = {
#define LT_UNARY(name, ...)
#define LT_UNARY_NUMBERS(name, numbers, ...) \
  [LT_OP_##name] = {numbers}, [LT_OP_##name##_backward] = {numbers},
#include "ops/unary.def"
};

const lt_arg *lt_op_args(lt_op op, int *n) {
  if (numbers_of[op].n == 0) return lt_kinds[lt_ops[op].kind].args(n);
  *n = numbers_of[op].n;
  return numbers_of[op].args;
}

void lt_op_defaults(lt_op op, void *args) {
  lt_kinds[lt_ops[op].kind].defaults(args);
  if (numbers_of[op].n == 0) return;
  lt_args_unary_numbers *numbers = args;
  numbers->p = numbers_of[op].defaults[0];
  numbers->q = numbers_of[op].defaults[1];
}

lt_op lt_op_by_name(const char *name) {
  for (int op = 0; op < LT_OP_COUNT; op++)
    if (strcmp(lt_ops[op].name, name) == 0) return (lt_op)op;
  return LT_OP_COUNT;
}
