/* runtime/ops/apply.c: dispatch. Every operation, from Lua, C or a derivative, goes through
   lt_apply.

   The order is: inputs as the op wants them (devices, dtypes), shapes of results, memory,
   kernel, versions, history. All that is checked is checked before memory that a script can see
   is written. */
#include <string.h>

#include "device/ctx_devices.h"
#include "ops/anomaly.h"
#include "ops/fallback.h"
#include "ops/inplace.h"
#include "ops/mixed_devices.h"
#include "ops/node.h"
#include "ops/op.h"
#include "ops/trace.h"

enum { ARGS_ON_STACK = 512 };

/* Everything about one call, on the stack of lt_apply: no allocation for an op of up to
   LT_FINITE_IN inputs, as dispatch is most of the time of a small op. `args` is a copy, since
   inferring resolves negative dims and defaults in it; what is recorded on the tape is the resolved
   form. */
typedef struct dispatch {
  const lt_op_info *op;
  const lt_kind_info *kind;
  lt_infer infer;
  lt_tensor **out;
  lt_tensor **in; /* may point to `few` or to frame-owned memory for long lists */
  lt_tensor *few[LT_FINITE_IN];
  lt_tensor **values; /* NULL, or what inputs were before the call overwrote them */
  bool mixed;         /* numbers of the CPU are among inputs of another device */
  lt_tensor *kept[LT_FINITE_IN];
  uint32_t uncast; /* bit k: kept[k] is what input k was before it was cast */
  _Alignas(16) char args[ARGS_ON_STACK];
} dispatch;

/* Whether a view that is larger than its memory may be read: never where it is but viewed. An
   expanded tensor of 10^12 elements takes no memory, but any loop over it minutes: hosts that
   bound a script's instructions bound this too. */
static bool afford(lt_ctx *c, const dispatch *d, const lt_tensor *t) {
  if (c->afford == NULL || (d->kind->flags & LT_KIND_VIEW) != 0) return true;
  int64_t elements = t->numel - (int64_t)(t->storage->bytes / lt_item_size(t));
  return elements <= 0 || c->afford(c->afford_ud, elements) ||
         lt_fail(c, LT_EVALUE, "%s: so many elements are more than the host of this state allows "
                 "(max_instructions): %s", d->op->name, LT_TENSOR_STR(t));
}

/* The inputs' number, their presence and their devices. The device of a call is that of its first
   tensor; a number of the CPU (a tensor without dims) may join tensors of another device in
   elementwise ops, as in PyTorch (mixed_devices.c). */
static bool check_inputs(lt_ctx *c, dispatch *d, int n_in, lt_tensor *const *in) {
  const lt_tensor *first = NULL;
  bool list = (d->kind->flags & LT_KIND_LIST) != 0;
  if (n_in < d->kind->min_in || (d->kind->max_in >= 0 && n_in > d->kind->max_in))
    return lt_fail(c, LT_EARG, "%s: takes %d to %d tensors, got %d", d->op->name, d->kind->min_in,
                   d->kind->max_in, n_in);
  for (int k = 0; k < n_in; k++) {
    if (in[k] == NULL) {
      if (k >= d->kind->min_in && !list) continue;
      return lt_fail(c, LT_EARG, "%s: tensor %d is missing", d->op->name, k + 1);
    }
    if (first == NULL) first = in[k];
    if (!lt_device_equal(first->storage->device, in[k]->storage->device)) d->mixed = true;
    if (!lt_check_view(c, in[k]) || !afford(c, d, in[k])) return false;
  }
  d->infer.device = first != NULL ? first->storage->device : LT_CPU_DEVICE;
  return !d->mixed || lt_mixed_devices_device(c, d->op, n_in, in, &d->infer.device);
}

