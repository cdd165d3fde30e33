/* runtime/ops/ids.h: enumerations of operations (LT_OP_..) and of their kinds (LT_KIND_..), from
   the rows. */
#ifndef LT_OPS_IDS_H
#define LT_OPS_IDS_H

/* Ids, derived from the rows. A unary row f also makes f_backward; a binary row f makes
   f_backward_a and f_backward_b; a row f of updates.def makes f_step. */
typedef enum lt_op {
#define LT_UNARY(name, ...) LT_OP_##name, LT_OP_##name##_backward,
#define LT_TEST(name, ...) LT_OP_##name,
#include "ops/unary.def"
#define LT_BINARY(name, ...) LT_OP_##name, LT_OP_##name##_backward_a, LT_OP_##name##_backward_b,
#define LT_COMPARE(name, ...) LT_OP_##name,
#include "ops/binary.def"
#define LT_UPDATE(name, ...) LT_OP_##name##_step,
#include "ops/updates.def"
#define LT_OP(name, ...) LT_OP_##name,
#include "ops/ops.def"
  LT_OP_COUNT
} lt_op;

typedef enum lt_kind {
#define LT_KIND(name, ...) LT_KIND_##name,
#include "ops/kinds.def"
  LT_KIND_COUNT
} lt_kind;

#endif
