/* runtime/ops/anomaly.c: anomaly detection: which operation made the first NaN or infinity.

   An operation made it when none of its inputs had it: those after it only hand it on. An infinity
   that a script writes itself (masked_fill with -inf) is meant. */
#include "ops/anomaly.h"

#include <math.h>
#include <stdio.h>

#include "base/script_lines.h"

static lt_finiteness finiteness(double value) {
  return isnan(value) ? LT_NAN : isinf(value) ? LT_INFINITE : LT_FINITE;
}

lt_finiteness lt_worst_of(lt_ctx *c, int n, lt_tensor *const *tensors) {
  lt_modes modes = c->modes;
  c->modes.anomaly = LT_ANOMALY_OFF;
  c->modes.grad = false;
  lt_finiteness worst = LT_FINITE;
  for (int k = 0; k < n && lt_ok(c); k++) {
    lt_scalar size;
    if (tensors[k] == NULL || !lt_dtype_is_float((lt_dtype)tensors[k]->dtype)) continue;
    /* The largest size in one pass: NaN passes through a maximum of this op. */
    lt_tensor *norm = lt_apply1(c, LT_OP_grads_norm, 1, &tensors[k],
                                &(lt_args_grads_norm){.p = INFINITY});
    if (norm == NULL || !lt_item(c, norm, &size)) break;
    if (finiteness(size.f) > worst) worst = finiteness(size.f);
  }
  c->modes = modes;
  return worst;
}

/* Whether a number among the arguments is infinite. */
static bool has_infinity(const lt_kind_info *kind, const void *args) {
  int n = 0;
  const lt_arg *list = kind->args(&n);
  for (int k = 0; k < n && args != NULL; k++) {
    const char *at = (const char *)args + list[k].offset;
    if (list[k].type == LT_ARG_NUMBER && isinf(*(const double *)at)) return true;
    if (list[k].type != LT_ARG_SCALAR) continue;
    const lt_scalar *s = (const lt_scalar *)at;
    if (s->kind == LT_SCALAR_FLOAT && isinf(s->f)) return true;
  }
  return false;
}

static void note(lt_made *made, const char *name, uint32_t line) {
  if (made->op[0] != 0) return;
  snprintf(made->op, sizeof made->op, "%s", name);
  made->line = line;
}

static bool raises(const lt_ctx *c, lt_finiteness after) {
  return c->modes.anomaly >= LT_ANOMALY_RAISE && after == LT_NAN;
}

/* "; the first inf was made by exp at model.lua:13" into `text`; "" without one. */
static const char *origin(const lt_ctx *c, const lt_made *inf, char *text, size_t size) {
  char line[128];
  text[0] = 0;
  if (inf->op[0] != 0)
    snprintf(text, size, "; the first inf was made by %s at %s", inf->op,
             lt_line_text(c, inf->line, line, sizeof line));
  return text;
}

/* A NaN that came from outside of the graph, where it may have been meant, is in it now. */
static bool enters(lt_ctx *c, lt_op op) {
  const lt_made *nan = &c->anomalies.aside[1];
  char line[128];
  if (nan->op[0] == 0)
    return lt_fail(c, LT_EVALUE, "%s: the result is nan, as an input is: nothing in this step made "
                   "that: look at the batch, and at the weights", lt_ops[op].name);
  return lt_fail(c, LT_EVALUE, "%s: the result is nan, as an input is: %s at %s made the first nan",
                 lt_ops[op].name, nan->op, lt_line_text(c, nan->line, line, sizeof line));
}

bool lt_anomaly_forward(lt_ctx *c, lt_op op, lt_finiteness before, const void *args, int n_out,
                        lt_tensor *const *out) {
  lt_finiteness after = lt_worst_of(c, n_out, out);
  if (!lt_ok(c)) return false;
  bool is_strict = c->modes.anomaly == LT_ANOMALY_STRICT;
  if (after <= before && is_strict && after == LT_NAN && lt_requires_grad(out[0]))
    return enters(c, op);
  if (after <= before) return true;
  if (after == LT_INFINITE && has_infinity(&lt_kinds[lt_ops[op].kind], args)) return true;
  bool in_graph = lt_requires_grad(out[0]);
  lt_made *made = in_graph ? c->anomalies.forward : c->anomalies.aside;
  note(&made[after == LT_NAN], lt_ops[op].name, lt_ctx_line(c));
  if (!in_graph || !raises(c, after)) return true;
  return lt_fail(c, LT_EVALUE, "%s: the result is nan, its inputs are not%s", lt_ops[op].name,
                 origin(c, &made[0], (char[256]){0}, 256));
}

bool lt_anomaly_backward(lt_ctx *c, const char *name, uint32_t line, int n_grads,
                         lt_tensor *const *grads, int n_in, lt_tensor *const *in) {
  lt_finiteness before = lt_worst_of(c, n_grads, grads), after = lt_worst_of(c, n_in, in);
  if (!lt_ok(c)) return false;
  if (after <= before) return true;
  lt_made *made = c->anomalies.backward;
  note(&made[after == LT_NAN], name, line);
  if (!raises(c, after) && c->modes.anomaly != LT_ANOMALY_STRICT) return true;
  return lt_fail(c, LT_EVALUE, "backward: the derivative of %s at %s is %s%s", name,
                 lt_line_text(c, line, (char[128]){0}, 128), after == LT_NAN ? "nan" : "inf",
                 after == LT_NAN ? origin(c, &made[0], (char[256]){0}, 256) : "");
}