/* The dtype that autocast or the op's rule wants floating inputs in; NONE to leave them. */
static lt_dtype wanted_dtype(const lt_ctx *c, const dispatch *d) {
  bool elementwise = d->op->kind <= LT_KIND_compare;
  if (c->modes.autocast && d->op->cast == LT_CAST_lower) return c->modes.autocast_dtype;
  if (c->modes.autocast && d->op->cast == LT_CAST_f32) return LT_F32;
  if (elementwise || d->op->dtype == LT_DTYPE_first || d->op->dtype == LT_DTYPE_own)
    return LT_DTYPE_NONE;
  lt_dtype common = LT_DTYPE_NONE;
  for (int k = 0; k < d->infer.n_in; k++) {
    if (d->in[k] == NULL) continue;
    lt_dtype t = (lt_dtype)d->in[k]->dtype;
    if (d->op->dtype == LT_DTYPE_float && !lt_dtype_is_float(t)) continue;
    common = common == LT_DTYPE_NONE ? t : lt_dtype_promote(common, t);
  }
  return common;
}

/* Of an input whose memory comes and goes, as that of a sharded parameter, the tape keeps that and
   no cast of it, which would stay: backward casts it again (lt_saved_at). */
static void keep_uncast(dispatch *d, int k) {
  if (d->infer.n_in > LT_FINITE_IN || !lt_storage_was_emptied(d->in[k]->storage)) return;
  d->kept[k] = d->in[k];
  d->uncast |= 1u << k;
}

/* Autocast follows P. Micikevicius and others, Mixed Precision Training, 2018: products in 16 bits,
   what sums over many elements in f32. f64 and integers are never narrowed: whoever has them means
   them. */
static bool cast_inputs(lt_ctx *c, dispatch *d) {
  lt_dtype want = wanted_dtype(c, d);
  if (want == LT_DTYPE_NONE) return true;
  bool autocast = c->modes.autocast && d->op->cast != LT_CAST_keep;
  for (int k = 0; k < d->infer.n_in; k++) {
    if (d->in[k] == NULL || (lt_dtype)d->in[k]->dtype == want) continue;
    lt_dtype t = (lt_dtype)d->in[k]->dtype;
    if (d->op->dtype != LT_DTYPE_promote && !lt_dtype_is_float(t)) continue;
    if (autocast && (!lt_dtype_is_float(t) || t == LT_F64)) continue;
    keep_uncast(d, k);
    d->in[k] = autocast ? lt_autocast_to(c, d->in[k], want) : lt_cast(c, d->in[k], want);
    if (d->in[k] == NULL) return false;
  }
  return true;
}

/* The result of a view op shares the input's storage. A reshape whose sizes do not fit x's strides
   copies first (view_copy), as torch.reshape does. `base` is the tensor whose memory is shown;
   LT_VIEW_UNSEEN marks views that were made without history of something that has one: writes into
   them in grad mode are refused, since the tape would not see them. */
static bool make_view(lt_ctx *c, dispatch *d) {
  const lt_meta *m = &d->infer.out[0];
  lt_tensor *x = d->in[0];
  if (d->out[0] != NULL)
    return lt_fail(c, LT_EARG, "%s: a view has no memory to write its result to", d->op->name);
  if (!lt_shape_check(c, m->shape.ndim, m->shape.size)) return false;
  if (d->infer.view_copy) {
    lt_tensor *copy = lt_tensor_empty(c, d->infer.device, m->dtype, x->ndim, x->size);
    if (copy == NULL || !lt_run(c, LT_OP_clone, 1, &x, NULL, 0, 1, &copy)) return false;
    d->out[0] = lt_tensor_make(c, copy->storage, m->dtype, m->shape.ndim, m->shape.size, NULL, 0);
    if (d->out[0] == NULL) return false;
    if (d->infer.op == &lt_ops[LT_OP_view]) d->out[0]->flags |= LT_VIEW_COPIED;
    return true;
  }
  d->out[0] = lt_tensor_make(c, x->storage, m->dtype, m->shape.ndim, m->shape.size, m->stride,
                             d->infer.view_offset);
  if (d->out[0] == NULL) return false;
  d->out[0]->flags |= LT_IS_VIEW;
  d->out[0]->base = lt_retain(lt_base_of_view(c, x));
  if ((x->flags & LT_VIEW_UNSEEN) != 0 || (!c->modes.grad && lt_requires_grad(x)))
    d->out[0]->flags |= LT_VIEW_UNSEEN;
  bool detached = x->node == NULL && x->view_version == UINT64_MAX;
  d->out[0]->view_version = detached ? UINT64_MAX : x->storage->version;
  return true;
}

