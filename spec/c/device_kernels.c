/* spec/c/device_kernels.c: part of device_conformance: the kernels of the device give what the
   CPU's give.

   Inputs are drawn by kind of op, in every dtype that both take, row-major, strided and at odd
   addresses; results are made new and, elementwise, written into a tensor with gaps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_cases.h"
#include "device_conformance.h"
#include "ops/fallback.h"

typedef enum layout { ROW_MAJOR, STRIDED, ODD, LAYOUTS } layout;
static const char *const layout_names[] = {"row-major", "strided", "at an odd address"};

/* The same values as `t` on device `d`, lying otherwise: dims backwards with every second element
   of a wider row in between, or one element behind a block's start. */
static lt_tensor *laid_out(lt_ctx *c, lt_tensor *t, lt_device d, layout how) {
  if (t == NULL || how == ROW_MAJOR || t->ndim == 0) return lt_to_device(c, t, d);
  lt_shape base = {.ndim = 1, .size = {t->numel + 1}};
  int dims[LT_MAX_DIMS];
  for (int k = 0; how == STRIDED && k < t->ndim; k++) {
    dims[k] = t->ndim - 1 - k;
    base.ndim = t->ndim;
    base.size[k] = t->size[dims[k]] * (k == t->ndim - 1 ? 2 : 1);
  }
  lt_tensor *whole = lt_full(c, base, lt_scalar_int(1), (lt_dtype)t->dtype, LT_CPU_DEVICE);
  lt_tensor *there = NULL;
  for (int pass = 0; pass < 2 && lt_ok(c); pass++) { /* the values go in on the CPU */
    lt_tensor *view = pass == 0 ? whole : lt_to_device(c, whole, d);
    if (how == STRIDED)
      view = lt_permute(c, lt_slice(c, view, t->ndim - 1, 0, t->size[0], 2), dims);
    else
      view = lt_reshape(c, lt_slice(c, view, 0, 1, t->numel, 1), lt_tensor_shape(t));
    if (pass == 0) lt_copy_into(c, view, t);
    there = view;
  }
  return there;
}

static double tolerance_of(lt_dtype d) {
  switch ((int)d) {
    case LT_F32: return 2e-5;
    case LT_F64: return 1e-10;
    case LT_F16: return 4e-3;
    case LT_BF16: return 3e-2;
    default: return 0;
  }
}

static bool is_near(double a, double b, double tolerance) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  if (isinf(a) || isinf(b)) return a == b;
  return fabs(a - b) <= tolerance * (1 + fabs(b));
}

static double *values_of(lt_ctx *c, lt_tensor *t) {
  double *v = malloc((size_t)(t->numel + 1) * sizeof *v);
  t = lt_contiguous(c, lt_cast(c, lt_to_device(c, t, LT_CPU_DEVICE), LT_F64));
  if (v != NULL && t != NULL) lt_tensor_read(c, t, v);
  return v;
}

/* What a trial is called in a fault: "add of f32, strided". */
static const char *title(const trial *t, layout how) {
  static char text[160];
  snprintf(text, sizeof text, "%s of %s, case %d, %s", lt_ops[t->op].name, lt_dtype_name(t->dtype),
           t->number, layout_names[how]);
  return text;
}

static void compare(lt_ctx *c, const trial *t, layout how, lt_tensor *got, lt_tensor *wanted,
                    const char *what) {
  if (got->dtype != wanted->dtype || !lt_shape_equal(lt_tensor_shape(got), lt_tensor_shape(wanted)))
    return fault("%s: %s has another shape or dtype than the CPU's", title(t, how), what);
  double *a = values_of(c, got), *b = values_of(c, wanted);
  double tolerance = tolerance_of((lt_dtype)wanted->dtype) * t->slack;
  for (int64_t k = 0; k < got->numel && lt_ok(c); k++) {
    if (is_near(a[k], b[k], tolerance)) continue;
    fault("%s %s: %s: element %lld is %.9g, the CPU's %.9g", title(t, how), LT_TENSOR_STR(got),
          what, (long long)k, a[k], b[k]);
    break;
  }
  good(c, lt_ok(c), title(t, how));
  free(a);
  free(b);
}

/* One call on a device. The random numbers of a trial are the same each time. */
static bool run(lt_ctx *c, trial *t, lt_device d, layout how, lt_tensor **in, lt_tensor **out) {
  lt_rng rng = c->rng;
  int n;
  const lt_arg *args = lt_op_args(t->op, &n);
  for (int k = 0; k < n; k++)
    if (args[k].type == LT_ARG_DEVICE) memcpy(t->args + args[k].offset, &d, sizeof d);
  for (int k = 0; k < t->n; k++)
    in[k] = t->in[k] == NULL ? NULL
                             : laid_out(c, lt_apply1(c, LT_OP_clone, 1, &t->in[k], NULL), d,
                                        t->saved >> k & 1 ? ROW_MAJOR : how);
  bool ok = lt_apply(c, t->op, t->n, in, t->args, lt_kinds[lt_ops[t->op].kind].n_out, out);
  c->rng = rng;
  return ok;
}

