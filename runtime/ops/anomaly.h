/* runtime/ops/anomaly.h: anomaly detection: which operation made the first NaN or infinity. */
#ifndef LT_OPS_ANOMALY_H
#define LT_OPS_ANOMALY_H

#include "ops/op.h"

/* Values of c->modes.anomaly. NOTE: record the first one and continue; RAISE: fail at the first NaN
   in what a gradient belongs to; STRICT: also at the first infinity of a derivative, and where a
   NaN comes into the graph from outside. */
enum { LT_ANOMALY_OFF, LT_ANOMALY_NOTE, LT_ANOMALY_RAISE, LT_ANOMALY_STRICT };

/* The worst element of a list, absent tensors and integers left out. */
typedef enum lt_finiteness { LT_FINITE, LT_INFINITE, LT_NAN } lt_finiteness;
lt_finiteness lt_worst_of(lt_ctx *c, int n, lt_tensor *const *tensors);

/* An operation that a script called has returned `out`; `before`: the worst of its inputs. */
bool lt_anomaly_forward(lt_ctx *c, lt_op op, lt_finiteness before, const void *args, int n_out,
                        lt_tensor *const *out);

/* The derivative of `name`, which was called at `line`, has turned `grads` into `in`. */
bool lt_anomaly_backward(lt_ctx *c, const char *name, uint32_t line, int n_grads,
                         lt_tensor *const *grads, int n_in, lt_tensor *const *in);

#endif