/* A result passed by the caller must have the right shape and a dtype that can hold it. */
static bool check_fits(lt_ctx *c, const dispatch *d, int k) {
  const lt_meta *m = &d->infer.out[k];
  const lt_tensor *t = d->out[k];
  if (!lt_shape_equal(m->shape, lt_tensor_shape(t)))
    return lt_fail(c, LT_ESHAPE, "%s: the result has shape %s, the tensor to write has %s",
                   d->op->name, LT_SHAPE_STR(m->shape), LT_TENSOR_STR(t));
  if (lt_dtype_is_float(m->dtype) && !lt_dtype_is_float((lt_dtype)t->dtype))
    return lt_fail(c, LT_EDTYPE, "%s: a result of %s does not fit into a tensor of %s", d->op->name,
                   lt_dtype_name(m->dtype), lt_dtype_name((lt_dtype)t->dtype));
  if (!lt_device_equal(t->storage->device, d->infer.device))
    return lt_fail(c, LT_EDEVICE, "%s: the result is on %s, the tensor to write is on %s",
                   d->op->name, lt_device_text(c, d->infer.device, (char[32]){0}, 32),
                   lt_device_text(c, t->storage->device, (char[32]){0}, 32));
  return true;
}

/* A result that the caller brings, for an in-place op or `out`: it fits, and its memory may be
   written. */
static bool check_preset(lt_ctx *c, const dispatch *d, int k) {
  return check_fits(c, d, k) && lt_check_writable(c, d->out[k], d->infer.n_in, d->in);
}

/* Memory for the results, after all checks: a call that fails leaves the pool as it was. A preset
   result decides its own dtype; the kernel then rounds to it. */
static bool allocate(lt_ctx *c, dispatch *d) {
  for (int k = 0; k < d->infer.n_out; k++) {
    lt_meta *m = &d->infer.out[k];
    if (d->out[k] != NULL) {
      if (!check_preset(c, d, k)) return false;
      m->dtype = (lt_dtype)d->out[k]->dtype;
      continue;
    }
    d->out[k] = lt_tensor_empty(c, d->infer.device, m->dtype, m->shape.ndim, m->shape.size);
    if (d->out[k] == NULL) return false;
    if (m->strided) lt_tensor_set_shape(d->out[k], m->shape.ndim, m->shape.size, m->stride);
  }
  return true;
}

/* In-place writes: bump versions and hang the new history on what was overwritten. */
static void mark_written(lt_ctx *c, dispatch *d, const bool *preset) {
  for (int k = 0; k < d->infer.n_out; k++)
    if (preset[k]) lt_storage_bump(c, d->out[k]->storage);
  if ((d->kind->flags & LT_KIND_MUTATES) == 0) return;
  for (int k = 0; k < d->infer.n_in; k++)
    if (d->in[k] != NULL && lt_kind_writes(d->op->kind, k, d->infer.n_in, d->args))
      lt_storage_bump(c, d->in[k]->storage);
}

static bool same_view(const lt_tensor *a, const lt_tensor *b) {
  return a->offset == b->offset && a->dtype == b->dtype &&
         lt_shape_equal(lt_tensor_shape(a), lt_tensor_shape(b)) &&
         memcmp(a->stride, b->stride, (size_t)a->ndim * sizeof *a->stride) == 0;
}

/* Whether the kernel could read an element of input k that it has already written. Elementwise
   kernels read an element before they write it, so the same view in and out is safe; scatter_add
   and index_add start from their first input. All else that shares a storage counts as an overlap:
   comparing strided ranges exactly is an integer programming problem (NumPy's memory-overlap
   solver), and a copy is rare. */
static bool overlaps(const dispatch *d, int k, const bool *preset) {
  const lt_tensor *in = d->in[k];
  lt_kind kind = d->op->kind;
  bool each = kind <= LT_KIND_compare || kind == LT_KIND_copy || kind == LT_KIND_fill;
  bool start = k == 0 && (kind == LT_KIND_scatter_add || kind == LT_KIND_index_add);
  for (int j = 0; j < d->infer.n_out && in != NULL; j++)
    if (preset[j] && in->storage == d->out[j]->storage &&
        !((each || start) && same_view(in, d->out[j])))
      return true;
  return false;
}