/* Into every second element of a row: the rest stays. */
static void write_with_gaps(lt_ctx *c, trial *t, lt_tensor *wanted) {
  lt_tensor *in[TRIAL_IN];
  lt_shape s = lt_tensor_shape(wanted);
  if (s.ndim == 0 || s.ndim == LT_MAX_DIMS || lt_ops[t->op].kind > LT_KIND_compare) return;
  int last = s.ndim - 1;
  s.size[last] *= 2;
  lt_tensor *whole = lt_to_device(
      c, lt_full(c, s, lt_scalar_int(1), (lt_dtype)wanted->dtype, LT_CPU_DEVICE), device);
  lt_tensor *out = lt_slice(c, whole, last, 0, s.size[last] / 2, 2);
  lt_tensor *gaps = lt_slice(c, whole, last, 1, s.size[last] / 2, 2);
  if (!good(c, run(c, t, device, ROW_MAJOR, in, &out), title(t, ROW_MAJOR))) return;
  compare(c, t, STRIDED, out, wanted, "a result with gaps");
  double *v = values_of(c, gaps);
  for (int64_t k = 0; k < gaps->numel && lt_ok(c); k++)
    if (v[k] != 1) {
      fault("%s: what lies between the elements of a result was written", title(t, STRIDED));
      break;
    }
  free(v);
}

static void same_again(lt_ctx *c, trial *t, layout how, lt_tensor *first) {
  lt_tensor *in[TRIAL_IN], *out[LT_MAX_OUT] = {NULL};
  if (!good(c, run(c, t, device, how, in, out), title(t, how))) return;
  double *a = values_of(c, first), *b = values_of(c, out[0]);
  for (int64_t k = 0; k < first->numel && lt_ok(c); k++)
    if (a[k] != b[k] && !(isnan(a[k]) && isnan(b[k]))) {
      fault("%s: the same call twice gives %.9g and %.9g", title(t, how), a[k], b[k]);
      break;
    }
  free(a);
  free(b);
}

/* False when the trial does not apply: the CPU refuses it, or the device has no kernel for it. */
static bool try(lt_ctx *c, trial *t) {
  lt_tensor *in[TRIAL_IN], *out[LT_MAX_OUT] = {NULL}, *wanted_in[TRIAL_IN];
  lt_tensor *wanted[LT_MAX_OUT] = {NULL};
  const lt_kind_info *kind = &lt_kinds[lt_ops[t->op].kind];
  if (!run(c, t, LT_CPU_DEVICE, ROW_MAJOR, wanted_in, wanted)) {
    lt_take_failure(c, NULL);
    return false;
  }
  lt_tensor *first = kind->n_out > 0 ? wanted[0] : wanted_in[0];
  if (lt_kernel_of(ops, t->op, (lt_dtype)first->dtype) == NULL) return false;
  for (layout how = ROW_MAJOR; how < LAYOUTS; how++) {
    memset(out, 0, sizeof out);
    if (!good(c, run(c, t, device, how, in, out), title(t, how))) continue;
    for (int k = 0; k < kind->n_out; k++)
      if (wanted[k] != NULL) compare(c, t, how, out[k], wanted[k], "a result");
    for (int k = 0; kind->n_out == 0 && k < t->n; k++)
      compare(c, t, how, in[k], wanted_in[k], "what it writes");
    if (kind->n_out > 0 && how == ROW_MAJOR) same_again(c, t, how, out[0]);
  }
  if (kind->n_out > 0) write_with_gaps(c, t, wanted[0]);
  return true;
}

/* The calls of one op in every dtype; how many were compared. */
static int trials_of(lt_ctx *c, lt_op op) {
  int trials = 0;
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    for (int k = 0;; k++) {
      lt_frame frame = lt_frame_open(c);
      trial t = {.op = op, .dtype = (lt_dtype)d, .number = k, .slack = 1};
      bool any = make_trial(c, &t);
      if (any && lt_ok(c))
        trials += try(c, &t);
      else
        lt_take_failure(c, NULL);
      lt_frame_close(c, frame, 0, NULL);
      if (!any) break;
    }
  return trials;
}

void test_kernels(lt_ctx *c) {
  int n = 0;
  for (int op = 0; op < LT_OP_COUNT; op++) {
    if (ops->kernels[op] == NULL || op == LT_OP_empty || op == LT_OP_transfer) continue;
    bool derivative = lt_ops[op].kind == LT_KIND_binary_backward;
    if (derivative && lt_ops[op].dtype == LT_DTYPE_int) continue; /* which nothing calls */
    if (trials_of(c, (lt_op)op) == 0)
      fault("%s: no call of its kernel was compared with the CPU's: device_cases.c has none",
            lt_ops[op].name);
    n++;
  }
  printf("%d kernels compared with the CPU's\n", n);
}
