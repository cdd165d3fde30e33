/* runtime/ops/trace.h: recording the calls of a computation, for exporters. */
#ifndef LT_OPS_TRACE_H
#define LT_OPS_TRACE_H

#include "ops/op.h"

/* While c->modes.trace is one of these, `note` gets each call that was run: kernels and views, not
   the composites of them. Arguments are as infer functions leave them. False with a failure in the
   ctx. */
typedef struct lt_trace {
  const char *composite; /* the outermost composite that the calls are parts of; NULL: none */
  struct lt_trace *outer; /* (optional) which it took the place of */
  int inner;              /* how many have taken its place, and are open */
  bool open;
  void (*begin)(struct lt_trace *t); /* (optional) a call, or a composite of some, begins */
  bool (*note)(lt_ctx *c, struct lt_trace *t, const lt_call *call);
} lt_trace;

#endif
