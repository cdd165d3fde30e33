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

/* A result and what it should be: compared when all calls of an op were issued, so that a device
   that records makes one program of them. */
typedef struct comparison {
  lt_tensor *got, *wanted;
  double tolerance; /* -1: bit for bit, of the same call twice */
  char text[200];
} comparison;

static comparison *list;
static int n_list, room;

static void compare(lt_tensor *got, lt_tensor *wanted, double tolerance, const char *text,
                    const char *what) {
  if (n_list == room) {
    room = 2 * room + 64;
    list = realloc(list, (size_t)room * sizeof *list);
  }
  comparison *k = &list[n_list++];
  *k = (comparison){.got = got, .wanted = wanted, .tolerance = tolerance};
  snprintf(k->text, sizeof k->text, "%s: %s %s", text, what, LT_TENSOR_STR(got));
}

static void compare_now(lt_ctx *c, const comparison *k) {
  lt_tensor *got = k->got, *wanted = k->wanted;
  if (got->dtype != wanted->dtype || !lt_shape_equal(lt_tensor_shape(got), lt_tensor_shape(wanted)))
    return fault("%s has another shape or dtype than the CPU's", k->text);
  double *a = values_of(c, got), *b = values_of(c, wanted);
  for (int64_t i = 0; i < got->numel && lt_ok(c); i++) {
    if (is_near(a[i], b[i], k->tolerance < 0 ? 0 : k->tolerance)) continue;
    fault("%s: element %lld is %.9g, %s %.9g", k->text, (long long)i, a[i],
          k->tolerance < 0 ? "the first time it was" : "the CPU's", b[i]);
    break;
  }
  good(c, lt_ok(c), k->text);
  free(a);
  free(b);
}

static void compare_all(lt_ctx *c) {
  for (int k = 0; k < n_list; k++) compare_now(c, &list[k]);
  n_list = 0;
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
static void write_with_gaps(lt_ctx *c, trial *t, lt_tensor *wanted, double tolerance) {
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
  compare(out, wanted, tolerance, title(t, STRIDED), "a result with gaps");
  lt_tensor *ones = lt_full(c, lt_tensor_shape(gaps), lt_scalar_int(1), (lt_dtype)wanted->dtype,
                            LT_CPU_DEVICE);
  compare(gaps, ones, 0, title(t, STRIDED), "what is between the elements of a result");
}

static void same_again(lt_ctx *c, trial *t, layout how, lt_tensor *first) {
  lt_tensor *in[TRIAL_IN], *out[LT_MAX_OUT] = {NULL};
  if (good(c, run(c, t, device, how, in, out), title(t, how)))
    compare(out[0], first, -1, title(t, how), "the same call twice");
}

/* An everyday run on a device that is slow at it, because it compiles or is emulated, has every nth
   op (others for another LT_TEST_SEED), every mth trial of each and one layout of a trial:
   LT_TEST_SOME=n/m. */
static struct { int seed, ops, trials, layouts; } every = {1, 1, 1, 1};

static void read_sampling(void) {
  const char *seed = getenv("LT_TEST_SEED"), *some = getenv("LT_TEST_SOME");
  if (seed != NULL) every.seed = atoi(seed);
  if (some != NULL && sscanf(some, "%d/%d", &every.ops, &every.trials) == 2)
    every.layouts = LAYOUTS;
}

static bool is_sampled(int number, int n) { return (number + every.seed) % n == 0; }

static double tolerance_for(const trial *t, const lt_tensor *wanted) {
  return tolerance_of((lt_dtype)wanted->dtype) * t->slack;
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
    if (!is_sampled((int)t->op + t->number + (int)how, every.layouts)) continue;
    memset(out, 0, sizeof out);
    if (!good(c, run(c, t, device, how, in, out), title(t, how))) continue;
    for (int k = 0; k < kind->n_out; k++)
      if (wanted[k] != NULL)
        compare(out[k], wanted[k], tolerance_for(t, wanted[k]), title(t, how), "a result");
    for (int k = 0; kind->n_out == 0 && k < t->n; k++)
      compare(in[k], wanted_in[k], tolerance_for(t, wanted_in[k]), title(t, how),
              "what it writes");
    if (kind->n_out > 0 && how == ROW_MAJOR) same_again(c, t, how, out[0]);
  }
  if (kind->n_out > 0) write_with_gaps(c, t, wanted[0], tolerance_for(t, wanted[0]));
  return true;
}

/* The calls of one op in every dtype, compared together; how many there were. */
static int trials_of(lt_ctx *c, lt_op op, int *number) {
  int trials = 0;
  lt_frame frame = lt_frame_open(c);
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    for (int k = 0;; k++) {
      trial t = {.op = op, .dtype = (lt_dtype)d, .number = k, .slack = 1};
      bool any = make_trial(c, &t), ok = !lt_take_failure(c, NULL);
      if (!any) break;
      if (ok && (is_sampled((*number)++, every.trials) || trials == 0)) trials += try(c, &t);
    }
  compare_all(c);
  lt_frame_close(c, frame, 0, NULL);
  return trials;
}

static bool has_kernel(lt_op op) {
  bool any = false;
  for (int d = 0; d < LT_DTYPE_COUNT; d++) any = any || lt_kernel_of(ops, op, (lt_dtype)d) != NULL;
  return any && op != LT_OP_empty && op != LT_OP_transfer;
}

void test_kernels(lt_ctx *c) {
  int n = 0, number = 0;
  read_sampling();
  for (int op = 0; op < LT_OP_COUNT; op++) {
    if (!has_kernel((lt_op)op)) continue;
    bool derivative = lt_ops[op].kind == LT_KIND_binary_backward;
    if (derivative && lt_ops[op].dtype == LT_DTYPE_int) continue; /* which nothing calls */
    if (!is_sampled(op, every.ops)) continue;
    if (trials_of(c, (lt_op)op, &number) == 0)
      fault("%s: no call of its kernel was compared with the CPU's: device_cases.c has none",
            lt_ops[op].name);
    n++;
  }
  printf("%d kernels compared with the CPU's\n", n);
  free(list);
}