/* Runs the kernel. An input that shares memory with a result to write is copied first where that
   matters (x[{2, -1}]:add_(x[{1, -2}]) must not read what it has just written). Kernels may
   therefore assume that inputs and results do not overlap, but for identical views. */
static bool run_apart(lt_ctx *c, dispatch *d, const bool *preset) {
  lt_tensor *few[LT_FINITE_IN], **in = d->in;
  int n = d->infer.n_in;
  bool grad = c->modes.grad;
  c->modes.grad = false;
  for (int k = 0; k < n && in != NULL; k++) {
    if (!overlaps(d, k, preset)) continue;
    if (in == d->in) {
      in = n <= LT_FINITE_IN ? few : lt_alloc(c, (size_t)n * sizeof *in);
      if (in == NULL) break;
      memcpy(in, d->in, (size_t)n * sizeof *in);
    }
    in[k] = lt_apply1(c, LT_OP_clone, 1, &d->in[k], NULL);
  }
  c->modes.grad = grad;
  bool ok = lt_ok(c) && lt_run(c, (lt_op)(d->op - lt_ops), n, in, d->args, d->kind->args_size,
                               d->infer.n_out, d->out);
  if (in != d->in && in != few) lt_free(c, in, (size_t)n * sizeof *in);
  return ok;
}

/* What kernels, derivatives and traces get to see of a call: borrowed pointers, valid while
   lt_apply runs. */
static lt_call call_of(const dispatch *d) {
  return (lt_call){.op = (int)(d->op - lt_ops), .n_in = d->infer.n_in, .in = d->in,
                   .n_out = d->infer.n_out, .out = d->out, .args = d->args,
                   .args_size = d->kind->args_size};
}

/* Runs the parts of a composite, whose name a trace has meanwhile. */
static bool expand(lt_ctx *c, dispatch *d) {
  const lt_call call = call_of(d);
  lt_trace *t = c->modes.trace;
  if (t == NULL || t->composite != NULL) return d->op->expand(c, &call, d->out);
  t->composite = d->op->name;
  bool ok = d->op->expand(c, &call, d->out);
  t->composite = NULL;
  return ok;
}

/* A composite makes its results from other ops, which are copied into those that the caller
   brought. Its parts record themselves on the tape, so it needs no derivative of its own. */
static bool compose(lt_ctx *c, dispatch *d) {
  lt_tensor *preset[LT_MAX_OUT];
  for (int k = 0; k < d->infer.n_out; k++) preset[k] = d->out[k], d->out[k] = NULL;
  if (!expand(c, d)) return false;
  for (int k = 0; k < d->infer.n_out; k++) {
    if (preset[k] == NULL) continue;
    lt_tensor *made = d->out[k];
    d->out[k] = preset[k];
    lt_meta_of(&d->infer.out[k], made);
    if (!check_preset(c, d, k) || !lt_copy_into(c, preset[k], made)) return false;
  }
  return true;
}

/* A write into a view that has to enter the history of its base: the value is made apart, from
   copies of what its derivative reads there. */
static bool write_view(lt_ctx *c, dispatch *d) {
  lt_tensor *view = d->out[0], *value = NULL;
  int n = d->infer.n_in;
  if (!check_fits(c, d, 0)) return false;
  uint32_t slots = lt_recording(c, n, d->in) ? lt_saved_slots(d->op, d->in, d->args) : 0;
  for (int k = 0; k < n && k < LT_FINITE_IN; k++)
    if ((slots >> k & 1) != 0 && d->in[k] != NULL && d->in[k]->storage == view->storage)
      d->in[k] = lt_apply1(c, LT_OP_clone, 1, &d->in[k], NULL);
  return lt_apply(c, (lt_op)(d->op - lt_ops), n, d->in, d->args, 1, &value) &&
         lt_view_write(c, view, value);
}

/* Copies of the inputs that the derivative reads and this call overwrites: x:mul_(y) needs the old
   x for the gradient of y. One tensor more, and only where gradients are recorded. */
