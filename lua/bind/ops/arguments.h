/* lua/bind/ops/arguments.h: the arguments of an op, read from the Lua stack by its kind's table. */
#ifndef LT_BIND_OPS_ARGUMENTS_H
#define LT_BIND_OPS_ARGUMENTS_H

#include "bind/core/state.h"

enum { LT_ARGS_BYTES = 512 };

typedef struct lt_reading {
  const lt_op_info *op;
  const char *who; /* for messages: the op's name unless changed */
  const lt_kind_info *kind;
  const lt_arg *rows; /* the kind's arguments */
  int n_rows;
  uint32_t is_set; /* bit n: rows[n] was passed */
  int n_in;
  lt_tensor **in; /* few, or memory of Lua's for lists */
  lt_tensor *few[LT_FINITE_IN];
  bool numbers; /* some inputs are numbers: lt_make_numbers */
  lt_scalar number[LT_FINITE_IN];
  bool with_requires_grad; /* accept this option, for makers of tensors */
  bool requires_grad;
  bool all_results; /* return those that are for the derivative too */
  lt_dtype dtype; /* option of reductions: what the input is converted to first */
  _Alignas(16) char args[LT_ARGS_BYTES];
} lt_reading;

/* Start with defaults. */
void lt_reading_init(lt_reading *r, lt_op op);

/* Tensors, then arguments, then one table of options, all from `index` on. Raises on bad ones. */
void lt_read_call(lua_State *L, lt_bind *b, lt_reading *r, int index);

/* The arguments alone, from `index` on. */
void lt_read_arguments(lua_State *L, lt_bind *b, lt_reading *r, int index);

/* Change r->op to the one that the values from `index` on ask for (variants.c). */
void lt_choose_variant(lua_State *L, lt_bind *b, lt_reading *r, int index);

/* Whether the option `dtype` converts the input first. */
bool lt_takes_dtype(const lt_op_info *op);

/* Turn numbers that stand for tensors into tensors of the open frame. */
void lt_make_numbers(lt_ctx *c, lt_reading *r);

/* Where the argument `name` is in r->args, NULL when the kind has none; *is_set: whether it was
   passed (may be NULL). */
void *lt_argument(lt_reading *r, const char *name, bool *is_set);

/* Count an argument as passed: it is not read and not missed. */
void lt_mark_present(lt_reading *r, const char *name);

/* Apply the op: pushes its results and returns how many (ops.c). */
int lt_run_reading(lua_State *L, lt_bind *b, lt_reading *r);

#endif
