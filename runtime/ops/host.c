/* runtime/ops/host.c: ops and arguments by name, and the CPU's kernels, for devices out of tree. */
#include "ops/host.h"

#include <string.h>

#include "ops/fallback.h"
#include "ops/inplace.h"

static int op_of(const char *name) {
  lt_op op = lt_op_by_name(name);
  return op == LT_OP_COUNT ? -1 : (int)op;
}

static const void *argument(const lt_call *call, const char *name) {
  int n;
  const lt_arg *args = lt_op_args((lt_op)call->op, &n);
  for (int k = 0; k < n; k++)
    if (strcmp(args[k].name, name) == 0) return (const char *)call->args + args[k].offset;
  return NULL;
}

static const lt_arg *arguments(int op, int *n) { return lt_op_args((lt_op)op, n); }

static const char *name_of(int op) { return lt_ops[op].name; }

void lt_ops_offer(lt_host *host) {
  host->n_ops = LT_OP_COUNT;
  host->op = op_of;
  host->argument = argument;
  host->arguments = arguments;
  host->run_on_cpu = lt_run_on_cpu;
  host->op_name = name_of;
  host->writes = lt_call_writes;
  host->computed_in = lt_row_dtype;
}