static bool keep_values(lt_ctx *c, dispatch *d, const bool *preset) {
  int n = d->infer.n_in;
  if (n > LT_FINITE_IN || !d->op->differentiable || !lt_recording(c, n, d->in)) return true;
  uint32_t slots = lt_saved_slots(d->op, d->in, d->args);
  for (int k = 0; k < n; k++) {
    d->kept[k] = d->in[k];
    for (int j = 0; j < d->infer.n_out && (slots >> k & 1) != 0 && d->in[k] != NULL; j++) {
      if (!preset[j] || d->in[k]->storage != d->out[j]->storage) continue;
      c->modes.grad = false;
      d->kept[k] = lt_apply1(c, LT_OP_clone, 1, &d->in[k], NULL);
      c->modes.grad = true;
      if (d->kept[k] == NULL) return false;
      break;
    }
  }
  d->values = d->kept;
  return true;
}

/* Whether the device has a kernel of its own: not for what is composed of others. */
static bool has_kernel(const lt_ctx *c, const dispatch *d) {
  const lt_tensor *example = d->infer.n_out > 0 ? d->out[0] : d->infer.n_in > 0 ? d->in[0] : NULL;
  lt_dtype dtype = example != NULL ? (lt_dtype)example->dtype : d->infer.out[0].dtype;
  return d->op->has_kernel &&
         lt_kernel_of(lt_device_table(c, d->infer.device), (lt_op)(d->op - lt_ops), dtype) != NULL;
}

/* Whether a kernel's loop may end early: what reads no place that it has computed itself. */
static bool is_stoppable(lt_kind kind) {
  return kind <= LT_KIND_compare || kind == LT_KIND_reduce || kind == LT_KIND_sum_to ||
         kind == LT_KIND_arg_reduce || kind == LT_KIND_extremum || kind == LT_KIND_random ||
         kind == LT_KIND_random_int;
}

/* The three ways of a call: a view, a composite without a kernel on this device, a kernel.
   *composite reports that history is recorded already. */
static bool compute(lt_ctx *c, dispatch *d, bool *composite) {
  if ((d->kind->flags & LT_KIND_VIEW) != 0) return make_view(c, d);
  if (d->op->expand != NULL && !has_kernel(c, d)) {
    *composite = true; /* its parts have recorded themselves */
    return compose(c, d);
  }
  bool preset[LT_MAX_OUT] = {false}, any = false;
  for (int k = 0; k < d->infer.n_out; k++) any |= preset[k] = d->out[k] != NULL;
  if (any && d->infer.n_out == 1 && lt_writes_base(c, d->out[0], d->infer.n_in, d->in)) {
    *composite = true;
    return write_view(c, d);
  }
  if (!allocate(c, d) || (any && !keep_values(c, d, preset))) return false;
  bool before = c->stoppable;
  /* A cancelled loop leaves its result half written: never memory that the script has. */
  c->stoppable = !any && is_stoppable(d->op->kind);
  bool ok = run_apart(c, d, preset);
  c->stoppable = before;
  if (ok) mark_written(c, d, preset);
  return ok;
}

static bool tell(lt_ctx *c, const dispatch *d) {
  if (c->modes.trace == NULL) return true;
  const lt_call call = call_of(d);
  return c->modes.trace->note(c, c->modes.trace, &call);
}

/* Hidden ops are derivatives: one that has no derivative itself ends create_graph, with its name;
   elsewhere an op that is not differentiable (argmax, comparisons) just has no history. */
static bool record(lt_ctx *c, dispatch *d) {
  if (!lt_recording(c, d->infer.n_in, d->in)) return true;
  bool hidden = d->op->hidden || (d->kind->flags & LT_KIND_HIDDEN) != 0;
  if (!d->op->differentiable && hidden)
    return lt_fail(c, LT_EARG, "%s: has no derivative of its own: create_graph ends here",
                   d->op->name);
  if (!d->op->differentiable) return true;
  const lt_call call = call_of(d);
  if (d->uncast != 0 && d->values == NULL) {
    for (int k = 0; k < d->infer.n_in; k++)
      if ((d->uncast >> k & 1) == 0) d->kept[k] = d->in[k];
    d->values = d->kept;
  }
  return lt_record(c, &call, d->op, d->values);
}

