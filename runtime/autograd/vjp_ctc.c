/* runtime/autograd/vjp_ctc.c: the derivative of connectionist temporal classification.

   Forward saves alpha, the log-probabilities of all prefixes of the target at each step; the
   backward op computes those of the suffixes and combines both (A. Graves et al., "Connectionist
   temporal classification", ICML 2006). */
#include "autograd/vjp.h"

bool lt_vjp_ctc_paths(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_ctc_paths *a = v->args;
  const lt_args_ctc_paths_backward args = {.blank = a->blank, .zero_infinity = a->zero_infinity};
  lt_tensor *x = lt_saved_in(c, v, 0), *targets = lt_saved_in(c, v, 1);
  lt_tensor *steps = lt_saved_in(c, v, 2), *lengths = lt_saved_in(c, v, 3);
  lt_tensor *alpha = lt_saved_out(c, v, 1);
  if (!lt_ok(c) || v->grad[0] == NULL) return lt_ok(c);
  v->in[0] = lt_apply1(c, LT_OP_ctc_paths_backward,
                       LT_IN(v->grad[0], x, targets, steps, lengths, alpha), &args);
  return lt_ok(c);
}
