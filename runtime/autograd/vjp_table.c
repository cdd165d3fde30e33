/* runtime/autograd/vjp_table.c: which vjp belongs to which op, derived from the rows. */
#include "autograd/vjp.h"

const lt_vjp lt_vjps[LT_OP_COUNT] = {
#define LT_UNARY_ARGS(name, ...) [LT_OP_##name] = lt_vjp_unary,
#define LT_UNARY(name, ...) [LT_OP_##name] = lt_vjp_unary,
#include "ops/unary.def"
#define LT_BINARY(name, ...) [LT_OP_##name] = lt_vjp_binary,
#include "ops/binary.def"
#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) [LT_OP_##name] = lt_vjp_##vjp,
#include "ops/ops.def"
};

/* Rows without a derivative; never called, because their nodes are never recorded. */
bool lt_vjp_none(lt_ctx *c, lt_vjp_call *v) {
  return lt_fail(c, LT_EINTERNAL, "%s: has no derivative", lt_node_name(v->node));
}
