/* runtime/ops/fallback.c: operations that a device lacks run on the CPU, on copies.

   A tensor is copied as the bytes from its first element to its last, with its strides: so a device
   needs no kernel at all, only copies. Updates of optimizers are refused, since every parameter
   would travel twice a step, and so are the steps of a collective, which other ranks wait for. */
#include "ops/fallback.h"

#include <stdio.h>

#include "ops/inplace.h"

/* How often ops ran on the CPU, by kind of device. */
typedef struct counts {
  int64_t op[LT_DEVICE_KINDS][LT_OP_COUNT];
} counts;

static void counts_drop(lt_ctx *c, void *slot) { lt_free(c, slot, sizeof(counts)); }

int64_t lt_fallback_count(const lt_ctx *c, int kind, int op) {
  const counts *w = c->slot[LT_SLOT_FALLBACK];
  return w != NULL ? w->op[kind][op] : 0;
}

/* What a device lacks: "ten has no kernel for f32". */
static const char *lack(lt_ctx *c, const lt_tensor *t, char *text, size_t size) {
  snprintf(text, size, "%s has no kernel for %s", lt_device_table(c, t->storage->device)->name,
           lt_dtype_name((lt_dtype)t->dtype));
  return text;
}

/* Warns at the first time. Not of helper threads: a hook for warnings may call the script's Lua. */
static void count(lt_ctx *c, lt_op op, const lt_tensor *t) {
  lt_device d = t->storage->device;
  counts *w = c->slot[LT_SLOT_FALLBACK];
  if (w == NULL) {
    w = lt_alloc(c, sizeof *w);
    if (w == NULL) return;
    c->slot[LT_SLOT_FALLBACK] = w;
    c->slot_drop[LT_SLOT_FALLBACK] = counts_drop;
  }
  if (w->op[d.kind][op]++ > 0) return;
  lt_log(c, LT_WARN, "%s: %s: it runs on the CPU, with copies there and back", lt_ops[op].name,
         lack(c, t, (char[64]){0}, 64));
}

/* Both refusals are of silent slowness: a script that trains at a hundredth of the speed looks like
   one that hangs. */
static bool may_fall_back(lt_ctx *c, const lt_call *call, const lt_tensor *t) {
  const char *name = lt_ops[call->op].name;
  char text[64];
  if ((lt_kinds[lt_ops[call->op].kind].flags & LT_KIND_MUTATES) != 0)
    return lt_fail(c, LT_EDEVICE,
                   "%s: %s, and an update does not run on the CPU instead: train on the CPU, or "
                   "with another optimizer",
                   name, lack(c, t, text, sizeof text));
  if (c->modes.collective)
    return lt_fail(c, LT_EDEVICE,
                   "%s: %s, and within a collective it does not run on the CPU instead: give the "
                   "collective a tensor of the CPU",
                   name, lack(c, t, text, sizeof text));
  return true;
}

/* The memory that `t` spans, as one dim: its elements and those between them, from the lowest
   address; *first: where t's own first element is in it. A dim of size 0 has none. */
static lt_tensor *row_of(lt_ctx *c, const lt_tensor *t, int64_t *first) {
  int64_t before = 0, n = t->numel > 0 ? 1 : 0;
  for (int k = 0; k < t->ndim && n > 0; k++) {
    int64_t reach = (t->size[k] - 1) * t->stride[k];
    before -= reach < 0 ? reach : 0;
    n += reach < 0 ? -reach : reach;
  }
  *first = before;
  return lt_tensor_make(c, t->storage, (lt_dtype)t->dtype, 1, &n, NULL, t->offset - before);
}

/* `t` in the host's memory, its strides the same, so that the CPU's kernel runs the path that it
   would run there; values are copied only where `read`. */
static lt_tensor *on_cpu(lt_ctx *c, const lt_tensor *t, bool read) {
  int64_t first;
  lt_tensor *row = row_of(c, t, &first);
  if (row == NULL) return NULL;
  lt_tensor *copy = lt_tensor_empty(c, LT_CPU_DEVICE, (lt_dtype)t->dtype, 1, row->size);
  if (copy == NULL || (read && !lt_tensor_read(c, row, lt_data(copy)))) return NULL;
  return lt_tensor_make(c, copy->storage, (lt_dtype)t->dtype, t->ndim, t->size, t->stride, first);
}

static bool write_back(lt_ctx *c, const lt_tensor *t, const lt_tensor *copy) {
  int64_t first;
  lt_tensor *row = row_of(c, t, &first);
  return row != NULL && lt_tensor_write(c, row, copy->storage->data);
}

/* Gaps between the elements of a result are read, to be written back as they were. */
static bool copy_all(lt_ctx *c, const lt_call *call, lt_tensor **in, lt_tensor **out) {
  for (int k = 0; k < call->n_in; k++) {
    in[k] = call->in[k] != NULL ? on_cpu(c, call->in[k], true) : NULL;
    if (!lt_ok(c)) return false;
  }
  for (int k = 0; k < call->n_out; k++) {
    out[k] = on_cpu(c, call->out[k], !lt_is_dense(call->out[k]));
    if (out[k] == NULL) return false;
  }
  return true;
}

/* Everything is copied, run and copied back in order; the copies wait for the device's stream, so
   that no event is needed. */
bool lt_run_on_cpu(lt_ctx *c, const lt_call *call) {
  const lt_tensor *first = call->n_out > 0 ? call->out[0] : call->in[0];
  if (!may_fall_back(c, call, first)) return false;
  if (c == c->root) count(c, (lt_op)call->op, first);
  size_t bytes = (size_t)(call->n_in + 1) * sizeof(lt_tensor *);
  lt_tensor **in = lt_alloc(c, bytes), *out[LT_MAX_OUT];
  if (in == NULL) return false;
  lt_frame frame = lt_frame_open(c);
  lt_call here = *call;
  here.in = in;
  here.out = out;
  bool ok = copy_all(c, call, in, out) &&
            lt_device_table(c, LT_CPU_DEVICE)->kernels[call->op](c, &here) && lt_ok(c);
  for (int k = 0; k < call->n_out && ok; k++) ok = write_back(c, call->out[k], out[k]);
  lt_frame_close(c, frame, 0, NULL);
  lt_free(c, in, bytes);
  return ok;
}
