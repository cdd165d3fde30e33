/* runtime/ops/value_error.c: error messages for values that a kernel refuses.

   Kernels of the cpu write the whole sentence, with the place; those of other devices leave a word
   (op, line, value, limit), from which the message is made when the host waits for the device. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/op.h"

/* The reason as text, with the value and limit beside it: a kernel of the CPU that runs for another
   device (fallback.c, tests of devices) so reports what that device's word would. */
bool lt_fail_value(lt_ctx *c, int64_t value, int64_t limit, const char *format, ...) {
  if (!lt_ok(c)) return false;
  char text[LT_FAILURE_SHAPES + 256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  lt_fail(c, LT_EVALUE, "%s", text);
  c->failure.value = value;
  c->failure.limit = limit;
  c->failure.of_value = true;
  return false;
}

/* An error word has 64 bits: a float's own, when the value is one. */
static double as_number(int64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static bool fail_multinomial(lt_ctx *c, long long row, long long limit) {
  if (limit == LT_NOT_PROBABLE)
    return lt_fail(c, LT_EVALUE, "multinomial: no probability: one that is negative, infinite or "
                                 "NaN (row %lld)", row);
  if (limit == LT_ALL_ZERO)
    return lt_fail(c, LT_EVALUE, "multinomial: all probabilities are 0 (row %lld)", row);
  return lt_fail(c, LT_EVALUE, "multinomial: %lld samples without replacement from fewer elements "
                               "that are not 0 (row %lld)", limit, row);
}

static bool say(lt_ctx *c, const lt_device_error *e) {
  const lt_op_info *op = &lt_ops[e->op];
  long long value = e->value, limit = e->limit;
  if (op->kind <= LT_KIND_compare)
    return lt_fail(c, LT_EVALUE, "%s: integers %s", op->name,
                   e->op == LT_OP_pow ? "to a negative power; write x:to('f32')"
                                      : "divided by zero");
  if (e->op == LT_OP_bernoulli)
    return lt_fail(c, LT_EVALUE, "bernoulli: probabilities must be in 0..1: got %g",
                   as_number(e->value));
  if (e->op == LT_OP_multinomial) return fail_multinomial(c, value, limit);
  if (e->op == LT_OP_cross_entropy || e->op == LT_OP_cross_entropy_backward)
    return lt_fail(c, LT_EVALUE, "cross_entropy: targets are ids 0..%lld; got %lld with C = %lld",
                   limit - 1, value, limit);
  if (e->op == LT_OP_one_hot)
    return lt_fail(c, LT_EVALUE, "one_hot: id %lld is out of 0..%lld (num_classes = %lld)", value,
                   limit - 1, limit);
  if (op->kind == LT_KIND_recurrent)
    return lt_fail(c, LT_EVALUE, "%s: length %lld is out of 0..%lld", op->name, value, limit);
  if (e->op == LT_OP_index_flatten)
    return lt_fail(c, LT_EVALUE, "index: %lld is out of %lld..%lld", value, -limit, limit - 1);
  if (e->op == LT_OP_ctc_paths || e->op == LT_OP_ctc_paths_backward)
    return lt_fail(c, LT_EVALUE, "ctc_loss: a target or a length of %lld is out of 0..%lld", value,
                   limit - 1);
  if (limit == 0)
    return lt_fail(c, LT_EVALUE, "%s: index %lld into an empty dim", op->name, value);
  return lt_fail(c, LT_EVALUE, "%s: index %lld is out of 0..%lld", op->name, value, limit - 1);
}

/* The failure is reported as that of the op and line that issued the kernel, and is `late`: ops
   that were issued since have run. */
bool lt_value_error(lt_ctx *c, const lt_device_error *e) {
  if (!lt_ok(c) || !lt_assert(c, e->op >= 0 && e->op < LT_OP_COUNT)) return false;
  const char *op = c->op;
  uint32_t line = c->line;
  c->op = lt_ops[e->op].name;
  c->line = e->line;
  say(c, e);
  c->failure.deferred = true;
  c->op = op;
  c->line = line;
  return false;
}