/* The steps of a call in their order. NULL args stand for the row's defaults. */
static bool pass(lt_ctx *c, dispatch *d, int n_in, lt_tensor *const *in, const void *args) {
  if (!lt_assert(c, d->kind->args_size <= ARGS_ON_STACK)) return false;
  if (args != NULL)
    memcpy(d->args, args, d->kind->args_size);
  else
    lt_op_defaults((lt_op)(d->op - lt_ops), d->args);
  if (!check_inputs(c, d, n_in, in)) return false;
  if (n_in > 0) memcpy(d->in, in, (size_t)n_in * sizeof *in);
  if (d->mixed && !lt_mixed_devices_join(c, n_in, d->in, d->infer.device)) return false;
  if (!cast_inputs(c, d) || !d->kind->infer(c, &d->infer)) return false;
  bool composite = false;
  if (c->modes.trace != NULL && c->modes.trace->begin != NULL)
    c->modes.trace->begin(c->modes.trace);
  return compute(c, d, &composite) && (composite || (record(c, d) && tell(c, d)));
}

/* Note the shapes of the tensors that an op failed with, as many as fit. */
static void note_shapes(lt_failure *f, int n_in, lt_tensor *const *in) {
  size_t used = 0;
  for (int k = 0; k < n_in; k++) {
    if (in[k] == NULL) continue;
    const char *text = LT_TENSOR_STR(in[k]);
    size_t length = strlen(text);
    if (used + length + 2 > sizeof f->shapes) break;
    if (used > 0) f->shapes[used++] = ' ';
    memcpy(f->shapes + used, text, length + 1);
    used += length;
  }
}

/* The same with a check of inputs and results for NaN and infinities (c->modes.anomaly). Inputs
   that the call overwrites are checked before it runs, others only when a result is bad: the check
   reads every element. */
static bool pass_watched(lt_ctx *c, dispatch *d, int n_in, lt_tensor *const *in, const void *args) {
  bool in_place = false;
  for (int k = 0; k < d->infer.n_out; k++) in_place = in_place || d->out[k] != NULL;
  lt_finiteness before = in_place ? lt_worst_of(c, n_in, in) : LT_FINITE;
  if (!pass(c, d, n_in, in, args)) return false;
  if (!in_place && lt_worst_of(c, d->infer.n_out, d->out) != LT_FINITE)
    before = lt_worst_of(c, n_in, in);
  return lt_anomaly_forward(c, (lt_op)(d->op - lt_ops), before, args, d->infer.n_out, d->out);
}

/* Only a call that no other op makes is watched for anomalies. c->op names the op that runs, for
   messages; the shapes noted are those of the innermost call that failed. */
bool lt_apply(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args, int n_out,
              lt_tensor **out) {
  if (!lt_ok(c)) return false;
  if (atomic_load_explicit(c->cancel, memory_order_relaxed))
    return lt_fail(c, LT_ECANCEL, "%s: cancelled", lt_ops[op].name);
  if (c->progress != NULL) c->progress(c, c->progress_ud);
  dispatch d;
  d.op = &lt_ops[op];
  d.kind = &lt_kinds[d.op->kind];
  d.out = out;
  d.in = d.few;
  d.values = NULL;
  d.uncast = 0;
  d.mixed = false;
  if (n_in > LT_FINITE_IN && (d.in = lt_alloc(c, (size_t)n_in * sizeof *in)) == NULL) return false;
  memset(&d.infer, 0, sizeof d.infer);
  d.infer.op = d.op;
  d.infer.n_in = n_in;
  d.infer.n_out = n_out;
  d.infer.in = d.in;
  d.infer.args = d.args;
  const char *outer = c->op;
  c->op = d.op->name;
  bool watched = c->modes.anomaly != LT_ANOMALY_OFF && outer == NULL && n_in > 0 && n_out > 0;
  bool ok = watched ? pass_watched(c, &d, n_in, in, args) : pass(c, &d, n_in, in, args);
  c->op = outer;
  if (!lt_ok(c) && c->failure.shapes[0] == 0) note_shapes(&c->failure, n_in, in);
  if (d.in != d.few) lt_free(c, d.in, (size_t)n_in * sizeof *in);
  return ok && lt_ok(c);
}

lt_tensor *lt_apply1(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args) {
  lt_tensor *out = NULL;
  return lt_apply(c, op, n_in, in, args, 1, &out) ? out : NULL;
}
