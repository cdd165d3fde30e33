/* runtime/ops/run.c: executes a call: the kernel of its device, in stream order. */
#include "device/ctx_devices.h"
#include "device/graph.h"
#include "ops/deferred_init.h"
#include "ops/fallback.h"
#include "ops/inplace.h"

bool lt_call_writes(const lt_call *call, int k) {
  lt_kind kind = lt_ops[call->op].kind;
  return (lt_kinds[kind].flags & LT_KIND_MUTATES) != 0 &&
         lt_kind_writes(kind, k, call->n_in, call->args);
}

/* Of a call that a graph captures: what changes when it is launched again. */
static bool note(lt_ctx *c, lt_graph *g, lt_kernel kernel, const lt_call *call) {
  lt_kind kind = lt_ops[call->op].kind;
  bool is_update = kind == LT_KIND_sgd_step || kind == LT_KIND_adam_step || kind == LT_KIND_update;
  int n;
  const lt_arg *args = lt_op_args((lt_op)call->op, &n);
  for (int k = 0; k < n; k++) {
    const char *key = (const char *)call->args + args[k].offset;
    if (args[k].type == LT_ARG_RNG_KEY && ((const lt_rng_key *)(const void *)key)->drawn)
      return lt_graph_note_call(c, g, kernel, call, true, (int64_t)args[k].offset);
  }
  return lt_graph_note_call(c, g, kernel, call, is_update, LT_NO_KEY);
}

/* On a device with streams: the call is ordered after those that wrote what it reads, or read what
   it writes, on other streams; then it is issued and marked on all its tensors. */
static bool issue(lt_ctx *c, lt_device d, lt_kernel kernel, const lt_call *call) {
  const lt_device_ops *ops = lt_device_table(c, d);
  lt_stream *stream = lt_stream_current(c, d);
  if (stream == NULL || !lt_order_call(c, call, stream, lt_call_writes) ||
      !lt_launch_begin(c, d, call->op))
    return false;
  lt_graph *captures = lt_graph_captures(c);
  bool ok = ops->launch(c, d.index, stream, kernel, call);
  if (ok && captures != NULL) ok = note(c, captures, kernel, call);
  /* What was issued before a failure runs all the same. */
  ok = lt_order_called(c, call, stream, lt_call_writes) && ok;
  lt_launch_end(c, stream);
  return ok && lt_ok(c) && lt_launch_settle(c, d);
}

static bool are_here(lt_ctx *c, int n, lt_tensor *const *list) {
  for (int k = 0; k < n; k++)
    if (list[k] != NULL && list[k]->storage->away != NULL && !lt_check_data(c, NULL, list[k]))
      return false;
  return true;
}

/* The four ways: a device without data records, `transfer` copies, a device without the kernel
   falls back, and all others run it. Shapes and history are the caller's affair (apply.c,
   materialize.c). */
bool lt_run(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args, size_t args_size,
            int n_out, lt_tensor *const *out) {
  if (n_out == 0 && n_in == 0) return true; /* an update of nothing */
  lt_device device = n_out > 0 ? out[0]->storage->device : in[0]->storage->device;
  const lt_device_ops *ops = lt_device_table(c, device);
  const lt_call call = {.op = (int)op, .n_in = n_in, .n_out = n_out, .in = in, .out = out,
                        .args = args, .args_size = args_size};
  if (!are_here(c, n_in, in) || !are_here(c, n_out, out)) return false;
  if (lt_graph_is_fed(c, device)) return lt_graph_fed_call(c, &call);
  if (ops->no_data) return lt_deferred_note(c, &call);
  if (op == LT_OP_transfer)
    return lt_device_copy(c, out[0], in[0], (size_t)in[0]->numel * lt_item_size(in[0]));
  lt_kernel kernel = lt_kernel_of(ops, op, (lt_dtype)(n_out > 0 ? out[0] : in[0])->dtype);
  if (kernel == NULL) return lt_run_on_cpu(c, &call);
  if (ops->launch == NULL) return kernel(c, &call) && lt_ok(c);
  return issue(c, device, kernel, &call);
}
